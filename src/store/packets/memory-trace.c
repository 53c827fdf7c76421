/* SPDX-License-Identifier: MIT */
#include "store/packets/memory-trace.h"

#include <stdlib.h>
#include <string.h>

#include "abi/packet.h"
#include "base/error.h"
#include "base/vec.h"

struct packet {
	struct packet *next; /* newer */
	struct ky_packet_out out;
	uint8_t bytes[];
};

struct stream {
	char *name;
	bool keeps_all;
	uint64_t kept_bytes;
	int moved_to; /* number of the stream that gets its packets for good; -1: none yet */
	uint64_t moved_events;
	struct packet *oldest, *newest;
};

struct memory_trace {
	struct ky_store_trace base;
	uint64_t keep_bytes;
	char *metadata;
	size_t metadata_bytes;
	KY_VEC(struct stream) streams;
};

static struct memory_trace *memory_trace(struct ky_store_trace *base)
{
	return (struct memory_trace *)base;
}

static int memory_stream(struct ky_store_trace *base, const char *name, struct kymo_error *err)
{
	struct memory_trace *trace = memory_trace(base);
	struct stream stream = {.name = strdup(name),
				.keeps_all = strncmp(name, "statedump", 9) == 0,
				.moved_to = -1};

	if (!stream.name || ky_vec_push(&trace->streams, stream) < 0) {
		free(stream.name);
		return ky_error_nomem(err);
	}
	return (int)trace->streams.len - 1;
}

static void drop_oldest(struct stream *stream)
{
	struct packet *packet = stream->oldest;

	stream->oldest = packet->next;
	if (!stream->oldest)
		stream->newest = NULL;
	stream->kept_bytes -= packet->out.size_bytes;
	free(packet);
}

/* A packet goes when those after it are enough: a small one does not push out a large one. */
static void memory_trace_drop_older(const struct memory_trace *trace, struct stream *stream)
{
	while (!stream->keeps_all && stream->oldest != stream->newest &&
	       stream->kept_bytes - stream->oldest->out.size_bytes >= trace->keep_bytes)
		drop_oldest(stream);
}

static int memory_packet(struct ky_store_trace *base, int number, const struct ky_packet_out *out,
			 struct kymo_error *err)
{
	struct memory_trace *trace = memory_trace(base);
	size_t body_bytes = out->size_bytes - out->head_bytes;
	struct stream *stream;
	struct packet *packet;

	if (number < 0 || (size_t)number >= trace->streams.len)
		return ky_error_set(err, KYMO_E_INVALID, "there is no stream %d", number);
	stream = &trace->streams.data[number];
	packet = malloc(sizeof(*packet) + out->size_bytes);
	if (!packet)
		return ky_error_nomem(err);
	packet->next = NULL;
	packet->out = *out;
	packet->out.data = packet->bytes;
	packet->out.head = NULL;
	packet->out.head_bytes = 0;
	if (out->head_bytes)
		memcpy(packet->bytes, out->head, out->head_bytes);
	memcpy(packet->bytes + out->head_bytes, out->data, body_bytes);
	if (stream->newest)
		stream->newest->next = packet;
	else
		stream->oldest = packet;
	stream->newest = packet;
	stream->kept_bytes += out->size_bytes;
	memory_trace_drop_older(trace, stream);
	return KYMO_OK;
}

static int memory_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			   struct kymo_error *err)
{
	struct memory_trace *trace = memory_trace(base);
	char *copy = malloc(len_bytes ? len_bytes : 1);

	if (!copy)
		return ky_error_nomem(err);
	memcpy(copy, text, len_bytes);
	free(trace->metadata);
	trace->metadata = copy;
	trace->metadata_bytes = len_bytes;
	return KYMO_OK;
}

static void memory_close_stream(struct stream *stream)
{
	while (stream->oldest)
		drop_oldest(stream);
	free(stream->name);
}

static int memory_close(struct ky_store_trace *base, struct kymo_error *err)
{
	struct memory_trace *trace = memory_trace(base);

	ky_vec_foreach(&trace->streams, stream)
		memory_close_stream(stream);
	ky_vec_fini(&trace->streams);
	free(trace->metadata);
	free(trace);
	return KYMO_OK;
}

static const struct ky_store_trace_ops memory_trace_ops = {
	.stream = memory_stream,
	.packet = memory_packet,
	.metadata = memory_metadata,
	.close = memory_close,
};

int ky_memory_trace_open(uint64_t keep_bytes, struct ky_store_trace **out, struct kymo_error *err)
{
	struct memory_trace *trace = calloc(1, sizeof(*trace));

	*out = NULL;
	if (!trace)
		return ky_error_nomem(err);
	trace->base.ops = &memory_trace_ops;
	trace->keep_bytes = keep_bytes;
	*out = &trace->base;
	return KYMO_OK;
}

/* The packets of a stream that has lost some in the middle get new numbers, so that readers do not miss them. */
static void number_packet(struct packet *packet, uint64_t sequence)
{
	struct ky_packet_prolog prolog;

	if (packet->out.size_bytes < sizeof(prolog))
		return;
	memcpy(&prolog, packet->bytes, sizeof(prolog));
	if (prolog.magic != KY_CTF_MAGIC)
		return;
	prolog.sequence = packet->out.sequence = sequence;
	memcpy(packet->bytes, &prolog, sizeof(prolog));
}

