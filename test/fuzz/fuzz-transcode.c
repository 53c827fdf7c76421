/* SPDX-License-Identifier: MIT */
/*
 * Packets of any bytes in CTF 2, written anew as CTF 1.8: what is read from the new packet must be
 * the same events, with the same values and times.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/metadata/downgrade.h"
#include "ctf/tsdl/tsdl.h"
#include "same-events.h"

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
	"\n"
	"\x1e"
	"{\"type\":\"event-record-class\",\"id\":3,\"name\":\"more\",\"payload-field-class\":"
	"{\"type\":\"structure\",\"member-classes\":[{\"name\":\"sel\",\"field-class\":{\"typ"
	"e\":\"fixed-length-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endian\"}"
	"},{\"name\":\"v\",\"field-class\":{\"type\":\"variant\",\"selector-field-location\":"
	"{\"path\":[\"sel\"]},\"options\":[{\"name\":\"a b\",\"selector-field-ranges\":[[0,10"
	"0]],\"field-class\":{\"type\":\"structure\",\"member-classes\":[{\"name\":\"n\",\"fi"
	"eld-class\":{\"type\":\"fixed-length-unsigned-integer\",\"length\":8,\"byte-order\":"
	"\"little-endian\"}}]}},{\"selector-field-ranges\":[[101,255]],\"field-class\":{\"typ"
	"e\":\"structure\",\"member-classes\":[{\"name\":\"n\",\"field-class\":{\"type\":\"va"
	"riable-length-unsigned-integer\"}}]}}]}},{\"name\":\"list\",\"field-class\":{\"type"
	"\":\"dynamic-length-array\",\"length-field-location\":{\"path\":[\"v\",\"n\"]},\"ele"
	"ment-field-class\":{\"type\":\"fixed-length-signed-integer\",\"length\":100,\"byte-o"
	"rder\":\"little-endian\"}}},{\"name\":\"bytes\",\"field-class\":{\"type\":\"dynamic-"
	"length-blob\",\"length-field-location\":{\"path\":[\"v\",\"n\"]}}},{\"name\":\"o\","
	"\"field-class\":{\"type\":\"optional\",\"selector-field-location\":{\"path\":[\"sel"
	"\"]},\"selector-field-ranges\":[[7,90],[200,200]],\"field-class\":{\"type\":\"fixed-"
	"length-bit-array\",\"length\":128,\"byte-order\":\"little-endian\",\"bit-order\":\"l"
	"ast-to-first\",\"alignment\":8}}},{\"name\":\"o2\",\"field-class\":{\"type\":\"optio"
	"nal\",\"selector-field-location\":{\"path\":[\"sel\"]},\"selector-field-ranges\":[[0"
	",50]],\"field-class\":{\"type\":\"optional\",\"selector-field-location\":{\"path\":["
	"\"v\",\"n\"]},\"selector-field-ranges\":[[1,2]],\"field-class\":{\"type\":\"dynamic-"
	"length-string\",\"length-field-location\":{\"path\":[\"v\",\"n\"]}}}}},{\"name\":\"f"
	"lag\",\"field-class\":{\"type\":\"fixed-length-boolean\",\"length\":72,\"byte-order"
	"\":\"little-endian\"}},{\"name\":\"q\",\"field-class\":{\"type\":\"fixed-length-floa"
	"ting-point-number\",\"length\":128,\"byte-order\":\"little-endian\",\"bit-order\":\""
	"last-to-first\",\"alignment\":8}}]}}"
	"\n";

struct run {
	struct ky_decoder *decoder;
	struct ky_repacker *repacker;
	struct same_events same;
};

static struct ky_trace_class *trace, *as;

static void read_models(void)
{
	struct ky_downgrade_notes notes = {.renamed = KY_STRBUF_INIT, .added = KY_STRBUF_INIT};
	struct kymo_error err;
	size_t len_bytes;
	char *text;
	bool anew;

	if (ky_metadata_read(metadata, strlen(metadata), &trace, &err) < 0 ||
	    ky_downgrade_to_ctf1(trace, &text, &len_bytes, &notes, &err) < 0 ||
	    ky_metadata_read(text, len_bytes, &as, &err) < 0 ||
	    ky_same_layout(trace, as, &anew, &err) < 0 || !anew)
		abort();
	free(text);
	ky_downgrade_notes_fini(&notes);
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
			if (same_add(&run->same, &run->same.want, &events[i]) &&
			    ky_repacker_event(run->repacker, &events[i], NULL) != 0)
				abort();
		}
	}
	if (ky_repacker_end(run->repacker, false, &done, NULL) < 0)
		abort();
	same_read(&run->same, &done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ky_packet *packet;
	struct run run;

	if (!trace)
		read_models();
	if (!size || size > 65536)
		return 0;
	run.decoder = ky_decoder_new(trace);
	run.repacker = ky_repacker_new(trace, as);
	same_init(&run.same, as, false);
	if (!run.decoder || !run.repacker)
		abort();
	if (ky_decoder_packet(run.decoder, data, size, 0, &packet, NULL) == KYMO_OK)
		rewrite(&run, packet);
	same_fini(&run.same);
	ky_repacker_free(run.repacker);
	ky_decoder_free(run.decoder);
	return 0;
}
