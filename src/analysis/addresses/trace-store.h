/* SPDX-License-Identifier: MIT */
/*
 * Symbols that are stored with traces, so that addresses have names on other machines and later.
 *
 * The directory has BUILD-ID.kdi for each program and library with recorded addresses, with the functions at these addresses;
 * kallsyms with those of the kernel; perf-PID.map with those of compilers at run time. babeltrace and babeltrace2 pass over it.
 */
#ifndef KY_ANALYSIS_ADDRESSES_TRACE_STORE_H
#define KY_ANALYSIS_ADDRESSES_TRACE_STORE_H

#include "analysis/addresses/trace-symbols.h"

#define KY_TRACE_STORE "symbols" /* the directory, in that of the traces */

struct ky_trace_stored {
	uint64_t addresses, unknown; /* different ones; of these without a function */
	uint32_t files;		     /* written */
	uint32_t kernel_functions;
	const char
		*kernel_problem; /* see ky_symbols_kernel_problem(); valid until @symbols closes */
};

/*
 * Reads the events of @set and writes what their addresses need to @path/symbols. Reading ends at damage; what was read counts.
 * 0, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_trace_store(const struct ky_trace_set *set, struct ky_trace_symbols *symbols,
		   const char *path, struct ky_trace_stored *stored, struct kymo_error *err);

#endif
