/* SPDX-License-Identifier: MIT */
/* A table that reports share: who moved threads to other CPUs, and why. */
#ifndef KY_ANALYSIS_SCHEDULING_MIGRATIONS_H
#define KY_ANALYSIS_SCHEDULING_MIGRATIONS_H

#include "analysis/reports/report.h"

extern const struct ky_table_def ky_migrations_table;

/* For the hook migration(). 0 or KYMO_E_MEMORY. */
int ky_migrations_add(struct ky_aggregation *migrations, const struct ky_migration *migration);
/* The table's rows. 0 or KYMO_E_MEMORY. */
int ky_migrations_fill(struct ky_aggregation *migrations, struct ky_model *model,
		       struct ky_table *table, enum ky_by by);

#endif
