/* SPDX-License-Identifier: MIT */
/*
* A trace in memory, for flight recorders: it keeps the newest packets of each stream in memory, for snapshots. What a
 * stream called "statedump..." gets is kept for good: it says what the rest means.
 *
 * Threads: one at a time per trace.
 */
#ifndef KY_STORE_MEMORY_TRACE_H
#define KY_STORE_MEMORY_TRACE_H

#include "store/packet-store.h"

/* @keep_bytes: of each stream at least, where it had so many; and less than one packet more. */
int ky_memory_trace_open(uint64_t keep_bytes, struct ky_store_trace **trace,
			 struct kymo_error *err);

/*
 * Write what is kept to @to, behind the metadata as it is now: of the streams that forget; or of those that are kept for good.
 * *events: how many these are. Packets of the latter are counted anew: those between them may have been dropped.
 */
int ky_memory_trace_copy_events(const struct ky_store_trace *from, struct ky_store_trace *to,
				uint64_t *events, struct kymo_error *err);
int ky_memory_trace_copy_state(const struct ky_store_trace *from, struct ky_store_trace *to,
			       uint64_t *events, struct kymo_error *err);

/* How many events are kept of stream @number. */
uint64_t ky_memory_trace_kept(const struct ky_store_trace *from, int number);
/* When the oldest packet begins of the streams that forget; UINT64_MAX: there is none. */
uint64_t ky_memory_trace_oldest(const struct ky_store_trace *from);
/* Forget the packets of stream @number that begin from @first_cycles to @last_cycles. How many events these had. */
uint64_t ky_memory_trace_drop(struct ky_store_trace *from, int number, uint64_t first_cycles,
			      uint64_t last_cycles);

#endif
