/* SPDX-License-Identifier: MIT */
/*
 * A trace in memory, for flight recorders: it keeps the newest packets of each stream for
 * snapshots. Streams "statedump..." keep all their packets, because the others' events refer to
 * them.
 *
 * Threads: one at a time per trace.
 */
#ifndef KY_STORE_MEMORY_TRACE_H
#define KY_STORE_MEMORY_TRACE_H

#include "store/packets/packet-store.h"

/*
 * @keep_bytes: minimum per stream, where it has that many; the trace keeps less than one packet
 *	more.
 */
int ky_memory_trace_open(uint64_t keep_bytes, struct ky_store_trace **trace,
			 struct kymo_error *err);

/*
 * Write the kept packets to @to, after the present metadata: those of streams that drop old
 * packets, or those of streams that keep all. *events: their number of events. Packets of the
 * latter get new sequence numbers, since packets between them may have been dropped.
 */
int ky_memory_trace_copy_events(const struct ky_store_trace *from, struct ky_store_trace *to,
				uint64_t *events, struct kymo_error *err);
int ky_memory_trace_copy_state(const struct ky_store_trace *from, struct ky_store_trace *to,
			       uint64_t *events, struct kymo_error *err);

/*
 * Moves the packets of streams that drop old packets to @to, which is the same trace in all calls, and has metadata of
 * its own. *events: their number of events.
 */
int ky_memory_trace_move_events(struct ky_store_trace *from, struct ky_store_trace *to,
				uint64_t *events, struct kymo_error *err);

/* The number of events of stream @number that it has, or that were moved. */
uint64_t ky_memory_trace_kept(const struct ky_store_trace *from, int number);
/* The begin of the oldest packet among streams that drop old packets; UINT64_MAX: none. */
uint64_t ky_memory_trace_oldest(const struct ky_store_trace *from);
/*
 * Drops the packets of stream @number that begin from @first_cycles to @last_cycles. Returns their
 * number of events.
 */
uint64_t ky_memory_trace_drop(struct ky_store_trace *from, int number, uint64_t first_cycles,
			      uint64_t last_cycles);
/* Drops all packets; streams keep their numbers. */
void ky_memory_trace_clear(struct ky_store_trace *from);

#endif
