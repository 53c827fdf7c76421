/* SPDX-License-Identifier: MIT */
/* The clocks of several traces: comparing their origins, and shifting clocks. */
#ifndef KY_STORE_CLOCKS_H
#define KY_STORE_CLOCKS_H

#include "store/read/trace.h"

/*
 * Shift the clocks of the traces of @set. @offsets: "OFFSET" for all traces, or "TRACE:OFFSET" for
 * traces whose path, or the end of it, matches the wildcard TRACE. OFFSET is a number of ns, or a
 * duration with a unit, and may be negative. The sum of all matching offsets counts.
 *
 * Returns 0, or KYMO_E_INVALID: malformed offset, no matching trace, or the clock leaves its range.
 */
int ky_clocks_shift(struct ky_trace_set *set, const char *const *offsets, size_t n_offsets,
		    struct kymo_error *err);

/*
 * Does @pattern match the trace's path, the one that was given, or one between them? Of each, or of what stands behind any
 * '/' of it.
 */
bool ky_clocks_is_meant(const struct ky_trace *trace, const char *pattern);

/*
 * Check whether times of different traces of @set can be compared. They can when the clocks count
 * from the Unix epoch, name the same origin (CTF 2), or have the same UUID (CTF 1.8), or when both
 * have neither and their names are equal.
 *
 * Returns 0 or KYMO_E_FORMAT, which names two traces that cannot be compared.
 */
int ky_clocks_correlate(const struct ky_trace_set *set, struct kymo_error *err);

#endif
