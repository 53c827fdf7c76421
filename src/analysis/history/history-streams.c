/* SPDX-License-Identifier: MIT */
/*
 * The state history: rows of data streams, with the density of their events, and of spans: two events whose
 * names end in _begin and _end, or _entry and _exit, where the trace has both. Spans are of the thread that the context
 * names, else of the stream. Kernel events are the state model's.
 */
#include "analysis/history/history-build.h"

#include <stdio.h>
#include <string.h>

#include "analysis/state/span-pairs.h"

/* Threads of a machine that have rows without spans or states. */
#define USERS_MAX 65536

/* ---- which events are spans --------------------------------------------------------------------- */

static void history_streams_find_context(struct ky_span_class *own,
					 const struct ky_event_class *cls)
{
	static const char *const names[][2] = {
		{"vtid", "tid"}, {"vpid", "pid"}, {"procname", "comm"}};
	static const enum ky_scope scopes[] = {KY_SCOPE_EVENT_CONTEXT, KY_SCOPE_STREAM_CONTEXT};
	struct ky_handle *const handles[] = {&own->tid, &own->pid, &own->comm};

	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 4 && !handles[i]->cls; j++)
			ky_handle_find(handles[i], cls, scopes[j & 1], names[i][j >> 1]);
	}
}

static int find_span(struct ky_history_builder *builder, const struct ky_names *known,
		     const struct ky_event_class *cls, struct ky_span_class *own)
{
	bool begins = false;
	size_t len = ky_span_pair(known, cls->name, &begins);
	char name[256];

	if (ky_is_function_event(cls->name, &begins)) {
		own->what = begins ? KY_SPAN_CALLS : KY_SPAN_RETURNS;
		ky_handle_find(&own->address, cls, KY_SCOPE_PAYLOAD, "addr");
		history_streams_find_context(own, cls);
		return 0;
	}
	if (!len)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)len, cls->name);
	own->what = begins ? KY_SPAN_BEGINS : KY_SPAN_ENDS;
	own->name = ky_history_writer_name(&builder->writer, name);
	history_streams_find_context(own, cls);
	return own->name == UINT64_MAX ? KYMO_E_MEMORY : 0;
}

/* Events of programs without a span: their threads are rows, for the marks of a picture. */
static void history_streams_find_thread(const struct ky_event_class *cls, struct ky_span_class *own)
{
	if (own->what != KY_SPAN_NOT)
		return;
	history_streams_find_context(own, cls);
	if (own->tid.cls)
		own->what = KY_SPAN_THREAD;
}

/* The frequency of a CPU, as LTTng calls the event, or as the kernel does. */
static bool is_frequency(const struct ky_event_class *cls, struct ky_span_class *own)
{
	if (strcmp(cls->name, "power_cpu_frequency") != 0 &&
	    strcmp(cls->name, "cpu_frequency") != 0)
		return false;
	if (!ky_handle_find(&own->khz, cls, KY_SCOPE_PAYLOAD, "state") ||
	    !ky_handle_find(&own->cpu, cls, KY_SCOPE_PAYLOAD, "cpu_id"))
		return false;
	own->what = KY_SPAN_FREQUENCY;
	return true;
}

static int find_user(struct ky_history_builder *builder, const struct ky_names *known,
		     const struct ky_event_class *cls, struct ky_span_class *own)
{
	int status = find_span(builder, known, cls, own);

	history_streams_find_thread(cls, own);
	return status;
}

/* Of the trace of @host. *@classes: NULL when none of them matters. */
static int find_spans(struct ky_history_builder *builder, const struct ky_host *host,
		      struct ky_span_class **classes)
{
	const struct ky_trace_class *trace = host->trace->cls;
	bool is_kernel =
		host->abilities & (KY_CAN_SWITCH | KY_CAN_SYSCALLS | KY_CAN_IRQ | KY_CAN_SOFTIRQ);
	struct ky_names known;
	bool any = false;
	int status = 0;

	ky_names_init(&known);
	*classes = calloc(trace->events.len + 1, sizeof(**classes));
	if (!*classes)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < trace->events.len && status >= 0; i++)
		status = ky_names_set(&known, trace->events.data[i]->name, *classes);
	for (size_t i = 0; i < trace->events.len && status >= 0; i++) {
		const struct ky_event_class *cls = trace->events.data[i];

		if (is_frequency(cls, &(*classes)[cls->index]))
			;
		else if (!is_kernel)
			status = find_user(builder, &known, cls, &(*classes)[cls->index]);
		any |= (*classes)[cls->index].what != KY_SPAN_NOT;
	}
	ky_names_fini(&known);
	if (!any) {
		free(*classes);
		*classes = NULL;
	}
	return status;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static int history_streams_add_stream(struct ky_history_builder *builder,
				      const struct ky_stream *stream)
{
	struct ky_stream_row *own = &builder->streams[stream->index];
	char name[KY_ROW_NAME_BYTES + 1];
	size_t host = 0;

	while (ky_model_host(builder->model, host)->trace != stream->trace)
		host++;
	own->machine = builder->machine_of[host];
	own->host = ky_model_host(builder->model, host);
	own->classes = builder->span_classes[host];
	own->since_ns = own->last_ns = INT64_MIN;
	snprintf(name, sizeof(name), "%.120s%s%.120s", ky_trace_name(stream->trace),
		 ky_trace_name(stream->trace)[0] ? "/" : "", stream->name);
	own->row = ky_history_writer_row(&builder->writer, KY_ROW_STREAM, own->machine->row->id,
					 stream->index, name);
	return own->row ? 0 : KYMO_E_MEMORY;
}

