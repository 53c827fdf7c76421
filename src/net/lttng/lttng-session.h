/* SPDX-License-Identifier: MIT */
/*
 * An LTTng session at a relay: its directory, and the chunks of its traces.
 *
 * The session daemon has one consumer daemon for the kernel and one or two for user space. Each of them has connections of
 * its own, and all share the session. Its present traces are in DIR/HOST/SESSION. When a new chunk begins, the
 * traces so far move to archives/BEGIN-NUMBER there; streams follow one after the other to the new chunk.
 * When the old chunk is closed and no stream writes to it any more, its name becomes BEGIN-END-NUMBER.
 *
 * Errors: KYMO_E_FORMAT: the daemon's data makes no sense; KYMO_E_INVALID: a name cannot be used; KYMO_E_LIMIT;
 * KYMO_E_IO: the disk; KYMO_E_MEMORY.
 * Threads: one.
 */
#ifndef KY_NET_LTTNG_LTTNG_SESSION_H
#define KY_NET_LTTNG_LTTNG_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "base/vec.h"
#include "net/lttng/lttng-protocol.h"
#include "net/files/relay-hosts.h"

struct ky_lttng_session;

/* What a consumer daemon says about the session. The texts are borrowed and checked. */
struct ky_lttng_session_spec {
	const char *host, *name; /* @name may have several components */
	uint8_t daemon[16];	 /* zeros: each connection is a session of its own */
	uint64_t number, created_s;
	bool is_snapshot, is_live;
};

/* The sessions of a relay. A zeroed struct with dir and dir_fd is empty. */
/* Hears that the session at @path below the relay's directory begins (@is_here) or that its last daemon has gone. */
typedef void (*ky_lttng_note)(void *data, const char *path, bool is_here);

struct ky_lttng_sessions {
	const char *dir; /* the relay's directory; these three must outlive the sessions */
	int dir_fd;
	const struct ky_log *log;
	ky_lttng_note note; /* NULL: nobody asks */
	void *note_data;
	KY_VEC(struct ky_lttng_session *) list;
};

struct ky_lttng_chunk {
	struct ky_lttng_session *session;
	uint64_t number, created_s, closed_s;
	char *name; /* of its directory in the session's; NULL: its traces are in the session's */
	char *path; /* below the session's directory; "": there */
	int fd;	    /* of its directory */
	unsigned int refs;
	bool is_closed;
	enum ky_lttng_chunk_command command;
	KY_VEC(char *) tops; /* names of directories that it has in the session's directory */
	uint64_t bytes;	     /* of its files */
};

struct ky_lttng_session {
	struct ky_lttng_sessions *sessions;
	struct ky_relay_host *host; /* counts its bytes */
	char *path;		    /* below the relay's directory */
	int fd;
	unsigned int refs;
	uint8_t daemon[16];
	uint64_t number, created_s;
	bool is_snapshot, is_live;
	KY_VEC(struct ky_lttng_chunk *) chunks;
};

/*
 * The session of @spec: one that other connections have, or a new one: DIR/host/name, with a number after a name that
 * another session has. The caller owns a reference.
 */
int ky_lttng_session_get(struct ky_lttng_sessions *sessions,
			 const struct ky_lttng_session_spec *spec, struct ky_relay_host *host,
			 struct ky_lttng_session **session, struct kymo_error *err);
/* Gives a reference back. NULL is allowed. */
void ky_lttng_session_put(struct ky_lttng_session *session);
void ky_lttng_sessions_fini(struct ky_lttng_sessions *sessions);

/* The chunk @number, or NULL. The session owns it. */
struct ky_lttng_chunk *ky_lttng_chunk_find(const struct ky_lttng_session *session, uint64_t number);
/*
 * The chunk @number for @name (NULL: in the session's directory), which begins unless it exists: the traces
 * in the session's directory make room. The caller owns a reference.
 */
int ky_lttng_chunk_begin(struct ky_lttng_session *session, uint64_t number, uint64_t created_s,
			 const char *name, struct ky_lttng_chunk **chunk, struct kymo_error *err);
/* Notes that the chunk has directory @path, whose first component is one of the session's directories. */
int ky_lttng_chunk_add_path(struct ky_lttng_chunk *chunk, const char *path, struct kymo_error *err);
/*
 * No further streams come. Puts the path that the chunk will have, below the relay's directory, to @path, which has room
 * for @size bytes.
 */
int ky_lttng_chunk_close(struct ky_lttng_chunk *chunk, uint64_t closed_s,
			 enum ky_lttng_chunk_command command, char *path, size_t size,
			 struct kymo_error *err);
/* Counts bytes of its files, also for the host's quota; fewer, if @bytes is negative. */
void ky_lttng_chunk_count(struct ky_lttng_chunk *chunk, int64_t bytes);
struct ky_lttng_chunk *ky_lttng_chunk_ref(struct ky_lttng_chunk *chunk);
/* Gives a reference back. At the last one, the chunk gets its place and is freed. NULL is allowed. */
void ky_lttng_chunk_put(struct ky_lttng_chunk *chunk);

#endif
