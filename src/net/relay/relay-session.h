/* SPDX-License-Identifier: MIT */
/*
 * A session at a relay: the directory of one recording, and how many of its frames are carried out.
 *
 * The number of carried-out frames is in a mapped file, so that it survives a killed relay. Frames
 * have absolute positions: a frame that was carried out just before the kill is carried out again,
 * with the same effect.
 *
 * Threads: one at a time per session.
 */
#ifndef KY_NET_RELAY_RELAY_SESSION_H
#define KY_NET_RELAY_RELAY_SESSION_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "net/files/relay-block.h"
#include "net/protocol/frame.h"
#include "net/relay/relay-trace.h"

struct ky_relay_session;

struct ky_relay_session_spec {
	const uint8_t *id; /* 16 bytes */
	const char *host, *name;
	const struct kymo_error *refusal; /* why a session cannot begin now; NULL: it can */
};

/*
 * Opens the session of @spec, or begins it: DIR/host/name, with a number after a name that another
 * session has. @dir_fd: the relay's directory DIR, which must outlive the session, as @batch must.
 * KYMO_E_INVALID: a name cannot be used; KYMO_E_IO, KYMO_E_MEMORY; the refusal's code.
 */
int ky_relay_session_open(int dir_fd, const struct ky_relay_session_spec *spec,
			  struct ky_relay_batch *batch, struct ky_relay_session **session,
			  struct kymo_error *err);
/* Removes parts of files that are sent again as a whole, and no more counts them. The session takes no further frame. */
void ky_relay_session_drop_part(struct ky_relay_session *session);
/* Closes all files; what is not carried out yet can be sent again later. NULL is allowed. */
void ky_relay_session_close(struct ky_relay_session *session);

/*
 * Removes what is left in the relay's directory of sessions that have been complete for long. One call looks at a few: clients can
 * leave millions. *at: NULL before the first call; the caller closes it when it does not go on. Returns whether there are more.
 */
bool ky_relay_session_clean(int dir_fd, DIR **at);

/*
 * Calls @take with the path of each session below the relay's directory that its recorder has not ended, also of those that no recorder is
 * connected to. Returns what @take ended it with.
 */
int ky_relay_session_list_open(int dir_fd, int (*take)(void *data, const char *path), void *data);

const uint8_t *ky_relay_session_id(const struct ky_relay_session *session);
/* Its path below DIR. */
const char *ky_relay_session_path(const struct ky_relay_session *session);
/* The number of the next frame to carry out; all before it are in their files. */
uint64_t ky_relay_session_next(const struct ky_relay_session *session);
/* How many bytes of packets and metadata it has taken in this connection. */
uint64_t ky_relay_session_bytes(const struct ky_relay_session *session);
/* What its files have taken and given back in this connection. */
const struct ky_relay_use *ky_relay_session_use(const struct ky_relay_session *session);
/* Whether the recorder has said that it is complete. */
bool ky_relay_session_is_complete(const struct ky_relay_session *session);
/* The shortest delay that a live reader of the session wants, in ms; 0: no reader wants one. */
uint32_t ky_relay_session_delay_ms(const struct ky_relay_session *session);

/*
 * A frame, from its beginning to its end: begin with its head (ky_frame_check() has passed it), then
 * its payload in any pieces, at last the end, which carries it out. A frame that was carried out
 * before has no effect. KYMO_E_FORMAT: the frame makes no sense; KYMO_E_IO: the disk. After an error
 * the caller closes the session.
 */
int ky_relay_session_begin(struct ky_relay_session *session, const struct ky_frame *frame,
			   struct kymo_error *err);
int ky_relay_session_take(struct ky_relay_session *session, const uint8_t *data, size_t bytes,
			  struct kymo_error *err);
int ky_relay_session_end(struct ky_relay_session *session, struct kymo_error *err);
/*
 * Where the frame that is coming in, or the next one, is likely to be in a file: behind the last packet. Zeroed
 * before the first packet.
 */
const struct ky_relay_place *ky_relay_session_place(const struct ky_relay_session *session);
/* The bytes that ky_relay_session_take() got are no longer needed. */
int ky_relay_session_flush_data(struct ky_relay_session *session, struct kymo_error *err);
/*
 * Packets are carried out only with this. The caller calls it before another session takes something, and before the close,
 * after an error, too.
 */
int ky_relay_session_flush(struct ky_relay_session *session, struct kymo_error *err);

#endif
