/* SPDX-License-Identifier: MIT */
/* What other processes ask of a recording: its status, a snapshot, other events, its end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mark.h"
#include "record/common/choice.h"
#include "record/recording/recording-internal.h"
#include "record/request/user-rules.h"

static void recording_requests_add_number(struct ky_control_socket_message *answer, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	ky_control_socket_add(answer, text);
}

/* A path as others can use it. */
static void add_path(struct ky_control_socket_message *answer, const char *path)
{
	char real[PATH_MAX];

	ky_control_socket_add(answer, realpath(path, real) ? real : path);
}

static int answer_snapshot(struct ky_recording *recording, const char *path,
			   struct ky_control_socket_message *answer, struct kymo_error *err)
{
	struct ky_recording_snapshot snapshot;
	int ret = ky_recording_snapshot(recording, path, &snapshot, err);

	if (ret < 0)
		return ret;
	add_path(answer, snapshot.path);
	recording_requests_add_number(answer, snapshot.events);
	recording_requests_add_number(answer, snapshot.bytes);
	ky_control_socket_add(answer, snapshot.is_raw ? "raw records and events" : "events");
	return KYMO_OK;
}

static int answer_rotation(struct ky_recording *recording, struct ky_control_socket_message *answer,
			   struct kymo_error *err)
{
	struct ky_recording_chunk chunk;
	int ret = ky_recording_rotate(recording, &chunk, err);

	if (ret < 0)
		return ret;
	if (chunk.number)
		add_path(answer, chunk.path);
	else
		ky_control_socket_add(answer, "");
	recording_requests_add_number(answer, chunk.events);
	recording_requests_add_number(answer, chunk.bytes);
	return KYMO_OK;
}

/* ---- status --------------------------------------------------------------------------- */

static void add_words(struct ky_control_socket_message *answer, const char *name,
		      const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ky_control_socket_add(answer, name);
		ky_control_socket_add(answer, words[i]);
	}
}

/* A rule of programs' events, and after it its conditions. */
static void recording_requests_add_rule(struct ky_control_socket_message *answer,
					const struct ky_user_rule *rule)
{
	char levels[64];

	ky_control_socket_add(answer, "user");
	ky_control_socket_add(answer, rule->pattern);
	if (rule->condition) {
		ky_control_socket_add(answer, "filter");
		ky_control_socket_add(answer, rule->condition);
	}
	if (rule->level_min > 0 || rule->level_max < 14) {
		snprintf(levels, sizeof(levels), "%s..%s", ky_log_level_name(rule->level_min),
			 ky_log_level_name(rule->level_max));
		ky_control_socket_add(answer, "loglevel");
		ky_control_socket_add(answer, levels);
	}
	ky_vec_foreach(&rule->exclusions, exclusion) {
		ky_control_socket_add(answer, "exclude");
		ky_control_socket_add(answer, *exclusion);
	}
}

static void recording_requests_add_counter(struct ky_control_socket_message *answer,
					   const char *name, uint64_t number)
{
	ky_control_socket_add(answer, name);
	recording_requests_add_number(answer, number);
}

/* How far the recording is; the fill is in hundredths. */
static void recording_requests_add_progress(const struct ky_recording *recording,
					    struct ky_control_socket_message *answer)
{
	struct ky_session_progress kernel = {0};
	struct ky_user_progress user = {0};
	struct ky_store_backlog backlog;

	if (recording->session)
		ky_session_progress(recording->session, &kernel);
	ky_recording_program_progress(recording, &user);
	recording_requests_add_counter(answer, "events",
				       kernel.events + user.events - recording->cleared.events);
	recording_requests_add_counter(answer, "lost",
				       kernel.lost + user.lost - recording->cleared.lost);
	recording_requests_add_counter(answer, "bytes",
				       kernel.bytes + user.bytes - recording->cleared.bytes);
	if (recording->session)
		recording_requests_add_counter(answer, "fill", (uint64_t)(kernel.fill * 100));
	if (recording->programs.n)
		recording_requests_add_counter(answer, "programs", user.n_programs);
	if (recording->pauses.n) {
		ky_control_socket_add(answer, "state");
		ky_control_socket_add(answer, recording->pauses.is_on ? "paused" : "on");
		recording_requests_add_counter(answer, "pauses", recording->pauses.n);
		recording_requests_add_counter(answer, "paused_ns",
					       ky_recording_paused_ns(recording));
	}
	if (!recording->options.store || !ky_store_get_backlog(recording->options.store, &backlog))
		return;
	recording_requests_add_counter(answer, "queued", backlog.memory_bytes);
	recording_requests_add_counter(answer, "spill", backlog.file_bytes);
	recording_requests_add_counter(answer, "spilled", backlog.spilled_bytes);
}

