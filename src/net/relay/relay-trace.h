/* SPDX-License-Identifier: MIT */
/*
 * The files of one trace at a relay, in the layout of the directory store. All writes go to absolute
 * positions, so that a repeated one has the same effect.
 *
 * Errors: KYMO_E_FORMAT: the recorder's data makes no sense; KYMO_E_IO: the disk; KYMO_E_MEMORY.
 * Threads: one at a time per trace.
 */
#ifndef KY_NET_RELAY_RELAY_TRACE_H
#define KY_NET_RELAY_RELAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "net/files/relay-batch.h"
#include "net/protocol/frame.h"

struct ky_relay_trace;

/* What the traces of a session take. */
struct ky_relay_use {
	uint64_t added_bytes, removed_bytes; /* of their files, since the session was opened */
	size_t n_streams;		     /* of the traces that are open */
	size_t n_files;			     /* that are open */
	uint64_t memory_bytes;		     /* for what the recorder has defined */
};

/*
 * The trace at @path in the directory @dir_fd; the directory may exist. @dir_fd, @use and @batch must outlive it. Packets and
 * their index records go to @batch: the caller writes it before the next other call than these for packets.
 */
int ky_relay_trace_new(int dir_fd, const char *path, bool is_part, struct ky_relay_use *use,
		       struct ky_relay_batch *batch, struct ky_relay_trace **trace,
		       struct kymo_error *err);
/* Closes its files. NULL is allowed. */
void ky_relay_trace_free(struct ky_relay_trace *trace);

/* Stream number @number has the name @name. KYMO_E_LIMIT: the session has too many; KYMO_E_AGAIN: all sessions have. */
int ky_relay_trace_stream(struct ky_relay_trace *trace, uint32_t number, const char *name,
			  struct kymo_error *err);
/* Writes the data of a batch, or all of it. */
int ky_relay_trace_flush_data(struct ky_relay_batch *batch, struct kymo_error *err);
int ky_relay_trace_flush(struct ky_relay_batch *batch, struct kymo_error *err);
/* A packet of @bytes begins; its bytes come by ky_relay_trace_write(), and must stay until the batch's data is written. */
int ky_relay_trace_packet(struct ky_relay_trace *trace, const struct ky_net_data *data,
			  uint64_t bytes, struct kymo_error *err);
/* The metadata begins; its bytes come by ky_relay_trace_write(). */
int ky_relay_trace_metadata(struct ky_relay_trace *trace, struct kymo_error *err);
int ky_relay_trace_write(struct ky_relay_trace *trace, const uint8_t *data, size_t bytes,
			 struct kymo_error *err);
/* Removes metadata that is not whole: it comes again. */
void ky_relay_trace_drop_part(struct ky_relay_trace *trace);
int ky_relay_trace_packet_end(struct ky_relay_trace *trace, struct kymo_error *err);
int ky_relay_trace_metadata_end(struct ky_relay_trace *trace, struct kymo_error *err);
int ky_relay_trace_patch(struct ky_relay_trace *trace, uint64_t at_bytes, const uint8_t *data,
			 size_t bytes, struct kymo_error *err);
/* For live readers: all events before @until_cycles are here. */
int ky_relay_trace_beacon(struct ky_relay_trace *trace, uint64_t until_cycles,
			  struct kymo_error *err);
/* The streams are complete. */
void ky_relay_trace_end(struct ky_relay_trace *trace);
/* The trace is complete. */
void ky_relay_trace_close(struct ky_relay_trace *trace);
/* Removes the trace's files. */
void ky_relay_trace_discard(struct ky_relay_trace *trace);
/* Moves the trace to @archive; when it @continues, a new one begins in its place. */
int ky_relay_trace_rotate(struct ky_relay_trace *trace, const char *archive, bool continues,
			  struct kymo_error *err);

#endif
