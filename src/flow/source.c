/* SPDX-License-Identifier: MIT */
/*
 * A source: the events of one stream.
 *
 * It goes from packet to packet by their headers alone, so that neither a wrong index nor a
 * missing one changes what is read; the packet list is made for seeking only. Events are
 * views into the mapped file; a batch never crosses a packet.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "flow/loss.h"
#include "store/walk.h"

/*
 * A batch of 64 events is 5 KiB; more gains nothing. The merge of hundreds of streams has one of
 * each in hand: together they should leave room in the second-level cache.
 */
#define BATCH_EVENTS	 64
#define BATCH_EVENTS_MIN 8
#define BATCHES_EVENTS	 4096
/* Memory of packets that were passed goes back to the kernel in steps of so many bytes, */
#define RELEASE_BYTES	  ((uint64_t)2 << 20)
#define RELEASE_BYTES_MIN ((uint64_t)32 << 10)
/* of all streams that are read at the same time. */
#define RELEASES_BYTES ((uint64_t)8 << 20)
/* What the next batch will read is fetched while others have their turn. */
#define PREFETCH_BYTES_MAX 2048
#define CACHE_LINE_BYTES   64

struct source {
	struct ky_flow flow;
	const struct ky_stream *stream;
	const struct ky_log *log;
	struct ky_walk walk;
	uint64_t released_bytes; /* everything before was given back */
	uint64_t release_bytes;	 /* the step of giving back */
	int batch_events;
	bool in_packet, ended, warned, warned_foreign;
	bool seeking; /* events before seek_ns are not wanted */
	int64_t seek_ns;
	int64_t last_ns;
	struct ky_loss_tracker losses;
	struct ky_loss loss;
	struct kymo_error damage; /* what loss.damage points to */
	struct ky_packet_list packets;
	bool has_packets;
	struct ky_event *room; /* where the next batch shall lie; NULL: in ->events */
	size_t n_room;
	struct ky_event *events; /* BATCH_EVENTS; NULL as long as there was always room */
};

static struct source *source_of(struct ky_flow *flow)
{
	return (struct source *)flow;
}

/* ---- packets ----------------------------------------------------------------------------- */

/*
 * A step behind, because events that were delivered may still be looked at, and from some steps
 * further back, because looking at them brings their pages back in.
 */
static void release(struct source *s, uint64_t upto_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), upto, from;

	if (upto_bytes < s->released_bytes + 2 * s->release_bytes)
		return;
	upto = (upto_bytes - s->release_bytes) & ~(page - 1);
	from = upto < 4 * s->release_bytes ? 0 : (upto - 4 * s->release_bytes) & ~(page - 1);
	if (from > s->released_bytes)
		from = s->released_bytes;
	(void)madvise((void *)(uintptr_t)(s->stream->file.data + from), upto - from, MADV_DONTNEED);
	s->released_bytes = upto;
}

static void warn_foreign(struct source *s)
{
	struct kymo_error place;

	s->warned_foreign = true;
	ky_error_offset(&place, s->walk.at_bytes);
	ky_stream_place(s->stream, &place);
	ky_log_warning(
		s->log,
		"%s: packet UUID differs from the metadata's at byte %llu; if the file belongs "
		"to another trace, its events are nonsense",
		place.path, (unsigned long long)place.offset);
}

/* All of it: other streams may have their turn after this one. */
static void give_back(const struct source *s)
{
	uint64_t end = s->walk.next_bytes;

	if (end > s->stream->file.size_bytes)
		end = s->stream->file.size_bytes;
	if (end)
		(void)madvise((void *)(uintptr_t)s->stream->file.data, end, MADV_DONTNEED);
}

/* 1: in a new packet; 0: the stream's end. */
static int next_packet(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	int ret = ky_walk_next(&s->walk, err);

	if (ret <= 0)
		return ret;
	release(s, s->walk.at_bytes);
	s->in_packet = true;
	if (s->walk.packet->foreign && !s->warned_foreign)
		warn_foreign(s);
	if (ky_loss_tracker_packet(&s->losses, s->stream, s->walk.packet, &s->loss))
		batch->loss = &s->loss;
	return 1;
}

