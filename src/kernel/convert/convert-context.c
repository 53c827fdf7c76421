/* SPDX-License-Identifier: MIT */
/*
 * The event context: which fields there are, and their bytes. What is known of a thread comes first,
 * and is the same for all of its events until something is learnt of it; then what each record tells.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ctf/resolve/lttng-layout.h"
#include "kernel/convert/convert-record.h"

/* LTTng's names; in the order in which they lie in the trace. */
static const struct thread_context {
	unsigned int context;
	const char *name;
	uint16_t at; /* in struct ky_thread */
	uint8_t bytes;
	bool is_signed, is_text;
} thread_contexts[] = {
#define NUMBER(bit, name, member)                                            \
	{                                                                    \
		KY_CONTEXT_##bit, name, offsetof(struct ky_thread, member),  \
			sizeof(((struct ky_thread *)0)->member), true, false \
	}
#define ID(bit, name, member)                                                     \
	{                                                                         \
		KY_CONTEXT_##bit, name, offsetof(struct ky_thread, ids.member),   \
			sizeof(((struct ky_thread *)0)->ids.member), false, false \
	}
#define SIGNED_ID(bit, name, member)                                             \
	{                                                                        \
		KY_CONTEXT_##bit, name, offsetof(struct ky_thread, ids.member),  \
			sizeof(((struct ky_thread *)0)->ids.member), true, false \
	}
	NUMBER(PID, "_pid", pid),
	NUMBER(PPID, "_ppid", ppid),
	{KY_CONTEXT_PROCNAME, "_procname", offsetof(struct ky_thread, comm), KY_COMM_BYTES, false,
	 true},
	NUMBER(PRIO, "_prio", prio),
	NUMBER(NICE, "_nice", nice),
	SIGNED_ID(VTID, "_vtid", vtid),
	SIGNED_ID(VPID, "_vpid", vpid),
	SIGNED_ID(VPPID, "_vppid", vppid),
	ID(UID, "_uid", uid),
	ID(EUID, "_euid", euid),
	ID(SUID, "_suid", suid),
	ID(FSUID, "_fsuid", fsuid),
	ID(GID, "_gid", gid),
	ID(EGID, "_egid", egid),
	ID(SGID, "_sgid", sgid),
	ID(FSGID, "_fsgid", fsgid),
	ID(CGROUP_NS, "_cgroup_ns", ns[KY_NS_CGROUP]),
	ID(IPC_NS, "_ipc_ns", ns[KY_NS_IPC]),
	ID(MNT_NS, "_mnt_ns", ns[KY_NS_MNT]),
	ID(NET_NS, "_net_ns", ns[KY_NS_NET]),
	ID(PID_NS, "_pid_ns", ns[KY_NS_PID]),
	ID(TIME_NS, "_time_ns", ns[KY_NS_TIME]),
	ID(USER_NS, "_user_ns", ns[KY_NS_USER]),
	ID(UTS_NS, "_uts_ns", ns[KY_NS_UTS]),
	ID(CGROUP, "_cgroup", cgroup),
#undef NUMBER
#undef ID
#undef SIGNED_ID
};

#define N_THREAD_CONTEXTS (sizeof(thread_contexts) / sizeof(thread_contexts[0]))

/* LTTng's names. */
static const struct {
	unsigned int context;
	const char *name;
} record_contexts[] = {
	{KY_CONTEXT_INTERRUPTIBLE, "_interruptible"},
	{KY_CONTEXT_PREEMPTIBLE, "_preemptible"},
	{KY_CONTEXT_NEED_RESCHEDULE, "_need_reschedule"},
	{KY_CONTEXT_MIGRATABLE, "_migratable"},
};

#define N_RECORD_CONTEXTS (sizeof(record_contexts) / sizeof(record_contexts[0]))

