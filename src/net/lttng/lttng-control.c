/* SPDX-License-Identifier: MIT */
/* The control connection of an LTTng consumer daemon: its commands, and the answers. */
#include <endian.h>
#include <string.h>

#include "base/error.h"
#include "net/lttng/lttng-consumer.h"

/* The longest fixed payload: the names of a session or stream, with what stands before them. */
#define PAYLOAD_BYTES 5120
/* How long a daemon may take for its greeting, and for a command that has begun. */
#define GREETING_S 10
#define SILENCE_S  60

struct control {
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
	uint8_t payload[PAYLOAD_BYTES + 1];
	/* KY_LTTNG_ROTATE_STREAMS. */
	bool is_rotating;
	struct ky_lttng_chunk
		*to; /* with a reference: other daemons may close it while the list comes */
};

/* ---- answers -------------------------------------------------------------------------- */

/* A daemon waits for each answer: the socket has room. */
static int answer_two(struct control *control, const void *first, size_t n_first, const void *then,
		      size_t n_then, struct kymo_error *err)
{
	const struct iovec parts[] = {{(void *)first, n_first}, {(void *)then, n_then}};
	ssize_t sent = ky_link_send(control->base.link, parts, n_then ? 2 : 1);

	if (sent == (ssize_t)(n_first + n_then))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_IO, "the daemon does not take its answer");
}

static int answer(struct control *control, const void *reply, size_t bytes, struct kymo_error *err)
{
	return answer_two(control, reply, bytes, NULL, 0, err);
}

static int answer_code(struct control *control, uint32_t code, struct kymo_error *err)
{
	const uint32_t reply = htobe32(code);

	return answer(control, &reply, sizeof(reply), err);
}

/* The answer to a command that succeeded or (@ret) failed; a failure ends the connection. */
static int answer_status(struct control *control, int ret, struct kymo_error *err)
{
	if (ret < 0) {
		(void)answer_code(control, KY_LTTNG_ERROR, NULL);
		return ret;
	}
	return answer_code(control, KY_LTTNG_OK, err);
}

/* ---- payloads ------------------------------------------------------------------------- */

static int too_short(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "a command has the wrong size");
}

/* Copies the fixed part of the payload; *rest (may be NULL) is what follows. */
static int take_fixed(const struct control *control, void *to, size_t bytes, const uint8_t **rest,
		      struct kymo_error *err)
{
	size_t part = control->n_payload < bytes ? control->n_payload : bytes;

	memset(to, 0, bytes);
	memcpy(to, control->payload, part);
	if (rest)
		*rest = control->payload + part;
	return part < bytes ? too_short(err) : KYMO_OK;
}

/* A text of @bytes with a zero at its end. "" when it has no bytes. */
static int take_text(const struct control *control, const uint8_t **at, uint32_t bytes,
		     const char **text, struct kymo_error *err)
{
	size_t left = control->n_payload - (size_t)(*at - control->payload);

	if (bytes > left || (bytes && (*at)[bytes - 1]))
		return ky_error_set(err, KYMO_E_FORMAT, "a text in a command has no end");
	*text = bytes ? (const char *)*at : "";
	*at += bytes;
	return KYMO_OK;
}

static int take_stream(const struct control *control, struct ky_lttng_stream_number *number,
		       struct ky_lttng_stream **stream, struct kymo_error *err)
{
	int ret = take_fixed(control, number, sizeof(*number), NULL, err);

	if (ret < 0)
		return ret;
	number->number = be64toh(number->number);
	return ky_lttng_consumer_find(control->consumer, be64toh(number->stream), stream, err);
}

/* ---- session and streams -------------------------------------------------------------- */

