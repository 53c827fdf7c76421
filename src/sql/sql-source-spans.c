/* SPDX-License-Identifier: MIT */
/* Spans of programs, and quantities that change over time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/addresses/trace-symbols.h"
#include "analysis/state/span-pairs.h"
#include "base/error.h"
#include "sql/sql-sources.h"

/* ---- span ----------------------------------------------------------------------------- */

#define DEPTH_MAX 256u
/* So many names of functions are kept for the rows. */
#define FUNCTIONS_MAX 1000000u

enum {
	SPAN_TIME,
	SPAN_END,
	SPAN_DURATION,
	SPAN_NAME,
	SPAN_DEPTH,
	SPAN_TID,
	SPAN_PID,
	SPAN_COMM,
	SPAN_FIELDS,
	SPAN_STREAM,
	SPAN_HOST,
	SPAN_ADDRESS,
};

static const struct ky_sql_column span_columns[] = {
	KY_SQL_BEGIN_COL("when it began, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it ended, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_COL("name", "TEXT",
		   "the events' name without _begin, _end, _entry, _exit; of calls "
		   "(-finstrument-functions) the function, or its address"),
	KY_SQL_COL("depth", "INTEGER", "in how many spans of the thread it lies"),
	KY_SQL_THREAD_COLS("", "the thread"),
	KY_SQL_COL("fields", "TEXT", "context and fields of the first event, as JSON"),
	KY_SQL_COL("stream", "TEXT", "the data stream's file"),
	KY_SQL_HOST_COL,
	KY_SQL_COL("address", "INTEGER", "of calls (-finstrument-functions): the function's"),
};

struct span_class {
	const char *name; /* of the span */
	bool begins;
	const char *host;
	struct ky_handle tid, pid, comm;
	struct ky_handle address; /* of the function, if it is a call of one */
};

struct span_open {
	const char *name;     /* of the class */
	const char *function; /* NULL: the span is no call, or its function has no name */
	uint64_t address;     /* 0: of no function */
	int64_t begin_ns;
	char *fields; /* NULL: nobody asks */
};

/* The spans of a thread, or of a stream. */
struct span_stack {
	uint32_t depth, beyond;
	struct span_open open[DEPTH_MAX];
};

struct spans {
	struct ky_map classes; /* struct ky_event_class * -> struct span_class * */
	struct ky_map stacks;  /* -> struct span_stack * */
	struct ky_arena arena;
	KY_VEC(struct span_stack *) all;
	struct ky_trace_symbols *symbols; /* NULL: nobody asks for names of functions */
	struct ky_names functions;	  /* their names, once each */
};

static void sql_spans_find_context(struct span_class *own, const struct ky_event_class *cls)
{
	static const char *const names[][2] = {
		{"vtid", "tid"}, {"vpid", "pid"}, {"procname", "comm"}};
	static const enum ky_scope scopes[] = {KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_STREAM_CONTEXT};
	struct ky_handle *const handles[] = {&own->tid, &own->pid, &own->comm};

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 4 && !handles[i]->cls; j++)
			ky_handle_find(handles[i], cls, scopes[j & 1], names[i][j >> 1]);
}

/* Events of gcc -finstrument-functions have the function's address. */
static bool sql_spans_is_call(const char *event)
{
	static const char provider[] = "lttng_ust_cyg_profile";

	return strncmp(event, provider, sizeof(provider) - 1) == 0 && strstr(event, ":func_");
}

static int sql_spans_add_class(struct ky_sql_pass *pass, const struct ky_names *known,
			       const struct ky_event_class *event)
{
	struct spans *spans = pass->own;
	struct span_class *cls;
	bool begins = false;
	size_t len = ky_span_pair(known, event->name, &begins);

	if (!len)
		return 0;
	cls = ky_arena_new(&spans->arena, struct span_class);
	if (!cls)
		return KYMO_E_MEMORY;
	cls->name = ky_arena_strndup(&spans->arena, event->name, len);
	cls->begins = begins;
	cls->host = ky_map_get(&pass->table->sql->hosts, (uintptr_t)event->stream->trace);
	sql_spans_find_context(cls, event);
	if (sql_spans_is_call(event->name))
		(void)ky_handle_find(&cls->address, event, KY_SCOPE_PAYLOAD, "addr");
	return cls->name ? ky_map_set(&spans->classes, (uintptr_t)event, cls) : KYMO_E_MEMORY;
}

