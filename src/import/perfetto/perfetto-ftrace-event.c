/* SPDX-License-Identifier: MIT */
/* The kernel's events in messages of Perfetto, one by one: with LTTng's names, so that reports read them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "import/ftrace/foreign-calls.h"
#include "import/perfetto/perfetto-trace.h"

#define FIELDS_MAX 32

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

int ky_perfetto_ftrace_put(struct ky_perfetto *perfetto, const char *name, int64_t ns, int64_t tid,
			   struct ky_log_value *values, size_t n)
{
	int ret = ky_log_begin(&perfetto->kernel, name, ns, values, n);

	ky_perfetto_check_time(perfetto, ns);
	if (ret < 0)
		return ret;
	ky_maker_number(perfetto->kernel.maker, (uint64_t)tid);
	return ky_log_put(&perfetto->kernel, values, n);
}

static void perfetto_ftrace_event_value(struct ky_log_value *value, const struct known_field *field,
					const struct ky_pb_field *from)
{
	if (field->kind == TEXT)
		*value = ky_log_text(field->name, (const char *)from->data,
				     from->has_bytes ? from->len : 0);
	else
		*value = ky_log_number(field->name,
				       (int64_t)from->value - (field->kind == PRIO ? 100 : 0));
}

static const struct known_event *perfetto_ftrace_event_known(uint32_t number)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].number == number)
			return &known[i];
	}
	return NULL;
}

/* Fields that the message leaves out are 0 or empty. */
static int perfetto_ftrace_event_message(struct ky_perfetto *perfetto,
					 const struct known_event *event,
					 const struct ky_pb_field *message, int64_t ns, int64_t tid)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	const struct ky_pb_field none = {0};
	struct ky_log_value values[8];
	struct ky_pb_field field;
	size_t n = 0;

	for (; n < 8 && event->fields[n].kind; n++)
		perfetto_ftrace_event_value(&values[n], &event->fields[n], &none);
	while (ky_pb_next(&reader, &field)) {
		for (size_t i = 0; i < n; i++) {
			if (event->fields[i].number == field.number)
				perfetto_ftrace_event_value(&values[i], &event->fields[i], &field);
		}
	}
	return ky_perfetto_ftrace_put(perfetto, event->name, ns, tid, values, n);
}

static bool perfetto_ftrace_event_generic_field(const struct ky_pb_field *message,
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

static int perfetto_ftrace_event_generic(struct ky_perfetto *perfetto,
					 const struct ky_pb_field *message, int64_t ns, int64_t tid)
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
			n += perfetto_ftrace_event_generic_field(&field, &values[n]);
	}
	return ky_perfetto_ftrace_put(perfetto, name, ns, tid, values, n);
}

/* "syscall_entry_openat"; NULL: the number has no name here, or memory is out. */
static const char *perfetto_ftrace_event_call_name(struct ky_perfetto *perfetto, uint64_t number,
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
static int perfetto_ftrace_event_call(struct ky_perfetto *perfetto,
				      const struct ky_pb_field *message, int64_t ns, int64_t tid)
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
	name = perfetto_ftrace_event_call_name(perfetto, id, is_exit);
	if (!name)
		return perfetto_ftrace_event_message(
			perfetto, perfetto_ftrace_event_known(message->number), message, ns, tid);
	values[0] = ky_log_number("ret", ret);
	return ky_perfetto_ftrace_put(perfetto, name, ns, tid, values, is_exit);
}

int ky_perfetto_ftrace_event(struct ky_perfetto *perfetto, const uint8_t *data, size_t len,
			     int64_t ns)
{
	struct ky_pb_reader reader = ky_pb_reader(data, len);
	const struct known_event *kind;
	struct ky_pb_field field, message = {0};
	int64_t tid = 0;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 2 && !field.has_bytes)
			tid = (int32_t)field.value;
		else if (field.has_bytes && !message.data)
			message = field;
	}
	ky_perfetto_check(perfetto, &reader);
	if (!message.data)
		return KYMO_OK;
	if (message.number == GENERIC)
		return perfetto_ftrace_event_generic(perfetto, &message, ns, tid);
	if (message.number == SYS_ENTER || message.number == SYS_EXIT)
		return perfetto_ftrace_event_call(perfetto, &message, ns, tid);
	kind = perfetto_ftrace_event_known(message.number);
	if (kind)
		return perfetto_ftrace_event_message(perfetto, kind, &message, ns, tid);
	perfetto->n_unknown++;
	return KYMO_OK;
}
