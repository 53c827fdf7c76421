/* SPDX-License-Identifier: MIT */
/* The control connection of an LTTng consumer daemon: its commands come in, with their payloads. */
#include <endian.h>
#include <string.h>

#include "base/error.h"
#include "net/lttng/lttng-control-internal.h"

/* How long a daemon may take for its greeting, and for a command that has begun. */
#define GREETING_S 10
#define SILENCE_S  60

/* ---- payloads that are not collected ------------------------------------------------- */

/* Metadata goes to its file as it comes. */
static int take_metadata(struct ky_lttng_control *control, const uint8_t *data, size_t bytes,
			 struct kymo_error *err)
{
	struct ky_lttng_metadata msg;
	struct ky_lttng_stream *stream;
	size_t fixed = sizeof(msg) - control->n_payload;
	int ret;

	fixed = fixed < bytes ? fixed : bytes;
	memcpy(control->payload + control->n_payload, data, fixed);
	control->n_payload += fixed;
	if (control->n_payload < sizeof(msg))
		return KYMO_OK;
	memcpy(&msg, control->payload, sizeof(msg));
	ret = ky_lttng_consumer_find(control->consumer, be64toh(msg.stream), &stream, err);
	if (!ret && (!stream->is_metadata || !stream->trace))
		ret = ky_error_set(err, KYMO_E_FORMAT,
				   "metadata comes for a stream that takes none");
	if (!ret)
		ret = ky_lttng_consumer_check_quota(control->consumer, err);
	if (!ret && bytes > fixed)
		ret = ky_lttng_trace_metadata(stream->trace, data + fixed, bytes - fixed, err);
	if (!ret && !control->left_bytes)
		ret = ky_lttng_trace_pad_metadata(stream->trace, be32toh(msg.padding_bytes), err);
	return ret;
}

static void lttng_control_end_rotation(struct ky_lttng_control *control)
{
	ky_lttng_chunk_put(control->to);
	control->to = NULL;
}

/* Which chunk the streams go to. The size of the payload says how the daemon's machine pads the head. */
static int begin_rotation(struct ky_lttng_control *control, size_t padding, struct kymo_error *err)
{
	struct ky_lttng_consumer *consumer = control->consumer;
	struct ky_lttng_chunk *to;
	uint64_t number;

	memcpy(&number, control->payload + 5 + padding, sizeof(number));
	control->is_rotating = true;
	control->n_payload = 0;
	if (!control->payload[4])
		return KYMO_OK;
	to = ky_lttng_chunk_find(consumer->session, be64toh(number));
	if (!to)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "streams rotate to a chunk that does not exist");
	control->to = ky_lttng_chunk_ref(to);
	return KYMO_OK;
}

static int rotate_one(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_rotate_position position;
	struct ky_lttng_stream *stream;
	int ret;

	memcpy(&position, control->payload, sizeof(position));
	control->n_payload = 0;
	ret = ky_lttng_consumer_find(control->consumer, be64toh(position.stream), &stream, err);
	return ret < 0 ? ret
		       : ky_lttng_stream_rotate(stream, control->to, be64toh(position.sequence),
						err);
}

static int rotate_byte(struct ky_lttng_control *control, uint8_t byte, struct kymo_error *err)
{
	uint64_t positions, total = be64toh(control->head.head.bytes);
	uint32_t streams;

	control->payload[control->n_payload++] = byte;
	if (control->is_rotating)
		return control->n_payload == sizeof(struct ky_lttng_rotate_position)
			       ? rotate_one(control, err)
			       : KYMO_OK;
	if (control->n_payload < KY_LTTNG_ROTATE_BYTES)
		return KYMO_OK;
	memcpy(&streams, control->payload, sizeof(streams));
	positions = sizeof(struct ky_lttng_rotate_position) * (uint64_t)be32toh(streams);
	if (total < positions || total - positions < KY_LTTNG_ROTATE_BYTES ||
	    total - positions > KY_LTTNG_ROTATE_BYTES_MAX)
		return ky_lttng_too_short(err);
	return control->n_payload == total - positions
		       ? begin_rotation(control, total - positions - KY_LTTNG_ROTATE_BYTES, err)
		       : KYMO_OK;
}

/* Each stream of the list rotates as it comes. */
static int take_rotation(struct ky_lttng_control *control, const uint8_t *data, size_t bytes,
			 struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (control->consumer->is_old)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a command is newer than the daemon's version");
	for (size_t i = 0; i < bytes && !ret; i++)
		ret = rotate_byte(control, data[i], err);
	if (!ret && !control->left_bytes && (!control->is_rotating || control->n_payload))
		ret = ky_lttng_too_short(err);
	if (!ret && control->left_bytes)
		return KYMO_OK;
	lttng_control_end_rotation(control);
	return ky_lttng_answer_status(control, ret, err);
}

