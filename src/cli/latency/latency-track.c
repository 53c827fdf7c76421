/* SPDX-License-Identifier: MIT */
#include "cli/latency/latency-track.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "base/foreign.h"
#include "base/text.h"
#include "cli/latency/latency-output.h"
#include "cli/terminal/json-output.h"

#define OVER_DEFAULT_NS 1000000

/* ---- options -------------------------------------------------------------------------------- */

static int latency_track_wrong(const struct ky_command *command, const struct kymo_error *err)
{
	return ky_cli_usage(command, "%s%s%s", err->message, err->hint[0] ? "; " : "", err->hint);
}

/* On one line: a long definition may have several in a script. NULL: no memory. */
static char *latency_track_join(const char *text)
{
	char *line = strdup(text);

	for (char *at = line; at && *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	return line;
}

static int latency_track_add(const struct ky_command *command, struct ky_tracks *tracks,
			     const char *text, uint64_t max_open, bool stacks)
{
	struct ky_track *track = &tracks->list[tracks->n];

	if (tracks->n == KY_TRACKERS_MAX)
		return ky_cli_usage(command, "at most %d trackers run at once", KY_TRACKERS_MAX);
	track->text = latency_track_join(text);
	if (!track->text)
		return ky_cli_usage(command, "out of memory");
	tracks->n++;
	track->options = (struct ky_tracker_options){.text = track->text,
						     .over_ns = OVER_DEFAULT_NS,
						     .stacks = stacks,
						     .log = &ky_cli_log,
						     .max_open = (uint32_t)max_open};
	return KY_EXIT_OK;
}

static int set_over(const struct ky_command *command, const char *text, uint64_t *over_ns,
		    bool *over_worst)
{
	*over_worst = strcmp(text, "worst") == 0;
	if (!*over_worst && ky_parse_duration(text, over_ns) < 0)
		return ky_cli_usage(command, "--over needs a time, or 'worst', not '%s'", text);
	return KY_EXIT_OK;
}

static int latency_track_set_over(const struct ky_command *command, const char *text,
				  struct ky_track *track)
{
	track->has_over = true;
	return set_over(command, text, &track->options.over_ns, &track->options.over_worst);
}

/* A time-out without --over: the tracker tells only of pairs that take longer than the time-out. */
static void latency_track_set_unsaid(struct ky_tracks *tracks)
{
	for (size_t i = 0; i < tracks->n; i++)
		if (tracks->list[i].options.timeout_ns && !tracks->list[i].has_over)
			tracks->list[i].options.over_ns = tracks->list[i].options.timeout_ns;
}

static int latency_track_add_action(const struct ky_command *command, struct ky_track *track,
				    const char *text)
{
	struct kymo_error err;

	if (ky_track_action_check(text, &err) < 0)
		return latency_track_wrong(command, &err);
	if (track->n_actions == KY_TRACK_ACTIONS_MAX)
		return ky_cli_usage(command, "--do: at most %d actions of a tracker",
				    KY_TRACK_ACTIONS_MAX);
	track->actions[track->n_actions++] = text;
	return KY_EXIT_OK;
}

int ky_tracks_parse(const struct ky_command *command, const struct ky_text_list *list,
		    uint64_t max_open, bool stacks, struct ky_tracks *tracks)
{
	int code = KY_EXIT_OK;

	for (size_t i = 0; i + 1 < list->len && code == KY_EXIT_OK; i += 2) {
		const char *option = list->items[i], *value = list->items[i + 1];
		struct ky_track *track = &tracks->list[tracks->n ? tracks->n - 1 : 0];

		if (strcmp(option, "track") == 0)
			code = latency_track_add(command, tracks, value, max_open, stacks);
		else if (!tracks->n && tracks->chain && strcmp(option, "over") == 0)
			code = set_over(command, value, &tracks->chain->over_ns,
					&tracks->chain->over_worst);
		else if (!tracks->n)
			code = ky_cli_usage(command, "--%s needs a --track before it", option);
		else if (strcmp(option, "over") == 0)
			code = latency_track_set_over(command, value, track);
		else if (strcmp(option, "do") == 0)
			code = latency_track_add_action(command, track, value);
		else if (ky_parse_duration(value, &track->options.timeout_ns) < 0 ||
			 !track->options.timeout_ns)
			code = ky_cli_usage(command, "--timeout needs a time, not '%s'", value);
	}
	latency_track_set_unsaid(tracks);
	return code;
}

/* A mistake in the command line, with its place. */
static int blame_definition(const char *text, struct kymo_error *err)
{
	struct kymo_error found = *err;
	char place[32] = "";

	if (found.column)
		snprintf(place, sizeof(place), ":%u:%u", found.line, found.column);
	ky_error_set(err, KYMO_E_INVALID, "--track '%.200s'%s: %s", text, place, found.message);
	if (found.hint[0])
		ky_error_hint(err, "%s", found.hint);
	return KYMO_E_INVALID;
}

int ky_tracks_start(struct ky_tracks *tracks, struct ky_latency *latency, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < tracks->n && ret >= 0; i++) {
		ret = ky_latency_add_tracker(latency, &tracks->list[i].options, err);
		if (ret == KYMO_E_INVALID || ret == KYMO_E_NOT_FOUND)
			ret = blame_definition(tracks->list[i].options.text, err);
	}
	for (size_t i = 0; i < tracks->n && ret >= 0; i++)
		ky_track_actions_warn(&tracks->list[i]);
	return ret;
}

