/* SPDX-License-Identifier: MIT */
/* What the parts of a repacker (repack.h) share: repack.c writes events, repack-packet.c the rest. */
#ifndef KY_CTF_ENCODE_REPACK_INTERNAL_H
#define KY_CTF_ENCODE_REPACK_INTERNAL_H

#include "ctf/encode/encode.h"
#include "ctf/encode/transcode.h"
#include "ctf/encode/repack.h"

struct ky_repacker {
	const struct ky_trace_class *as; /* what packets are written as; NULL: as they were */
	const struct ky_stream_class *as_stream;
	const struct ky_event_class **as_events; /* by index of the input's */
	struct ky_transcode transcode;
	struct ky_packet in;
	struct ky_values header, context; /* of the input packet, as they are written */
	struct ky_values patched;	  /* the context with new sizes and times */
	struct ky_values scratch;
	struct ky_encoder e;
	uint64_t *aligns; /* by event class index: ky_encode_max_align(); 0: not known yet */
	uint64_t clock;	  /* what a reader's running clock says */
	uint64_t begin_cycles, last_cycles, sequence;
	uint64_t n_events;
	bool has_begin_field, has_size_field, has_both_sizes;
	bool moved_begin;
};

/* The class of @as that @stream became: streams stay in order. */
const struct ky_stream_class *ky_repack_stream(const struct ky_trace_class *as,
					       const struct ky_stream_class *stream);
/* The header of the events that are written, or NULL. */
const struct ky_field_class *ky_repack_header(const struct ky_repacker *r);

/* Make the buffer larger, by @more_bytes at least. 0 or KYMO_E_MEMORY. */
int ky_repack_grow(struct ky_repacker *r, uint64_t more_bytes, struct kymo_error *err);
/* Write zeros up to a multiple of @align_bits. 0 or KYMO_E_MEMORY. */
int ky_repack_align(struct ky_repacker *r, uint64_t align_bits, struct kymo_error *err);
/* Write @values, one scope. 0, KYMO_E_MEMORY or KYMO_E_INVALID (ky_encode_scope()). */
int ky_repack_encode(struct ky_repacker *r, const struct ky_values *values, struct kymo_error *err);
/*
 * Decode @scope of @event, whose time (or whose packet's begin) is @begin_cycles, as it is to be
 * written. Returns the number of values, or negative: as ky_values_decode(), ky_transcode_scope().
 */
int ky_repack_decode(struct ky_repacker *r, struct ky_values *values, const struct ky_event *event,
		     enum ky_scope scope, uint64_t begin_cycles, struct kymo_error *err);

#endif
