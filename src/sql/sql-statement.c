/* SPDX-License-Identifier: MIT */
/* Statements: prepared, with values for their parameters, row by row. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text.h"
#include "sql/sql-tables.h"

struct ky_sql_statement {
	struct ky_sql *sql;
	sqlite3_stmt *own;
	bool has_begun;
};

/* ---- preparing ------------------------------------------------------------------------ */

static int sql_statement_invalid(struct ky_sql *sql, const char *text, struct kymo_error *err)
{
	int offset = ky_sqlite.sqlite3_error_offset(sql->db);

	ky_error_set(err, KYMO_E_INVALID, "%s", ky_sqlite.sqlite3_errmsg(sql->db));
	ky_error_input(err, "query");
	if (offset >= 0) {
		uint32_t line = 1, column = 1;

		for (const char *at = text; at < text + offset && *at; at++) {
			column = *at == '\n' ? 1 : column + 1;
			line += *at == '\n';
		}
		ky_error_line(err, line, column);
	}
	return KYMO_E_INVALID;
}

int ky_sql_prepare(struct ky_sql *sql, const char *text, const char **rest,
		   struct ky_sql_statement **out, struct kymo_error *err)
{
	struct ky_sql_statement *statement;
	const char *tail = text;
	sqlite3_stmt *own;

	*out = NULL;
	if (rest)
		*rest = text;
	if (ky_sql_know_tables(sql, text) < 0)
		return ky_error_nomem(err);
	if (ky_sqlite.sqlite3_prepare_v2(sql->db, text, -1, &own, &tail) != SQLITE_OK)
		return sql_statement_invalid(sql, text, err);
	if (rest)
		*rest = tail;
	if (!own)
		return KYMO_OK;
	statement = calloc(1, sizeof(*statement));
	if (!statement) {
		(void)ky_sqlite.sqlite3_finalize(own);
		return ky_error_nomem(err);
	}
	statement->sql = sql;
	statement->own = own;
	*out = statement;
	return KYMO_OK;
}

void ky_sql_finish(struct ky_sql_statement *statement)
{
	if (!statement)
		return;
	(void)ky_sqlite.sqlite3_finalize(statement->own);
	free(statement);
}

size_t ky_sql_n_columns(const struct ky_sql_statement *statement)
{
	return (size_t)ky_sqlite.sqlite3_column_count(statement->own);
}

const char *ky_sql_column_name(const struct ky_sql_statement *statement, size_t i)
{
	return i < ky_sql_n_columns(statement)
		       ? ky_sqlite.sqlite3_column_name(statement->own, (int)i)
		       : NULL;
}

/* ---- parameters ----------------------------------------------------------------------- */

const char *ky_sql_parameter_name(const struct ky_sql_statement *statement, size_t i)
{
	const char *name;

	if (i >= (size_t)ky_sqlite.sqlite3_bind_parameter_count(statement->own))
		return NULL;
	name = ky_sqlite.sqlite3_bind_parameter_name(statement->own, (int)i + 1);
	return name && *name ? name + 1 : "";
}

/* The number of a parameter, from 1; 0: the statement has no such parameter. */
static int sql_statement_parameter(const struct ky_sql_statement *statement, const char *name,
				   size_t i)
{
	const char *own;

	for (size_t at = 0; (own = ky_sql_parameter_name(statement, at)) != NULL; at++)
		if (name ? strcmp(own, name) == 0 : at == i)
			return (int)at + 1;
	return 0;
}

static int sql_statement_set(sqlite3_stmt *own, int number, const struct ky_sql_value *value)
{
	switch (value->type) {
	case KY_SQL_INTEGER:
		return ky_sqlite.sqlite3_bind_int64(own, number, value->integer);
	case KY_SQL_REAL:
		return ky_sqlite.sqlite3_bind_double(own, number, value->real);
	case KY_SQL_TEXT:
		return ky_sqlite.sqlite3_bind_text(own, number, value->text, (int)value->len,
						   SQLITE_TRANSIENT);
	case KY_SQL_BLOB:
		return ky_sqlite.sqlite3_bind_blob(own, number, value->text, (int)value->len,
						   SQLITE_TRANSIENT);
	default:
		return ky_sqlite.sqlite3_bind_null(own, number);
	}
}

