/* SPDX-License-Identifier: MIT */
#include "sql/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "sql/sql-pass.h"

/* Of SQLite's machine, between two looks at the clock. */
#define STOP_STEPS 10000

/* 64 MiB of rows in memory, of those that a statement sorts. */
#define CACHE_SIZE "PRAGMA cache_size = -65536"

/* Of a text in a row. */
#define VALUE_MAX_BYTES (256 << 20)

/* ---- functions ------------------------------------------------------------------------ */

/* time_text(ns): "2026-11-26 18:24:53.123456789", UTC. */
static void sql_time_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t ns = ky_sqlite.sqlite3_value_int64(argv[0]);
	bool is_before = ns % 1000000000 < 0; /* the second began earlier */
	time_t seconds = (time_t)(ns / 1000000000 - is_before);
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
		 (long long)(ns % 1000000000 + (is_before ? 1000000000 : 0)));
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

/* overlap(begin, end, begin2, end2): how many ns both intervals have in common; 0: none. NULL: one of the times is unknown. */
static void sql_overlap(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t at[4], both;

	(void)argc;
	for (int i = 0; i < 4; i++) {
		if (ky_sqlite.sqlite3_value_type(argv[i]) == SQLITE_NULL) {
			ky_sqlite.sqlite3_result_null(context);
			return;
		}
		at[i] = ky_sqlite.sqlite3_value_int64(argv[i]);
	}
	at[0] = at[0] > at[2] ? at[0] : at[2];
	at[1] = at[1] < at[3] ? at[1] : at[3];
	if (at[1] <= at[0])
		both = 0;
	else if (__builtin_sub_overflow(at[1], at[0], &both))
		both = INT64_MAX;
	ky_sqlite.sqlite3_result_int64(context, both);
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

/*
 * Statements read; they attach no files, load no code and change nothing outside of this database. SQLite's other virtual tables are more
 * code that a statement could attack, and of no use here.
 */
static int sql_authorize(void *data, int action, const char *first, const char *second,
			 const char *third, const char *fourth)
{
	(void)data;
	(void)second;
	(void)third;
	(void)fourth;
	if (action == SQLITE_ATTACH || action == SQLITE_DETACH || action == SQLITE_CREATE_VTABLE)
		return SQLITE_DENY;
	if (action == SQLITE_PRAGMA)
		return first && (strcmp(first, "table_list") == 0 ||
				 strcmp(first, "table_info") == 0)
			       ? SQLITE_OK
			       : SQLITE_DENY;
	if (action == SQLITE_FUNCTION && second &&
	    (strcasecmp(second, "load_extension") == 0 ||
	     strcasecmp(second, "fts3_tokenizer") == 0))
		return SQLITE_DENY;
	return SQLITE_OK;
}

static void sql_set(sqlite3 *db, const char *text)
{
	sqlite3_stmt *statement = NULL;

	if (ky_sqlite.sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK)
		(void)ky_sqlite.sqlite3_step(statement);
	(void)ky_sqlite.sqlite3_finalize(statement);
}

/*
 * What a statement sorts, groups and compares beyond the cache goes to files of $TMPDIR or /var/tmp, of mode 0600 and without a name: they end with the
 * statement, also with that of a killed process.
 */
static void sql_confine(sqlite3 *db)
{
	sql_set(db, "PRAGMA temp_store = FILE");
	sql_set(db, CACHE_SIZE);
	(void)ky_sqlite.sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES);
	(void)ky_sqlite.sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	(void)ky_sqlite.sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* A name in double quotes that no column has is an error, and no text. */
	(void)ky_sqlite.sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	(void)ky_sqlite.sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	(void)ky_sqlite.sqlite3_set_authorizer(db, sql_authorize, NULL);
}

/* @path: a file; NULL: a data base in memory, for the tables of traces. */
static int sql_prepare(struct ky_sql *sql, const char *path)
{
	int flags = path ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY;
	int ret = ky_sql_temporary_init(&sql->temporary) < 0
			  ? SQLITE_NOMEM
			  : ky_sqlite.sqlite3_open_v2(path ? path : ":memory:", &sql->db, flags,
						      sql->temporary.name);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && ret == SQLITE_OK; i++)
		ret = ky_sqlite.sqlite3_create_function_v2(sql->db, functions[i].name,
							   functions[i].n,
							   SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
							   functions[i].call, NULL, NULL, NULL);
	if (ret != SQLITE_OK)
		return KYMO_E_MEMORY;
	sql_confine(sql->db);
	return KYMO_OK;
}

static int sql_open(const struct ky_trace_set *set, const char *path, struct ky_sql **out,
		    struct kymo_error *err)
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
	ky_names_init(&sql->by_key);
	ky_map_init(&sql->hosts);
	ky_map_init(&sql->tids);
	if ((set && ky_sql_find_tables(sql) < 0) || sql_prepare(sql, path) < 0) {
		ky_sql_close(sql);
		return path ? ky_error_set(err, KYMO_E_IO, "cannot open the data base")
			    : ky_error_nomem(err);
	}
	*out = sql;
	return KYMO_OK;
}

int ky_sql_open(const struct ky_trace_set *set, struct ky_sql **out, struct kymo_error *err)
{
	return sql_open(set, NULL, out, err);
}

int ky_sql_open_file(const char *path, struct ky_sql **out, struct kymo_error *err)
{
	int ret = sql_open(NULL, path, out, err);

	if (ret < 0)
		ky_error_path(err, path);
	return ret;
}

void ky_sql_close(struct ky_sql *sql)
{
	if (!sql)
		return;
	(void)ky_sqlite.sqlite3_close_v2(sql->db);
	ky_sql_temporary_fini(&sql->temporary);
	ky_vec_foreach(&sql->tables, table) {
		ky_vec_fini(&(*table)->columns);
		ky_vec_fini(&(*table)->classes);
		ky_map_fini(&(*table)->by_class);
		ky_names_fini(&(*table)->taken);
	}
	ky_vec_fini(&sql->tables);
	ky_names_fini(&sql->by_name);
	ky_names_fini(&sql->taken);
	ky_names_fini(&sql->by_key);
	ky_map_fini(&sql->hosts);
	ky_map_fini(&sql->tids);
	ky_arena_fini(&sql->arena);
	free(sql);
}

/* ---- limits --------------------------------------------------------------------------- */

bool ky_sql_is_stopped(const struct ky_sql *sql, struct kymo_error *err)
{
	if (!sql->stop || !sql->stop(sql->stop_data))
		return false;
	ky_error_set(err, KYMO_E_INTERRUPTED, "the statement was stopped");
	return true;
}

static int sql_progress(void *data)
{
	return ky_sql_is_stopped(data, NULL);
}

void ky_sql_set_stop(struct ky_sql *sql, bool (*stop)(void *data), void *data)
{
	sql->stop = stop;
	sql->stop_data = data;
	ky_sqlite.sqlite3_progress_handler(sql->db, stop ? STOP_STEPS : 0,
					   stop ? sql_progress : NULL, sql);
}

void ky_sql_limit_memory(uint64_t bytes)
{
	(void)ky_sqlite.sqlite3_hard_heap_limit64((sqlite3_int64)bytes);
}

void ky_sql_limit_temporary(struct ky_sql *sql, uint64_t bytes)
{
	sql->temporary.max_bytes = bytes;
}

void ky_sql_limit_values(struct ky_sql *sql, uint32_t bytes)
{
	(void)ky_sqlite.sqlite3_limit(sql->db, SQLITE_LIMIT_LENGTH, (int)bytes);
}
