/* SPDX-License-Identifier: MIT */
/* Data streams while traces are opened and joined; what readers ask of them is in trace.h. */
#ifndef KY_STORE_STREAM_H
#define KY_STORE_STREAM_H

#include "store/trace.h"

/*
 * Map file @name of @trace, and learn from its first packet: the last of the trace's streams. @fd: that file, which is in
 * no directory, borrowed as long as the stream; or -1. 0, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_stream_open(struct ky_trace *trace, const char *name, int fd, struct kymo_error *err);
/*
 * The file of @stream, which may grow (ky_stream_may_grow()) and is not empty, has @size_bytes of whole packets now; UINT64_MAX:
 * as many as the file has. Addresses of what is mapped stay. KYMO_E_LIMIT: it has grown beyond what was reserved.
 */
int ky_stream_grow(struct ky_stream *stream, uint64_t size_bytes, struct kymo_error *err);
/* NULL is fine. */
void ky_stream_free(struct ky_stream *stream);

/* (class id, instance id, name); streams without a packet come last. For qsort(). */
int ky_stream_compare(const void *a, const void *b);

#endif