/* Pairs of words. */
static int answer_status(const struct ky_recording *recording,
			 struct ky_control_socket_message *answer)
{
	const struct ky_session_options *kernel = &recording->options.kernel;
	const struct ky_user_rule *rule;

	ky_control_socket_add(answer, "output");
	add_path(answer, recording->options.output);
	if (recording->options.name) {
		ky_control_socket_add(answer, "name");
		ky_control_socket_add(answer, recording->options.name);
	}
	if (recording->options.log_path) {
		ky_control_socket_add(answer, "log");
		add_path(answer, recording->options.log_path);
	}
	recording_requests_add_progress(recording, answer);
	ky_control_socket_add(answer, "mode");
	ky_control_socket_add(answer, recording->options.user.overwrite ? "flight" : "trace");
	if (ky_recording_has_flight_groups(recording)) {
		ky_control_socket_add(answer, "snapshots");
		ky_control_socket_add(answer, "groups");
	}
	ky_control_socket_add(answer, "pid");
	recording_requests_add_number(answer, (uint64_t)getpid());
	ky_control_socket_add(answer, "start");
	recording_requests_add_number(answer,
				      (uint64_t)ky_os_clock_to_ns(ky_recording_clock(recording),
								  recording->start_cycles));
	add_words(answer, "kernel", kernel->events, kernel->n_events);
	if (recording->session && !kernel->n_events && !kernel->only_probes &&
	    !kernel->only_samples) {
		ky_control_socket_add(answer, "kernel");
		ky_control_socket_add(answer, "default");
	}
	ky_recording_add_groups(recording, answer);
	add_words(answer, "probe", kernel->probes, kernel->n_probes);
	add_words(answer, "sdt", kernel->sdt, kernel->n_sdt);
	add_words(answer, "kprobe", kernel->kprobes, kernel->n_kprobes);
	for (size_t i = 0; i < kernel->n_samples; i++) {
		ky_control_socket_add(answer, "sample");
		ky_control_socket_add(answer, kernel->samples[i].name);
	}
	for (size_t i = 0;
	     recording->programs.n && (rule = ky_user_rule_at(recording->programs.users[0], i));
	     i++)
		recording_requests_add_rule(answer, rule);
	ky_vec_foreach(&recording->changes, change) {
		ky_control_socket_add(answer, "change");
		ky_control_socket_add(answer, *change);
	}
	return KYMO_OK;
}

static int answer_details(struct ky_recording *recording, struct ky_control_socket_message *answer,
			  struct kymo_error *err)
{
	(void)answer_status(recording, answer);
	return ky_recording_add_details(recording, answer, err);
}

/* ---- changes -------------------------------------------------------------------------- */

/* The status has the last changes. */
#define CHANGES_MAX 32

static void forget_oldest_change(struct ky_recording *recording)
{
	free(recording->changes.data[0]);
	recording->changes.len--;
	memmove(recording->changes.data, recording->changes.data + 1,
		recording->changes.len * sizeof(recording->changes.data[0]));
}

/* After a change has been made: "@what@how @text", as an option of kymo ctl has it. */
static void note_change(struct ky_recording *recording, const char *what, const char *how,
			const char *text)
{
	char *change;

	if (asprintf(&change, "%s%s %s", what, how, text) < 0)
		return;
	if (recording->changes.len == CHANGES_MAX)
		forget_oldest_change(recording);
	if (ky_vec_push(&recording->changes, change) < 0)
		free(change);
}

