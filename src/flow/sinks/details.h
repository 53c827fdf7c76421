/* SPDX-License-Identifier: MIT */
/*
 * A sink with all details, for debugging traces and tracers. For people: the format is not fixed.
 */
#ifndef KY_FLOW_SINKS_DETAILS_H
#define KY_FLOW_SINKS_DETAILS_H

#include "flow/graph/sink.h"

/*
 * Writes to @fd (the caller's): for each trace of @set its environment, clocks and field classes as
 * trees, and each stream's packets; then the events, with all their scopes and their places in
 * their files. Returns NULL when memory is out.
 */
struct ky_sink *ky_details_sink_new(const struct ky_trace_set *set, int fd);

struct ky_strbuf;

/* Begins a line @depth levels deep; levels below 32 have the indent of level 32. */
void ky_details_indent(struct ky_strbuf *out, int depth);

/* The parts for the metadata (details-metadata.c) and the packets. */
void ky_details_trace(struct ky_strbuf *out, const struct ky_trace *trace);

#endif
