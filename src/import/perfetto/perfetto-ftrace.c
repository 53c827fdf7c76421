/* SPDX-License-Identifier: MIT */
/* Bundles of the kernel's events, in Perfetto's two forms, and trees of processes: with LTTng's names, so that reports read them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/ftrace/foreign-calls.h"
#include "import/perfetto/perfetto-trace.h"

#define FIELDS_MAX    32
#define BUNDLE_EVENTS (1u << 22)

enum value_kind {
	INT = 1,
	TEXT,
	PRIO, /* counts from 100 in the kernel */
};

struct known_field {
	uint8_t number;
	uint8_t kind;
	const char *name;
};

/* Messages by their number in FtraceEvent. */
static const struct known_event {
	uint32_t number;
	const char *name;
	struct known_field fields[8];
} known[] = {
	{3, "ftrace_print", {{2, TEXT, "buf"}}},
	{4,
	 "sched_switch",
	 {{1, TEXT, "prev_comm"},
	  {2, INT, "prev_tid"},
	  {3, PRIO, "prev_prio"},
	  {4, INT, "prev_state"},
	  {5, TEXT, "next_comm"},
	  {6, INT, "next_tid"},
	  {7, PRIO, "next_prio"}}},
	{11, "power_cpu_frequency", {{1, INT, "state"}, {2, INT, "cpu_id"}}},
	{13, "power_cpu_idle", {{1, INT, "state"}, {2, INT, "cpu_id"}}},
	{17,
	 "sched_wakeup",
	 {{1, TEXT, "comm"}, {2, INT, "tid"}, {3, PRIO, "prio"}, {5, INT, "target_cpu"}}},
	{20,
	 "sched_waking",
	 {{1, TEXT, "comm"}, {2, INT, "tid"}, {3, PRIO, "prio"}, {5, INT, "target_cpu"}}},
	{24, "irq_softirq_entry", {{1, INT, "vec"}}},
	{25, "irq_softirq_exit", {{1, INT, "vec"}}},
	{26, "irq_softirq_raise", {{1, INT, "vec"}}},
	{36, "irq_handler_entry", {{1, INT, "irq"}, {2, TEXT, "name"}}},
	{37, "irq_handler_exit", {{1, INT, "irq"}, {2, INT, "ret"}}},
	{114,
	 "sched_wakeup_new",
	 {{1, TEXT, "comm"}, {2, INT, "tid"}, {3, PRIO, "prio"}, {5, INT, "target_cpu"}}},
	{235,
	 "task_newtask",
	 {{1, INT, "tid"}, {2, TEXT, "comm"}, {3, INT, "clone_flags"}, {4, INT, "oom_score_adj"}}},
	{236,
	 "task_rename",
	 {{1, INT, "tid"}, {2, TEXT, "oldcomm"}, {3, TEXT, "newcomm"}, {4, INT, "oom_score_adj"}}},
	{237, "sched_process_exec", {{1, TEXT, "filename"}, {2, INT, "tid"}, {3, INT, "old_tid"}}},
	{238, "sched_process_exit", {{1, TEXT, "comm"}, {2, INT, "tid"}, {4, PRIO, "prio"}}},
	{239,
	 "sched_process_fork",
	 {{1, TEXT, "parent_comm"},
	  {2, INT, "parent_tid"},
	  {3, TEXT, "child_comm"},
	  {4, INT, "child_tid"}}},
	{240, "sched_process_free", {{1, TEXT, "comm"}, {2, INT, "tid"}, {3, PRIO, "prio"}}},
	{329, "raw_syscalls_sys_enter", {{1, INT, "id"}}},
	{330, "raw_syscalls_sys_exit", {{1, INT, "id"}, {2, INT, "ret"}}},
	{353,
	 "sched_pi_setprio",
	 {{1, TEXT, "comm"}, {2, PRIO, "newprio"}, {3, PRIO, "oldprio"}, {4, INT, "tid"}}},
	{491,
	 "sched_migrate_task",
	 {{1, TEXT, "comm"},
	  {2, INT, "tid"},
	  {3, PRIO, "prio"},
	  {4, INT, "orig_cpu"},
	  {5, INT, "dest_cpu"}}},
};

