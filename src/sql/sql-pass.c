/* SPDX-License-Identifier: MIT */
#include "sql/sql-pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql-plan.h"

/* What a table may keep in memory for statements that read it again. */
#define CACHE_MAX_BYTES ((size_t)1 << 30)

/* ---- the plan ------------------------------------------------------------------------- */

static bool sql_pass_takes(const struct ky_sql_table *table, const struct ky_sql_column *column,
			   const char *op)
{
	(void)table;
	if (strcmp(column->type, "INTEGER") == 0 && column->kind != KY_SQL_ARGUMENT)
		return true;
	return strcmp(op, "==") == 0 && strcmp(column->type, "REAL") != 0;
}

static int sql_pass_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct ky_sql_table *table = ((struct ky_sql_vtab *)vtab)->table;

	/* Columns that nobody asks for are not made. */
	info->idxNum =
		(int)(info->colUsed & 0x3fffffff) | (info->colUsed >> 30 ? (int)0x40000000 : 0);
	return ky_sql_plan(table, info, sql_pass_takes, 1e9);
}

/* ---- the cursor ----------------------------------------------------------------------- */

static int sql_pass_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	const struct ky_sql_table *table = ((struct ky_sql_vtab *)vtab)->table;
	struct ky_sql_pass *pass = ky_sqlite.sqlite3_malloc64(sizeof(*pass));

	if (!pass)
		return SQLITE_NOMEM;
	memset(pass, 0, sizeof(*pass));
	pass->table = table;
	pass->source = table->source;
	ky_sql_rows_init(&pass->rows, (uint32_t)table->columns.len);
	ky_arena_init(&pass->arena);
	ky_focus_init(&pass->focus);
	*out = &pass->base;
	return SQLITE_OK;
}

static int sql_pass_close(sqlite3_vtab_cursor *base)
{
	struct ky_sql_pass *pass = (struct ky_sql_pass *)base;

	ky_sql_pass_end(pass);
	ky_focus_fini(&pass->focus);
	ky_arena_fini(&pass->arena);
	ky_sql_rows_fini(&pass->rows);
	ky_sql_cache_fini(&pass->cache);
	ky_sqlite.sqlite3_free(pass);
	return SQLITE_OK;
}

static enum ky_sql_operator sql_pass_operator(const char *op)
{
	if (op[0] == '=')
		return KY_SQL_EQ;
	if (op[0] == '<')
		return op[1] == '=' ? KY_SQL_LE : KY_SQL_LT;
	return op[1] == '=' ? KY_SQL_GE : KY_SQL_GT;
}

/* What a comparison with a number says of the rows' ends. */
static void sql_pass_bound(struct ky_sql_pass *pass, const struct ky_sql_column *column,
			   enum ky_sql_operator op, sqlite3_value *value)
{
	int64_t ns = ky_sqlite.sqlite3_value_int64(value);
	bool is_end = strcmp(column->name, "end") == 0;

	if (ky_sqlite.sqlite3_value_type(value) != SQLITE_INTEGER || !pass->source->by_end)
		return;
	if ((is_end || column->kind == KY_SQL_TIME) && op != KY_SQL_LT && op != KY_SQL_LE)
		pass->begin_ns = ns > pass->begin_ns ? ns : pass->begin_ns;
	if (is_end && op != KY_SQL_GT && op != KY_SQL_GE)
		pass->end_ns = ns < pass->end_ns ? ns : pass->end_ns;
}

static void sql_pass_arguments(struct ky_sql_pass *pass, const char *plan, int argc,
			       sqlite3_value **argv)
{
	const struct ky_sql_column *column;
	const char *op;

	for (int i = 0; i < argc; i++) {
		column = ky_sql_plan_next(pass->table, &plan, &op);
		if (!column)
			break;
		if (column->kind != KY_SQL_ARGUMENT ||
		    ky_sqlite.sqlite3_value_type(argv[i]) == SQLITE_NULL)
			continue;
		if (strcmp(column->name, "range_begin") == 0)
			pass->focus.begin_ns = ky_sqlite.sqlite3_value_int64(argv[i]);
		else
			pass->focus.end_ns = ky_sqlite.sqlite3_value_int64(argv[i]);
	}
}

static int sql_pass_conditions(struct ky_sql_pass *pass, const char *plan, int argc,
			       sqlite3_value **argv, bool is_first)
{
	const struct ky_sql_column *column;
	const char *op;
	int ret = 0;

	pass->begin_ns = INT64_MIN;
	pass->end_ns = INT64_MAX;
	for (int i = 0; i < argc && ret >= 0; i++) {
		column = ky_sql_plan_next(pass->table, &plan, &op);
		if (!column)
			break;
		if (column->kind == KY_SQL_ARGUMENT)
			continue;
		if (is_first && column->kind == KY_SQL_HOST)
			ret = ky_sql_choose_host(
				pass->table->sql,
				(const char *)ky_sqlite.sqlite3_value_text(argv[i]), &pass->only);
		if (is_first)
			sql_pass_bound(pass, column, sql_pass_operator(op), argv[i]);
		if (ret >= 0)
			ret = ky_sql_rows_add_condition(
				&pass->rows, (uint32_t)(column - pass->table->columns.data),
				sql_pass_operator(op), argv[i]);
	}
	return ret;
}

