/* SPDX-License-Identifier: MIT */
/* The shared part of reading and copying a ring. */
#ifndef KY_RECORD_RINGS_USER_RING_INTERNAL_H
#define KY_RECORD_RINGS_USER_RING_INTERNAL_H

#include "record/rings/user-ring.h"

/* The message about malformed descriptions. */
extern const char ky_user_ring_nonsense[];

/* Stops reading the ring and logs @why, once. */
void ky_user_ring_set_broken(struct ky_user_ring *ring, const char *why);

/* Begins the trace. KYMO_E_FORMAT, KYMO_E_LIMIT: the program gets no trace. */
int ky_user_ring_make_trace(struct ky_user_ring *ring, struct ky_user_trace *trace,
			    const struct ky_user_place *place, struct kymo_error *err);
/* Writes the metadata (again). Malformed data of the program is not a failure. */
int ky_user_ring_describe(struct ky_user_ring *ring, struct ky_user_trace *trace,
			  struct kymo_error *err);

/* Copies the valid part of the blob. KYMO_E_FORMAT: it is not a blob; KYMO_E_MEMORY. */
int ky_user_ring_read_blob(struct ky_user_ring *ring, struct kymo_error *err);
/* As ky_user_ring_read(), but the call stops soon after @bytes_max. */
int ky_user_ring_read_some(struct ky_user_ring *ring, bool all, uint64_t bytes_max,
			   struct kymo_error *err);
/* Adds to the counts of the whole recording. */
void ky_user_ring_count(const struct ky_user_ring *ring, uint64_t events, uint64_t bytes,
			uint64_t lost);
/* Closes all files of the ring. */
void ky_user_ring_close(struct ky_user_ring *ring);

/* The number of records in the chunk: the program's count, limited by the chunk's size. */
uint64_t ky_user_ring_records(const struct kymo_ring_chunk *chunk);
/* Updates the counts of losses and of described events. */
void ky_user_ring_take_counts(struct ky_user_ring *ring);
/*
 * Writes losses that no packet has recorded yet: those of each buffer and, once, those that belong
 * to no buffer.
 */
int ky_user_ring_tell_losses(struct ky_user_ring *ring, struct ky_user_trace *trace,
			     struct kymo_error *err);

/*
 * user-ring-copy.c: makes a trace of the ring's contents at @place; no trace when the ring is
 * empty.
 */
int ky_user_ring_copy(struct ky_user_ring *ring, struct ky_user_trace *trace,
		      const struct ky_user_place *place, uint64_t *events, struct kymo_error *err);
/* Sets the UUID of the next trace. */
void ky_user_ring_set_uuid(struct ky_user_ring *ring, const uint8_t uuid[16]);

#endif