bool ky_convert_context_is_always(const char *name, size_t len)
{
	return (len == 3 && strncmp(name, "tid", 3) == 0) ||
	       (len == 6 && strncmp(name, "cpu_id", 6) == 0);
}

unsigned int ky_convert_context_find(const char *name, size_t len)
{
	for (size_t i = 0; i < N_THREAD_CONTEXTS; i++)
		if (strlen(thread_contexts[i].name + 1) == len &&
		    !strncmp(thread_contexts[i].name + 1, name, len))
			return thread_contexts[i].context;
	for (size_t i = 0; i < N_RECORD_CONTEXTS; i++)
		if (strlen(record_contexts[i].name + 1) == len &&
		    !strncmp(record_contexts[i].name + 1, name, len))
			return record_contexts[i].context;
	return 0;
}

const char *ky_convert_context_name(size_t i)
{
	if (i < N_THREAD_CONTEXTS)
		return thread_contexts[i].name + 1;
	i -= N_THREAD_CONTEXTS;
	return i < N_RECORD_CONTEXTS ? record_contexts[i].name + 1 : NULL;
}

static uint32_t n_counters(const struct ky_convert *convert)
{
	return convert->counters ? (uint32_t)ky_counters_count(convert->counters) : 0;
}

void ky_convert_context_sizes(struct ky_convert *convert)
{
	convert->thread_bytes = 4; /* the tid */
	for (size_t i = 0; i < N_THREAD_CONTEXTS; i++)
		if (convert->context & thread_contexts[i].context)
			convert->thread_bytes += thread_contexts[i].bytes;
	convert->stacks_at =
		convert->thread_bytes +
		(uint32_t)__builtin_popcount(convert->context & KY_CONTEXT_OF_RECORDS) +
		n_counters(convert) * 8;
	convert->context_bytes =
		convert->stacks_at +
		(uint32_t)__builtin_popcount(convert->context & KY_CONTEXT_OF_STACKS) * 4;
}

/* Bits of common_flags; common_preempt_count has two counts of 4 bits: preemption, migration. */
enum {
	FLAG_IRQS_OFF = 0x01,
	FLAG_NEED_RESCHED = 0x04,
	FLAG_HARDIRQ = 0x08,
	FLAG_SOFTIRQ = 0x10,
	FLAG_NMI = 0x40,
	FLAG_BH_OFF = 0x80,
};

/* In the order of record_contexts[]; then counters; then the lengths of call stacks, which come later. */
uint8_t *ky_convert_put_record_context(const struct ky_convert *convert, uint8_t flags,
				       uint8_t counts, const uint64_t *counters, uint8_t *out)
{
	unsigned int context = convert->context;
	uint32_t n_bytes = n_counters(convert) * 8;
	const uint8_t values[N_RECORD_CONTEXTS] = {
		!(flags & FLAG_IRQS_OFF),
		!(counts & 15) && !(flags & (FLAG_HARDIRQ | FLAG_SOFTIRQ | FLAG_NMI | FLAG_BH_OFF)),
		!!(flags & FLAG_NEED_RESCHED),
		!(counts >> 4),
	};

	for (size_t i = 0; i < N_RECORD_CONTEXTS; i++)
		if (context & record_contexts[i].context)
			*out++ = values[i];
	if (counters)
		memcpy(out, counters, n_bytes);
	else
		memset(out, 0, n_bytes);
	out += n_bytes;
	for (unsigned int left = context & KY_CONTEXT_OF_STACKS; left; left &= left - 1) {
		memset(out, 0, 4);
		out += 4;
	}
	return out;
}

static bool convert_context_add_stack(struct ky_trace_class *trace, struct ky_field_class *st,
				      const char *length, const char *name)
{
	struct ky_field_class *cls = ky_struct_add_int(trace, st, length, 32, false, 10);

	return cls &&
	       ky_struct_add_sequence(trace, st, name, ky_int_new(trace, 64, false, 16), cls);
}

