/* SPDX-License-Identifier: MIT */
/* What the files of a user's own report share. */
#ifndef KY_SQL_SQL_REPORT_PARTS_H
#define KY_SQL_SQL_REPORT_PARTS_H

#include "base/vec.h"
#include "sql/sql-report.h"

#define KY_SQL_REPORT_TABLES_MAX 32

/* What a line "column" says. */
struct ky_sql_report_column {
	const char *name, *help;
	enum ky_cell_class cls;
};

struct ky_sql_report_named {
	const char *name, *text;
};

struct ky_sql_report_table {
	struct ky_table_def def;
	struct ky_column *columns;
	bool *is_declared; /* by column: the file says its class */
	const char *statement;
};

struct ky_sql_report {
	struct ky_report report;
	struct ky_sql *sql;
	struct ky_arena arena;
	const char *title, *about;
	KY_VEC(struct ky_sql_report_column) columns;
	KY_VEC(struct ky_sql_report_named) named; /* tables of the head */
	KY_VEC(struct ky_sql_parameter) parameters;
	KY_VEC(struct ky_sql_report_table) tables;
	const struct ky_table_def *defs[KY_SQL_REPORT_TABLES_MAX + 1];
	struct kymo_error error;
};

/* sql-report-head.c: what the comments at the head of @text say. KYMO_E_INVALID: a line makes no sense. */
int ky_sql_report_read_head(struct ky_sql_report *own, const char *text, struct kymo_error *err);

/* sql-report-rows.c: the next table, with columns @names. @statement may be NULL. KYMO_E_LIMIT: there are too many. */
int ky_sql_report_add_table(struct ky_sql_report *own, const char *const *names, size_t n,
			    const char *statement, struct kymo_error *err);
/* A row of @table, unless it has enough. *@bytes: what its rows take, which has a limit. */
int ky_sql_report_put_row(struct ky_table *table, const struct ky_sql_value *values, size_t n,
			  uint64_t *bytes, struct kymo_error *err);
/* After the last row: columns of which the file says nothing get their classes, and all cells the type of their column. */
void ky_sql_report_fit_table(struct ky_sql_report_table *from, struct ky_table *table);

#endif