/* Of one trace; what the kernel's events tell is in other tables. */
static int sql_spans_add_trace(struct ky_sql_pass *pass, const struct ky_host *host)
{
	const unsigned int kernel = KY_CAN_SWITCH | KY_CAN_SYSCALLS | KY_CAN_IRQ | KY_CAN_SOFTIRQ;
	const struct ky_trace_class *trace = host->trace->cls;
	struct ky_names known;
	int ret = 0;

	if (host->abilities & kernel)
		return 0;
	ky_names_init(&known);
	ky_vec_foreach(&trace->events, event)
		if (ret >= 0)
			ret = ky_names_set(&known, (*event)->name, &known);
	ky_vec_foreach(&trace->events, event)
		if (ret >= 0)
			ret = sql_spans_add_class(pass, &known, *event);
	ky_names_fini(&known);
	return ret;
}

static bool sql_spans_wants(const struct ky_sql_pass *pass, const struct ky_event_class *cls)
{
	const struct spans *spans = pass->own;

	return ky_map_get(&spans->classes, (uintptr_t)cls) != NULL;
}

static bool sql_spans_has_calls(const struct spans *spans)
{
	size_t at = 0;
	uint64_t key;
	void *cls;

	while (ky_map_next(&spans->classes, &at, &key, &cls))
		if (((const struct span_class *)cls)->address.cls)
			return true;
	return false;
}

/* Without symbols, calls have addresses: no reason to stop. */
static int sql_spans_open_symbols(struct ky_sql_pass *pass, struct kymo_error *err)
{
	const struct ky_sql *sql = pass->table->sql;
	const struct ky_trace_symbols_options options = {.is_over = sql->stop,
							 .over_data = sql->stop_data};
	struct spans *spans = pass->own;
	int ret;

	if (!ky_sql_rows_uses(&pass->rows, SPAN_NAME) || !sql_spans_has_calls(spans))
		return KYMO_OK;
	ret = ky_trace_symbols_open(sql->set, &options, &spans->symbols, err);
	if (ret == KYMO_E_MEMORY)
		return ret;
	ky_error_clear(err);
	return KYMO_OK;
}

static int sql_spans_open(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct spans *spans = calloc(1, sizeof(*spans));
	struct ky_model *model;
	int ret = 0;

	if (!spans)
		return ky_error_nomem(err);
	pass->own = spans;
	ky_map_init(&spans->classes);
	ky_map_init(&spans->stacks);
	ky_arena_init(&spans->arena);
	ky_names_init(&spans->functions);
	model = ky_model_new(pass->table->sql->set, err);
	if (!model)
		return ky_error_nomem(err);
	for (size_t i = 0; i < ky_model_n_hosts(model) && ret >= 0; i++)
		ret = sql_spans_add_trace(pass, ky_model_host(model, i));
	ky_model_free(model);
	if (ret < 0)
		return ky_error_nomem(err);
	if (!spans->classes.len)
		return 0;
	ret = sql_spans_open_symbols(pass, err);
	if (ret < 0)
		return ret;
	return ky_sql_pass_flow(pass, sql_spans_wants, err);
}

static struct span_stack *sql_spans_stack(struct spans *spans, const struct ky_event *event,
					  int32_t tid)
{
	uint64_t key = tid > 0 ? ky_hash_u64((uintptr_t)event->cls->stream->trace) ^ (uint32_t)tid
			       : ky_hash_u64((uintptr_t)event->packet->stream) ^ UINT32_MAX;
	struct span_stack *stack = ky_map_get(&spans->stacks, key);

	if (stack)
		return stack;
	stack = ky_arena_new(&spans->arena, struct span_stack);
	return stack && ky_map_set(&spans->stacks, key, stack) == 0 &&
			       ky_vec_push(&spans->all, stack) == 0
		       ? stack
		       : NULL;
}