int ky_history_streams_init(struct ky_history_builder *builder)
{
	size_t n = ky_model_n_hosts(builder->model);
	int status = 0;

	builder->streams = calloc(builder->set->streams.len + 1, sizeof(*builder->streams));
	builder->span_classes = calloc(n + 1, sizeof(*builder->span_classes));
	if (!builder->streams || !builder->span_classes)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n && status >= 0; i++)
		status = find_spans(builder, ky_model_host(builder->model, i),
				    &builder->span_classes[i]);
	ky_vec_foreach(&builder->set->streams, stream) {
		if (status >= 0)
			status = history_streams_add_stream(builder, *stream);
	}
	return status;
}

void ky_history_streams_fini(struct ky_history_builder *builder)
{
	for (size_t i = 0; builder->span_classes && i < ky_model_n_hosts(builder->model); i++)
		free(builder->span_classes[i]);
	free(builder->span_classes);
	free(builder->streams);
	ky_function_names_free(builder->functions);
}

/* ---- spans ------------------------------------------------------------------------------------------- */

/* The thread's row: the state model's, or one of its own. NULL: out of memory. */
static struct ky_open_row *user_row(struct ky_history_builder *builder, struct ky_machine *machine,
				    const struct ky_event *event, const struct ky_span_class *cls,
				    int32_t tid)
{
	struct ky_open_row *row = ky_history_thread_row(builder, machine, tid), *process;
	int32_t pid = (int32_t)ky_get_i64(event, &cls->pid, 0);
	char comm[KY_COMM_SIZE] = "";
	size_t len = 0;
	const char *text;

	if (row)
		return row;
	text = ky_get_text(event, &cls->comm, &len);
	snprintf(comm, sizeof(comm), "%.*s", (int)(len < sizeof(comm) ? len : sizeof(comm) - 1),
		 text);
	process = pid > 0 ? ky_history_process_row(builder, machine, pid) : machine->row;
	row = process ? ky_history_writer_row(&builder->writer, KY_ROW_THREAD, process->id, tid,
					      comm)
		      : NULL;
	if (!row || (process != machine->row && !process->name[0] &&
		     ky_open_row_name(&builder->writer, process, comm) < 0))
		return NULL;
	return row;
}

static struct ky_span_row *new_spans(struct ky_history_builder *builder, struct ky_open_row *row)
{
	struct ky_span_row *spans =
		row ? ky_arena_new(&builder->writer.arena, struct ky_span_row) : NULL;

	if (spans)
		spans->row = row;
	return spans;
}

/* Where the event's span belongs. NULL: out of memory. */
static struct ky_span_row *spans_of(struct ky_history_builder *builder,
				    struct ky_stream_row *stream, const struct ky_event *event,
				    const struct ky_span_class *cls)
{
	int32_t tid = (int32_t)ky_get_i64(event, &cls->tid, 0);
	struct ky_map *users = &stream->machine->users;
	struct ky_span_row *spans;

	if (tid <= 0) {
		if (!stream->spans)
			stream->spans = new_spans(builder, stream->row);
		return stream->spans;
	}
	spans = ky_map_get(users, (uint32_t)tid);
	if (spans)
		return spans;
	spans = new_spans(builder, user_row(builder, stream->machine, event, cls, tid));
	return spans && ky_map_set(users, (uint32_t)tid, spans) == 0 ? spans : NULL;
}

static int end_span(struct ky_history_builder *builder, struct ky_span_row *spans, int64_t ns)
{
	uint32_t depth = --spans->depth;
	const struct ky_span *span = &spans->open[depth];
	struct ky_open_row **row = &spans->rows[depth];

	if (!*row)
		*row = ky_history_writer_row(&builder->writer, KY_ROW_SPANS, spans->row->id, depth,
					     "spans");
	if (!*row)
		return KYMO_E_MEMORY;
	return ky_open_row_add(&builder->writer, *row, span->begin_ns, ns,
			       ky_state(KY_STATE_SPAN, span->name));
}

/* Of a function: that of its address; 0: the event does not tell. UINT64_MAX: out of memory. */
static uint64_t history_streams_name(struct ky_history_builder *builder,
				     const struct ky_event *event, const struct ky_span_class *cls)
{
	uint64_t address;

	if (cls->what != KY_SPAN_CALLS && cls->what != KY_SPAN_RETURNS)
		return cls->name;
	if (!cls->address.cls || !ky_get_number(event, &cls->address, &address))
		return 0;
	if (!builder->functions)
		builder->functions = ky_function_names_new(builder);
	if (!builder->functions)
		return UINT64_MAX;
	return ky_function_name(builder->functions, &builder->writer, event,
				ky_get_i64(event, &cls->pid, 0), address);
}

