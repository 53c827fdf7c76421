/* SPDX-License-Identifier: MIT */
/* The clocks of several traces: do they count from the same origin, and shifting them. */
#ifndef KY_STORE_CLOCKS_H
#define KY_STORE_CLOCKS_H

#include "store/trace.h"

/*
 * Shift the clocks of the traces of @set. @offsets: "OFFSET" for all traces, or "TRACE:OFFSET" for
 * those whose path, or the end of it, the wildcard TRACE matches. OFFSET is a number of ns, or a
 * duration with a unit, and may be negative. Several add up.
 *
 * Returns 0, or KYMO_E_INVALID: no such offset, no such trace, or the clock leaves its range.
 */
int ky_clocks_shift(struct ky_trace_set *set, const char *const *offsets, size_t n_offsets,
		    struct kymo_error *err);

/*
 * Can times of different traces of @set be compared? Clocks that count from the Unix epoch can, and
 * those that name the same origin (CTF 2) or have the same UUID (CTF 1.8), or tell neither but have
 * the same name.
 * Returns 0 or KYMO_E_FORMAT, which names two traces that cannot.
 */
int ky_clocks_correlate(const struct ky_trace_set *set, struct kymo_error *err);

#endif
