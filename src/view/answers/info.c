/* SPDX-License-Identifier: MIT */
/* What a view is of: traces, range, reports, the recording. */
#include <string.h>

#include <kymo/version.h>

#include "analysis/reports/report.h"
#include "view/answers/answer-internal.h"

static void info_put_trace(struct ky_strbuf *out, const struct ky_trace *trace)
{
	static const char *const names[] = {"hostname", "domain", "procname", "tracer_name"};
	const struct ky_env *env = ky_env_find(trace->cls, "vpid");

	ky_strbuf_adds(out, "{\"path\": ");
	ky_view_put_text(out, trace->path);
	ky_strbuf_adds(out, ", \"name\": ");
	ky_view_put_text(out, ky_trace_name(trace));
	if (env && !env->is_text) {
		ky_strbuf_adds(out, ", \"vpid\": ");
		ky_strbuf_addi(out, env->number);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		env = ky_env_find(trace->cls, names[i]);
		if (!env || !env->is_text)
			continue;
		ky_strbuf_addf(out, ", \"%s\": ", names[i]);
		ky_view_put_text(out, env->text);
	}
	ky_strbuf_addf(out, ", \"streams\": %zu}", trace->streams.len);
}

/* What a person must or may choose, besides threads and durations. */
static const char *info_asks(const struct ky_report *report)
{
	if (report->wants_periods)
		return "periods";
	if (report->wants_two)
		return "two";
	if (report->wants_of)
		return "of";
	return report->whole && !report->wants_choice ? "may" : "";
}

static void info_put_reports(struct ky_strbuf *out)
{
	bool any = false;

	for (const struct ky_report *const *report = ky_reports; *report; report++) {
		ky_strbuf_adds(out, any ? ", {\"name\": " : "{\"name\": ");
		ky_view_put_text(out, (*report)->name);
		ky_strbuf_adds(out, ", \"summary\": ");
		ky_view_put_text(out, (*report)->summary);
		ky_strbuf_addf(out, ", \"of_thread\": %s, \"asks\": \"%s\", \"ignores\": %u}",
			       (*report)->wants_choice ? "true" : "false", info_asks(*report),
			       (*report)->ignores);
		any = true;
	}
}

static void info_put_recording(struct ky_strbuf *out, const struct ky_view_recording *recording)
{
	const struct kymo_error *error;

	if (!recording) {
		ky_strbuf_adds(out, ", \"recording\": null");
		return;
	}
	error = atomic_load_explicit(&recording->error, memory_order_acquire);
	ky_strbuf_addf(out, ", \"recording\": {\"generation\": %llu, \"running\": %s, \"error\": ",
		       (unsigned long long)recording->generation,
		       recording->is_running && !error ? "true" : "false");
	if (error)
		ky_view_put_error(out, error);
	else
		ky_strbuf_adds(out, "null");
	ky_strbuf_adds(out, "}");
}

int ky_view_info(const struct ky_view *view, struct ky_strbuf *out)
{
	uint64_t lost = 0;

	ky_vec_foreach(&view->losses, loss)
		lost += loss->events;
	ky_strbuf_adds(out, "{\"kymo\": \"" KYMO_VERSION "\", \"begin\": ");
	if (view->begin_ns == INT64_MIN)
		ky_strbuf_adds(out, "null, \"end\": null");
	else {
		ky_strbuf_addi(out, view->begin_ns);
		ky_strbuf_adds(out, ", \"end\": ");
		ky_strbuf_addi(out, view->end_ns);
	}
	info_put_recording(out, view->recording);
	ky_strbuf_addf(out, ", \"lost\": %llu, \"traces\": [", (unsigned long long)lost);
	ky_vec_foreach(&view->set->traces, trace) {
		ky_strbuf_adds(out, trace == view->set->traces.data ? "" : ", ");
		info_put_trace(out, *trace);
	}
	ky_strbuf_adds(out, "], \"reports\": [");
	info_put_reports(out);
	ky_strbuf_adds(out, "]}\n");
	return KYMO_OK;
}
