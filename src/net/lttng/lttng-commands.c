/* SPDX-License-Identifier: MIT */
/* The commands of a consumer daemon whose payload is collected before they are carried out. */
#include <endian.h>
#include <string.h>

#include "base/error.h"
#include "net/lttng/lttng-control-internal.h"

/* ---- session and streams ------------------------------------------------------------- */

static int take_version(struct ky_lttng_control *control, struct kymo_error *err)
{
	const struct ky_lttng_version ours = {htobe32(KY_LTTNG_MAJOR), htobe32(KY_LTTNG_MINOR)};
	struct ky_lttng_version theirs;
	int ret = ky_lttng_take_fixed(control, &theirs, sizeof(theirs), NULL, err);
	uint32_t minor;

	if (ret < 0)
		return ret;
	if (control->consumer)
		return ky_error_set(err, KYMO_E_FORMAT, "the version comes twice");
	ret = ky_lttng_answer(control, &ours, sizeof(ours), err);
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

static int open_2_4(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_create_session_2_4 msg;
	struct ky_lttng_session_spec spec = {.host = msg.host, .name = msg.name};
	int ret = ky_lttng_take_fixed(control, &msg, sizeof(msg), NULL, err);

	if (ret < 0)
		return ret;
	if (msg.name[sizeof(msg.name) - 1] || msg.host[sizeof(msg.host) - 1])
		return ky_lttng_too_short(err);
	spec.is_live = msg.live_timer_us != 0;
	spec.is_snapshot = msg.is_snapshot != 0;
	return ky_lttng_consumer_open(control->consumer, &spec, NULL, err);
}

static int open_2_11(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_create_session_2_11 msg;
	struct ky_lttng_session_spec spec = {0};
	const uint8_t *at;
	const char *path = "";
	uint64_t chunk;
	int ret = ky_lttng_take_fixed(control, &msg, sizeof(msg), &at, err);

	if (!ret)
		ret = ky_lttng_take_text(control, &at, be32toh(msg.name_bytes), &spec.name, err);
	if (!ret)
		ret = ky_lttng_take_text(control, &at, be32toh(msg.host_bytes), &spec.host, err);
	if (!ret)
		ret = ky_lttng_take_text(control, &at, be32toh(msg.path_bytes), &path, err);
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

static int take_create_session(struct ky_lttng_control *control, struct kymo_error *err)
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
		(void)ky_lttng_answer(control, &reply, bytes, NULL);
		return ret;
	}
	if (!consumer->is_old)
		len = strlen(consumer->session->path) + 1;
	reply.path_bytes = htobe32((uint32_t)len);
	return ky_lttng_answer_two(control, &reply, bytes, len ? consumer->session->path : NULL,
				   len, err);
}

static int add_2_2(struct ky_lttng_control *control, struct ky_lttng_stream **stream,
		   struct kymo_error *err)
{
	struct ky_lttng_add_stream_2_2 *msg = (void *)control->payload;
	struct ky_lttng_stream_spec spec = {msg->path, msg->channel, 0, 0, false, false};
	size_t names = sizeof(msg->channel) + sizeof(msg->path);

	if (control->n_payload < (control->consumer->minor == 1 ? names : sizeof(*msg)) ||
	    msg->channel[sizeof(msg->channel) - 1] || msg->path[sizeof(msg->path) - 1])
		return ky_lttng_too_short(err);
	if (control->consumer->minor > 1) {
		spec.file_bytes = be64toh(msg->file_bytes);
		spec.files = be64toh(msg->files);
	}
	return ky_lttng_consumer_add(control->consumer, &spec, stream, err);
}

static int add_2_11(struct ky_lttng_control *control, struct ky_lttng_stream **stream,
		    struct kymo_error *err)
{
	struct ky_lttng_add_stream_2_11 msg;
	struct ky_lttng_stream_spec spec = {0};
	const uint8_t *at;
	int ret = ky_lttng_take_fixed(control, &msg, sizeof(msg), &at, err);

