/* SPDX-License-Identifier: MIT */
/*
 * Packets of any bytes in CTF 2, written anew as CTF 1.8: what is read from the new packet must be
 * the same events, with the same values and times.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "ctf/lower.h"
#include "ctf/repack.h"
#include "ctf/tsdl.h"
#include "ctf/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Lines of JSON, cut where they are long. */
static const char metadata[] =
	"\x1e"
	"{\"type\":\"preamble\",\"version\":2}"
	"\n"
	"\x1e"
	"{\"type\":\"clock-class\",\"id\":\"c\",\"frequency\":999999937,\"offset-from-origin"
	"\":{\"seconds\":5}}"
	"\n"
	"\x1e"
	"{\"type\":\"data-stream-class\",\"default-clock-class-id\":\"c\",\"packet-context-fi"
	"eld-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"begin\",\"field-"
	"class\":{\"type\":\"variable-length-unsigned-integer\",\"roles\":[\"default-clock-ti"
	"mestamp\"]}}]},\"event-record-header-field-class\":{\"type\":\"structure\",\"member-"
	"classes\":[{\"name\":\"id\",\"field-class\":{\"type\":\"variable-length-unsigned-int"
	"eger\",\"roles\":[\"event-record-class-id\"]}},{\"name\":\"time\",\"field-class\":{"
	"\"type\":\"variable-length-unsigned-integer\",\"roles\":[\"default-clock-timestamp\""
	"]}}]}}"
	"\n"
	"\x1e"
	"{\"type\":\"event-record-class\",\"id\":0,\"name\":\"all\",\"payload-field-class\":{"
	"\"type\":\"structure\",\"member-classes\":[{\"name\":\"n\",\"field-class\":{\"type\""
	":\"variable-length-unsigned-integer\"}},{\"name\":\"list\",\"field-class\":{\"type\""
	":\"dynamic-length-array\",\"minimum-alignment\":32,\"length-field-location\":{\"path"
	"\":[\"n\"]},\"element-field-class\":{\"type\":\"variable-length-signed-integer\"}}},"
	"{\"name\":\"s\",\"field-class\":{\"type\":\"null-terminated-string\",\"encoding\":\""
	"utf-16le\"}},{\"name\":\"len\",\"field-class\":{\"type\":\"fixed-length-unsigned-int"
	"eger\",\"length\":8,\"byte-order\":\"little-endian\"}},{\"name\":\"wide\",\"field-cl"
	"ass\":{\"type\":\"dynamic-length-string\",\"encoding\":\"utf-32be\",\"length-field-l"
	"ocation\":{\"path\":[\"len\"]}}},{\"name\":\"sel\",\"field-class\":{\"type\":\"varia"
	"ble-length-unsigned-integer\"}},{\"name\":\"v\",\"field-class\":{\"type\":\"variant"
	"\",\"selector-field-location\":{\"path\":[\"sel\"]},\"options\":[{\"name\":\"a\",\"s"
	"elector-field-ranges\":[[0,3]],\"field-class\":{\"type\":\"null-terminated-string\","
	"\"encoding\":\"utf-16be\"}},{\"name\":\"b\",\"selector-field-ranges\":[[4,200]],\"fi"
	"eld-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"x\",\"field-clas"
	"s\":{\"type\":\"fixed-length-unsigned-integer\",\"length\":3,\"byte-order\":\"little"
	"-endian\"}},{\"name\":\"y\",\"field-class\":{\"type\":\"fixed-length-unsigned-intege"
	"r\",\"length\":64,\"byte-order\":\"little-endian\",\"alignment\":64}}]}}]}},{\"name"
	"\":\"flag\",\"field-class\":{\"type\":\"fixed-length-boolean\",\"length\":8,\"byte-o"
	"rder\":\"little-endian\"}},{\"name\":\"o\",\"field-class\":{\"type\":\"optional\",\""
	"selector-field-location\":{\"path\":[\"flag\"]},\"field-class\":{\"type\":\"variable"
	"-length-unsigned-integer\"}}}]}}"
	"\n"
	"\x1e"
	"{\"type\":\"event-record-class\",\"id\":1,\"name\":\"small\",\"payload-field-class\""
	":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"r\",\"field-class\":{\"type"
	"\":\"fixed-length-unsigned-integer\",\"length\":32,\"byte-order\":\"little-endian\","
	"\"alignment\":8,\"bit-order\":\"last-to-first\"}},{\"name\":\"k\",\"field-class\":{"
	"\"type\":\"fixed-length-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endi"
	"an\"}},{\"name\":\"blob\",\"field-class\":{\"type\":\"dynamic-length-blob\",\"length"
	"-field-location\":{\"path\":[\"k\"]}}},{\"name\":\"two\",\"field-class\":{\"type\":"
	"\"static-length-array\",\"length\":2,\"element-field-class\":{\"type\":\"structure\""
	",\"member-classes\":[{\"name\":\"m\",\"field-class\":{\"type\":\"fixed-length-unsign"
	"ed-integer\",\"length\":8,\"byte-order\":\"little-endian\"}},{\"name\":\"deep\",\"fi"
	"eld-class\":{\"type\":\"dynamic-length-array\",\"length-field-location\":{\"path\":["
	"\"m\"]},\"element-field-class\":{\"type\":\"static-length-string\",\"length\":4"
	",\"encoding\":\"utf-16le\"}}}]}}}]}}"
	"\n"
	"\x1e"
	"{\"type\":\"event-record-class\",\"id\":2,\"name\":\"none\"}"
	"\n";

