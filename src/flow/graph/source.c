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
#include "flow/graph/source-internal.h"

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
#define RELEASES_BYTES	 ((uint64_t)8 << 20)
#define CACHE_LINE_BYTES 64

/* ---- packets ----------------------------------------------------------------------------- */

/*
 * A step behind, because events that were delivered may still be looked at, and from some steps
 * further back, because looking at them brings their pages back in.
 */
void ky_source_release(struct source *s, uint64_t upto_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), upto, from;

	if (upto_bytes < s->released_bytes + 2 * s->release_bytes)
		return;
	upto = (upto_bytes - s->release_bytes) & ~(page - 1);
	from = upto < 4 * s->release_bytes ? 0 : (upto - 4 * s->release_bytes) & ~(page - 1);
	if (from > s->released_bytes)
		from = s->released_bytes;
	ky_stream_give_back(s->stream, from, upto);
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
static void source_give_back(const struct source *s)
{
	uint64_t end = s->walk.next_bytes;

	if (end > s->stream->file.size_bytes)
		end = s->stream->file.size_bytes;
	ky_stream_give_back(s->stream, 0, end);
}

/* The time of a loss before the current packet: that of its first event, selected or not. */
static int64_t turn_of_loss(const struct source *s)
{
	int64_t floor_ns = ky_decoder_floor(s->walk.decoder), ns;

	if (!ky_decoder_peek(s->walk.decoder, &ns))
		ns = s->loss.begin_ns;
	return ns > floor_ns ? ns : floor_ns;
}

int ky_source_enter(struct source *s, bool *lost, struct kymo_error *err)
{
	struct ky_loss_tracker before = s->losses;
	int ret = ky_walk_next(&s->walk, err);

	*lost = false;
	if (ret <= 0)
		return ret;
	if (ky_loss_tracker_packet(&s->losses, s->stream, s->walk.packet, &s->loss)) {
		s->loss.ns = turn_of_loss(s);
		s->at_limit = s->loss.ns >= s->limit_ns && s->limit_ns != INT64_MAX;
		*lost = !s->at_limit;
	}
	if (s->at_limit) {
		s->beyond_ns = s->loss.ns;
		s->losses = before;
		ky_walk_back(&s->walk);
		return 0;
	}
	s->in_packet = true;
	return 1;
}

/* 1: in a new packet; 0: the stream's end, or the limit. */
static int source_next_packet(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	bool lost;
	int ret = ky_source_enter(s, &lost, err);

	if (ret <= 0)
		return ret;
	ky_source_release(s, s->walk.at_bytes);
	if (s->stream->passed_bytes)
		*s->stream->passed_bytes = s->walk.at_bytes;
	if (s->walk.packet->foreign && !s->warned_foreign)
		warn_foreign(s);
	if (lost)
		batch->loss = &s->loss;
	return 1;
}