/* Its name outlives the event. NULL: it has none, or memory is out. */
static const char *sql_spans_function(struct spans *spans, const struct ky_event *event,
				      uint64_t address)
{
	const struct ky_symbols_frame *frames;
	size_t n = spans->symbols ? ky_trace_symbols_resolve(spans->symbols, event, address, false,
							     &frames)
				  : 0;
	const char *name;

	if (!n || !frames[n - 1].function)
		return NULL;
	name = ky_names_get(&spans->functions, frames[n - 1].function);
	if (name || spans->functions.len >= FUNCTIONS_MAX)
		return name;
	name = ky_arena_strdup(&spans->arena, frames[n - 1].function);
	if (name && ky_names_set(&spans->functions, name, (void *)(uintptr_t)name) < 0)
		return NULL;
	return name;
}

static int sql_spans_begin(struct ky_sql_pass *pass, struct span_stack *stack,
			   const struct span_class *cls, const struct ky_event *event)
{
	struct span_open *open;
	struct ky_strbuf fields = KY_STRBUF_INIT;

	if (stack->depth == DEPTH_MAX) {
		stack->beyond++;
		return 0;
	}
	open = &stack->open[stack->depth++];
	*open = (struct span_open){.name = cls->name, .begin_ns = event->ns};
	if (cls->address.cls) {
		open->address = ky_get_u64(event, &cls->address, 0);
		open->function = sql_spans_function(pass->own, event, open->address);
	}
	if (!ky_sql_rows_uses(&pass->rows, SPAN_FIELDS))
		return 0;
	ky_sql_fields_json(&fields, event);
	open->fields = ky_strbuf_take(&fields);
	return open->fields ? 0 : KYMO_E_MEMORY;
}

static void sql_spans_put_name(struct ky_sql_pass *pass, struct ky_sql_cell *row,
			       const struct span_open *open)
{
	char hex[24];

	if (open->address && !open->function) {
		(void)snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)open->address);
		ky_sql_put_text(&pass->rows, &row[SPAN_NAME], hex, strlen(hex));
	} else {
		ky_sql_put_name(&row[SPAN_NAME], open->function ? open->function : open->name);
	}
	if (open->address)
		ky_sql_put(&row[SPAN_ADDRESS], (int64_t)open->address);
}

static int sql_spans_put(struct ky_sql_pass *pass, const struct span_stack *stack,
			 const struct span_class *cls, const struct ky_event *event, int32_t tid)
{
	const struct span_open *open = &stack->open[stack->depth];
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);
	const char *comm;
	size_t len;

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[SPAN_TIME], open->begin_ns);
	ky_sql_put(&row[SPAN_END], event->ns);
	ky_sql_put(&row[SPAN_DURATION], (int64_t)((uint64_t)event->ns - (uint64_t)open->begin_ns));
	sql_spans_put_name(pass, row, open);
	ky_sql_put(&row[SPAN_DEPTH], stack->depth);
	if (tid > 0)
		ky_sql_put(&row[SPAN_TID], tid);
	if (cls->pid.cls)
		ky_sql_put(&row[SPAN_PID], ky_get_i64(event, &cls->pid, 0));
	if (cls->comm.cls) {
		comm = ky_get_text(event, &cls->comm, &len);
		ky_sql_put_text(&pass->rows, &row[SPAN_COMM], comm, len);
	}
	if (open->fields)
		ky_sql_put_text(&pass->rows, &row[SPAN_FIELDS], open->fields, strlen(open->fields));
	ky_sql_put_name(&row[SPAN_STREAM], event->packet->stream->name);
	ky_sql_put_name(&row[SPAN_HOST], cls->host);
	return ky_sql_rows_keep(&pass->rows);
}

/* The end of a call may have the function's address. */
static bool sql_spans_ends(const struct span_open *open, const struct span_class *cls,
			   const struct ky_event *event)
{
	return strcmp(open->name, cls->name) == 0 &&
	       (!cls->address.cls || ky_get_u64(event, &cls->address, 0) == open->address);
}

