/* SPDX-License-Identifier: MIT */
#include "import/common/trace-maker-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ctf/tsdl/tsdl.h"

#define PACKET_BYTES   (256u << 10)
#define BODY_MAX_BYTES (PACKET_BYTES - 1024u)
#define STREAMS_MAX    65536u

int ky_maker_open(struct ky_maker **out, struct ky_packet_store *store,
		  const struct ky_maker_about *about, struct kymo_error *err)
{
	const struct ky_store_place place = {.path = about->path};
	struct ky_maker *maker = calloc(1, sizeof(*maker));
	int ret = KYMO_OK;

	*out = maker;
	if (!maker)
		return ky_error_nomem(err);
	if (getrandom(maker->uuid, sizeof(maker->uuid), 0) != (ssize_t)sizeof(maker->uuid))
		ret = ky_error_set(err, KYMO_E_IO, "no random numbers");
	maker->uuid[6] = (maker->uuid[6] & 0x0f) | 0x40;
	maker->uuid[8] = (maker->uuid[8] & 0x3f) | 0x80;
	maker->reorders = about->reorders;
	maker->has_cpus = about->has_cpus;
	maker->body = malloc(BODY_MAX_BYTES);
	if (!ret && (!maker->body || ky_maker_build(maker, about) < 0))
		ret = ky_error_nomem(err);
	if (!ret)
		ret = ky_store_open(store, &place, &maker->to, err);
	if (!ret)
		return KYMO_OK;
	(void)ky_maker_close(maker, NULL);
	*out = NULL;
	return ret;
}

/* ---- values --------------------------------------------------------------------------- */

static void trace_maker_put(struct ky_maker *maker, const void *data, size_t len)
{
	if (!len || len > BODY_MAX_BYTES - maker->body_bytes)
		return;
	memcpy(maker->body + maker->body_bytes, data, len);
	maker->body_bytes += (uint32_t)len;
}

/* Room for numbers that follow a text or an array, so that each event is whole. */
static size_t trace_maker_room(const struct ky_maker *maker)
{
	size_t keep = 16 * (maker->event->n - maker->field) + 16;
	size_t room = BODY_MAX_BYTES - maker->body_bytes;

	return room > keep ? room - keep : 0;
}

static void put_value(struct ky_maker *maker, enum ky_maker_kind kind, uint64_t value)
{
	static const uint8_t sizes[] = {
		[KY_MAKER_U8] = 1,  [KY_MAKER_U16] = 2,	 [KY_MAKER_U32] = 4,
		[KY_MAKER_U64] = 8, [KY_MAKER_S32] = 4,	 [KY_MAKER_S64] = 8,
		[KY_MAKER_HEX] = 8, [KY_MAKER_ENUM] = 1, [KY_MAKER_DOUBLE] = 8,
	};
	uint8_t u8 = (uint8_t)value;
	uint16_t u16 = (uint16_t)value;
	uint32_t u32 = (uint32_t)value;

	switch (sizes[kind]) {
	case 1:
		trace_maker_put(maker, &u8, 1);
		break;
	case 2:
		trace_maker_put(maker, &u16, 2);
		break;
	case 4:
		trace_maker_put(maker, &u32, 4);
		break;
	default:
		trace_maker_put(maker, &value, 8);
		break;
	}
}

static void trace_maker_put_text(struct ky_maker *maker, const char *text, size_t len)
{
	size_t room = trace_maker_room(maker);

	len = strnlen(text, len < room ? len : room);
	trace_maker_put(maker, text, len);
	trace_maker_put(maker, "", 1);
}

static void trace_maker_put_comm(struct ky_maker *maker, const char *text, size_t len)
{
	char comm[KY_MAKER_COMM_BYTES] = {0};

	memcpy(comm, text,
	       strnlen(text, len < KY_MAKER_COMM_BYTES - 1 ? len : KY_MAKER_COMM_BYTES - 1));
	trace_maker_put(maker, comm, sizeof(comm));
}

static void trace_maker_put_array(struct ky_maker *maker, const void *data, size_t n, size_t each)
{
	size_t room = trace_maker_room(maker) / each;
	uint32_t n32 = (uint32_t)(n < room ? n : room);

	trace_maker_put(maker, &n32, 4);
	trace_maker_put(maker, data, n32 * each);
}

