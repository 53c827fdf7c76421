/* SPDX-License-Identifier: MIT */
/* What traces consist of: messages, losses, hosts and clocks. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/loss.h"
#include "sql/sql-sources.h"

/* ---- log ------------------------------------------------------------------------------ */

enum {
	LOG_TIME,
	LOG_LEVEL,
	LOG_PROGRAM,
	LOG_PID,
	LOG_TID,
	LOG_MESSAGE,
	LOG_NAME,
	LOG_STREAM,
	LOG_HOST,
};

static const struct ky_sql_column log_columns[] = {
	KY_SQL_BEGIN_COL("ns since 1970"),
	KY_SQL_COL("level", "TEXT", "the severity: as the log has it, or the event's log level"),
	KY_SQL_COL("program", "TEXT", "the program's name"),
	KY_SQL_COL("pid", "INTEGER", "the process"),
	KY_SQL_COL("tid", "INTEGER", "the thread"),
	KY_SQL_COL("message", "TEXT", "the text"),
	KY_SQL_COL("name", "TEXT", "the event's name"),
	KY_SQL_COL("stream", "TEXT", "the data stream's file"),
	KY_SQL_HOST_COL,
};

/* Where an event class has them. */
struct log_class {
	struct ky_handle message, level, program, pid, tid;
};

struct logs {
	struct ky_map classes; /* struct ky_event_class * -> struct log_class * */
	struct ky_arena arena;
};

static void sql_streams_find(struct ky_handle *handle, const struct ky_event_class *cls,
			     const char *const *names)
{
	for (; *names && !handle->cls; names++)
		(void)ky_handle_find_any(handle, cls, *names);
}

static bool sql_streams_is_text(const struct ky_handle *handle)
{
	return handle->cls &&
	       (handle->cls->kind == KY_FIELD_STRING || handle->cls->kind == KY_FIELD_TEXT);
}

static int sql_streams_add_log(struct logs *logs, const struct ky_event_class *event)
{
	static const char *const messages[] = {"message", "msg", "MESSAGE", NULL};
	static const char *const levels[] = {"severity", "level", "priority", "PRIORITY", NULL};
	static const char *const programs[] = {"program", "SYSLOG_IDENTIFIER", "procname", "comm",
					       NULL};
	static const char *const pids[] = {"pid", "vpid", "_PID", NULL};
	static const char *const tids[] = {"tid", "vtid", NULL};
	struct log_class found = {{0}}, *cls;

	for (size_t i = 0; messages[i] && !found.message.cls; i++)
		(void)ky_handle_find(&found.message, event, KY_SCOPE_PAYLOAD, messages[i]);
	if (!sql_streams_is_text(&found.message))
		return 0;
	sql_streams_find(&found.level, event, levels);
	sql_streams_find(&found.program, event, programs);
	sql_streams_find(&found.pid, event, pids);
	sql_streams_find(&found.tid, event, tids);
	cls = ky_arena_memdup(&logs->arena, &found, sizeof(found));
	return cls ? ky_map_set(&logs->classes, (uintptr_t)event, cls) : KYMO_E_MEMORY;
}

static bool sql_streams_wants_log(const struct ky_sql_pass *pass, const struct ky_event_class *cls)
{
	return ky_map_get(&((const struct logs *)pass->own)->classes, (uintptr_t)cls) != NULL;
}

static int sql_streams_open_logs(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct logs *logs = calloc(1, sizeof(*logs));
	int ret = 0;

	if (!logs)
		return ky_error_nomem(err);
	pass->own = logs;
	ky_map_init(&logs->classes);
	ky_arena_init(&logs->arena);
	ky_vec_foreach(&pass->table->sql->set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->events, event)
			if (ret >= 0)
				ret = sql_streams_add_log(logs, *event);
	if (ret < 0)
		return ky_error_nomem(err);
	return ky_sql_pass_flow(pass, sql_streams_wants_log, err);
}

static void sql_streams_close_logs(struct ky_sql_pass *pass)
{
	struct logs *logs = pass->own;

	if (!logs)
		return;
	ky_map_fini(&logs->classes);
	ky_arena_fini(&logs->arena);
	free(logs);
}

