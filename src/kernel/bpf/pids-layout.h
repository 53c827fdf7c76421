/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a BPF program (pids.bpf.c) tells of each thread of the reader's pid namespace. */
#ifndef KY_KERNEL_BPF_PIDS_LAYOUT_H
#define KY_KERNEL_BPF_PIDS_LAYOUT_H

#include <stdint.h>

struct ky_pids_record {
	int32_t kernel, own; /* its id in the first pid namespace, and in the reader's */
	uint32_t level;	     /* of the reader's: how many namespaces are around it */
	uint32_t reserved;
};

#endif
