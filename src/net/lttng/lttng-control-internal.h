/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of a control connection: lttng-control.c collects the commands, lttng-commands.c carries them out,
 * lttng-payload.c takes their payloads apart and sends the answers.
 *
 * Threads: the relay's.
 */
#ifndef KY_NET_LTTNG_LTTNG_CONTROL_INTERNAL_H
#define KY_NET_LTTNG_LTTNG_CONTROL_INTERNAL_H

#include "net/lttng/lttng-consumer.h"

/* The longest payload that is collected: the names of a session or stream, with what stands before them. */
#define KY_LTTNG_COLLECT_BYTES 5120

struct ky_lttng_control {
	struct ky_client base;
	struct ky_lttng_consumer *consumer; /* NULL: the daemon has not said its version */
	/* The command that is coming in. */
	union {
		struct ky_lttng_head head;
		uint8_t bytes[sizeof(struct ky_lttng_head)];
	} head;
	size_t n_head;
	uint64_t left_bytes; /* of its payload */
	size_t n_payload;    /* collected bytes; one more for a zero */
	uint8_t payload[KY_LTTNG_COLLECT_BYTES + 1];
	/* KY_LTTNG_ROTATE_STREAMS. */
	bool is_rotating;
	struct ky_lttng_chunk
		*to; /* with a reference: other daemons may close it while the list comes */
};

struct ky_lttng_handler {
	/* Carries the command out, and answers. NULL: the payload is not collected. */
	int (*take)(struct ky_lttng_control *control, struct kymo_error *err);
	bool needs_session, needs_chunks;
	bool is_about_data; /* the data so far comes first */
};

/* NULL: there is no such number. An entry without session and call is no command, either. */
const struct ky_lttng_handler *ky_lttng_handler(uint32_t number);

/*
 * An answer, in one or two parts. A daemon waits for each answer, so the socket has room. KYMO_E_IO: the daemon does not take
 * it.
 */
int ky_lttng_answer(struct ky_lttng_control *control, const void *reply, size_t bytes,
		    struct kymo_error *err);
int ky_lttng_answer_two(struct ky_lttng_control *control, const void *first, size_t n_first,
			const void *then, size_t n_then, struct kymo_error *err);
int ky_lttng_answer_code(struct ky_lttng_control *control, uint32_t code, struct kymo_error *err);
/* The answer to a command that succeeded or (@ret) failed. Returns @ret of a failure, which ends the connection. */
int ky_lttng_answer_status(struct ky_lttng_control *control, int ret, struct kymo_error *err);

/* Returns KYMO_E_FORMAT: the payload has the wrong size. */
int ky_lttng_too_short(struct kymo_error *err);
/* Copies the fixed part of the payload; *rest (may be NULL) is what follows. KYMO_E_FORMAT: there is less. */
int ky_lttng_take_fixed(const struct ky_lttng_control *control, void *to, size_t bytes,
			const uint8_t **rest, struct kymo_error *err);
/* A text of @bytes with a zero at its end; "" when it has no bytes. KYMO_E_FORMAT. */
int ky_lttng_take_text(const struct ky_lttng_control *control, const uint8_t **at, uint32_t bytes,
		       const char **text, struct kymo_error *err);
/* A payload that names a stream and a number. KYMO_E_FORMAT. */
int ky_lttng_take_stream(const struct ky_lttng_control *control,
			 struct ky_lttng_stream_number *number, struct ky_lttng_stream **stream,
			 struct kymo_error *err);

#endif
