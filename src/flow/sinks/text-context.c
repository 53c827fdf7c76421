/* SPDX-License-Identifier: MIT */
/* The text sink: the packet's context, which is the same for all events of a packet. */
#include "flow/sinks/text-internal.h"

#include "base/error.h"

static struct text_packet *text_context_slot(struct ky_text *text, uint32_t index)
{
	while (text->packets.len <= index) {
		if (ky_vec_push(&text->packets, (struct text_packet){.data = NULL}) < 0)
			return NULL;
	}
	return &text->packets.data[index];
}

const struct text_packet *ky_text_packet_context(struct ky_text *text, const struct ky_event *event,
						 uint32_t stream_index, char **at,
						 struct kymo_error *err)
{
	struct text_packet *packet = text_context_slot(text, stream_index);
	size_t offset;
	char *end;

	if (!packet) {
		ky_error_nomem(err);
		return NULL;
	}
	/* Written behind the line so far, then taken from there. */
	offset = (size_t)(*at - text->data);
	text->holding = true;
	end = ky_text_scope(text, *at, event, KY_SCOPE_PACKET_CONTEXT, true, err);
	text->holding = false;
	if (!end)
		return NULL;
	ky_strbuf_clear(&packet->text);
	/* lint: own text: it was made above */
	ky_strbuf_add(&packet->text, text->data + offset, (size_t)(end - text->data) - offset);
	*at = text->data + offset;
	if (ky_strbuf_failed(&packet->text)) {
		ky_error_nomem(err);
		return NULL;
	}
	packet->data = event->packet->data;
	packet->len = packet->text.len;
	if (packet->len <= sizeof(packet->piece))
		memcpy(packet->piece, packet->text.data, packet->len);
	return packet;
}

void ky_text_keep_joint(struct text_plan *plan, const struct ky_event *event,
			const struct ky_stream *stream, const struct text_packet *context)
{
	struct text_joint *joint = &plan->joints[stream->index % TEXT_JOINTS];
	const struct text_op *first = plan->ops;
	size_t len = plan->head_len + context->len + first->literal_len;
	char *at = joint->piece;

	joint->stream = NULL;
	if (len > sizeof(joint->piece) || first->literal_len > TEXT_PIECE_BYTES)
		return;
	at = ky_text_put(at, plan->head, plan->head_len);
	at = ky_text_put(at, context->piece, context->len);
	ky_text_put(at, first->piece, first->literal_len);
	joint->len = (uint32_t)len;
	joint->data = event->packet->data;
	joint->stream = stream;
}
