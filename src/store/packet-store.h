/* SPDX-License-Identifier: MIT */
/*
 * Where finished packets go: the push side of the record path.
 *
 * A packet store holds traces: a directory, memory, a network peer. A caller opens a trace in it, adds streams to the
 * trace, and gives each stream its packets. All callers use the functions below, so that none of them depends on the
 * kind of store. What only some stores can do is optional: the caller asks with ky_store_can_...() first, or the
 * function's comment says what happens otherwise.
 *
 * Errors of all functions: what the store met, KYMO_E_IO in most cases; KYMO_E_MEMORY.
 * Threads: any thread may open traces of a store. One thread at a time uses a trace, but different streams of one trace
 * may be added and written by different threads.
 */
#ifndef KY_STORE_PACKET_STORE_H
#define KY_STORE_PACKET_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "store/block-writer.h"

/* A finished packet: its bytes, and what the packet index says about them. */
struct ky_packet_out {
	const void *data;
	size_t size_bytes; /* packet size, padding and @head included */
	const void *head;  /* what stands before @data, of @head_bytes; NULL: nothing does */
	size_t head_bytes;
	uint64_t content_bits;
	uint64_t begin_cycles, end_cycles;
	uint64_t discarded; /* cumulative event records lost on this stream */
	uint64_t sequence;
	uint64_t stream_class_id, stream_id;
	uint64_t n_events; /* in the packet, for stores that count them; may be 0 */
	/*
	 * NULL, or the block that @data begins. The block belongs to the trace from then on, on failure too. Only for a
	 * trace with blocks, and then for all packets of the stream.
	 */
	struct ky_block *block;
	bool no_times; /* packets of this stream have no begin and end: the stream gets no index */
};

/* Bytes of whole packets. */
struct ky_bytes_out {
	const void *data;
	uint64_t size_bytes;
	int fd; /* a file that has the same bytes at offset_bytes, for the kernel to copy from; or -1. No head then */
	uint64_t offset_bytes;
	const void *head; /* what stands before @data, of @head_bytes (size_bytes includes them) */
	uint64_t head_bytes;
};

struct ky_packet_store;
struct ky_store_trace;

/* How a trace is opened. */
struct ky_store_place {
	const char *
		path; /* below the store, "ust/pid/shop-17"; "": the store itself becomes the trace */
	/* All or nothing: the trace appears at @path when it is closed, and not at all after an error. */
	bool is_atomic;
	/* A path in use gets a number, "shop-17-2"; else a path in use is KYMO_E_INVALID. */
	bool is_numbered;
	/* The trace is a part of something else: readers that look for traces do not take it for one. */
	bool is_part;
};

struct ky_store_trace_ops {
	/* Required. */
	int (*stream)(struct ky_store_trace *trace, const char *name, struct kymo_error *err);
	int (*packet)(struct ky_store_trace *trace, int stream, const struct ky_packet_out *packet,
		      struct kymo_error *err);
	int (*metadata)(struct ky_store_trace *trace, const char *text, size_t len_bytes,
			struct kymo_error *err);
	int (*close)(struct ky_store_trace *trace, struct kymo_error *err);
	/* Optional: NULL where the store cannot do it. */
	void (*discard)(struct ky_store_trace *trace);
	int (*copy)(struct ky_store_trace *trace, int stream, const struct ky_bytes_out *bytes,
		    struct kymo_error *err);
	int (*list)(struct ky_store_trace *trace, int stream, const struct ky_packet_out *packet,
		    struct kymo_error *err);
	int (*patch_metadata)(struct ky_store_trace *trace, uint64_t at_bytes, const char *text,
			      size_t len_bytes, struct kymo_error *err);
	void (*use_blocks)(struct ky_store_trace *trace, struct ky_block_writer *blocks);
	int (*flush)(struct ky_store_trace *trace, struct kymo_error *err);
	int (*beacon)(struct ky_store_trace *trace, int stream, uint64_t until_cycles,
		      struct kymo_error *err);
	int (*end_streams)(struct ky_store_trace *trace, struct kymo_error *err);
	int (*rotate)(struct ky_store_trace *trace, const char *path, struct kymo_error *err);
};

struct ky_store_trace {
	const struct ky_store_trace_ops *ops;
	uint64_t bytes_written; /* of packets; threads add to it atomically */
	char *path;		/* below the store, as the store chose it; the trace's */
};

struct ky_packet_store_ops {
	/* Optional. */
	bool (*has_readers)(struct ky_packet_store *store);
	int (*readers_fd)(struct ky_packet_store *store);
	/* Required. */
	int (*open)(struct ky_packet_store *store, const struct ky_store_place *place,
		    struct ky_store_trace **trace, struct kymo_error *err);
	void (*free)(struct ky_packet_store *store);
};

struct ky_packet_store {
	const struct ky_packet_store_ops *ops;
	char *name; /* for messages: a directory's path; the store's */
};

/* ---- the store ------------------------------------------------------------------------ */

/*
 * Open a new trace at @place. The store must outlive the trace.
 * KYMO_E_INVALID: there is something at that path; KYMO_E_NOT_FOUND: the store itself has no place to be.
 */
static inline int ky_store_open(struct ky_packet_store *store, const struct ky_store_place *place,
				struct ky_store_trace **trace, struct kymo_error *err)
{
	return store->ops->open(store, place, trace, err);
}

