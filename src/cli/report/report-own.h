/* SPDX-License-Identifier: MIT */
/* Reports of the user's own, for kymo report: a file of SQL. */
#ifndef KY_CLI_REPORT_REPORT_OWN_H
#define KY_CLI_REPORT_REPORT_OWN_H

#include "base/strbuf.h"
#include "cli/options/options.h"
#include "sql/sql-report.h"

struct ky_own_report {
	struct ky_sql *sql;
	struct ky_sql_report *report;
};

/* Is @name a file with a report? */
bool ky_own_report_is(const char *name);
/* A file of SQL, and values of its parameters. */
struct ky_own_file {
	struct ky_strbuf text;
	struct ky_sql_parameter *parameters;
	size_t n;
	char **copies; /* own */
};

/* @parameters: "NAME=VALUE". Free it in any case. */
int ky_own_file_read(struct ky_own_file *file, const char *path,
		     const struct ky_text_list *parameters, struct kymo_error *err);
void ky_own_file_fini(struct ky_own_file *file);
/* @parameters: as above. @space_bytes: of its temporary files. @set must outlive it. Close it in any case. */
int ky_own_report_open(struct ky_own_report *own, const char *path,
		       const struct ky_text_list *parameters, uint64_t space_bytes,
		       const struct ky_trace_set *set, struct kymo_error *err);
void ky_own_report_close(struct ky_own_report *own);

#endif
