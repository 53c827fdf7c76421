/* SPDX-License-Identifier: MIT */
/* Bundles of the kernel's events, in Perfetto's two forms, and trees of processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/perfetto/perfetto-trace.h"

#define BUNDLE_EVENTS (1u << 22)
#define CPUS_MAX      4096u /* each has a packet in memory */

/* An event of a bundle: a message, or a place in the columns of the compact form. */
struct bundle_event {
	int64_t ns;
	const uint8_t *data; /* NULL: of the columns */
	size_t len;
	uint32_t index;
	bool is_waking;
};

/* A column of the compact form: a packed list of numbers, or their values one by one. */
struct column {
	uint64_t *values;
	size_t n;
};

enum {
	SWITCH_TIME = 1,
	SWITCH_STATE,
	SWITCH_TID,
	SWITCH_PRIO,
	COMMS,
	SWITCH_COMM,
	WAKING_TIME,
	WAKING_TID,
	WAKING_CPU,
	WAKING_PRIO,
	WAKING_COMM,
	N_COLUMNS,
};

struct bundle {
	struct ky_perfetto *perfetto;
	struct column columns[N_COLUMNS];
	KY_VEC(struct ky_pb_field) comms;
	KY_VEC(struct bundle_event) events;
	struct ky_perfetto_cpu *cpu;
};

/* ---- the compact form ------------------------------------------------------------------- */

static int perfetto_ftrace_number(struct column *column, uint64_t value)
{
	uint64_t *grown = column->values;

	if (column->n >= BUNDLE_EVENTS)
		return KYMO_E_MEMORY;
	/* Powers of two. */
	if (!(column->n & (column->n - 1))) {
		grown = realloc(grown, (column->n ? column->n * 2 : 1) * sizeof(*grown));
		if (!grown)
			return KYMO_E_MEMORY;
		column->values = grown;
	}
	column->values[column->n++] = value;
	return KYMO_OK;
}