/* What a field of this kind is without a value that fits. */
static void put_nothing(struct ky_maker *maker, enum ky_maker_kind kind)
{
	if (kind == KY_MAKER_TEXT)
		trace_maker_put_text(maker, "", 0);
	else if (kind == KY_MAKER_COMM)
		trace_maker_put_comm(maker, "", 0);
	else if (kind == KY_MAKER_HEXES || kind == KY_MAKER_BYTES)
		trace_maker_put_array(maker, NULL, 0, 1);
	else
		put_value(maker, kind, 0);
}

static bool trace_maker_next(struct ky_maker *maker, enum ky_maker_kind *kind)
{
	if (maker->field >= maker->event->n)
		return false;
	*kind = maker->event->kinds[maker->field++];
	return true;
}

void ky_maker_begin(struct ky_maker *maker, uint32_t stream, int event, uint64_t ns)
{
	maker->event = &maker->events.data[event];
	maker->event_id = (uint32_t)event;
	maker->event_stream = stream;
	maker->event_ns = ns;
	maker->field = 0;
	maker->body_bytes = 0;
}

void ky_maker_number(struct ky_maker *maker, uint64_t value)
{
	enum ky_maker_kind kind;

	if (!trace_maker_next(maker, &kind))
		return;
	if (kind <= KY_MAKER_ENUM)
		put_value(maker, kind, value);
	else
		put_nothing(maker, kind);
}

void ky_maker_double(struct ky_maker *maker, double value)
{
	enum ky_maker_kind kind;
	uint64_t bits;

	if (!trace_maker_next(maker, &kind))
		return;
	memcpy(&bits, &value, sizeof(bits));
	if (kind == KY_MAKER_DOUBLE)
		put_value(maker, kind, bits);
	else
		put_nothing(maker, kind);
}

void ky_maker_text(struct ky_maker *maker, const char *text, size_t len)
{
	enum ky_maker_kind kind;

	if (!trace_maker_next(maker, &kind))
		return;
	if (kind == KY_MAKER_TEXT)
		trace_maker_put_text(maker, text, len);
	else if (kind == KY_MAKER_COMM)
		trace_maker_put_comm(maker, text, len);
	else
		put_nothing(maker, kind);
}

void ky_maker_numbers(struct ky_maker *maker, const uint64_t *values, size_t n)
{
	enum ky_maker_kind kind;

	if (!trace_maker_next(maker, &kind))
		return;
	if (kind == KY_MAKER_HEXES)
		trace_maker_put_array(maker, values, n, sizeof(*values));
	else
		put_nothing(maker, kind);
}

void ky_maker_bytes(struct ky_maker *maker, const uint8_t *bytes, size_t n)
{
	enum ky_maker_kind kind;

	if (!trace_maker_next(maker, &kind))
		return;
	if (kind == KY_MAKER_BYTES)
		trace_maker_put_array(maker, bytes, n, 1);
	else
		put_nothing(maker, kind);
}

/* ---- packets -------------------------------------------------------------------------- */

static int trace_maker_send(struct ky_maker *maker, struct ky_maker_stream *stream, uint64_t end_ns,
			    struct kymo_error *err)
{
	struct ky_packet_writer *writer = &stream->writer;
	uint64_t content_bits = (uint64_t)writer->used_bytes * 8;
	struct ky_packet_out out = {
		.size_bytes = ky_packet_writer_close(writer, end_ns, stream->lost, 8),
		.data = writer->data,
		.content_bits = content_bits,
		.n_events = writer->events,
		.begin_cycles = writer->begin_cycles,
		.end_cycles = end_ns,
		.discarded = stream->lost,
		.sequence = writer->sequence,
		.stream_class_id = writer->stream_class_id,
		.stream_id = writer->stream_id,
	};
	char name[48];

	if (stream->number < 0) {
		snprintf(name, sizeof(name), "stream_%u", writer->cpu_id);
		stream->number = ky_store_stream(maker->to, name, err);
		if (stream->number < 0)
			return stream->number;
	}
	return ky_store_packet(maker->to, stream->number, &out, err);
}

static struct ky_maker_stream *trace_maker_new_stream(struct ky_maker *maker, uint32_t number,
						      uint64_t ns)
{
	struct ky_maker_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->number = -1;
	if (ky_packet_writer_init(&stream->writer, PACKET_BYTES, maker->uuid, 0, number, number,
				  false) < 0) {
		free(stream);
		return NULL;
	}
	if (!maker->has_cpus)
		ky_packet_writer_without_cpu(&stream->writer);
	ky_packet_writer_begin(&stream->writer, ns);
	maker->streams.data[number] = stream;
	return stream;
}