/* ---- commands ------------------------------------------------------------------------ */

static uint32_t command_of(const struct ky_lttng_control *control)
{
	return be32toh(control->head.head.command);
}

static int begin_command(struct ky_lttng_control *control, struct kymo_error *err)
{
	const struct ky_lttng_consumer *consumer = control->consumer;
	uint32_t number = command_of(control);
	const struct ky_lttng_handler *handler = ky_lttng_handler(number);
	bool is_collected = handler && handler->take;

	control->left_bytes = be64toh(control->head.head.bytes);
	control->n_payload = 0;
	control->is_rotating = false;
	if (!handler || (!handler->take && !handler->needs_session)) {
		(void)ky_lttng_answer_code(control, KY_LTTNG_ERROR, NULL);
		return ky_error_set(err, KYMO_E_FORMAT, "there is no command %u", number);
	}
	if (control->left_bytes > (is_collected ? KY_LTTNG_COLLECT_BYTES : KY_LTTNG_PAYLOAD_MAX))
		return ky_lttng_too_short(err);
	if (!consumer && number != KY_LTTNG_VERSION)
		return ky_error_set(err, KYMO_E_FORMAT, "a command comes before the version");
	if (handler->needs_session && !consumer->session)
		return ky_error_set(err, KYMO_E_FORMAT, "a command comes before the session");
	if (handler->needs_chunks && consumer->is_old)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a command is newer than the daemon's version");
	return handler->is_about_data ? ky_lttng_consumer_take_data(control->consumer, err)
				      : KYMO_OK;
}

/* A part of the payload, which may be empty when the payload is. */
static int lttng_control_take_payload(struct ky_lttng_control *control, const uint8_t *data,
				      size_t bytes, struct kymo_error *err)
{
	const struct ky_lttng_handler *handler = ky_lttng_handler(command_of(control));

	control->left_bytes -= bytes;
	if (command_of(control) == KY_LTTNG_SEND_METADATA)
		return take_metadata(control, data, bytes, err);
	if (command_of(control) == KY_LTTNG_ROTATE_STREAMS)
		return take_rotation(control, data, bytes, err);
	memcpy(control->payload + control->n_payload, data, bytes);
	control->n_payload += bytes;
	return control->left_bytes ? KYMO_OK : handler->take(control, err);
}

static int lttng_control_take(struct ky_client *base, const uint8_t *data, size_t bytes,
			      struct kymo_error *err)
{
	struct ky_lttng_control *control = (struct ky_lttng_control *)base;
	int ret = KYMO_OK;

	while (bytes && !ret) {
		size_t part = sizeof(control->head) - control->n_head;

		if (!control->n_head && ky_client_is_over_time(base))
			return ky_client_keep(base, data, bytes, err);
		if (part) {
			part = part < bytes ? part : bytes;
			memcpy(control->head.bytes + control->n_head, data, part);
			control->n_head += part;
			if (control->n_head == sizeof(control->head))
				ret = begin_command(control, err);
			if (!ret && control->n_head == sizeof(control->head) &&
			    !control->left_bytes)
				ret = lttng_control_take_payload(control, data, 0, err);
		} else {
			part = control->left_bytes < bytes ? (size_t)control->left_bytes : bytes;
			ret = lttng_control_take_payload(control, data, part, err);
		}
		data += part;
		bytes -= part;
		if (control->n_head == sizeof(control->head) && !control->left_bytes)
			control->n_head = 0;
	}
	return ret;
}

/* ---- the connection ------------------------------------------------------------------ */

static void lttng_control_end(struct ky_client *base)
{
	struct ky_lttng_control *control = (struct ky_lttng_control *)base;

	lttng_control_end_rotation(control);
	ky_lttng_consumer_lose_control(control->consumer);
}

static const char *lttng_control_name(const struct ky_client *base)
{
	return ky_lttng_consumer_name(((const struct ky_lttng_control *)base)->consumer);
}

/* The daemon's last connection gives the message. */
static const char *lttng_control_ending(const struct ky_client *base)
{
	return ((const struct ky_lttng_control *)base)->consumer ? "" : NULL;
}

static int lttng_control_patience_s(const struct ky_client *base, bool *since_begin)
{
	const struct ky_lttng_control *control = (const struct ky_lttng_control *)base;

	*since_begin = !control->consumer || !control->consumer->session;
	if (*since_begin)
		return GREETING_S;
	return control->n_head ? SILENCE_S : 0;
}

const struct ky_client_calls ky_lttng_control_calls = {
	.struct_bytes = sizeof(struct ky_lttng_control),
	.take = lttng_control_take,
	.end = lttng_control_end,
	.name = lttng_control_name,
	.ending = lttng_control_ending,
	.patience_s = lttng_control_patience_s,
};
