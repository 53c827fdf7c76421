/* SPDX-License-Identifier: MIT */
/*
 * The destination of finished packets: the push side of the record path.
 *
 * A packet store holds traces: a directory, memory, a network peer. A caller opens a trace in it,
 * adds streams to the trace, and gives each stream its packets. All callers use the functions
 * below, so that none of them depends on the kind of store. Some operations are optional: the
 * caller tests ky_store_can_...() first, or the function's comment says what happens without them.
 *
 * Errors of all functions: those of the store, KYMO_E_IO in most cases; KYMO_E_MEMORY. Threads: any
 * thread may open traces of a store. One thread at a time uses a trace, but different threads may
 * add and write different streams of one trace.
 */
#ifndef KY_STORE_PACKET_STORE_H
#define KY_STORE_PACKET_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/error.h"
#include "store/packets/block-writer.h"

/* A finished packet: its bytes, and its entry in the packet index. */
struct ky_packet_out {
	const void *data;
	size_t size_bytes; /* packet size, padding and @head included */
	const void *head;  /* the bytes before @data, of @head_bytes; NULL: none */
	size_t head_bytes;
	uint64_t content_bits;
	uint64_t begin_cycles, end_cycles;
	uint64_t discarded; /* cumulative count of lost events of this stream */
	uint64_t sequence;
	uint64_t stream_class_id, stream_id;
	uint64_t n_events; /* in the packet, for stores that count them; may be 0 */
	/*
	 * NULL, or the block that @data begins. The trace takes the block over, on failure too.
	 * Only for a trace with blocks, and then for all packets of the stream.
	 */
	struct ky_block *block;
	bool no_times; /* packets of this stream have no begin and end, so the stream gets no index */
};

/* Bytes of whole packets. */
struct ky_bytes_out {
	const void *data;
	uint64_t size_bytes;
	int fd; /* a file with the same bytes at offset_bytes, from which the kernel can copy; or -1. No head then */
	uint64_t offset_bytes;
	const void *head; /* the bytes before @data, of @head_bytes (size_bytes includes them) */
	uint64_t head_bytes;
};

struct ky_packet_store;
struct ky_store_trace;

/* The place of a new trace. */
struct ky_store_place {
	const char
		*path; /* in the store, "ust/pid/shop-17"; "": the store itself becomes the trace */
	/*
	 * All or nothing: the trace appears at @path when it is closed, and never after an error.
	 */
	bool is_atomic;
	/*
	 * True: the store adds a number to a path in use, "shop-17-2". False: a path in use is
	 * KYMO_E_INVALID.
	 */
	bool is_numbered;
	/* The trace is a part of something else: readers must not treat it as a trace. */
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
	/* Optional: NULL when the store does not support it. */
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
	int (*rotate)(struct ky_store_trace *trace, const char *archive, struct kymo_error *err);
};

struct ky_store_trace {
	const struct ky_store_trace_ops *ops;
	uint64_t bytes_written; /* of packets; threads add to it atomically */
	char *path;		/* in the store, as the store chose it; the trace owns it */
};

/* What a store has not passed on yet. */
struct ky_store_backlog {
	uint64_t memory_bytes, file_bytes;
	uint64_t spilled_bytes; /* that have been in the file so far */
};

/* A file of symbols that belongs to the traces of a store, or to those that a rotation has moved to @place. */
struct ky_store_file {
	const char *place; /* "": the store itself */
	const char *name;  /* as stored symbols have it, "kallsyms" */
	const void *data;
	size_t size_bytes;
};

struct ky_packet_store_ops {
	/* Optional. */
	uint32_t (*readers_delay_ms)(struct ky_packet_store *store);
	int (*readers_fd)(struct ky_packet_store *store);
	bool (*is_full)(struct ky_packet_store *store);
	void (*backlog)(struct ky_packet_store *store, struct ky_store_backlog *backlog);
	bool (*can_remove)(struct ky_packet_store *store);
	int (*remove)(struct ky_packet_store *store, const char *path, struct kymo_error *err);
	bool (*can_attach)(struct ky_packet_store *store);
	int (*attach)(struct ky_packet_store *store, const struct ky_store_file *file,
		      struct kymo_error *err);
	/* Required. */
	int (*open)(struct ky_packet_store *store, const struct ky_store_place *place,
		    struct ky_store_trace **trace, struct kymo_error *err);
	void (*free)(struct ky_packet_store *store);
};

