/* SPDX-License-Identifier: MIT */
/*
 * Packets of any bytes, under fixed metadata with every kind of field: through the decoder (views,
 * counts), values, handles and the text sink. The ways must agree on how many events there are.
 * The first byte chooses between metadata.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flow/sinks/text.h"
#include "packet-metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct ky_trace trace;
	struct ky_stream stream;
	struct ky_decoder *decoder;
	struct ky_values values;
	struct ky_text *text;
	uint64_t counts[16];
};

static void use_event(struct run *run, const struct ky_event *event)
{
	struct ky_handle handle;
	size_t len;

	if (event->begin_bits >= event->end_bits)
		abort();
	for (int scope = 0; scope < KY_SCOPE_COUNT; scope++)
		(void)ky_values_decode(&run->values, event, (enum ky_scope)scope, NULL);
	for (const char *name = "a\0b\0s\0n\0d\0text\0tag\0big\0cpu_id\0where\0comm\0"; *name;
	     name += strlen(name) + 1) {
		if (!ky_handle_find_any(&handle, event->cls, name))
			continue;
		(void)ky_get_u64(event, &handle, 0);
		(void)ky_get_i64(event, &handle, 0);
		(void)ky_get_text(event, &handle, &len);
	}
}

static uint64_t decode_packet(struct run *run)
{
	struct ky_event events[7];
	struct kymo_error err;
	uint64_t sum = 0;
	int n;

	while ((n = ky_decoder_next(run->decoder, events, 7, &err)) > 0) {
		struct ky_batch batch = {
			.stream = &run->stream, .events = events, .n_events = (size_t)n};

		for (int i = 0; i < n; i++)
			use_event(run, &events[i]);
		(void)ky_text_batch(run->text, &batch, &err);
		sum += (uint64_t)n;
	}
	return sum;
}

/* All packets of a file; returns how many events. */
static uint64_t decode_file(struct run *run, const uint8_t *data, size_t size, bool count)
{
	const struct ky_packet *packet;
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
	struct kymo_error err;
	uint64_t sum = 0;
	size_t at = 0;

	while (at < size &&
	       ky_decoder_packet(run->decoder, data + at, size - at, at, &packet, &err) == 0) {
		if (packet->packet_bits < 8 || packet->packet_bits % 8)
			abort();
		if (count)
			(void)ky_decoder_count(run->decoder, run->counts, &begin_ns, &end_ns, &err);
		else
			sum += decode_packet(run);
		if (packet->packet_bits / 8 > size - at)
			break;
		at += packet->packet_bits / 8;
	}
	for (size_t i = 0; count && i < 16; i++)
		sum += run->counts[i];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ky_text_options options[] = {
		{.clock_gmt = true},
		{.clock_gmt = true,
		 .names = KY_TEXT_NAMES_CHOSEN | KY_TEXT_NAMES_ALL,
		 .fields = KY_TEXT_FIELDS_CHOSEN | KY_TEXT_FIELDS_ALL,
		 .colours = KY_TEXT_COLOURS},
	};
	static int null_fd = -1;
	struct run run = {.stream = {.file = {.path = (char *)"fuzz"}, .name = "fuzz"}};

	if (null_fd < 0)
		null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (size < 1 || size > 65536)
		return 0;
	run.trace.cls = trace_class(data[0] % N_METADATA);
	run.stream.trace = &run.trace;
	run.decoder = ky_decoder_new(run.trace.cls);
	run.text = ky_text_new(null_fd, &options[size & 1]);
	ky_values_init(&run.values);
	if (!run.decoder || !run.text)
		abort();
	if (decode_file(&run, data + 1, size - 1, false) !=
	    decode_file(&run, data + 1, size - 1, true))
		abort();
	(void)ky_text_flush(run.text, NULL);
	ky_values_fini(&run.values);
	ky_text_free(run.text);
	ky_decoder_free(run.decoder);
	return 0;
}
