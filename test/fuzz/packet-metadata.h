/* SPDX-License-Identifier: MIT */
/* Fixed metadata with every kind of field, for the fuzzers of packets. */
#ifndef KY_FUZZ_PACKET_METADATA_H
#define KY_FUZZ_PACKET_METADATA_H

#include <stdlib.h>
#include <string.h>

#include "ctf/tsdl/tsdl.h"

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

/* Pieces of CTF 2; @more begins with a comma, or is empty. */
#define STRUCT(members)	  "{\"type\":\"structure\",\"member-classes\":[" members "]}"
#define MEMBER(name, cls) "{\"name\":\"" name "\",\"field-class\":" cls "}"
#define UINT(bits, more)                                               \
	"{\"type\":\"fixed-length-unsigned-integer\",\"length\":" bits \
	",\"byte-order\":\"little-endian\"" more "}"
#define LEB(more)	       "{\"type\":\"variable-length-unsigned-integer\"" more "}"
#define ROLE(role)	       ",\"roles\":[\"" role "\"]"
#define LENGTH(path)	       "\"length-field-location\":{\"path\":[" path "]}"
#define SELECTOR(path)	       "\"selector-field-location\":{\"path\":[\"" path "\"]}"
#define OPTION(range, cls)     "{\"selector-field-ranges\":[" range "],\"field-class\":" cls "}"
#define VARIANT(path, options) "{\"type\":\"variant\"," SELECTOR(path) ",\"options\":[" options "]}"
#define LIST(path, cls)                                        \
	"{\"type\":\"dynamic-length-array\"," LENGTH(path) "," \
							   "\"element-field-class\":" cls "}"

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
	/* CTF 2: lengths and selectors inside of options, and what only it has. */
	"\x1e{\"type\":\"preamble\",\"version\":2}\n"
	"\x1e{\"type\":\"clock-class\",\"id\":\"c\",\"frequency\":999999937}\n"
	"\x1e{\"type\":\"data-stream-class\",\"default-clock-class-id\":\"c\","
	"\"packet-context-field-class\":" STRUCT(
		MEMBER("total", UINT("16", ROLE("packet-total-length"))) "," MEMBER(
			"content",
			UINT("16", ROLE("packet-content-length"))) "," MEMBER("seq",
									      LEB(ROLE("packet-sequence-number")))) ","
														    "\"event-record-header-field-class\":" STRUCT(MEMBER("id", UINT("8", ROLE("event-record-class-id"))) "," MEMBER("t", LEB(
																														 ROLE(
																															 "default-clock-timestamp")))) "}\n"
																																		       "\x1e{\"type\":\"event-record-class\",\"name\":\"inside\",\"payload-field-class\":" STRUCT(MEMBER("tag", UINT("8",
																																																     "")) "," MEMBER("v", VARIANT("tag", OPTION("[0,3]",
																																																						STRUCT(
																																																							MEMBER("n", UINT("8", "")) "," MEMBER(
																																																								"a",
																																																								LEB(
																																																									"")))) "," OPTION("[4,8]", STRUCT(MEMBER("a", LEB("")) "," MEMBER("n", LEB("")))) "," OPTION("[9,9]", STRUCT(MEMBER("n",
																																																																							    UINT(
																																																																								    "3", "")))))) "," MEMBER("list", LIST("\"v\",\"n\"", LEB(""))) "," MEMBER("text", "{\"type\":\"dynamic-length-string\",\"encoding\":\"utf-16le\"," LENGTH("\"v\",\"n\"") "}") "," MEMBER("where",
																																																																																															     VARIANT("v\",\"n", OPTION("[0,1],[7,7]", LIST("\"tag\"",
																																																																																																					   UINT("1",
																																																																																																						""))) "," OPTION("[2,6],[8,255]",
																																																																																																								 "{\"type\":\"null-terminated-string\"}")))) "}\n"
																																																																																																													     "\x1e{\"type\":\"event-record-class\",\"id\":1,\"name\":\"perhaps\",\"payload-field-class\":" STRUCT(MEMBER(
																																																																																																														     "b",
																																																																																																														     "{\"type\":\"fixed-length-boolean\",\"length\":5,"
																																																																																																														     "\"byte-order\":\"little-endian\"}") "," MEMBER("n",
																																																																																																																				     "{\"type\":\"optional\",\"field-class\":" LEB("") "," SELECTOR(
																																																																																																																					     "b") "}") "," MEMBER("d",
																																																																																																																								  "{\"type\":\"optional\",\"selector-field-ranges\":[[1,20]],"
																																																																																																																								  "\"field-class\":{\"type\":\"dynamic-length-blob\"," LENGTH("\"n\"") "}," SELECTOR("n") "}")) "}\n",
};

#define N_METADATA (sizeof(metadata) / sizeof(metadata[0]))

static inline struct ky_trace_class *trace_class(unsigned int number)
{
	static struct ky_trace_class *classes[N_METADATA];
	struct kymo_error err;

	if (!classes[number] && ky_metadata_read(metadata[number], strlen(metadata[number]),
						 &classes[number], &err) < 0)
		abort();
	return classes[number];
}

#endif
