/* SPDX-License-Identifier: MIT */
#include "sql/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "sql/sql-pass.h"

/* What SQLite may use for sorting and grouping. */
#define HEAP_MAX_BYTES ((sqlite3_int64)2 << 30)

/* ---- functions ------------------------------------------------------------------------ */

/* time_text(ns): "2026-11-26 18:24:53.123456789", UTC. */
static void sql_time_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t ns = ky_sqlite.sqlite3_value_int64(argv[0]);
	time_t seconds = (time_t)(ns / 1000000000 - (ns % 1000000000 < 0));
	char text[64];
	struct tm tm;
	size_t len;

	(void)argc;
	if (ky_sqlite.sqlite3_value_type(argv[0]) == SQLITE_NULL || !gmtime_r(&seconds, &tm)) {
		ky_sqlite.sqlite3_result_null(context);
		return;
	}
	len = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%09lld",
		 (long long)(ns - (int64_t)seconds * 1000000000));
	ky_sqlite.sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* duration_text(ns): "1.250 ms". */
static void sql_duration_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t ns = ky_sqlite.sqlite3_value_int64(argv[0]);
	char text[40] = "-";

	(void)argc;
	if (ky_sqlite.sqlite3_value_type(argv[0]) == SQLITE_NULL) {
		ky_sqlite.sqlite3_result_null(context);
		return;
	}
	ky_format_duration(text + (ns < 0), ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
	ky_sqlite.sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

/* overlap(begin, end, begin2, end2): how many ns both intervals have in common; 0: none. */
static void sql_overlap(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t at[4];

	(void)argc;
	for (int i = 0; i < 4; i++)
		at[i] = ky_sqlite.sqlite3_value_int64(argv[i]);
	at[0] = at[0] > at[2] ? at[0] : at[2];
	at[1] = at[1] < at[3] ? at[1] : at[3];
	ky_sqlite.sqlite3_result_int64(context, at[1] > at[0] ? at[1] - at[0] : 0);
}

static const struct {
	const char *name;
	int n;
	void (*call)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {
	{"time_text", 1, sql_time_text},
	{"duration_text", 1, sql_duration_text},
	{"overlap", 4, sql_overlap},
};

/* ---- opening -------------------------------------------------------------------------- */

/* Statements read; they attach no files, load no code and change nothing outside of this database. */
static int sql_authorize(void *data, int action, const char *first, const char *second,
			 const char *third, const char *fourth)
{
	(void)data;
	(void)second;
	(void)third;
	(void)fourth;
	if (action == SQLITE_ATTACH || action == SQLITE_DETACH)
		return SQLITE_DENY;
	if (action == SQLITE_PRAGMA)
		return first && (strcmp(first, "table_list") == 0 ||
				 strcmp(first, "table_info") == 0)
			       ? SQLITE_OK
			       : SQLITE_DENY;
	if (action == SQLITE_FUNCTION && second && strcmp(second, "load_extension") == 0)
		return SQLITE_DENY;
	return SQLITE_OK;
}

static int sql_prepare(struct ky_sql *sql)
{
	int ret = ky_sqlite.sqlite3_open_v2(":memory:", &sql->db,
					    SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && ret == SQLITE_OK; i++)
		ret = ky_sqlite.sqlite3_create_function_v2(sql->db, functions[i].name,
							   functions[i].n,
							   SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
							   functions[i].call, NULL, NULL, NULL);
	ky_vec_foreach(&sql->tables, table) {
		if (ret == SQLITE_OK)
			ret = ky_sqlite.sqlite3_create_module_v2(
				sql->db, (*table)->name,
				(*table)->source ? &ky_sql_pass_module : &ky_sql_event_module,
				*table, NULL);
	}
	if (ret != SQLITE_OK)
		return KYMO_E_MEMORY;
	(void)ky_sqlite.sqlite3_set_authorizer(sql->db, sql_authorize, NULL);
	(void)ky_sqlite.sqlite3_hard_heap_limit64(HEAP_MAX_BYTES);
	return KYMO_OK;
}

int ky_sql_open(const struct ky_trace_set *set, struct ky_sql **out, struct kymo_error *err)
{
	struct ky_sql *sql;
	int ret = ky_sqlite_load(err);

	*out = NULL;
	if (ret < 0)
		return ret;
	sql = calloc(1, sizeof(*sql));
	if (!sql)
		return ky_error_nomem(err);
	sql->set = set;
	ky_arena_init(&sql->arena);
	ky_names_init(&sql->by_name);
	ky_names_init(&sql->taken);
	ky_map_init(&sql->hosts);
	ky_map_init(&sql->tids);
	if (ky_sql_find_tables(sql) < 0 || sql_prepare(sql) < 0) {
		ky_sql_close(sql);
		return ky_error_nomem(err);
	}
	*out = sql;
	return KYMO_OK;
}

void ky_sql_close(struct ky_sql *sql)
{
	if (!sql)
		return;
	(void)ky_sqlite.sqlite3_close_v2(sql->db);
	ky_vec_foreach(&sql->tables, table) {
		ky_vec_fini(&(*table)->columns);
		ky_vec_fini(&(*table)->classes);
		ky_map_fini(&(*table)->by_class);
	}
	ky_vec_fini(&sql->tables);
	ky_names_fini(&sql->by_name);
	ky_names_fini(&sql->taken);
	ky_map_fini(&sql->hosts);
	ky_map_fini(&sql->tids);
	ky_arena_fini(&sql->arena);
	free(sql);
}

/* ---- statements ----------------------------------------------------------------------- */

static int sql_invalid(struct ky_sql *sql, const char *text, const char *part,
		       struct kymo_error *err)
{
	int offset = ky_sqlite.sqlite3_error_offset(sql->db);

	ky_error_set(err, KYMO_E_INVALID, "%s", ky_sqlite.sqlite3_errmsg(sql->db));
	ky_error_input(err, "query");
	if (offset >= 0) {
		uint32_t line = 1, column = 1;

		for (const char *at = text; at < part + offset && *at; at++) {
			column = *at == '\n' ? 1 : column + 1;
			line += *at == '\n';
		}
		ky_error_line(err, line, column);
	}
	return KYMO_E_INVALID;
}

static int sql_bind(struct ky_sql *sql, sqlite3_stmt *statement,
		    const struct ky_sql_parameter *parameters, size_t n, struct kymo_error *err)
{
	int wanted = ky_sqlite.sqlite3_bind_parameter_count(statement);

	(void)sql;
	for (int i = 1; i <= wanted; i++) {
		const char *name = ky_sqlite.sqlite3_bind_parameter_name(statement, i);
		const char *value = NULL;
		char *end;
		long long number;

		for (size_t p = 0; p < n && name; p++)
			if (strcmp(parameters[p].name, name + 1) == 0)
				value = parameters[p].value;
		if (!value)
			return ky_error_set(err, KYMO_E_INVALID,
					    "the statement's parameter %s has no value",
					    name ? name : "?");
		number = strtoll(value, &end, 0);
		if (*value && !*end)
			(void)ky_sqlite.sqlite3_bind_int64(statement, i, number);
		else
			(void)ky_sqlite.sqlite3_bind_text(statement, i, value, -1,
							  SQLITE_TRANSIENT);
	}
	return KYMO_OK;
}

static void sql_value(sqlite3_stmt *statement, int i, struct ky_sql_value *value)
{
	*value = (struct ky_sql_value){.type = KY_SQL_NULL};
	switch (ky_sqlite.sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		value->type = KY_SQL_INTEGER;
		value->integer = ky_sqlite.sqlite3_column_int64(statement, i);
		break;
	case SQLITE_FLOAT:
		value->type = KY_SQL_REAL;
		value->real = ky_sqlite.sqlite3_column_double(statement, i);
		break;
	case SQLITE_TEXT:
		value->type = KY_SQL_TEXT;
		value->text = (const char *)ky_sqlite.sqlite3_column_text(statement, i);
		value->len = (size_t)ky_sqlite.sqlite3_column_bytes(statement, i);
		break;
	case SQLITE_BLOB:
		value->type = KY_SQL_BLOB;
		value->text = ky_sqlite.sqlite3_column_blob(statement, i);
		value->len = (size_t)ky_sqlite.sqlite3_column_bytes(statement, i);
		break;
	default:
		break;
	}
}

static int sql_failed(struct ky_sql *sql, int code, struct kymo_error *err)
{
	if (sql->why.code) {
		if (err)
			*err = sql->why;
		return sql->why.code;
	}
	if (code == SQLITE_NOMEM)
		return ky_error_set(err, KYMO_E_MEMORY,
				    "the statement needs more memory than 2 GiB; try: a WHERE "
				    "with bounds of time, or fewer groups");
	ky_error_set(err, KYMO_E_INVALID, "%s", ky_sqlite.sqlite3_errmsg(sql->db));
	ky_error_input(err, "query");
	return KYMO_E_INVALID;
}

static int sql_rows(struct ky_sql *sql, sqlite3_stmt *statement, const struct ky_sql_sink *sink,
		    struct kymo_error *err)
{
	int n = ky_sqlite.sqlite3_column_count(statement), code, ret = KYMO_OK;
	const char **names = calloc((size_t)n + 1, sizeof(*names));
	struct ky_sql_value *values = calloc((size_t)n + 1, sizeof(*values));

	if (!names || !values)
		ret = ky_error_nomem(err);
	for (int i = 0; i < n && !ret; i++)
		names[i] = ky_sqlite.sqlite3_column_name(statement, i);
	if (!ret && n)
		ret = sink->columns(sink->data, names, (size_t)n, err);
	while (!ret && (code = ky_sqlite.sqlite3_step(statement)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++)
			sql_value(statement, i, &values[i]);
		ret = sink->row(sink->data, values, (size_t)n, err);
	}
	if (!ret && code != SQLITE_DONE)
		ret = sql_failed(sql, code, err);
	free(names);
	free(values);
	return ret;
}

int ky_sql_run(struct ky_sql *sql, const char *text, const struct ky_sql_parameter *parameters,
	       size_t n_parameters, const struct ky_sql_sink *sink, struct kymo_error *err)
{
	const char *at = text, *rest;
	sqlite3_stmt *statement;
	int ret = KYMO_OK;

	memset(&sql->why, 0, sizeof(sql->why));
	while (*at && !ret) {
		if (ky_sqlite.sqlite3_prepare_v2(sql->db, at, -1, &statement, &rest) != SQLITE_OK)
			return sql_invalid(sql, text, at, err);
		if (statement) {
			ret = sql_bind(sql, statement, parameters, n_parameters, err);
			if (!ret)
				ret = sql_rows(sql, statement, sink, err);
			(void)ky_sqlite.sqlite3_finalize(statement);
		}
		at = rest;
	}
	return ret;
}
