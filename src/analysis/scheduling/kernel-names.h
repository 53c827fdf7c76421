/* SPDX-License-Identifier: MIT */
/* Names of the kernel's functions in tables. Threads: any. */
#ifndef KY_ANALYSIS_SCHEDULING_KERNEL_NAMES_H
#define KY_ANALYSIS_SCHEDULING_KERNEL_NAMES_H

#include "analysis/reports/report.h"

/* "tick_nohz_handler", "hrtimer_run+0x1c"; empty where the name is not known. The names are read once for a model. */
void ky_cell_kernel_function(struct ky_table *table, struct ky_cell *cell, struct ky_model *model,
			     uint64_t address);

#endif
