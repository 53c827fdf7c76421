/* SPDX-License-Identifier: MIT */
/*
 * Tables of events. A cursor is a graph over the selected events, which SQLite moves on row by row; a column is decoded when SQLite asks
 * for it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/select.h"
#include "sql/sql-plan.h"
#include "sql/sql-rows.h"

struct sql_cursor {
	sqlite3_vtab_cursor base;
	struct ky_flow *flow;
	struct ky_batch batch;
	size_t at;
	const struct ky_sql_class *cls;
	const struct ky_event *event; /* NULL: the end */
	struct ky_strbuf filter;
	bool *only;		  /* by ky_stream.index: those of one machine; NULL: all */
	struct ky_sql_rows texts; /* of the column at hand */
	char event_name[256];
};

static const struct ky_sql_table *table_of(const struct sql_cursor *cursor)
{
	return ((const struct ky_sql_vtab *)cursor->base.pVtab)->table;
}

/* ---- both kinds of tables ------------------------------------------------------------- */

int ky_sql_fail(const struct ky_sql_table *table, const struct kymo_error *err)
{
	if (!table->sql->why.code)
		table->sql->why = *err;
	return SQLITE_ERROR;
}

const char *ky_sql_host(const struct ky_sql *sql, const struct ky_event *event)
{
	const char *host = ky_map_get(&sql->hosts, (uintptr_t)event->cls->stream->trace);

	return host ? host : "";
}

int ky_sql_choose_host(const struct ky_sql *sql, const char *host, bool **only)
{
	bool is_first = !*only;

	if (is_first)
		*only = calloc(sql->set->streams.len + 1, sizeof(**only));
	if (!*only)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&sql->set->streams, stream) {
		const char *own = ky_map_get(&sql->hosts, (uintptr_t)(*stream)->trace->cls);
		bool *is = &(*only)[(*stream)->index];

		*is = (is_first || *is) && host && own && strcmp(own, host) == 0;
	}
	return KYMO_OK;
}

int ky_sql_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
		   char **why)
{
	const struct ky_sql_table *table = aux;
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_sql_vtab *vtab;
	int ret;

	(void)argc;
	(void)argv;
	(void)why;
	ky_strbuf_adds(&text, "CREATE TABLE t(");
	ky_vec_foreach(&table->columns, column)
		/* Names are letters, digits and '_'. */
		ky_strbuf_addf(&text, "%s\"%s\" %s%s", column == table->columns.data ? "" : ",",
			       column->name, column->type,
			       column->kind == KY_SQL_ARGUMENT ? " HIDDEN" : "");
	ky_strbuf_adds(&text, ")");
	vtab = ky_strbuf_failed(&text) ? NULL : ky_sqlite.sqlite3_malloc64(sizeof(*vtab));
	ret = vtab ? ky_sqlite.sqlite3_declare_vtab(db, ky_strbuf_text(&text)) : SQLITE_NOMEM;
	ky_strbuf_fini(&text);
	if (ret != SQLITE_OK) {
		ky_sqlite.sqlite3_free(vtab);
		return ret;
	}
	memset(vtab, 0, sizeof(*vtab));
	vtab->table = table;
	*out = &vtab->base;
	return SQLITE_OK;
}

int ky_sql_disconnect(sqlite3_vtab *vtab)
{
	ky_sqlite.sqlite3_free(vtab);
	return SQLITE_OK;
}

/* ---- the plan ------------------------------------------------------------------------- */

/* What the reader can do with a comparison of @column. */
static bool sql_events_takes(const struct ky_sql_table *table, const struct ky_sql_column *column,
			     const char *op)
{
	if (column->kind == KY_SQL_TIME)
		return true;
	if (column->kind == KY_SQL_CPU)
		return true;
	if (column->kind == KY_SQL_NAME || column->kind == KY_SQL_HOST)
		return strcmp(op, "==") == 0;
	return column->is_filtered && table->shape == KY_SQL_EVENTS;
}

static int sql_events_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct ky_sql_table *table = ((struct ky_sql_vtab *)vtab)->table;
	int ret = ky_sql_plan(table, info, sql_events_takes,
			      table->shape == KY_SQL_ALL_EVENTS ? 1e9 : 1e8);

	info->orderByConsumed =
		info->nOrderBy == 1 && info->aOrderBy[0].iColumn == 0 && !info->aOrderBy[0].desc;
	return ret;
}

