/* SPDX-License-Identifier: MIT */
/*
 * The identity of a thread: its users and groups, its namespaces, its control group.
 * Threads: one at a time per struct ky_proc.
 */
#ifndef KY_KERNEL_PROCESS_THREAD_IDS_H
#define KY_KERNEL_PROCESS_THREAD_IDS_H

#include <stdint.h>

#include "kernel/bpf/thread-ids-layout.h"
#include "kernel/process/proc.h"

/* The inode number of the first pid namespace, since Linux 3.8. */
#define KY_NS_FIRST_PID 0xeffffffcu

/* As /proc has them now. 0, or KYMO_E_NOT_FOUND: it has ended; *ids is as it was. */
int ky_thread_ids_read(struct ky_proc *proc, int32_t pid, int32_t tid, struct ky_thread_ids *ids);

/*
 * The number of its control group of version 2, as /proc has it now; *@path: from the hierarchy's root on,
 * valid until @proc is used again. 0: not known.
 */
uint64_t ky_thread_cgroup(struct ky_proc *proc, int32_t pid, int32_t tid, const char **path);

#endif
