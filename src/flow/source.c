/* SPDX-License-Identifier: MIT */
/*
 * A source: the events of one stream.
 *
 * It goes from packet to packet by their headers alone, so that neither a wrong index nor a
 * missing one changes what is read; the packet list is made for seeking only. Events are
 * views into the mapped file; a batch never crosses a packet.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "flow/flow.h"

/* 256 events are 18 KiB: they stay in the first-level cache until the sink has seen them. */
#define BATCH_EVENTS 256
/* Memory of packets that were passed goes back to the kernel in steps of so many bytes. */
#define RELEASE_BYTES ((uint64_t)4 << 20)

struct source {
	struct ky_flow flow;
	const struct ky_stream *stream;
	struct ky_decoder *decoder;
	const struct ky_packet *packet; /* the decoder's; NULL before the first */
	uint64_t next_bytes;		/* where the next packet begins */
	uint64_t released_bytes;	/* everything before was given back */
	bool in_packet, ended, warned;
	bool seeking; /* events before seek_ns are not wanted */
	int64_t seek_ns;
	int64_t last_ns;
	/* Of the packet before, for losses. */
	bool has_discarded, has_sequence;
	uint64_t discarded, sequence;
	int64_t end_ns;
	struct ky_loss loss;
	struct ky_packet_list packets;
	bool has_packets;
	struct ky_event events[BATCH_EVENTS];
};

static struct source *source_of(struct ky_flow *flow)
{
	return (struct source *)flow;
}

/* ---- losses ------------------------------------------------------------------------------ */

/* Width of the discarded counter: 32-bit ones wrap. */
static unsigned int discarded_bits(const struct ky_stream_class *cls)
{
	const struct ky_field_class *st = cls->packet_context;

	for (size_t i = 0; st && i < st->st.n_members; i++) {
		const struct ky_field_class *member = st->st.members[i].cls;

		if (member->role == KY_ROLE_DISCARDED && member->num.length_bits)
			return member->num.length_bits;
	}
	return 64;
}

/* The counter is cumulative. One that went back was reset: what it counted is not known. */
static uint64_t newly_discarded(const struct source *s, const struct ky_packet *p)
{
	uint64_t lost;

	if (!s->has_discarded || !p->has_discarded)
		return 0;
	if (p->discarded >= s->discarded)
		return p->discarded - s->discarded;
	lost = (p->discarded - s->discarded) & ky_mask_bits(discarded_bits(p->stream_class));
	return lost < UINT64_C(1) << 31 ? lost : 0;
}

/* Compare the new packet with the one before; true when something is missing in between. */
static bool find_loss(struct source *s)
{
	const struct ky_packet *p = s->packet;
	bool skipped = s->has_sequence && p->has_sequence && p->sequence > s->sequence;

	s->loss = (struct ky_loss){
		.stream = s->stream,
		.events = newly_discarded(s, p),
		.packets = skipped ? p->sequence - s->sequence - 1 : 0,
		.begin_ns = s->end_ns,
		.end_ns = p->end_ns,
	};
	s->has_discarded = p->has_discarded;
	s->discarded = p->discarded;
	s->has_sequence = p->has_sequence;
	s->sequence = p->sequence;
	s->end_ns = p->end_ns;
	return s->loss.events || s->loss.packets;
}

/* ---- packets ----------------------------------------------------------------------------- */

static void release(struct source *s, uint64_t upto_bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), upto = upto_bytes & ~(page - 1);

	if (upto < s->released_bytes + RELEASE_BYTES)
		return;
	(void)madvise((void *)(uintptr_t)(s->stream->file.data + s->released_bytes),
		      upto - s->released_bytes, MADV_DONTNEED);
	s->released_bytes = upto;
}

/* 1: in a new packet; 0: the file's end. */
static int next_packet(struct source *s, struct kymo_error *err)
{
	const struct ky_stream_file *file = &s->stream->file;
	int ret;

	if (s->next_bytes >= file->size_bytes)
		return 0;
	release(s, s->next_bytes);
	ret = ky_decoder_packet(s->decoder, file->data + s->next_bytes,
				file->size_bytes - s->next_bytes, s->next_bytes, &s->packet, err);
	if (ret < 0) {
		ky_packet_error(s->stream, s->next_bytes, err);
		return ret;
	}
	s->next_bytes += s->packet->packet_bits / 8;
	s->in_packet = true;
	return 1;
}

