/* SPDX-License-Identifier: MIT */
/*
 * SQL over traces, from a program: the tables and functions of kymo query (docs/sql.md). cc program.c -lkymo-query
 *
 *	const char *paths[] = {"my-trace"};
 *	struct kymo_query *query;
 *	struct kymo_statement *statement;
 *	struct kymo_error err;
 *
 *	ret = kymo_query_open(paths, 1, &query, &err);
 *	ret = kymo_query_prepare(query, "SELECT name, duration FROM syscall WHERE tid = :tid", &statement, &err);
 *	ret = kymo_statement_bind_int64(statement, "tid", 4711, &err);
 *	while ((ret = kymo_statement_step(statement, &err)) > 0)
 *		printf("%s %" PRId64 "\n", kymo_statement_text(statement, 0, NULL), kymo_statement_int64(statement, 1));
 *	kymo_statement_free(statement);
 *	kymo_query_close(query);
 *
 * Nothing is imported: a statement reads the traces while it runs. It can read traces and nothing else. The library loads SQLite
 * (libsqlite3.so.0) with the first kymo_query_open().
 *
 * Memory: the library copies everything that it is given. Texts that it returns belong to the statement: names of columns until
 * kymo_statement_free(), values until the next kymo_statement_step(), _reset() or _free() of that statement. The program frees
 * nothing but statements and queries, each once. Statements are to be freed before their query.
 *
 * Damage: a statement returns all rows before it, and then the error.
 *
 * Threads: one at a time per query, with all its statements. Queries are independent of each other.
 */
#ifndef KYMO_QUERY_H
#define KYMO_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_QUERY_API KYMO_API

struct kymo_query;
struct kymo_statement;

/*
 * Open every trace at or below each of @paths, as kymo_reader_open() does.
 *
 * Returns 0 and *query; on failure *query is NULL and the status is one of kymo_reader_open(), or KYMO_E_UNSUPPORTED: SQLite is
 * not installed.
 */
KYMO_QUERY_API int kymo_query_open(const char *const *paths, size_t n_paths,
				   struct kymo_query **query, struct kymo_error *err);
KYMO_QUERY_API void kymo_query_close(struct kymo_query *query); /* NULL is allowed */

/*
 * Prepare the statement @sql, which is one. KYMO_E_INVALID: it makes no sense (@err has line and column), or there is more than one.
 */
KYMO_QUERY_API int kymo_query_prepare(struct kymo_query *query, const char *sql,
				      struct kymo_statement **statement, struct kymo_error *err);
KYMO_QUERY_API void kymo_statement_free(struct kymo_statement *statement); /* NULL is allowed */

/*
 * The value of the parameter :NAME, for this and all later runs. A statement that has begun starts again. Parameters without a value are
 * NULL. KYMO_E_NOT_FOUND: there is no such parameter.
 */
KYMO_QUERY_API int kymo_statement_bind_int64(struct kymo_statement *statement, const char *name,
					     int64_t value, struct kymo_error *err);
KYMO_QUERY_API int kymo_statement_bind_double(struct kymo_statement *statement, const char *name,
					      double value, struct kymo_error *err);
KYMO_QUERY_API int kymo_statement_bind_text(struct kymo_statement *statement, const char *name,
					    const char *text, struct kymo_error *err);
KYMO_QUERY_API int kymo_statement_bind_null(struct kymo_statement *statement, const char *name,
					    struct kymo_error *err);

/*
 * The next row. Returns 1; 0 after the last one; or a status: KYMO_E_FORMAT, KYMO_E_IO of a damaged trace, KYMO_E_MEMORY,
 * KYMO_E_INVALID.
 */
KYMO_QUERY_API int kymo_statement_step(struct kymo_statement *statement, struct kymo_error *err);
/* Begins again, with the same values of parameters. */
KYMO_QUERY_API void kymo_statement_reset(struct kymo_statement *statement);

enum kymo_column_type {
	KYMO_COLUMN_NULL,
	KYMO_COLUMN_INTEGER,
	KYMO_COLUMN_REAL,
	KYMO_COLUMN_TEXT,
	KYMO_COLUMN_BLOB,
};

/* Columns count from 0. */
KYMO_QUERY_API size_t kymo_statement_n_columns(const struct kymo_statement *statement);
/* NULL: there is no such column. */
KYMO_QUERY_API const char *kymo_statement_column_name(const struct kymo_statement *statement,
						      size_t column);
/* Of the row at hand: a column of one statement may have values of several types. */
KYMO_QUERY_API enum kymo_column_type kymo_statement_type(struct kymo_statement *statement,
							 size_t column);
/* 0 for NULL, for texts, and beyond the last column. */
KYMO_QUERY_API int64_t kymo_statement_int64(struct kymo_statement *statement, size_t column);
KYMO_QUERY_API double kymo_statement_double(struct kymo_statement *statement, size_t column);
/* A text or a blob, with a NUL behind it that does not count in *@len (may be NULL). NULL: of other types. */
KYMO_QUERY_API const char *kymo_statement_text(struct kymo_statement *statement, size_t column,
					       size_t *len);

#ifdef __cplusplus
}
#endif

#endif