/* ---- the cursor ----------------------------------------------------------------------- */

static int sql_events_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	struct sql_cursor *cursor = ky_sqlite.sqlite3_malloc64(sizeof(*cursor));

	(void)vtab;
	if (!cursor)
		return SQLITE_NOMEM;
	memset(cursor, 0, sizeof(*cursor));
	ky_strbuf_init(&cursor->filter);
	ky_sql_rows_init(&cursor->texts, 0);
	*out = &cursor->base;
	return SQLITE_OK;
}

static int sql_events_close(sqlite3_vtab_cursor *base)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;

	ky_flow_close(cursor->flow);
	free(cursor->only);
	ky_strbuf_fini(&cursor->filter);
	ky_sql_rows_fini(&cursor->texts);
	ky_sqlite.sqlite3_free(cursor);
	return SQLITE_OK;
}

/* The bound of a time by @op @value: more than SQLite's own comparison lets through is no fault. */
static void sql_events_bound(struct ky_selection *selection, const char *op, sqlite3_value *value)
{
	int type = ky_sqlite.sqlite3_value_type(value);
	int64_t ns;

	if (type == SQLITE_FLOAT) {
		double real = ky_sqlite.sqlite3_value_double(value);

		ns = real > 9.2e18 ? INT64_MAX : real < -9.2e18 ? INT64_MIN : (int64_t)real;
	} else if (type == SQLITE_INTEGER) {
		ns = ky_sqlite.sqlite3_value_int64(value);
	} else {
		return;
	}
	if (*op == '=' || *op == '>')
		selection->begin_ns = ns > selection->begin_ns ? ns : selection->begin_ns;
	/* A fraction cut off lies before it. */
	if (*op == '=' || *op == '<')
		selection->end_ns = ns < selection->end_ns ? ns : selection->end_ns;
}

static void sql_events_compare(struct sql_cursor *cursor, const struct ky_sql_column *column,
			       const char *op, sqlite3_value *value)
{
	if (ky_sqlite.sqlite3_value_type(value) != SQLITE_INTEGER)
		return;
	ky_strbuf_adds(&cursor->filter, cursor->filter.len ? " && " : "");
	if (column->kind == KY_SQL_CPU)
		ky_strbuf_adds(&cursor->filter, "$cpu");
	else
		ky_strbuf_addf(&cursor->filter, "%s.%s",
			       column->scope == KY_SCOPE_PAYLOAD ? "$payload" : "$ctx",
			       column->field);
	ky_strbuf_addf(&cursor->filter, " %.*s %" PRIi64, (int)strcspn(op, ";"), op,
		       (int64_t)ky_sqlite.sqlite3_value_int64(value));
}

/* What the plan says, with the statement's values. */
static void sql_events_select(struct sql_cursor *cursor, struct ky_selection *selection,
			      const char *plan, int argc, sqlite3_value **argv)
{
	const struct ky_sql_table *table = table_of(cursor);

	for (int i = 0; i < argc && plan && *plan; i++) {
		const char *op;
		const struct ky_sql_column *column = ky_sql_plan_next(table, &plan, &op);

		if (column && column->kind == KY_SQL_TIME) {
			sql_events_bound(selection, op, argv[i]);
		} else if (column && column->kind == KY_SQL_NAME) {
			const char *name = (const char *)ky_sqlite.sqlite3_value_text(argv[i]);

			if (name && strlen(name) < sizeof(cursor->event_name))
				memcpy(cursor->event_name, name, strlen(name) + 1);
		} else if (column && column->kind == KY_SQL_HOST) {
			/* Out of memory: SQLite compares, too. */
			(void)ky_sql_choose_host(
				table->sql, (const char *)ky_sqlite.sqlite3_value_text(argv[i]),
				&cursor->only);
			selection->only = cursor->only;
		} else if (column) {
			sql_events_compare(cursor, column, op, argv[i]);
		}
	}
}