/* At the end of a packet's events: is the file long enough for the whole of it? */
static int leave_packet(struct source *s, struct kymo_error *err)
{
	s->in_packet = false;
	return ky_packet_check_cut(s->stream, s->packet, err);
}

static void warn_order(struct source *s, int at, int64_t back_ns)
{
	s->warned = true;
	ky_log_warning(
		s->stream->trace->log,
		"%s: time goes back by %llu ns at byte %llu; its events stay in the "
		"file's order",
		s->stream->file.path, (unsigned long long)back_ns,
		(unsigned long long)(s->packet->file_offset_bytes + s->events[at].begin_bits / 8));
}

/* Traces whose time goes back inside a stream exist. Say it once, lose nothing. */
static void check_order(struct source *s, int n)
{
	int64_t last = s->last_ns;
	int back = -1;

	for (int i = 0; i < n; i++) {
		if (__builtin_expect(s->events[i].ns < last, 0) && !s->warned) {
			back = i;
			break;
		}
		last = s->events[i].ns;
	}
	if (back >= 0)
		warn_order(s, back, (int64_t)((uint64_t)last - (uint64_t)s->events[back].ns));
	s->last_ns = s->events[n - 1].ns;
}

/* ---- the stage --------------------------------------------------------------------------- */

static int read_batch(struct source *s, struct ky_batch *batch, struct kymo_error *err)
{
	int n, ret;

	*batch = (struct ky_batch){.stream = s->stream, .events = s->events};
	for (;;) {
		if (!s->in_packet) {
			ret = next_packet(s, err);
			if (ret <= 0)
				return ret;
			if (find_loss(s))
				batch->loss = &s->loss;
		}
		n = ky_decoder_next(s->decoder, s->events, BATCH_EVENTS, err);
		if (n < 0) {
			ky_error_path(err, s->stream->file.path);
			return n;
		}
		if (n) {
			check_order(s, n);
			batch->n_events = (size_t)n;
			return 1;
		}
		ret = leave_packet(s, err);
		if (ret < 0)
			return ret;
		if (batch->loss)
			return 1;
	}
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
	if (skip)
		batch->loss = NULL;
	return batch->n_events;
}

static int source_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct source *s = source_of(flow);
	int ret;

	if (s->ended)
		return 0;
	do
		ret = read_batch(s, batch, err);
	while (ret > 0 && s->seeking && !trim(s, batch));
	if (ret <= 0)
		s->ended = true;
	return ret;
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

	s->next_bytes = number < s->packets.len ? s->packets.data[number].offset_bytes : 0;
	s->released_bytes = s->next_bytes & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	s->in_packet = s->ended = false;
	s->last_ns = INT64_MIN;
	s->has_discarded = before && before->has_discarded;
	s->has_sequence = before && before->has_sequence;
	s->discarded = before ? before->discarded : 0;
	s->sequence = before ? before->sequence : 0;
	s->end_ns = before ? before->end_ns : INT64_MIN;
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

	ky_decoder_free(s->decoder);
	ky_vec_fini(&s->packets);
	free(s);
}

static const struct ky_flow_ops source_ops = {
	.next = source_next,
	.seek = source_seek,
	.close = source_close,
};

int ky_source_open(const struct ky_stream *stream, struct ky_flow **flow, struct kymo_error *err)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return ky_error_nomem(err);
	s->decoder = ky_decoder_new(stream->trace->cls);
	if (!s->decoder) {
		free(s);
		return ky_error_nomem(err);
	}
	s->flow.ops = &source_ops;
	s->stream = stream;
	s->last_ns = s->end_ns = INT64_MIN;
	if (stream->file.data)
		(void)madvise((void *)(uintptr_t)stream->file.data, stream->file.size_bytes,
			      MADV_SEQUENTIAL);
	*flow = &s->flow;
	return KYMO_OK;
}

void ky_source_want(struct ky_flow *source, const uint8_t *wanted)
{
	ky_decoder_want(source_of(source)->decoder, wanted);
}
