/* SPDX-License-Identifier: MIT */
/*
 * One LTTng consumer daemon at a relay: its part of a session, with its streams. It lives while one of its connections
 * does, and a little longer when its data may still be on the way.
 *
 * Errors: as in lttng-session.h and lttng-stream.h.
 * Threads: one.
 */
#ifndef KY_NET_LTTNG_LTTNG_CONSUMER_H
#define KY_NET_LTTNG_LTTNG_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "net/lttng/lttng-relay.h"
#include "net/lttng/lttng-stream.h"

struct ky_lttng_consumer {
	struct ky_lttng_relay *relay;
	uint32_t minor;	 /* of the protocol */
	uint64_t number; /* of the session, in the daemon's commands; random */
	bool is_old;	 /* the protocol is older than chunks (2.11) */
	bool is_snapshot;
	struct ky_relay_host *host;
	struct ky_lttng_session *session; /* NULL: its name comes with the first stream */
	struct ky_lttng_chunk *current, *closing;
	KY_VEC(struct ky_lttng_stream *) streams;
	size_t n_files; /* that these may have open */
	bool has_control;
	unsigned int n_data;	/* data connections */
	bool expects_data;	/* any piece of a packet wakes the relay */
	struct ky_client *data; /* one of them; NULL: none, or it has no index */
	bool has_lost_data;	/* one of them has ended */
	uint64_t unread_bytes;	/* of packets whose index is here, and which are not read yet */
	unsigned int n_unread;	/* number of these indexes */
	bool is_due;		/* the relay looks soon which packets are late */
	int64_t gone_ms;	/* when the control connection ended */
};

/* A daemon that speaks version 2.@minor. The caller has its control connection. */
int ky_lttng_consumer_new(struct ky_lttng_relay *relay, uint32_t minor,
			  struct ky_lttng_consumer **consumer, struct kymo_error *err);
/* The control connection has ended; NULL is allowed. */
void ky_lttng_consumer_lose_control(struct ky_lttng_consumer *consumer);
/* The data connection @data is the daemon's, or has ended. */
void ky_lttng_consumer_gain_data(struct ky_lttng_consumer *consumer, struct ky_client *data);
void ky_lttng_consumer_lose_data(struct ky_lttng_consumer *consumer, struct ky_client *data);
/*
 * lttng-arrival.c: takes the packets that the daemon has sent so far. Data connections need not wake the relay for each
 * packet: the daemon sends its index then. KYMO_E_MEMORY.
 */
int ky_lttng_consumer_take_data(struct ky_lttng_consumer *consumer, struct kymo_error *err);
/* A packet of @bytes whose index came before it is here. */
void ky_lttng_consumer_note_packet(struct ky_lttng_consumer *consumer, uint64_t bytes);
/* An index has come. @packet_bytes: of its packet, which is not here yet; 0: it is. Takes packets, if it is time. KYMO_E_MEMORY. */
int ky_lttng_consumer_take_index(struct ky_lttng_consumer *consumer, uint64_t packet_bytes,
				 struct kymo_error *err);
/* The same when no further index has come for a while. @data: a struct ky_lttng_relay. */
int ky_lttng_take_late(void *data, struct kymo_error *err);
/* Whether a packet is late, so that the relay wants to know when it comes. */
void ky_lttng_consumer_expect_data(struct ky_lttng_consumer *consumer, bool expects);
/* Frees it with its streams. */
void ky_lttng_consumer_free(struct ky_lttng_consumer *consumer);

/* For messages. */
const char *ky_lttng_consumer_name(const struct ky_lttng_consumer *consumer);
/* KYMO_E_LIMIT: the quota of its host is used up. */
int ky_lttng_consumer_check_quota(const struct ky_lttng_consumer *consumer, struct kymo_error *err);

/* The session of @spec, whose texts are not checked yet. @chunk: its present one, or NULL. */
int ky_lttng_consumer_open(struct ky_lttng_consumer *consumer,
			   const struct ky_lttng_session_spec *spec, const uint64_t *chunk,
			   struct kymo_error *err);
/* Adds a stream; the texts of @spec are not checked yet. */
int ky_lttng_consumer_add(struct ky_lttng_consumer *consumer, struct ky_lttng_stream_spec *spec,
			  struct ky_lttng_stream **stream, struct kymo_error *err);
/* Its stream @handle. KYMO_E_FORMAT: it has none. */
int ky_lttng_consumer_find(const struct ky_lttng_consumer *consumer, uint64_t handle,
			   struct ky_lttng_stream **stream, struct kymo_error *err);
/* Frees a stream that is complete, if the daemon has closed it. */
void ky_lttng_consumer_try_close(struct ky_lttng_consumer *consumer,
				 struct ky_lttng_stream *stream);

/* A new chunk begins; @name: of its directory, or NULL. */
int ky_lttng_consumer_begin_chunk(struct ky_lttng_consumer *consumer, uint64_t number,
				  uint64_t created_s, const char *name, struct kymo_error *err);
/* As ky_lttng_chunk_close(). */
int ky_lttng_consumer_close_chunk(struct ky_lttng_consumer *consumer, uint64_t number,
				  uint64_t closed_s, enum ky_lttng_chunk_command command,
				  char *path, size_t size, struct kymo_error *err);

/* Whether packet @number of the stream is still on the way. */
bool ky_lttng_consumer_is_pending(const struct ky_lttng_consumer *consumer,
				  const struct ky_lttng_stream *stream, uint64_t number);
/* Whether packets of streams are on the way that the daemon has not asked about. */
bool ky_lttng_consumer_has_pending(const struct ky_lttng_consumer *consumer);

#endif
