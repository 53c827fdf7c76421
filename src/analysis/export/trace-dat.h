/* SPDX-License-Identifier: MIT */
/*
 * trace.dat of version 6, which trace-cmd and KernelShark read: the kernel's events of one machine, with the kernel's own names.
 * Strings and arrays of an event are cut where it would not fit into a page.
 */
#ifndef KY_ANALYSIS_EXPORT_TRACE_DAT_H
#define KY_ANALYSIS_EXPORT_TRACE_DAT_H

#include "flow/graph/sink.h"

/*
 * @set must outlive it; @fd is the caller's. Pages of each CPU stay in files without names in @directory until the end.
 * KYMO_E_UNSUPPORTED: no trace is a kernel's, or they are of several machines.
 */
int ky_trace_dat_open(const struct ky_trace_set *set, int fd, const char *directory,
		      struct ky_sink **sink, struct kymo_error *err);

#endif
