/* SPDX-License-Identifier: MIT */
/*
 * Reports for programs that speak LAMI 1.0, the machine interface of trace analyses (Trace
 * Compass does): what a report can tell, what it found, and errors, each as one JSON object and a
 * line feed.
 *
 * A table is a table class of its name. One whose rows stand under headings becomes a table for each
 * heading, which is in the title then and no column; a begin and an end beside each other become
 * one time range.
 */
#ifndef KY_ANALYSIS_RENDER_LAMI_H
#define KY_ANALYSIS_RENDER_LAMI_H

#include "analysis/reports/report.h"

#define KY_LAMI_VERSION "1.0"

/* The metadata object of @report. 0 or KYMO_E_MEMORY. */
int ky_lami_metadata(struct ky_strbuf *out, const struct ky_report *report, struct kymo_error *err);
/* The results object: every table that is shown. 0 or KYMO_E_MEMORY. */
int ky_lami_results(struct ky_strbuf *out, const struct ky_report_results *results,
		    struct kymo_error *err);
/* The error object; what is not UTF-8 in @message becomes '?'. 0 or KYMO_E_MEMORY. */
int ky_lami_error(struct ky_strbuf *out, int code, const char *message, struct kymo_error *err);

#endif
