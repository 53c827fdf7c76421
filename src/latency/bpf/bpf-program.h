/* SPDX-License-Identifier: MIT */
/* What the BPF objects of this folder have in common. Threads: any. */
#ifndef KY_LATENCY_BPF_PROGRAM_H
#define KY_LATENCY_BPF_PROGRAM_H

#include <stdint.h>

#include <kymo/error.h>

struct bpf_program;
struct btf;

/* 0, or KYMO_E_UNSUPPORTED: this kernel has no BTF. */
int ky_latency_need_btf(struct kymo_error *err);
/* How many arguments has @tracepoint? 0: the kernel has none of that name. */
uint32_t ky_latency_arguments(const struct btf *btf, const char *tracepoint);
/* From an id of this process' namespace to the kernel's; 0 stays 0. KYMO_E_NOT_FOUND. */
int ky_latency_kernel_id(int32_t *id, struct kymo_error *err);
/* Run the iterator @program over all threads. */
int ky_latency_seed(struct bpf_program *program, struct kymo_error *err);
/* Runs of @program that the kernel has skipped. */
uint64_t ky_latency_program_misses(const struct bpf_program *program);

#endif