/* ---- what they tell ------------------------------------------------------------------------- */

static const char *kind_text(enum ky_tracker_news_kind kind)
{
	static const char *const texts[] = {
		[KY_TRACKER_OVER] = "over",
		[KY_TRACKER_STILL_OPEN] = "still open",
		[KY_TRACKER_ENDED] = "ended",
	};

	return texts[kind];
}

static void latency_track_put_comm(struct ky_strbuf *out, const char *comm)
{
	ky_foreign_add(out, comm, strnlen(comm, KY_LATENCY_COMM_BYTES));
}

static void latency_track_put_thread(struct ky_strbuf *out, const char *role,
				     const struct ky_tracker_thread *thread)
{
	ky_strbuf_addf(out, "  %s ", role);
	latency_track_put_comm(out, thread->comm);
	ky_strbuf_addf(out, " (tid %d, pid %d)", thread->tid, thread->pid);
}

static void latency_track_put_stack(struct ky_tracks *tracks, const char *title,
				    const struct ky_tracker_frames *kernel,
				    const struct ky_tracker_frames *user, int32_t pid)
{
	if (!kernel->n && !user->n)
		return;
	ky_strbuf_addf(&tracks->out, "  stack of the %s\n", title);
	ky_frames_put_kernel(&tracks->frames, &tracks->out, "    ", kernel->addresses, kernel->n);
	ky_frames_put_user(&tracks->out, "    ", user->addresses, user->n, pid);
}

