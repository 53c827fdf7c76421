/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The layer of file systems of latency.bpf.c: ext4, f2fs and nfs, whose tracepoints tell begin and end; xfs and btrfs, whose tracepoints tell the
 * begin of the file system's part of a call. That part ends with the call.
 *
 * The programs need no arguments, so they are attached by name alone: also to tracepoints of modules, without types of these.
 */
#ifndef KY_LATENCY_LATENCY_FILES_BPF_H
#define KY_LATENCY_LATENCY_FILES_BPF_H

#include "latency/bpf/latency-cells.bpf.h"

static __always_inline void file_begins(uint32_t op)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf(), 0);

	if (thread)
		thread->file_ns[op] = bpf_ktime_get_ns();
}

/* The first one counts: a call may go on in pieces. */
static __always_inline void file_call_begins(uint32_t op)
{
	struct thread *thread = thread_of(bpf_get_current_task_btf(), 0);

	if (!thread || thread->in_call & 1ull << op)
		return;
	thread->in_call |= 1ull << op;
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

/* The call of the current thread is over. NULL: it has no storage. */
static __always_inline void file_calls_end(void *ctx, struct thread *thread)
{
	uint64_t ops = thread ? thread->in_call : 0;

	if (!ops)
		return;
	thread->in_call = 0;
#pragma clang loop unroll(full)
	for (uint32_t op = KY_LATENCY_FILE_XFS_SYNC; op < KY_LATENCY_FILE_OPS; op++)
		if (ops & 1ull << op)
			file_ends(ctx, op);
}

#define BEGINS(event, op)                                     \
	SEC("raw_tp/" #event)                                 \
	int kymo_##event(struct bpf_raw_tracepoint_args *ctx) \
	{                                                     \
		(void)ctx;                                    \
		file_begins(KY_LATENCY_##op);                 \
		return 0;                                     \
	}
#define ENDS(event, op)                                       \
	SEC("raw_tp/" #event)                                 \
	int kymo_##event(struct bpf_raw_tracepoint_args *ctx) \
	{                                                     \
		file_ends(ctx, KY_LATENCY_##op);              \
		return 0;                                     \
	}

#define BEGINS_IN_CALL(event, op)                             \
	SEC("raw_tp/" #event)                                 \
	int kymo_##event(struct bpf_raw_tracepoint_args *ctx) \
	{                                                     \
		(void)ctx;                                    \
		file_call_begins(KY_LATENCY_##op);            \
		return 0;                                     \
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
BEGINS(f2fs_sync_file_enter, FILE_F2FS_SYNC)
ENDS(f2fs_sync_file_exit, FILE_F2FS_SYNC)
BEGINS(f2fs_write_begin, FILE_F2FS_WRITE)
ENDS(f2fs_write_end, FILE_F2FS_WRITE)
BEGINS(f2fs_unlink_enter, FILE_F2FS_UNLINK)
ENDS(f2fs_unlink_exit, FILE_F2FS_UNLINK)
BEGINS(nfs_fsync_enter, FILE_NFS_SYNC)
ENDS(nfs_fsync_exit, FILE_NFS_SYNC)

BEGINS_IN_CALL(xfs_file_fsync, FILE_XFS_SYNC)
BEGINS_IN_CALL(xfs_file_buffered_read, FILE_XFS_READ)
BEGINS_IN_CALL(xfs_file_direct_read, FILE_XFS_READ)
BEGINS_IN_CALL(xfs_file_buffered_write, FILE_XFS_WRITE)
BEGINS_IN_CALL(xfs_file_direct_write, FILE_XFS_WRITE)
BEGINS_IN_CALL(btrfs_sync_file, FILE_BTRFS_SYNC)

#undef BEGINS
#undef BEGINS_IN_CALL
#undef ENDS

#endif
