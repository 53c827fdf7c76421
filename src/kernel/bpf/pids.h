/* SPDX-License-Identifier: MIT */
/*
 * The BPF program that tells the ids of threads, as the kernel has them and as this process's pid namespace has them.
 * Threads: any.
 */
#ifndef KY_KERNEL_BPF_PIDS_H
#define KY_KERNEL_BPF_PIDS_H

#include <kymo/error.h>

#include "kernel/bpf/pids-layout.h"

struct ky_bpf_pids;

/*
 * 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED, KYMO_E_MEMORY, KYMO_E_IO: then *pids is NULL. The caller unloads what it was
 * given.
 */
int ky_bpf_pids_load(struct ky_bpf_pids **pids, struct kymo_error *err);
/* NULL is fine. */
void ky_bpf_pids_unload(struct ky_bpf_pids *pids);

/* A descriptor to read a struct ky_pids_record of each thread from, as they are now; or as load. */
int ky_bpf_pids_read(struct ky_bpf_pids *pids, struct kymo_error *err);

#endif
