/* SPDX-License-Identifier: MIT */
/*
 * From CTF to CTF with nothing selected: packets are checked, and then their bytes are copied, by the
 * kernel where it can. Streams are independent, so each is one task.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "flow/sinks/ctf-sink.h"
#include "flow/graph/parallel.h"
#include "store/read/walk.h"

struct copying {
	struct ky_sink *sink;
	const struct ky_trace_set *set;
	const struct ky_ctf_copy *how;
	bool *damaged;
	int *numbers; /* by stream index: the output's; while checking -1 */
	/* Under the pool's lock: */
	uint64_t done_bytes, total_bytes;
};

/* A stretch of packets that lie one behind the other in one file. */
struct stretch {
	const struct ky_stream_part *part; /* NULL: none yet */
	int fd;				   /* of its file; -1: use the mapping */
	uint64_t from_bytes, upto_bytes;   /* in the stream */
	KY_VEC(struct ky_packet_out) packets;
};

static int ctf_copy_step(struct copying *c, uint64_t bytes, struct kymo_error *err)
{
	if (c->how->stop && c->how->stop())
		return ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
	if (!c->how->progress)
		return KYMO_OK;
	ky_thread_pool_lock(c->how->pool);
	c->done_bytes += bytes;
	c->how->progress(c->done_bytes, c->total_bytes);
	ky_thread_pool_unlock(c->how->pool);
	return KYMO_OK;
}

/* ---- checking ----------------------------------------------------------------------------- */

/* One packet, to its last event. Another UUID has to be written anew. */
static bool ctf_copy_check_packet(struct ky_walk *walk, uint64_t *counts)
{
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;

	return !walk->packet->foreign &&
	       ky_decoder_count(walk->decoder, counts, &begin_ns, &end_ns, NULL) == KYMO_OK &&
	       ky_walk_leave(walk, NULL) == KYMO_OK;
}

static int check_packets(struct copying *c, struct ky_walk *walk, uint64_t *counts, bool *damaged,
			 struct kymo_error *err)
{
	int ret;

	while ((ret = ky_walk_next(walk, err)) > 0) {
		if (!ctf_copy_check_packet(walk, counts))
			ret = KYMO_E_FORMAT;
		else
			ret = ctf_copy_step(c, walk->packet->packet_bits / 8, err);
		if (ret < 0)
			break;
	}
	*damaged = ret == KYMO_E_FORMAT;
	return *damaged ? KYMO_OK : ret;
}