/* A text, the label of a number, or the number. */
static void sql_streams_put_any(struct ky_sql_pass *pass, struct ky_sql_cell *cell,
				const struct ky_event *event, const struct ky_handle *handle)
{
	const char *text;
	size_t len;

	if (sql_streams_is_text(handle)) {
		text = ky_get_text(event, handle, &len);
		ky_sql_put_text(&pass->rows, cell, text, len);
	} else if (handle->cls) {
		uint64_t value = ky_get_u64(event, handle, 0);

		text = handle->cls->num.is_enum ? ky_enum_label(handle->cls, value) : NULL;
		if (text)
			ky_sql_put_name(cell, text);
		else
			ky_sql_put(cell, (int64_t)value);
	}
}

static void sql_streams_put_level(struct ky_sql_pass *pass, struct ky_sql_cell *cell,
				  const struct ky_event *event, const struct log_class *cls)
{
	static const char *const levels[] = {"emergency", "alert",  "critical", "error",
					     "warning",	  "notice", "info",	"debug"};
	int64_t level = event->cls->has_loglevel ? event->cls->loglevel : -1;

	if (cls->level.cls)
		sql_streams_put_any(pass, cell, event, &cls->level);
	else if (level >= 0)
		ky_sql_put_name(cell, levels[level < 7 ? level : 7]);
	if (cell->type != KY_SQL_INTEGER)
		return;
	level = cell->integer;
	*cell = (struct ky_sql_cell){.type = KY_SQL_NULL};
	if (level >= 0)
		ky_sql_put_name(cell, levels[level < 7 ? level : 7]);
}

static int sql_streams_put_log(struct ky_sql_pass *pass, const struct ky_event *event,
			       const struct log_class *cls)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_time(&row[LOG_TIME], event->ns);
	sql_streams_put_level(pass, &row[LOG_LEVEL], event, cls);
	sql_streams_put_any(pass, &row[LOG_PROGRAM], event, &cls->program);
	sql_streams_put_any(pass, &row[LOG_PID], event, &cls->pid);
	sql_streams_put_any(pass, &row[LOG_TID], event, &cls->tid);
	sql_streams_put_any(pass, &row[LOG_MESSAGE], event, &cls->message);
	ky_sql_put_name(&row[LOG_NAME], event->cls->name);
	ky_sql_put_name(&row[LOG_STREAM], event->packet->stream->name);
	ky_sql_put_name(&row[LOG_HOST], ky_sql_host(pass->table->sql, event));
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_streams_take_logs(struct ky_sql_pass *pass, const struct ky_batch *batch,
				 struct kymo_error *err)
{
	const struct logs *logs = pass->own;

