/* SPDX-License-Identifier: MIT */
/*
 * The times of a guest's trace.dat against its host: trace-cmd has measured the difference of the clocks now and then, for each CPU.
 * Nothing in it is trusted.
 *
 * Threads: any, on the same object.
 */
#ifndef KY_IMPORT_DAT_SHIFT_H
#define KY_IMPORT_DAT_SHIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* At @time of the guest: host = (guest * scaling >> fraction) + offset. */
struct ky_dat_sample {
	uint64_t time;
	int64_t offset;
	uint64_t scaling, fraction;
};

struct ky_dat_shift {
	uint32_t n_cpus; /* 0: there is no difference */
	bool interpolates;
	struct ky_dat_shift_cpu {
		uint32_t n;
		struct ky_dat_sample *samples; /* in the order of time */
	} * cpus;			       /* in the arena */
};

/* Parses the option TIME_SHIFT. 0, KYMO_E_MEMORY, KYMO_E_FORMAT: it is too short for what it says. */
int ky_dat_shift_parse(struct ky_dat_shift *shift, struct ky_arena *arena, const uint8_t *bytes,
		       uint64_t len, bool swap);
/* The host's time at the guest's @time on @cpu. */
uint64_t ky_dat_shift_time(const struct ky_dat_shift *shift, uint32_t cpu, uint64_t time);

#endif
