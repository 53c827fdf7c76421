/* SPDX-License-Identifier: MIT */
/*
 * Names of the addresses in traces.
 *
 * Before the first look, one pass over the traces reads what processes had loaded, and when: LTTng's and Kymo's state dumps of
 * programs, their events of loaded libraries, the kernel's state dump of mapped files. The pass skips all other events; it is left
 * out where no event has addresses of programs.
 * The kernel's names, and those of JIT compilers, are those of this machine if the traces were recorded since it booted; else those
 * that the recording stored.
 * Threads: any; one look at a time.
 */
#ifndef KY_ANALYSIS_ADDRESSES_TRACE_SYMBOLS_H
#define KY_ANALYSIS_ADDRESSES_TRACE_SYMBOLS_H

#include "base/strbuf.h"
#include "flow/graph/flow.h"
#include "flow/sinks/address-names.h"
#include "symbols/lookup/symbols.h"

struct ky_trace_symbols;

struct ky_trace_symbols_options {
	const char *const *dirs; /* see ky_symbols_options */
	size_t n_dirs;
	bool want_lines;
	/* The traces are still being written: no pass over them. Programs that run tell themselves what they have loaded. */
	bool is_live;
	/* For ky_trace_store(): what was stored with the traces before is left out. */
	bool for_store;
	/* Says true once nobody wants the pass any more, which then ends with KYMO_E_INTERRUPTED; NULL: somebody always does. */
	bool (*is_over)(void *data);
	void *over_data;
};

/* Do events of @set have addresses of code? */
bool ky_trace_has_addresses(const struct ky_trace_set *set);

/* @set is borrowed, @options during the call. 0, or the error of the pass; damage in a trace only ends its part of the pass. */
int ky_trace_symbols_open(const struct ky_trace_set *set,
			  const struct ky_trace_symbols_options *options,
			  struct ky_trace_symbols **symbols, struct kymo_error *err);
void ky_trace_symbols_close(struct ky_trace_symbols *symbols);

/* For sinks; borrowed from @symbols. */
const struct ky_address_names *ky_trace_symbols_names(struct ky_trace_symbols *symbols);

/* What ky_symbols_resolve() gives for @address, a field of @event. One thread at a time. */
size_t ky_trace_symbols_resolve(struct ky_trace_symbols *symbols, const struct ky_event *event,
				uint64_t address, bool is_return,
				const struct ky_symbols_frame **frames);

/* What ky_symbols_place() tells of it. */
bool ky_trace_symbols_place(struct ky_trace_symbols *symbols, const struct ky_event *event,
			    uint64_t address, bool is_return, struct ky_symbols_place *place);

/* The process of @event in struct ky_symbols; -1: @address is the kernel's, or no process is known. */
int64_t ky_trace_symbols_process(struct ky_trace_symbols *symbols, const struct ky_event *event,
				 uint64_t address);
/* The symbols of all traces. */
struct ky_symbols *ky_trace_symbols_all(struct ky_trace_symbols *symbols);

/* Appends "inner shop.c:12, inlined in main+0x1c shop.c:34", or "libc.so.6+0x29d90" without a function. Names are escaped. */
void ky_trace_symbols_text(struct ky_strbuf *out, const struct ky_symbols_frame *frames, size_t n);

#endif
