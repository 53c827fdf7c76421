/* SPDX-License-Identifier: MIT */
/* What processes had loaded, from the events of traces (trace-symbols.h). */
#ifndef KY_ANALYSIS_ADDRESSES_TRACE_MAPS_H
#define KY_ANALYSIS_ADDRESSES_TRACE_MAPS_H

#include "base/hash.h"
#include "flow/graph/flow.h"
#include "symbols/lookup/symbols.h"

/* The number of process @pid of a trace in struct ky_symbols: programs may count in a namespace of their own. */
static inline int64_t ky_trace_maps_process(size_t trace, bool is_kernel, uint32_t pid)
{
	return is_kernel ? (int64_t)pid : (int64_t)((uint64_t)(trace + 1) << 32 | pid);
}

/* Has the trace events of the kernel? */
bool ky_trace_maps_is_kernel(const struct ky_trace_class *cls);

/*
 * Reads @set into @symbols; @tids gets the process of each of the kernel's threads, + 1. @is_over: as of struct ky_trace_symbols_options. 0, or an
 * error other than damage.
 */
int ky_trace_maps_read(const struct ky_trace_set *set, struct ky_symbols *symbols,
		       struct ky_map *tids, bool (*is_over)(void *data), void *over_data,
		       struct kymo_error *err);

#endif
