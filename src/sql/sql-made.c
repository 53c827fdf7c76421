/* SPDX-License-Identifier: MIT */
/* Tables whose rows are made of two events: system calls, and threads on CPUs. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql-tables.h"

#define ENTRY "syscall_entry_"
#define EXIT  "syscall_exit_"

enum role {
	ROLE_NONE,
	ROLE_ENTRY,
	ROLE_EXIT,
	ROLE_SWITCH,
};

/* What the tables need of an event class. */
struct made_class {
	enum role role;
	const char *name; /* of a call */
	const char *host;
	struct ky_handle tid, ret, next_tid, next_comm, next_prio, prev_state;
};

/* A call that has not returned, or the thread on a CPU. */
struct made_open {
	int64_t begin_ns;
	const struct made_class *cls;
	uint32_t cpu;
	int64_t tid, prio;
	char comm[17];
};

struct made_row {
	int64_t begin_ns, end_ns, tid, cpu, ret, prio, state;
	const char *name, *host;
	char comm[17];
};

struct made_cursor {
	sqlite3_vtab_cursor base;
	struct ky_flow *flow;
	struct ky_batch batch;
	size_t at;
	struct ky_map classes; /* struct ky_event_class * -> struct made_class * */
	struct ky_map open;    /* thread, or CPU, of a host -> struct made_open * */
	struct ky_arena arena;
	struct made_row row_now;
	bool is_over;
	int64_t row;
};

static const struct ky_sql_table *sql_made_table(const struct made_cursor *cursor)
{
	return ((const struct ky_sql_vtab *)cursor->base.pVtab)->table;
}

/* ---- the cursor ----------------------------------------------------------------------- */

static int sql_made_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	(void)vtab;
	info->estimatedCost = 1e9;
	info->estimatedRows = 10000000;
	return SQLITE_OK;
}

static int sql_made_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	struct made_cursor *cursor = ky_sqlite.sqlite3_malloc64(sizeof(*cursor));

	(void)vtab;
	if (!cursor)
		return SQLITE_NOMEM;
	memset(cursor, 0, sizeof(*cursor));
	ky_map_init(&cursor->classes);
	ky_map_init(&cursor->open);
	ky_arena_init(&cursor->arena);
	*out = &cursor->base;
	return SQLITE_OK;
}

static void sql_made_clear(struct made_cursor *cursor)
{
	ky_flow_close(cursor->flow);
	cursor->flow = NULL;
	ky_map_fini(&cursor->classes);
	ky_map_fini(&cursor->open);
	ky_arena_fini(&cursor->arena);
	ky_map_init(&cursor->classes);
	ky_map_init(&cursor->open);
	ky_arena_init(&cursor->arena);
	cursor->batch.n_events = cursor->at = 0;
	cursor->is_over = false;
}

static int sql_made_close(sqlite3_vtab_cursor *base)
{
	struct made_cursor *cursor = (struct made_cursor *)base;

	sql_made_clear(cursor);
	ky_sqlite.sqlite3_free(cursor);
	return SQLITE_OK;
}

static enum role sql_made_role(enum ky_sql_shape shape, const char *name, const char **call)
{
	if (shape == KY_SQL_SLICES)
		return strcmp(name, "sched_switch") == 0 ? ROLE_SWITCH : ROLE_NONE;
	if (strncmp(name, ENTRY, strlen(ENTRY)) == 0) {
		*call = name + strlen(ENTRY);
		return ROLE_ENTRY;
	}
	if (strncmp(name, EXIT, strlen(EXIT)) == 0) {
		*call = name + strlen(EXIT);
		return ROLE_EXIT;
	}
	return ROLE_NONE;
}