/* @event lies before one at @floor_ns that came before it. */
static void warn_order(struct source *s, const struct ky_event *event, int64_t floor_ns)
{
	struct kymo_error place;

	s->warned = true;
	ky_error_offset(&place, s->walk.at_bytes + event->begin_bits / 8);
	ky_stream_place(s->stream, &place);
	ky_log_warning(s->log,
		       "%s: time goes back by %llu ns at byte %llu; its events stay in the "
		       "file's order",
		       place.path, (unsigned long long)((uint64_t)floor_ns - (uint64_t)event->ns),
		       (unsigned long long)place.offset);
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

/* The current packet has nothing more that is wanted. @ret: of the decoder. */
static int source_leave_packet(struct source *s, int ret, struct kymo_error *err)
{
	s->in_packet = false;
	return ret < 0 ? ky_walk_error(&s->walk, err) : ky_walk_leave(&s->walk, err);
}

/* After a seek: go over what lies before, in the current packet. 1: the rest is wanted; 0 or negative. */
static int source_reach(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_decoder *decoder = s->walk.decoder;
	int64_t ns;
	int ret;

	s->seeking = !batch->loss || batch->loss->ns < s->seek_ns;
	if (!s->seeking)
		return 1;
	batch->loss = NULL;
	ky_decoder_limit(decoder, s->seek_ns < s->limit_ns ? s->seek_ns : s->limit_ns);
	ret = ky_decoder_skip(decoder, err);
	s->seeking = ret < 0 || !ky_decoder_at_limit(decoder, &ns);
	ky_decoder_limit(decoder, s->limit_ns);
	return s->seeking ? source_leave_packet(s, ret, err) : 1;
}

/*
 * Events of the current packet, up to s->until_ns, but one at least. As
 * ky_decoder_next().
 */
static int source_decode(struct source *s, struct ky_batch *batch, struct ky_event *events, int max,
			 struct kymo_error *err)
{
	struct ky_decoder *decoder = s->walk.decoder;
	int n;

	if (!s->room || s->until_ns >= s->limit_ns)
		return ky_decoder_next(decoder, events, max, err);
	ky_decoder_limit(decoder, s->until_ns);
	n = ky_decoder_next(decoder, events, max, err);
	batch->has_next = ky_decoder_at_limit(decoder, &batch->next_ns);
	ky_decoder_limit(decoder, s->limit_ns);
	if (n || !batch->has_next)
		return n;
	batch->has_next = false;
	return ky_decoder_next(decoder, events, 1, err);
}

/* Leave out the first of @n @events as far as they lie before the place where the source goes on. How many are left. */
static int left_after(struct source *s, struct ky_event **events, int n)
{
	int before = 0;

	s->resuming = s->walk.at_bytes == s->resume_bytes;
	while (s->resuming && before < n && (*events)[before].begin_bits < s->resume_bits)
		before++;
	s->resuming &= before == n;
	*events += before;
	return n - before;
}

void ky_source_resume(struct ky_flow *source, uint64_t packet_bytes, uint64_t end_bits)
{
	struct source *s = ky_source_of(source);

	ky_walk_go(&s->walk, packet_bytes);
	s->resuming = true;
	s->resume_bytes = packet_bytes;
	s->resume_bits = end_bits;
}

/* From the current packet, or the next one: 1, 0 (nothing yet, or the end: s->ended), negative. */
static int source_read_packet(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_event *events;
	int n, max, ret;

	if (!s->in_packet) {
		if (s->is_over && s->is_over(s->over_data))
			return ky_error_set(err, KYMO_E_INTERRUPTED, "the reading was stopped");
		ret = source_next_packet(s, batch, err);
		if (ret == KYMO_E_AGAIN)
			return ret;
		if (ret <= 0) {
			s->ended = !s->at_limit;
			return ret;
		}
	}
	if (s->seeking) {
		ret = source_reach(s, batch, err);
		if (ret <= 0)
			return ret;
	}
	events = place(s, &max);
	if (!events)
		return ky_error_nomem(err);
	n = source_decode(s, batch, events, max, err);
	if (n > 0 && s->resuming) {
		n = left_after(s, &events, n);
		if (!n)
			return 0;
	}
	if (n > 0) {
		batch->events = events;
		batch->n_events = (size_t)n;
		batch->floor_ns = ky_decoder_floor(s->walk.decoder);
		batch->has_floor = batch->floor_ns > events->ns;
		/* Traces whose time goes back inside a stream exist. Say it once, lose nothing. */
		if (batch->has_floor && !s->warned)
			warn_order(s, events, batch->floor_ns);
		return 1;
	}
	s->at_limit = !n && ky_decoder_at_limit(s->walk.decoder, &s->beyond_ns);
	if (s->at_limit)
		return batch->loss != NULL;
	ret = source_leave_packet(s, n, err);
	return ret < 0 ? ret : batch->loss != NULL;
}

/* @damage: go on behind it if that is wanted, and let the batch tell. */
static bool recover(struct source *s, const struct kymo_error *damage, struct ky_batch *batch)
{
	int64_t latest_ns = ky_decoder_latest(s->walk.decoder);
	uint64_t skipped_bytes;

	if (!ky_walk_recover(&s->walk, damage, &skipped_bytes))
		return false;
	if (!batch->loss)
		s->loss = (struct ky_loss){
			.stream = s->stream,
			.ns = latest_ns,
			.begin_ns = latest_ns,
			.end_ns = INT64_MIN,
		};
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
		ret = source_read_packet(s, batch, err);
	while (!ret && !s->ended && !s->at_limit);
	if (ret < 0 && recover(s, err, batch))
		return 1;
	return ret;
}

static int source_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct source *s = ky_source_of(flow);
	struct kymo_error own;
	int ret;

	if (s->ended || s->at_limit)
		return 0;
	if (!err)
		err = &own;
	ret = read_batch(s, batch, err);
	if (ret == KYMO_E_AGAIN) {
		batch->has_next = true;
		batch->next_ns = ky_trace_live_until(s->stream->trace);
	} else if (ret <= 0) {
		s->ended = ret < 0 || !s->at_limit;
	}
	s->room = NULL;
	return ret;
}

