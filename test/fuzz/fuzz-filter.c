/* SPDX-License-Identifier: MIT */
/*
 * Filter expressions of any bytes, over a fixed trace: no crash, no hang; what compiles gives an
 * answer for every event, and a verdict about a class agrees with its events.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/decode/decode.h"
#include "ctf/tsdl/tsdl.h"
#include "query/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_EVENTS 4

static const char metadata[] =
	"/* CTF 1.8 */\n"
	"trace { major = 1; minor = 8; byte_order = le; };\n"
	"clock { name = c; freq = 1000000000; };\n"
	"stream {\n"
	"  packet.context := struct { integer { size = 8; } cpu_id; };\n"
	"  event.header := struct { integer { size = 8; } id;\n"
	"    integer { size = 8; map = clock.c.value; } timestamp; };\n"
	"  event.context := struct { integer { size = 8; signed = true; } _tid; };\n"
	"};\n"
	"event { name = tick; id = 0; fields := struct {\n"
	"  integer { size = 64; align = 8; signed = true; } _number; string _text;\n"
	"  enum : integer { size = 8; } { idle, busy = 1 ... 3, any = 0 ... 255 } _state; }; };\n"
	"event { name = tock; id = 1; fields := struct {\n"
	"  floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _ratio;\n"
	"  integer { size = 13; } _number; integer { size = 8; align = 8; } _list[2]; }; };\n";

static const uint8_t packet_bytes[] =
	"\1"					   /* cpu_id */
	"\0\5\375\377\377\377\377\377\377\377\377" /* tick at 5, tid -3, number -1 */
	"to\"ck\0\2"				   /* text, state */
	"\1\7\3\0\0\300\77\20\0\11\12"		   /* tock at 7, tid 3, ratio 1.5, 16, [9, 10] */
	"\0\11\0\7\0\0\0\0\0\0\0\0\0";		   /* tick at 9, tid 0, number 7, "", 0 */

static struct ky_trace_class *trace;
static struct ky_event events[MAX_EVENTS];
static int n_events;

static void open_trace(void)
{
	const struct ky_packet *packet;
	struct ky_decoder *decoder;
	struct kymo_error err;

	if (ky_metadata_read(metadata, sizeof(metadata) - 1, &trace, &err) < 0)
		abort();
	decoder = ky_decoder_new(trace);
	if (!decoder || ky_decoder_packet(decoder, packet_bytes, sizeof(packet_bytes) - 1, 0,
					  &packet, &err) < 0)
		abort();
	n_events = ky_decoder_next(decoder, events, MAX_EVENTS, &err);
	if (n_events != 3)
		abort();
	/* The decoder stays: the events point at its packet. */
}

static void evaluate(const struct ky_filter *filter)
{
	for (int i = 0; i < n_events; i++) {
		enum ky_verdict verdict = ky_filter_verdict(filter, 0, events[i].cls);
		bool match = ky_filter_match(filter, 0, &events[i]);

		if (verdict != KY_DEPENDS && match != (verdict == KY_ALWAYS))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ky_trace_class *classes[1];
	struct ky_filter *filter;
	struct kymo_error err;
	char *text;

	if (!trace)
		open_trace();
	text = strndup((const char *)data, size);
	if (!text)
		return 0;
	classes[0] = trace;
	if (ky_filter_compile(text, classes, 1, &filter, &err) == KYMO_OK) {
		evaluate(filter);
		ky_filter_free(filter);
	}
	free(text);
	return 0;
}
