/* SPDX-License-Identifier: MIT */
/*
 * The frames of a program, found by the call frame information of its files (.eh_frame, DWARF) in a copy of its registers and of
 * the top of its stack, which the kernel takes with a sample. elfutils (libdwfl) does the unwinding.
 *
 * Files belong to others: a damaged one ends the stack. The last KY_UNWIND_PROCESSES processes are kept open.
 * Threads: one at a time per object.
 */
#ifndef KY_KERNEL_SAMPLES_UNWIND_H
#define KY_KERNEL_SAMPLES_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/samples/sample-processes.h"

#define KY_UNWIND_PROCESSES  16u
#define KY_UNWIND_FRAMES_MAX 256u

/* Which registers the kernel is to copy: perf's mask. 0: this machine's are not known. */
uint64_t ky_unwind_registers(void);

struct ky_unwind;

struct ky_unwind_copy {
	uint64_t mask; /* perf's, of the registers; it has those of ky_unwind_registers() */
	const uint64_t *registers; /* those of the mask, in their order */
	uint32_t n_registers;
	const uint8_t *stack; /* from the stack pointer on */
	uint64_t stack_bytes;
};

/*
 * @is_foreign: the processes are of another time: their files are opened by their paths alone, and only those with the mapping's build ID, or
 * without one if @trusts_paths. KYMO_E_UNSUPPORTED: libdw is missing.
 */
int ky_unwind_new(struct ky_unwind **unwind, bool is_foreign, bool trusts_paths,
		  struct kymo_error *err);
void ky_unwind_free(struct ky_unwind *unwind);

/*
 * The frames of a thread of @process, whose maps are known, at the time of @copy: the innermost first, at most
 * KY_UNWIND_FRAMES_MAX. Returns their number.
 */
uint32_t ky_unwind(struct ky_unwind *unwind, const struct ky_sample_process *process,
		   const struct ky_unwind_copy *copy, uint64_t *frames);
#endif
