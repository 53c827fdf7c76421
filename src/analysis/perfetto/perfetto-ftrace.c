/* SPDX-License-Identifier: MIT */
/*
 * Kernel events as ftrace events. Those that trace_processor knows make its own scheduler view,
 * thread states, interrupts and counters; all others go into its table of ftrace events.
 */
#include "analysis/perfetto/perfetto-internal.h"

#define TEXT_BYTES   256
#define CLONE_THREAD 0x00010000

enum kind {
	INT = 1,
	TEXT,
	PRIO, /* on the kernel's scale */
};

struct native_field {
	uint8_t number; /* in Perfetto's message */
	uint8_t kind;
	const char *names[2]; /* in the trace */
};

struct ky_pf_native {
	const char *names[2]; /* the kernel's, and LTTng's where it differs */
	uint32_t number;      /* in the message FtraceEvent */
	bool prev;	      /* the first field is the thread that it happened in */
	struct native_field fields[KY_PF_FIELDS];
};

#define TASK_FIELDS                                                                 \
	{                                                                           \
		{1, TEXT, {"comm"}}, {2, INT, {"tid", "pid"}}, {3, PRIO, {"prio"}}, \
			{4, INT, {"success"}}, {5, INT, {"target_cpu"}},            \
	}

static const struct ky_pf_native natives[] = {
	{{"sched_switch"},
	 4,
	 true,
	 {{2, INT, {"prev_tid", "prev_pid"}},
	  {1, TEXT, {"prev_comm"}},
	  {3, PRIO, {"prev_prio"}},
	  {4, INT, {"prev_state"}},
	  {5, TEXT, {"next_comm"}},
	  {6, INT, {"next_tid", "next_pid"}},
	  {7, PRIO, {"next_prio"}}}},
	{{"sched_wakeup"}, 17, false, TASK_FIELDS},
	{{"sched_waking"}, 20, false, TASK_FIELDS},
	{{"sched_wakeup_new"}, 114, false, TASK_FIELDS},
	{{"sched_process_exec"},
	 237,
	 false,
	 {{1, TEXT, {"filename"}}, {2, INT, {"tid", "pid"}}, {3, INT, {"old_tid", "old_pid"}}}},
	{{"sched_process_exit"},
	 238,
	 false,
	 {{1, TEXT, {"comm"}}, {2, INT, {"tid", "pid"}}, {4, PRIO, {"prio"}}}},
	{{"sched_process_fork"},
	 239,
	 false,
	 {{1, TEXT, {"parent_comm"}},
	  {2, INT, {"parent_tid", "parent_pid"}},
	  {3, TEXT, {"child_comm"}},
	  {4, INT, {"child_tid", "child_pid"}}}},
	{{"sched_process_free"},
	 240,
	 false,
	 {{1, TEXT, {"comm"}}, {2, INT, {"tid", "pid"}}, {3, PRIO, {"prio"}}}},
	{{"sched_pi_setprio"},
	 353,
	 false,
	 {{1, TEXT, {"comm"}},
	  {2, PRIO, {"newprio"}},
	  {3, PRIO, {"oldprio"}},
	  {4, INT, {"tid", "pid"}}}},
	{{"sched_migrate_task"},
	 491,
	 false,
	 {{1, TEXT, {"comm"}},
	  {2, INT, {"tid", "pid"}},
	  {3, PRIO, {"prio"}},
	  {4, INT, {"orig_cpu"}},
	  {5, INT, {"dest_cpu"}}}},
	{{"task_newtask"},
	 KY_PF_FTRACE_TASK_NEWTASK,
	 false,
	 {{1, INT, {"tid", "pid"}},
	  {2, TEXT, {"comm"}},
	  {3, INT, {"clone_flags"}},
	  {4, INT, {"oom_score_adj"}}}},
	{{"task_rename"},
	 KY_PF_FTRACE_TASK_RENAME,
	 false,
	 {{1, INT, {"tid", "pid"}},
	  {2, TEXT, {"oldcomm"}},
	  {3, TEXT, {"newcomm"}},
	  {4, INT, {"oom_score_adj"}}}},
	{{"cpu_frequency", "power_cpu_frequency"},
	 11,
	 false,
	 {{1, INT, {"state"}}, {2, INT, {"cpu_id"}}}},
	{{"cpu_idle", "power_cpu_idle"}, 13, false, {{1, INT, {"state"}}, {2, INT, {"cpu_id"}}}},
	{{"softirq_entry", "irq_softirq_entry"}, 24, false, {{1, INT, {"vec"}}}},
	{{"softirq_exit", "irq_softirq_exit"}, 25, false, {{1, INT, {"vec"}}}},
	{{"softirq_raise", "irq_softirq_raise"}, 26, false, {{1, INT, {"vec"}}}},
	{{"irq_handler_entry"}, 36, false, {{1, INT, {"irq"}}, {2, TEXT, {"name"}}}},
	{{"irq_handler_exit"}, 37, false, {{1, INT, {"irq"}}, {2, INT, {"ret"}}}},
	{{"rss_stat", "kmem_rss_stat"},
	 313,
	 false,
	 {{1, INT, {"member"}}, {2, INT, {"size"}}, {3, INT, {"curr"}}, {4, INT, {"mm_id"}}}},
};

const struct ky_pf_native *ky_pf_native_find(const char *name)
{
	for (size_t i = 0; i < sizeof(natives) / sizeof(*natives); i++) {
		for (int j = 0; j < 2 && natives[i].names[j]; j++) {
			if (strcmp(natives[i].names[j], name) == 0)
				return &natives[i];
		}
	}
	return NULL;
}

