/* SPDX-License-Identifier: MIT */
/* What a request chooses of a report: threads, durations, what the report is about. Threads: a choice belongs to one answer. */
#ifndef KY_VIEW_REPORT_CHOICE_H
#define KY_VIEW_REPORT_CHOICE_H

#include "analysis/reports/report.h"
#include "view/answers/answer-internal.h"

struct ky_view_choice {
	struct ky_report_options options; /* for ky_reports_run() */
	struct ky_periods *periods;
	const char *tables[8]; /* names; static */
};

/*
 * The options of @report as @request has them, which must outlive the choice. @set: whose events periods are. The caller must end the choice, after an
 * error, too. Returns 0; KYMO_E_INVALID for a malformed definition, or for a row that is no thread's; KYMO_E_MEMORY; or the error of
 * the state history.
 */
int ky_view_choice_init(struct ky_view_choice *choice, struct ky_view *view,
			const struct ky_trace_set *set, const struct ky_report *report,
			const struct ky_view_request *request, struct kymo_error *err);
void ky_view_choice_fini(struct ky_view_choice *choice);

#endif