#define SYS_ENTER 329
#define SYS_EXIT  330
#define GENERIC	  327 /* an event that Perfetto does not know, with the names of its fields */

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

/* ---- events ----------------------------------------------------------------------------- */

static int perfetto_ftrace_put(struct ky_perfetto *perfetto, const char *name, int64_t ns,
			       int64_t tid, struct ky_log_value *values, size_t n)
{
	int ret = ky_log_begin(&perfetto->kernel, name, ns, values, n);

	if (ret < 0)
		return ret;
	ky_maker_number(perfetto->kernel.maker, (uint64_t)tid);
	return ky_log_put(&perfetto->kernel, values, n);
}

static void perfetto_ftrace_value(struct ky_log_value *value, const struct known_field *field,
				  const struct ky_pb_field *from)
{
	if (field->kind == TEXT)
		*value = ky_log_text(field->name, (const char *)from->data,
				     from->has_bytes ? from->len : 0);
	else
		*value = ky_log_number(field->name,
				       (int64_t)from->value - (field->kind == PRIO ? 100 : 0));
}

static const struct known_event *perfetto_ftrace_known(uint32_t number)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].number == number)
			return &known[i];
	}
	return NULL;
}

/* Fields that the message leaves out are 0 or empty. */
static int perfetto_ftrace_message(struct ky_perfetto *perfetto, const struct known_event *event,
				   const struct ky_pb_field *message, int64_t ns, int64_t tid)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	const struct ky_pb_field none = {0};
	struct ky_log_value values[8];
	struct ky_pb_field field;
	size_t n = 0;

	for (; n < 8 && event->fields[n].kind; n++)
		perfetto_ftrace_value(&values[n], &event->fields[n], &none);
	while (ky_pb_next(&reader, &field)) {
		for (size_t i = 0; i < n; i++) {
			if (event->fields[i].number == field.number)
				perfetto_ftrace_value(&values[i], &event->fields[i], &field);
		}
	}
	return perfetto_ftrace_put(perfetto, event->name, ns, tid, values, n);
}

static bool perfetto_ftrace_generic_field(const struct ky_pb_field *message,
					  struct ky_log_value *value)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	struct ky_pb_field field;

	*value = ky_log_number("", 0);
	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && field.has_bytes) {
			value->name = (const char *)field.data;
			value->name_len = field.len;
		} else if (field.number == 3 && field.has_bytes) {
			value->kind = KY_MAKER_TEXT;
			value->text = (const char *)field.data;
			value->len = field.len;
		} else if (field.number == 4 || field.number == 5) {
			value->kind = field.number == 4 ? KY_MAKER_S64 : KY_MAKER_U64;
			value->number = (int64_t)field.value;
		}
	}
	return value->name_len > 0 && value->name_len < 256;
}

static int perfetto_ftrace_generic(struct ky_perfetto *perfetto, const struct ky_pb_field *message,
				   int64_t ns, int64_t tid)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	struct ky_log_value values[FIELDS_MAX];
	struct ky_pb_field field;
	char name[256] = "event";
	size_t n = 0;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && field.has_bytes && field.len)
			snprintf(name, sizeof(name), "%.*s",
				 (int)(field.len < 255 ? field.len : 255),
				 (const char *)field.data);
		else if (field.number == 2 && field.has_bytes && n < FIELDS_MAX)
			n += perfetto_ftrace_generic_field(&field, &values[n]);
	}
	return perfetto_ftrace_put(perfetto, name, ns, tid, values, n);
}