/* An end belongs to the innermost begin of its name; those above have no end. */
static int sql_spans_end(struct ky_sql_pass *pass, struct span_stack *stack,
			 const struct span_class *cls, const struct ky_event *event, int32_t tid)
{
	uint32_t at = stack->depth;
	int ret;

	if (stack->beyond) {
		stack->beyond--;
		return 0;
	}
	while (at > 0 && !sql_spans_ends(&stack->open[at - 1], cls, event))
		at--;
	if (!at)
		return 0;
	for (uint32_t i = at; i < stack->depth; i++) {
		free(stack->open[i].fields);
		stack->open[i].fields = NULL;
	}
	stack->depth = at - 1;
	ret = sql_spans_put(pass, stack, cls, event, tid);
	free(stack->open[at - 1].fields);
	stack->open[at - 1].fields = NULL;
	return ret;
}

static int sql_spans_take(struct ky_sql_pass *pass, const struct ky_batch *batch,
			  struct kymo_error *err)
{
	struct spans *spans = pass->own;
	int status = 0;

	for (size_t i = 0; i < batch->n_events && status >= 0; i++) {
		const struct ky_event *event = &batch->events[i];
		const struct span_class *cls = ky_map_get(&spans->classes, (uintptr_t)event->cls);
		struct span_stack *stack;
		int32_t tid;

		if (!cls)
			continue;
		tid = (int32_t)ky_get_i64(event, &cls->tid, 0);
		stack = sql_spans_stack(spans, event, tid);
		status = !stack	       ? KYMO_E_MEMORY
			 : cls->begins ? sql_spans_begin(pass, stack, cls, event)
				       : sql_spans_end(pass, stack, cls, event, tid);
	}
	return status < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static void sql_spans_close(struct ky_sql_pass *pass)
{
	struct spans *spans = pass->own;

	if (!spans)
		return;
	ky_vec_foreach(&spans->all, stack)
		for (uint32_t i = 0; i < (*stack)->depth; i++)
			free((*stack)->open[i].fields);
	ky_vec_fini(&spans->all);
	ky_trace_symbols_close(spans->symbols);
	ky_names_fini(&spans->functions);
	ky_map_fini(&spans->classes);
	ky_map_fini(&spans->stacks);
	ky_arena_fini(&spans->arena);
	free(spans);
}

const struct ky_sql_source ky_sql_source_span = {
	.name = "span",
	.about = "spans of programs (NAME_begin and NAME_end), in the order of their ends",
	.columns = span_columns,
	.n_columns = sizeof(span_columns) / sizeof(*span_columns),
	.open = sql_spans_open,
	.take = sql_spans_take,
	.close = sql_spans_close,
};

/* ---- counter -------------------------------------------------------------------------- */

enum {
	COUNTER_TIME,
	COUNTER_NAME,
	COUNTER_VALUE,
	COUNTER_UNIT,
	COUNTER_CPU,
	COUNTER_PID,
	COUNTER_OBJECT,
	COUNTER_HOST
};

static const struct ky_sql_column counter_columns[] = {
	KY_SQL_BEGIN_COL("when the value changed, ns since 1970"),
	KY_SQL_COL("name", "TEXT", "'frequency', 'waiting threads', 'memory', 'requests'"),
	KY_SQL_COL("value", "INTEGER", "the value from there on"),
	KY_SQL_COL("unit", "TEXT", "of the value: 'kHz', 'threads', 'bytes', 'requests'"),
	KY_SQL_COL("cpu", "INTEGER", "of a CPU: which"),
	KY_SQL_COL("pid", "INTEGER", "of a process: its id"),
	KY_SQL_COL("object", "TEXT", "of a process: its name; of a disk: its name"),
	KY_SQL_HOST_COL,
};

static struct ky_sql_cell *sql_spans_counter(struct ky_sql_pass *pass, int64_t ns, const char *name,
					     const char *unit, int64_t value)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return NULL;
	ky_sql_put_time(&row[COUNTER_TIME], ns);
	ky_sql_put_name(&row[COUNTER_NAME], name);
	ky_sql_put_name(&row[COUNTER_UNIT], unit);
	ky_sql_put(&row[COUNTER_VALUE], value);
	return row;
}

