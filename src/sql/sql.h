/* SPDX-License-Identifier: MIT */
/*
 * SQL over traces: SQLite's engine on virtual tables that read the traces while a statement runs. Nothing is imported.
 *
 *	ky_sql_open(&set, &sql, err);
 *	ky_sql_run(sql, "SELECT count(*) FROM sched_switch", &sink, err);
 *	ky_sql_close(sql);
 *
 * Tables: one for each kind of event, and those of sql-tables.h. Only events of the tables in a statement are decoded; bounds of the time and
 * simple comparisons of fields become a part of the reader's selection.
 *
 * Statements come from the user; names and values in traces are foreign text and never become SQL without quotes. A statement can neither write a
 * file nor open another database. Threads: one at a time per object.
 */
#ifndef KY_SQL_SQL_H
#define KY_SQL_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "store/read/trace.h"

struct ky_sql;

enum ky_sql_type {
	KY_SQL_NULL,
	KY_SQL_INTEGER,
	KY_SQL_REAL,
	KY_SQL_TEXT,
	KY_SQL_BLOB,
};

struct ky_sql_value {
	enum ky_sql_type type;
	int64_t integer;
	double real;
	const char *text; /* TEXT, BLOB: valid during the call */
	size_t len;
};

struct ky_sql_sink {
	void *data;
	/* The columns of the next statement's rows. 0 or what ends the run. */
	int (*columns)(void *data, const char *const *names, size_t n, struct kymo_error *err);
	int (*row)(void *data, const struct ky_sql_value *values, size_t n, struct kymo_error *err);
};

/* A parameter ":name" of the statements. */
struct ky_sql_parameter {
	const char *name, *value; /* a value that looks like a number is one */
};

/* A text that looks like a number is one: decimal, or hexadecimal with 0x. An integer of more than 64 bits with a sign stays a text. */
struct ky_sql_value ky_sql_parameter_value(const char *text);

/* @set must outlive it. KYMO_E_UNSUPPORTED: the library is missing; KYMO_E_MEMORY. */
int ky_sql_open(const struct ky_trace_set *set, struct ky_sql **sql, struct kymo_error *err);
/* A data base in the file @path, instead of traces: statements can only read. KYMO_E_NOT_FOUND, KYMO_E_IO. */
int ky_sql_open_file(const char *path, struct ky_sql **sql, struct kymo_error *err);
void ky_sql_close(struct ky_sql *sql); /* NULL is allowed */

/*
 * Runs the statements of @text, one after the other. KYMO_E_INVALID: a statement makes no sense; the errors of reading, of a damaged trace
 * after all rows before the damage; what the sink returned.
 */
int ky_sql_run(struct ky_sql *sql, const char *text, const struct ky_sql_parameter *parameters,
	       size_t n_parameters, const struct ky_sql_sink *sink, struct kymo_error *err);

/* ---- statements, one by one ----------------------------------------------------------------- */

struct ky_sql_statement;

/*
 * The first statement of @text; *@rest: what follows it. *@statement is NULL where only blanks and comments are left. KYMO_E_INVALID: it
 * makes no sense. All statements of a ky_sql are to be finished before it is closed.
 */
int ky_sql_prepare(struct ky_sql *sql, const char *text, const char **rest,
		   struct ky_sql_statement **statement, struct kymo_error *err);
void ky_sql_finish(struct ky_sql_statement *statement); /* NULL is allowed */
size_t ky_sql_n_columns(const struct ky_sql_statement *statement);
/* Valid until the statement is finished. */
const char *ky_sql_column_name(const struct ky_sql_statement *statement, size_t i);
/* The @i-th parameter's name, without ':'; NULL: there are no more. "": it has none. */
const char *ky_sql_parameter_name(const struct ky_sql_statement *statement, size_t i);
/*
 * The value of the parameter @name, or of the @i-th one with @name NULL. KYMO_E_NOT_FOUND: the statement has no such parameter. Texts are copied. A statement that
 * has begun starts again.
 */
int ky_sql_bind(struct ky_sql_statement *statement, const char *name, size_t i,
		const struct ky_sql_value *value, struct kymo_error *err);
/* Parameters of which @parameters has values. KYMO_E_INVALID: one has none. */
int ky_sql_bind_all(struct ky_sql_statement *statement, const struct ky_sql_parameter *parameters,
		    size_t n, struct kymo_error *err);
/* The next row. 1; 0: there are no more; the errors of ky_sql_run(). */
int ky_sql_step(struct ky_sql_statement *statement, struct kymo_error *err);
/* Column @i of the row; texts are valid until the next call on the statement. */
void ky_sql_get(struct ky_sql_statement *statement, size_t i, struct ky_sql_value *value);
/* Begins again, with the same parameters. */
void ky_sql_reset(struct ky_sql_statement *statement);

/* Does @text end with a whole statement? */
bool ky_sql_is_complete(const char *text);

/* ---- limits --------------------------------------------------------------------------------- */

/* Statements end with KYMO_E_INTERRUPTED when @stop says so, which is asked many times a second. NULL: nobody stops them. */
void ky_sql_set_stop(struct ky_sql *sql, bool (*stop)(void *data), void *data);
/* SQLite has no more than that in this process, for sorting and grouping. After ky_sql_open(). */
void ky_sql_limit_memory(uint64_t bytes);
#define KY_SQL_TEMPORARY_BYTES ((uint64_t)8 << 30)
/* The temporary files of this data base, with what statements sort and group, have no more than that together. Default: the above. */
void ky_sql_limit_temporary(struct ky_sql *sql, uint64_t bytes);
/* No text or BLOB of this data base is longer. Functions such as instr() cannot be stopped, and take time in proportion to the square. */
void ky_sql_limit_values(struct ky_sql *sql, uint32_t bytes);

/* ---- tables --------------------------------------------------------------------------------- */

/* Tables and their columns, for people: the @i-th table; false: there are no more. *about: one sentence. */
bool ky_sql_table(const struct ky_sql *sql, size_t i, const char **name, const char **about);
/* What a column of a table is, without traces: of one that Kymo does not know, a field of an event. NULL: the table has no such column. */
const char *ky_sql_about(const char *table, const char *column);
/* The @i-th column of table @table. *type: "INTEGER", "TEXT", ...; *about: what it is, with its unit. */
bool ky_sql_column(const struct ky_sql *sql, size_t table, size_t i, const char **name,
		   const char **type, const char **about);

#endif
