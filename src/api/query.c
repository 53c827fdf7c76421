/* SPDX-License-Identifier: MIT */
/* kymo/query.h: checks arguments, and passes on to sql/sql.h. */
#include <kymo/query.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql.h"
#include "store/read/clocks.h"

struct kymo_query {
	struct ky_trace_set set;
	bool is_open; /* ->set */
	struct ky_sql *sql;
};

struct kymo_statement {
	struct ky_sql_statement *own;
	bool has_row;
};

/* ---- opening ---------------------------------------------------------------------------- */

static int query_open_set(struct kymo_query *query, const char *const *paths, size_t n_paths,
			  struct kymo_error *err)
{
	int ret = ky_trace_set_open(&query->set, paths, n_paths, NULL, err);

	query->is_open = ret == KYMO_OK;
	if (!ret)
		ret = ky_clocks_correlate(&query->set, err);
	return ret ? ret : ky_sql_open(&query->set, &query->sql, err);
}

int kymo_query_open(const char *const *paths, size_t n_paths, struct kymo_query **out,
		    struct kymo_error *err)
{
	struct kymo_query *query;
	int ret;

	if (!out)
		return ky_error_set(err, KYMO_E_INVALID, "no place for the query");
	*out = NULL;
	if (!paths || !n_paths)
		return ky_error_set(err, KYMO_E_INVALID, "no path of a trace");
	for (size_t i = 0; i < n_paths; i++)
		if (!paths[i])
			return ky_error_set(err, KYMO_E_INVALID, "a path is NULL");
	query = calloc(1, sizeof(*query));
	if (!query)
		return ky_error_nomem(err);
	ret = query_open_set(query, paths, n_paths, err);
	if (ret < 0) {
		kymo_query_close(query);
		return ret;
	}
	*out = query;
	return KYMO_OK;
}

void kymo_query_close(struct kymo_query *query)
{
	if (!query)
		return;
	ky_sql_close(query->sql);
	if (query->is_open)
		ky_trace_set_close(&query->set);
	free(query);
}

/* ---- statements ------------------------------------------------------------------------- */

/* Is there more than blanks, comments and semicolons in @rest? */
static int query_check_rest(struct kymo_query *query, const char *rest, struct kymo_error *err)
{
	struct ky_sql_statement *more;
	int ret = KYMO_OK;

	while (*rest && !ret) {
		ret = ky_sql_prepare(query->sql, rest, &rest, &more, err);
		if (more)
			ret = ky_error_set(err, KYMO_E_INVALID, "there is more than one statement");
		ky_sql_finish(more);
	}
	return ret;
}

int kymo_query_prepare(struct kymo_query *query, const char *sql, struct kymo_statement **out,
		       struct kymo_error *err)
{
	struct ky_sql_statement *own = NULL;
	const char *rest;
	int ret;

	if (!out)
		return ky_error_set(err, KYMO_E_INVALID, "no place for the statement");
	*out = NULL;
	if (!query || !sql)
		return ky_error_set(err, KYMO_E_INVALID, "no query, or no statement");
	ret = ky_sql_prepare(query->sql, sql, &rest, &own, err);
	if (!ret && !own)
		ret = ky_error_set(err, KYMO_E_INVALID, "the statement is empty");
	if (!ret)
		ret = query_check_rest(query, rest, err);
	if (!ret)
		*out = calloc(1, sizeof(**out));
	if (!ret && !*out)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		ky_sql_finish(own);
		return ret;
	}
	(*out)->own = own;
	return KYMO_OK;
}

void kymo_statement_free(struct kymo_statement *statement)
{
	if (!statement)
		return;
	ky_sql_finish(statement->own);
	free(statement);
}

/* ---- parameters ------------------------------------------------------------------------- */

