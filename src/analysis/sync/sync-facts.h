/* SPDX-License-Identifier: MIT */
/*
 * What a trace's environment says of its clock (kernel-trace-clock.c writes it): readings of the processor's time stamp counter, and NTP's
 * state; and what logs say (sync-ptp.h). Nothing in it is trusted. Threads: any, on different objects.
 */
#ifndef KY_ANALYSIS_SYNC_SYNC_FACTS_H
#define KY_ANALYSIS_SYNC_SYNC_FACTS_H

#include "store/read/trace.h"

/* The counter and the trace's time, which is within +- error_ns. */
struct ky_sync_anchor {
	uint64_t tsc;
	int64_t ns;
	uint64_t error_ns;
};

/* Another time minus the trace's, at the trace's begin and end. */
struct ky_sync_range {
	bool has;
	int64_t least, most;
};

/* The times of which a machine knows how far its own is away. */
enum ky_sync_knows { KY_KNOWS_PTP, KY_KNOWS_UTC, KY_KNOWS };

#define KY_GRANDMASTER_BYTES 24

struct ky_sync_facts {
	/* The clock is the counter itself, or it was compared with it up to twice. */
	const struct ky_clock_class *counter;
	struct ky_sync_anchor anchors[2];
	unsigned int n_anchors;
	struct ky_sync_range wall; /* the system's clock */
	struct ky_sync_range of[KY_KNOWS];
	char grandmaster[KY_GRANDMASTER_BYTES]; /* PTP: whose time it is; "": unknown */
	bool is_grandmaster;			/* its own clock, at all times */
	bool has_times;
	int64_t begin_ns, end_ns; /* of these statements and readings */
};

/* False: it says nothing. */
bool ky_sync_facts_of(const struct ky_trace *trace, struct ky_sync_facts *facts);

/* The trace's time when the counter is @tsc. False: unknown, or out of range. */
bool ky_sync_facts_ns(const struct ky_sync_facts *facts, uint64_t tsc,
		      struct ky_sync_anchor *anchor);

#endif