int ky_sql_bind(struct ky_sql_statement *statement, const char *name, size_t i,
		const struct ky_sql_value *value, struct kymo_error *err)
{
	int number = sql_statement_parameter(statement, name, i);

	if (!number)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "the statement has no parameter %s%s",
				    name ? ":" : "of that number", name ? name : "");
	if (value->len > INT32_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a value is longer than 2 GiB");
	ky_sql_reset(statement);
	return sql_statement_set(statement->own, number, value) == SQLITE_OK ? KYMO_OK
									     : ky_error_nomem(err);
}

struct ky_sql_value ky_sql_parameter_value(const char *text)
{
	struct ky_sql_value value = {.type = KY_SQL_TEXT, .text = text, .len = strlen(text)};
	const char *digits = text + (*text == '-');
	bool is_hex = strncasecmp(digits, "0x", 2) == 0;
	char *end;
	long long number;
	double real;

	if (!isdigit((unsigned char)*digits))
		return value;
	errno = 0;
	number = strtoll(text, &end, is_hex ? 16 : 10);
	if (!*end && !errno)
		return (struct ky_sql_value){.type = KY_SQL_INTEGER, .integer = number};
	real = strtod(text, &end);
	if (*end || is_hex || !strpbrk(text, ".eE"))
		return value;
	return (struct ky_sql_value){.type = KY_SQL_REAL, .real = real};
}

int ky_sql_bind_all(struct ky_sql_statement *statement, const struct ky_sql_parameter *parameters,
		    size_t n, struct kymo_error *err)
{
	const char *name;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && (name = ky_sql_parameter_name(statement, i)) != NULL; i++) {
		const char *text = NULL;
		struct ky_sql_value value;

		for (size_t p = 0; p < n; p++)
			if (strcmp(parameters[p].name, name) == 0)
				text = parameters[p].value;
		if (!text)
			return ky_error_set(err, KYMO_E_INVALID,
					    "the statement's parameter :%s has no value",
					    *name ? name : "?");
		value = ky_sql_parameter_value(text);
		ret = ky_sql_bind(statement, NULL, i, &value, err);
	}
	return ret;
}

/* ---- rows ----------------------------------------------------------------------------- */

/* Temporary files are the only ones that statements write. */
static int sql_statement_no_room(struct ky_sql *sql, int code, struct kymo_error *err)
{
	char size[32];

	if (!sql->temporary.is_full) {
		ky_error_set(err, KYMO_E_IO,
			     "cannot write what the statement sorts to temporary files: %s",
			     code == SQLITE_FULL ? "no space is left"
						 : ky_sqlite.sqlite3_errmsg(sql->db));
		ky_error_hint(err, "choose another directory with TMPDIR");
		return KYMO_E_IO;
	}
	ky_error_set(err, KYMO_E_LIMIT, "the statement sorts or groups more than %s of rows",
		     ky_format_bytes(size, sql->temporary.max_bytes));
	ky_error_input(err, "query space");
	ky_error_hint(
		err, "give a larger size, or need less: bounds of time in WHERE, or fewer columns");
	return KYMO_E_LIMIT;
}

static int sql_statement_failed(struct ky_sql *sql, int code, struct kymo_error *err)
{
	if (sql->why.code) {
		if (err)
			*err = sql->why;
		return sql->why.code;
	}
	if (code == SQLITE_INTERRUPT)
		return ky_error_set(err, KYMO_E_INTERRUPTED, "the statement was stopped");
	if (code == SQLITE_NOMEM)
		return ky_error_set(err, KYMO_E_MEMORY,
				    "the statement needs more memory than it may use; try: a WHERE "
				    "with bounds of time, or fewer groups");
	if (code == SQLITE_FULL || code == SQLITE_IOERR)
		return sql_statement_no_room(sql, code, err);
	ky_error_set(err, KYMO_E_INVALID, "%s", ky_sqlite.sqlite3_errmsg(sql->db));
	ky_error_input(err, "query");
	return KYMO_E_INVALID;
}

