/* SPDX-License-Identifier: MIT */
/*
 * One trace in several places: rotated chunks, snapshots and size-limited files of LTTng become one
 * trace with one stream for each data stream, so that order, losses and state are continuous.
 */
#ifndef KY_STORE_JOIN_H
#define KY_STORE_JOIN_H

#include "store/trace.h"

/*
 * Join what belongs together in @set, before its streams are numbered.
 *
 * Traces with the same UUID and environment become one when one's metadata describes all that the
 * other's does, and every one of their streams is continuous.
 * Files of a trace with the same stream class and instance become one stream when their packets
 * follow one another, by sequence number and time. Packets that an earlier file has too (snapshots
 * that overlap) are left out. Files that do not fit stay streams of their own.
 * Returns 0, KYMO_E_MEMORY or KYMO_E_IO.
 */
int ky_trace_set_join(struct ky_trace_set *set, struct kymo_error *err);

/* trace.c's; NULL is fine. */
void ky_trace_free(struct ky_trace *trace);

#endif
