/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The layer of file systems of latency.bpf.c: ext4, whose tracepoints tell begin and end. */
#ifndef KY_LATENCY_LATENCY_FILES_BPF_H
#define KY_LATENCY_LATENCY_FILES_BPF_H

#include "latency/latency-cells.bpf.h"

static __always_inline void file_begins(uint32_t op)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf(), 0);

	if (thread)
		thread->file_ns[op] = bpf_ktime_get_ns();
}

static __always_inline void file_ends(void *ctx, uint32_t op)
{
	const struct task_struct___latency *task = (void *)bpf_get_current_task_btf();
	struct thread *thread = thread_of(task, 0);
	uint64_t begin_ns, ns;

	if (!thread || !thread->file_ns[op])
		return;
	begin_ns = thread->file_ns[op];
	thread->file_ns[op] = 0;
	if (!is_wanted_task(task))
		return;
	ns = bpf_ktime_get_ns() - begin_ns;
	add(KY_LATENCY_FILE, op, KY_LATENCY_AT_FILE + op, task, ns);
	if (ns > config.members_ns)
		tell_member(ctx, KY_LATENCY_FILE, op, task, NULL, ns);
}

#define BEGINS(event, op)                     \
	SEC("tp_btf/" #event)                 \
	int kymo_##event(uint64_t *ctx)       \
	{                                     \
		(void)ctx;                    \
		file_begins(KY_LATENCY_##op); \
		return 0;                     \
	}
#define ENDS(event, op)                          \
	SEC("tp_btf/" #event)                    \
	int kymo_##event(uint64_t *ctx)          \
	{                                        \
		file_ends(ctx, KY_LATENCY_##op); \
		return 0;                        \
	}

BEGINS(ext4_sync_file_enter, FILE_SYNC)
ENDS(ext4_sync_file_exit, FILE_SYNC)
/* Delayed allocation; else the two others. */
BEGINS(ext4_da_write_begin, FILE_WRITE)
ENDS(ext4_da_write_end, FILE_WRITE)
BEGINS(ext4_write_begin, FILE_WRITE)
ENDS(ext4_write_end, FILE_WRITE)
ENDS(ext4_journalled_write_end, FILE_WRITE)
BEGINS(ext4_truncate_enter, FILE_TRUNCATE)
ENDS(ext4_truncate_exit, FILE_TRUNCATE)
BEGINS(ext4_fallocate_enter, FILE_ALLOCATE)
ENDS(ext4_fallocate_exit, FILE_ALLOCATE)
BEGINS(ext4_unlink_enter, FILE_UNLINK)
ENDS(ext4_unlink_exit, FILE_UNLINK)

#undef BEGINS
#undef ENDS

#endif
