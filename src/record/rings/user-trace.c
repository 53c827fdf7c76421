/* SPDX-License-Identifier: MIT */
#include "record/rings/user-trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/file.h"
#include "store/live/live-file.h"

/* Of the state dump. */
#define DUMP_PACKET_BYTES 65536u

/* ---- opening, metadata ---------------------------------------------------------------- */

static int make_streams(struct ky_user_trace *trace, uint32_t n_streams, struct kymo_error *err)
{
	trace->streams = calloc(n_streams, sizeof(*trace->streams));
	if (!trace->streams)
		return ky_error_nomem(err);
	trace->n_streams = n_streams;
	for (uint32_t i = 0; i < n_streams; i++)
		trace->streams[i].number = -1;
	trace->dump_stream.number = -1;
	trace->first_cycles = UINT64_MAX;
	return KYMO_OK;
}

/* What was refused since no descriptor was left is not the disk's fault. @refusals: before that. */
static int tell_limit(int ret, uint64_t refusals, struct kymo_error *err)
{
	if (ret >= 0 || ky_file_refusals() == refusals)
		return ret;
	if (err)
		err->code = KYMO_E_LIMIT;
	return KYMO_E_LIMIT;
}

/* "ust/pid/shop-17-DATE", "archives/1/ust/uid/0/64-bit-rare"; malloc()ed; NULL without memory. */
static char *path_of(const struct ky_user_place *place, const struct ky_blob *blob)
{
	char name[KY_USER_TRACE_NAME_BYTES], scheme[24] = "pid", *path;

	ky_user_trace_name(blob, name);
	if (blob->flags & KY_BLOB_SHARED)
		snprintf(scheme, sizeof(scheme), "uid/%u", blob->uid);
	if (asprintf(&path, "%s%sust/%s/%s%s%s", place->archive ? place->archive : "",
		     place->archive ? "/" : "", scheme, name, place->group ? "-" : "",
		     place->group ? place->group : "") < 0)
		return NULL;
	return path;
}

/* A trace of a name that is free. */
static int open_in_store(struct ky_user_trace *trace, const struct ky_user_place *place,
			 const struct ky_blob *blob, struct kymo_error *err)
{
	char *path = path_of(place, blob);
	const struct ky_store_place in_store = {.path = path, .is_numbered = true};
	int ret;

	if (!path)
		return ky_error_nomem(err);
	ret = ky_store_open(place->store, &in_store, &trace->packets, err);
	free(path);
	if (ret < 0)
		return ret;
	trace->group = place->group;
	trace->is_late = place->is_late;
	if (asprintf(&trace->path, "%s/%s", place->store->name, trace->packets->path) < 0) {
		trace->path = NULL;
		return ky_error_nomem(err);
	}
	snprintf(trace->name, sizeof(trace->name), "%s", strrchr(trace->path, '/') + 1);
	return KYMO_OK;
}

static int user_trace_write_metadata(struct ky_user_trace *trace, const struct ky_user_blob *blob,
				     const struct ky_clock_record *clock, uint32_t *n_bad,
				     struct kymo_error *err)
{
	size_t len_bytes;
	char *text;
	int ret = ky_user_metadata(blob, clock, trace->name, &text, &len_bytes, n_bad, err);

	if (ret < 0)
		return ret;
	if (!ky_user_clock_find(text, len_bytes, &trace->clock_at_bytes, &trace->clock_bytes))
		trace->clock_bytes = 0;
	ret = ky_store_metadata(trace->packets, text, len_bytes, err);
	free(text);
	return ret;
}

/* Of a program that there is no trace of, nothing is left. */
static void remove_all(struct ky_user_trace *trace)
{
	ky_store_discard(trace->packets);
	trace->packets = NULL;
	free(trace->path);
	trace->path = NULL;
}

int ky_user_trace_open(struct ky_user_trace *trace, const struct ky_user_place *place,
		       const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		       uint32_t n_streams, uint32_t *n_bad, struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	int ret = make_streams(trace, n_streams, err);

	memcpy(trace->uuid, blob->head->trace_uuid, sizeof(trace->uuid));
	if (!ret)
		ret = open_in_store(trace, place, blob->head, err);
	if (!ret)
		ret = user_trace_write_metadata(trace, blob, clock, n_bad, err);
	ret = tell_limit(ret, refusals, err);
	if (ret == KYMO_E_LIMIT || ret == KYMO_E_FORMAT)
		remove_all(trace);
	/* What is not found is the output, and not the program. */
	if (ret == KYMO_E_NOT_FOUND)
		ret = KYMO_E_IO;
	if (ret < 0 && err)
		err->code = ret;
	return ret;
}

