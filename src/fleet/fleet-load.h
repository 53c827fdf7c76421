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
	bool has_events;
	char trace[17];			    /* its name in the store: ky_fleet_key_find() */
	const struct ky_fleet_slice *slice; /* NULL: all rows */
};

/* Names the trace. */
int ky_fleet_key_find(struct ky_fleet_load *load, struct kymo_error *err);
/*
 * A recorder learns the frequency of its clock better while it records. All slices have the clock of the first one, which the store keeps: else
 * a row at the border of two slices would be in both, or in none.
 */
int ky_fleet_clocks_keep(struct ky_fleet_load *load, struct kymo_error *err);
/* Opens ->sql, which the caller closes in any case. */
int ky_fleet_load_open(struct ky_fleet_load *load, struct kymo_error *err);
/* The time that @text selects; 0: it selects no row. Reading the tables tells what is damaged. */
int64_t ky_fleet_load_time(struct ky_fleet_load *load, const char *text);
/* Of a trace that has slices: the rest of it. */
int ky_fleet_load_rest(struct ky_fleet_load *load, struct kymo_error *err);
int ky_fleet_load_tables(struct ky_fleet_load *load, struct kymo_error *err);
/* fleet-report.c: rows of options->reports. */
int ky_fleet_load_reports(struct ky_fleet_load *load, struct kymo_error *err);

#endif