/* "syscall_entry_openat"; NULL: the number has no name here, or memory is out. */
static const char *perfetto_ftrace_call_name(struct ky_perfetto *perfetto, uint64_t number,
					     bool is_exit)
{
	const char *name = ky_map_get(&perfetto->calls, number * 2 + is_exit + 1), *at;
	char made[128];

	if (name || !ky_foreign_call_is_known(number))
		return name;
	ky_strbuf_clear(&perfetto->scratch);
	if (!ky_foreign_call_format((uint32_t)number, is_exit, &perfetto->scratch))
		return NULL;
	at = strstr(ky_strbuf_text(&perfetto->scratch), is_exit ? "sys_exit_" : "sys_enter_");
	if (!at)
		return NULL;
	at += is_exit ? 9 : 10;
	snprintf(made, sizeof(made), "syscall_%s_%.*s", is_exit ? "exit" : "entry",
		 (int)strcspn(at, "\n"), at);
	name = ky_arena_strdup(&perfetto->arena, made);
	if (!name ||
	    ky_map_set(&perfetto->calls, number * 2 + is_exit + 1, (void *)(uintptr_t)name))
		return NULL;
	return name;
}

/* A system call of x86-64, or one that keeps its number. */
static int perfetto_ftrace_call(struct ky_perfetto *perfetto, const struct ky_pb_field *message,
				int64_t ns, int64_t tid)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	bool is_exit = message->number == SYS_EXIT;
	struct ky_log_value values[1];
	struct ky_pb_field field;
	const char *name;
	uint64_t id = 0;
	int64_t ret = 0;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1 && !field.has_bytes)
			id = field.value;
		else if (field.number == 2 && !field.has_bytes)
			ret = (int64_t)field.value;
	}
	name = perfetto_ftrace_call_name(perfetto, id, is_exit);
	if (!name)
		return perfetto_ftrace_message(perfetto, perfetto_ftrace_known(message->number),
					       message, ns, tid);
	values[0] = ky_log_number("ret", ret);
	return perfetto_ftrace_put(perfetto, name, ns, tid, values, is_exit);
}

static int perfetto_ftrace_event(struct ky_perfetto *perfetto, const struct bundle_event *event)
{
	struct ky_pb_reader reader = ky_pb_reader(event->data, event->len);
	const struct known_event *kind;
	struct ky_pb_field field, message = {0};
	int64_t tid = 0;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 2 && !field.has_bytes)
			tid = (int32_t)field.value;
		else if (field.has_bytes && !message.data)
			message = field;
	}
	if (!message.data)
		return KYMO_OK;
	if (message.number == GENERIC)
		return perfetto_ftrace_generic(perfetto, &message, event->ns, tid);
	if (message.number == SYS_ENTER || message.number == SYS_EXIT)
		return perfetto_ftrace_call(perfetto, &message, event->ns, tid);
	kind = perfetto_ftrace_known(message.number);
	if (kind)
		return perfetto_ftrace_message(perfetto, kind, &message, event->ns, tid);
	perfetto->n_unknown++;
	return KYMO_OK;
}

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

	return perfetto_ftrace_put(bundle->perfetto, "sched_waking", event->ns,
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
		ret = perfetto_ftrace_put(bundle->perfetto, "sched_switch", event->ns, cpu->tid,
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
			ret = perfetto_ftrace_put(perfetto, "lttng_statedump_process_state", ns, 0,
						  values, 4);
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
		ret = event->data	 ? perfetto_ftrace_event(bundle->perfetto, event)
		      : event->is_waking ? perfetto_ftrace_waking(bundle, event)
					 : perfetto_ftrace_switch(bundle, event);
	}
	return ret;
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
			perfetto->kernel.stream = (uint32_t)field.value;
		else if (field.number == 2 && field.has_bytes)
			ret = perfetto_ftrace_add(&bundle, &field);
		else if (field.number == 4 && field.has_bytes)
			ret = perfetto_ftrace_read_compact(&bundle, &field);
	}
	perfetto->n_damaged += reader.is_bad;
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
	perfetto->n_damaged += reader.is_bad;
	return ret < 0 ? ky_error_nomem(perfetto->err) : KYMO_OK;
}
