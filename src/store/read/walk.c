/* SPDX-License-Identifier: MIT */
#include "store/read/walk.h"

#include <stdlib.h>
#include <string.h>

#include "abi/packet.h"
#include "base/bits.h"
#include "base/error.h"
#include "store/read/quirks.h"

int ky_walk_init(struct ky_walk *walk, const struct ky_stream *stream, struct kymo_error *err)
{
	const struct ky_trace *trace = stream->trace;

	*walk = (struct ky_walk){.stream = stream, .decoder = ky_decoder_new(trace->cls)};
	if (trace->quirks) {
		walk->ahead = ky_decoder_new(trace->cls);
		walk->counts = calloc(trace->cls->events.len + 1, sizeof(*walk->counts));
	}
	if (!walk->decoder || (trace->quirks && (!walk->ahead || !walk->counts))) {
		ky_walk_fini(walk);
		return ky_error_nomem(err);
	}
	ky_decoder_set_stream(walk->decoder, stream);
	return KYMO_OK;
}

void ky_walk_fini(struct ky_walk *walk)
{
	ky_decoder_free(walk->decoder);
	ky_decoder_free(walk->ahead);
	free(walk->counts);
	*walk = (struct ky_walk){.stream = NULL};
}

void ky_walk_go(struct ky_walk *walk, uint64_t offset_bytes)
{
	walk->next_bytes = offset_bytes;
	walk->next_number = offset_bytes ? KYMO_NO_OFFSET : 0;
	walk->content_end_bytes = 0;
}

void ky_walk_copy(struct ky_walk *to, const struct ky_walk *from)
{
	const struct ky_packet *packet = ky_decoder_copy(to->decoder, from->decoder);

	to->packet = from->packet ? packet : NULL;
	to->next_bytes = from->next_bytes;
	to->at_bytes = from->at_bytes;
	to->number = from->number;
	to->next_number = from->next_number;
	to->content_end_bytes = from->content_end_bytes;
}

/* ---- where packets lie ------------------------------------------------------------------- */

/* The part with the packet at or after *at_bytes, which is moved there; NULL at the end. */
static const struct ky_stream_part *part_at(const struct ky_stream *stream, uint64_t *at_bytes)
{
	ky_vec_foreach(&stream->parts, part) {
		if (*at_bytes < part->begin_bytes)
			*at_bytes = part->begin_bytes;
		if (*at_bytes < part->at_bytes + part->size_bytes)
			return part;
	}
	return NULL;
}

/* Read the header at @at_bytes with @decoder. */
static int walk_read_header(struct ky_decoder *decoder, const struct ky_stream *stream,
			    const struct ky_stream_part *part, uint64_t at_bytes,
			    const struct ky_packet **packet, struct kymo_error *err)
{
	return ky_decoder_packet(decoder, stream->file.data + at_bytes,
				 part->at_bytes + part->size_bytes - at_bytes, at_bytes, packet,
				 err);
}

/* ---- times ------------------------------------------------------------------------------- */

/* The time of the first event of the packet that @decoder has just begun, or of its last one. */
static bool event_time(struct ky_decoder *decoder, bool last, uint64_t *cycles)
{
	struct ky_event events[32];
	bool found = false;
	int n;

	while ((n = ky_decoder_next(decoder, events, last ? 32 : 1, NULL)) > 0) {
		*cycles = events[n - 1].cycles;
		found = true;
		if (!last)
			break;
	}
	return found;
}

/* The begin of the packet behind the current one, as it is after its own correction. */
static bool next_begin(struct ky_walk *walk, uint64_t *cycles)
{
	const struct ky_stream *stream = walk->stream;
	uint64_t at = walk->next_bytes;
	const struct ky_stream_part *part = part_at(stream, &at);
	const struct ky_packet *next;

	if (!part || walk_read_header(walk->ahead, stream, part, at, &next, NULL) < 0 ||
	    !next->has_begin)
		return false;
	*cycles = next->begin_cycles;
	if (stream->trace->quirks & KY_QUIRK_EARLY_EVENTS)
		(void)event_time(walk->ahead, false, cycles);
	return true;
}