int ky_user_trace_metadata(struct ky_user_trace *trace, const struct ky_user_blob *blob,
			   const struct ky_clock_record *clock, uint32_t *n_bad,
			   struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	int ret = user_trace_write_metadata(trace, blob, clock, n_bad, err);

	return tell_limit(ret, refusals, err);
}

int ky_user_trace_set_clock(struct ky_user_trace *trace, const struct ky_clock_record *clock,
			    struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	char values[256];
	int ret;

	if (!trace->packets || !ky_store_can_patch(trace->packets))
		return KYMO_OK;
	if (!trace->clock_bytes || trace->clock_bytes > sizeof(values))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the metadata has no clock that could be corrected");
	ret = ky_user_clock_values(clock, values, trace->clock_bytes, err);
	if (!ret)
		ret = ky_store_patch_metadata(trace->packets, trace->clock_at_bytes, values,
					      trace->clock_bytes, err);
	return tell_limit(ret, refusals, err);
}

/* ---- packets -------------------------------------------------------------------------- */

static int user_trace_open_stream(struct ky_user_trace *trace, struct ky_user_stream *stream,
				  uint32_t number, struct kymo_error *err)
{
	uint64_t refusals;
	char name[KY_USER_GROUP_NAME_MAX + sizeof(KY_LIVE_LATE_MARK) + 16];

	if (stream->number >= 0)
		return KYMO_OK;
	if (stream == &trace->dump_stream)
		snprintf(name, sizeof(name), "statedump_0");
	else
		snprintf(name, sizeof(name), "%s%s_%u", trace->group ? trace->group : "channel0",
			 trace->is_late ? KY_LIVE_LATE_MARK : "", number);
	refusals = ky_file_refusals();
	stream->number = ky_store_stream(trace->packets, name, err);
	return stream->number < 0 ? tell_limit(stream->number, refusals, err) : KYMO_OK;
}

/*
 * Goes up by one; where a sub-buffer was overwritten before it could be copied, by more. What is recovered goes on behind
 * the packets that the killed recorder wrote, so that readers of both can tell what both have.
 */
static uint64_t next_sequence(const struct ky_user_trace *trace, struct ky_user_stream *stream,
			      const struct kymo_ring_packet *packet)
{
	uint64_t subbuf = packet->sequence - stream->first_subbuf;

	if (!stream->sequence && trace->is_recovered)
		stream->sequence = packet->sequence;
	else if (!stream->sequence)
		stream->first_subbuf = packet->sequence;
	else if (trace->is_copy && packet->records && subbuf > stream->sequence)
		stream->sequence = subbuf;
	return stream->sequence++;
}

static void fill_prolog(struct ky_user_trace *trace, struct ky_user_stream *stream,
			const struct kymo_ring_packet *packet, uint64_t body_bytes,
			struct ky_packet_prolog *prolog)
{
	uint64_t begin = packet->begin_stamp, end = packet->end_stamp, bits;

	begin = begin < stream->last_cycles ? stream->last_cycles : begin;
	end = end < begin ? begin : end;
	if (packet->lost > stream->discarded)
		stream->discarded = packet->lost;
	stream->last_cycles = end;
	if (begin < trace->first_cycles)
		trace->first_cycles = begin;
	bits = 8 * (KY_PACKET_PROLOG_BYTES + body_bytes);
	*prolog = (struct ky_packet_prolog){
		.magic = KY_CTF_MAGIC,
		.stream_class_id = 0,
		.stream_id = packet->buffer,
		.begin_cycles = begin,
		.end_cycles = end,
		.content_bits = bits,
		.packet_bits = bits,
		.sequence = next_sequence(trace, stream, packet),
		.discarded = stream->discarded,
		.cpu_id = packet->buffer,
	};
	memcpy(prolog->uuid, trace->uuid, sizeof(prolog->uuid));
}

int ky_user_trace_packet(struct ky_user_trace *trace, const struct kymo_ring_packet *packet,
			 const void *body, uint64_t body_bytes, struct kymo_error *err)
{
	struct ky_user_stream *stream = &trace->streams[packet->buffer];
	struct ky_packet_prolog prolog;
	struct ky_packet_out out;
	int ret = user_trace_open_stream(trace, stream, packet->buffer, err);

	if (ret < 0)
		return ret;
	fill_prolog(trace, stream, packet, body_bytes, &prolog);
	out = (struct ky_packet_out){
		.data = body,
		.size_bytes = sizeof(prolog) + body_bytes,
		.head = &prolog,
		.head_bytes = sizeof(prolog),
		.content_bits = prolog.content_bits,
		.begin_cycles = prolog.begin_cycles,
		.end_cycles = prolog.end_cycles,
		.discarded = prolog.discarded,
		.sequence = prolog.sequence,
		.stream_class_id = 0,
		.stream_id = prolog.stream_id,
	};
	return ky_store_packet(trace->packets, stream->number, &out, err);
}

/* ---- the state dump ------------------------------------------------------------------- */

