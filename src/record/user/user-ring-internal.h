/* SPDX-License-Identifier: MIT */
/* What reading a ring and copying it share. */
#ifndef KY_RECORD_USER_USER_RING_INTERNAL_H
#define KY_RECORD_USER_USER_RING_INTERNAL_H

#include "record/user/user-ring.h"

/* The program's descriptions make no sense any more. */
extern const char ky_user_ring_nonsense[];

/* Nothing more is read of it; say why, once. */
void ky_user_ring_set_broken(struct ky_user_ring *ring, const char *why);

/* Begin the trace. KYMO_E_FORMAT, KYMO_E_LIMIT: of this program there is none at all. */
int ky_user_ring_make_trace(struct ky_user_ring *ring, struct ky_user_trace *trace,
			    struct ky_packet_store *store, struct kymo_error *err);
/* Write its metadata (again). A program that makes no sense (any more) is no failure. */
int ky_user_ring_describe(struct ky_user_ring *ring, struct ky_user_trace *trace,
			  struct kymo_error *err);

/* Copy what is valid of the blob now. KYMO_E_FORMAT: it is none; KYMO_E_MEMORY. */
int ky_user_ring_read_blob(struct ky_user_ring *ring, struct kymo_error *err);
/* As ky_user_ring_read(), of so many bytes, and some more. */
int ky_user_ring_read_some(struct ky_user_ring *ring, bool all, uint64_t bytes_max,
			   struct kymo_error *err);
/* Of the ring, nothing is open any more. */
void ky_user_ring_close(struct ky_user_ring *ring);

/* The records of the chunk: the program counts them, but only so many fit. */
uint64_t ky_user_ring_records(const struct kymo_ring_chunk *chunk);
/* What was lost until now, and what is described. */
void ky_user_ring_take_counts(struct ky_user_ring *ring);
/* Losses that no packet has told yet: those of each buffer; and what belongs to none, once. */
int ky_user_ring_tell_losses(struct ky_user_ring *ring, struct ky_user_trace *trace,
			     struct kymo_error *err);

/* user-ring-copy.c: what the ring holds becomes a trace in @store; none when it holds nothing. */
int ky_user_ring_copy(struct ky_user_ring *ring, struct ky_user_trace *trace,
		      struct ky_packet_store *store, uint64_t *events, struct kymo_error *err);
/* The UUID of the trace that is written next. */
void ky_user_ring_set_uuid(struct ky_user_ring *ring, const uint8_t uuid[16]);

#endif
