/* SPDX-License-Identifier: MIT */
/* System calls of the state model, and threads on CPUs from a switch to the next. */
#include <stdlib.h>
#include <string.h>

#include "analysis/state/errno-name.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "sql/sql-sources.h"

/* ---- syscall -------------------------------------------------------------------------- */

enum {
	CALL_TIME,
	CALL_END,
	CALL_DURATION,
	CALL_NAME,
	CALL_TID,
	CALL_PID,
	CALL_COMM,
	CALL_CPU,
	CALL_RET,
	CALL_ERROR,
	CALL_ARGS,
	CALL_HOST,
};

static const struct ky_sql_column call_columns[] = {
	KY_SQL_BEGIN_COL("when the call began, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it returned, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_COL("name", "TEXT", "the call's name, such as 'openat'"),
	KY_SQL_THREAD_COLS("", "the thread"),
	KY_SQL_COL("cpu", "INTEGER", "the CPU where it returned"),
	KY_SQL_COL("ret", "INTEGER", "the result; -1 to -4095: the number of an error"),
	KY_SQL_COL("error", "TEXT", "the error's name, such as 'ENOENT'; NULL: none"),
	KY_SQL_COL("args", "TEXT", "the arguments: 'fd=3, count=100'"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static void sql_calls_put_args(struct ky_sql_pass *pass, struct ky_sql_cell *cell,
			       const struct ky_thread *thread)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_call_args args;

	ky_call_args_get(thread, &args);
	if (!args.plan)
		return;
	ky_call_args_text(&out, &args);
	if (!ky_strbuf_failed(&out))
		ky_sql_put_text(&pass->rows, cell, ky_strbuf_text(&out), out.len);
	ky_strbuf_fini(&out);
}

static void sql_calls_put_result(struct ky_sql_pass *pass, struct ky_sql_cell *row,
				 const struct ky_call *call)
{
	const char *error;

	if (!call->has_ret)
		return;
	ky_sql_put(&row[CALL_RET], call->ret);
	if (!ky_is_error(call->ret))
		return;
	error = ky_errno_name((int)-call->ret);
	if (error)
		ky_sql_put_name(&row[CALL_ERROR], error);
	else
		ky_sql_put_text(&pass->rows, &row[CALL_ERROR], "?", 1);
}

static int sql_calls_on_call(void *data, const struct ky_call *call)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row;

	if (call->outcome != KY_CALL_DONE)
		return 0;
	row = ky_sql_rows_new(&pass->rows);
	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[CALL_TIME], call->begin_ns);
	ky_sql_put(&row[CALL_END], call->end_ns);
	ky_sql_put(&row[CALL_DURATION],
		   (int64_t)((uint64_t)call->end_ns - (uint64_t)call->begin_ns));
	ky_sql_put_name(&row[CALL_NAME], ky_model_syscall_name(pass->model, call->syscall));
	ky_sql_put_thread(&pass->rows, &row[CALL_TID], call->thread);
	if (call->cpu_id != UINT32_MAX)
		ky_sql_put(&row[CALL_CPU], call->cpu_id);
	sql_calls_put_result(pass, row, call);
	if (ky_sql_rows_uses(&pass->rows, CALL_ARGS))
		sql_calls_put_args(pass, &row[CALL_ARGS], call->thread);
	ky_sql_put_host(&row[CALL_HOST], call->thread->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_calls_listen(struct ky_sql_pass *pass, struct ky_listener *listener,
			    struct kymo_error *err)
{
	(void)err;
	listener->call = sql_calls_on_call;
	listener->arguments = ky_sql_rows_uses(&pass->rows, CALL_ARGS);
	return 0;
}

const struct ky_sql_source ky_sql_source_syscall = {
	.name = "syscall",
	.about = "system calls that returned, in the order of their returns",
	.columns = call_columns,
	.n_columns = sizeof(call_columns) / sizeof(*call_columns),
	.listen = sql_calls_listen,
	.by_end = true,
};

/* ---- cpu_slice ------------------------------------------------------------------------ */

enum {
	SLICE_TIME,
	SLICE_END,
	SLICE_DURATION,
	SLICE_CPU,
	SLICE_TID,
	SLICE_COMM,
	SLICE_PRIO,
	SLICE_STATE,
	SLICE_HOST,
};

static const struct ky_sql_column slice_columns[] = {
	KY_SQL_BEGIN_COL("when the thread came to the CPU, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it left the CPU, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_COL("cpu", "INTEGER", "the CPU"),
	KY_SQL_COL("tid", "INTEGER", "the thread; 0: the CPU was idle"),
	KY_SQL_COL("comm", "TEXT", "the thread's name"),
	KY_SQL_COL("prio", "INTEGER", "its priority, as the event has it"),
	KY_SQL_COL("state", "INTEGER", "its state when it left; 0: it could have run on"),
	KY_SQL_HOST_COL,
};

/* What the table needs of an event class. */
struct slice_class {
	const char *host;
	struct ky_handle next_tid, next_comm, next_prio, prev_state;
};

/* The thread on a CPU. */
struct slice_open {
	int64_t begin_ns, tid, prio;
	bool is_known;
	char comm[17];
};

struct slices {
	struct ky_map classes; /* struct ky_event_class * -> struct slice_class * */
	struct ky_map open;    /* CPU of a host -> struct slice_open * */
	struct ky_arena arena, open_arena;
};

static bool sql_calls_is_switch(const struct ky_event_class *cls)
{
	return strcmp(cls->name, "sched_switch") == 0;
}

static int sql_calls_add_class(struct ky_sql_pass *pass, const struct ky_event_class *event)
{
	struct slices *slices = pass->own;
	struct slice_class *cls;

	if (!sql_calls_is_switch(event))
		return 0;
	cls = ky_arena_new(&slices->arena, struct slice_class);
	if (!cls)
		return KYMO_E_MEMORY;
	cls->host = ky_map_get(&pass->table->sql->hosts, (uintptr_t)event->stream->trace);
	if (!ky_handle_find(&cls->next_tid, event, KY_SCOPE_PAYLOAD, "next_tid"))
		(void)ky_handle_find(&cls->next_tid, event, KY_SCOPE_PAYLOAD, "next_pid");
	(void)ky_handle_find(&cls->next_comm, event, KY_SCOPE_PAYLOAD, "next_comm");
	(void)ky_handle_find(&cls->next_prio, event, KY_SCOPE_PAYLOAD, "next_prio");
	(void)ky_handle_find(&cls->prev_state, event, KY_SCOPE_PAYLOAD, "prev_state");
	return ky_map_set(&slices->classes, (uintptr_t)event, cls);
}

static bool sql_calls_wants(const struct ky_sql_pass *pass, const struct ky_event_class *cls)
{
	(void)pass;
	return sql_calls_is_switch(cls);
}

static int sql_calls_open_slices(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct slices *slices = calloc(1, sizeof(*slices));
	int ret = 0;

	if (!slices)
		return ky_error_nomem(err);
	pass->own = slices;
	ky_map_init(&slices->classes);
	ky_map_init(&slices->open);
	ky_arena_init(&slices->arena);
	ky_arena_init(&slices->open_arena);
	ky_vec_foreach(&pass->table->sql->set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->events, event)
			if (ret >= 0)
				ret = sql_calls_add_class(pass, *event);
	if (ret < 0)
		return ky_error_nomem(err);
	return ky_sql_pass_flow(pass, sql_calls_wants, err);
}

static struct slice_open *sql_calls_slot(struct slices *slices, const struct ky_event *event)
{
	/* Traces without a host's name have CPUs of their own, too. */
	uint64_t key =
		ky_hash_u64(event->cpu_id ^ ky_hash_u64((uintptr_t)event->cls->stream->trace));
	struct slice_open *open = ky_map_get(&slices->open, key);

	if (open)
		return open;
	open = ky_arena_new(&slices->open_arena, struct slice_open);
	return open && ky_map_set(&slices->open, key, open) == 0 ? open : NULL;
}

static int sql_calls_put_slice(struct ky_sql_pass *pass, const struct slice_open *open,
			       const struct slice_class *cls, const struct ky_event *event)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[SLICE_TIME], open->begin_ns);
	ky_sql_put(&row[SLICE_END], event->ns);
	ky_sql_put(&row[SLICE_DURATION], (int64_t)((uint64_t)event->ns - (uint64_t)open->begin_ns));
	if (event->cpu_id != UINT32_MAX)
		ky_sql_put(&row[SLICE_CPU], event->cpu_id);
	ky_sql_put(&row[SLICE_TID], open->tid);
	ky_sql_put(&row[SLICE_PRIO], open->prio);
	if (ky_sql_rows_uses(&pass->rows, SLICE_COMM))
		ky_sql_put_text(&pass->rows, &row[SLICE_COMM], open->comm, strlen(open->comm));
	ky_sql_put(&row[SLICE_STATE], ky_get_i64(event, &cls->prev_state, 0));
	row[SLICE_HOST] = (struct ky_sql_cell){.type = KY_SQL_TEXT, .is_borrowed = true};
	row[SLICE_HOST].len = (uint32_t)strlen(cls->host);
	row[SLICE_HOST].text = cls->host;
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_calls_switch(struct ky_sql_pass *pass, const struct slice_class *cls,
			    const struct ky_event *event)
{
	struct slice_open *open = sql_calls_slot(pass->own, event);
	const char *comm;
	size_t len;

	if (!open || (open->is_known && sql_calls_put_slice(pass, open, cls, event) < 0))
		return KYMO_E_MEMORY;
	open->is_known = true;
	open->begin_ns = event->ns;
	open->tid = ky_get_i64(event, &cls->next_tid, -1);
	open->prio = ky_get_i64(event, &cls->next_prio, 0);
	comm = ky_get_text(event, &cls->next_comm, &len);
	len = len < sizeof(open->comm) - 1 ? len : sizeof(open->comm) - 1;
	memcpy(open->comm, comm, len);
	open->comm[len] = '\0';
	return 0;
}

/* Lost events: the threads on the CPUs are unknown from there on. */
static void sql_calls_forget(struct slices *slices)
{
	ky_map_fini(&slices->open);
	ky_map_init(&slices->open);
	ky_arena_fini(&slices->open_arena);
	ky_arena_init(&slices->open_arena);
}

static int sql_calls_take_slices(struct ky_sql_pass *pass, const struct ky_batch *batch,
				 struct kymo_error *err)
{
	struct slices *slices = pass->own;

	if (batch->loss)
		sql_calls_forget(slices);
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct ky_event *event = &batch->events[i];
		const struct slice_class *cls = ky_map_get(&slices->classes, (uintptr_t)event->cls);

		if (cls && sql_calls_switch(pass, cls, event) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static void sql_calls_close_slices(struct ky_sql_pass *pass)
{
	struct slices *slices = pass->own;

	if (!slices)
		return;
	ky_map_fini(&slices->classes);
	ky_map_fini(&slices->open);
	ky_arena_fini(&slices->arena);
	ky_arena_fini(&slices->open_arena);
	free(slices);
}

const struct ky_sql_source ky_sql_source_cpu_slice = {
	.name = "cpu_slice",
	.about = "threads on CPUs, from a switch to the next, in the order of the ends",
	.columns = slice_columns,
	.n_columns = sizeof(slice_columns) / sizeof(*slice_columns),
	.open = sql_calls_open_slices,
	.take = sql_calls_take_slices,
	.close = sql_calls_close_slices,
};
