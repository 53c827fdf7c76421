/* SPDX-License-Identifier: MIT */
#include "record/user/user-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

/* Traces of one name, of programs that began in the same second with the same pid. */
#define SAME_NAME_MAX	1000
#define SAME_NAME_TRIES 100
/* Of the state dump. */
#define DUMP_PACKET_BYTES 65536u

/* ---- opening, metadata ---------------------------------------------------------------- */

static int make_directory(char *path, size_t size, const char *output, const char *below,
			  struct kymo_error *err)
{
	int ret;

	snprintf(path, size, "%s/%s", output, below);
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot create the trace directory");
	ky_error_path(err, path);
	return ret;
}

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

/* A name that is free becomes a directory. Who takes thousands of one kind gets names that nobody can guess. */
static int make_path(struct ky_user_trace *trace, const char *output, const char *name,
		     struct kymo_error *err)
{
	char path[PATH_MAX];
	uint64_t word;
	int ret;

	snprintf(trace->name, sizeof(trace->name), "%s", name);
	for (int i = 2; i <= SAME_NAME_MAX + SAME_NAME_TRIES; i++) {
		if (snprintf(path, sizeof(path), "%s/ust/pid/%s", output, trace->name) >=
		    (int)sizeof(path))
			return ky_error_set(err, KYMO_E_INVALID, "the output's path is too long");
		if (mkdir(path, 0700) == 0) {
			trace->path = strdup(path);
			return trace->path ? KYMO_OK : ky_error_nomem(err);
		}
		if (errno != EEXIST)
			break;
		if (i < SAME_NAME_MAX)
			snprintf(trace->name, sizeof(trace->name), "%s-%d", name, i);
		else if (getrandom(&word, sizeof(word), 0) == sizeof(word))
			snprintf(trace->name, sizeof(trace->name), "%s-%" PRIx64, name, word);
	}
	ret = ky_error_errno(err, errno, "cannot create the trace directory");
	ky_error_path(err, path);
	return ret;
}

static int choose_path(struct ky_user_trace *trace, const char *output, const struct ky_blob *blob,
		       struct kymo_error *err)
{
	char path[PATH_MAX], name[KY_USER_TRACE_NAME_BYTES];
	int ret = make_directory(path, sizeof(path), output, "ust", err);

	if (!ret)
		ret = make_directory(path, sizeof(path), output, "ust/pid", err);
	if (ret < 0)
		return ret;
	ky_user_trace_name(blob, name);
	return make_path(trace, output, name, err);
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

static int open_sink(struct ky_user_trace *trace, const char *text, size_t len_bytes,
		     struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	int ret = ky_dir_sink_open(trace->path, &trace->sink, err);

	if (!ret)
		ret = trace->sink->ops->metadata(trace->sink, text, len_bytes, err);
	return tell_limit(ret, refusals, err);
}

/* Of a program that there is no trace of, nothing is left. */
static void remove_all(struct ky_user_trace *trace)
{
	if (trace->sink)
		ky_dir_sink_abort(trace->sink);
	trace->sink = NULL;
	if (trace->path)
		ky_tree_remove(trace->path);
	free(trace->path);
	trace->path = NULL;
}

int ky_user_trace_open(struct ky_user_trace *trace, const char *output,
		       const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		       uint32_t n_streams, uint32_t *n_bad, struct kymo_error *err)
{
	int ret = choose_path(trace, output, blob->head, err);
	char *text = NULL;
	size_t len_bytes;

	memcpy(trace->uuid, blob->head->trace_uuid, sizeof(trace->uuid));
	if (!ret)
		ret = make_streams(trace, n_streams, err);
	if (!ret)
		ret = ky_user_metadata(blob, clock, trace->name, &text, &len_bytes, n_bad, err);
	if (!ret)
		ret = open_sink(trace, text, len_bytes, err);
	free(text);
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
	size_t len_bytes;
	char *text;
	int ret = ky_user_metadata(blob, clock, trace->name, &text, &len_bytes, n_bad, err);

	if (!ret) {
		ret = trace->sink->ops->metadata(trace->sink, text, len_bytes, err);
		free(text);
	}
	return tell_limit(ret, refusals, err);
}

/* Of a metadata file: the clock is in its first part. */
#define HEAD_BYTES 16384

int ky_user_trace_set_clock(const struct ky_user_trace *trace, const struct ky_clock_record *clock,
			    struct kymo_error *err)
{
	char path[PATH_MAX], *head = malloc(HEAD_BYTES);
	uint64_t refusals = ky_file_refusals();
	size_t at, bytes;
	ssize_t got;
	int fd, ret;

	if (!head)
		return ky_error_nomem(err);
	snprintf(path, sizeof(path), "%s/metadata", trace->path);
	fd = ky_file_open_regular(AT_FDCWD, path, O_RDWR);
	got = fd < 0 ? 0 : pread(fd, head, HEAD_BYTES, 0);
	if (fd < 0 || got < 0)
		ret = ky_error_errno(err, fd < 0 ? -fd : errno, "cannot write the metadata");
	else
		ret = ky_user_clock_replace(head, (size_t)got, clock, &at, &bytes, err);
	if (!ret && pwrite(fd, head + at, bytes, (off_t)at) != (ssize_t)bytes)
		ret = ky_error_errno(err, errno, "cannot write the metadata");
	if (fd >= 0)
		close(fd);
	free(head);
	if (ret < 0)
		ky_error_path(err, path);
	return tell_limit(ret, refusals, err);
}

/* ---- packets -------------------------------------------------------------------------- */

static int open_stream(struct ky_user_trace *trace, struct ky_user_stream *stream, uint32_t number,
		       struct kymo_error *err)
{
	uint64_t refusals;
	char name[32];

	if (stream->number >= 0)
		return KYMO_OK;
	if (stream == &trace->dump_stream)
		snprintf(name, sizeof(name), "statedump_0");
	else
		snprintf(name, sizeof(name), "channel0_%u", number);
	refusals = ky_file_refusals();
	stream->number = trace->sink->ops->stream(trace->sink, name, err);
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
	int ret = open_stream(trace, stream, packet->buffer, err);

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
	return trace->sink->ops->packet(trace->sink, stream->number, &out, err);
}

/* ---- the state dump ------------------------------------------------------------------- */

static int send_dump(struct ky_user_trace *trace, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_packet_writer *writer = &trace->dump_writer;
	uint64_t content_bits = (uint64_t)writer->used_bytes * 8;
	struct ky_packet_out out;
	int ret = open_stream(trace, &trace->dump_stream, 0, err);

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
	return trace->sink->ops->packet(trace->sink, trace->dump_stream.number, &out, err);
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

/* ---- closing -------------------------------------------------------------------------- */

int ky_user_trace_close(struct ky_user_trace *trace, struct kymo_error *err)
{
	int ret;

	if (!trace->sink)
		return KYMO_OK;
	trace->bytes = trace->sink->bytes_written;
	ret = trace->sink->ops->close(trace->sink, err);
	trace->sink = NULL;
	return ret;
}

void ky_user_trace_fini(struct ky_user_trace *trace)
{
	ky_packet_writer_fini(&trace->dump_writer);
	free(trace->streams);
	free(trace->path);
	*trace = (struct ky_user_trace){0};
}
