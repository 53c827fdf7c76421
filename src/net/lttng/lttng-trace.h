/* SPDX-License-Identifier: MIT */
/*
 * The directory of one LTTng trace in a chunk: its metadata, and its file `.live` (store/live/live-file.h).
 *
 * Metadata comes in pieces, which a hidden file collects. Readers see it whole: the file `metadata` is replaced when the
 * trace is published, before its file `.live` tells of later packets.
 *
 * Errors: KYMO_E_IO: the disk; KYMO_E_MEMORY; KYMO_E_LIMIT.
 * Threads: one.
 */
#ifndef KY_NET_LTTNG_LTTNG_TRACE_H
#define KY_NET_LTTNG_LTTNG_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "net/files/relay-batch.h"
#include "net/lttng/lttng-session.h"
#include "os/event-loop.h"

struct ky_lttng_stream;
struct ky_lttng_trace;

/* The traces of a relay, with a timer that publishes those that have changed. */
struct ky_lttng_traces {
	struct ky_loop_source *timer;
	bool is_armed;
	size_t next; /* where the timer's next round begins in the list */
	KY_VEC(struct ky_lttng_trace *) list;
	struct ky_relay_batch batch; /* packets on their way to their files */
};

struct ky_lttng_trace {
	struct ky_lttng_traces *traces;
	struct ky_lttng_chunk *chunk;
	char *path; /* in the chunk's directory */
	int fd, index_fd;
	bool is_changed; /* since it was published */
	uint64_t published_ms;
	uint64_t until_cycles; /* as published */
	int metadata_fd;       /* of the file that collects; -1: none came yet */
	uint64_t metadata_bytes, shown_bytes;
	uint64_t metadata_ms;  /* when the last piece came */
	struct ky_strbuf done; /* lines of streams that have left the trace, for `.live` */
	KY_VEC(struct ky_lttng_stream *) streams;
};

/* KYMO_E_IO, KYMO_E_MEMORY. @loop must outlive it. */
int ky_lttng_traces_init(struct ky_lttng_traces *traces, struct ky_loop *loop,
			 struct kymo_error *err);
void ky_lttng_traces_fini(struct ky_lttng_traces *traces);

/*
 * Writes what ky_lttng_stream_write() has got. After a failure, the streams have no index. KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_lttng_traces_write(struct ky_lttng_traces *traces, struct kymo_error *err);

/* The trace at @path in @chunk, which @stream joins: opened, unless another stream has it open. */
int ky_lttng_trace_join(struct ky_lttng_traces *traces, struct ky_lttng_chunk *chunk,
			const char *path, struct ky_lttng_stream *stream,
			struct ky_lttng_trace **trace, struct kymo_error *err);
/* The stream leaves it, with its @lines of `.live`; the trace is complete when the last stream has left. */
void ky_lttng_trace_leave(struct ky_lttng_trace *trace, struct ky_lttng_stream *stream,
			  const struct ky_strbuf *lines);

/* There is something new to publish. */
void ky_lttng_trace_change(struct ky_lttng_trace *trace);

/* Appends to the metadata. */
int ky_lttng_trace_metadata(struct ky_lttng_trace *trace, const uint8_t *data, size_t bytes,
			    struct kymo_error *err);
/* Appends @bytes zeros to the metadata. */
int ky_lttng_trace_pad_metadata(struct ky_lttng_trace *trace, uint64_t bytes,
				struct kymo_error *err);
/* The metadata begins anew. */
int ky_lttng_trace_reset_metadata(struct ky_lttng_trace *trace, struct kymo_error *err);

/* The error of a failed call on file @name of the trace: KYMO_E_IO, KYMO_E_MEMORY. */
int ky_lttng_trace_io_error(const struct ky_lttng_trace *trace, const char *name, int errnum,
			    const char *what, struct kymo_error *err);

#endif
