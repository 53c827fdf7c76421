/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A part of content.bpf.c: the identity of the thread. What cannot be reached is 0: a read that fails leaves zeros, and so fails the next one. */
#ifndef KY_KERNEL_BPF_CONTENT_IDS_BPF_H
#define KY_KERNEL_BPF_CONTENT_IDS_BPF_H

#include "kernel/bpf/kernel.bpf.h"
#include "kernel/bpf/thread-ids-layout.h"

static __always_inline uint64_t level_of(const struct pid *pid)
{
	return BPF_CORE_READ(pid, level) & 63;
}

/*
 * The thread's number in its own namespace, and what that calls the process and the parent, of whom it knows nothing
 * when that one's level is less.
 */
static __always_inline void read_numbers(const struct task_struct *task, struct ky_thread_ids *ids)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	uint64_t level = level_of(pid);

	ids->vtid = BPF_CORE_READ(upid_of(pid, level), nr);
	ids->ns[KY_NS_PID] = BPF_CORE_READ(upid_of(pid, level), ns, ns.inum);
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	ids->vpid = BPF_CORE_READ(upid_of(pid, level), nr);
	pid = BPF_CORE_READ(task, real_parent, group_leader, thread_pid);
	ids->vppid = level_of(pid) < level ? 0 : BPF_CORE_READ(upid_of(pid, level), nr);
	ids->reserved = 0;
}

static __always_inline void read_ids(struct ky_thread_ids *ids)
{
	const struct task_struct *task = (void *)bpf_get_current_task();
	const struct cred *cred = BPF_CORE_READ(task, cred);
	const struct nsproxy *nsproxy = BPF_CORE_READ(task, nsproxy);

	bpf_probe_read_kernel(ids, offsetof(struct ky_thread_ids, ns), &cred->uid);
	read_numbers(task, ids);
	ids->ns[KY_NS_USER] = BPF_CORE_READ(cred, user_ns, ns.inum);
	ids->ns[KY_NS_CGROUP] = BPF_CORE_READ(nsproxy, cgroup_ns, ns.inum);
	ids->ns[KY_NS_IPC] = BPF_CORE_READ(nsproxy, ipc_ns, ns.inum);
	ids->ns[KY_NS_MNT] = BPF_CORE_READ(nsproxy, mnt_ns, ns.inum);
	ids->ns[KY_NS_NET] = BPF_CORE_READ(nsproxy, net_ns, ns.inum);
	ids->ns[KY_NS_UTS] = BPF_CORE_READ(nsproxy, uts_ns, ns.inum);
	/* Since Linux 5.6. */
	ids->ns[KY_NS_TIME] = bpf_core_field_exists(nsproxy->time_ns)
				      ? BPF_CORE_READ(nsproxy, time_ns, ns.inum)
				      : 0;
	ids->cgroup = bpf_get_current_cgroup_id();
}

#endif