static int take_version(struct control *control, struct kymo_error *err)
{
	const struct ky_lttng_version ours = {htobe32(KY_LTTNG_MAJOR), htobe32(KY_LTTNG_MINOR)};
	struct ky_lttng_version theirs;
	int ret = take_fixed(control, &theirs, sizeof(theirs), NULL, err);
	uint32_t minor;

	if (ret < 0)
		return ret;
	if (control->consumer)
		return ky_error_set(err, KYMO_E_FORMAT, "the version comes twice");
	ret = answer(control, &ours, sizeof(ours), err);
	if (!ret && (be32toh(theirs.major) != KY_LTTNG_MAJOR || !theirs.minor))
		ret = ky_error_set(err, KYMO_E_FORMAT,
				   "the daemon speaks version %u.%u of LTTng's protocol",
				   be32toh(theirs.major), be32toh(theirs.minor));
	if (ret < 0)
		return ret;
	minor = be32toh(theirs.minor);
	return ky_lttng_consumer_new(control->base.owner,
				     minor < KY_LTTNG_MINOR ? minor : KY_LTTNG_MINOR,
				     &control->consumer, err);
}

static int open_2_4(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_create_session_2_4 msg;
	struct ky_lttng_session_spec spec = {.host = msg.host, .name = msg.name};
	int ret = take_fixed(control, &msg, sizeof(msg), NULL, err);

	if (ret < 0)
		return ret;
	if (msg.name[sizeof(msg.name) - 1] || msg.host[sizeof(msg.host) - 1])
		return too_short(err);
	spec.is_live = msg.live_timer_us != 0;
	spec.is_snapshot = msg.is_snapshot != 0;
	return ky_lttng_consumer_open(control->consumer, &spec, NULL, err);
}

static int open_2_11(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_create_session_2_11 msg;
	struct ky_lttng_session_spec spec = {0};
	const uint8_t *at;
	const char *path = "";
	uint64_t chunk;
	int ret = take_fixed(control, &msg, sizeof(msg), &at, err);

	if (!ret)
		ret = take_text(control, &at, be32toh(msg.name_bytes), &spec.name, err);
	if (!ret)
		ret = take_text(control, &at, be32toh(msg.host_bytes), &spec.host, err);
	if (!ret)
		ret = take_text(control, &at, be32toh(msg.path_bytes), &path, err);
	if (ret < 0)
		return ret;
	if (*path)
		spec.name = path + (*path == '/');
	memcpy(spec.daemon, msg.daemon, sizeof(spec.daemon));
	spec.number = be64toh(msg.session);
	spec.created_s = be64toh(msg.created_s);
	spec.is_live = msg.live_timer_us != 0;
	spec.is_snapshot = msg.is_snapshot != 0;
	chunk = be64toh(msg.chunk.value);
	return ky_lttng_consumer_open(control->consumer, &spec, msg.chunk.is_set ? &chunk : NULL,
				      err);
}

static int take_create_session(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_consumer *consumer = control->consumer;
	struct ky_lttng_create_session_reply reply = {.session = htobe64(consumer->number)};
	size_t bytes = sizeof(reply) - (consumer->is_old ? sizeof(reply.path_bytes) : 0), len = 0;
	int ret = KYMO_OK;

	if (consumer->session)
		return ky_error_set(err, KYMO_E_FORMAT, "a session begins twice");
	if (!consumer->is_old)
		ret = open_2_11(control, err);
	else if (consumer->minor >= 4)
		ret = open_2_4(control, err);
	reply.code = htobe32(ret < 0 ? KY_LTTNG_ERROR : KY_LTTNG_OK);
	if (ret < 0) {
		(void)answer(control, &reply, bytes, NULL);
		return ret;
	}
	if (!consumer->is_old)
		len = strlen(consumer->session->path) + 1;
	reply.path_bytes = htobe32((uint32_t)len);
	return answer_two(control, &reply, bytes, len ? consumer->session->path : NULL, len, err);
}

