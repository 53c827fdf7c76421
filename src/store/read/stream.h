/* SPDX-License-Identifier: MIT */
/* Data streams during the opening and joining of traces; trace.h has the functions for readers. */
#ifndef KY_STORE_STREAM_H
#define KY_STORE_STREAM_H

#include "store/read/trace.h"

struct ky_scratch_stream;

/*
 * Map file @name of @trace, read its first packet, and append it to the trace's streams. @scratch: the
 * file, if it has no name in a directory; borrowed for the stream's life; or NULL. Returns 0,
 * KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_stream_open(struct ky_trace *trace, const char *name, struct ky_scratch_stream *scratch,
		   struct kymo_error *err);
/*
 * The file of @stream, which may grow (ky_stream_may_grow()) and is not empty, now has @size_bytes
 * of whole packets; UINT64_MAX: the file's size. Addresses of mapped data do not change.
 * KYMO_E_LIMIT: it has grown beyond the reserved range.
 */
int ky_stream_grow(struct ky_stream *stream, uint64_t size_bytes, struct kymo_error *err);
/* NULL is allowed. */
void ky_stream_free(struct ky_stream *stream);

/* Compares by (class id, instance id, name); streams without a packet come last. For qsort(). */
int ky_stream_compare(const void *a, const void *b);

#endif