static int ctf_copy_check_stream(void *data, size_t i, struct kymo_error *err)
{
	struct copying *c = data;
	const struct ky_stream *stream = c->set->streams.data[i];
	uint64_t *counts;
	struct ky_walk walk;
	int ret;

	c->damaged[i] = !ky_ctf_sink_copies(c->sink, stream);
	if (c->damaged[i])
		return KYMO_OK;
	counts = calloc(stream->trace->cls->events.len + 1, sizeof(*counts));
	ret = counts ? ky_walk_init(&walk, stream, err) : ky_error_nomem(err);
	if (ret == KYMO_OK) {
		ret = check_packets(c, &walk, counts, &c->damaged[i], err);
		ky_walk_fini(&walk);
	}
	free(counts);
	return ret;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int flush_stretch(struct copying *c, const struct ky_stream *stream, int number,
			 struct stretch *s, struct kymo_error *err)
{
	struct ky_store_trace *files = ky_ctf_sink_files(c->sink, stream);
	struct ky_bytes_out bytes = {
		.data = stream->file.data + s->from_bytes,
		.size_bytes = s->upto_bytes - s->from_bytes,
		.fd = s->fd,
	};
	int ret = KYMO_OK;

	if (s->part)
		bytes.offset_bytes = s->from_bytes - s->part->at_bytes;
	if (bytes.size_bytes)
		ret = ky_store_copy(files, number, &bytes, err);
	/* The index tells of no packet that is not in the file. */
	ky_vec_foreach(&s->packets, packet)
		if (!ret)
			ret = ky_store_list(files, number, packet, err);
	ky_vec_clear(&s->packets);
	s->from_bytes = s->upto_bytes;
	return ret;
}

static void stretch_close(struct stretch *s)
{
	if (s->part && s->fd >= 0)
		close(s->fd);
	s->part = NULL;
}

static void stretch_fini(struct stretch *s)
{
	stretch_close(s);
	ky_vec_fini(&s->packets);
}

static const struct ky_stream_part *ctf_copy_part_of(const struct ky_stream *stream,
						     uint64_t at_bytes)
{
	const struct ky_stream_part *found = stream->parts.data;

	ky_vec_foreach(&stream->parts, part) {
		if (part->at_bytes <= at_bytes)
			found = part;
	}
	return found;
}

/* The packet at hand lengthens the stretch, or begins another. */
static int ctf_copy_add_packet(struct copying *c, const struct ky_walk *walk, int number,
			       struct stretch *s, struct kymo_error *err)
{
	const struct ky_stream_part *part = ctf_copy_part_of(walk->stream, walk->at_bytes);
	int ret = KYMO_OK;

	if (part != s->part || walk->at_bytes != s->upto_bytes) {
		ret = flush_stretch(c, walk->stream, number, s, err);
		stretch_close(s);
		s->part = part;
		s->fd = part->memory ? -1 : ky_stream_part_open(part);
		s->from_bytes = walk->at_bytes;
	}
	s->upto_bytes = walk->at_bytes + walk->packet->packet_bits / 8;
	return ret;
}

static int list_packet(const struct ky_packet *p, struct stretch *s, struct kymo_error *err)
{
	const struct ky_packet_out out = {
		.data = p->data,
		.size_bytes = p->packet_bits / 8,
		.content_bits = p->content_bits,
		.begin_cycles = p->told_begin_cycles,
		.end_cycles = p->told_end_cycles,
		.discarded = p->discarded,
		.sequence = p->sequence,
		.stream_class_id = p->stream_class->id,
		.stream_id = p->stream_id,
		.no_times = !p->has_begin || !p->has_end,
	};

	return ky_vec_push(&s->packets, out) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* Bytes are written in steps of so many, so that it can be stopped. */
#define STRETCH_MAX ((uint64_t)64 << 20)

static int ctf_copy_packets(struct copying *c, struct ky_walk *walk, int number, struct stretch *s,
			    struct kymo_error *err)
{
	uint64_t bytes;
	int ret;

	while ((ret = ky_walk_next(walk, err)) > 0) {
		ret = ctf_copy_add_packet(c, walk, number, s, err);
		if (ret == KYMO_OK)
			ret = list_packet(walk->packet, s, err);
		bytes = s->upto_bytes - s->from_bytes;
		if (ret == KYMO_OK && bytes >= STRETCH_MAX)
			ret = flush_stretch(c, walk->stream, number, s, err);
		if (ret == KYMO_OK)
			ret = ctf_copy_step(c, walk->packet->packet_bits / 8, err);
		if (ret < 0)
			return ret;
	}
	return ret < 0 ? ret : flush_stretch(c, walk->stream, number, s, err);
}

static int ctf_copy_stream(void *data, size_t i, struct kymo_error *err)
{
	struct copying *c = data;
	struct stretch s = {.part = NULL, .fd = -1};
	struct ky_walk walk;
	int ret;

	if (c->numbers[i] < 0)
		return KYMO_OK;
	ret = ky_walk_init(&walk, c->set->streams.data[i], err);
	if (ret < 0)
		return ret;
	ret = ctf_copy_packets(c, &walk, c->numbers[i], &s, err);
	stretch_fini(&s);
	ky_walk_fini(&walk);
	return ret;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Output files are announced in one order, in whatever thread writes them. */
static int announce(struct copying *c, struct kymo_error *err)
{
	for (size_t i = 0; i < c->set->streams.len; i++) {
		const struct ky_stream *stream = c->set->streams.data[i];
		struct ky_store_trace *files = ky_ctf_sink_files(c->sink, stream);

		c->numbers[i] = -1;
		if (!c->damaged[i])
			c->numbers[i] = ky_store_stream(files, stream->name, err);
		if (c->numbers[i] < 0 && !c->damaged[i])
			return c->numbers[i];
	}
	return KYMO_OK;
}

static int ctf_copy_all(struct copying *c, const uint64_t *sizes, struct kymo_error *err)
{
	struct ky_thread_pool *pool = c->how->pool;
	size_t n = c->set->streams.len;
	int ret = ky_parallel_each(pool, n, sizes, ctf_copy_check_stream, c, err);

	if (ret == KYMO_OK)
		ret = announce(c, err);
	return ret < 0 ? ret : ky_parallel_each(pool, n, sizes, ctf_copy_stream, c, err);
}

int ky_ctf_sink_copy(struct ky_sink *sink, const struct ky_trace_set *set,
		     const struct ky_ctf_copy *how, bool *damaged, struct kymo_error *err)
{
	struct copying c = {.sink = sink, .set = set, .how = how, .damaged = damaged};
	uint64_t *sizes = calloc(set->streams.len + 1, sizeof(*sizes));
	int ret;

	c.numbers = calloc(set->streams.len + 1, sizeof(*c.numbers));
	for (size_t i = 0; sizes && i < set->streams.len; i++) {
		sizes[i] = set->streams.data[i]->file.size_bytes;
		c.total_bytes += 2 * sizes[i];
	}
	ret = sizes && c.numbers ? ctf_copy_all(&c, sizes, err) : ky_error_nomem(err);
	free(sizes);
	free(c.numbers);
	return ret;
}
