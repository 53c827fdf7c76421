/* SPDX-License-Identifier: MIT */
/* The rows of statements on the standard output, for kymo query and its shell. */
#ifndef KY_CLI_QUERY_QUERY_OUTPUT_H
#define KY_CLI_QUERY_QUERY_OUTPUT_H

#include "base/strbuf.h"
#include "sql/sql.h"

/* How much room statements have, for commands that run them: a number, KY_SQL_TEMPORARY_BYTES by default. */
#define KY_QUERY_SPACE_OPTION_DEF(type, member)                                                                     \
	{                                                                                                           \
		.name = "query-space", .kind = KY_OPTION_SIZE, .arg = "SIZE",                                       \
		.help = "The largest size of a statement's temporary files in $TMPDIR or /var/tmp, where it sorts " \
			"and groups its rows. Default: 8G.",                                                        \
		.at = offsetof(type, member)                                                                        \
	}

enum ky_query_form {
	KY_QUERY_TABLE,
	KY_QUERY_JSON,
	KY_QUERY_CSV,
	KY_QUERY_CSV_RAW, /* texts that spreadsheets take for formulas are as they are */
};

/* Runs the statements of @text, and writes their rows. As ky_sql_run(). */
int ky_query_run(struct ky_sql *sql, enum ky_query_form form,
		 const struct ky_sql_parameter *parameters, size_t n, const char *text,
		 struct kymo_error *err);
struct ky_fleet;

/* The same, by a store of many machines (fleet.h). @text NULL: its tables and columns. */
int ky_query_run_fleet(struct ky_fleet *store, enum ky_query_form form,
		       const struct ky_sql_parameter *parameters, size_t n, const char *text,
		       struct kymo_error *err);
/* The statement itself, or the content of a file *.sql. 0 or a status with @err. */
int ky_query_read_statement(const char *operand, struct ky_strbuf *text, struct kymo_error *err);
/* Tables with their columns and units; @only: that one. False: the traces have no such table. */
bool ky_query_put_schema(const struct ky_sql *sql, const char *only);

#endif