	if (!ret)
		ret = ky_lttng_take_text(control, &at, be32toh(msg.channel_bytes), &spec.channel,
					 err);
	if (!ret)
		ret = ky_lttng_take_text(control, &at, be32toh(msg.path_bytes), &spec.path, err);
	spec.file_bytes = be64toh(msg.file_bytes);
	spec.files = be64toh(msg.files);
	return ret < 0 ? ret : ky_lttng_consumer_add(control->consumer, &spec, stream, err);
}

static int take_add_stream(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_add_stream_reply reply = {UINT64_MAX, htobe32(KY_LTTNG_ERROR)};
	struct ky_lttng_stream *stream = NULL;
	int ret = control->consumer->is_old ? add_2_2(control, &stream, err)
					    : add_2_11(control, &stream, err);

	if (ret < 0) {
		(void)ky_lttng_answer(control, &reply, sizeof(reply), NULL);
		return ret;
	}
	reply = (struct ky_lttng_add_stream_reply){htobe64(stream->handle), htobe32(KY_LTTNG_OK)};
	return ky_lttng_answer(control, &reply, sizeof(reply), err);
}

static int take_close_stream(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_stream_number number;
	struct ky_lttng_stream *stream;
	int ret = ky_lttng_take_stream(control, &number, &stream, err);

	if (!ret) {
		stream->is_closing = true;
		stream->last_number = number.number;
		ky_lttng_consumer_expect_data(control->consumer, true);
		ky_lttng_consumer_try_close(control->consumer, stream);
	}
	return ky_lttng_answer_status(control, ret, err);
}

static int take_reset_metadata(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_stream_number version;
	struct ky_lttng_stream *stream;
	int ret = ky_lttng_take_stream(control, &version, &stream, err);

	if (!ret && (!stream->is_metadata || !stream->trace))
		ret = ky_error_set(err, KYMO_E_FORMAT,
				   "a stream has no metadata that could begin anew");
	if (!ret)
		ret = ky_lttng_trace_reset_metadata(stream->trace, err);
	return ky_lttng_answer_status(control, ret, err);
}