static int missing_pattern(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_INVALID, "the request names no event");
}

/* A request's words: what to do, the pattern, and of "enable" the filter and the log levels. */
static int change_user(struct ky_recording *recording,
		       const struct ky_control_socket_message *request, size_t at, bool enables,
		       struct kymo_error *err)
{
	struct ky_user_change change = {.enables = enables, .level_max = 14};
	const char *filter, *levels;

	change.pattern = ky_control_socket_next(request, &at);
	filter = ky_control_socket_next(request, &at);
	levels = ky_control_socket_next(request, &at);
	if (!recording->programs.n)
		return ky_error_set(err, KYMO_E_STATE, "this recording does not record programs");
	if (!change.pattern || !*change.pattern)
		return missing_pattern(err);
	if (filter && *filter)
		change.filter = filter;
	if (levels && *levels &&
	    ky_user_levels_parse(levels, &change.level_min, &change.level_max) < 0)
		return ky_error_set(err, KYMO_E_INVALID, "'%s' is not a log level", levels);
	return ky_recording_change_rules(recording, &change, err);
}

static int no_kernel(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_STATE, "this recording does not record the kernel");
}

/* kymo mark: its time, which the mark's line has, and its text. */
static int obey_mark(struct ky_recording *recording,
		     const struct ky_control_socket_message *request, size_t at,
		     struct kymo_error *err)
{
	const char *ns = ky_control_socket_next(request, &at);
	const char *text = ns ? ky_control_socket_next(request, &at) : NULL;
	char line[KY_MARK_BYTES];
	struct ky_trigger_firing firing = {.condition = line, .cpu = UINT32_MAX};

	if (!text)
		return ky_error_set(err, KYMO_E_INVALID, "a mark has a time and a text");
	firing.hit.ns = strtoll(ns, NULL, 10);
	ky_mark_put(line, sizeof(line), firing.hit.ns, "");
	return ky_recording_mark(recording, &firing, text, err);
}

static int change_kernel(struct ky_recording *recording, const char *pattern, bool enables,
			 struct kymo_error *err)
{
	int ret;

	if (!recording->session)
		return no_kernel(err);
	if (!pattern || !*pattern)
		return missing_pattern(err);
	ret = ky_session_change(recording->session, pattern, enables, err);
	if (!ret)
		note_change(recording, enables ? "enable-" : "disable-", "kernel", pattern);
	return ret;
}

/* ---- choices -------------------------------------------------------------------------- */

static const char *const id_kinds[] = {
	[KY_SESSION_PIDS] = "pid",
	[KY_SESSION_TIDS] = "tid",
	[KY_SESSION_UIDS] = "uid",
};

static int ids_of(enum ky_session_choice what, const char *text, int32_t ids[KY_CHOICE_IDS_MAX],
		  struct kymo_error *err)
{
	int n = ky_choice_ids(text, what == KY_SESSION_UIDS, ids, 0);

	return n < 0 ? ky_error_set(err, KYMO_E_INVALID,
				    "'%s': up to %d ids between commas are wanted", text,
				    KY_CHOICE_IDS_MAX)
		     : n;
}

static int choose_ids(struct ky_recording *recording, enum ky_session_choice what, const char *text,
		      bool adds, struct kymo_error *err)
{
	int32_t ids[KY_CHOICE_IDS_MAX];
	int n = ids_of(what, text, ids, err);

	return n < 0 ? n : ky_session_choose(recording->session, what, ids, (size_t)n, adds, err);
}

/* Programs join and leave as a whole. *knows: this kind of choice is for programs, too. */
static int recording_requests_choose_programs(struct ky_recording *recording, const char *kind,
					      const char *text, bool adds, bool *knows,
					      struct kymo_error *err)
{
	int32_t ids[KY_CHOICE_IDS_MAX];
	struct ky_user_change change = {.kind = KY_USER_PIDS, .enables = adds, .ids = ids};
	enum ky_session_choice what = KY_SESSION_PIDS;
	int n;