/* Does somebody read the store while it is written? Only then beacons are worth their packets. */
static inline bool ky_store_has_readers(struct ky_packet_store *store)
{
	return store->ops->has_readers && store->ops->has_readers(store);
}

/*
 * A descriptor that becomes readable when there may be a reader: then ky_store_has_readers() tells, and makes it
 * unreadable. -1: there is none. The store's.
 */
static inline int ky_store_readers_fd(struct ky_packet_store *store)
{
	return store->ops->readers_fd ? store->ops->readers_fd(store) : -1;
}

/* Frees the store; its traces are closed before. NULL is fine. */
static inline void ky_store_free(struct ky_packet_store *store)
{
	if (store)
		store->ops->free(store);
}

/* ---- a trace -------------------------------------------------------------------------- */

/* Add stream @name ("channel0_1"), before its first packet. Returns its number (>= 0) for the calls below. */
static inline int ky_store_stream(struct ky_store_trace *trace, const char *name,
				  struct kymo_error *err)
{
	return trace->ops->stream(trace, name, err);
}

/* Append a packet to stream number @stream. */
static inline int ky_store_packet(struct ky_store_trace *trace, int stream,
				  const struct ky_packet_out *packet, struct kymo_error *err)
{
	return trace->ops->packet(trace, stream, packet, err);
}

/* Replace the metadata by @text, all of it. Allowed until the trace is closed, also after ky_store_end_streams(). */
static inline int ky_store_metadata(struct ky_store_trace *trace, const char *text,
				    size_t len_bytes, struct kymo_error *err)
{
	return trace->ops->metadata(trace, text, len_bytes, err);
}

/* Can the caller give the bytes of packets and their index entries separately? */
static inline bool ky_store_can_copy(const struct ky_store_trace *trace)
{
	return trace->ops->copy && trace->ops->list;
}

/* Append the bytes of any number of packets. ky_store_list() follows for each of them. */
static inline int ky_store_copy(struct ky_store_trace *trace, int stream,
				const struct ky_bytes_out *bytes, struct kymo_error *err)
{
	return trace->ops->copy(trace, stream, bytes, err);
}

/* Add the index entry of the next packet that was copied. */
static inline int ky_store_list(struct ky_store_trace *trace, int stream,
				const struct ky_packet_out *packet, struct kymo_error *err)
{
	return trace->ops->list(trace, stream, packet, err);
}

/* Can a part of the metadata be replaced? Else the caller gives all of it again. */
static inline bool ky_store_can_patch(const struct ky_store_trace *trace)
{
	return trace->ops->patch_metadata;
}

/* Write @text over the metadata at byte @at_bytes; at its end: append @text. */
static inline int ky_store_patch_metadata(struct ky_store_trace *trace, uint64_t at_bytes,
					  const char *text, size_t len_bytes,
					  struct kymo_error *err)
{
	return trace->ops->patch_metadata(trace, at_bytes, text, len_bytes, err);
}

/* Packets come as blocks of @blocks, which must outlive @trace, where the store can take them; false: it cannot. */
static inline bool ky_store_use_blocks(struct ky_store_trace *trace, struct ky_block_writer *blocks)
{
	if (trace->ops->use_blocks)
		trace->ops->use_blocks(trace, blocks);
	return trace->ops->use_blocks;
}

/* Whoever reads the store finds all packets that it was given. A store that delays nothing does nothing. */
static inline int ky_store_flush(struct ky_store_trace *trace, struct kymo_error *err)
{
	return trace->ops->flush ? trace->ops->flush(trace, err) : KYMO_OK;
}

/*
 * Tell those who read the trace while it is written: no packet that is yet to come of stream @stream has an event
 * before @until_cycles. @stream < 0: of none of the trace's streams, those still to come included. The store
 * flushes what it was given before. A store that has no live readers does nothing.
 */
static inline int ky_store_beacon(struct ky_store_trace *trace, int stream, uint64_t until_cycles,
				  struct kymo_error *err)
{
	return trace->ops->beacon ? trace->ops->beacon(trace, stream, until_cycles, err) : KYMO_OK;
}

/*
 * No packet follows. The store completes the streams and gives up what it holds for them (open files, memory); the
 * metadata may still change. So thousands of traces can wait for their last metadata.
 */
static inline int ky_store_end_streams(struct ky_store_trace *trace, struct kymo_error *err)
{
	return trace->ops->end_streams ? trace->ops->end_streams(trace, err) : KYMO_OK;
}

/*
 * The trace is complete as it is, and a new one begins at @path, below the store: streams keep their numbers, and
 * their next packets go there. The caller gives the new trace its metadata. KYMO_E_UNSUPPORTED: the store cannot, and @err says nothing.
 */
static inline int ky_store_rotate(struct ky_store_trace *trace, const char *path,
				  struct kymo_error *err)
{
	return trace->ops->rotate ? trace->ops->rotate(trace, path, err) : KYMO_E_UNSUPPORTED;
}

/* Complete the trace and free it, on failure too. NULL is fine. */
static inline int ky_store_close(struct ky_store_trace *trace, struct kymo_error *err)
{
	return trace ? trace->ops->close(trace, err) : KYMO_OK;
}

/*
 * Instead of ky_store_close(): remove all that was written to the trace, and free it. A store that cannot remove
 * anything closes the trace. NULL is fine.
 */
static inline void ky_store_discard(struct ky_store_trace *trace)
{
	if (trace && trace->ops->discard)
		trace->ops->discard(trace);
	else
		(void)ky_store_close(trace, NULL);
}

#endif
