/* SPDX-License-Identifier: MIT */
/*
 * Traces that are not in directories: somebody, such as a client of a relay, puts their packets into files without a name while
 * they are read. An address (struct ky_trace_at_feed) stands for all traces of a feed.
 *
 *	ky_feed_ops.more()	the owner brings what has come
 *	ky_feed_add_trace(), ky_feed_add_stream(), ky_feed_add_packet()
 *	follow.h		tells readers of it
 *
 * A live feed drops packets that its readers have passed, so that its files stay small. One that keeps them has a limit.
 *
 * Threads: one at a time per feed, which is also that of the readers.
 */
#ifndef KY_STORE_FEED_H
#define KY_STORE_FEED_H

#include "store/live/live-file.h"
#include "store/packets/scratch-trace.h"

/* What the files of a feed have, at most: on disk; in memory, of a live feed that drops what was read. */
#define KY_FEED_KEPT_MAX (UINT64_C(16) << 30)
#define KY_FEED_HELD_MAX (UINT64_C(1) << 30)

struct ky_feed_packet {
	uint64_t begin_bytes, end_bytes; /* in the stream */
	uint64_t end_cycles;
};

struct ky_feed_stream {
	struct ky_scratch_stream *file;	       /* in the trace's list */
	KY_VEC(struct ky_feed_packet) packets; /* those that the file has, from n_dropped on */
	size_t n_dropped;
	uint64_t until_cycles; /* all future events are at this time or later */
	bool has_until, has_ended;
};

struct ky_feed_trace {
	struct ky_feed *feed;
	char *name; /* its place below the address */
	struct ky_scratch_trace files;
	KY_VEC(struct ky_feed_stream *) streams; /* as many as files.streams, in the same order */
	bool is_written;			 /* there may be more */
	bool is_live;				 /* what its readers have passed is dropped */
	/* The stacks of dropped packets (trace-stacks.h); NULL: no packet had a stack. Sets that are opened later have them, too. */
	struct ky_stored_stacks *stacks;
};

struct ky_feed;

struct ky_feed_ops {
	/*
	 * Brings what has come, and waits up to @timeout_ms for it. Returns 0 or a negative status, after which there is
	 * nothing more. Then, or when all traces are complete, it sets feed->has_ended.
	 */
	int (*more)(struct ky_feed *feed, int timeout_ms, struct kymo_error *err);
	void (*free)(struct ky_feed *feed);
};

struct ky_feed {
	const struct ky_feed_ops *ops;
	KY_VEC(struct ky_feed_trace *) traces;
	bool is_live;	     /* else its files have everything */
	bool keeps;	     /* a live feed that drops nothing: its files are on disk */
	uint64_t held_bytes; /* in its files; the owner, which adds to it, has the limit */
	bool has_ended;	     /* no trace gets more */
	bool has_news; /* a trace, a stream or metadata that readers do not know; they reset it */
	int failed;    /* the status that ended it, of: */
	struct kymo_error err;
};

/* For the owner: an empty feed in zeroed memory. It sets ->keeps before the first trace. */
void ky_feed_init(struct ky_feed *feed, const struct ky_feed_ops *ops, bool is_live);
/* Frees the traces. */
void ky_feed_fini(struct ky_feed *feed);
/* Frees the feed, which no open set may use. NULL is allowed. */
void ky_feed_free(struct ky_feed *feed);

/* A trace at @name (copied) below the address, with no stream and no metadata. NULL: no memory. */
struct ky_feed_trace *ky_feed_add_trace(struct ky_feed *feed, const char *name);
/* A stream with an empty file. KYMO_E_MEMORY; KYMO_E_IO: no file. */
int ky_feed_add_stream(struct ky_feed *feed, struct ky_feed_trace *trace, const char *name,
		       struct ky_feed_stream **stream, struct kymo_error *err);
/* The owner has written a packet of @bytes to the end of the stream's file. KYMO_E_MEMORY. */
int ky_feed_add_packet(struct ky_feed_stream *stream, uint64_t bytes, uint64_t end_cycles);
/* How many bytes the readers have not reached, without the packet that they read. */
uint64_t ky_feed_unread(const struct ky_feed_stream *stream);

/*
 * For follow.c. What readers may know of @trace now; the caller frees *state. KYMO_E_MEMORY.
 */
int ky_feed_state(const struct ky_feed_trace *trace, struct ky_live_state *state);
/* Readers have no event before @until_cycles in hand: packets before that, which they have left, are dropped. */
void ky_feed_drop(struct ky_feed_trace *trace, uint64_t until_cycles);
/* Waits for more, and keeps a failure in the feed. */
void ky_feed_wait(struct ky_feed *feed, int timeout_ms);

#endif