void ky_pf_native_fields(const struct ky_pf_native *native, const struct ky_event_class *cls,
			 struct ky_pf_class *info)
{
	for (int i = 0; i < KY_PF_FIELDS; i++) {
		for (int j = 0; j < 2 && native->fields[i].names[j] && !info->fields[i].cls; j++)
			ky_handle_find(&info->fields[i], cls, KY_SCOPE_PAYLOAD,
				       native->fields[i].names[j]);
	}
}

static void perfetto_ftrace_put_field(struct ky_strbuf *out, const struct native_field *field,
				      const struct ky_pf_at *at, const struct ky_handle *handle)
{
	const char *text;
	int64_t value;
	size_t len;

	if (!handle->cls)
		return;
	if (field->kind == TEXT) {
		text = ky_get_text(at->event, handle, &len);
		ky_pb_text(out, field->number, text, len, TEXT_BYTES);
		return;
	}
	value = ky_get_i64(at->event, handle, 0);
	ky_pb_int(out, field->number, field->kind == PRIO ? value + at->cls->prio_offset : value);
}

int ky_pf_on_native(struct ky_pf *pf, const struct ky_pf_at *at)
{
	const struct ky_pf_native *native = at->cls->native;
	struct ky_strbuf *out;
	size_t event, message;
	int32_t tid;

	if (!at->cpu)
		return 0;
	out = &at->cpu->events;
	tid = native->prev ? (int32_t)ky_get_i64(at->event, &at->cls->fields[0], 0)
			   : ky_pf_tid(pf, at);
	event = ky_pf_ftrace(out, ky_pf_time(pf, at->event->ns), tid);
	message = ky_pb_begin(out, native->number);
	for (int i = 0; i < KY_PF_FIELDS && native->fields[i].kind; i++)
		perfetto_ftrace_put_field(out, &native->fields[i], at, &at->cls->fields[i]);
	ky_pb_end(out, message);
	ky_pb_end(out, event);
	return 0;
}

int ky_pf_on_generic(struct ky_pf *pf, const struct ky_pf_at *at)
{
	const char *name = at->event->cls->name;
	size_t event, message, whole;
	struct ky_strbuf *out;
	int ret;

	if (!at->cpu)
		return 0;
	out = &at->cpu->events;
	whole = out->len;
	event = ky_pf_ftrace(out, ky_pf_time(pf, at->event->ns), ky_pf_tid(pf, at));
	message = ky_pb_begin(out, KY_PF_FTRACE_GENERIC);
	ky_pb_text(out, KY_PF_GENERIC_NAME, name, strlen(name), TEXT_BYTES);
	ret = ky_pf_generic_fields(pf, out, at);
	ky_pb_end(out, message);
	ky_pb_end(out, event);
	if (ret < 0)
		out->len = whole;
	return ret;
}

/* A recorder without task_newtask: the fork tells the same, where it tells processes. */
int ky_pf_on_fork(struct ky_pf *pf, const struct ky_pf_at *at)
{
	struct ky_handle child_pid, parent_pid, child_tid;
	const struct ky_event *event = at->event;
	size_t begun, message, len;
	const char *comm;

	if (!at->cpu)
		return 0;
	if (ky_handle_find(&child_tid, event->cls, KY_SCOPE_PAYLOAD, "child_tid") &&
	    ky_handle_find(&child_pid, event->cls, KY_SCOPE_PAYLOAD, "child_pid") &&
	    ky_handle_find(&parent_pid, event->cls, KY_SCOPE_PAYLOAD, "parent_pid")) {
		bool is_thread =
			ky_get_i64(event, &child_pid, 0) == ky_get_i64(event, &parent_pid, 0);

		begun = ky_pf_ftrace(&at->cpu->events, ky_pf_time(pf, event->ns),
				     (int32_t)ky_get_i64(event, &at->cls->fields[1], 0));
		message = ky_pb_begin(&at->cpu->events, KY_PF_FTRACE_TASK_NEWTASK);
		ky_pb_int(&at->cpu->events, 1, ky_get_i64(event, &child_tid, 0));
		comm = ky_get_text(event, &at->cls->fields[2], &len);
		ky_pb_text(&at->cpu->events, 2, comm, len, TEXT_BYTES);
		ky_pb_uint(&at->cpu->events, 3, is_thread ? CLONE_THREAD : 0);
		ky_pb_end(&at->cpu->events, message);
		ky_pb_end(&at->cpu->events, begun);
	}
	return ky_pf_on_native(pf, at);
}

void ky_pf_rename(struct ky_strbuf *out, uint64_t time, int32_t tid, const char *comm)
{
	size_t event = ky_pf_ftrace(out, time, tid);
	size_t message = ky_pb_begin(out, KY_PF_FTRACE_TASK_RENAME);

	ky_pb_int(out, 1, tid);
	ky_pb_text(out, 3, comm, strlen(comm), TEXT_BYTES);
	ky_pb_end(out, message);
	ky_pb_end(out, event);
}

/* A recorder without task_rename: a program that begins changes its thread's name too. */
int ky_pf_on_exec(struct ky_pf *pf, const struct ky_pf_at *at)
{
	int32_t tid = (int32_t)ky_get_i64(at->event, &at->cls->fields[1], 0);
	const struct ky_thread *thread = ky_map_get(&at->host->threads, (uint32_t)tid);

	if (at->cpu && thread && thread->comm[0])
		ky_pf_rename(&at->cpu->events, ky_pf_time(pf, at->event->ns), tid, thread->comm);
	return ky_pf_on_native(pf, at);
}