/* Begin reading the current packet's events beside walk->decoder, which must not move. */
static bool reread(struct ky_walk *walk)
{
	uint64_t at = walk->at_bytes;
	const struct ky_stream_part *part = part_at(walk->stream, &at);
	const struct ky_packet *again;

	return part &&
	       walk_read_header(walk->ahead, walk->stream, part, at, &again, NULL) == KYMO_OK;
}

static void correct_end(struct ky_walk *walk, uint64_t *end)
{
	uint64_t cycles;

	if (next_begin(walk, &cycles) || (reread(walk) && event_time(walk->ahead, true, &cycles)))
		*end = cycles;
}

static void correct_times(struct ky_walk *walk)
{
	unsigned int quirks = walk->stream->trace->quirks;
	const struct ky_packet *p = walk->packet;
	uint64_t begin = p->begin_cycles, end = p->end_cycles;

	if (!p->has_begin || !p->has_end)
		return;
	if (quirks & KY_QUIRK_EARLY_EVENTS) {
		if (reread(walk))
			(void)event_time(walk->ahead, false, &begin);
		(void)next_begin(walk, &end);
	} else if ((quirks & KY_QUIRK_LATE_EVENTS) ||
		   ((quirks & KY_QUIRK_ZERO_END) && !end && begin)) {
		correct_end(walk, &end);
	}
	if (begin != p->begin_cycles || end != p->end_cycles)
		ky_decoder_correct_times(walk->decoder, begin, end);
}

/* ---- which packet, which event ------------------------------------------------------------- */

/* Which packet of the stream begins at walk->at_bytes? */
static uint64_t walk_count_packets(const struct ky_walk *walk)
{
	uint64_t n = 0, skipped_bytes;
	struct kymo_error err;
	struct ky_walk other;
	int ret;

	if (ky_walk_init(&other, walk->stream, NULL) < 0)
		return KYMO_NO_OFFSET;
	do {
		ret = ky_walk_next(&other, &err);
		n += ret && other.at_bytes < walk->at_bytes;
	} while ((ret > 0 && other.at_bytes < walk->at_bytes) ||
		 (ret < 0 && ky_walk_recover(&other, &err, &skipped_bytes)));
	ky_walk_fini(&other);
	return n;
}

/* Say in @err which packet the walk is at. */
static void tell_packet(const struct ky_walk *walk, struct kymo_error *err)
{
	if (err)
		err->packet =
			walk->number == KYMO_NO_OFFSET ? walk_count_packets(walk) : walk->number;
}

/* How many events of the current packet can be read. */
static uint64_t walk_count_events(const struct ky_walk *walk)
{
	size_t n_classes = walk->stream->trace->cls->events.len;
	struct ky_decoder *decoder = ky_decoder_new(walk->stream->trace->cls);
	uint64_t *counts = calloc(n_classes + 1, sizeof(*counts));
	uint64_t at = walk->at_bytes, n = KYMO_NO_OFFSET;
	const struct ky_stream_part *part = part_at(walk->stream, &at);
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
	const struct ky_packet *packet;

	if (decoder && counts && part &&
	    walk_read_header(decoder, walk->stream, part, at, &packet, NULL) == KYMO_OK) {
		(void)ky_decoder_count(decoder, counts, &begin_ns, &end_ns, NULL);
		n = 0;
		for (size_t i = 0; i < n_classes; i++)
			n += counts[i];
	}
	ky_decoder_free(decoder);
	free(counts);
	return n;
}

/* ---- going on ---------------------------------------------------------------------------- */

static bool all_zero(const uint8_t *data, uint64_t size_bytes)
{
	return !size_bytes || (!data[0] && !memcmp(data, data + 1, size_bytes - 1));
}

static void zeros_error(const struct ky_walk *walk, struct kymo_error *err, uint64_t rest)
{
	ky_error_set(err, KYMO_E_FORMAT, "the file ends in %llu zero bytes, not in packets",
		     (unsigned long long)rest);
	ky_error_offset(err, walk->at_bytes);
	ky_error_hint(err, "the recorder stopped before it wrote them; the earlier packets "
			   "are complete");
}

