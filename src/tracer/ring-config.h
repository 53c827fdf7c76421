/* SPDX-License-Identifier: MIT */
/* The ring's configuration for the tracer's records: constants, so that the compiler specialises the fast path. */
#ifndef KY_TRACER_RING_CONFIG_H
#define KY_TRACER_RING_CONFIG_H

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <kymo/ring.h>

#include "abi/control.h"
#include "abi/packet.h"

/* A sub-buffer's header is opened, is closed; ring-file.c. */
void ky_packet_open(const void *client, const struct kymo_ring_packet *packet, void *header);
void ky_packet_close(const void *client, const struct kymo_ring_packet *packet, void *header);

static inline uint64_t ky_clock_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t ky_clock_tsc(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return ky_clock_monotonic();
#endif
}

/* LTTng's compact header (abi/control.h); @record: the id. */
static inline uint32_t ky_record_header(const void *record, const struct kymo_ring_spot *spot,
					union kymo_ring_header *header)
{
	uint32_t id = *(const uint32_t *)record;

	if (__builtin_expect(id <= KY_HEADER_ID_MAX &&
				     spot->now - spot->last < 1u << KY_HEADER_TIME_BITS,
			     1)) {
		header->word32 = id | (uint32_t)spot->now << 5;
		return KY_HEADER_COMPACT_BYTES;
	}
	header->bytes[0] = KY_HEADER_EXTENDED;
	memcpy(header->bytes + 1, &id, sizeof(id));
	memcpy(header->bytes + 5, &spot->now, sizeof(spot->now));
	return KY_HEADER_EXTENDED_BYTES;
}

#define KY_RING_CONFIG(clock_function)                                                    \
	{                                                                                 \
		.subbuf_header_bytes = KY_PACKET_PROLOG_BYTES, .clock = (clock_function), \
		.record_header = ky_record_header, .subbuf_open = ky_packet_open,         \
		.subbuf_close = ky_packet_close,                                          \
		.idle_stamps = UINT64_C(1) << KY_HEADER_TIME_BITS,                        \
	}

static const struct kymo_ring_config ky_ring_tsc = KY_RING_CONFIG(ky_clock_tsc);
static const struct kymo_ring_config ky_ring_monotonic = KY_RING_CONFIG(ky_clock_monotonic);

#endif