static int add_2_2(struct control *control, struct ky_lttng_stream **stream, struct kymo_error *err)
{
	struct ky_lttng_add_stream_2_2 *msg = (void *)control->payload;
	struct ky_lttng_stream_spec spec = {msg->path, msg->channel, 0, 0, false, false};
	size_t names = sizeof(msg->channel) + sizeof(msg->path);

	if (control->n_payload < (control->consumer->minor == 1 ? names : sizeof(*msg)) ||
	    msg->channel[sizeof(msg->channel) - 1] || msg->path[sizeof(msg->path) - 1])
		return too_short(err);
	if (control->consumer->minor > 1) {
		spec.file_bytes = be64toh(msg->file_bytes);
		spec.files = be64toh(msg->files);
	}
	return ky_lttng_consumer_add(control->consumer, &spec, stream, err);
}

static int add_2_11(struct control *control, struct ky_lttng_stream **stream,
		    struct kymo_error *err)
{
	struct ky_lttng_add_stream_2_11 msg;
	struct ky_lttng_stream_spec spec = {0};
	const uint8_t *at;
	int ret = take_fixed(control, &msg, sizeof(msg), &at, err);

	if (!ret)
		ret = take_text(control, &at, be32toh(msg.channel_bytes), &spec.channel, err);
	if (!ret)
		ret = take_text(control, &at, be32toh(msg.path_bytes), &spec.path, err);
	spec.file_bytes = be64toh(msg.file_bytes);
	spec.files = be64toh(msg.files);
	return ret < 0 ? ret : ky_lttng_consumer_add(control->consumer, &spec, stream, err);
}

static int take_add_stream(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_add_stream_reply reply = {UINT64_MAX, htobe32(KY_LTTNG_ERROR)};
	struct ky_lttng_stream *stream = NULL;
	int ret = control->consumer->is_old ? add_2_2(control, &stream, err)
					    : add_2_11(control, &stream, err);

	if (ret < 0) {
		(void)answer(control, &reply, sizeof(reply), NULL);
		return ret;
	}
	reply = (struct ky_lttng_add_stream_reply){htobe64(stream->handle), htobe32(KY_LTTNG_OK)};
	return answer(control, &reply, sizeof(reply), err);
}

static int take_close_stream(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_stream_number number;
	struct ky_lttng_stream *stream;
	int ret = take_stream(control, &number, &stream, err);

	if (!ret) {
		stream->is_closing = true;
		stream->last_number = number.number;
		ky_lttng_consumer_expect_data(control->consumer, true);
		ky_lttng_consumer_try_close(control->consumer, stream);
	}
	return answer_status(control, ret, err);
}

static int take_reset_metadata(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_stream_number version;
	struct ky_lttng_stream *stream;
	int ret = take_stream(control, &version, &stream, err);

	if (!ret && (!stream->is_metadata || !stream->trace))
		ret = ky_error_set(err, KYMO_E_FORMAT,
				   "a stream has no metadata that could begin anew");
	if (!ret)
		ret = ky_lttng_trace_reset_metadata(stream->trace, err);
	return answer_status(control, ret, err);
}

static int take_index(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_index index = {.stream_id = UINT64_MAX, .sequence = UINT64_MAX};
	struct ky_lttng_stream *stream;
	int ret =
		take_fixed(control, &index,
			   control->consumer->minor >= 8 ? sizeof(index) : KY_LTTNG_INDEX_BYTES_2_4,
			   NULL, err);

	index.number = be64toh(index.number);
	index.packet_bits = be64toh(index.packet_bits);
	index.content_bits = be64toh(index.content_bits);
	index.begin_cycles = be64toh(index.begin_cycles);
	index.end_cycles = be64toh(index.end_cycles);
	index.discarded = be64toh(index.discarded);
	index.stream_class_id = be64toh(index.stream_class_id);
	index.stream_id = be64toh(index.stream_id);
	index.sequence = be64toh(index.sequence);
	if (!ret)
		ret = ky_lttng_consumer_find(control->consumer, be64toh(index.stream), &stream,
					     err);
	if (!ret)
		ret = ky_lttng_stream_index(stream, &index, err);
	if (!ret)
		ky_lttng_consumer_expect_data(control->consumer, stream->records.len != 0);
	return answer_status(control, ret, err);
}