static void warn_order(struct source *s, const struct ky_event *event, int64_t back_ns)
{
	struct kymo_error place;

	s->warned = true;
	ky_error_offset(&place, s->walk.at_bytes + event->begin_bits / 8);
	ky_stream_place(s->stream, &place);
	ky_log_warning(s->log,
		       "%s: time goes back by %llu ns at byte %llu; its events stay in the "
		       "file's order",
		       place.path, (unsigned long long)back_ns, (unsigned long long)place.offset);
}

/* Traces whose time goes back inside a stream exist. Say it once, lose nothing. */
static void check_order(struct source *s, const struct ky_event *events, int n)
{
	int64_t last = s->last_ns;
	int back = -1;

	for (int i = 0; i < n; i++) {
		if (__builtin_expect(events[i].ns < last, 0) && !s->warned) {
			back = i;
			break;
		}
		last = events[i].ns;
	}
	if (back >= 0)
		warn_order(s, &events[back], (int64_t)((uint64_t)last - (uint64_t)events[back].ns));
	s->last_ns = events[n - 1].ns;
}

/* About as many bytes as these events had. Beyond the mapping it does nothing. */
static void prefetch(const struct ky_event *events, int n)
{
	const struct ky_event *last = &events[n - 1];
	uint64_t at = last->end_bits / 8, len = at - events[0].begin_bits / 8;

	if (len > PREFETCH_BYTES_MAX)
		len = PREFETCH_BYTES_MAX;
	for (uint64_t i = 0; i < len; i += CACHE_LINE_BYTES)
		__builtin_prefetch(last->data + at + i);
}

/* ---- the stage --------------------------------------------------------------------------- */

/* Where the next events go; *max: how many. NULL when out of memory. */
static struct ky_event *place(struct source *s, int *max)
{
	if (s->room) {
		*max = s->n_room < INT_MAX ? (int)s->n_room : INT_MAX;
		return s->room;
	}
	*max = s->batch_events;
	if (!s->events)
		s->events = malloc(BATCH_EVENTS * sizeof(*s->events));
	return s->events;
}

/* From the current packet, or the next one: 1, 0 (nothing yet, or the end: s->ended), negative. */
static int read_packet(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_event *events;
	int n, max, ret;

	if (!s->in_packet) {
		ret = next_packet(s, batch, err);
		if (ret <= 0) {
			s->ended = true;
			return ret;
		}
	}
	events = place(s, &max);
	if (!events)
		return ky_error_nomem(err);
	n = ky_decoder_next(s->walk.decoder, events, max, err);
	if (n > 0) {
		check_order(s, events, n);
		prefetch(events, n);
		batch->events = events;
		batch->n_events = (size_t)n;
		return 1;
	}
	s->in_packet = false;
	if (n < 0)
		return ky_walk_error(&s->walk, err);
	ret = ky_walk_leave(&s->walk, err);
	if (ret < 0)
		return ret;
	return batch->loss != NULL;
}

/* @damage: go on behind it if that is wanted, and let the batch tell. */
static bool recover(struct source *s, const struct kymo_error *damage, struct ky_batch *batch)
{
	uint64_t skipped_bytes;

	if (!ky_walk_recover(&s->walk, damage, &skipped_bytes))
		return false;
	if (!batch->loss)
		s->loss = (struct ky_loss){
			.stream = s->stream, .begin_ns = s->last_ns, .end_ns = INT64_MIN};
	s->damage = *damage;
	s->loss.damage = &s->damage;
	s->loss.skipped_bytes = skipped_bytes;
	batch->loss = &s->loss;
	s->in_packet = s->ended = false;
	return true;
}

static int read_batch(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	int ret;

	*batch = (struct ky_batch){.stream = s->stream};
	do
		ret = read_packet(s, batch, err);
	while (!ret && !s->ended);
	if (ret < 0 && recover(s, err, batch))
		return 1;
	return ret;
}

/* After a seek: drop what lies before. True when something of @batch is left. */
static bool trim(struct source *s, struct ky_batch *batch)
{
	size_t skip = 0;

	while (skip < batch->n_events && batch->events[skip].ns < s->seek_ns)
		skip++;
	batch->events += skip;
	batch->n_events -= skip;
	s->seeking = !batch->n_events;
	/* Damage is told wherever it is: it may hide what was asked for. */
	if (skip && batch->loss && !batch->loss->damage)
		batch->loss = NULL;
	return batch->n_events || (batch->loss && batch->loss->damage);
}

