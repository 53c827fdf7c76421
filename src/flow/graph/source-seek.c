/* SPDX-License-Identifier: MIT */
/* A source's places: seeking, going on up to a limit, standing where another one stands. */
#include <unistd.h>

#include "base/error.h"
#include "flow/graph/source-internal.h"

#define AROUND_BYTES ((uint64_t)64 << 10)

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
	s->in_packet = s->ended = s->at_limit = false;
	ky_decoder_forget(s->walk.decoder);
	ky_loss_tracker_init(&s->losses);
	if (before) {
		s->losses.has_discarded = before->has_discarded;
		s->losses.discarded = before->discarded;
		s->losses.has_sequence = before->has_sequence;
		s->losses.sequence = before->sequence;
		s->losses.end_ns = before->end_ns;
	}
}

int ky_source_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct source *s = ky_source_of(flow);
	int ret = need_packets(s, err);

	if (ret < 0)
		return ret;
	go_to_packet(s, packet_for(s, ns));
	s->seeking = true;
	s->seek_ns = ns;
	return KYMO_OK;
}

/* ---- limits and places ------------------------------------------------------------------- */

void ky_source_limit(struct ky_flow *source, int64_t ns)
{
	struct source *s = ky_source_of(source);

	s->limit_ns = ns;
	s->at_limit = false;
	ky_decoder_limit(s->walk.decoder, ns);
}

/* The events of the packet that was just entered all lie before the limit, as it says. */
static bool packet_is_before(const struct source *s)
{
	const struct ky_packet *packet = s->walk.packet;

	return packet->has_begin && packet->has_end && packet->end_ns < s->limit_ns;
}

/* Up to the limit, or the end of a packet. 0 or negative. */
static int skim_packet(struct source *s, bool trust, struct kymo_error *err)
{
	bool entered = !s->in_packet, lost;
	int ret = entered ? ky_source_enter(s, &lost, err) : 1;

	if (ret <= 0) {
		s->ended = !s->at_limit;
		return ret;
	}
	if (!(entered && trust && packet_is_before(s)))
		ret = ky_decoder_skip(s->walk.decoder, err);
	s->at_limit = ret >= 0 && ky_decoder_at_limit(s->walk.decoder, &s->beyond_ns);
	if (s->at_limit)
		return KYMO_OK;
	s->in_packet = false;
	return ret < 0 ? ret : ky_walk_leave(&s->walk, err);
}

bool ky_source_skim(struct ky_flow *source, bool trust, int64_t *ns)
{
	struct source *s = ky_source_of(source);
	struct kymo_error err;
	uint64_t skipped_bytes;

	while (!s->ended && !s->at_limit) {
		if (skim_packet(s, trust, &err) >= 0)
			continue;
		s->in_packet = false;
		s->ended = !ky_walk_recover(&s->walk, &err, &skipped_bytes);
	}
	s->seeking = false;
	*ns = s->beyond_ns;
	return s->at_limit;
}

void ky_source_assume(struct ky_flow *source, struct ky_flow *from)
{
	struct source *s = ky_source_of(source);
	const struct source *f = ky_source_of(from);

	if (s == f)
		ky_decoder_forget(s->walk.decoder);
	else
		ky_walk_copy(&s->walk, &f->walk);
	s->in_packet = f->in_packet;
	s->ended = f->ended;
	/* A limit lies behind what was sought. */
	s->seeking = f->seeking && !f->at_limit;
	s->seek_ns = f->seek_ns;
	s->losses = f->losses;
	s->at_limit = s->warned = s->warned_foreign = false;
	s->room = NULL;
}

struct ky_source_place ky_source_place(struct ky_flow *source)
{
	const struct source *s = ky_source_of(source);
	struct ky_source_place place = {
		.bits = s->walk.next_bytes * 8,
		.in_packet = s->in_packet,
		.ended = s->ended,
		.discarded = s->losses.discarded,
		.sequence = s->losses.sequence,
	};

	if (s->in_packet)
		place.bits = s->walk.at_bytes * 8 + ky_decoder_place(s->walk.decoder, &place.clock);
	return place;
}

bool ky_source_at_limit(struct ky_flow *source, int64_t *ns)
{
	const struct source *s = ky_source_of(source);

	*ns = s->beyond_ns;
	return s->at_limit;
}

bool ky_source_ended(struct ky_flow *source)
{
	return ky_source_of(source)->ended;
}

unsigned int ky_source_warned(struct ky_flow *source)
{
	const struct source *s = ky_source_of(source);

	return (s->warned ? 1 : 0) | (s->warned_foreign ? 2 : 0);
}

void ky_source_keep(struct ky_flow *source)
{
	ky_source_of(source)->release_bytes = UINT64_MAX / 8;
}

void ky_source_passed(struct ky_flow *source, uint64_t upto_bytes, struct ky_pages *pages)
{
	struct source *s = ky_source_of(source);
	uint64_t upto = upto_bytes & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1), from;
	uint64_t kept = ky_stream_memory_bytes(s->stream);

	if (upto <= s->released_bytes || upto > s->stream->file.size_bytes || upto <= kept)
		return;
	/* The kernel brings in what lies around a page that is missing. */
	from = s->released_bytes > AROUND_BYTES ? s->released_bytes - AROUND_BYTES : 0;
	from = from > kept ? from : kept;
	ky_pages_add(pages, s->stream->file.data + from, upto - from);
	s->released_bytes = upto;
}