/* ---- data on the way ------------------------------------------------------------------ */

static int take_data_pending(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_stream_number number;
	struct ky_lttng_stream *stream;
	int ret = take_stream(control, &number, &stream, err);

	if (ret < 0) {
		(void)answer_code(control, UINT32_MAX, NULL);
		return ret;
	}
	stream->is_checked = true;
	return answer_code(control,
			   ky_lttng_consumer_is_pending(control->consumer, stream, number.number),
			   err);
}

/* What came before on this connection has been done. */
static int take_quiescent_control(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_stream *stream;
	uint64_t handle;
	int ret = take_fixed(control, &handle, sizeof(handle), NULL, err);

	if (!ret && !ky_lttng_consumer_find(control->consumer, be64toh(handle), &stream, NULL))
		stream->is_checked = true;
	return answer_status(control, ret, err);
}

static int check_session(struct control *control, struct kymo_error *err)
{
	uint64_t number;
	int ret = take_fixed(control, &number, sizeof(number), NULL, err);

	if (!ret && be64toh(number) != control->consumer->number)
		ret = ky_error_set(err, KYMO_E_FORMAT, "there is no such session");
	return ret;
}

static int take_begin_data_pending(struct control *control, struct kymo_error *err)
{
	int ret = check_session(control, err);

	ky_vec_foreach(&control->consumer->streams, stream)
		(*stream)->is_checked = false;
	return answer_status(control, ret, err);
}

static int take_end_data_pending(struct control *control, struct kymo_error *err)
{
	int ret = check_session(control, err);

	if (ret < 0)
		return answer_status(control, ret, err);
	return answer_code(control, ky_lttng_consumer_has_pending(control->consumer), err);
}

/* ---- chunks --------------------------------------------------------------------------- */

static int take_create_chunk(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_create_chunk msg;
	const char *name = "";
	const uint8_t *at;
	int ret = take_fixed(control, &msg, sizeof(msg), &at, err);

	if (!ret)
		ret = take_text(control, &at, be32toh(msg.name_bytes), &name, err);
	if (!ret)
		ret = ky_lttng_consumer_begin_chunk(control->consumer, be64toh(msg.chunk),
						    be64toh(msg.created_s), *name ? name : NULL,
						    err);
	return answer_status(control, ret, err);
}

static int take_close_chunk(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_close_chunk_reply reply = {htobe32(KY_LTTNG_ERROR), 0};
	struct ky_lttng_close_chunk msg;
	char path[KY_LTTNG_PATH_BYTES];
	int ret = take_fixed(control, &msg, sizeof(msg), NULL, err);
	size_t len;

	if (!ret)
		ret = ky_lttng_consumer_close_chunk(
			control->consumer, be64toh(msg.chunk), be64toh(msg.closed_s),
			msg.has_command ? be32toh(msg.command) : KY_LTTNG_CHUNK_KEEP, path,
			sizeof(path), err);
	if (ret < 0) {
		(void)answer(control, &reply, sizeof(reply), NULL);
		return ret;
	}
	len = strlen(path) + 1;
	reply = (struct ky_lttng_close_chunk_reply){htobe32(KY_LTTNG_OK), htobe32((uint32_t)len)};
	return answer_two(control, &reply, sizeof(reply), path, len, err);
}

static int take_chunk_exists(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_chunk_exists_reply reply = {htobe32(KY_LTTNG_OK), 0};
	uint64_t number;
	int ret = take_fixed(control, &number, sizeof(number), NULL, err);

	if (ret < 0)
		return ret;
	reply.exists = ky_lttng_chunk_find(control->consumer->session, be64toh(number)) != NULL;
	return answer(control, &reply, sizeof(reply), err);
}

