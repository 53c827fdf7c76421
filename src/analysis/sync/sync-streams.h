/* SPDX-License-Identifier: MIT */
/*
 * Messages from the kernel's events of TCP, which have no sequence numbers: a byte is known by its place in the connection's stream. A call
 * that sends byte n began before the other machine's kernel got byte n. It needs the begin of the connection in both traces; what a
 * connection sends twice ends it here.
 */
#ifndef KY_ANALYSIS_SYNC_SYNC_STREAMS_H
#define KY_ANALYSIS_SYNC_SYNC_STREAMS_H

#include "analysis/sync/sync.h"
#include "ctf/decode/decode.h"

/* Sends and receipts that are kept, of 16 bytes. */
#define KY_STREAMS_KEPT_MAX ((size_t)1 << 23)

struct ky_stream_event;

/* An event at a place of the stream. */
struct ky_stream_step {
	uint64_t at; /* SENT: of its first byte; RECEIVED: behind its last byte */
	int64_t ns;
};

KY_VEC_TYPE(ky_stream_steps, struct ky_stream_step);

/* One machine's end of a connection. */
struct ky_stream_end {
	uint64_t here,
		there; /* hashes of the connection: as this end sees it, as the other one does */
	uint32_t machine;
	bool is_over;
	uint64_t sent, received; /* bytes */
	struct ky_stream_steps sends, receipts;
};

struct ky_streams {
	KY_VEC(struct ky_stream_end *) ends;
	struct ky_map by_socket; /* hash of machine and socket -> struct ky_stream_end * */
	struct ky_map entries;	 /* hash of machine and thread -> time of its last call + 1 */
	size_t n_kept;
};

/* What @event tells, in @arena; NULL: nothing, or memory is out. */
struct ky_stream_event *ky_stream_event_find(struct ky_arena *arena,
					     const struct ky_event_class *event);

void ky_streams_init(struct ky_streams *streams);
void ky_streams_fini(struct ky_streams *streams);
/* 0 or KYMO_E_MEMORY. */
int ky_streams_see(struct ky_streams *streams, const struct ky_stream_event *known,
		   uint32_t machine, const struct ky_event *event);
/* After all events: tells @run of the messages. 0 or KYMO_E_MEMORY. */
int ky_streams_match(const struct ky_streams *streams, struct ky_sync_run *run);

#endif