static int memory_trace_copy_stream(const struct stream *stream, struct ky_store_trace *to,
				    uint64_t *events, struct kymo_error *err)
{
	int number = ky_store_stream(to, stream->name, err), ret = KYMO_OK;
	uint64_t sequence = 0;

	if (number < 0)
		return number;
	for (struct packet *packet = stream->oldest; packet && !ret; packet = packet->next) {
		if (stream->keeps_all)
			number_packet(packet, sequence++);
		ret = ky_store_packet(to, number, &packet->out, err);
		*events += packet->out.n_events;
	}
	return ret;
}

static int copy_streams(const struct memory_trace *trace, bool keeps_all, struct ky_store_trace *to,
			uint64_t *events, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*events = 0;
	for (size_t i = 0; i < trace->streams.len && !ret; i++)
		if (trace->streams.data[i].keeps_all == keeps_all)
			ret = memory_trace_copy_stream(&trace->streams.data[i], to, events, err);
	return ret;
}

static int memory_trace_copy_metadata(const struct ky_store_trace *from, struct ky_store_trace *to,
				      struct kymo_error *err)
{
	const struct memory_trace *trace = (const struct memory_trace *)from;

	return trace->metadata ? ky_store_metadata(to, trace->metadata, trace->metadata_bytes, err)
			       : KYMO_OK;
}

int ky_memory_trace_copy_events(const struct ky_store_trace *from, struct ky_store_trace *to,
				uint64_t *events, struct kymo_error *err)
{
	/* A disk that has no room for all of the packets has those that it took described. */
	int ret = memory_trace_copy_metadata(from, to, err);

	*events = 0;
	return ret < 0 ? ret
		       : copy_streams((const struct memory_trace *)from, false, to, events, err);
}

int ky_memory_trace_copy_state(const struct ky_store_trace *from, struct ky_store_trace *to,
			       uint64_t *events, struct kymo_error *err)
{
	int ret = memory_trace_copy_metadata(from, to, err);

	*events = 0;
	return ret < 0 ? ret
		       : copy_streams((const struct memory_trace *)from, true, to, events, err);
}

/* A stream that never had a packet has none in @to, either. */
static int move_stream(struct stream *stream, struct ky_store_trace *to, uint64_t *events,
		       struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (stream->oldest && stream->moved_to < 0)
		stream->moved_to = ky_store_stream(to, stream->name, err);
	if (stream->oldest && stream->moved_to < 0)
		return stream->moved_to;
	while (stream->oldest && !ret) {
		ret = ky_store_packet(to, stream->moved_to, &stream->oldest->out, err);
		stream->moved_events += stream->oldest->out.n_events;
		*events += stream->oldest->out.n_events;
		drop_oldest(stream);
	}
	return ret;
}

int ky_memory_trace_move_events(struct ky_store_trace *from, struct ky_store_trace *to,
				uint64_t *events, struct kymo_error *err)
{
	int ret = KYMO_OK;

	*events = 0;
	ky_vec_foreach(&memory_trace(from)->streams, stream)
		if (!stream->keeps_all && !ret)
			ret = move_stream(stream, to, events, err);
	return ret;
}

uint64_t ky_memory_trace_kept(const struct ky_store_trace *from, int number)
{
	const struct memory_trace *trace = (const struct memory_trace *)from;
	const struct packet *packet = trace->streams.data[number].oldest;
	uint64_t events = trace->streams.data[number].moved_events;

	for (; packet; packet = packet->next)
		events += packet->out.n_events;
	return events;
}

uint64_t ky_memory_trace_oldest(const struct ky_store_trace *from)
{
	const struct memory_trace *trace = (const struct memory_trace *)from;
	uint64_t oldest = UINT64_MAX;

	ky_vec_foreach(&trace->streams, stream)
		if (!stream->keeps_all && stream->oldest &&
		    stream->oldest->out.begin_cycles < oldest)
			oldest = stream->oldest->out.begin_cycles;
	return oldest;
}

uint64_t ky_memory_trace_drop(struct ky_store_trace *from, int number, uint64_t first_cycles,
			      uint64_t last_cycles)
{
	struct stream *stream = &memory_trace(from)->streams.data[number];
	struct packet **at = &stream->oldest, *last = NULL, *packet;
	uint64_t events = 0;

	while ((packet = *at)) {
		if (packet->out.begin_cycles < first_cycles ||
		    packet->out.begin_cycles > last_cycles) {
			last = packet;
			at = &packet->next;
			continue;
		}
		*at = packet->next;
		events += packet->out.n_events;
		stream->kept_bytes -= packet->out.size_bytes;
		free(packet);
	}
	stream->newest = last;
	return events;
}

void ky_memory_trace_clear(struct ky_store_trace *from)
{
	ky_vec_foreach(&memory_trace(from)->streams, stream)
		while (stream->oldest)
			drop_oldest(stream);
}