static int source_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct source *s = source_of(flow);
	struct kymo_error own;
	int ret;

	if (s->ended)
		return 0;
	if (!err)
		err = &own;
	do
		ret = read_batch(s, batch, err);
	while (ret > 0 && s->seeking && !trim(s, batch));
	if (ret <= 0)
		s->ended = true;
	s->room = NULL;
	return ret;
}

static void source_room(struct ky_flow *flow, struct ky_event *room, size_t n)
{
	struct source *s = source_of(flow);

	s->room = room;
	s->n_room = n;
}

/* ---- seeking ----------------------------------------------------------------------------- */

static int need_packets(struct source *s, struct kymo_error *err)
{
	int ret;

	if (s->has_packets)
		return KYMO_OK;
	ret = ky_stream_packets(s->stream, &s->packets, err);
	/* Damage further on does not hinder: reading will meet it and tell. */
	if (ret < 0 && ret != KYMO_E_FORMAT)
		return ret;
	s->has_packets = true;
	return KYMO_OK;
}

/*
 * The packet to begin with: one before the first that ends at or after @ns, because tracers
 * exist that write events after the end (or before the begin) that a packet claims.
 */
static size_t packet_for(const struct source *s, int64_t ns)
{
	size_t low = 0, high = s->packets.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct ky_packet_entry *entry = &s->packets.data[mid];

		if (entry->has_times && entry->end_ns < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

static void go_to_packet(struct source *s, size_t number)
{
	const struct ky_packet_entry *before = number ? &s->packets.data[number - 1] : NULL;

	ky_walk_go(&s->walk, number < s->packets.len ? s->packets.data[number].offset_bytes : 0);
	s->released_bytes = s->walk.next_bytes & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	s->in_packet = s->ended = false;
	s->last_ns = INT64_MIN;
	ky_loss_tracker_init(&s->losses);
	if (before) {
		s->losses.has_discarded = before->has_discarded;
		s->losses.discarded = before->discarded;
		s->losses.has_sequence = before->has_sequence;
		s->losses.sequence = before->sequence;
		s->losses.end_ns = before->end_ns;
	}
}

static int source_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct source *s = source_of(flow);
	int ret = need_packets(s, err);

	if (ret < 0)
		return ret;
	go_to_packet(s, packet_for(s, ns));
	s->seeking = true;
	s->seek_ns = ns;
	return KYMO_OK;
}

static void source_close(struct ky_flow *flow)
{
	struct source *s = source_of(flow);

	give_back(s);
	ky_walk_fini(&s->walk);
	ky_vec_fini(&s->packets);
	free(s->events);
	free(s);
}

static const struct ky_flow_ops source_ops = {
	.next = source_next,
	.seek = source_seek,
	.close = source_close,
	.room = source_room,
};

int ky_source_open(const struct ky_stream *stream, struct ky_flow **flow, struct kymo_error *err)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return ky_error_nomem(err);
	if (ky_walk_init(&s->walk, stream, err) < 0) {
		free(s);
		return KYMO_E_MEMORY;
	}
	s->flow.ops = &source_ops;
	s->stream = stream;
	s->log = stream->trace->log;
	s->last_ns = INT64_MIN;
	ky_source_share(&s->flow, 1);
	ky_loss_tracker_init(&s->losses);
	if (stream->file.data)
		(void)madvise((void *)(uintptr_t)stream->file.data, stream->file.size_bytes,
			      MADV_SEQUENTIAL);
	*flow = &s->flow;
	return KYMO_OK;
}

void ky_source_want(struct ky_flow *source, const uint8_t *wanted)
{
	ky_decoder_want(source_of(source)->walk.decoder, wanted);
}

void ky_source_log(struct ky_flow *source, const struct ky_log *log)
{
	source_of(source)->log = log;
}

static uint64_t share_of(uint64_t total, size_t n, uint64_t min, uint64_t max)
{
	uint64_t share = total / (n ? n : 1);

	return share < min ? min : share > max ? max : share;
}

void ky_source_share(struct ky_flow *source, size_t n)
{
	struct source *s = source_of(source);

	s->batch_events = (int)share_of(BATCHES_EVENTS, n, BATCH_EVENTS_MIN, BATCH_EVENTS);
	s->release_bytes = share_of(RELEASES_BYTES, n, RELEASE_BYTES_MIN, RELEASE_BYTES);
}
