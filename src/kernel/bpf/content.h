/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs that read what system calls' arguments point at: loading them, and what they share with this
 * process. kernel/content/content.h does the rest.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_KERNEL_BPF_CONTENT_H
#define KY_KERNEL_BPF_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/bpf/content-layout.h"
#include "kernel/bpf/regions.h"

struct ky_bpf_content_options {
	bool fields;	  /* what arguments point at is read */
	bool compat;	  /* 32-bit calls, too; else they are left out */
	bool unknown;	  /* those of 64 bits that the kernel does not know, too */
	bool ids;	  /* the identity of the thread, too */
	bool old_loops;	  /* as on kernels without bpf_loop() */
	uint32_t limit;	  /* of buffers, KY_CONTENT_LIMIT_MAX at most; 0: they are not read */
	uint32_t own_pid; /* the process whose calls are left out */
	uint64_t
		ring_bytes; /* of the kernel's, on each CPU: regions are half of that, but 2 MiB, up to 64 MiB */
};

/* Zeros: nothing is loaded. */
struct ky_bpf_content {
	struct ky_content_descriptor *calls; /* by number; programs see each change at once */
	struct ky_bpf_regions regions;
	uint32_t record_max; /* no record is longer */
	struct content_bpf *skeleton;
	int enter_link, exit_link;
};

/*
 * 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no BPF, or the kernel does not tell what is needed), KYMO_E_MEMORY,
 * KYMO_E_IO. In any case ky_bpf_content_unload() follows.
 */
int ky_bpf_content_load(struct ky_bpf_content *content,
			const struct ky_bpf_content_options *options, struct kymo_error *err);
void ky_bpf_content_unload(struct ky_bpf_content *content);

/* 0, or as load. */
int ky_bpf_content_attach(struct ky_bpf_content *content, struct kymo_error *err);
void ky_bpf_content_detach(struct ky_bpf_content *content);

#endif