static int take_get_configuration(struct control *control, struct kymo_error *err)
{
	struct ky_lttng_configuration_reply reply = {htobe32(KY_LTTNG_OK),
						     htobe64(KY_LTTNG_CLEAR_ALLOWED)};
	uint64_t flags;
	int ret = take_fixed(control, &flags, sizeof(flags), NULL, err);

	if (ret < 0)
		return ret;
	if (flags)
		reply = (struct ky_lttng_configuration_reply){htobe32(KY_LTTNG_ERROR_PROTOCOL), 0};
	return answer(control, &reply, sizeof(reply), err);
}

/* ---- payloads that are not collected -------------------------------------------------- */

/* Metadata goes to its file as it comes. */
static int take_metadata(struct control *control, const uint8_t *data, size_t bytes,
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

static void end_rotation(struct control *control)
{
	ky_lttng_chunk_put(control->to);
	control->to = NULL;
}

/* Which chunk the streams go to. The size of the payload says how the daemon's machine pads the head. */
static int begin_rotation(struct control *control, size_t padding, struct kymo_error *err)
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

static int rotate_one(struct control *control, struct kymo_error *err)
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

static int rotate_byte(struct control *control, uint8_t byte, struct kymo_error *err)
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
		return too_short(err);
	return control->n_payload == total - positions
		       ? begin_rotation(control, total - positions - KY_LTTNG_ROTATE_BYTES, err)
		       : KYMO_OK;
}

/* Each stream of the list rotates as it comes. */
static int take_rotation(struct control *control, const uint8_t *data, size_t bytes,
			 struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (control->consumer->is_old)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a command is newer than the daemon's version");
	for (size_t i = 0; i < bytes && !ret; i++)
		ret = rotate_byte(control, data[i], err);
	if (!ret && !control->left_bytes && (!control->is_rotating || control->n_payload))
		ret = too_short(err);
	if (!ret && control->left_bytes)
		return KYMO_OK;
	end_rotation(control);
	return answer_status(control, ret, err);
}

/* ---- commands ------------------------------------------------------------------------- */

static int take_start_data(struct control *control, struct kymo_error *err)
{
	return answer_status(control, KYMO_OK, err);
}

typedef int (*take_call)(struct control *control, struct kymo_error *err);

static const struct command {
	take_call take; /* NULL: the payload is not collected */
	bool needs_session, needs_chunks;
	bool is_about_data; /* the data so far comes first */
} commands[] = {
	[KY_LTTNG_ADD_STREAM] = {take_add_stream, false, false, false},
	[KY_LTTNG_CREATE_SESSION] = {take_create_session, false, false, false},
	[KY_LTTNG_START_DATA] = {take_start_data, false, false, false},
	[KY_LTTNG_VERSION] = {take_version, false, false, false},
	[KY_LTTNG_SEND_METADATA] = {NULL, true, false, false},
	[KY_LTTNG_CLOSE_STREAM] = {take_close_stream, true, false, true},
	[KY_LTTNG_DATA_PENDING] = {take_data_pending, true, false, true},
	[KY_LTTNG_QUIESCENT_CONTROL] = {take_quiescent_control, true, false, false},
	[KY_LTTNG_BEGIN_DATA_PENDING] = {take_begin_data_pending, true, false, false},
	[KY_LTTNG_END_DATA_PENDING] = {take_end_data_pending, true, false, true},
	[KY_LTTNG_SEND_INDEX] = {take_index, true, false, true},
	[KY_LTTNG_STREAMS_SENT] = {take_start_data, true, false, false},
	[KY_LTTNG_RESET_METADATA] = {take_reset_metadata, true, false, false},
	[KY_LTTNG_ROTATE_STREAMS] = {NULL, true, true, true},
	[KY_LTTNG_CREATE_TRACE_CHUNK] = {take_create_chunk, true, true, false},
	[KY_LTTNG_CLOSE_TRACE_CHUNK] = {take_close_chunk, true, true, false},
	[KY_LTTNG_TRACE_CHUNK_EXISTS] = {take_chunk_exists, true, true, false},
	[KY_LTTNG_GET_CONFIGURATION] = {take_get_configuration, false, false, false},
};

static uint32_t command_of(const struct control *control)
{
	return be32toh(control->head.head.command);
}

