/* SPDX-License-Identifier: MIT */
#include "analysis/export/chart.h"

#include <inttypes.h>

#include "analysis/export/stacks-internal.h"
#include "analysis/stacks/stack-json.h"
#include "base/error.h"

/* The first call's begin: times from there on are exact in JavaScript's numbers. */
static int64_t chart_origin(const struct ky_call_chart *chart)
{
	int64_t origin = INT64_MAX;

	ky_vec_foreach(&chart->calls, call)
		origin = call->begin_ns < origin ? call->begin_ns : origin;
	return origin;
}

/* ---- speedscope ---------------------------------------------------------------------------- */

struct chart_open {
	uint32_t frame, depth;
	int64_t end_ns;
};

/* The events of a profile must rise in time, and close what is open in the opposite order. */
struct chart_writer {
	struct ky_strbuf *out;
	int64_t origin_ns, last_ns;
	const char *between;
	KY_VEC(struct chart_open) open;
};

static void chart_event(struct chart_writer *writer, char type, uint32_t frame, int64_t ns)
{
	if (ns > writer->last_ns)
		writer->last_ns = ns;
	ky_strbuf_addf(writer->out, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRId64 "}",
		       writer->between, type, frame, writer->last_ns - writer->origin_ns);
	writer->between = ",\n";
}

static void chart_close_to(struct chart_writer *writer, uint32_t depth)
{
	while (writer->open.len && writer->open.data[writer->open.len - 1].depth >= depth) {
		const struct chart_open *open = &writer->open.data[--writer->open.len];

		chart_event(writer, 'C', open->frame, open->end_ns);
	}
}

static void chart_events(struct chart_writer *writer, const struct ky_chart_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct chart_open open = {calls[i].frame, calls[i].depth, calls[i].end_ns};

		chart_close_to(writer, calls[i].depth);
		chart_event(writer, 'O', open.frame, calls[i].begin_ns);
		if (ky_vec_push(&writer->open, open) < 0)
			writer->out->failed = true;
	}
	chart_close_to(writer, 0);
}

static int64_t chart_last(const struct ky_chart_call *calls, size_t n)
{
	int64_t last = calls[0].end_ns;

	for (size_t i = 1; i < n; i++)
		last = calls[i].end_ns > last ? calls[i].end_ns : last;
	return last;
}

static void chart_profile(struct ky_strbuf *out, const struct ky_chart_thread *thread,
			  const struct ky_chart_call *calls, size_t n, int64_t origin_ns)
{
	struct chart_writer writer = {
		.out = out, .origin_ns = origin_ns, .last_ns = calls[0].begin_ns, .between = "\n"};
	struct ky_strbuf name = KY_STRBUF_INIT;

	ky_strbuf_addf(&name, "%s (%" PRId32 ")", thread->name, thread->tid);
	ky_strbuf_adds(out, "{\"type\":\"evented\",\"name\":");
	ky_stacks_json_text(out, ky_strbuf_text(&name));
	ky_strbuf_addf(out,
		       ",\"unit\":\"nanoseconds\",\"startValue\":%" PRId64 ",\"endValue\":%" PRId64
		       ",\"events\":[",
		       calls[0].begin_ns - origin_ns, chart_last(calls, n) - origin_ns);
	chart_events(&writer, calls, n);
	ky_strbuf_adds(out, "]}");
	ky_vec_fini(&writer.open);
	ky_strbuf_fini(&name);
}

/* How many calls from @at on are of the same thread. */
static size_t chart_run(const struct ky_call_chart *chart, size_t at)
{
	size_t n = 1;

	while (at + n < chart->calls.len &&
	       chart->calls.data[at + n].thread == chart->calls.data[at].thread)
		n++;
	return n;
}

int ky_chart_speedscope(struct ky_strbuf *out, const struct ky_call_chart *chart,
			const struct ky_stack_tree *tree, const char *name, struct kymo_error *err)
{
	int64_t origin_ns = chart_origin(chart);
	size_t n;

	ky_stacks_speedscope_begin(out, tree, name);
	for (size_t at = 0; at < chart->calls.len; at += n) {
		const struct ky_chart_call *calls = &chart->calls.data[at];

		n = chart_run(chart, at);
		ky_strbuf_adds(out, at ? ",\n" : "");
		chart_profile(out, &chart->threads.data[calls->thread], calls, n, origin_ns);
	}
	ky_strbuf_adds(out, "]}\n");
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- chrome -------------------------------------------------------------------------------- */

/* Microseconds, with three digits behind the point. */
static void chart_us(struct ky_strbuf *out, const char *name, int64_t ns)
{
	uint64_t value = ns > 0 ? (uint64_t)ns : 0;

	ky_strbuf_addf(out, ",\"%s\":%" PRIu64 ".%03" PRIu64, name, value / 1000, value % 1000);
}

static void chart_ids(struct ky_strbuf *out, const struct ky_chart_thread *thread)
{
	ky_strbuf_addf(out, ",\"pid\":%" PRId32 ",\"tid\":%" PRId32,
		       thread->pid >= 0 ? thread->pid : thread->tid, thread->tid);
}

int ky_chart_chrome(struct ky_strbuf *out, const struct ky_call_chart *chart,
		    const struct ky_stack_tree *tree, struct kymo_error *err)
{
	int64_t origin_ns = chart_origin(chart);
	const char *between = "\n";

	ky_strbuf_adds(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	ky_vec_foreach(&chart->threads, thread) {
		ky_strbuf_addf(out, "%s{\"ph\":\"M\",\"name\":\"thread_name\"", between);
		chart_ids(out, thread);
		ky_strbuf_adds(out, ",\"args\":{\"name\":");
		ky_stacks_json_text(out, thread->name);
		ky_strbuf_adds(out, "}}");
		between = ",\n";
	}
	ky_vec_foreach(&chart->calls, call) {
		ky_strbuf_addf(out, "%s{\"ph\":\"X\",\"name\":", between);
		ky_stacks_json_text(out, tree->frames.data[call->frame].function);
		chart_ids(out, &chart->threads.data[call->thread]);
		chart_us(out, "ts", call->begin_ns - origin_ns);
		chart_us(out, "dur", call->end_ns - call->begin_ns);
		ky_strbuf_addc(out, '}');
		between = ",\n";
	}
	ky_strbuf_adds(out, "]}\n");
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}
