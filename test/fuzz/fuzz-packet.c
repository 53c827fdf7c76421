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

#include "ctf/tsdl.h"
#include "flow/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ALIASES                                                                   \
	"/* CTF 1.8 */ typealias integer { size = 8; align = 8; } := u8;\n"       \
	"typealias integer { size = 16; align = 8; } := u16;\n"                   \
	"typealias integer { size = 32; align = 8; } := u32;\n"                   \
	"typealias integer { size = 64; align = 8; } := u64;\n"                   \
	"typealias integer { size = 8; align = 8; encoding = UTF8; } := char8;\n" \
	"trace { major = 1; minor = 8; byte_order = le;\n"
#define CLOCK "clock { name = c; freq = 999999937; offset = 12345; };\n"
#define SIZES \
	"u32 content_size; u32 packet_size; u32 events_discarded; u8 packet_seq_num; u8 cpu_id;"

static const char *const metadata[] = {
	/* Headers of its own, and all kinds of fields. */
	ALIASES "packet.header := struct { u8 stream_id; }; };\n" CLOCK
		"stream { id = 1; packet.context := struct { " SIZES " string _where; };\n"
		"event.header := struct { u8 id; integer { size = 16; align = 8; "
		"map = clock.c.value; } timestamp; };\n"
		"event.context := struct { u8 _n; u8 _list[_n]; }; };\n"
		"event { name = all; id = 0; stream_id = 1; fields := struct {\n"
		"integer { size = 3; align = 1; base = 2; } b; integer { size = 29; align = 1; "
		"signed = true; } i; string s; u32 n; u16 seq[n]; struct { } nothing[n];\n"
		"enum : u8 { one = 1, two = 2 ... 9, ten = 5 } tag; variant <tag> { u8 one; "
		"struct { string t; } two; u64 ten[2]; } v;\n"
		"floating_point { exp_dig = 11; mant_dig = 53; align = 32; } d;\n"
		"char8 text[5]; u8 len; char8 more[len]; struct { u8 a; string b; } deep[2][2];\n"
		"integer { size = 100; align = 1; } big; }; };\n"
		"event { name = small; id = 1; stream_id = 1; context := struct { u8 c; };\n"
		"fields := struct { integer { size = 64; align = 64; base = 16; } x; }; };\n"
		"event { name = none; id = 2; stream_id = 1; };\n",
	/* LTTng's large header and fixed sizes: the short ways. */
	ALIASES
	"packet.header := struct { u8 stream_id; }; };\n" CLOCK
	"stream { id = 1; packet.context := struct { " SIZES " };\n"
	"event.header := struct { enum : u16 { compact = 0 ... 65534, extended = 65535 } id;\n"
	"variant <id> { struct { integer { size = 32; align = 8; map = clock.c.value; } "
	"timestamp; } compact; struct { u32 id; integer { size = 64; align = 8; "
	"map = clock.c.value; } timestamp; } extended; } v; } align(8);\n"
	"event.context := struct { u32 _tid; char8 _comm[16]; }; };\n"
	"event { name = fixed; id = 0; stream_id = 1; fields := struct { u64 a; u8 b[3]; "
	"char8 t[4]; }; };\n"
	"event { name = str; id = 1; stream_id = 1; fields := struct { string s; u32 n; }; };\n"
	"event { name = far; id = 70000; stream_id = 1; fields := struct { u8 n; u32 q[n]; }; "
	"};\n",
	/* The compact header, without packet sizes: one packet per file. */
	ALIASES "};\n" CLOCK
		"stream { event.header := struct { enum : integer { size = 5; align = 1; } "
		"{ compact = 0 ... 30, extended = 31 } id;\n"
		"variant <id> { struct { integer { size = 27; align = 1; map = clock.c.value; } "
		"timestamp; } compact; struct { u32 id; integer { size = 64; align = 8; "
		"map = clock.c.value; } timestamp; } extended; } v; } align(8); };\n"
		"event { name = fixed; id = 0; fields := struct { u32 a; }; };\n"
		"event { name = str; id = 1; fields := struct { string s; }; };\n"
		"event { name = nothing; id = 2; };\n",
};

#define N_METADATA (sizeof(metadata) / sizeof(metadata[0]))

struct run {
	struct ky_trace trace;
	struct ky_stream stream;
	struct ky_decoder *decoder;
	struct ky_values values;
	struct ky_text *text;
	uint64_t counts[16];
};

static struct ky_trace_class *trace_class(unsigned int number)
{
	static struct ky_trace_class *classes[N_METADATA];
	struct kymo_error err;

	if (!classes[number] && ky_metadata_read(metadata[number], strlen(metadata[number]),
						 &classes[number], &err) < 0)
		abort();
	return classes[number];
}

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
	static const struct ky_text_options options = {.clock_gmt = true};
	static int null_fd = -1;
	struct run run = {.stream = {.file = {.path = (char *)"fuzz"}, .name = "fuzz"}};

	if (null_fd < 0)
		null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (size < 1 || size > 65536)
		return 0;
	run.trace.cls = trace_class(data[0] % N_METADATA);
	run.stream.trace = &run.trace;
	run.decoder = ky_decoder_new(run.trace.cls);
	run.text = ky_text_new(null_fd, &options);
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