static int perfetto_ftrace_column(struct column *column, const struct ky_pb_field *field)
{
	const uint8_t *at = field->data, *end;
	uint64_t value;

	if (!field->has_bytes || !at)
		return field->has_bytes ? KYMO_OK : perfetto_ftrace_number(column, field->value);
	end = at + field->len;
	while (at < end && ky_pb_varint(&at, end, &value)) {
		if (perfetto_ftrace_number(column, value) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static uint64_t perfetto_ftrace_at(const struct bundle *bundle, int column, size_t index)
{
	const struct column *from = &bundle->columns[column];

	return index < from->n ? from->values[index] : 0;
}

static struct ky_pb_field perfetto_ftrace_comm(const struct bundle *bundle, int column,
					       size_t index)
{
	uint64_t at = perfetto_ftrace_at(bundle, column, index);

	return at < bundle->comms.len ? bundle->comms.data[at] : (struct ky_pb_field){0};
}

/* Times are differences, each to the one before. */
static int perfetto_ftrace_times(struct bundle *bundle, int column, bool is_waking)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < bundle->columns[column].n; i++) {
		struct bundle_event event = {.index = (uint32_t)i, .is_waking = is_waking};

		ns += bundle->columns[column].values[i];
		event.ns = (int64_t)ns;
		if (bundle->events.len >= BUNDLE_EVENTS || ky_vec_push(&bundle->events, event) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static int perfetto_ftrace_read_compact(struct bundle *bundle, const struct ky_pb_field *compact)
{
	struct ky_pb_reader reader = ky_pb_reader(compact->data, compact->len);
	struct ky_pb_field field;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && ky_pb_next(&reader, &field)) {
		if (field.number == COMMS && field.has_bytes)
			ret = bundle->comms.len < BUNDLE_EVENTS ? ky_vec_push(&bundle->comms, field)
								: KYMO_E_MEMORY;
		else if (field.number && field.number < N_COLUMNS && field.number != COMMS)
			ret = perfetto_ftrace_column(&bundle->columns[field.number], &field);
	}
	if (ret == KYMO_OK)
		ret = perfetto_ftrace_times(bundle, SWITCH_TIME, false);
	return ret ? ret : perfetto_ftrace_times(bundle, WAKING_TIME, true);
}

static int perfetto_ftrace_waking(struct bundle *bundle, const struct bundle_event *event)
{
	struct ky_pb_field comm = perfetto_ftrace_comm(bundle, WAKING_COMM, event->index);
	struct ky_log_value values[] = {
		ky_log_text("comm", (const char *)comm.data, comm.len),
		ky_log_number("tid", (int32_t)perfetto_ftrace_at(bundle, WAKING_TID, event->index)),
		ky_log_number("prio",
			      (int32_t)perfetto_ftrace_at(bundle, WAKING_PRIO, event->index) - 100),
		ky_log_number("target_cpu",
			      (int32_t)perfetto_ftrace_at(bundle, WAKING_CPU, event->index)),
	};

	return ky_perfetto_ftrace_put(bundle->perfetto, "sched_waking", event->ns,
				      bundle->cpu->is_known ? bundle->cpu->tid : 0, values, 4);
}

/* A switch tells what comes; what leaves is what came before. Of the first one, that is not known. */
static int perfetto_ftrace_switch(struct bundle *bundle, const struct bundle_event *event)
{
	struct ky_pb_field comm = perfetto_ftrace_comm(bundle, SWITCH_COMM, event->index);
	struct ky_perfetto_cpu *cpu = bundle->cpu;
	int32_t tid = (int32_t)perfetto_ftrace_at(bundle, SWITCH_TID, event->index);
	int32_t prio = (int32_t)perfetto_ftrace_at(bundle, SWITCH_PRIO, event->index);
	struct ky_log_value values[] = {
		ky_log_text("prev_comm", cpu->comm, cpu->comm_len),
		ky_log_number("prev_tid", cpu->tid),
		ky_log_number("prev_prio", cpu->prio - 100),
		ky_log_number("prev_state",
			      (int64_t)perfetto_ftrace_at(bundle, SWITCH_STATE, event->index)),
		ky_log_text("next_comm", (const char *)comm.data, comm.len),
		ky_log_number("next_tid", tid),
		ky_log_number("next_prio", prio - 100),
	};
	int ret = KYMO_OK;

	if (cpu->is_known)
		ret = ky_perfetto_ftrace_put(bundle->perfetto, "sched_switch", event->ns, cpu->tid,
					     values, 7);
	cpu->is_known = true;
	cpu->tid = tid;
	cpu->prio = prio;
	cpu->comm_len = comm.len < sizeof(cpu->comm) ? comm.len : sizeof(cpu->comm);
	if (cpu->comm_len)
		memcpy(cpu->comm, comm.data, cpu->comm_len);
	return ret;
}

/* ---- bundles ---------------------------------------------------------------------------- */

static int perfetto_ftrace_add(struct bundle *bundle, const struct ky_pb_field *message)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	struct bundle_event event = {.data = message->data, .len = message->len};
	struct ky_pb_field field;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes) {
			event.ns = (int64_t)field.value;
			break;
		}
	}
	return bundle->events.len < BUNDLE_EVENTS ? ky_vec_push(&bundle->events, event)
						  : KYMO_E_MEMORY;
}

static int perfetto_ftrace_compare(const void *a, const void *b)
{
	const struct bundle_event *one = a, *other = b;

	if (one->ns != other->ns)
		return one->ns < other->ns ? -1 : 1;
	if (one->data != other->data)
		return one->data < other->data ? -1 : 1;
	return one->index < other->index ? -1 : one->index > other->index;
}

static struct ky_perfetto_cpu *perfetto_ftrace_cpu(struct ky_perfetto *perfetto, uint64_t number)
{
	struct ky_perfetto_cpu *cpu = ky_map_get(&perfetto->cpus, number + 1);

	if (cpu)
		return cpu;
	cpu = ky_arena_new(&perfetto->arena, struct ky_perfetto_cpu);
	return cpu && ky_map_set(&perfetto->cpus, number + 1, cpu) == 0 ? cpu : NULL;
}

static int perfetto_ftrace_threads(struct ky_perfetto *perfetto, int64_t ns)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&perfetto->threads, thread) {
		struct ky_log_value values[] = {
			ky_log_number("tid", thread->tid),
			ky_log_number("pid", thread->pid),
			ky_log_number("ppid", thread->ppid),
			ky_log_text("name", thread->name, strlen(thread->name)),
		};

		if (ret == KYMO_OK)
			ret = ky_perfetto_ftrace_put(perfetto, "lttng_statedump_process_state", ns,
						     0, values, 4);
	}
	perfetto->threads.len = 0;
	return ret;
}

