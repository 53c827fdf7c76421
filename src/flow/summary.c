/* SPDX-License-Identifier: MIT */
#include "flow/summary.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "flow/loss.h"

/* Packets that were counted are given back in steps of so many bytes. */
#define RELEASE_BYTES ((uint64_t)16 << 20)

static uint64_t release(const struct ky_stream *stream, uint64_t from, uint64_t upto)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	upto &= ~(page - 1);
	if (upto < from + RELEASE_BYTES)
		return from;
	(void)madvise((void *)(uintptr_t)(stream->file.data + from), upto - from, MADV_DONTNEED);
	return upto;
}

/* One packet: what was lost before it, and its events. */
static int count_packet(struct ky_decoder *decoder, const struct ky_packet *packet,
			struct ky_loss_tracker *tracker, struct ky_stream_summary *summary,
			uint64_t *counts, struct kymo_error *err)
{
	struct ky_loss loss;

	summary->packets++;
	if (ky_loss_tracker_packet(tracker, summary->stream, packet, &loss)) {
		summary->lost_events += loss.events;
		summary->lost_packets += loss.packets;
	}
	return ky_decoder_count(decoder, counts, &summary->begin_ns, &summary->end_ns, err);
}

static int count_packets(const struct ky_stream *stream, struct ky_decoder *decoder,
			 struct ky_stream_summary *summary, uint64_t *counts,
			 struct kymo_error *err)
{
	const struct ky_stream_file *file = &stream->file;
	struct ky_loss_tracker tracker;
	const struct ky_packet *packet;
	uint64_t at = 0, released = 0;
	int ret;

	ky_loss_tracker_init(&tracker);
	while (at < file->size_bytes) {
		ret = ky_decoder_packet(decoder, file->data + at, file->size_bytes - at, at,
					&packet, err);
		if (ret < 0) {
			ky_packet_error(stream, at, err);
			return ret;
		}
		ret = count_packet(decoder, packet, &tracker, summary, counts, err);
		if (ret < 0) {
			ky_error_path(err, file->path);
			return ret;
		}
		ret = ky_packet_check_cut(stream, packet, err);
		if (ret < 0)
			return ret;
		at += packet->packet_bits / 8;
		released = release(stream, released, at);
	}
	return KYMO_OK;
}

int ky_stream_summarize(const struct ky_stream *stream, struct ky_stream_summary *summary,
			uint64_t *counts, struct kymo_error *err)
{
	const struct ky_trace_class *trace = stream->trace->cls;
	uint64_t before = 0, after = 0;
	struct ky_decoder *decoder;
	int ret;

	*summary = (struct ky_stream_summary){
		.stream = stream, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
	if (!stream->file.data)
		return KYMO_OK;
	decoder = ky_decoder_new(trace);
	if (!decoder)
		return ky_error_nomem(err);
	for (size_t i = 0; i < trace->events.len; i++)
		before += counts[i];
	ret = count_packets(stream, decoder, summary, counts, err);
	for (size_t i = 0; i < trace->events.len; i++)
		after += counts[i];
	summary->events = after - before;
	ky_decoder_free(decoder);
	return ret;
}