/* "14:44:01.871880932 fsync over 12.34 ms  begin python3 (tid 7, pid 7)  end kworker/0:1 (tid 9, pid 9)" */
static void put_news(struct ky_tracks *tracks, const struct ky_tracker *tracker,
		     const struct ky_tracker_news *news)
{
	const struct ky_tracker_report *report = news->report;
	struct ky_strbuf *out = &tracks->out;

	ky_render_time(out, ky_latency_wall_ns(report->begin_ns + news->duration_ns), false);
	ky_strbuf_addf(out, " %s %s ", ky_tracker_name(tracker), kind_text(news->kind));
	ky_render_duration(out, (double)news->duration_ns);
	for (size_t i = 0; ky_tracker_key_name(tracker, i); i++) {
		ky_strbuf_adds(out, "  ");
		ky_foreign_adds(out, ky_tracker_key_name(tracker, i));
		if (ky_tracker_key_is_signed(tracker, i))
			ky_strbuf_addf(out, " %" PRId64, (int64_t)report->key.values[i]);
		else
			ky_strbuf_addf(out, " %" PRIu64, report->key.values[i]);
	}
	latency_track_put_thread(out, "begin", &report->begin);
	if (news->kind != KY_TRACKER_STILL_OPEN)
		latency_track_put_thread(out, "end", &report->end);
	ky_strbuf_addc(out, '\n');
	latency_track_put_stack(tracks, "begin", &news->begin_kernel, &news->begin_user,
				report->begin.pid);
	latency_track_put_stack(tracks, "end", &news->end_kernel, &news->end_user, report->end.pid);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* As hexadecimal texts: JSON's numbers are not as wide. */
static json_t *make_frames(const struct ky_tracker_frames *frames)
{
	json_t *list = json_array();
	char text[20];

	for (size_t i = 0; i < frames->n; i++) {
		snprintf(text, sizeof(text), "0x%" PRIx64, frames->addresses[i]);
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *make_kernel_frames(struct ky_frames *names, const struct ky_tracker_frames *frames)
{
	json_t *list = json_array();
	uint64_t offset;

	for (size_t i = 0; i < frames->n; i++) {
		const char *name = ky_frames_name(names, frames->addresses[i], &offset);

		json_array_append_new(list, ky_jansson_text(name ? name : "?"));
	}
	return list;
}

static json_t *make_thread(struct ky_tracks *tracks, const struct ky_tracker_thread *thread,
			   const struct ky_tracker_frames *kernel,
			   const struct ky_tracker_frames *user)
{
	char comm[KY_LATENCY_COMM_BYTES + 1] = "";

	memcpy(comm, thread->comm, KY_LATENCY_COMM_BYTES);
	return json_pack("{s:i, s:i, s:o, s:o, s:o}", "tid", thread->tid, "pid", thread->pid,
			 "comm", ky_jansson_text(comm), "kernel_stack",
			 make_kernel_frames(&tracks->frames, kernel), "user_stack",
			 make_frames(user));
}

static void put_json(struct ky_tracks *tracks, const struct ky_tracker *tracker,
		     const struct ky_tracker_news *news)
{
	const struct ky_tracker_report *report = news->report;
	json_t *root =
		json_pack("{s:s, s:s, s:I, s:I, s:I}", "tracker", ky_tracker_name(tracker), "kind",
			  kind_text(news->kind), "duration_ns", (json_int_t)news->duration_ns,
			  "begin_ns", (json_int_t)report->begin_ns, "time_ns",
			  (json_int_t)ky_latency_wall_ns(report->begin_ns + news->duration_ns));
	json_t *keys = json_object();
	struct kymo_error ignored;

	for (size_t i = 0; ky_tracker_key_name(tracker, i); i++)
		json_object_set_new(keys, ky_tracker_key_name(tracker, i),
				    json_integer((json_int_t)report->key.values[i]));
	json_object_set_new(root, "key", keys);
	json_object_set_new(
		root, "begin",
		make_thread(tracks, &report->begin, &news->begin_kernel, &news->begin_user));
	if (news->kind != KY_TRACKER_STILL_OPEN)
		json_object_set_new(
			root, "end",
			make_thread(tracks, &report->end, &news->end_kernel, &news->end_user));
	(void)ky_jansson_add(&tracks->out, root, JSON_COMPACT, &ignored);
}

/* ---- a step --------------------------------------------------------------------------------- */

struct telling {
	struct ky_tracks *tracks;
	struct ky_track *track;
};

static void latency_track_tell(void *data, const struct ky_tracker *tracker,
			       const struct ky_tracker_news *news)
{
	struct telling *telling = data;

	if (telling->tracks->is_quiet)
		; /* the output is for something else */
	else if (telling->tracks->json)
		put_json(telling->tracks, tracker, news);
	else
		put_news(telling->tracks, tracker, news);
	telling->track->n_told++;
	if (!ky_track_act(telling->tracks, telling->track, tracker, news))
		telling->track->n_held++;
}

int ky_tracks_step(struct ky_tracks *tracks, struct ky_latency *latency, struct kymo_error *err)
{
	int ret = KYMO_OK, more = 0;

	for (size_t i = 0; i < tracks->n && ret >= 0; i++) {
		struct telling telling = {tracks, &tracks->list[i]};

		ret = ky_tracker_step(ky_latency_tracker(latency, i), latency_track_tell, &telling,
				      err);
		more |= ret > 0;
	}
	if (tracks->out.len) {
		ky_cli_write(&tracks->out);
		fflush(stdout);
		ky_strbuf_clear(&tracks->out);
	}
	return ret < 0 ? ret : more;
}
