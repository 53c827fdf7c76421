/* SPDX-License-Identifier: MIT */
#include "store/read/feed.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "ctf/decode/stored-stacks.h"

/* A call for less would cost more than the memory is worth. */
#define DROP_BYTES ((uint64_t)256 << 10)

void ky_feed_init(struct ky_feed *feed, const struct ky_feed_ops *ops, bool is_live)
{
	*feed = (struct ky_feed){.ops = ops, .is_live = is_live};
}

static void free_trace(struct ky_feed_trace *trace)
{
	ky_vec_foreach(&trace->streams, stream) {
		ky_vec_fini(&(*stream)->packets);
		free(*stream);
	}
	ky_vec_fini(&trace->streams);
	ky_scratch_trace_fini(&trace->files);
	ky_stored_stacks_free(trace->stacks);
	free(trace->name);
	free(trace);
}

void ky_feed_fini(struct ky_feed *feed)
{
	ky_vec_foreach(&feed->traces, trace)
		free_trace(*trace);
	ky_vec_fini(&feed->traces);
}

void ky_feed_free(struct ky_feed *feed)
{
	if (feed)
		feed->ops->free(feed);
}

/* ---- what comes ----------------------------------------------------------------------- */

struct ky_feed_trace *ky_feed_add_trace(struct ky_feed *feed, const char *name)
{
	struct ky_feed_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->files = (struct ky_scratch_trace)KY_SCRATCH_TRACE_INIT;
	trace->feed = feed;
	trace->is_written = true;
	trace->is_live = feed->is_live && !feed->keeps;
	trace->name = strdup(name);
	if (!trace->name || ky_vec_push(&feed->traces, trace) < 0) {
		free_trace(trace);
		return NULL;
	}
	feed->has_news = true;
	return trace;
}

int ky_feed_add_stream(struct ky_feed *feed, struct ky_feed_trace *trace, const char *name,
		       struct ky_feed_stream **out, struct kymo_error *err)
{
	struct ky_feed_stream *stream = calloc(1, sizeof(*stream));
	int ret = stream ? ky_scratch_trace_add(&trace->files, name, trace->is_live, err)
			 : ky_error_nomem(err);

	*out = NULL;
	if (!ret && ky_vec_push(&trace->streams, stream) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		free(stream);
		return ret;
	}
	stream->file = trace->files.streams.data[trace->files.streams.len - 1];
	feed->has_news = true;
	*out = stream;
	return KYMO_OK;
}

int ky_feed_add_packet(struct ky_feed_stream *stream, uint64_t bytes, uint64_t end_cycles)
{
	struct ky_scratch_stream *file = stream->file;
	const struct ky_feed_packet packet = {file->size_bytes, file->size_bytes + bytes,
					      end_cycles};

	if (stream->n_dropped && stream->n_dropped >= stream->packets.len / 2) {
		memmove(stream->packets.data, stream->packets.data + stream->n_dropped,
			(stream->packets.len - stream->n_dropped) * sizeof(packet));
		stream->packets.len -= stream->n_dropped;
		stream->n_dropped = 0;
	}
	if (ky_vec_push(&stream->packets, packet) < 0)
		return KYMO_E_MEMORY;
	file->size_bytes += bytes;
	stream->until_cycles = end_cycles;
	stream->has_until = true;
	return KYMO_OK;
}

/* Where its reader is; a stream that nobody reads is passed. */
static uint64_t passed_bytes(const struct ky_feed_stream *stream)
{
	const struct ky_feed_packet *last = &stream->packets.data[stream->packets.len - 1];
	uint64_t passed = stream->file->passed_bytes;

	return passed > last->begin_bytes ? last->begin_bytes : passed;
}

uint64_t ky_feed_unread(const struct ky_feed_stream *stream)
{
	if (stream->packets.len == stream->n_dropped)
		return 0;
	if (passed_bytes(stream) == stream->packets.data[stream->packets.len - 1].begin_bytes)
		return 0;
	return stream->file->size_bytes - passed_bytes(stream);
}

/* ---- what readers know ---------------------------------------------------------------- */

int ky_feed_state(const struct ky_feed_trace *trace, struct ky_live_state *state)
{
	*state = (struct ky_live_state){.is_told = true, .until_cycles = UINT64_MAX};
	ky_vec_foreach(&trace->streams, it) {
		const struct ky_feed_stream *stream = *it;
		const char *name = stream->file->name;

		if (ky_live_add_stream(state, name, strlen(name), stream->file->size_bytes) < 0)
			return KYMO_E_MEMORY;
		if (stream->has_ended)
			continue;
		state->is_told &= stream->has_until;
		if (stream->until_cycles < state->until_cycles)
			state->until_cycles = stream->until_cycles;
	}
	return KYMO_OK;
}

/* The last packet stays: it tells what the stream is. */
static void drop_packets(struct ky_feed *feed, struct ky_feed_stream *stream, uint64_t until_cycles)
{
	uint64_t passed = passed_bytes(stream), begin = stream->file->first_bytes, end = begin;
	size_t n = stream->n_dropped;

	while (n + 1 < stream->packets.len && stream->packets.data[n].end_bytes <= passed &&
	       stream->packets.data[n].end_cycles < until_cycles)
		end = stream->packets.data[n++].end_bytes;
	if (end - begin < DROP_BYTES ||
	    fallocate(stream->file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)end) <
		    0)
		return;
	feed->held_bytes -= end - begin < feed->held_bytes ? end - begin : feed->held_bytes;
	stream->file->first_bytes = end;
	stream->n_dropped = n;
}

void ky_feed_drop(struct ky_feed_trace *trace, uint64_t until_cycles)
{
	if (!trace->is_live)
		return;
	ky_vec_foreach(&trace->streams, stream)
		if ((*stream)->packets.len > (*stream)->n_dropped)
			drop_packets(trace->feed, *stream, until_cycles);
}

void ky_feed_wait(struct ky_feed *feed, int timeout_ms)
{
	if (feed->has_ended)
		return;
	feed->failed = feed->ops->more(feed, timeout_ms, &feed->err);
	if (feed->failed < 0)
		feed->has_ended = true;
	if (!feed->has_ended)
		return;
	ky_vec_foreach(&feed->traces, trace)
		(*trace)->is_written = false;
}