/* The next batch. 1; 0: the end. */
static int sql_pass_step(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct ky_batch batch;
	int ret, status = 0;

	if (pass->source->next)
		return pass->source->next(pass, err);
	if (!pass->source->take)
		return ky_model_step(pass->model, pass->flow, err);
	ret = ky_flow_next(pass->flow, &batch, err);
	if (ret > 0 && pass->model)
		status = ky_model_feed(pass->model, &batch, err);
	if (ret > 0 && status >= 0)
		status = pass->source->take(pass, &batch, err);
	return status < 0 ? status : ret;
}

/* More rows, or the end. 0, or what the pass failed with. */
static int sql_pass_more(struct ky_sql_pass *pass, struct kymo_error *err)
{
	int ret;

	if (ky_sql_is_stopped(pass->table->sql, err))
		return KYMO_E_INTERRUPTED;
	ret = pass->is_finishing ? 0 : sql_pass_step(pass, err);
	/* Rows that come from here on end later. */
	if (ret > 0 && pass->model && ky_model_end_ns(pass->model) != INT64_MIN &&
	    ky_model_end_ns(pass->model) > pass->end_ns) {
		pass->is_over = true;
		ret = 0;
	}
	if (ret > 0 || ret == KYMO_E_MEMORY)
		return ret < 0 ? ret : 0;
	/* A trace that is still being written: that is what there is of it. */
	if (ret < 0 && ret != KYMO_E_AGAIN)
		pass->damage = *err;
	if (!pass->is_over && pass->source->finish)
		ret = pass->source->finish(pass, err);
	pass->is_finishing = ret > 0;
	pass->is_over = ret <= 0;
	return ret == KYMO_E_MEMORY ? ret : 0;
}

static int sql_pass_fill(struct ky_sql_pass *pass)
{
	struct kymo_error err = {0};

	if (pass->rows.at < pass->rows.n)
		return SQLITE_OK;
	ky_sql_rows_drain(&pass->rows);
	while (!pass->is_over && !pass->rows.n)
		if (sql_pass_more(pass, &err) < 0)
			return err.code ? ky_sql_fail(pass->table, &err) : SQLITE_NOMEM;
	return !pass->rows.n && pass->damage.code ? ky_sql_fail(pass->table, &pass->damage)
						  : SQLITE_OK;
}

/* ---- reading again -------------------------------------------------------------------- */

static uint32_t sql_pass_column(const struct ky_sql_pass *pass, const char *name)
{
	for (size_t i = 0; i < pass->table->columns.len; i++)
		if (strcmp(pass->table->columns.data[i].name, name) == 0)
			return (uint32_t)i;
	return UINT32_MAX;
}

/* By which column rows are found: the first one that the plan compares for being equal. */
static uint32_t sql_pass_key(const struct ky_sql_pass *pass, const char *plan)
{
	const struct ky_sql_column *column;
	const char *op;

	while ((column = ky_sql_plan_next(pass->table, &plan, &op)) != NULL)
		if (strncmp(op, "==", 2) == 0 && column->kind != KY_SQL_ARGUMENT)
			return (uint32_t)(column - pass->table->columns.data);
	return UINT32_MAX;
}

/* All rows into memory; a table that is too large for that is read again each time. */
static int sql_pass_remember(struct ky_sql_pass *pass, const char *plan)
{
	struct ky_sql_cache *cache = &pass->cache;
	struct kymo_error err = {0};
	int ret;

	/* The bounds of the last reading are not those of all rows. */
	pass->begin_ns = INT64_MIN;
	pass->end_ns = INT64_MAX;
	pass->is_remembered = true;
	ret = ky_sql_pass_begin(pass, &err);
	while (ret >= 0 && !pass->is_over && !cache->is_refused) {
		ret = sql_pass_more(pass, &err);
		cache->is_refused =
			pass->rows.cells.len * sizeof(struct ky_sql_cell) + pass->rows.text_bytes >
				CACHE_MAX_BYTES ||
			pass->rows.n > UINT32_MAX / 2;
	}
	if (ret < 0)
		return err.code ? ky_sql_fail(pass->table, &err) : SQLITE_NOMEM;
	if (pass->damage.code)
		return ky_sql_fail(pass->table, &pass->damage);
	if (!cache->is_refused && ky_sql_cache_build(cache, &pass->rows, sql_pass_key(pass, plan),
						     sql_pass_column(pass, "time")) < 0)
		return SQLITE_NOMEM;
	ky_sql_pass_end(pass);
	pass->is_remembered = false;
	ky_sql_rows_drain(&pass->rows);
	return SQLITE_OK;
}