struct ky_packet_store {
	const struct ky_packet_store_ops *ops;
	char *name; /* for messages: a directory's path; the store owns it */
};

/* ---- the store ------------------------------------------------------------------------ */

/*
 * Open a new trace at @place. The store must outlive the trace. KYMO_E_INVALID: the path is in use;
 * KYMO_E_NOT_FOUND: the parent of the store does not exist.
 */
static inline int ky_store_open(struct ky_packet_store *store, const struct ky_store_place *place,
				struct ky_store_trace **trace, struct kymo_error *err)
{
	return store->ops->open(store, place, trace, err);
}

/* The shortest delay that a live reader of the store wants, in ms; 0: there is no reader. */
static inline uint32_t ky_store_readers_delay_ms(struct ky_packet_store *store)
{
	return store->ops->readers_delay_ms ? store->ops->readers_delay_ms(store) : 0;
}

/* Whether there are live readers of the store. Without them, beacons would be useless packets. */
static inline bool ky_store_has_readers(struct ky_packet_store *store)
{
	return ky_store_readers_delay_ms(store) != 0;
}

/*
 * A descriptor that becomes readable when a live reader may have come. Its only user clears it with
 * ky_live_watch_clear(), and then asks ky_store_has_readers(). -1: none. The store owns it.
 */
static inline int ky_store_readers_fd(struct ky_packet_store *store)
{
	return store->ops->readers_fd ? store->ops->readers_fd(store) : -1;
}

/*
 * Whether the store has much that it cannot pass on at present: a network peer is slow or away. The
 * caller should read no further events, so that its buffers take them. The store still accepts
 * packets.
 */
static inline bool ky_store_is_full(struct ky_packet_store *store)
{
	return store->ops->is_full && store->ops->is_full(store);
}

/* Whether the store passes packets on to somebody else; *backlog: what waits for that. */
static inline bool ky_store_get_backlog(struct ky_packet_store *store,
					struct ky_store_backlog *backlog)
{
	if (store->ops->backlog)
		store->ops->backlog(store, backlog);
	return store->ops->backlog;
}

/* Whether the store removes complete traces. */
static inline bool ky_store_can_remove(struct ky_packet_store *store)
{
	return store->ops->can_remove && store->ops->can_remove(store);
}

/*
 * Removes everything at and below @path in the store: traces that a rotation has moved there, or that are closed. Without
 * effect when nothing is there. The caller has asked ky_store_can_remove().
 */
static inline int ky_store_remove(struct ky_packet_store *store, const char *path,
				  struct kymo_error *err)
{
	return store->ops->remove(store, path, err);
}

/* Whether the store takes files of symbols to where it has the traces. */
static inline bool ky_store_can_attach(struct ky_packet_store *store)
{
	return store->ops->can_attach && store->ops->can_attach(store);
}

/*
 * Puts @file into the directory of symbols at its place, where it replaces one with the same name. Without effect when the place is
 * gone. The caller has asked ky_store_can_attach(). KYMO_E_LIMIT: it is too large.
 */
static inline int ky_store_attach(struct ky_packet_store *store, const struct ky_store_file *file,
				  struct kymo_error *err)
{
	return store->ops->attach(store, file, err);
}

/* Frees the store. The caller must have closed its traces. NULL is allowed. */
static inline void ky_store_free(struct ky_packet_store *store)
{
	if (store)
		store->ops->free(store);
}

/* ---- a trace -------------------------------------------------------------------------- */

/*
 * Adds stream @name ("channel0_1"), before its first packet. Returns its number (>= 0) for the
 * calls below.
 */
static inline int ky_store_stream(struct ky_store_trace *trace, const char *name,
				  struct kymo_error *err)
{
	return trace->ops->stream(trace, name, err);
}

/* Appends a packet to stream number @stream. */
static inline int ky_store_packet(struct ky_store_trace *trace, int stream,
				  const struct ky_packet_out *packet, struct kymo_error *err)
{
	return trace->ops->packet(trace, stream, packet, err);
}

/*
 * Replaces the whole metadata by @text. Allowed until the trace's close, also after
 * ky_store_end_streams().
 */