int ky_sql_step(struct ky_sql_statement *statement, struct kymo_error *err)
{
	struct ky_sql *sql = statement->sql;
	int code;

	if (!statement->has_begun)
		memset(&sql->why, 0, sizeof(sql->why));
	sql->temporary.is_full = false;
	statement->has_begun = true;
	code = ky_sqlite.sqlite3_step(statement->own);
	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : sql_statement_failed(sql, code, err);
}

void ky_sql_get(struct ky_sql_statement *statement, size_t column, struct ky_sql_value *value)
{
	sqlite3_stmt *own = statement->own;
	int i = (int)column;

	*value = (struct ky_sql_value){.type = KY_SQL_NULL};
	switch (ky_sqlite.sqlite3_column_type(own, i)) {
	case SQLITE_INTEGER:
		value->type = KY_SQL_INTEGER;
		value->integer = ky_sqlite.sqlite3_column_int64(own, i);
		break;
	case SQLITE_FLOAT:
		value->type = KY_SQL_REAL;
		value->real = ky_sqlite.sqlite3_column_double(own, i);
		break;
	case SQLITE_TEXT:
		value->type = KY_SQL_TEXT;
		value->text = (const char *)ky_sqlite.sqlite3_column_text(own, i);
		value->len = (size_t)ky_sqlite.sqlite3_column_bytes(own, i);
		break;
	case SQLITE_BLOB:
		value->type = KY_SQL_BLOB;
		value->text = ky_sqlite.sqlite3_column_blob(own, i);
		value->len = (size_t)ky_sqlite.sqlite3_column_bytes(own, i);
		break;
	default:
		break;
	}
}

void ky_sql_reset(struct ky_sql_statement *statement)
{
	if (statement->has_begun)
		(void)ky_sqlite.sqlite3_reset(statement->own);
	statement->has_begun = false;
}

bool ky_sql_is_complete(const char *text)
{
	return ky_sqlite.sqlite3_complete(text) != 0;
}

/* ---- all of a text -------------------------------------------------------------------- */

static int sql_statement_rows(struct ky_sql_statement *statement, const struct ky_sql_sink *sink,
			      struct kymo_error *err)
{
	size_t n = ky_sql_n_columns(statement);
	const char **names = calloc(n + 1, sizeof(*names));
	struct ky_sql_value *values = calloc(n + 1, sizeof(*values));
	int ret = KYMO_OK, more = 0;

	if (!names || !values)
		ret = ky_error_nomem(err);
	for (size_t i = 0; i < n && !ret; i++)
		names[i] = ky_sql_column_name(statement, i);
	if (!ret && n)
		ret = sink->columns(sink->data, names, n, err);
	while (!ret && (more = ky_sql_step(statement, err)) > 0) {
		for (size_t i = 0; i < n; i++)
			ky_sql_get(statement, i, &values[i]);
		ret = sink->row(sink->data, values, n, err);
	}
	free(names);
	free(values);
	return ret ? ret : more;
}

/* The place of an error counts from the begin of the whole text. */
static void sql_statement_place(const char *text, const char *at, struct kymo_error *err)
{
	uint32_t lines = 0, columns = 0;

	if (!err || err->code != KYMO_E_INVALID || !err->line)
		return;
	for (; text < at; text++) {
		columns = *text == '\n' ? 0 : columns + 1;
		lines += *text == '\n';
	}
	if (err->line == 1)
		err->column += columns;
	err->line += lines;
}

int ky_sql_run(struct ky_sql *sql, const char *text, const struct ky_sql_parameter *parameters,
	       size_t n_parameters, const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct ky_sql_statement *statement;
	const char *at = text, *rest;
	int ret = KYMO_OK;

	while (*at && !ret) {
		ret = ky_sql_prepare(sql, at, &rest, &statement, err);
		if (ret < 0)
			sql_statement_place(text, at, err);
		if (!ret && statement)
			ret = ky_sql_bind_all(statement, parameters, n_parameters, err);
		if (!ret && statement)
			ret = sql_statement_rows(statement, sink, err);
		ky_sql_finish(statement);
		at = rest;
	}
	return ret;
}
