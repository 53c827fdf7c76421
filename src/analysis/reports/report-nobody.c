/* SPDX-License-Identifier: MIT */
/* The note on threads that were asked for and that no event names: else empty tables look like an idle thread's. */
#include <inttypes.h>
#include <string.h>

#include "analysis/reports/report-options.h"
#include "base/strbuf.h"
#include "base/text.h"

#define MAX_NAMED 8 /* more would fill the screen */

struct nobody {
	const struct ky_model *model;
	struct ky_strbuf text;
	size_t n;
};

static bool report_nobody_has_name(const struct ky_model *model, const char *pattern)
{
	for (size_t i = 0; i < ky_model_n_threads(model); i++) {
		const struct ky_thread *thread = ky_model_thread(model, i);

		if (ky_glob_match(pattern, thread->comm) || ky_glob_match(pattern, thread->before))
			return true;
	}
	return false;
}

static bool report_nobody_has_id(const struct ky_model *model, int32_t id, bool is_process)
{
	for (size_t i = 0; i < ky_model_n_threads(model); i++) {
		const struct ky_thread *thread = ky_model_thread(model, i);

		if ((is_process ? thread->pid : thread->tid) == id)
			return true;
	}
	return false;
}

static void report_nobody_add_name(struct nobody *nobody, const char *pattern)
{
	if (report_nobody_has_name(nobody->model, pattern) || nobody->n++ >= MAX_NAMED)
		return;
	ky_strbuf_addf(&nobody->text, "%sno thread is named '%s'", nobody->text.len ? "; " : "",
		       pattern);
	if (strlen(pattern) >= KY_COMM_SIZE && !strpbrk(pattern, "*?["))
		ky_strbuf_addf(&nobody->text, " (the kernel keeps %d bytes of a name: '%.*s')",
			       KY_COMM_SIZE - 1, KY_COMM_SIZE - 1, pattern);
}

static void report_nobody_add_id(struct nobody *nobody, int32_t id, bool is_process)
{
	if (report_nobody_has_id(nobody->model, id, is_process) || nobody->n++ >= MAX_NAMED)
		return;
	ky_strbuf_addf(&nobody->text, "%sno %s has the ID %" PRId32, nobody->text.len ? "; " : "",
		       is_process ? "process" : "thread", id);
}

int ky_report_note_nobody(const struct ky_report_options *options, struct ky_report_result *result)
{
	struct nobody nobody = {.model = result->model, .text = KY_STRBUF_INIT};
	int status = 0;

	/* A thread that one interval does not know may come in the next one. */
	if (options->interval_ns)
		return 0;
	ky_vec_foreach(&options->focus.comms, comm)
		report_nobody_add_name(&nobody, *comm);
	ky_vec_foreach(&options->focus.pids, pid)
		report_nobody_add_id(&nobody, *pid, true);
	ky_vec_foreach(&options->focus.tids, tid)
		report_nobody_add_id(&nobody, *tid, false);
	if (nobody.n > MAX_NAMED)
		ky_strbuf_addf(&nobody.text, "; %zu more", nobody.n - MAX_NAMED);
	if (ky_strbuf_failed(&nobody.text))
		status = KYMO_E_MEMORY;
	else if (nobody.text.len)
		status = ky_report_note(result, "%s", ky_strbuf_text(&nobody.text));
	ky_strbuf_fini(&nobody.text);
	return status;
}