/* The next event of the table's classes. */
static int sql_events_advance(struct sql_cursor *cursor)
{
	const struct ky_sql_table *table = table_of(cursor);
	struct kymo_error err = {0};
	int ret;

	for (;;) {
		while (cursor->at < cursor->batch.n_events) {
			const struct ky_event *event = &cursor->batch.events[cursor->at++];
			uintptr_t number =
				(uintptr_t)ky_map_get(&table->by_class, (uintptr_t)event->cls);

			if (table->shape == KY_SQL_EVENTS && !number)
				continue;
			cursor->cls = number ? &table->classes.data[number - 1] : NULL;
			cursor->event = event;
			return SQLITE_OK;
		}
		if (ky_sql_is_stopped(table->sql, &err))
			return ky_sql_fail(table, &err);
		ret = ky_flow_next(cursor->flow, &cursor->batch, &err);
		cursor->at = 0;
		if (ret > 0)
			continue;
		cursor->event = NULL;
		cursor->batch.n_events = 0;
		return ret == 0 || ret == KYMO_E_AGAIN ? SQLITE_OK : ky_sql_fail(table, &err);
	}
}

static int sql_events_none(struct sql_cursor *cursor)
{
	cursor->event = NULL;
	return SQLITE_OK;
}

/* @name as a wildcard that means nothing but itself. False: it does not fit. */
static bool sql_events_quote(const char *name, char *quoted, size_t size)
{
	size_t len = 0;

	for (; *name; name++) {
		if (len + 3 > size)
			return false;
		if (strchr("*?\\!", *name))
			quoted[len++] = '\\';
		quoted[len++] = *name;
	}
	quoted[len] = '\0';
	return len;
}

static int sql_events_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
			     sqlite3_value **argv)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;
	const struct ky_sql_table *table = table_of(cursor);
	struct ky_selection selection;
	struct kymo_error err = {0};
	const char *name = table->event;
	char quoted[600];
	const char *const names[] = {quoted};

	(void)number;
	ky_flow_close(cursor->flow);
	cursor->flow = NULL;
	ky_strbuf_clear(&cursor->filter);
	free(cursor->only);
	cursor->only = NULL;
	cursor->event_name[0] = '\0';
	ky_selection_init(&selection);
	sql_events_select(cursor, &selection, plan, argc, argv);
	if (table->shape == KY_SQL_ALL_EVENTS && cursor->event_name[0]) {
		name = cursor->event_name;
		if (!ky_names_get(&table->sql->by_name, name))
			return sql_events_none(cursor);
	}
	if (name && sql_events_quote(name, quoted, sizeof(quoted))) {
		selection.events = names;
		selection.n_events = 1;
	}
	if (ky_strbuf_failed(&cursor->filter))
		return SQLITE_NOMEM;
	if (cursor->filter.len)
		selection.filter = ky_strbuf_text(&cursor->filter);
	if (selection.begin_ns > selection.end_ns)
		return sql_events_none(cursor);
	cursor->batch.n_events = cursor->at = 0;
	if (ky_flow_open_selected(table->sql->set, &selection, &cursor->flow, &err) < 0)
		return ky_sql_fail(table, &err);
	return sql_events_advance(cursor);
}

static int sql_events_next(sqlite3_vtab_cursor *base)
{
	return sql_events_advance((struct sql_cursor *)base);
}

static int sql_events_eof(sqlite3_vtab_cursor *base)
{
	return ((struct sql_cursor *)base)->event == NULL;
}

/* The same event has the same number in each scan: SQLite finds rows again by it that two sides of an OR select. */
static int sql_events_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
	const struct ky_event *event = ((struct sql_cursor *)base)->event;
	uint64_t bits = event->packet->file_offset_bytes * 8 + event->begin_bits;

	*row = (sqlite3_int64)ky_hash_u64(ky_hash_u64(event->packet->stream->index + 1) ^ bits);
	return SQLITE_OK;
}

static int sql_events_column_value(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	struct sql_cursor *cursor = (struct sql_cursor *)base;
	struct ky_sql_cell cell;

	ky_sql_event_cell(table_of(cursor), cursor->cls, cursor->event, (uint32_t)number,
			  &cursor->texts, &cell);
	ky_sql_cell_result(context, &cell);
	if (cursor->texts.has_texts)
		ky_sql_rows_drain(&cursor->texts);
	return SQLITE_OK;
}

const struct sqlite3_module ky_sql_event_module = {
	.iVersion = 1,
	.xConnect = ky_sql_connect,
	.xBestIndex = sql_events_best_index,
	.xDisconnect = ky_sql_disconnect,
	.xDestroy = ky_sql_disconnect,
	.xOpen = sql_events_open,
	.xClose = sql_events_close,
	.xFilter = sql_events_filter,
	.xNext = sql_events_next,
	.xEof = sql_events_eof,
	.xColumn = sql_events_column_value,
	.xRowid = sql_events_rowid,
};