/*
 * Complete the error of a packet header that cannot be read: adds the path, and says so
 * plainly when only zero bytes follow (a recorder that was killed).
 */
static int header_error(const struct ky_walk *walk, const struct ky_stream_part *part,
			struct kymo_error *err)
{
	uint64_t rest = part->at_bytes + part->size_bytes - walk->at_bytes;

	if (all_zero(walk->stream->file.data + walk->at_bytes, rest))
		zeros_error(walk, err, rest);
	ky_stream_place(walk->stream, err);
	tell_packet(walk, err);
	return KYMO_E_FORMAT;
}

int ky_walk_next(struct ky_walk *walk, struct kymo_error *err)
{
	const struct ky_stream_part *part = part_at(walk->stream, &walk->next_bytes);
	int ret;

	if (!part && ky_stream_may_grow(walk->stream))
		return KYMO_E_AGAIN;
	if (!part)
		return ky_stream_check(walk->stream, true, err);
	walk->at_bytes = walk->next_bytes;
	walk->packet = NULL;
	walk->number = walk->next_number;
	walk->next_number += walk->number != KYMO_NO_OFFSET;
	ret = walk_read_header(walk->decoder, walk->stream, part, walk->at_bytes, &walk->packet,
			       err);
	if (ky_stream_check(walk->stream, ret < 0, err) < 0)
		return KYMO_E_IO;
	if (ret < 0)
		return ret == KYMO_E_FORMAT ? header_error(walk, part, err) : ret;
	walk->next_bytes += walk->packet->packet_bits / 8;
	walk->content_before_bytes = walk->content_end_bytes;
	walk->content_end_bytes = walk->at_bytes + walk->packet->content_bits / 8;
	if (walk->ahead)
		correct_times(walk);
	return 1;
}

void ky_walk_back(struct ky_walk *walk)
{
	walk->next_bytes = walk->at_bytes;
	walk->next_number = walk->number;
	walk->content_end_bytes = walk->content_before_bytes;
	walk->packet = NULL;
}

int ky_walk_leave(struct ky_walk *walk, struct kymo_error *err)
{
	uint64_t at = walk->at_bytes, bytes = walk->packet->packet_bits / 8;
	const struct ky_stream_part *part = part_at(walk->stream, &at);
	uint64_t avail_bytes = part->at_bytes + part->size_bytes - at;

	if (ky_stream_check(walk->stream, bytes > avail_bytes, err) < 0)
		return KYMO_E_IO;
	if (bytes <= avail_bytes)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_FORMAT, "packet is truncated: %llu bytes, %llu in the file",
		     (unsigned long long)bytes, (unsigned long long)avail_bytes);
	ky_error_path(err, part->path);
	ky_error_offset(err, part->size_bytes);
	tell_packet(walk, err);
	/* The rest of the packet is not in the next file. */
	walk->next_bytes = part->at_bytes + part->size_bytes;
	return KYMO_E_FORMAT;
}

int ky_walk_error(const struct ky_walk *walk, struct kymo_error *err)
{
	if (ky_stream_check(walk->stream, true, err) < 0)
		return KYMO_E_IO;
	ky_stream_place(walk->stream, err);
	tell_packet(walk, err);
	if (err && walk->packet)
		err->event = walk_count_events(walk);
	return err ? err->code : KYMO_E_FORMAT;
}

/* ---- damage ------------------------------------------------------------------------------ */

/* What every packet of a trace begins with, as far as it is known: magic number and UUID. */
struct pattern {
	uint8_t bytes[20];
	size_t len;
};

