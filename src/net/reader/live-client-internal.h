/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of live-client.h: live-client.c has the connection, live-requests.c the requests.
 *
 * Threads: as there.
 */
#ifndef KY_NET_READER_LIVE_CLIENT_INTERNAL_H
#define KY_NET_READER_LIVE_CLIENT_INTERNAL_H

#include "net/protocol/viewer-protocol.h"
#include "net/reader/live-client.h"

#define KY_LIVE_PIECE_BYTES ((uint32_t)512 << 10)

struct ky_live_client {
	struct ky_link *link;
	int64_t end_ms; /* of the answer at hand */
	uint32_t minor; /* of the version that both sides speak */
	uint8_t *piece; /* KY_LIVE_PIECE_BYTES */
	bool (*stop)(void);
};

/* The relay's answer is not one of the protocol, for reason @what. Returns KYMO_E_FORMAT. */
int ky_live_client_malformed(const char *what, struct kymo_error *err);
/* @bytes of the answer at hand. KYMO_E_IO, KYMO_E_INTERRUPTED. */
int ky_live_client_receive(struct ky_live_client *client, void *to, size_t bytes,
			   struct kymo_error *err);
/* A request; its answer begins with @bytes to @answer. Errors as above. */
int ky_live_client_ask(struct ky_live_client *client, enum ky_viewer_command command,
		       const void *request, size_t request_bytes, void *answer, size_t bytes,
		       struct kymo_error *err);
/* A request about session or stream @id. Errors as above. */
int ky_live_client_ask_about(struct ky_live_client *client, enum ky_viewer_command command,
			     uint64_t id, void *answer, size_t bytes, struct kymo_error *err);

#endif
