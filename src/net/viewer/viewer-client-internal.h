/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of viewer-client.h: what the relay knows of one viewer.
 *
 * Threads: as there.
 */
#ifndef KY_NET_VIEWER_VIEWER_CLIENT_INTERNAL_H
#define KY_NET_VIEWER_VIEWER_CLIENT_INTERNAL_H

#include "net/viewer/viewer-client.h"
#include "net/viewer/viewer-clock.h"

/* A number in a request, which has no alignment. */
typedef uint64_t ky_be64 __attribute__((aligned(1), may_alias));

/* Where a viewer is in a stream, or in metadata (`next` then counts bytes). */
struct ky_viewer_cursor {
	uint64_t next;	      /* entry of the index */
	uint64_t told_cycles; /* the viewer knows that the stream has no earlier event to come */
	uint64_t
		floor_cycles; /* packets that begin before that may have events that the viewer can use no more */
	/* The last packet; begin_cycles where its begin is changed. */
	uint64_t packet_at, packet_end, begin_cycles;
	bool is_changed;
	bool is_over;  /* the viewer has been told the end */
	bool was_late; /* the log names a packet of the stream that came too late */
};

struct ky_viewer_attachment {
	struct ky_viewer_recording *recording;
	uint64_t session;
	KY_VEC(struct ky_viewer_cursor) cursors; /* of the streams that the viewer knows */
	struct ky_viewer_clock clock;		 /* that a viewer in the order of time has got */
	/* Of the streams that were there when the viewer came, those that it has been told of. */
	size_t hidden_end;
	bool *shown;
	unsigned int
		n_passed; /* answers that told of new streams, since the viewer asked for these */
};

struct ky_viewer_client {
	struct ky_viewer_hub *hub;
	struct ky_link *link;
	bool is_strict, is_connected, has_session, is_replying;
	bool ends_early; /* it ends with the first stream that ends: Trace Compass */
	bool is_held;	 /* its request waits for the first streams of a recording */
	uint32_t minor, delay_ms;
	int64_t now_ns, begun_ns, stuck_ns;
	int64_t asked_ns; /* of the last request */
	/* For the server: what its epoll waits for, and whether it is to be called again. */
	uint32_t events;
	bool waits_turn, waits_time;
	KY_VEC(struct ky_viewer_attachment *) attached;
	/* The file of a packet of which the viewer has a part, and the number of the stream; -1: none. */
	int held_fd;
	uint64_t held_stream;
	/* The request that comes in. */
	uint8_t input[48];
	size_t n_input, wanted;
	uint32_t command;
	uint8_t body[24] __attribute__((aligned(8)));
	struct ky_viewer_reply reply;
};

/* NULL: the viewer does not know such a stream. */
struct ky_viewer_cursor *ky_viewer_find(const struct ky_viewer_client *client, uint64_t id,
					struct ky_viewer_attachment **attachment);
/* Looks for new traces of the recording. */
void ky_viewer_look(struct ky_viewer_client *client, struct ky_viewer_recording *recording);

/* NULL: the viewer does not watch the session. */
struct ky_viewer_attachment *ky_viewer_attachment_of(const struct ky_viewer_client *client,
						     uint64_t session);
/* Frees the attachment, and closes its recording after the last viewer. */
void ky_viewer_detach(struct ky_viewer_client *client, struct ky_viewer_attachment *attachment);

/* Closes the file of a packet of which the viewer has a part. */
void ky_viewer_let_go(struct ky_viewer_client *client);

/* The answers about what a viewer watches. 0 or a negative errno. */
int ky_viewer_answer_attach(struct ky_viewer_client *client);
int ky_viewer_answer_detach(struct ky_viewer_client *client);
int ky_viewer_answer_new_streams(struct ky_viewer_client *client);

/* The answers about the content of streams. 0 or a negative errno. */
int ky_viewer_answer_index(struct ky_viewer_client *client);
int ky_viewer_answer_packet(struct ky_viewer_client *client);
int ky_viewer_answer_metadata(struct ky_viewer_client *client);

#endif
