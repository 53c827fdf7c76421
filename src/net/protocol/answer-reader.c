/* SPDX-License-Identifier: MIT */
#include "net/protocol/answer-reader.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Appends as much as is missing from @want bytes. Returns how much that was. */
static size_t answer_reader_fill(uint8_t *to, size_t *have, size_t want, const uint8_t *data,
				 size_t bytes)
{
	size_t part = want - *have < bytes ? want - *have : bytes;

	memcpy(to + *have, data, part);
	*have += part;
	return part;
}

static void answer_reader_make_answer(struct ky_answer_reader *reader, struct ky_answer *answer)
{
	*answer = (struct ky_answer){.type = (enum ky_frame_type)reader->frame.type};
	reader->payload[reader->n_payload] = '\0';
	if (reader->frame.type != KY_FRAME_ERROR) {
		memcpy(&answer->value, reader->payload, sizeof(answer->value));
		answer->value = le64toh(answer->value);
		return;
	}
	for (size_t i = 0; i < reader->n_payload; i++)
		if (reader->payload[i] < ' ' || reader->payload[i] == 0x7f)
			reader->payload[i] = ' ';
	answer->text = (const char *)reader->payload;
}

int ky_answer_reader_take(struct ky_answer_reader *reader, const uint8_t *data, size_t bytes,
			  int (*take)(void *data, const struct ky_answer *answer), void *take_data)
{
	struct ky_answer answer;
	int ret = 0;

	while (bytes && !ret) {
		size_t part;

		if (reader->n_head < KY_FRAME_HEAD_BYTES) {
			part = answer_reader_fill(reader->head, &reader->n_head,
						  KY_FRAME_HEAD_BYTES, data, bytes);
			ky_frame_get(&reader->frame, reader->head);
			if (reader->n_head == KY_FRAME_HEAD_BYTES &&
			    ky_frame_check(&reader->frame, true, NULL) < 0)
				return -EPROTO;
		} else {
			part = answer_reader_fill(reader->payload, &reader->n_payload,
						  (size_t)reader->frame.bytes, data, bytes);
		}
		data += part;
		bytes -= part;
		if (reader->n_head < KY_FRAME_HEAD_BYTES || reader->n_payload < reader->frame.bytes)
			continue;
		answer_reader_make_answer(reader, &answer);
		reader->n_head = reader->n_payload = 0;
		ret = take(take_data, &answer);
	}
	return ret;
}
