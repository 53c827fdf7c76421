/* SPDX-License-Identifier: MIT */
/*
 * Chrome's JSON trace format, for chrome://tracing, Perfetto and others. Times are microseconds from the first event on: as a
 * number of 64 bits, these are exact to the nanosecond; otherData has the time of the first event.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/export/tracks.h"
#include "flow/sinks/json-value.h"

/* The first process number of a machine's own tracks, above all numbers that a kernel gives; and the distance between the numbers of two machines. */
#define MACHINE_PIDS 10000000

static const struct {
	int32_t pid; /* 0: the thread's own */
	const char *name;
} processes[KY_TRACK_KINDS] = {
	[KY_TRACK_THREAD] = {0, NULL},
	[KY_TRACK_CPU] = {5000001, "CPUs"},
	[KY_TRACK_INTERRUPTS] = {5000002, "interrupts"},
	[KY_TRACK_DEVICE] = {5000003, "disks"},
	[KY_TRACK_STREAM] = {5000004, "streams"},
};

struct chrome_own {
	bool any;
};

static void export_chrome_time(struct ky_strbuf *out, int64_t ns)
{
	ky_strbuf_addf(out, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "",
		       (uint64_t)(ns < 0 ? -ns : ns) / 1000, (uint64_t)(ns < 0 ? -ns : ns) % 1000);
}

static void export_chrome_place(struct ky_tracks *tracks, const struct ky_track *track)
{
	int64_t pid = track->kind == KY_TRACK_THREAD ? track->pid : processes[track->kind].pid;

	ky_strbuf_addf(&tracks->out, "\"pid\":%" PRId64 ",\"tid\":%d",
		       pid + (int64_t)track->machine * MACHINE_PIDS, track->tid);
}

static void export_chrome_text(struct ky_strbuf *out, const char *name, const char *text)
{
	ky_strbuf_addf(out, ",\"%s\":", name);
	ky_json_text(out, text, strlen(text));
}

/* The first item tells when everything began. */
static void export_chrome_next(struct ky_tracks *tracks)
{
	struct chrome_own *own = tracks->own;

	if (!own->any)
		ky_strbuf_addf(&tracks->out,
			       "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tracer\":\"kymo\","
			       "\"begin_ns\":\"%" PRId64 "\"},\"traceEvents\":[\n",
			       tracks->origin_ns == INT64_MIN ? 0 : tracks->origin_ns);
	else
		ky_strbuf_adds(&tracks->out, ",\n");
	own->any = true;
}

static void export_chrome_args(struct ky_strbuf *out, const struct ky_track_item *item)
{
	size_t begun;

	ky_strbuf_adds(out, ",\"args\":{");
	begun = out->len;
	ky_tracks_json_fields(out, item->fields);
	if (item->ran)
		ky_strbuf_addf(out, "%s\"tid\":%d", out->len > begun ? "," : "", item->ran->tid);
	if (item->error) {
		ky_strbuf_addf(out, "%s\"error\":", out->len > begun ? "," : "");
		ky_json_text(out, item->error, strlen(item->error));
	}
	if (item->outcome) {
		ky_strbuf_addf(out, "%s\"outcome\":", out->len > begun ? "," : "");
		ky_json_text(out, item->outcome, strlen(item->outcome));
	}
	ky_strbuf_adds(out, "}}");
}

static int export_chrome_item(struct ky_tracks *tracks, const struct ky_track_item *item,
			      struct kymo_error *err)
{
	static const char *const phases[] = {
		[KY_TRACK_BEGIN] = "B",
		[KY_TRACK_END] = "E",
		[KY_TRACK_INSTANT] = "i",
		[KY_TRACK_WHOLE] = "X",
	};
	struct ky_strbuf *out = &tracks->out;

	(void)err;
	export_chrome_next(tracks);
	ky_strbuf_addf(out, "{\"ph\":\"%s\",", phases[item->what]);
	export_chrome_place(tracks, item->track);
	ky_strbuf_adds(out, ",\"ts\":");
	export_chrome_time(out, item->ns - tracks->origin_ns);
	if (item->what == KY_TRACK_WHOLE) {
		ky_strbuf_adds(out, ",\"dur\":");
		export_chrome_time(out, item->end_ns - item->ns);
	}
	if (item->what == KY_TRACK_INSTANT)
		ky_strbuf_adds(out, ",\"s\":\"t\"");
	export_chrome_text(out, "name", item->name);
	export_chrome_text(out, "cat", item->category);
	export_chrome_args(out, item);
	return 0;
}

static void export_chrome_name(struct ky_tracks *tracks, const struct ky_track *track,
			       const char *what, const char *name)
{
	export_chrome_next(tracks);
	ky_strbuf_addf(&tracks->out, "{\"ph\":\"M\",\"name\":\"%s\",", what);
	export_chrome_place(tracks, track);
	ky_strbuf_adds(&tracks->out, ",\"args\":{\"name\":");
	ky_json_text(&tracks->out, name, strlen(name));
	ky_strbuf_adds(&tracks->out, "}}");
}

static void export_chrome_names(struct ky_tracks *tracks, const struct ky_track *track)
{
	char name[2 * KY_TRACK_NAME_SIZE + 64];
	const char *process = processes[track->kind].name;

	if (track->kind == KY_TRACK_THREAD)
		process = track->process[0] ? track->process : track->name;
	if (track->machine)
		snprintf(name, sizeof(name), "%.64s: %s", track->hostname, process);
	else
		snprintf(name, sizeof(name), "%s", process);
	if (name[0])
		export_chrome_name(tracks, track, "process_name", name);
	if (track->name[0])
		export_chrome_name(tracks, track, "thread_name", track->name);
}

static int export_chrome_begin(struct ky_tracks *tracks, struct kymo_error *err)
{
	(void)tracks;
	(void)err;
	return 0;
}

static int export_chrome_end(struct ky_tracks *tracks, struct kymo_error *err)
{
	struct chrome_own *own = tracks->own;

	(void)err;
	ky_vec_foreach(&tracks->list, track)
		export_chrome_names(tracks, *track);
	if (!own->any)
		export_chrome_next(tracks);
	ky_strbuf_adds(&tracks->out, "\n]}\n");
	return 0;
}

const struct ky_tracks_form ky_tracks_chrome = {
	.what = "the Chrome trace",
	.wants_model = true,
	.wants_calls = true,
	.own_bytes = sizeof(struct chrome_own),
	.begin = export_chrome_begin,
	.item = export_chrome_item,
	.end = export_chrome_end,
};