	for (size_t i = 0; i < batch->n_events; i++) {
		const struct ky_event *event = &batch->events[i];
		const struct log_class *cls = ky_map_get(&logs->classes, (uintptr_t)event->cls);

		if (cls && sql_streams_put_log(pass, event, cls) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

const struct ky_sql_source ky_sql_source_log = {
	.name = "log",
	.about = "messages: of logs, of kymo_printf(), of other events with a text, by time",
	.columns = log_columns,
	.n_columns = sizeof(log_columns) / sizeof(*log_columns),
	.open = sql_streams_open_logs,
	.take = sql_streams_take_logs,
	.close = sql_streams_close_logs,
};

/* ---- loss ----------------------------------------------------------------------------- */

enum { LOSS_TIME, LOSS_END, LOSS_EVENTS, LOSS_PACKETS, LOSS_CPU, LOSS_STREAM, LOSS_HOST };

static const struct ky_sql_column loss_columns[] = {
	KY_SQL_BEGIN_COL("the end of the packet before, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "the end of the packet that tells of it, ns since 1970"),
	KY_SQL_COL("events", "INTEGER", "how many events were lost; 0: only packets are missing"),
	KY_SQL_COL("packets", "INTEGER", "how many packets are missing"),
	KY_SQL_COL("cpu", "INTEGER", "the CPU"),
	KY_SQL_COL("stream", "TEXT", "the data stream's file"),
	KY_SQL_HOST_COL,
};

static int sql_streams_put_loss(struct ky_sql_pass *pass, const struct ky_loss *loss)
{
	const struct ky_stream *stream = loss->stream;
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_time(&row[LOSS_TIME], loss->begin_ns);
	ky_sql_put_time(&row[LOSS_END], loss->end_ns);
	ky_sql_put(&row[LOSS_EVENTS], (int64_t)loss->events);
	ky_sql_put(&row[LOSS_PACKETS], (int64_t)loss->packets);
	if (stream->has_cpu_id)
		ky_sql_put(&row[LOSS_CPU], stream->cpu_id);
	ky_sql_put_name(&row[LOSS_STREAM], stream->name);
	ky_sql_put_name(&row[LOSS_HOST],
			ky_map_get(&pass->table->sql->hosts, (uintptr_t)stream->trace->cls));
	return ky_sql_rows_keep(&pass->rows);
}

/* Headers of packets tell: no event is decoded. */
static int sql_streams_losses_of(struct ky_sql_pass *pass, const struct ky_stream *stream,
				 struct kymo_error *err)
{
	struct ky_packet_list packets = KY_VEC_INIT;
	struct ky_loss_tracker tracker;
	int ret = stream->cls ? ky_stream_packets(stream, &packets, err) : 0, status = 0;

	ky_loss_tracker_init(&tracker);
	ky_vec_foreach(&packets, entry) {
		const struct ky_packet packet = {
			.stream_class = stream->cls,
			.has_discarded = entry->has_discarded,
			.discarded = entry->discarded,
			.has_sequence = entry->has_sequence,
			.sequence = entry->sequence,
			.end_ns = entry->has_times ? entry->end_ns : INT64_MIN,
		};
		struct ky_loss loss;

		if (status >= 0 && ky_loss_tracker_packet(&tracker, stream, &packet, &loss))
			status = sql_streams_put_loss(pass, &loss);
	}
	ky_vec_fini(&packets);
	return status < 0 ? status : ret;
}

static int sql_streams_open_losses(struct ky_sql_pass *pass, struct kymo_error *err)
{
	ky_vec_foreach(&pass->table->sql->set->streams, stream) {
		struct kymo_error own = {0};
		int ret = sql_streams_losses_of(pass, *stream, &own);

		if (ret == KYMO_E_MEMORY)
			return ky_error_nomem(err);
		if (ret < 0 && !pass->damage.code)
			pass->damage = own;
	}
	return 0;
}

const struct ky_sql_source ky_sql_source_loss = {
	.name = "loss",
	.about = "lost events and packets, stream by stream",
	.columns = loss_columns,
	.n_columns = sizeof(loss_columns) / sizeof(*loss_columns),
	.open = sql_streams_open_losses,
};

/* ---- host ----------------------------------------------------------------------------- */

enum {
	HOST_HOST,
	HOST_PATH,
	HOST_DOMAIN,
	HOST_SYSNAME,
	HOST_KERNEL,
	HOST_TRACER,
	HOST_VERSION,
	HOST_STREAMS,
	HOST_EVENTS,
	HOST_UUID,
};

static const struct ky_sql_column host_columns[] = {
	KY_SQL_HOST_COL,
	KY_SQL_COL("path", "TEXT", "the trace's directory"),
	KY_SQL_COL("domain", "TEXT", "'kernel', 'ust', or what the trace says"),
	KY_SQL_COL("sysname", "TEXT", "the operating system"),
	KY_SQL_COL("kernel_release", "TEXT", "the kernel's release"),
	KY_SQL_COL("tracer", "TEXT", "the tracer's name"),
	KY_SQL_COL("tracer_version", "TEXT", "its version"),
	KY_SQL_COL("streams", "INTEGER", "how many data streams the trace has"),
	KY_SQL_COL("event_types", "INTEGER", "how many kinds of events its metadata describes"),
	KY_SQL_COL("uuid", "TEXT", "the trace's UUID"),
};

static const char *sql_streams_env(const struct ky_trace_class *cls, const char *name)
{
	const struct ky_env *env = ky_env_find(cls, name);

	return env && env->is_text ? env->text : NULL;
}

static void sql_streams_put_version(struct ky_sql_pass *pass, struct ky_sql_cell *cell,
				    const struct ky_trace_class *cls)
{
	const struct ky_env *major = ky_env_find(cls, "tracer_major");
	const struct ky_env *minor = ky_env_find(cls, "tracer_minor");
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (!major || major->is_text || !minor || minor->is_text)
		return;
	ky_strbuf_addi(&text, major->number);
	ky_strbuf_addc(&text, '.');
	ky_strbuf_addi(&text, minor->number);
	ky_sql_put_text(&pass->rows, cell, ky_strbuf_text(&text), text.len);
	ky_strbuf_fini(&text);
}

static int sql_streams_put_trace(struct ky_sql_pass *pass, const struct ky_trace *trace)
{
	const struct ky_trace_class *cls = trace->cls;
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_name(&row[HOST_HOST], ky_map_get(&pass->table->sql->hosts, (uintptr_t)cls));
	ky_sql_put_name(&row[HOST_PATH], trace->path);
	ky_sql_put_name(&row[HOST_DOMAIN], sql_streams_env(cls, "domain"));
	ky_sql_put_name(&row[HOST_SYSNAME], sql_streams_env(cls, "sysname"));
	ky_sql_put_name(&row[HOST_KERNEL], sql_streams_env(cls, "kernel_release"));
	ky_sql_put_name(&row[HOST_TRACER], sql_streams_env(cls, "tracer_name"));
	sql_streams_put_version(pass, &row[HOST_VERSION], cls);
	ky_sql_put(&row[HOST_STREAMS], (int64_t)trace->streams.len);
	ky_sql_put(&row[HOST_EVENTS], (int64_t)cls->events.len);
	if (cls->has_uuid)
		ky_sql_put_uuid(&pass->rows, &row[HOST_UUID], cls->uuid);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_streams_open_hosts(struct ky_sql_pass *pass, struct kymo_error *err)
{
	ky_vec_foreach(&pass->table->sql->set->traces, trace)
		if (sql_streams_put_trace(pass, *trace) < 0)
			return ky_error_nomem(err);
	return 0;
}

const struct ky_sql_source ky_sql_source_host = {
	.name = "host",
	.about = "the traces and their machines",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(*host_columns),
	.open = sql_streams_open_hosts,
};

/* ---- clock ---------------------------------------------------------------------------- */

enum {
	CLOCK_NAME,
	CLOCK_ABOUT,
	CLOCK_FREQUENCY,
	CLOCK_ORIGIN,
	CLOCK_IS_UNIX,
	CLOCK_PRECISION,
	CLOCK_UUID,
	CLOCK_PATH,
	CLOCK_HOST,
};

static const struct ky_sql_column clock_columns[] = {
	KY_SQL_COL("name", "TEXT", "the clock's name"),
	KY_SQL_COL("description", "TEXT", "what it is"),
	KY_SQL_COL("frequency", "INTEGER", "cycles per second"),
	KY_SQL_COL("origin", "INTEGER", "the time of its zero, ns since 1970"),
	KY_SQL_COL("is_unix", "INTEGER", "1: times are since 1970; 0: since an unknown time"),
	KY_SQL_COL("precision", "INTEGER", "cycles; NULL: unknown"),
	KY_SQL_COL("uuid", "TEXT", "clocks with the same UUID can be compared"),
	KY_SQL_COL("path", "TEXT", "the trace's directory"),
	KY_SQL_HOST_COL,
};

static int sql_streams_put_clock(struct ky_sql_pass *pass, const struct ky_trace *trace,
				 const struct ky_clock_class *clock)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_name(&row[CLOCK_NAME], clock->name);
	ky_sql_put_name(&row[CLOCK_ABOUT], clock->description);
	ky_sql_put(&row[CLOCK_FREQUENCY], (int64_t)clock->frequency_hz);
	if (!clock->origin_wraps)
		ky_sql_put(&row[CLOCK_ORIGIN], clock->base_ns);
	ky_sql_put(&row[CLOCK_IS_UNIX], clock->is_unix_epoch);
	if (clock->precision_cycles)
		ky_sql_put(&row[CLOCK_PRECISION], (int64_t)clock->precision_cycles);
	if (clock->has_uuid)
		ky_sql_put_uuid(&pass->rows, &row[CLOCK_UUID], clock->uuid);
	ky_sql_put_name(&row[CLOCK_PATH], trace->path);
	ky_sql_put_name(&row[CLOCK_HOST],
			ky_map_get(&pass->table->sql->hosts, (uintptr_t)trace->cls));
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_streams_open_clocks(struct ky_sql_pass *pass, struct kymo_error *err)
{
	ky_vec_foreach(&pass->table->sql->set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->clocks, clock)
			if (sql_streams_put_clock(pass, *trace, *clock) < 0)
				return ky_error_nomem(err);
	return 0;
}

const struct ky_sql_source ky_sql_source_clock = {
	.name = "clock",
	.about = "the clocks of the traces",
	.columns = clock_columns,
	.n_columns = sizeof(clock_columns) / sizeof(*clock_columns),
	.open = sql_streams_open_clocks,
};
