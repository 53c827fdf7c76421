/* SPDX-License-Identifier: MIT */
/*
 * A sink that forgets: it keeps the newest packets of each stream in memory, for snapshots. What a
 * stream called "statedump..." gets is kept for good: it says what the rest means.
 *
 * Threads: one at a time per sink.
 */
#ifndef KY_STORE_FLIGHT_SINK_H
#define KY_STORE_FLIGHT_SINK_H

#include "store/writer.h"

/* @keep_bytes: of each stream at least, where it had so many; and less than one packet more. */
int ky_flight_sink_open(uint64_t keep_bytes, struct ky_packet_sink **sink, struct kymo_error *err);

/*
 * Write what is kept to @to, behind the metadata as it is now: of the streams that forget; or of those that are kept for good.
 * *events: how many these are. Packets of the latter are counted anew: those between them may have been dropped.
 */
int ky_flight_sink_copy_events(const struct ky_packet_sink *flight, struct ky_packet_sink *to,
			       uint64_t *events, struct kymo_error *err);
int ky_flight_sink_copy_state(const struct ky_packet_sink *flight, struct ky_packet_sink *to,
			      uint64_t *events, struct kymo_error *err);

/* How many events are kept of stream @number. */
uint64_t ky_flight_sink_kept(const struct ky_packet_sink *flight, int number);
/* When the oldest packet begins of the streams that forget; UINT64_MAX: there is none. */
uint64_t ky_flight_sink_oldest(const struct ky_packet_sink *flight);
/* Forget the packets of stream @number that begin from @first_cycles to @last_cycles. How many events these had. */
uint64_t ky_flight_sink_drop(struct ky_packet_sink *flight, int number, uint64_t first_cycles,
			     uint64_t last_cycles);

#endif
