/* SPDX-License-Identifier: MIT */
/* Results of reports on the standard output, also while traces are being recorded. */
#ifndef KY_CLI_REPORT_REPORT_LIVE_H
#define KY_CLI_REPORT_REPORT_LIVE_H

#include "analysis/export/stacks.h"
#include "analysis/reports/report.h"
#include "cli/reading/follow-run.h"

/* All false: text for people. */
struct ky_report_form {
	bool json, csv, csv_raw, html;
	enum ky_stacks_form stacks; /* only the stacks of report flame; KY_STACKS_FORMS: tables */
	bool wide;		    /* all columns, whatever their width */
	bool is_temporary;	    /* the trace is gone afterwards: no hints at it */
	bool is_screen; /* the text replaces what is on the terminal, as far as it fits */
};

/* Writes @results to the standard output. 0 or a negative status. */
int ky_cli_show_reports(const struct ky_report_results *results, const struct ky_report_form *form,
			struct kymo_error *err);

struct ky_report_live {
	struct ky_follow_run run; /* its functions and data are those of this module */
	const struct ky_report *const *reports;
	size_t n_reports;
	const struct ky_report_options *options; /* with an interval */
	struct ky_report_form form;
};

/*
 * Shows the results of each interval when it is over, until all traces are complete, or SIGINT or SIGTERM comes (then
 * KYMO_OK, too). Errors: those of opening and reading traces, and of reports.
 */
int ky_report_live(const struct ky_report_live *live, struct kymo_error *err);

#endif