static void pattern_of(const struct ky_trace_class *trace, struct pattern *pattern)
{
	const struct ky_field_class *header = trace->packet_header, *magic, *uuid;

	pattern->len = 0;
	if (!header || header->kind != KY_FIELD_STRUCT || !header->st.n_members)
		return;
	magic = header->st.members[0].cls;
	if (magic->role != KY_ROLE_MAGIC || magic->kind != KY_FIELD_UINT ||
	    magic->num.length_bits != 32 || magic->num.bits_reversed)
		return;
	for (int i = 0; i < 4; i++)
		pattern->bytes[i] =
			(uint8_t)(KY_CTF_MAGIC >> 8 * (magic->num.big_endian ? 3 - i : i));
	pattern->len = 4;
	if (header->st.n_members < 2 || !trace->has_uuid)
		return;
	uuid = header->st.members[1].cls;
	if (uuid->role != KY_ROLE_TRACE_UUID || uuid->fixed_bits != 128 || uuid->align_bits > 32)
		return;
	memcpy(pattern->bytes + 4, trace->uuid, 16);
	pattern->len = 20;
}

/* Is there a packet at @at_bytes that can be read? */
static bool is_packet(struct ky_walk *walk, const struct ky_stream_part *part, uint64_t at_bytes)
{
	const struct ky_packet *packet;

	return walk_read_header(walk->decoder, walk->stream, part, at_bytes, &packet, NULL) ==
	       KYMO_OK;
}

/* The first packet at or after @from_bytes in @part, or the part's end. */
static uint64_t walk_search(struct ky_walk *walk, const struct ky_stream_part *part,
			    uint64_t from_bytes)
{
	const uint8_t *data = walk->stream->file.data;
	uint64_t end = part->at_bytes + part->size_bytes;
	struct pattern pattern;
	const uint8_t *found;

	pattern_of(walk->stream->trace->cls, &pattern);
	while (pattern.len && from_bytes < end) {
		found = memmem(data + from_bytes, end - from_bytes, pattern.bytes, pattern.len);
		if (!found)
			break;
		from_bytes = (uint64_t)(found - data);
		if (is_packet(walk, part, from_bytes))
			return from_bytes;
		from_bytes++;
	}
	return end;
}

/* Where the packet at hand says that it ends, if that is right; else 0. */
static uint64_t believable_end(struct ky_walk *walk, const struct ky_stream_part *part)
{
	uint64_t bytes = walk->packet->packet_bits / 8, end = part->at_bytes + part->size_bytes;

	if (bytes > end - walk->at_bytes)
		return 0;
	bytes += walk->at_bytes;
	return bytes == end || is_packet(walk, part, bytes) ? bytes : 0;
}

/* Where to look for the next packet when the size of the one at hand is wrong. */
static uint64_t search_from(const struct ky_walk *walk, const struct ky_stream_part *part)
{
	const struct ky_packet *p = walk->packet;
	uint64_t rest_bits = (part->at_bytes + part->size_bytes - walk->at_bytes) * 8;

	if (!p) {
		/* Or the packet before was not so long as it says: what follows is in its padding. */
		return walk->content_end_bytes > part->begin_bytes &&
				       walk->content_end_bytes < walk->at_bytes
			       ? walk->content_end_bytes
			       : walk->at_bytes + 1;
	}
	return walk->at_bytes +
	       (p->content_bits <= rest_bits ? p->content_bits : p->header_bits) / 8;
}

bool ky_walk_recover(struct ky_walk *walk, const struct kymo_error *err, uint64_t *skipped_bytes)
{
	uint64_t at = walk->at_bytes, from, damage;
	const struct ky_stream_part *part = part_at(walk->stream, &at);

	if (!walk->stream->trace->recover || !part ||
	    (err->code != KYMO_E_FORMAT && err->code != KYMO_E_LIMIT))
		return false;
	from = search_from(walk, part);
	damage = part->at_bytes + err->offset;
	/* A packet whose header cannot be read is skipped from its begin on. */
	if (!walk->packet || err->offset == KYMO_NO_OFFSET || damage < at)
		damage = at;
	walk->next_bytes = walk->packet ? believable_end(walk, part) : 0;
	if (!walk->next_bytes)
		walk->next_bytes = walk_search(walk, part, from);
	walk->packet = NULL;
	*skipped_bytes = damage < walk->next_bytes ? walk->next_bytes - damage : 0;
	return true;
}