static int sql_made_add_class(struct made_cursor *cursor, const struct ky_event_class *event)
{
	struct made_class *cls = ky_arena_new(&cursor->arena, struct made_class);
	const struct ky_sql *sql = sql_made_table(cursor)->sql;

	if (!cls)
		return KYMO_E_MEMORY;
	cls->role = sql_made_role(sql_made_table(cursor)->shape, event->name, &cls->name);
	if (cls->role == ROLE_NONE)
		return KYMO_OK;
	cls->host = ky_map_get(&sql->hosts, (uintptr_t)event->stream->trace);
	/* The thread of a call is the context's. */
	if (!ky_handle_find(&cls->tid, event, KY_SCOPE_STREAM_CONTEXT, "tid"))
		(void)ky_handle_find_any(&cls->tid, event, "tid");
	(void)ky_handle_find(&cls->ret, event, KY_SCOPE_PAYLOAD, "ret");
	(void)ky_handle_find(&cls->next_tid, event, KY_SCOPE_PAYLOAD, "next_tid");
	(void)ky_handle_find(&cls->next_comm, event, KY_SCOPE_PAYLOAD, "next_comm");
	(void)ky_handle_find(&cls->next_prio, event, KY_SCOPE_PAYLOAD, "next_prio");
	(void)ky_handle_find(&cls->prev_state, event, KY_SCOPE_PAYLOAD, "prev_state");
	return ky_map_set(&cursor->classes, (uintptr_t)event, cls);
}

/* One open thing for each thread, or CPU, of a host. NULL: memory is out. */
static struct made_open *sql_made_slot(struct made_cursor *cursor, const struct made_class *cls,
				       uint64_t number)
{
	uint64_t key = ky_hash_u64(number ^ ky_hash_u64((uintptr_t)cls->host));
	struct made_open *open = ky_map_get(&cursor->open, key);

	if (open)
		return open;
	open = ky_arena_new(&cursor->arena, struct made_open);
	if (!open || ky_map_set(&cursor->open, key, open) < 0)
		return NULL;
	return open;
}

static int sql_made_call(struct made_cursor *cursor, const struct made_class *cls,
			 const struct ky_event *event)
{
	int64_t tid = (int32_t)ky_get_i64(event, &cls->tid, -1);
	struct made_open *open = sql_made_slot(cursor, cls, (uint64_t)tid);
	struct made_row *row = &cursor->row_now;

	if (!open)
		return KYMO_E_MEMORY;
	if (cls->role == ROLE_ENTRY) {
		open->cls = cls;
		open->begin_ns = event->ns;
		open->cpu = event->cpu_id;
		return 0;
	}
	if (!open->cls || strcmp(open->cls->name, cls->name) != 0)
		return 0;
	*row = (struct made_row){
		.begin_ns = open->begin_ns,
		.end_ns = event->ns,
		.name = cls->name,
		.host = cls->host,
		.tid = tid,
		.cpu = open->cpu,
		.ret = ky_get_i64(event, &cls->ret, 0),
	};
	open->cls = NULL;
	return 1;
}

static int sql_made_switch(struct made_cursor *cursor, const struct made_class *cls,
			   const struct ky_event *event)
{
	struct made_open *open = sql_made_slot(cursor, cls, event->cpu_id);
	struct made_row *row = &cursor->row_now;
	bool has_row;
	const char *comm;
	size_t len;

	if (!open)
		return KYMO_E_MEMORY;
	has_row = open->cls;
	if (has_row) {
		*row = (struct made_row){
			.begin_ns = open->begin_ns,
			.end_ns = event->ns,
			.host = cls->host,
			.tid = open->tid,
			.cpu = event->cpu_id,
			.prio = open->prio,
			.state = ky_get_i64(event, &cls->prev_state, 0),
		};
		memcpy(row->comm, open->comm, sizeof(row->comm));
	}
	open->cls = cls;
	open->begin_ns = event->ns;
	open->tid = ky_get_i64(event, &cls->next_tid, -1);
	open->prio = ky_get_i64(event, &cls->next_prio, 0);
	comm = ky_get_text(event, &cls->next_comm, &len);
	len = len < sizeof(open->comm) - 1 ? len : sizeof(open->comm) - 1;
	memcpy(open->comm, comm, len);
	open->comm[len] = '\0';
	return has_row;
}

/* Lost events: what was open is unknown from there on. */
static void sql_made_forget(struct made_cursor *cursor)
{
	ky_map_fini(&cursor->open);
	ky_map_init(&cursor->open);
}

