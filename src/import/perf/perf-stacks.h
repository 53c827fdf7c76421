/* SPDX-License-Identifier: MIT */
/*
 * The call stacks of programs of which perf has copied registers and stack (--call-graph dwarf): unwound with what the file says of
 * mappings, and the files that were mapped, where they are still here: those with the mapping's build ID; without a build ID, if this
 * machine has not been started since.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_IMPORT_PERF_STACKS_H
#define KY_IMPORT_PERF_STACKS_H

#include "import/perf/perf-file.h"
#include "import/perf/perf-sample.h"
#include "kernel/samples/unwind.h"

struct ky_perf_stacks {
	bool has_begun;
	struct ky_sample_processes processes;
	struct ky_unwind
		*unwind; /* NULL: libdw is missing, or the file is of another kind of machine */
	uint64_t frames[KY_UNWIND_FRAMES_MAX];
	uint64_t n_left_out; /* copies that were not unwound */
};

/* All zeros are allowed. */
void ky_perf_stacks_fini(struct ky_perf_stacks *stacks);

/* A record of the kernel that may tell of mappings. 0 or KYMO_E_MEMORY. */
int ky_perf_stacks_record(struct ky_perf_stacks *stacks, struct ky_perf_file *perf,
			  const struct ky_perf_head *head);
/* The frames of a sample with a copy, in stacks->frames: their number. */
uint32_t ky_perf_stacks_unwind(struct ky_perf_stacks *stacks, struct ky_perf_file *perf,
			       const struct ky_perf_sample *sample);

#endif
