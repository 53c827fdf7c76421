/* SPDX-License-Identifier: MIT */
#include "flow/graph/summary.h"

#include <unistd.h>

#include "base/error.h"
#include "flow/graph/loss.h"
#include "flow/graph/range.h"
#include "store/read/walk.h"

/* Packets that were counted are given back in steps of so many bytes. */
#define RELEASE_BYTES ((uint64_t)4 << 20)

static uint64_t summary_release(const struct ky_stream *stream, uint64_t from, uint64_t upto)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	/* A packet may claim to be longer than the file; what lies behind that is not ours. */
	if (upto > stream->file.size_bytes)
		upto = stream->file.size_bytes;
	upto &= ~(page - 1);
	if (upto <= from ||
	    (upto < from + RELEASE_BYTES && upto < (stream->file.size_bytes & ~(page - 1))))
		return from;
	ky_stream_give_back(stream, from, upto);
	return upto;
}

/* The next packet: what was lost before it, and its events. 1, 0 at the end, or negative. */
static int count_packet(struct ky_walk *walk, struct ky_loss_tracker *tracker,
			struct ky_stream_summary *summary, uint64_t *counts, struct kymo_error *err)
{
	struct ky_loss loss;
	int ret = ky_walk_next(walk, err);

	if (ret <= 0)
		return ret;
	summary->packets++;
	if (ky_loss_tracker_packet(tracker, summary->stream, walk->packet, &loss)) {
		summary->lost_events += loss.events;
		summary->lost_packets += loss.packets;
		if (ky_vec_push(&summary->losses, loss) < 0)
			return ky_error_nomem(err);
	}
	ret = ky_decoder_count(walk->decoder, counts, &summary->begin_ns, &summary->end_ns, err);
	if (ret < 0)
		return ky_walk_error(walk, err);
	ret = ky_walk_leave(walk, err);
	return ret < 0 ? ret : 1;
}

static int keep_damage(struct ky_stream_summary *summary, const struct kymo_error *damage,
		       uint64_t skipped_bytes)
{
	struct ky_loss loss = {
		.stream = summary->stream,
		.begin_ns = INT64_MIN,
		.end_ns = INT64_MIN,
		.damage = damage,
		.skipped_bytes = skipped_bytes,
	};

	if (ky_loss_keep(&loss) < 0)
		return KYMO_E_MEMORY;
	if (ky_vec_push(&summary->losses, loss) == 0)
		return KYMO_OK;
	ky_loss_drop(&loss);
	return KYMO_E_MEMORY;
}

static int summary_count_packets(struct ky_walk *walk, struct ky_stream_summary *summary,
				 uint64_t *counts, bool (*stop)(void), struct kymo_error *err)
{
	struct ky_loss_tracker tracker;
	uint64_t released = 0, skipped;
	int ret = 1;

	ky_loss_tracker_init(&tracker);
	while (ret > 0) {
		if (stop && stop())
			return ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
		ret = count_packet(walk, &tracker, summary, counts, err);
		if (ret < 0 && ky_walk_recover(walk, err, &skipped)) {
			ret = 1;
			summary->damages++;
			summary->skipped_bytes += skipped;
			if (keep_damage(summary, err, skipped) < 0)
				return ky_error_nomem(err);
		}
		/* Not ->next_bytes: a cut packet ends where the file ends. */
		released = summary_release(summary->stream, released, walk->at_bytes);
	}
	return ret;
}

/* Of many streams, each may be too short for a step; together they are not. */
static void release_all(const struct ky_stream *stream)
{
	ky_stream_give_back(stream, 0, stream->file.size_bytes);
}

int ky_stream_summarize(const struct ky_stream *stream, struct ky_stream_summary *summary,
			uint64_t *counts, bool (*stop)(void), struct kymo_error *err)
{
	const struct ky_trace_class *trace = stream->trace->cls;
	uint64_t before = 0, after = 0;
	struct kymo_error own;
	struct ky_walk walk;
	int ret;

	if (!err)
		err = &own;
	*summary = (struct ky_stream_summary){
		.stream = stream, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
	if (!stream->file.data)
		return KYMO_OK;
	ret = ky_walk_init(&walk, stream, err);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < trace->events.len; i++)
		before += counts[i];
	ret = summary_count_packets(&walk, summary, counts, stop, err);
	for (size_t i = 0; i < trace->events.len; i++)
		after += counts[i];
	summary->events = after - before;
	ky_walk_fini(&walk);
	release_all(stream);
	return ret;
}

/* What a packet's entry tells of losses. */
static struct ky_packet packet_of(const struct ky_stream *stream,
				  const struct ky_packet_entry *entry)
{
	return (struct ky_packet){
		.stream_class = stream->cls,
		.has_discarded = entry->has_discarded,
		.discarded = entry->discarded,
		.has_sequence = entry->has_sequence,
		.sequence = entry->sequence,
		.end_ns = entry->has_times ? entry->end_ns : INT64_MIN,
	};
}

static int survey_losses(const struct ky_packet_list *packets, struct ky_stream_summary *summary)
{
	struct ky_loss_tracker tracker;
	struct ky_loss loss;

	ky_loss_tracker_init(&tracker);
	if (!summary->stream->cls)
		return KYMO_OK;
	ky_vec_foreach(packets, entry) {
		struct ky_packet packet = packet_of(summary->stream, entry);

		if (!ky_loss_tracker_packet(&tracker, summary->stream, &packet, &loss))
			continue;
		summary->lost_events += loss.events;
		summary->lost_packets += loss.packets;
		if (ky_vec_push(&summary->losses, loss) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

int ky_stream_survey(const struct ky_stream *stream, struct ky_stream_summary *summary,
		     struct kymo_error *err)
{
	struct ky_packet_list packets = KY_VEC_INIT;
	int ret;

	*summary = (struct ky_stream_summary){
		.stream = stream, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
	if (!stream->file.data)
		return KYMO_OK;
	ret = ky_stream_packets(stream, &packets, err);
	summary->packets = packets.len;
	if (ret != KYMO_E_MEMORY &&
	    (survey_losses(&packets, summary) < 0 ||
	     ky_packets_range(stream, &packets, &summary->begin_ns, &summary->end_ns) < 0))
		ret = ky_error_nomem(err);
	ky_vec_fini(&packets);
	release_all(stream);
	return ret;
}

void ky_stream_summary_fini(struct ky_stream_summary *summary)
{
	ky_vec_foreach(&summary->losses, loss)
		ky_loss_drop(loss);
	ky_vec_fini(&summary->losses);
}