static int sql_spans_on_queued(void *data, const struct ky_cpu *cpu, int64_t ns)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row =
		sql_spans_counter(pass, ns, "waiting threads", "threads", cpu->n_waiting);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[COUNTER_CPU], cpu->id);
	ky_sql_put_host(&row[COUNTER_HOST], cpu->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_spans_on_issued(void *data, const struct ky_disk *disk, int64_t ns)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row =
		sql_spans_counter(pass, ns, "requests", "requests", disk->n_issued);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_name(&row[COUNTER_OBJECT], disk->name);
	ky_sql_put_host(&row[COUNTER_HOST], disk->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_spans_on_memory(void *data, const struct ky_memory *memory)
{
	struct ky_sql_pass *pass = data;
	const struct ky_space *space = memory->space;
	struct ky_sql_cell *row;
	uint64_t bytes = 0;

	if (memory->kind != KY_MEMORY_RSS || !space || !space->thread)
		return 0;
	for (int i = 0; i < KY_RSS_MEMBERS; i++)
		bytes += i == KY_RSS_SWAP ? 0 : space->bytes[i];
	row = sql_spans_counter(pass, memory->ns, "memory", "bytes", (int64_t)bytes);
	if (!row)
		return KYMO_E_MEMORY;
	if (space->thread->pid != KY_UNKNOWN)
		ky_sql_put(&row[COUNTER_PID], space->thread->pid);
	ky_sql_put_text(&pass->rows, &row[COUNTER_OBJECT], space->thread->comm,
			strlen(space->thread->comm));
	ky_sql_put_host(&row[COUNTER_HOST], memory->host);
	return ky_sql_rows_keep(&pass->rows);
}

static bool sql_spans_is_frequency(const struct ky_event_class *cls)
{
	return strcmp(cls->name, "power_cpu_frequency") == 0 ||
	       strcmp(cls->name, "cpu_frequency") == 0;
}

/* Frequencies are no state of the model. */
static int sql_spans_put_frequency(struct ky_sql_pass *pass, const struct ky_event *event)
{
	struct ky_handle khz = {0}, cpu = {0};
	struct ky_sql_cell *row;

	(void)ky_handle_find(&khz, event->cls, KY_SCOPE_PAYLOAD, "state");
	(void)ky_handle_find(&cpu, event->cls, KY_SCOPE_PAYLOAD, "cpu_id");
	row = sql_spans_counter(pass, event->ns, "frequency", "kHz", ky_get_i64(event, &khz, 0));
	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[COUNTER_CPU], ky_get_i64(event, &cpu, 0));
	ky_sql_put_name(&row[COUNTER_HOST], ky_sql_host(pass->table->sql, event));
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_spans_listen_counters(struct ky_sql_pass *pass, struct ky_listener *listener,
				     struct kymo_error *err)
{
	(void)pass;
	(void)err;
	listener->queued = sql_spans_on_queued;
	listener->issued = sql_spans_on_issued;
	listener->memory = sql_spans_on_memory;
	return 0;
}

static int sql_spans_take_counters(struct ky_sql_pass *pass, const struct ky_batch *batch,
				   struct kymo_error *err)
{
	for (size_t i = 0; i < batch->n_events; i++)
		if (sql_spans_is_frequency(batch->events[i].cls) &&
		    sql_spans_put_frequency(pass, &batch->events[i]) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

const struct ky_sql_source ky_sql_source_counter = {
	.name = "counter",
	.about = "quantities that change: frequencies, waiting threads, memory, requests",
	.columns = counter_columns,
	.n_columns = sizeof(counter_columns) / sizeof(*counter_columns),
	.listen = sql_spans_listen_counters,
	.take = sql_spans_take_counters,
};
