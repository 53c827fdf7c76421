/* SPDX-License-Identifier: MIT */
/* Report block: how many requests the devices have, over time. */
#ifndef KY_ANALYSIS_RESOURCES_BLOCK_LOAD_H
#define KY_ANALYSIS_RESOURCES_BLOCK_LOAD_H

#include "analysis/reports/report.h"

#define KY_LOAD_STEPS 20

struct ky_device_load {
	const struct ky_disk *disk;
	int64_t begin_ns,
		step_ns;  /* of the first step; steps are doubled where they do not reach */
	int64_t since_ns; /* n_issued holds since then */
	uint32_t n_issued;
	struct {
		uint64_t ns, busy_ns; /* requests times their time; with at least one */
		uint32_t most;
	} steps[KY_LOAD_STEPS];
};

struct ky_loads {
	KY_VEC(struct ky_device_load) devices; /* by the disk's index */
};

extern const struct ky_table_def ky_load_table, ky_load_steps_table;

void ky_loads_fini(struct ky_loads *loads);
/* disk->n_issued has changed at @ns. @begin_ns: of the range. 0 or KYMO_E_MEMORY. */
int ky_loads_see(struct ky_loads *loads, const struct ky_disk *disk, int64_t begin_ns, int64_t ns);
/* The range ends at @end_ns: rows of the two tables. */
void ky_loads_fill(struct ky_loads *loads, const struct ky_model *model, int64_t end_ns,
		   struct ky_table *sums, struct ky_table *steps);

#endif