static int begin_command(struct control *control, struct kymo_error *err)
{
	const struct ky_lttng_consumer *consumer = control->consumer;
	uint32_t number = command_of(control);
	const struct command *command =
		number < sizeof(commands) / sizeof(*commands) ? &commands[number] : NULL;
	bool is_collected = command && command->take;

	control->left_bytes = be64toh(control->head.head.bytes);
	control->n_payload = 0;
	control->is_rotating = false;
	if (!command || (!command->take && !command->needs_session)) {
		(void)answer_code(control, KY_LTTNG_ERROR, NULL);
		return ky_error_set(err, KYMO_E_FORMAT, "there is no command %u", number);
	}
	if (control->left_bytes > (is_collected ? PAYLOAD_BYTES : KY_LTTNG_PAYLOAD_MAX))
		return too_short(err);
	if (!consumer && number != KY_LTTNG_VERSION)
		return ky_error_set(err, KYMO_E_FORMAT, "a command comes before the version");
	if (command->needs_session && !consumer->session)
		return ky_error_set(err, KYMO_E_FORMAT, "a command comes before the session");
	if (command->needs_chunks && consumer->is_old)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a command is newer than the daemon's version");
	return command->is_about_data ? ky_lttng_consumer_take_data(control->consumer, err)
				      : KYMO_OK;
}

/* A part of the payload, which may be empty when the payload is. */
static int take_payload(struct control *control, const uint8_t *data, size_t bytes,
			struct kymo_error *err)
{
	const struct command *command = &commands[command_of(control)];

	control->left_bytes -= bytes;
	if (command_of(control) == KY_LTTNG_SEND_METADATA)
		return take_metadata(control, data, bytes, err);
	if (command_of(control) == KY_LTTNG_ROTATE_STREAMS)
		return take_rotation(control, data, bytes, err);
	memcpy(control->payload + control->n_payload, data, bytes);
	control->n_payload += bytes;
	return control->left_bytes ? KYMO_OK : command->take(control, err);
}

static int take(struct ky_client *base, const uint8_t *data, size_t bytes, struct kymo_error *err)
{
	struct control *control = (struct control *)base;
	int ret = KYMO_OK;

	while (bytes && !ret) {
		size_t part = sizeof(control->head) - control->n_head;

		if (part) {
			part = part < bytes ? part : bytes;
			memcpy(control->head.bytes + control->n_head, data, part);
			control->n_head += part;
			if (control->n_head == sizeof(control->head))
				ret = begin_command(control, err);
			if (!ret && control->n_head == sizeof(control->head) &&
			    !control->left_bytes)
				ret = take_payload(control, data, 0, err);
		} else {
			part = control->left_bytes < bytes ? (size_t)control->left_bytes : bytes;
			ret = take_payload(control, data, part, err);
		}
		data += part;
		bytes -= part;
		if (control->n_head == sizeof(control->head) && !control->left_bytes)
			control->n_head = 0;
	}
	return ret;
}

static void end(struct ky_client *base)
{
	struct control *control = (struct control *)base;

	end_rotation(control);
	ky_lttng_consumer_lose_control(control->consumer);
}

static const char *name(const struct ky_client *base)
{
	return ky_lttng_consumer_name(((const struct control *)base)->consumer);
}

/* The daemon's last connection gives the message. */
static const char *ending(const struct ky_client *base)
{
	return ((const struct control *)base)->consumer ? "" : NULL;
}

static int patience_s(const struct ky_client *base, bool *since_begin)
{
	const struct control *control = (const struct control *)base;

	*since_begin = !control->consumer || !control->consumer->session;
	if (*since_begin)
		return GREETING_S;
	return control->n_head ? SILENCE_S : 0;
}

const struct ky_client_calls ky_lttng_control_calls = {
	.struct_bytes = sizeof(struct control),
	.take = take,
	.end = end,
	.name = name,
	.ending = ending,
	.patience_s = patience_s,
};
