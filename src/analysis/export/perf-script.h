/* SPDX-License-Identifier: MIT */
/*
 * The text of perf script: a line for each event, with the kernel's own names; below it the call stacks, the innermost frame
 * first. FlameGraph's stackcollapse-perf.pl and other readers of that text take it.
 */
#ifndef KY_ANALYSIS_EXPORT_PERF_SCRIPT_H
#define KY_ANALYSIS_EXPORT_PERF_SCRIPT_H

#include "analysis/addresses/trace-symbols.h"
#include "flow/graph/sink.h"

/* @set must outlive it; @fd and @symbols (NULL: addresses have no names) are the caller's. */
int ky_perf_script_open(const struct ky_trace_set *set, int fd, struct ky_trace_symbols *symbols,
			struct ky_sink **sink, struct kymo_error *err);

#endif