static inline int ky_store_metadata(struct ky_store_trace *trace, const char *text,
				    size_t len_bytes, struct kymo_error *err)
{
	return trace->ops->metadata(trace, text, len_bytes, err);
}

/* Whether the caller can give the bytes of packets and their index entries separately. */
static inline bool ky_store_can_copy(const struct ky_store_trace *trace)
{
	return trace->ops->copy && trace->ops->list;
}

/*
 * Appends the bytes of any number of packets. The caller then calls ky_store_list() for each of
 * them.
 */
static inline int ky_store_copy(struct ky_store_trace *trace, int stream,
				const struct ky_bytes_out *bytes, struct kymo_error *err)
{
	return trace->ops->copy(trace, stream, bytes, err);
}

/* Adds the index entry of the next copied packet. */
static inline int ky_store_list(struct ky_store_trace *trace, int stream,
				const struct ky_packet_out *packet, struct kymo_error *err)
{
	return trace->ops->list(trace, stream, packet, err);
}

/*
 * Whether a part of the metadata can be replaced. If not, the caller gives the whole metadata
 * again.
 */
static inline bool ky_store_can_patch(const struct ky_store_trace *trace)
{
	return trace->ops->patch_metadata;
}

/* Writes @text over the metadata at byte @at_bytes; at its end: appends @text. */
static inline int ky_store_patch_metadata(struct ky_store_trace *trace, uint64_t at_bytes,
					  const char *text, size_t len_bytes,
					  struct kymo_error *err)
{
	return trace->ops->patch_metadata(trace, at_bytes, text, len_bytes, err);
}

/*
 * Packets come as blocks of @blocks, which must outlive @trace. Returns false when the store does
 * not support blocks.
 */
static inline bool ky_store_use_blocks(struct ky_store_trace *trace, struct ky_block_writer *blocks)
{
	if (trace->ops->use_blocks)
		trace->ops->use_blocks(trace, blocks);
	return trace->ops->use_blocks;
}

/* Makes all packets so far visible to readers of the store. No effect for a store without delay. */
static inline int ky_store_flush(struct ky_store_trace *trace, struct kymo_error *err)
{
	return trace->ops->flush ? trace->ops->flush(trace, err) : KYMO_OK;
}

/*
 * Report to live readers: no future packet of stream @stream has an event before @until_cycles.
 * @stream < 0: no packet of any of the trace's streams, including future streams. The store flushes
 * earlier packets first. No effect for a store without live readers.
 */
static inline int ky_store_beacon(struct ky_store_trace *trace, int stream, uint64_t until_cycles,
				  struct kymo_error *err)
{
	return trace->ops->beacon ? trace->ops->beacon(trace, stream, until_cycles, err) : KYMO_OK;
}

/*
 * No packet follows. The store completes the streams and frees their resources (open files,
 * memory). The metadata may still change. So thousands of traces can wait for their last metadata.
 */
static inline int ky_store_end_streams(struct ky_store_trace *trace, struct kymo_error *err)
{
	return trace->ops->end_streams ? trace->ops->end_streams(trace, err) : KYMO_OK;
}

/*
 * The trace so far is complete and moves to @archive, a path in the store that is not in use. A new
 * trace begins in its place: streams keep their numbers, and the caller must give the new trace its
 * metadata. After ky_store_end_streams() no new trace begins. KYMO_E_UNSUPPORTED: the store cannot
 * rotate this trace, and nothing has changed.
 */
static inline int ky_store_rotate(struct ky_store_trace *trace, const char *archive,
				  struct kymo_error *err)
{
	if (trace->ops->rotate)
		return trace->ops->rotate(trace, archive, err);
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "traces of this kind cannot be rotated");
}

/* Completes the trace and frees it, on failure too. NULL is allowed. */
static inline int ky_store_close(struct ky_store_trace *trace, struct kymo_error *err)
{
	return trace ? trace->ops->close(trace, err) : KYMO_OK;
}

/*
 * The alternative to ky_store_close(): removes everything that was written to the trace, and frees
 * it. A store that cannot remove anything closes the trace. NULL is allowed.
 */
static inline void ky_store_discard(struct ky_store_trace *trace)
{
	if (trace && trace->ops->discard)
		trace->ops->discard(trace);
	else
		(void)ky_store_close(trace, NULL);
}

#endif
