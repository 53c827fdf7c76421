/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The ids of all threads of the reader's pid namespace: the kernel's, and those that they have there. */
#include "kernel/bpf/kernel.bpf.h"
#include "kernel/bpf/pids-layout.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

SEC("iter/task")
int kymo_pids(struct bpf_iter__task *ctx)
{
	const struct task_struct *reader = (void *)bpf_get_current_task(), *task = ctx->task;
	struct ky_pids_record record = {};
	const struct pid *pid;
	uint64_t level;

	if (!task)
		return 0;
	/* Not a member of ours in what follows: it would be looked for in the kernel. */
	level = BPF_CORE_READ(reader, thread_pid, level);
	record.level = level;
	record.kernel = BPF_CORE_READ(task, pid);
	pid = BPF_CORE_READ(task, thread_pid);
	record.own = BPF_CORE_READ(upid_of(pid, level & 63), nr);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
