/* SPDX-License-Identifier: MIT */
/* The data connection of an LTTng consumer daemon: packets, which go to their files as they come. */
#include <endian.h>
#include <string.h>

#include "base/error.h"
#include "net/files/relay-block.h"
#include "net/protocol/frame.h"
#include "net/lttng/lttng-consumer.h"

/* How long a daemon may take for a packet that has begun. */
#define SILENCE_S 60
/* The same after the end of its control connection. */
#define LAST_SILENCE_S 10

struct data {
	struct ky_client base;
	struct ky_lttng_consumer *consumer; /* NULL: no packet came yet */
	struct ky_lttng_stream *stream;	    /* NULL: no packet is coming */
	/* The packet that is coming in. */
	uint8_t bytes[sizeof(struct ky_lttng_data_head)];
	size_t n_head;
	struct ky_lttng_data_head head;
	uint64_t left_bytes;
	/* Its place in the file; after its end, where the next one is expected. */
	struct ky_relay_place place;
};

/* Connections that have not said whose they are cannot take the places of all others: the most silent one goes. */
static void lttng_data_make_room(const struct data *added)
{
	struct ky_clients *clients = added->base.clients;
	struct ky_client *oldest = NULL;
	size_t n = 0;

	ky_vec_foreach(&clients->list, it) {
		const struct data *data = (const struct data *)*it;

		if ((*it)->calls != &ky_lttng_data_calls || data->consumer)
			continue;
		n++;
		if (!oldest || (*it)->heard_s < oldest->heard_s)
			oldest = *it;
	}
	if (n >= (clients->max + 1) / 2 && oldest)
		ky_client_drop(oldest);
}

static int lttng_data_begin(struct ky_client *base, struct kymo_error *err)
{
	(void)err;
	lttng_data_make_room((struct data *)base);
	return KYMO_OK;
}

static int lttng_data_find_stream(struct data *data, struct kymo_error *err)
{
	struct ky_lttng_relay *relay = data->base.owner;
	struct ky_lttng_stream *stream = ky_map_get(&relay->streams, data->head.stream);

	if (!stream || stream->is_busy || (data->consumer && stream->consumer != data->consumer))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a packet comes for a stream that does not exist");
	if (!data->consumer) {
		data->consumer = stream->consumer;
		ky_lttng_consumer_gain_data(data->consumer, &data->base);
	}
	data->stream = stream;
	return KYMO_OK;
}

static int lttng_data_begin_packet(struct data *data, struct kymo_error *err)
{
	struct ky_lttng_data_head *head = &data->head;
	struct ky_lttng_stream *stream;
	int ret;

	memcpy(head, data->bytes, sizeof(*head));
	head->stream = be64toh(head->stream);
	head->number = be64toh(head->number);
	head->bytes = be32toh(head->bytes);
	head->padding_bytes = be32toh(head->padding_bytes);
	if ((uint64_t)head->bytes + head->padding_bytes > KY_NET_PACKET_MAX)
		return ky_error_set(err, KYMO_E_FORMAT, "a packet is too large");
	ret = lttng_data_find_stream(data, err);
	if (!ret)
		ret = ky_lttng_consumer_check_quota(data->consumer, err);
	stream = data->stream;
	if (!ret)
		ret = ky_lttng_stream_begin(stream, head, err);
	data->left_bytes = head->bytes;
	if (!ret)
		data->place =
			(struct ky_relay_place){stream->size_bytes, sizeof(*head), head->bytes};
	return ret;
}

static int lttng_data_end_packet(struct data *data, struct kymo_error *err)
{
	struct ky_lttng_stream *stream = data->stream;
	uint64_t bytes = (uint64_t)data->head.bytes + data->head.padding_bytes;
	size_t n_records = stream->records.len;
	int ret = ky_lttng_stream_end(stream, &data->head, err);

	data->n_head = 0;
	if (ret < 0)
		return ret;
	data->place.offset_bytes = stream->size_bytes;
	if (stream->records.len < n_records)
		ky_lttng_consumer_note_packet(data->consumer, bytes);
	data->stream = NULL;
	ky_lttng_consumer_try_close(data->consumer, stream);
	return KYMO_OK;
}

static int lttng_data_take_packets(struct ky_client *base, const uint8_t *at, size_t bytes,
				   struct kymo_error *err)
{
	struct data *data = (struct data *)base;
	int ret = KYMO_OK;

	while (bytes && !ret) {
		size_t part = sizeof(data->bytes) - data->n_head;

		if (!data->n_head && ky_client_is_over_time(base))
			return ky_client_keep(base, at, bytes, err);
		if (part) {
			part = part < bytes ? part : bytes;
			memcpy(data->bytes + data->n_head, at, part);
			data->n_head += part;
			if (data->n_head == sizeof(data->bytes))
				ret = lttng_data_begin_packet(data, err);
		} else {
			part = data->left_bytes < bytes ? (size_t)data->left_bytes : bytes;
			data->left_bytes -= part;
			ret = ky_lttng_stream_write(data->stream, at, part,
						    data->left_bytes ? 0 : data->head.padding_bytes,
						    err);
		}
		at += part;
		bytes -= part;
		if (!ret && data->n_head == sizeof(data->bytes) && !data->left_bytes)
			ret = lttng_data_end_packet(data, err);
	}
	return ret;
}

/* What is in the client's buffer goes to the files before the call ends. */
static int lttng_data_take(struct ky_client *base, const uint8_t *at, size_t bytes,
			   struct kymo_error *err)
{
	struct ky_lttng_relay *relay = base->owner;
	int ret = lttng_data_take_packets(base, at, bytes, err);
	int written = ky_lttng_traces_write(&relay->traces, ret < 0 ? NULL : err);

	return ret < 0 ? ret : written;
}

/* Packets are written in whole blocks, as far as they follow each other. */
static size_t lttng_data_best_bytes(const struct ky_client *base, size_t most)
{
	const struct data *data = (const struct data *)base;
	uint64_t came = data->n_head;

	if (came == sizeof(data->bytes))
		came += data->head.bytes - data->left_bytes;
	return ky_relay_block_bytes(&data->place, came, most);
}

static void lttng_data_end(struct ky_client *base)
{
	struct data *data = (struct data *)base;

	if (data->stream)
		ky_lttng_stream_cancel(data->stream);
	if (data->consumer)
		ky_lttng_consumer_lose_data(data->consumer, base);
}

static const char *lttng_data_name(const struct ky_client *base)
{
	return ky_lttng_consumer_name(((const struct data *)base)->consumer);
}

/* The daemon's last connection gives the message. */
static const char *lttng_data_ending(const struct ky_client *base)
{
	return ((const struct data *)base)->consumer ? "" : NULL;
}

static int lttng_data_patience_s(const struct ky_client *base, bool *since_begin)
{
	const struct data *data = (const struct data *)base;
	const struct ky_lttng_relay *relay = base->owner;

	(void)since_begin;
	/* The first packet may come late, but not before a session. */
	if (!data->consumer && !relay->consumers.len)
		return SILENCE_S;
	if (data->consumer && !data->consumer->has_control)
		return LAST_SILENCE_S;
	return data->n_head ? SILENCE_S : 0;
}

const struct ky_client_calls ky_lttng_data_calls = {
	.struct_bytes = sizeof(struct data),
	.begin = lttng_data_begin,
	.take = lttng_data_take,
	.end = lttng_data_end,
	.name = lttng_data_name,
	.ending = lttng_data_ending,
	.patience_s = lttng_data_patience_s,
	.best_bytes = lttng_data_best_bytes,
};
