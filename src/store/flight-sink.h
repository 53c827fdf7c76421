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

/* Write all that is kept, and the last metadata, to @to. *events: how many these are. */
int ky_flight_sink_copy(const struct ky_packet_sink *flight, struct ky_packet_sink *to,
			uint64_t *events, struct kymo_error *err);

#endif