static bool convert_context_add_counter(const struct ky_convert *convert,
					struct ky_trace_class *trace, struct ky_field_class *st,
					uint32_t i)
{
	char name[1 + KY_COUNTERS_NAME_BYTES] = "_";

	ky_counters_name(convert->counters, i, name + 1);
	return ky_struct_add_int(trace, st, name, 64, false, 10) != NULL;
}

struct ky_field_class *ky_convert_context_class(const struct ky_convert *convert,
						struct ky_trace_class *trace)
{
	struct ky_field_class *st = ky_struct_new(trace), *member;

	if (!st || !ky_struct_add_int(trace, st, "_tid", 32, true, 10))
		return NULL;
	for (size_t i = 0; i < N_THREAD_CONTEXTS; i++) {
		const struct thread_context *context = &thread_contexts[i];

		if (!(convert->context & context->context))
			continue;
		member = context->is_text
				 ? ky_struct_add_text(trace, st, context->name, context->bytes)
				 : ky_struct_add_int(trace, st, context->name, context->bytes * 8u,
						     context->is_signed, 10);
		if (!member)
			return NULL;
	}
	for (size_t i = 0; i < N_RECORD_CONTEXTS; i++)
		if ((convert->context & record_contexts[i].context) &&
		    !ky_struct_add_int(trace, st, record_contexts[i].name, 8, true, 10))
			return NULL;
	for (uint32_t i = 0; i < n_counters(convert); i++)
		if (!convert_context_add_counter(convert, trace, st, i))
			return NULL;
	if ((convert->context & KY_CONTEXT_CALLSTACK_KERNEL) &&
	    !convert_context_add_stack(trace, st, "__callstack_kernel_length", "_callstack_kernel"))
		return NULL;
	if ((convert->context & KY_CONTEXT_CALLSTACK_USER) &&
	    !convert_context_add_stack(trace, st, "__callstack_user_length", "_callstack_user"))
		return NULL;
	return st;
}

uint32_t ky_convert_context(const struct ky_convert *convert, const struct ky_thread *thread,
			    uint8_t bytes[KY_CONTEXT_MAX_BYTES])
{
	uint8_t *out = bytes;

	memcpy(out, &thread->tid, 4);
	out += 4;
	for (size_t i = 0; i < N_THREAD_CONTEXTS; i++) {
		const struct thread_context *context = &thread_contexts[i];

		if (!(convert->context & context->context))
			continue;
		memcpy(out, (const uint8_t *)thread + context->at, context->bytes);
		out += context->bytes;
	}
	/* An ordinary moment of a program. */
	out = ky_convert_put_record_context(convert, 0, 0, NULL, out);
	return (uint32_t)(out - bytes);
}

/* Each CPU's idle thread has id 0; they differ in name only. */
static void idle_thread(const struct ky_convert_cpu *cpu, struct ky_thread *thread)
{
	const struct ky_threads *threads = cpu->convert->threads;

	memset(thread, 0, sizeof(*thread));
	if (threads)
		thread->ids = threads->kernel_ids;
	thread->ids.vtid = thread->ids.vpid = thread->ids.vppid = 0;
	thread->prio = 20;
	snprintf(thread->comm, sizeof(thread->comm), "swapper/%u", cpu->cpu);
}

void ky_convert_refresh_context(struct ky_convert_cpu *cpu, uint32_t tid)
{
	struct ky_threads *threads = cpu->convert->threads;
	struct ky_thread unknown = {.tid = (int32_t)tid, .pid = (int32_t)tid};
	struct ky_thread *thread = NULL;

	if (tid == 0)
		idle_thread(cpu, &unknown);
	else if (threads)
		thread = ky_threads_get(threads, (int32_t)tid);
	ky_convert_context(cpu->convert, thread ? thread : &unknown, cpu->context);
	cpu->context_tid = tid;
	cpu->context_generation = threads ? threads->generation : 0;
	cpu->has_context = true;
}