static int send_dump(struct ky_user_trace *trace, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_packet_writer *writer = &trace->dump_writer;
	uint64_t content_bits = (uint64_t)writer->used_bytes * 8;
	struct ky_packet_out out;
	int ret = user_trace_open_stream(trace, &trace->dump_stream, 0, err);

	if (ret < 0)
		return ret;
	out = (struct ky_packet_out){
		.size_bytes = ky_packet_writer_close(writer, end_cycles, 0, 8),
		.data = writer->data,
		.content_bits = content_bits,
		.begin_cycles = writer->begin_cycles,
		.end_cycles = writer->last_cycles,
		.sequence = writer->sequence,
		.stream_class_id = writer->stream_class_id,
		.stream_id = writer->stream_id,
	};
	return ky_store_packet(trace->packets, trace->dump_stream.number, &out, err);
}

/* One event, in the next packet when this one is full. */
static int put_dump_event(struct ky_user_trace *trace, const struct ky_user_dump_head *head,
			  const void *fields, uint64_t cycles, struct kymo_error *err)
{
	struct ky_packet_writer *writer = &trace->dump_writer;
	uint8_t *to = ky_packet_writer_event(writer, head->id, cycles, head->bytes);
	int ret;

	if (!to) {
		ret = send_dump(trace, cycles, err);
		if (ret < 0)
			return ret;
		ky_packet_writer_begin(writer, cycles);
		to = ky_packet_writer_event(writer, head->id, cycles, head->bytes);
		if (!to)
			return ky_error_set(err, KYMO_E_LIMIT,
					    "an event of the state dump is too "
					    "long");
	}
	memcpy(to, fields, head->bytes);
	trace->dump_events++;
	return KYMO_OK;
}

int ky_user_trace_dump(struct ky_user_trace *trace, const struct ky_strbuf *events, uint64_t cycles,
		       struct kymo_error *err)
{
	struct ky_user_dump_head head;
	int ret = KYMO_OK;

	if (!events->len)
		return KYMO_OK;
	if (!trace->dump_writer.data &&
	    ky_packet_writer_init(&trace->dump_writer, DUMP_PACKET_BYTES, trace->uuid,
				  KY_USER_DUMP_STREAM, 0, 0, true) < 0)
		return ky_error_nomem(err);
	ky_packet_writer_begin(&trace->dump_writer, cycles);
	for (size_t at = 0; at < events->len && !ret; at += sizeof(head) + head.bytes) {
		memcpy(&head, events->data + at, sizeof(head));
		ret = put_dump_event(trace, &head, events->data + at + sizeof(head), cycles, err);
	}
	return ret < 0 ? ret : send_dump(trace, cycles, err);
}

/* ---- rotation ------------------------------------------------------------------------- */

int ky_user_trace_rotate(struct ky_user_trace *trace, const char *archive, struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	char *place;
	int ret;

	if (!trace->packets)
		return KYMO_OK;
	if (asprintf(&place, "%s/%s", archive, trace->packets->path) < 0)
		return ky_error_nomem(err);
	ret = ky_store_rotate(trace->packets, place, err);
	free(place);
	return tell_limit(ret, refusals, err);
}

int ky_user_trace_begin_streams(struct ky_user_trace *trace, uint64_t step_cycles,
				struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < trace->n_streams && !ret; i++) {
		struct ky_user_stream *stream = &trace->streams[i];
		const struct kymo_ring_packet packet = {
			.buffer = i,
			.begin_stamp = stream->last_cycles + step_cycles,
			.end_stamp = stream->last_cycles + step_cycles,
			.lost = stream->discarded,
		};

		if (stream->number < 0 || !stream->discarded)
			continue;
		ret = ky_user_trace_packet(trace, &packet, NULL, 0, err);
		/* Readers of several chunks want packets with ascending begins. */
		stream->last_cycles += step_cycles;
	}
	return ret;
}

/* ---- closing -------------------------------------------------------------------------- */

int ky_user_trace_end(struct ky_user_trace *trace, struct kymo_error *err)
{
	if (!trace->packets || trace->ended)
		return KYMO_OK;
	trace->ended = true;
	trace->bytes = trace->packets->bytes_written;
	return ky_store_end_streams(trace->packets, err);
}

int ky_user_trace_close(struct ky_user_trace *trace, struct kymo_error *err)
{
	int ret = ky_user_trace_end(trace, err), closed;

	closed = ky_store_close(trace->packets, ret < 0 ? NULL : err);
	trace->packets = NULL;
	return ret < 0 ? ret : closed;
}

void ky_user_trace_fini(struct ky_user_trace *trace)
{
	ky_packet_writer_fini(&trace->dump_writer);
	free(trace->streams);
	free(trace->path);
	*trace = (struct ky_user_trace){0};
}
