/* SPDX-License-Identifier: MIT */
/*
 * Stream files of any bytes, read in spite of damage: the source and the counting pass must agree on
 * events, losses and damage, come to an end, and never be better off without recovery.
 * The first byte chooses the tracer's mistakes that are put right.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/tsdl/tsdl.h"
#include "flow/graph/summary.h"
#include "store/read/quirks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char metadata[] =
	"/* CTF 1.8 */ typealias integer { size = 8; align = 8; } := u8;\n"
	"typealias integer { size = 16; align = 8; } := u16;\n"
	"typealias integer { size = 32; align = 8; } := u32;\n"
	"trace { major = 1; minor = 8; byte_order = le;\n"
	"uuid = \"30313233-3435-3637-3839-414243444546\";\n"
	"packet.header := struct { u32 magic; u8 uuid[16]; u8 stream_id; }; };\n"
	"clock { name = c; freq = 1000000000; };\n"
	"typealias integer { size = 16; align = 8; map = clock.c.value; } := t16;\n"
	"stream { id = 1; packet.context := struct { t16 timestamp_begin; t16 timestamp_end;\n"
	"u16 content_size; u16 packet_size; u8 packet_seq_num; u8 events_discarded; };\n"
	"event.header := struct { u8 id; integer { size = 8; align = 8; map = clock.c.value; } "
	"timestamp; }; };\n"
	"event { name = a; id = 0; stream_id = 1; fields := struct { u8 n; }; };\n"
	"event { name = s; id = 1; stream_id = 1; fields := struct { string s; }; };\n";

struct totals {
	uint64_t events, damages, skipped_bytes, lost_events, lost_packets;
};

static void read_source(const struct ky_stream *stream, struct totals *totals)
{
	struct ky_flow *flow;
	struct ky_batch batch;
	struct kymo_error err;

	if (ky_source_open(stream, &flow, &err) < 0)
		abort();
	while (ky_flow_next(flow, &batch, &err) > 0) {
		totals->events += batch.n_events;
		if (!batch.loss)
			continue;
		totals->lost_events += batch.loss->events;
		totals->lost_packets += batch.loss->packets;
		totals->damages += batch.loss->damage != NULL;
		totals->skipped_bytes += batch.loss->skipped_bytes;
	}
	ky_flow_close(flow);
}

static uint64_t count(const struct ky_stream *stream, struct ky_stream_summary *summary)
{
	uint64_t counts[2] = {0};
	struct kymo_error err;

	if (ky_stream_summarize(stream, summary, counts, NULL, &err) < 0 && stream->trace->recover)
		abort();
	ky_stream_summary_fini(summary);
	return counts[0] + counts[1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ky_trace_class *cls;
	struct ky_stream_part part = {.path = (char *)"fuzz"};
	struct ky_trace trace = {.recover = true};
	struct ky_stream stream = {.trace = &trace, .name = "fuzz"};
	struct ky_stream_summary summary;
	struct totals totals = {0};
	struct kymo_error err;

	if (!cls && ky_metadata_read(metadata, sizeof(metadata) - 1, &cls, &err) < 0)
		abort();
	if (size < 2 || size > 1 << 16)
		return 0;
	trace.cls = cls;
	trace.quirks = data[0] & 7;
	stream.file.path = part.path;
	stream.file.data = data + 1;
	stream.file.size_bytes = part.size_bytes = size - 1;
	stream.parts.data = &part;
	stream.parts.len = 1;
	read_source(&stream, &totals);
	if (count(&stream, &summary) != totals.events || summary.damages != totals.damages ||
	    summary.skipped_bytes != totals.skipped_bytes ||
	    summary.lost_events != totals.lost_events ||
	    summary.lost_packets != totals.lost_packets)
		abort();
	trace.recover = false;
	if (count(&stream, &summary) > totals.events)
		abort();
	return 0;
}
