/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the programs of kymo latency know of the kernel beyond kernel.bpf.h. */
#ifndef KY_LATENCY_LATENCY_KERNEL_BPF_H
#define KY_LATENCY_LATENCY_KERNEL_BPF_H

#include "kernel/bpf/kernel.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	uint64_t id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct sched_entity___delayed {
	unsigned char sched_delayed;
};

struct task_struct___latency {
	unsigned int __state; /* Linux 5.14 */
	void *stack;
	unsigned int flags;
	int on_cpu, on_rq;
	int pid, tgid;
	unsigned in_iowait : 1;
	struct sched_entity___delayed se;
	struct css_set *cgroups;
	struct task_struct___latency *group_leader;
	char comm[16];
	const struct cred *cred;
};

struct gendisk {
	int major, first_minor;
};

struct request_queue {
	struct gendisk *disk; /* Linux 5.16 */
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags, __data_len;
};

struct request___rq_disk {
	struct gendisk *rq_disk; /* before */
};

#pragma clang attribute pop

/* The kernel's states of threads, which sched_switch has shown since Linux 4.14, and flags. */
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_STOPPED_TRACED  0x0c
#define TASK_GONE	     0xb0 /* dead, or going */
#define TASK_NOLOAD	     0x400
#define PF_KTHREAD	     0x200000

#endif