static void source_room(struct ky_flow *flow, struct ky_event *room, size_t n, int64_t until_ns)
{
	struct source *s = ky_source_of(flow);

	s->room = room;
	s->n_room = n;
	s->until_ns = until_ns;
}

/* Beyond the mapping it does nothing. */
static void source_fetch(const struct ky_flow *flow, size_t n_bytes)
{
	const struct source *s = (const struct source *)flow;
	const uint8_t *data = s->stream->file.data;
	uint64_t clock, at = s->walk.next_bytes;

	if (s->in_packet)
		at = s->walk.at_bytes + ky_decoder_place(s->walk.decoder, &clock) / 8;
	for (size_t i = 0; i < n_bytes; i += CACHE_LINE_BYTES)
		__builtin_prefetch(data + at + i);
}

static void source_close(struct ky_flow *flow)
{
	struct source *s = ky_source_of(flow);

	source_give_back(s);
	ky_walk_fini(&s->walk);
	ky_vec_fini(&s->packets);
	free(s->events);
	free(s);
}

static const struct ky_flow_ops source_ops = {
	.next = source_next,
	.seek = ky_source_seek,
	.close = source_close,
	.room = source_room,
	.fetch = source_fetch,
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
	s->limit_ns = INT64_MAX;
	ky_source_share(&s->flow, 1);
	ky_loss_tracker_init(&s->losses);
	if (stream->passed_bytes && *stream->passed_bytes == UINT64_MAX)
		*stream->passed_bytes = stream->parts.data[0].begin_bytes;
	if (stream->file.data)
		(void)madvise((void *)(uintptr_t)stream->file.data, stream->file.size_bytes,
			      MADV_SEQUENTIAL);
	*flow = &s->flow;
	return KYMO_OK;
}

void ky_source_want(struct ky_flow *source, const uint8_t *wanted)
{
	ky_decoder_want(ky_source_of(source)->walk.decoder, wanted);
}

void ky_source_stop(struct ky_flow *source, bool (*is_over)(void *data), void *data)
{
	ky_source_of(source)->is_over = is_over;
	ky_source_of(source)->over_data = data;
}

void ky_source_log(struct ky_flow *source, const struct ky_log *log)
{
	ky_source_of(source)->log = log;
}

static uint64_t source_share_of(uint64_t total, size_t n, uint64_t min, uint64_t max)
{
	uint64_t share = total / (n ? n : 1);

	return share < min ? min : share > max ? max : share;
}

void ky_source_share(struct ky_flow *source, size_t n)
{
	struct source *s = ky_source_of(source);

	s->batch_events = (int)source_share_of(BATCHES_EVENTS, n, BATCH_EVENTS_MIN, BATCH_EVENTS);
	s->release_bytes = source_share_of(RELEASES_BYTES, n, RELEASE_BYTES_MIN, RELEASE_BYTES);
}