static int take_index(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_index index = {.stream_id = UINT64_MAX, .sequence = UINT64_MAX};
	struct ky_lttng_stream *stream;
	bool waits;
	int ret = ky_lttng_take_fixed(control, &index,
				      control->consumer->minor >= 8 ? sizeof(index)
								    : KY_LTTNG_INDEX_BYTES_2_4,
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
	waits = !ret && stream->records.len;
	ret = ky_lttng_answer_status(control, ret, err);
	return ret < 0 ? ret
		       : ky_lttng_consumer_take_index(control->consumer,
						      waits ? index.packet_bits / 8 : 0, err);
}

/* ---- data on the way ----------------------------------------------------------------- */

static int take_data_pending(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_stream_number number;
	struct ky_lttng_stream *stream;
	int ret = ky_lttng_take_stream(control, &number, &stream, err);

	if (ret < 0) {
		(void)ky_lttng_answer_code(control, UINT32_MAX, NULL);
		return ret;
	}
	stream->is_checked = true;
	return ky_lttng_answer_code(
		control, ky_lttng_consumer_is_pending(control->consumer, stream, number.number),
		err);
}

/* What came before on this connection has been done. */
static int take_quiescent_control(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_stream *stream;
	uint64_t handle;
	int ret = ky_lttng_take_fixed(control, &handle, sizeof(handle), NULL, err);

	if (!ret && !ky_lttng_consumer_find(control->consumer, be64toh(handle), &stream, NULL))
		stream->is_checked = true;
	return ky_lttng_answer_status(control, ret, err);
}

static int check_session(struct ky_lttng_control *control, struct kymo_error *err)
{
	uint64_t number;
	int ret = ky_lttng_take_fixed(control, &number, sizeof(number), NULL, err);

	if (!ret && be64toh(number) != control->consumer->number)
		ret = ky_error_set(err, KYMO_E_FORMAT, "there is no such session");
	return ret;
}

static int take_begin_data_pending(struct ky_lttng_control *control, struct kymo_error *err)
{
	int ret = check_session(control, err);

	ky_vec_foreach(&control->consumer->streams, stream)
		(*stream)->is_checked = false;
	return ky_lttng_answer_status(control, ret, err);
}

static int take_end_data_pending(struct ky_lttng_control *control, struct kymo_error *err)
{
	int ret = check_session(control, err);

	if (ret < 0)
		return ky_lttng_answer_status(control, ret, err);
	return ky_lttng_answer_code(control, ky_lttng_consumer_has_pending(control->consumer), err);
}

/* ---- chunks -------------------------------------------------------------------------- */

static int take_create_chunk(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_create_chunk msg;
	const char *name = "";
	const uint8_t *at;
	int ret = ky_lttng_take_fixed(control, &msg, sizeof(msg), &at, err);

	if (!ret)
		ret = ky_lttng_take_text(control, &at, be32toh(msg.name_bytes), &name, err);
	if (!ret)
		ret = ky_lttng_consumer_begin_chunk(control->consumer, be64toh(msg.chunk),
						    be64toh(msg.created_s), *name ? name : NULL,
						    err);
	return ky_lttng_answer_status(control, ret, err);
}

static int take_close_chunk(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_close_chunk_reply reply = {htobe32(KY_LTTNG_ERROR), 0};
	struct ky_lttng_close_chunk msg;
	char path[KY_LTTNG_PATH_BYTES];
	int ret = ky_lttng_take_fixed(control, &msg, sizeof(msg), NULL, err);
	size_t len;

	if (!ret)
		ret = ky_lttng_consumer_close_chunk(
			control->consumer, be64toh(msg.chunk), be64toh(msg.closed_s),
			msg.has_command ? be32toh(msg.command) : KY_LTTNG_CHUNK_KEEP, path,
			sizeof(path), err);
	if (ret < 0) {
		(void)ky_lttng_answer(control, &reply, sizeof(reply), NULL);
		return ret;
	}
	len = strlen(path) + 1;
	reply = (struct ky_lttng_close_chunk_reply){htobe32(KY_LTTNG_OK), htobe32((uint32_t)len)};
	return ky_lttng_answer_two(control, &reply, sizeof(reply), path, len, err);
}

static int take_chunk_exists(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_chunk_exists_reply reply = {htobe32(KY_LTTNG_OK), 0};
	uint64_t number;
	int ret = ky_lttng_take_fixed(control, &number, sizeof(number), NULL, err);

	if (ret < 0)
		return ret;
	reply.exists = ky_lttng_chunk_find(control->consumer->session, be64toh(number)) != NULL;
	return ky_lttng_answer(control, &reply, sizeof(reply), err);
}

static int take_get_configuration(struct ky_lttng_control *control, struct kymo_error *err)
{
	struct ky_lttng_configuration_reply reply = {htobe32(KY_LTTNG_OK),
						     htobe64(KY_LTTNG_CLEAR_ALLOWED)};
	uint64_t flags;
	int ret = ky_lttng_take_fixed(control, &flags, sizeof(flags), NULL, err);

	if (ret < 0)
		return ret;
	if (flags)
		reply = (struct ky_lttng_configuration_reply){htobe32(KY_LTTNG_ERROR_PROTOCOL), 0};
	return ky_lttng_answer(control, &reply, sizeof(reply), err);
}

/* ---- the table ----------------------------------------------------------------------- */

static int take_start_data(struct ky_lttng_control *control, struct kymo_error *err)
{
	return ky_lttng_answer_status(control, KYMO_OK, err);
}

static const struct ky_lttng_handler handlers[] = {
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
	[KY_LTTNG_SEND_INDEX] = {take_index, true, false, false},
	[KY_LTTNG_STREAMS_SENT] = {take_start_data, true, false, false},
	[KY_LTTNG_RESET_METADATA] = {take_reset_metadata, true, false, false},
	[KY_LTTNG_ROTATE_STREAMS] = {NULL, true, true, true},
	[KY_LTTNG_CREATE_TRACE_CHUNK] = {take_create_chunk, true, true, false},
	[KY_LTTNG_CLOSE_TRACE_CHUNK] = {take_close_chunk, true, true, false},
	[KY_LTTNG_TRACE_CHUNK_EXISTS] = {take_chunk_exists, true, true, false},
	[KY_LTTNG_GET_CONFIGURATION] = {take_get_configuration, false, false, false},
};

const struct ky_lttng_handler *ky_lttng_handler(uint32_t number)
{
	return number < sizeof(handlers) / sizeof(*handlers) ? &handlers[number] : NULL;
}
