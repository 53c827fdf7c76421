/* SPDX-License-Identifier: MIT */
/* What a record of perf.data says: who, where, when, and the sample's own parts. Threads: any. */
#ifndef KY_IMPORT_PERF_SAMPLE_H
#define KY_IMPORT_PERF_SAMPLE_H

#include "import/perf/perf-file.h"

struct ky_perf_sample {
	struct ky_perf_attr *attr; /* NULL: unknown */
	uint32_t pid, tid, cpu;
	uint64_t ns; /* 0: unknown */
	uint64_t ip, address, period;
	/* In the file's byte order, within the record. */
	const uint8_t *chain, *raw;
	uint32_t n_chain, raw_bytes;
	/* Copies: the registers of attr->user_registers, of a program of 64 bits; the stack, and how much of it is there. NULL: none. */
	const uint8_t *registers, *stack;
	uint64_t stack_bytes;
};

/* The time and the CPU of @head alone, as ky_perf_sample_parse() finds them; 0: unknown. */
void ky_perf_sample_place(struct ky_perf_file *perf, const struct ky_perf_head *head, uint64_t *ns,
			  uint32_t *cpu);
/* Sets the places of parts in a sample by the sample_type. */
void ky_perf_sample_prepare(struct ky_perf_attr *attr);

/*
 * Parse @head: a sample, or what every record of the kernel has at its end. False: the record is too short for what its event
 * says; what was found before is set.
 */
bool ky_perf_sample_parse(struct ky_perf_file *perf, const struct ky_perf_head *head,
			  struct ky_perf_sample *sample);

#endif