static int perfetto_ftrace_emit(struct bundle *bundle)
{
	int ret = KYMO_OK;

	bundle->cpu = perfetto_ftrace_cpu(bundle->perfetto, bundle->perfetto->kernel.stream);
	if (!bundle->cpu)
		return ky_error_nomem(bundle->perfetto->err);

	qsort(bundle->events.data, bundle->events.len, sizeof(*bundle->events.data),
	      perfetto_ftrace_compare);
	ret = perfetto_ftrace_threads(bundle->perfetto, bundle->events.data[0].ns);
	ky_vec_foreach(&bundle->events, event) {
		if (ret < 0)
			break;
		ret = event->data	 ? ky_perfetto_ftrace_event(bundle->perfetto, event->data,
								    event->len, event->ns)
		      : event->is_waking ? perfetto_ftrace_waking(bundle, event)
					 : perfetto_ftrace_switch(bundle, event);
	}
	return ret;
}

static int perfetto_ftrace_set_cpu(struct ky_perfetto *perfetto, uint64_t number)
{
	if (number >= CPUS_MAX)
		return ky_error_set(perfetto->err, KYMO_E_LIMIT,
				    "CPU %" PRIu64 " is above the limit of %u CPUs", number,
				    CPUS_MAX);
	perfetto->kernel.stream = (uint32_t)number;
	return KYMO_OK;
}

int ky_perfetto_ftrace(struct ky_perfetto *perfetto, const uint8_t *data, size_t len)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	struct bundle bundle = {.perfetto = perfetto};
	struct ky_pb_field field;
	int ret = KYMO_OK;

	perfetto->kernel.stream = 0;
	while (ret == KYMO_OK && ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes)
			ret = perfetto_ftrace_set_cpu(perfetto, field.value);
		else if (field.number == 2 && field.has_bytes)
			ret = perfetto_ftrace_add(&bundle, &field);
		else if (field.number == 4 && field.has_bytes)
			ret = perfetto_ftrace_read_compact(&bundle, &field);
	}
	ky_perfetto_check(perfetto, &reader);
	if (ret == KYMO_E_MEMORY)
		ret = ky_error_nomem(perfetto->err);
	if (ret == KYMO_OK && bundle.events.len)
		ret = perfetto_ftrace_emit(&bundle);
	for (int i = 0; i < N_COLUMNS; i++)
		free(bundle.columns[i].values);
	ky_vec_fini(&bundle.comms);
	ky_vec_fini(&bundle.events);
	return ret;
}

/* ---- processes -------------------------------------------------------------------------- */

/*
 * Threads wait for the next bundle: its first event has a time that fits into the stream of its CPU, which the times of these packets do
 * not.
 */
static int perfetto_ftrace_one(struct ky_perfetto *perfetto, const struct ky_pb_field *message,
			       bool is_thread)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	struct ky_perfetto_thread thread = {.name = ""};
	struct ky_pb_field field;
	int64_t numbers[4] = {0};
	void *pid;

	while (ky_pb_next(&reader, &field)) {
		if (!field.has_bytes && field.number <= 3)
			numbers[field.number] = (int32_t)field.value;
		else if (field.has_bytes && field.number == (is_thread ? 2 : 3) && !*thread.name)
			thread.name = ky_perfetto_text(perfetto, &field);
		if (!thread.name)
			return KYMO_E_MEMORY;
	}
	thread.tid = numbers[1];
	thread.pid = is_thread ? numbers[3] : numbers[1];
	thread.ppid = is_thread ? 0 : numbers[2];
	/* Traces tell the same again and again. */
	pid = (void *)((uintptr_t)(uint32_t)thread.pid + 1);
	if (thread.tid <= 0 || ky_map_get(&perfetto->told, (uint64_t)thread.tid) == pid)
		return KYMO_OK;
	if (ky_map_set(&perfetto->told, (uint64_t)thread.tid, pid) < 0)
		return KYMO_E_MEMORY;
	return ky_vec_push(&perfetto->threads, thread);
}

int ky_perfetto_processes(struct ky_perfetto *perfetto, const uint8_t *data, size_t len)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	struct ky_pb_field field;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && ky_pb_next(&reader, &field)) {
		if (field.has_bytes && (field.number == 1 || field.number == 2))
			ret = perfetto_ftrace_one(perfetto, &field, field.number == 2);
	}
	ky_perfetto_check(perfetto, &reader);
	return ret < 0 ? ky_error_nomem(perfetto->err) : KYMO_OK;
}
