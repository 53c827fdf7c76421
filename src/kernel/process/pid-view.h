/* SPDX-License-Identifier: MIT */
/*
 * Ids of threads in this process' namespace and in the kernel's. The kernel's events and its list of threads to record
 * have ids of the first pid namespace; /proc and processes in another namespace have that one's. There, a BPF program
 * translates the ids: it iterates over the namespace's threads. In the first namespace both ids are the same.
 *
 * Threads: any, while it is open.
 */
#ifndef KY_KERNEL_PROCESS_PID_VIEW_H
#define KY_KERNEL_PROCESS_PID_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "kernel/bpf/pids.h"

/* Zeros: both are the same. */
struct ky_pid_view {
	bool is_foreign; /* ids differ */
	bool is_blind; /* they differ, but which are which is not known: all are taken as they are */
	uint32_t level; /* how many namespaces are around this one */
	struct ky_bpf_pids *program;
	pthread_mutex_t lock;
	struct ky_map kernel_of, own_of;
};

/*
 * 0; else it is blind, and @err says why: KYMO_E_UNSUPPORTED (the kernel cannot tell; or /proc is another namespace's),
 * KYMO_E_PERMISSION, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_pid_view_open(struct ky_pid_view *view, struct kymo_error *err);
void ky_pid_view_close(struct ky_pid_view *view);

/* Look again: ids are given anew. 0, or KYMO_E_IO, KYMO_E_MEMORY. */
int ky_pid_view_refresh(struct ky_pid_view *view, struct kymo_error *err);

/* The kernel's id of what is @own here; of one that is not known yet it looks again. 0: no thread has it. */
int32_t ky_pid_to_kernel(struct ky_pid_view *view, int32_t own);
/* What is @kernel to the kernel, here; as far as is known. 0: no thread of this namespace. */
int32_t ky_pid_to_own(struct ky_pid_view *view, int32_t kernel);

/* The kernel's id of this process; -1: it is not known. */
int32_t ky_pid_this_process(void);

#endif