/* Whether the rows come from memory: the second time, for the same range. */
static int sql_pass_recall(struct ky_sql_pass *pass, const char *plan)
{
	bool is_same = pass->n_filters && pass->last_begin_ns == pass->focus.begin_ns &&
		       pass->last_end_ns == pass->focus.end_ns;
	int ret = SQLITE_OK;

	pass->last_begin_ns = pass->focus.begin_ns;
	pass->last_end_ns = pass->focus.end_ns;
	pass->n_filters++;
	if (!is_same)
		ky_sql_cache_fini(&pass->cache);
	else if (!pass->cache.is_built && !pass->cache.is_refused)
		ret = sql_pass_remember(pass, plan);
	pass->focus.begin_ns = pass->last_begin_ns;
	pass->focus.end_ns = pass->last_end_ns;
	return ret;
}

static int sql_pass_filter(sqlite3_vtab_cursor *base, int used, const char *plan, int argc,
			   sqlite3_value **argv)
{
	struct ky_sql_pass *pass = (struct ky_sql_pass *)base;
	struct kymo_error err = {0};
	int ret;

	ky_sql_pass_end(pass);
	ky_sql_rows_clear(&pass->rows);
	pass->rows.used = (uint64_t)(uint32_t)used & 0x3fffffff;
	if ((uint32_t)used >> 30)
		pass->rows.used |= ~UINT64_C(0x3fffffff);
	sql_pass_arguments(pass, plan, argc, argv);
	ret = sql_pass_recall(pass, plan);
	if (ret != SQLITE_OK)
		return ret;
	if (sql_pass_conditions(pass, plan, argc, argv, !pass->cache.is_built) < 0)
		return SQLITE_NOMEM;
	if (pass->cache.is_built) {
		ky_sql_cache_find(&pass->cache, &pass->rows);
		pass->cached = ky_sql_cache_next(&pass->cache, &pass->rows);
		return SQLITE_OK;
	}
	if (ky_sql_pass_begin(pass, &err) < 0)
		return ky_sql_fail(pass->table, &err);
	return sql_pass_fill(pass);
}

/* ---- rows ----------------------------------------------------------------------------- */

static int sql_pass_next(sqlite3_vtab_cursor *base)
{
	struct ky_sql_pass *pass = (struct ky_sql_pass *)base;

	if (pass->cache.is_built) {
		pass->cached = ky_sql_cache_next(&pass->cache, &pass->rows);
		return SQLITE_OK;
	}
	pass->rows.at++;
	return sql_pass_fill(pass);
}

static int sql_pass_eof(sqlite3_vtab_cursor *base)
{
	const struct ky_sql_pass *pass = (const struct ky_sql_pass *)base;

	return pass->cache.is_built ? !pass->cached : pass->rows.at >= pass->rows.n;
}

static const struct ky_sql_cell *sql_pass_row(const struct ky_sql_pass *pass)
{
	return pass->cache.is_built ? pass->cached
				    : pass->rows.cells.data + pass->rows.at * pass->rows.n_columns;
}

/*
 * The same row has the same number in each scan: SQLite finds rows again by it that two sides of an OR select. Rows with equal values
 * share a number: both sides then select all of them.
 */
static int sql_pass_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
	const struct ky_sql_pass *pass = (const struct ky_sql_pass *)base;
	const struct ky_sql_cell *cells = sql_pass_row(pass);
	uint64_t hash = 0;

	for (uint32_t i = 0; i < pass->rows.n_columns; i++)
		if (ky_sql_rows_uses(&pass->rows, i))
			hash = ky_hash_u64(hash ^ ky_sql_cell_hash(&cells[i]));
	*row = (sqlite3_int64)hash;
	return SQLITE_OK;
}

static int sql_pass_value(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	const struct ky_sql_pass *pass = (const struct ky_sql_pass *)base;
	const struct ky_sql_cell *row = sql_pass_row(pass);

	if (column >= 0 && (uint32_t)column < pass->rows.n_columns)
		ky_sql_cell_result(context, &row[column]);
	return SQLITE_OK;
}

const struct sqlite3_module ky_sql_pass_module = {
	.iVersion = 1,
	.xConnect = ky_sql_connect,
	.xBestIndex = sql_pass_best_index,
	.xDisconnect = ky_sql_disconnect,
	.xDestroy = ky_sql_disconnect,
	.xOpen = sql_pass_open,
	.xClose = sql_pass_close,
	.xFilter = sql_pass_filter,
	.xNext = sql_pass_next,
	.xEof = sql_pass_eof,
	.xColumn = sql_pass_value,
	.xRowid = sql_pass_rowid,
};
