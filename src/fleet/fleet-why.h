/* SPDX-License-Identifier: MIT */
/* Which machines of a store stand out from the others. */
#ifndef KY_FLEET_FLEET_WHY_H
#define KY_FLEET_FLEET_WHY_H

#include "base/arena.h"
#include "fleet/fleet.h"

struct ky_fleet_measure {
	const char *name; /* "wait for a CPU" */
	const char *unit; /* "ns", "%", "" */
	const char *table;
	/* After SELECT host, : two sums, whose quotient is the measure. */
	const char *of, *per;
	const char *where; /* or "" */
	double factor;
};

/* A machine, or all machines with one kernel or tracer, that differs from the others. */
struct ky_fleet_finding {
	const struct ky_fleet_measure *measure;
	const char *kind; /* "host", "kernel", "tracer" */
	const char *name;
	double value, usual; /* of the others: the median */
	uint64_t n_hosts;    /* with this kernel or tracer; 1 for a host */
};

struct ky_fleet_why {
	struct ky_arena arena;
	uint64_t n_hosts, n_measures; /* that were compared */
	int64_t begin_ns, end_ns;
	KY_VEC(struct ky_fleet_finding) findings; /* the largest factor first */
};

/* Rows of the last @since_ns before the newest row. @why is to be freed after a failure, too. */
int ky_fleet_find_why(struct ky_fleet *store, uint64_t since_ns, struct ky_fleet_why *why,
		      struct kymo_error *err);
void ky_fleet_why_fini(struct ky_fleet_why *why);

#endif
