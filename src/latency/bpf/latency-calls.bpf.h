/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The layer of system calls of latency.bpf.c.
 *
 * Where a thread keeps its registers during a call is an address that no other thread has, and that both tracepoints tell: so
 * a call is open in a slot that this address gives, without a call of a helper, which costs as much as all the rest. A slot stays the
 * thread's until another thread wants it. While it has an open call of another thread, the call is in the thread's storage.
 */
#ifndef KY_LATENCY_LATENCY_CALLS_BPF_H
#define KY_LATENCY_LATENCY_CALLS_BPF_H

#include "latency/bpf/latency-files.bpf.h"
#include "latency/bpf/latency-net.bpf.h"

#define SLOT_BITS 16u

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, uint32_t);
	__type(value, struct open_call);
	__uint(max_entries, 1u << SLOT_BITS);
} kymo_calls SEC(".maps");

static __always_inline struct open_call *slot_of(uint64_t registers)
{
	uint32_t at = ADDRESS_BITS(registers, SLOT_BITS);

	return bpf_map_lookup_elem(&kymo_calls, &at);
}

static __always_inline uint64_t registers_of(const struct task_struct___latency *task)
{
	return (uint64_t)task->stack + shared.registers_offset;
}

/* The system call in which a thread is, if any. */
static __always_inline struct open_call *open_call_of(const struct task_struct___latency *task,
						      struct thread *thread)
{
	struct open_call *slot = slot_of(registers_of(task));

	return slot && slot->registers == registers_of(task) && slot->begin_ns ? slot
									       : &thread->call;
}

/* A new thread may have the stack of one that is gone. */
static __always_inline void forget_slot(const struct task_struct___latency *task)
{
	struct open_call *slot = slot_of(registers_of(task));

	if (slot && slot->registers == registers_of(task))
		slot->registers = slot->begin_ns = 0;
}

/*
 * Where a call begins whose thread has no slot, or that never returns and would keep it for ever. Of two threads that take a slot
 * at the same time, a few ns apart, the first one's call does not count.
 */
static __noinline struct open_call *new_place(struct open_call *slot, uint64_t registers,
					      bool returns)
{
	const struct task_struct___latency *task = (void *)bpf_get_current_task_btf();
	struct thread *thread;

	if (!slot || slot->begin_ns || !returns) {
		thread = thread_of(task, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!thread)
			return NULL;
		slot = &thread->call;
	}
	slot->registers = registers;
	slot->is_unwanted = !is_wanted_task(task);
	shared.registers_offset = *(volatile uint64_t *)&slot->registers - (uint64_t)task->stack;
	return slot;
}

static __always_inline struct open_call *place_of_call(uint64_t registers, uint32_t number)
{
	struct open_call *slot = slot_of(registers);
	bool returns = number != config.exits[0] && number != config.exits[1];

	return slot && slot->registers == registers && returns
		       ? slot
		       : new_place(slot, registers, returns);
}

#define USER32_CS 0x23

/* A call of a 32-bit program: their numbers are those of other calls. */
static __always_inline bool is_compat(const struct pt_regs___latency *registers)
{
	return bpf_core_field_exists(registers->cs) && registers->cs == USER32_CS;
}

SEC("tp_btf/sys_enter")
int kymo_enter(uint64_t *ctx)
{
	uint32_t number = ctx[1] < KY_LATENCY_CALL_COUNT && !is_compat((void *)ctx[0])
				  ? ctx[1]
				  : KY_LATENCY_CALL_COUNT;
	struct open_call *call = place_of_call(ctx[0], number);

	if (!call)
		return 0;
	if (config.first_byte)
		connection_enter(ctx, number, (void *)ctx[0]);
	call->number = number;
	call->begin_ns = call->is_unwanted ? 1 : bpf_ktime_get_ns();
	return 0;
}

static __always_inline void add_call(void *ctx, uint32_t number, uint64_t ns)
{
	uint32_t kind =
		number < KY_LATENCY_CALL_COUNT ? config.kind[number] : KY_LATENCY_CALL_OTHER;
	const struct task_struct___latency *task =
		config.by == KY_LATENCY_BY_NONE ? NULL : (void *)bpf_get_current_task_btf();

	add(KY_LATENCY_SYSCALL, kind, KY_LATENCY_AT_SYSCALL + kind, task, ns);
	if (ns > config.members_ns)
		tell_member(ctx, KY_LATENCY_SYSCALL, kind, NULL, NULL, ns);
}

static __noinline struct open_call *call_in_storage(void)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf(), 0);

	return thread ? &thread->call : NULL;
}

SEC("tp_btf/sys_exit")
int kymo_exit(uint64_t *ctx)
{
	uint64_t registers = ctx[0], begin_ns;
	struct open_call *call = slot_of(registers);

	if (config.file)
		file_calls_end(ctx, thread_of(bpf_get_current_task_btf(), 0));
	if (!call || call->registers != registers || !call->begin_ns)
		call = call_in_storage();
	if (!call || !call->begin_ns)
		return 0;
	begin_ns = call->begin_ns;
	call->begin_ns = 0;
	if (config.first_byte)
		connection_exit(call->number, ctx[1]);
	if (config.syscall && !call->is_unwanted)
		add_call(ctx, call->number, bpf_ktime_get_ns() - begin_ns);
	return 0;
}

#endif
