/* SPDX-License-Identifier: MIT */
/* The table of reports, and what runs them. */
#include "analysis/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report-list.h"
#include "base/error.h"

const struct ky_report *const ky_reports[] = {
	&ky_report_cpu,
	&ky_report_syscalls,
	NULL,
};

const struct ky_report *ky_report_find(const char *name)
{
	for (const struct ky_report *const *report = ky_reports; *report; report++) {
		if (strcmp((*report)->name, name) == 0)
			return *report;
	}
	return NULL;
}

int ky_report_note(struct ky_report_result *result, const char *fmt, ...)
{
	char *note;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&note, fmt, ap);
	va_end(ap);
	if (len < 0)
		return KYMO_E_MEMORY;
	if (ky_vec_push(&result->notes, note) < 0) {
		free(note);
		return KYMO_E_MEMORY;
	}
	return 0;
}

/* ---- running --------------------------------------------------------------------------- */

static int add_result(struct ky_report_results *results, const struct ky_report *report)
{
	struct ky_report_result result = {.report = report, .model = results->model};
	size_t n = 0;

	while (report->tables[n])
		n++;
	result.tables = calloc(n, sizeof(*result.tables));
	if (!result.tables)
		return KYMO_E_MEMORY;
	result.n_tables = n;
	for (size_t i = 0; i < n; i++)
		ky_table_init(&result.tables[i], report->tables[i]);
	if (ky_vec_push(&results->list, result) == 0)
		return 0;
	free(result.tables); /* no table holds anything yet */
	return KYMO_E_MEMORY;
}

/* Can the traces answer? Not one of the reports: an error; some not: a note in each. */
static int check_needs(struct ky_report_results *results, struct kymo_error *err)
{
	unsigned int abilities = ky_model_abilities(results->model);
	const struct ky_report *lacking = NULL;
	size_t n_able = 0;

	ky_vec_foreach(&results->list, result) {
		const struct ky_report *report = result->report;

		if ((report->needs & abilities) == report->needs) {
			n_able++;
			continue;
		}
		lacking = report;
		if (ky_report_note(result, "the trace has no %s; %s", report->needs_text,
				   report->needs_hint) < 0)
			return ky_error_nomem(err);
	}
	if (n_able || !lacking)
		return 0;
	ky_error_set(err, KYMO_E_UNSUPPORTED, "report %s needs %s, and the trace has none",
		     lacking->name, lacking->needs_text);
	ky_error_path(err, results->set->traces.len ? results->set->traces.data[0]->path : "");
	ky_error_hint(err, "%s", lacking->needs_hint);
	return KYMO_E_UNSUPPORTED;
}

static int finish_reports(struct ky_report_results *results, void **runs,
			  const struct ky_report_options *options)
{
	int status = 0;

	for (size_t i = 0; i < results->list.len && status >= 0; i++) {
		struct ky_report_result *result = &results->list.data[i];

		status = result->report->finish(runs[i], options, result);
		for (size_t t = 0; t < result->n_tables && status >= 0; t++)
			status = ky_table_status(&result->tables[t]);
	}
	return status;
}

static int run_pass(struct ky_report_results *results, void **runs, struct ky_flow *flow,
		    const struct ky_report_options *options, struct kymo_error *err)
{
	int status, finished;

	for (size_t i = 0; i < results->list.len; i++) {
		runs[i] = results->list.data[i].report->begin(results->model);
		if (!runs[i])
			return ky_error_nomem(err);
	}
	status = ky_model_run(results->model, flow, err);
	if (status == KYMO_E_MEMORY)
		return status;
	results->begin_ns = ky_model_begin_ns(results->model);
	results->end_ns = ky_model_end_ns(results->model);
	results->n_events = ky_model_n_events(results->model);
	finished = finish_reports(results, runs, options);
	if (finished < 0)
		return ky_error_nomem(err);
	return status;
}

int ky_reports_run(const struct ky_report *const *reports, size_t n_reports,
		   const struct ky_trace_set *set, struct ky_flow *flow,
		   const struct ky_report_options *options, struct ky_report_results *results,
		   struct kymo_error *err)
{
	void **runs = calloc(n_reports + 1, sizeof(*runs));
	int status = 0;

	*results =
		(struct ky_report_results){.set = set, .begin_ns = INT64_MIN, .end_ns = INT64_MIN};
	results->model = ky_model_new(set, err);
	for (size_t i = 0; runs && results->model && i < n_reports && !status; i++)
		status = add_result(results, reports[i]);
	if (!runs || !results->model || status < 0) {
		free(runs);
		return ky_error_nomem(err);
	}
	status = check_needs(results, err);
	if (status >= 0)
		status = run_pass(results, runs, flow, options, err);
	for (size_t i = 0; i < n_reports; i++) {
		if (runs[i])
			reports[i]->free(runs[i]);
	}
	free(runs);
	return status;
}

void ky_report_results_fini(struct ky_report_results *results)
{
	ky_vec_foreach(&results->list, result) {
		for (size_t i = 0; i < result->n_tables; i++)
			ky_table_fini(&result->tables[i]);
		free(result->tables);
		ky_vec_foreach(&result->notes, note)
			free(*note);
		ky_vec_fini(&result->notes);
	}
	ky_vec_fini(&results->list);
	ky_model_free(results->model);
	results->model = NULL;
}

/* ---- what reports share ---------------------------------------------------------------- */

const char *ky_report_host(const struct ky_model *model, const struct ky_host *host)
{
	return ky_model_n_hosts(model) < 2 ? NULL : host->label;
}

void ky_cell_thread(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		    const struct ky_thread *thread)
{
	ky_cell_process(table, cell, thread->tid, thread->pid < 0 ? -1 : thread->pid, thread->comm,
			ky_report_host(model, thread->host));
}

int ky_report_note_losses(struct ky_report_result *result)
{
	uint64_t events = 0, gaps = 0;

	for (size_t i = 0; i < ky_model_n_hosts(result->model); i++) {
		events += ky_model_host(result->model, i)->lost_events;
		gaps += ky_model_host(result->model, i)->gaps;
	}
	if (!gaps)
		return 0;
	return ky_report_note(result,
			      "%" PRIu64 " events were lost in %" PRIu64 " gap%s: what happened "
			      "in there is not in these figures",
			      events, gaps, gaps == 1 ? "" : "s");
}
