/* SPDX-License-Identifier: MIT */
/*
 * Traces that lie in several places: rotated chunks, snapshots and size-limited files of LTTng
 * become one trace with one stream per data stream, so that order, losses and state are continuous.
 */
#ifndef KY_STORE_JOIN_H
#define KY_STORE_JOIN_H

#include "store/read/trace.h"

/*
 * Join the parts of traces in @set, before the numbering of its streams.
 *
 * Traces with the same UUID and environment become one when the metadata of one describes
 * everything that the other's describes, and all their streams are continuous. Files of a trace
 * with the same stream class and instance become one stream when their packets follow each other,
 * by sequence number and time. Packets that an earlier file has, too (overlapping snapshots), are
 * dropped. Other files stay streams of their own.
 *
 * Returns 0, KYMO_E_MEMORY or KYMO_E_IO.
 */
int ky_trace_set_join(struct ky_trace_set *set, struct kymo_error *err);

/* For trace.c; NULL is allowed. */
void ky_trace_free(struct ky_trace *trace);

#endif