static int sql_made_advance(struct made_cursor *cursor)
{
	struct kymo_error err = {0};
	int ret;

	for (;;) {
		while (cursor->at < cursor->batch.n_events) {
			const struct ky_event *event = &cursor->batch.events[cursor->at++];
			const struct made_class *cls =
				ky_map_get(&cursor->classes, (uintptr_t)event->cls);

			if (!cls)
				continue;
			ret = cls->role == ROLE_SWITCH ? sql_made_switch(cursor, cls, event)
						       : sql_made_call(cursor, cls, event);
			if (ret < 0)
				return SQLITE_NOMEM;
			if (!ret)
				continue;
			cursor->row++;
			return SQLITE_OK;
		}
		ret = ky_flow_next(cursor->flow, &cursor->batch, &err);
		cursor->at = 0;
		if (ret > 0) {
			if (cursor->batch.loss)
				sql_made_forget(cursor);
			continue;
		}
		cursor->is_over = true;
		cursor->batch.n_events = 0;
		return ret == 0 || ret == KYMO_E_AGAIN ? SQLITE_OK
						       : ky_sql_fail(sql_made_table(cursor), &err);
	}
}

static int sql_made_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
			   sqlite3_value **argv)
{
	static const char *const calls[] = {ENTRY "*", EXIT "*"};
	static const char *const switches[] = {"sched_switch"};
	struct made_cursor *cursor = (struct made_cursor *)base;
	const struct ky_sql_table *table = sql_made_table(cursor);
	struct ky_selection selection;
	struct kymo_error err = {0};

	(void)number;
	(void)plan;
	(void)argc;
	(void)argv;
	sql_made_clear(cursor);
	ky_vec_foreach(&table->sql->set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->events, event)
			if (sql_made_add_class(cursor, *event) < 0)
				return SQLITE_NOMEM;
	cursor->is_over = !cursor->classes.len;
	if (cursor->is_over)
		return SQLITE_OK;
	ky_selection_init(&selection);
	selection.events = table->shape == KY_SQL_CALLS ? calls : switches;
	selection.n_events = table->shape == KY_SQL_CALLS ? 2 : 1;
	/* A trace may have entries without exits. */
	if (ky_flow_open_selected(table->sql->set, &selection, &cursor->flow, &err) < 0) {
		if (err.code != KYMO_E_INVALID)
			return ky_sql_fail(table, &err);
		cursor->is_over = true;
		return SQLITE_OK;
	}
	return sql_made_advance(cursor);
}

static int sql_made_next(sqlite3_vtab_cursor *base)
{
	return sql_made_advance((struct made_cursor *)base);
}

static int sql_made_eof(sqlite3_vtab_cursor *base)
{
	return ((struct made_cursor *)base)->is_over;
}

static int sql_made_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
	*row = ((struct made_cursor *)base)->row;
	return SQLITE_OK;
}

static void sql_made_text(sqlite3_context *context, const char *text)
{
	ky_sqlite.sqlite3_result_text(context, text ? text : "", -1, SQLITE_TRANSIENT);
}

static int sql_made_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	const struct made_cursor *cursor = (const struct made_cursor *)base;
	const char *name = sql_made_table(cursor)->columns.data[number].name;
	const struct made_row *row = &cursor->row_now;
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {
		{"time", row->begin_ns}, {"end", row->end_ns},
		{"tid", row->tid},	 {"cpu", row->cpu},
		{"ret", row->ret},	 {"prio", row->prio},
		{"state", row->state},	 {"duration", row->end_ns - row->begin_ns},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(numbers[i].name, name) == 0) {
			ky_sqlite.sqlite3_result_int64(context, numbers[i].value);
			return SQLITE_OK;
		}
	sql_made_text(context, strcmp(name, "host") == 0   ? row->host
			       : strcmp(name, "comm") == 0 ? row->comm
							   : row->name);
	return SQLITE_OK;
}

const struct sqlite3_module ky_sql_made_module = {
	.iVersion = 1,
	.xConnect = ky_sql_connect,
	.xBestIndex = sql_made_best_index,
	.xDisconnect = ky_sql_disconnect,
	.xDestroy = ky_sql_disconnect,
	.xOpen = sql_made_open,
	.xClose = sql_made_close,
	.xFilter = sql_made_filter,
	.xNext = sql_made_next,
	.xEof = sql_made_eof,
	.xColumn = sql_made_column,
	.xRowid = sql_made_rowid,
};