/* A return without an address is that of the last call. */
static bool history_streams_is_end(const struct ky_span *span, const struct ky_span_class *cls,
				   uint64_t name)
{
	bool returns = cls->what == KY_SPAN_RETURNS;

	return span->is_call == returns && (span->name == name || (returns && !cls->address.cls));
}

static int on_span(struct ky_history_builder *builder, struct ky_stream_row *stream,
		   const struct ky_event *event, const struct ky_span_class *cls)
{
	struct ky_span_row *spans = spans_of(builder, stream, event, cls);
	bool is_call = cls->what == KY_SPAN_CALLS;
	uint64_t name = history_streams_name(builder, event, cls);
	uint32_t at;

	if (!spans || name == UINT64_MAX)
		return KYMO_E_MEMORY;
	if (cls->what == KY_SPAN_BEGINS || is_call) {
		if (spans->depth == KY_SPAN_DEPTH)
			spans->beyond++;
		else
			spans->open[spans->depth++] = (struct ky_span){name, event->ns, is_call};
		return 0;
	}
	if (spans->beyond) {
		spans->beyond--;
		return 0;
	}
	at = spans->depth;
	while (at > 0 && !history_streams_is_end(&spans->open[at - 1], cls, name))
		at--;
	/* An end without a begin; or the ends of those above it are missing: it is unknown when they ended. */
	if (!at)
		return 0;
	spans->depth = at;
	return end_span(builder, spans, event->ns);
}

/* ---- events --------------------------------------------------------------------------------------------- */

static int history_streams_put_events(struct ky_history_builder *builder, struct ky_stream_row *own)
{
	uint64_t n = own->n == KY_HISTORY_EVENTS ? 0 : own->n;
	int status = ky_open_row_add(&builder->writer, own->row, own->since_ns, own->last_ns,
				     ky_state(KY_STATE_EVENTS, n));

	own->since_ns = own->last_ns;
	own->n = 0;
	return status;
}

/* A thread of a program has a row, even if the kernel's events do not tell of it. */
static int on_thread(struct ky_history_builder *builder, struct ky_stream_row *stream,
		     const struct ky_event *event, const struct ky_span_class *cls)
{
	int64_t tid = ky_get_i64(event, &cls->tid, 0);

	if (tid == stream->last_tid || tid <= 0 || tid > INT32_MAX)
		return 0;
	stream->last_tid = tid;
	if (stream->machine->users.len >= USERS_MAX)
		return 0;
	return spans_of(builder, stream, event, cls) ? 0 : KYMO_E_MEMORY;
}

static int on_class(struct ky_history_builder *builder, struct ky_stream_row *stream,
		    const struct ky_event *event, const struct ky_span_class *cls)
{
	if (cls->what == KY_SPAN_THREAD)
		return on_thread(builder, stream, event, cls);
	return cls->what == KY_SPAN_FREQUENCY ? ky_history_frequency(builder, stream, event, cls)
					      : on_span(builder, stream, event, cls);
}

static int feed_run(struct ky_history_builder *builder, const struct ky_batch *run)
{
	struct ky_stream_row *own = &builder->streams[run->stream->index];
	int status = 0;

	for (size_t i = 0; i < run->n_events && status >= 0; i++) {
		const struct ky_event *event = &run->events[i];

		if (event->ns == INT64_MIN)
			continue;
		if (own->since_ns == INT64_MIN)
			own->since_ns = event->ns;
		if (event->ns > own->last_ns)
			own->last_ns = event->ns;
		if (++own->n == KY_HISTORY_EVENTS)
			status = history_streams_put_events(builder, own);
		if (own->classes && own->classes[event->cls->index].what && status >= 0)
			status = on_class(builder, own, event, &own->classes[event->cls->index]);
	}
	return status;
}

int ky_history_streams_feed(struct ky_history_builder *builder, const struct ky_batch *batch)
{
	struct ky_batch rest = *batch, run;
	int status = 0;

	rest.loss = NULL;
	while (status >= 0 && ky_batch_run(&rest, &run))
		status = feed_run(builder, &run);
	return status;
}

static int close_spans(struct ky_history_builder *builder, struct ky_span_row *spans)
{
	int status = 0;

	while (spans && spans->depth && status >= 0)
		status = end_span(builder, spans, builder->end_ns);
	return status;
}

int ky_history_streams_flush(struct ky_history_builder *builder, bool over)
{
	int status = 0;

	for (size_t i = 0; i < builder->set->streams.len && status >= 0; i++) {
		if (builder->streams[i].n)
			status = history_streams_put_events(builder, &builder->streams[i]);
		if (over && status >= 0)
			status = close_spans(builder, builder->streams[i].spans);
	}
	for (size_t i = 0; over && i < builder->n_machines && status >= 0; i++) {
		size_t pos = 0;
		uint64_t tid;
		void *spans;

		while (status >= 0 && ky_map_next(&builder->machines[i].users, &pos, &tid, &spans))
			status = close_spans(builder, spans);
	}
	return status;
}
