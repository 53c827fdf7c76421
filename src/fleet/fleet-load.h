/* SPDX-License-Identifier: MIT */
/* What loading a trace, and loading one that grows, have in common. Threads: one at a time per object. */
#ifndef KY_FLEET_FLEET_LOAD_H
#define KY_FLEET_FLEET_LOAD_H

#include "fleet/fleet.h"

/* Numbers of batches have the slice's number above. */
#define KY_FLEET_SLICE_SHIFT 32

/* Rows that end after @after_ns, and at @until_ns at the latest. */
struct ky_fleet_slice {
	int64_t number, after_ns, until_ns;
	bool is_done;
};

struct ky_fleet_load {
	struct ky_fleet *store;
	const struct ky_trace_set *set;
	const struct ky_fleet_options *options;
	struct ky_fleet_result *result;
	struct ky_sql *sql;
	char trace[17];			    /* of all traces that are loaded together */
	const struct ky_fleet_slice *slice; /* NULL: all rows */
};

/* Opens ->sql, which the caller closes in any case, and names the trace. */
int ky_fleet_load_begin(struct ky_fleet_load *load, struct kymo_error *err);
/* The time that @text selects; 0: it selects no row. Reading the tables tells what is damaged. */
int64_t ky_fleet_load_time(struct ky_fleet_load *load, const char *text);
int ky_fleet_load_tables(struct ky_fleet_load *load, struct kymo_error *err);
/* fleet-report.c: rows of options->reports. */
int ky_fleet_load_reports(struct ky_fleet_load *load, struct kymo_error *err);

#endif
