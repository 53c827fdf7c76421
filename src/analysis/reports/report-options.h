/* SPDX-License-Identifier: MIT */
/*
 * Checks of the options of reports, for report.c. report.h has the functions for reports.
 *
 * Threads: any, on different results.
 */
#ifndef KY_ANALYSIS_REPORTS_REPORT_OPTIONS_H
#define KY_ANALYSIS_REPORTS_REPORT_OPTIONS_H

#include "analysis/reports/report.h"

/*
 * An option that none of the reports supports is KYMO_E_INVALID. Of several reports, those without
 * support get a note by ky_report_note_ignored().
 */
int ky_report_check_heeded(const struct ky_report *const *reports, size_t n_reports,
			   const struct ky_report_options *options, struct kymo_error *err);
/* Adds a note to @result when its report ignores a given option. Returns 0 or KYMO_E_MEMORY. */
int ky_report_note_ignored(const struct ky_report_options *options,
			   struct ky_report_result *result);
/* Adds a note to @result on names and IDs of the selection that no thread has. Returns 0 or KYMO_E_MEMORY. */
int ky_report_note_nobody(const struct ky_report_options *options, struct ky_report_result *result);
/*
 * Each name of a table, and of the column to sort by, must be one of the reports'. KYMO_E_INVALID:
 * @err names those that exist.
 */
int ky_report_check_names(const struct ky_report *const *reports, size_t n_reports,
			  const struct ky_report_options *options, struct kymo_error *err);
/*
 * Reports with ->whole do not run with a selection and reports without it, and not in intervals; only they have use for --of, --at and --member. 0, or
 * KYMO_E_INVALID.
 */
int ky_report_check_whole(const struct ky_report *const *reports, size_t n_reports,
			  const struct ky_report_options *options, struct kymo_error *err);
/* report-parts.c: what reports on causes share, as ky_causes_new() and ky_causes_free(). */
struct ky_causes *ky_report_causes_new(struct ky_model *model);
void ky_report_causes_free(struct ky_causes *causes);
/* Whether rows come in the order of their length: those that stay are known before the end. */
bool ky_report_is_by_length(const struct ky_report_options *options);

#endif