static int query_bind(struct kymo_statement *statement, const char *name,
		      const struct ky_sql_value *value, struct kymo_error *err)
{
	if (!statement || !name)
		return ky_error_set(err, KYMO_E_INVALID, "no statement, or no name");
	statement->has_row = false;
	return ky_sql_bind(statement->own, name, 0, value, err);
}

int kymo_statement_bind_int64(struct kymo_statement *statement, const char *name, int64_t value,
			      struct kymo_error *err)
{
	const struct ky_sql_value own = {.type = KY_SQL_INTEGER, .integer = value};

	return query_bind(statement, name, &own, err);
}

int kymo_statement_bind_double(struct kymo_statement *statement, const char *name, double value,
			       struct kymo_error *err)
{
	const struct ky_sql_value own = {.type = KY_SQL_REAL, .real = value};

	return query_bind(statement, name, &own, err);
}

int kymo_statement_bind_text(struct kymo_statement *statement, const char *name, const char *text,
			     struct kymo_error *err)
{
	const struct ky_sql_value own = {
		.type = KY_SQL_TEXT, .text = text, .len = text ? strlen(text) : 0};

	return text ? query_bind(statement, name, &own, err)
		    : kymo_statement_bind_null(statement, name, err);
}

int kymo_statement_bind_null(struct kymo_statement *statement, const char *name,
			     struct kymo_error *err)
{
	const struct ky_sql_value own = {.type = KY_SQL_NULL};

	return query_bind(statement, name, &own, err);
}

/* ---- rows ------------------------------------------------------------------------------- */

int kymo_statement_step(struct kymo_statement *statement, struct kymo_error *err)
{
	int ret;

	if (!statement)
		return ky_error_set(err, KYMO_E_INVALID, "no statement");
	ret = ky_sql_step(statement->own, err);
	statement->has_row = ret > 0;
	return ret;
}

void kymo_statement_reset(struct kymo_statement *statement)
{
	if (!statement)
		return;
	statement->has_row = false;
	ky_sql_reset(statement->own);
}

size_t kymo_statement_n_columns(const struct kymo_statement *statement)
{
	return statement ? ky_sql_n_columns(statement->own) : 0;
}

const char *kymo_statement_column_name(const struct kymo_statement *statement, size_t column)
{
	return statement ? ky_sql_column_name(statement->own, column) : NULL;
}

static struct ky_sql_value query_value(struct kymo_statement *statement, size_t column)
{
	struct ky_sql_value value = {.type = KY_SQL_NULL};

	if (statement && statement->has_row && column < ky_sql_n_columns(statement->own))
		ky_sql_get(statement->own, column, &value);
	return value;
}

_Static_assert((int)KYMO_COLUMN_NULL == (int)KY_SQL_NULL, "types");
_Static_assert((int)KYMO_COLUMN_REAL == (int)KY_SQL_REAL, "types");
_Static_assert((int)KYMO_COLUMN_BLOB == (int)KY_SQL_BLOB, "types");

enum kymo_column_type kymo_statement_type(struct kymo_statement *statement, size_t column)
{
	return (enum kymo_column_type)query_value(statement, column).type;
}

int64_t kymo_statement_int64(struct kymo_statement *statement, size_t column)
{
	const struct ky_sql_value value = query_value(statement, column);

	if (value.type != KY_SQL_REAL)
		return value.integer;
	return value.real >= 9.2e18    ? INT64_MAX
	       : value.real <= -9.2e18 ? INT64_MIN
				       : (int64_t)value.real;
}

double kymo_statement_double(struct kymo_statement *statement, size_t column)
{
	const struct ky_sql_value value = query_value(statement, column);

	return value.type == KY_SQL_INTEGER ? (double)value.integer : value.real;
}

const char *kymo_statement_text(struct kymo_statement *statement, size_t column, size_t *len)
{
	const struct ky_sql_value value = query_value(statement, column);

	if (len)
		*len = value.len;
	if (value.type != KY_SQL_TEXT && value.type != KY_SQL_BLOB)
		return NULL;
	return value.text ? value.text : "";
}
