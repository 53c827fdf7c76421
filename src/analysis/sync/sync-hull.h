/* SPDX-License-Identifier: MIT */
/*
 * The clocks of two machines from messages between them: convex hulls, after Jabbarifar. docs/design/clocks.md has the proof.
 *
 * A point is (x, y): at x, by clock B, the reading of clock A minus that of clock B is at least y (the message went from A to B), or at most y
 * (from B to A). The straight lines that keep to all points are the clocks that may be. All products have 128 bits: nothing is rounded before
 * the result. Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_SYNC_SYNC_HULL_H
#define KY_ANALYSIS_SYNC_SYNC_HULL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/* Points further away than 73 years are refused: products stay below 2^127. */
#define KY_HULL_FAR (INT64_C(1) << 61)

struct ky_hull_point {
	int64_t x, y;
};

KY_VEC_TYPE(ky_hull_points, struct ky_hull_point);

/* Points of one direction. What no hull needs is dropped now and then. */
struct ky_hull {
	struct ky_hull_points points;
	size_t sorted; /* so many are left of the last time */
	uint64_t n;    /* all that were added */
};

/* 0 or KYMO_E_MEMORY. Points that are too far away are ignored. */
int ky_hull_add(struct ky_hull *hull, int64_t x, int64_t y);
/* All points of @from are added. */
int ky_hull_join(struct ky_hull *hull, const struct ky_hull *from);
void ky_hull_fini(struct ky_hull *hull);

/* How fast one clock runs ahead of another, in 10^-18, at most: KY_SYNC_DRIFT_MAX. */
struct ky_hull_line {
	bool is_possible;   /* a line keeps to all points */
	bool is_drift_seen; /* points bound the drift on both sides, within the assumption */
	int64_t at, offset; /* A - B at B's time @at */
	int64_t drift;
	uint64_t drift_bound;
	int64_t begin, end; /* of the points */
	uint64_t begin_bound, end_bound;
};

/*
 * @least, @most: what the offset is at least, at most; both have a point. @drift_max: what is assumed of the drift, 10^-18. 0 or
 * KYMO_E_MEMORY.
 */
int ky_hull_solve(const struct ky_hull *least, const struct ky_hull *most, int64_t drift_max,
		  struct ky_hull_line *line);

#endif
