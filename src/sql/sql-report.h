/* SPDX-License-Identifier: MIT */
/*
 * A user's own report: a file of SQL statements, each of which makes a table. It runs like any other report.
 *
 *	ky_sql_report_new(sql, path, text, parameters, n, &own, err);
 *	ky_reports_run(&report, 1, ...);		with report = ky_sql_report(own)
 *	ky_sql_report_free(own);			after the results
 *
 * Comments at the head of the file tell what it is:
 *
 *	-- title: Slow system calls
 *	-- about: Calls that took longer than :least.
 *	-- param least=1000000
 *	-- table slow: Calls, the slowest first
 *	-- column took duration: How long the call took.
 *
 * The class of a column is one of those of reports (table.h), and determines its unit. Statements without a line "table" get the names rows,
 * rows2. The parameters :begin and :end are the range of the report.
 */
#ifndef KY_SQL_SQL_REPORT_H
#define KY_SQL_SQL_REPORT_H

#include "analysis/reports/report.h"
#include "sql/sql.h"

struct ky_sql_report;

/*
 * @path names the report; @text: the file. @parameters: instead of those of the file. All are copied; @sql is borrowed.
 * KYMO_E_INVALID: a statement or a line at the head makes no sense.
 */
int ky_sql_report_new(struct ky_sql *sql, const char *path, const char *text,
		      const struct ky_sql_parameter *parameters, size_t n,
		      struct ky_sql_report **own, struct kymo_error *err);
void ky_sql_report_free(struct ky_sql_report *own); /* NULL is allowed */
const struct ky_report *ky_sql_report(const struct ky_sql_report *own);
/* Why it failed while it ran; its code is 0: it did not. */
const struct kymo_error *ky_sql_report_error(const struct ky_sql_report *own);
/*
 * For an engine that is not that of traces: a report without tables, and the values of its parameters. Free *@own in any case.
 * KYMO_E_INVALID: a line at the head makes no sense.
 */
int ky_sql_report_new_empty(const char *path, const char *text,
			    const struct ky_sql_parameter *parameters, size_t n,
			    struct ky_sql_report **own, struct kymo_error *err);
/* Gives :begin and :end their values. */
int ky_sql_report_set_range(struct ky_sql_report *own, int64_t begin_ns, int64_t end_ns,
			    struct kymo_error *err);
/* Of a name that comes again, the last one counts. Valid until the next change of @own. */
const struct ky_sql_parameter *ky_sql_report_parameters(const struct ky_sql_report *own, size_t *n);
/*
 * Makes a table of @result of each statement's rows that come into the sink:
 *
 *	ky_sql_report_fill_begin(&fill, err);
 *	sink = ky_sql_report_sink(&fill);	then the engine runs the statements
 *	ky_sql_report_fill_end(&fill, err);	classes, order, limit
 *
 * @result needs @own, and is to be freed after a failure, too.
 */
struct ky_sql_report_fill {
	struct ky_sql_report *own;
	const struct ky_report_options *options; /* order, limit, tables */
	struct ky_report_result *result;
	uint64_t bytes; /* own */
};
int ky_sql_report_fill_begin(struct ky_sql_report_fill *fill, struct kymo_error *err);
struct ky_sql_sink ky_sql_report_sink(struct ky_sql_report_fill *fill);
int ky_sql_report_fill_end(struct ky_sql_report_fill *fill, struct kymo_error *err);
/* The title in a file's text, for lists; "": it has none. The caller frees it; NULL: out of memory. */
char *ky_sql_report_title(const char *text);

#endif
