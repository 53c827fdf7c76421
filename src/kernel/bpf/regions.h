/* SPDX-License-Identifier: MIT */
/*
 * Memory that BPF programs write and this process reads: one region for each CPU, which is the value of an array map. A
 * part of each is data, of which there may be more or less; what is where is the programs' to say.
 */
#ifndef KY_KERNEL_BPF_REGIONS_H
#define KY_KERNEL_BPF_REGIONS_H

#include <stdint.h>

/* Zeros: there are none. */
struct ky_bpf_regions {
	uint8_t *at;
	uint32_t n;
	uint64_t bytes, data_bytes; /* of each */
};

static inline void *ky_bpf_region(const struct ky_bpf_regions *regions, uint32_t cpu)
{
	return regions->at + cpu * regions->bytes;
}

#endif