static struct ky_maker_stream *trace_maker_stream(struct ky_maker *maker, uint32_t number,
						  uint64_t ns, struct kymo_error *err)
{
	struct ky_maker_stream *stream;

	if (number >= STREAMS_MAX) {
		ky_error_set(err, KYMO_E_LIMIT, "stream %u is above the limit of %u", number,
			     STREAMS_MAX);
		return NULL;
	}
	while (maker->streams.len <= number)
		if (ky_vec_push(&maker->streams, NULL) < 0) {
			ky_error_nomem(err);
			return NULL;
		}
	stream = maker->streams.data[number];
	if (!stream)
		stream = trace_maker_new_stream(maker, number, ns);
	if (!stream)
		ky_error_nomem(err);
	return stream;
}

/* The first stream whose last event is not later; else the last one. */
static uint32_t trace_maker_order(const struct ky_maker *maker, uint64_t ns)
{
	uint32_t i = 0;

	while (i < KY_MAKER_ORDERS - 1 && i < maker->streams.len && maker->streams.data[i] &&
	       maker->streams.data[i]->writer.last_cycles > ns)
		i++;
	return i;
}

int ky_maker_commit(struct ky_maker *maker, struct kymo_error *err)
{
	uint32_t number =
		maker->reorders ? trace_maker_order(maker, maker->event_ns) : maker->event_stream;
	struct ky_maker_stream *stream = trace_maker_stream(maker, number, maker->event_ns, err);
	uint64_t ns = maker->event_ns;
	enum ky_maker_kind kind;
	uint8_t *at;
	int ret;

	if (!stream)
		return err ? err->code : KYMO_E_MEMORY;
	while (trace_maker_next(maker, &kind))
		put_nothing(maker, kind);
	if (ns < stream->writer.last_cycles) {
		ns = stream->writer.last_cycles;
		maker->n_moved++;
	}
	at = ky_packet_writer_event(&stream->writer, maker->event_id, ns, maker->body_bytes);
	if (!at) {
		ret = trace_maker_send(maker, stream, stream->writer.last_cycles, err);
		if (ret < 0)
			return ret;
		ky_packet_writer_begin(&stream->writer, stream->writer.last_cycles);
		at = ky_packet_writer_event(&stream->writer, maker->event_id, ns,
					    maker->body_bytes);
	}
	if (!at)
		return ky_error_set(err, KYMO_E_LIMIT, "an event has too many fields");
	memcpy(at, maker->body, maker->body_bytes);
	maker->n_events++;
	return KYMO_OK;
}

int ky_maker_lost(struct ky_maker *maker, uint32_t number, uint64_t n, struct kymo_error *err)
{
	struct ky_maker_stream *stream = trace_maker_stream(maker, number, maker->event_ns, err);
	int ret;

	if (!stream)
		return err ? err->code : KYMO_E_MEMORY;
	ret = trace_maker_send(maker, stream, stream->writer.last_cycles, err);
	ky_packet_writer_begin(&stream->writer, stream->writer.last_cycles);
	stream->lost += n;
	return ret;
}

uint64_t ky_maker_events(const struct ky_maker *maker)
{
	return maker->n_events;
}

uint64_t ky_maker_moved(const struct ky_maker *maker)
{
	return maker->n_moved;
}

static int trace_maker_finish(struct ky_maker *maker, struct kymo_error *err)
{
	char *text = NULL;
	size_t len = 0;
	int ret = KYMO_OK;

	ky_vec_foreach(&maker->streams, stream)
		if (*stream && !ret)
			ret = trace_maker_send(maker, *stream, (*stream)->writer.last_cycles, err);
	if (!ret)
		ret = ky_trace_class_finish(maker->trace, true, err);
	if (!ret)
		ret = ky_tsdl_write(maker->trace, &text, &len, err);
	if (!ret)
		ret = ky_store_metadata(maker->to, text, len, err);
	free(text);
	return ret;
}

int ky_maker_close(struct ky_maker *maker, struct kymo_error *err)
{
	int ret = KYMO_OK, closed;

	if (!maker)
		return KYMO_OK;
	if (maker->to)
		ret = trace_maker_finish(maker, err);
	closed = ky_store_close(maker->to, ret < 0 ? NULL : err);
	ky_vec_foreach(&maker->streams, stream) {
		if (*stream)
			ky_packet_writer_fini(&(*stream)->writer);
		free(*stream);
	}
	ky_vec_fini(&maker->streams);
	ky_vec_foreach(&maker->events, event)
		free(event->kinds);
	ky_vec_fini(&maker->events);
	ky_trace_class_free(maker->trace);
	free(maker->context_kinds);
	free(maker->body);
	free(maker);
	return ret < 0 ? ret : closed;
}
