/* SPDX-License-Identifier: MIT */
/*
 * The "processed" format of the Firefox profiler (profiler.firefox.com): samples with their call stacks, and everything else as markers.
 * Its tables are columns of the whole profile, which stay in memory until the end: at most 1 GiB of them.
 */
#ifndef KY_ANALYSIS_EXPORT_FIREFOX_H
#define KY_ANALYSIS_EXPORT_FIREFOX_H

#include "analysis/addresses/trace-symbols.h"
#include "analysis/export/tracks.h"

/* @set must outlive it. @fd and @symbols (NULL: addresses have no names) are the caller's. */
int ky_firefox_open(const struct ky_trace_set *set, int fd, struct ky_trace_symbols *symbols,
		    struct ky_sink **sink, struct kymo_error *err);

#endif
