/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the BPF programs know of the kernel: of its structs the members that they read, wherever those lie in the kernel
 * that runs (CO-RE), and what they need of its headers.
 */
#ifndef KY_KERNEL_BPF_KERNEL_BPF_H
#define KY_KERNEL_BPF_KERNEL_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct cgroup_namespace {
	struct ns_common ns;
};

struct ipc_namespace {
	struct ns_common ns;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct net {
	struct ns_common ns;
};

struct pid_namespace {
	struct ns_common ns;
};

struct time_namespace {
	struct ns_common ns;
};

struct user_namespace {
	struct ns_common ns;
};

struct uts_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct uts_namespace *uts_ns;
	struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
	struct time_namespace *time_ns;
	struct cgroup_namespace *cgroup_ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid; /* seven others come behind it, in the order of struct ky_thread_ids */
	struct user_namespace *user_ns;
};

struct thread_info {
	unsigned int status; /* x86 */
};

struct sched_entity {
	uint64_t nr_migrations;
};

struct task_struct {
	struct thread_info thread_info;
	struct sched_entity se;
	int pid;
	int prio;
	char comm[16];
	struct task_struct *real_parent, *group_leader;
	struct pid *thread_pid;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	const struct cred *cred;
	struct nsproxy *nsproxy;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/*
 * @n, but @max, of which the verifier knows a bound. In one register, by the machine's own words: where clang compares one copy and uses another, kernels
 * before 6.12 do not see that both are the same.
 */
static __always_inline uint64_t at_most(uint64_t n, uint64_t max)
{
	asm volatile("if %[n] <= %[max] goto +1\n"
		     "%[n] = %[max]"
		     : [n] "+r"(n)
		     : [max] "r"(max));
	return n;
}

/* @pid->numbers[@level], in the kernel's own layout. */
static __always_inline const struct upid *upid_of(const struct pid *pid, uint64_t level)
{
	return (const void *)&pid->numbers + level * bpf_core_type_size(struct upid);
}

#endif