	if (strcmp(kind, "uid") == 0) {
		what = KY_SESSION_UIDS;
		change.kind = KY_USER_UIDS;
	}
	*knows = recording->programs.n && strcmp(kind, id_kinds[what]) == 0;
	if (!*knows)
		return KYMO_OK;
	n = ids_of(what, text, ids, err);
	change.n_ids = n < 0 ? 0 : (size_t)n;
	return n < 0 ? n : ky_recording_change_programs(recording, &change, err);
}

static int choose_comm(struct ky_recording *recording, const char *text, struct kymo_error *err)
{
	if (*text && !ky_choice_is_comm(text))
		return ky_error_set(err, KYMO_E_INVALID,
				    "'%s' is not a name of a thread (15 characters)", text);
	return ky_session_choose_comm(recording->session, *text ? text : NULL, err);
}

static int choose_kind(struct ky_recording *recording, const char *kind, const char *text,
		       const char *place, bool adds, struct kymo_error *err)
{
	if (strcmp(kind, "comm") == 0)
		return choose_comm(recording, text, err);
	if (strcmp(kind, "cgroup") == 0)
		return ky_session_choose_group(recording->session, text, adds, err);
	if (strcmp(kind, "container") == 0)
		return ky_recording_choose_container(recording, text, place, adds, err);
	for (unsigned int i = 0; i < sizeof(id_kinds) / sizeof(id_kinds[0]); i++)
		if (strcmp(kind, id_kinds[i]) == 0)
			return choose_ids(recording, (enum ky_session_choice)i, text, adds, err);
	return ky_error_set(err, KYMO_E_INVALID, "unknown choice '%.64s'", kind);
}

/*
 * A request's words: the kind of id ("pid", "tid", "uid"), or "cgroup", "container" or "comm"; "add" or "remove"; the ids or
 * the name; of a container its control group.
 */
static int recording_requests_choose(struct ky_recording *recording,
				     const struct ky_control_socket_message *request, size_t at,
				     struct kymo_error *err)
{
	const char *kind = ky_control_socket_next(request, &at),
		   *how = ky_control_socket_next(request, &at);
	const char *text = ky_control_socket_next(request, &at),
		   *place = ky_control_socket_next(request, &at);
	bool adds, knows = false;
	int ret = KYMO_OK;

	if (!kind || !how || !text)
		return ky_error_set(err, KYMO_E_INVALID, "the request names no process or thread");
	adds = strcmp(how, "add") == 0;
	if (recording->session)
		ret = choose_kind(recording, kind, text, place ? place : "", adds, err);
	if (!ret)
		ret = recording_requests_choose_programs(recording, kind, text, adds, &knows, err);
	if (!ret && !recording->session && !knows)
		ret = ky_error_set(err, KYMO_E_STATE,
				   "this recording does not record the kernel: it selects programs "
				   "by processes and users only");
	if (!ret)
		note_change(recording,
			    strcmp(kind, "comm") == 0 ? ""
			    : adds		      ? "add-"
						      : "remove-",
			    kind, text);
	return ret;
}

/* ---- requests ------------------------------------------------------------------------- */

/* The requests about triggers; KYMO_E_NOT_FOUND: this is another one. */
static int obey_triggers(struct ky_recording *recording, const char *word,
			 const struct ky_control_socket_message *request, size_t at,
			 struct ky_control_socket_message *answer, struct kymo_error *err)
{
	if (strcmp(word, "trigger") == 0)
		return ky_recording_add_trigger(recording, request, at, answer, err);
	if (strcmp(word, "remove-trigger") == 0)
		return ky_recording_remove_trigger(recording, ky_control_socket_next(request, &at),
						   err);
	ky_recording_list_triggers(recording, answer);
	return KYMO_OK;
}

