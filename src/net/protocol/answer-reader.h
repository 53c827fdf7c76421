/* SPDX-License-Identifier: MIT */
/*
 * The answers of a relay, from bytes in any pieces. The relay is untrusted.
 *
 * Threads: one at a time per reader.
 */
#ifndef KY_NET_PROTOCOL_ANSWER_READER_H
#define KY_NET_PROTOCOL_ANSWER_READER_H

#include <stddef.h>
#include <stdint.h>

#include "net/protocol/frame.h"

struct ky_answer {
	enum ky_frame_type type; /* KY_FRAME_WELCOME, _ACK, _READERS, _FEATURES, _ERROR */
	uint64_t value;
	const char *text; /* of an error, without control characters; else NULL */
};

/* Zeroed: at the beginning of a connection. */
struct ky_answer_reader {
	uint8_t head[KY_FRAME_HEAD_BYTES];
	size_t n_head;
	struct ky_frame frame;
	uint8_t payload[KY_NET_TEXT_MAX + 1];
	size_t n_payload;
};

/*
 * Takes @bytes, and calls @take for each complete answer. Returns 0; the first result of @take that
 * is not 0; or -EPROTO: these bytes are no answers.
 */
int ky_answer_reader_take(struct ky_answer_reader *reader, const uint8_t *data, size_t bytes,
			  int (*take)(void *data, const struct ky_answer *answer), void *take_data);

#endif
