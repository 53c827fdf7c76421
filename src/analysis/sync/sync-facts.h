/* SPDX-License-Identifier: MIT */
/*
 * What a trace's environment says of its clock (kernel-trace-clock.c writes it): readings of the processor's time stamp counter, and NTP's
 * state. Nothing in it is trusted. Threads: any, on different objects.
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

struct ky_sync_facts {
	/* The clock is the counter itself, or it was compared with it up to twice. */
	const struct ky_clock_class *counter;
	struct ky_sync_anchor anchors[2];
	unsigned int n_anchors;
	/* UTC minus the trace's time is from @utc_least to @utc_most, at the trace's begin and end. */
	bool has_utc;
	int64_t utc_least, utc_most;
	bool has_times;
	int64_t begin_ns, end_ns; /* of these statements and readings */
};

/* False: it says nothing. */
bool ky_sync_facts_of(const struct ky_trace *trace, struct ky_sync_facts *facts);

/* The trace's time when the counter is @tsc. False: unknown, or out of range. */
bool ky_sync_facts_ns(const struct ky_sync_facts *facts, uint64_t tsc,
		      struct ky_sync_anchor *anchor);

#endif
