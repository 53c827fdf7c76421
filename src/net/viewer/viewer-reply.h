/* SPDX-License-Identifier: MIT */
/*
 * An answer on its way to a viewer: a head in memory, then part of a file, or a list. Only the head
 * takes memory, so that a viewer that reads slowly costs the same as one that reads fast.
 *
 * Threads: one at a time per reply.
 */
#ifndef KY_NET_VIEWER_VIEWER_REPLY_H
#define KY_NET_VIEWER_VIEWER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/link/link.h"
#include "net/protocol/viewer-protocol.h"
#include "net/viewer/viewer-recording.h"

#define KY_VIEWER_SCRATCH_BYTES 65536
#define KY_VIEWER_PATCH_BYTES	192

/* A text that several replies share. */
struct ky_viewer_blob {
	unsigned int users;
	size_t bytes;
	uint8_t data[];
};

struct ky_viewer_reply {
	uint8_t head[160];
	size_t head_bytes, head_sent;
	/* Then either bytes of a file, */
	int fd; /* -1: none */
	uint64_t offset_bytes, left_bytes;
	/* in which other bytes of the same number stand at one place, */
	char patch[KY_VIEWER_PATCH_BYTES];
	uint64_t patch_at_bytes;
	size_t patch_bytes; /* 0: none */
	/* or streams of a recording, */
	const struct ky_viewer_recording *recording; /* NULL: none */
	size_t next, end;
	size_t hidden_end; /* of the first streams, only those with true in shown[] */
	const bool *shown;
	bool has_places;    /* the streams' paths are places on this machine */
	size_t stream_sent; /* bytes of stream `next` */
	/* or a blob. */
	struct ky_viewer_blob *blob; /* NULL: none */
	size_t blob_sent;
};

void ky_viewer_reply_init(struct ky_viewer_reply *reply);
/* Drops what is not sent, and what the reply holds. */
void ky_viewer_reply_clear(struct ky_viewer_reply *reply);
/* Appends to the head, which must have the room. */
void ky_viewer_reply_put(struct ky_viewer_reply *reply, const void *data, size_t bytes);
/*
 * Sends as much as the link takes. @scratch: KY_VIEWER_SCRATCH_BYTES. Returns 1: all of it; 0: the
 * link takes no more now; negative errno: the connection is broken, or a file has become shorter.
 */
int ky_viewer_reply_send(struct ky_viewer_reply *reply, struct ky_link *link, uint8_t *scratch);

/* NULL: no memory. The caller is its first user. */
struct ky_viewer_blob *ky_viewer_blob_new(size_t bytes);
void ky_viewer_blob_drop(struct ky_viewer_blob *blob); /* NULL is allowed */

/* How many streams the reply has. */
uint32_t ky_viewer_reply_streams(const struct ky_viewer_reply *reply);
uint64_t ky_viewer_track_id(const struct ky_viewer_recording *recording, size_t track);

#endif