struct run {
	struct ky_decoder *decoder, *again;
	struct ky_repacker *repacker;
	struct ky_values values;
	struct ky_strbuf want, got; /* events, as bytes */
};

static struct ky_trace_class *trace, *as;

static void read_models(void)
{
	struct ky_strbuf notes = KY_STRBUF_INIT;
	struct kymo_error err;
	size_t len_bytes;
	char *text;
	bool anew;

	if (ky_metadata_read(metadata, strlen(metadata), &trace, &err) < 0 ||
	    ky_lower_to_tsdl(trace, &text, &len_bytes, &notes, &err) < 0 ||
	    ky_metadata_read(text, len_bytes, &as, &err) < 0 ||
	    ky_same_layout(trace, as, &anew, &err) < 0 || !anew)
		abort();
	free(text);
	ky_strbuf_fini(&notes);
}

static void add_number(struct ky_strbuf *out, uint64_t number)
{
	ky_strbuf_add(out, (const char *)&number, sizeof(number));
}

/* What a value is, whatever its class. */
static void add_value(struct ky_strbuf *out, const struct ky_value *v)
{
	size_t before = out->len;

	switch (v->cls->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		ky_utf8_from(out, v->cls->text.encoding, (const uint8_t *)v->str.data,
			     v->str.len_bytes);
		add_number(out, out->len - before);
		break;
	case KY_FIELD_BLOB:
		for (size_t i = 0; i < v->str.len_bytes; i++)
			add_number(out, (uint8_t)v->str.data[i]);
		break;
	default:
		if (v->cls->kind < KY_FIELD_STRING)
			add_number(out, v->u);
	}
}

/* False when a value cannot be read: then the event is not one to compare. */
static bool add_event(struct run *run, struct ky_strbuf *out, const struct ky_event *event)
{
	size_t before = out->len;

	add_number(out, event->cls->id);
	add_number(out, event->cycles);
	for (int scope = KY_SCOPE_STREAM_CONTEXT; scope < KY_SCOPE_COUNT; scope++) {
		int n = ky_values_decode(&run->values, event, (enum ky_scope)scope, NULL);

		if (n < 0) {
			out->len = before;
			return false;
		}
		for (int i = 0; i < n; i++)
			add_value(out, &run->values.list.data[i]);
	}
	return true;
}

static void read_again(struct run *run, const struct ky_repacked *done)
{
	const struct ky_packet *packet;
	struct ky_event events[5];
	struct kymo_error err;
	int n;

	if (ky_decoder_packet(run->again, done->data, done->size_bytes, 0, &packet, &err) < 0 ||
	    packet->begin_cycles != done->begin_cycles)
		abort();
	while ((n = ky_decoder_next(run->again, events, 5, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			if (!add_event(run, &run->got, &events[i]))
				abort();
		}
	}
	if (n < 0 || run->want.len != run->got.len ||
	    memcmp(ky_strbuf_text(&run->want), ky_strbuf_text(&run->got), run->want.len) != 0)
		abort();
}

static void rewrite(struct run *run, const struct ky_packet *packet)
{
	struct ky_event events[7];
	struct ky_repacked done;
	int n;

	if (ky_repacker_begin(run->repacker, packet, 7, NULL) < 0)
		abort();
	while ((n = ky_decoder_next(run->decoder, events, 7, NULL)) > 0) {
		for (int i = 0; i < n; i++) {
			/* Whatever can be read can be written. */
			if (add_event(run, &run->want, &events[i]) &&
			    ky_repacker_event(run->repacker, &events[i], NULL) != 0)
				abort();
		}
	}
	if (ky_repacker_end(run->repacker, false, &done, NULL) < 0)
		abort();
	read_again(run, &done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ky_packet *packet;
	struct run run = {.want = KY_STRBUF_INIT, .got = KY_STRBUF_INIT};

	if (!trace)
		read_models();
	if (!size || size > 65536)
		return 0;
	run.decoder = ky_decoder_new(trace);
	run.again = ky_decoder_new(as);
	run.repacker = ky_repacker_new(trace, as);
	ky_values_init(&run.values);
	if (!run.decoder || !run.again || !run.repacker)
		abort();
	if (ky_decoder_packet(run.decoder, data, size, 0, &packet, NULL) == KYMO_OK)
		rewrite(&run, packet);
	ky_values_fini(&run.values);
	ky_strbuf_fini(&run.want);
	ky_strbuf_fini(&run.got);
	ky_repacker_free(run.repacker);
	ky_decoder_free(run.again);
	ky_decoder_free(run.decoder);
	return 0;
}