/* *stops: the request is to stop; *waits: its answer is due when everything is complete. */
static int recording_requests_obey(struct ky_recording *recording,
				   const struct ky_control_socket_message *request,
				   struct ky_control_socket_message *answer, bool *stops,
				   bool *waits, struct kymo_error *err)
{
	size_t at = 0;
	const char *word = ky_control_socket_next(request, &at);

	if (!word)
		word = "";
	if (strcmp(word, "status") == 0)
		return answer_status(recording, answer);
	if (strcmp(word, "snapshot") == 0)
		return answer_snapshot(recording, ky_control_socket_next(request, &at), answer,
				       err);
	if (strcmp(word, "mark") == 0)
		return obey_mark(recording, request, at, err);
	if (strcmp(word, "rotate") == 0)
		return answer_rotation(recording, answer, err);
	if (strcmp(word, "act") == 0)
		return ky_recording_obey_act(recording, request, at, answer, err);
	if (strcmp(word, "enable") == 0)
		return change_user(recording, request, at, true, err);
	if (strcmp(word, "disable") == 0)
		return change_user(recording, request, at, false, err);
	if (strcmp(word, "enable-kernel") == 0)
		return change_kernel(recording, ky_control_socket_next(request, &at), true, err);
	if (strcmp(word, "disable-kernel") == 0)
		return change_kernel(recording, ky_control_socket_next(request, &at), false, err);
	if (strcmp(word, "pause") == 0)
		return ky_recording_pause(recording, err);
	if (strcmp(word, "resume") == 0)
		return ky_recording_resume(recording, err);
	if (strcmp(word, "clear") == 0)
		return ky_recording_clear(recording, err);
	if (strcmp(word, "details") == 0)
		return answer_details(recording, answer, err);
	if (strcmp(word, "choose") == 0)
		return recording_requests_choose(recording, request, at, err);
	if (strcmp(word, "trigger") == 0 || strcmp(word, "remove-trigger") == 0 ||
	    strcmp(word, "triggers") == 0)
		return obey_triggers(recording, word, request, at, answer, err);
	if (strcmp(word, "stop") == 0) {
		word = ky_control_socket_next(request, &at);
		*waits = word && strcmp(word, "wait") == 0;
		*stops = true;
		return KYMO_OK;
	}
	return ky_error_set(err, KYMO_E_INVALID,
			    "this recorder does not have this request; it may be of another "
			    "version of Kymo");
}

static void set_refusal(struct ky_control_socket_message *answer, const struct kymo_error *err)
{
	answer->len = 0;
	ky_control_socket_add(answer, "error");
	ky_control_socket_add(answer, err->message);
	ky_control_socket_add(answer, err->path);
	ky_control_socket_add(answer, err->hint);
}

void ky_recording_take_waiters(struct ky_recording *recording, struct ky_recording_waiters *waiters)
{
	*waiters = recording->waiters;
	recording->waiters.n = 0;
}

void ky_recording_answer_waiters(struct ky_recording_waiters *waiters, int ret,
				 const struct kymo_error *err)
{
	struct ky_control_socket_message answer = {.len = 0};

	if (ret < 0)
		set_refusal(&answer, err);
	else
		ky_control_socket_add(&answer, "ok");
	while (waiters->n)
		ky_control_socket_answer_kept(waiters->fds[--waiters->n], &answer);
}

static bool is_watch(const struct ky_control_socket_message *request)
{
	size_t at = 0;
	const char *word = ky_control_socket_next(request, &at);

	return word && strcmp(word, "watch") == 0;
}

bool ky_recording_take_request(struct ky_recording *recording)
{
	struct ky_control_socket_message request, answer = {.len = 0};
	struct kymo_error err;
	bool stops = false, waits = false;
	int ret;

	if (!ky_control_socket_take(&recording->control, &request))
		return false;
	if (is_watch(&request)) {
		ky_recording_add_watcher(recording, ky_control_socket_keep(&recording->control));
		return false;
	}
	ky_control_socket_add(&answer, "ok");
	ret = recording_requests_obey(recording, &request, &answer, &stops, &waits, &err);
	if (ret < 0)
		set_refusal(&answer, &err);
	if (waits && recording->waiters.n < KY_RECORDING_WAITERS_MAX)
		recording->waiters.fds[recording->waiters.n++] =
			ky_control_socket_keep(&recording->control);
	else
		ky_control_socket_answer(&recording->control, &answer);
	return stops;
}
