/* SPDX-License-Identifier: MIT */
/* A sink that tells everything, for debugging traces and tracers. For people: no fixed format. */
#ifndef KY_FLOW_SINKS_DETAILS_H
#define KY_FLOW_SINKS_DETAILS_H

#include "flow/graph/sink.h"

/*
 * Writes to @fd (the caller's): for each trace of @set its environment, clocks and field classes
 * as trees, and each stream's packets; then the events that come, with all their scopes and where
 * they lie in their file.
 * NULL when out of memory.
 */
struct ky_sink *ky_details_sink_new(const struct ky_trace_set *set, int fd);

struct ky_strbuf;

/* Begin a line @depth levels deep; all below 32 levels stand at that. */
void ky_details_indent(struct ky_strbuf *out, int depth);

/* The parts that tell about the metadata (details-metadata.c) and the packets. */
void ky_details_trace(struct ky_strbuf *out, const struct ky_trace *trace);

#endif
