/* SPDX-License-Identifier: MIT */
/* How metadata is wrapped: plain text, packets of either byte order, and what is refused. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "ctf/tsdl/tsdl.h"

#define TEXT_LE "/* CTF 1.8 */ trace { byte_order = le; };"
#define TEXT_BE "/* CTF 1.8 */ trace { byte_order = be; };"

/* What is 0 is as it should be: version 1.8, a header of 37 bytes, the sizes that fit. */
struct packet {
	bool big_endian;
	uint32_t content_bits, packet_bits;
	uint8_t uuid, compression, encryption, checksum;
	uint32_t version; /* VERSION(major, minor) */
	uint32_t header_bytes, padding;
};

#define PACKET(...)	      ((struct packet){__VA_ARGS__})
#define VERSION(major, minor) (0x10000u | (major) << 8 | (minor))

static void put32(struct ky_strbuf *out, uint32_t value, bool big)
{
	for (int i = 0; i < 4; i++)
		ky_strbuf_addc(out, (char)(value >> (big ? 24 - 8 * i : 8 * i)));
}

static void put_packet(struct ky_strbuf *out, const struct packet *p, const char *text)
{
	uint32_t header_bytes = p->header_bytes ? p->header_bytes : 37;
	uint32_t bits = 8 * (header_bytes + (uint32_t)strlen(text));
	uint32_t version = p->version ? p->version : VERSION(1, 8);

	put32(out, 0x75d11d57, p->big_endian);
	for (int i = 0; i < 16; i++)
		ky_strbuf_addc(out, (char)p->uuid);
	put32(out, 0, p->big_endian);
	put32(out, p->content_bits ? p->content_bits : bits, p->big_endian);
	put32(out, p->packet_bits ? p->packet_bits : bits + 8 * p->padding, p->big_endian);
	ky_strbuf_addc(out, (char)p->compression);
	ky_strbuf_addc(out, (char)p->encryption);
	ky_strbuf_addc(out, (char)p->checksum);
	ky_strbuf_addc(out, (char)(version >> 8));
	ky_strbuf_addc(out, (char)version);
	if (header_bytes == 44) {
		ky_strbuf_add(out, "\0\0", 3);
		put32(out, 44 * 8, p->big_endian);
	}
	ky_strbuf_adds(out, text);
	for (uint32_t i = 0; i < p->padding; i++)
		ky_strbuf_addc(out, '\0');
}

static struct kymo_error err;

/* From a block of exactly that size, so that sanitizers see any byte too far. */
static int read_bytes(const void *data, size_t size)
{
	struct ky_trace_class *trace;
	void *copy = malloc(size ? size : 1);
	int ret;

	if (size)
		memcpy(copy, data, size);
	ret = ky_metadata_read(copy, size, &trace, &err);
	free(copy);
	if (ret == 0)
		ky_trace_class_free(trace);
	return ret;
}

static int read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static int read_packet(struct packet packet, const char *text)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret;

	put_packet(&out, &packet, text);
	ret = read_bytes(out.data, out.len);
	ky_strbuf_fini(&out);
	return ret;
}

static void test_plain(void **state)
{
	assert_int_equal(read_text(TEXT_LE), 0);
	assert_int_equal(read_text(" \r\n\t" TEXT_BE "\r\n"), 0);
	/* Zeros behind the text are padding, in the midst of it they are damage. */
	assert_int_equal(read_bytes(TEXT_LE "\0\0\0", sizeof(TEXT_LE) + 3), 0);
	assert_int_equal(read_bytes(TEXT_LE "\0;", sizeof(TEXT_LE) + 1), KYMO_E_FORMAT);
	assert_int_equal(err.line, 1);
}

static void test_signature(void **state)
{
	assert_int_equal(read_text(""), KYMO_E_FORMAT);
	assert_string_equal(err.message, "the metadata is empty");
	assert_int_equal(read_text("trace { byte_order = le; };"), KYMO_E_FORMAT);
	assert_int_equal(read_text("/* CTF 1.9 */"), KYMO_E_UNSUPPORTED);
	assert_int_equal(read_text("/* CTF 1.88 */"), KYMO_E_UNSUPPORTED);
	assert_int_equal(read_text("/* CTF 1 */"), KYMO_E_UNSUPPORTED);
	assert_int_equal(read_text("/* CTF 1.8"), KYMO_E_FORMAT);
}

static void test_one_packet(void **state)
{
	assert_int_equal(read_packet(PACKET(), TEXT_LE), 0);
	assert_int_equal(read_packet(PACKET(.big_endian = true), TEXT_BE), 0);
	assert_int_equal(read_packet(PACKET(.padding = 1000), TEXT_LE), 0);
	/* Packets need no signature in the text: they have a version of their own. */
	assert_int_equal(read_packet(PACKET(), "trace { byte_order = le; };"), 0);
	assert_int_equal(read_packet(PACKET(.big_endian = true), TEXT_LE), KYMO_E_FORMAT);
}

static void test_text_across_packets(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	size_t len;
	char *text;

	put_packet(&out, &PACKET(.padding = 7), "/* CTF 1.8 */ trace { byte_or");
	put_packet(&out, &PACKET(), "");
	put_packet(&out, &PACKET(.padding = 3), "der = le; };");
	assert_int_equal(read_bytes(out.data, out.len), 0);
	assert_int_equal(ky_metadata_text(out.data, out.len, &text, &len, &err), 0);
	assert_string_equal(text, TEXT_LE);
	assert_int_equal(len, strlen(TEXT_LE));
	free(text);
	/* The padding of the last packet may be missing; one byte too many does no harm. */
	assert_int_equal(read_bytes(out.data, out.len - 3), 0);
	assert_int_equal(read_bytes(out.data, out.len - 4), KYMO_E_FORMAT);
	ky_strbuf_addc(&out, 'x');
	assert_int_equal(read_bytes(out.data, out.len), 0);
	ky_strbuf_addc(&out, 'x');
	assert_int_equal(read_bytes(out.data, out.len), KYMO_E_FORMAT);
	assert_int_equal(err.offset, out.len - 2);
	ky_strbuf_fini(&out);
}

static void test_bad_headers(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	assert_int_equal(read_packet(PACKET(.version = VERSION(0, 0)), TEXT_LE), KYMO_E_FORMAT);
	assert_int_equal(read_packet(PACKET(.version = VERSION(1, 9)), TEXT_LE), KYMO_E_FORMAT);
	assert_int_equal(read_packet(PACKET(.compression = 1), TEXT_LE), KYMO_E_UNSUPPORTED);
	assert_int_equal(read_packet(PACKET(.encryption = 1), TEXT_LE), KYMO_E_UNSUPPORTED);
	assert_int_equal(read_packet(PACKET(.checksum = 1), TEXT_LE), KYMO_E_UNSUPPORTED);
	assert_int_equal(read_packet(PACKET(.content_bits = 36 * 8), TEXT_LE), KYMO_E_FORMAT);
	assert_int_equal(read_packet(PACKET(.content_bits = 37 * 8 + 1), TEXT_LE), KYMO_E_FORMAT);
	assert_int_equal(read_packet(PACKET(.content_bits = 800, .packet_bits = 792), TEXT_LE),
			 KYMO_E_FORMAT);
	assert_int_equal(
		read_packet(PACKET(.content_bits = 0xfffffff8, .packet_bits = 0xfffffff8), TEXT_LE),
		KYMO_E_FORMAT);
	put_packet(&out, &PACKET(), "/* CTF 1.8 */");
	put_packet(&out, &PACKET(.uuid = 1), "trace { byte_order = le; };");
	assert_int_equal(read_bytes(out.data, out.len), KYMO_E_FORMAT);
	assert_int_equal(err.offset, 37 + 13);
	ky_strbuf_fini(&out);
}

/* Whatever its length, a beginning of good metadata is refused, or read, and never overrun. */
static void test_every_prefix(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	put_packet(&out, &PACKET(.padding = 2), "/* CTF 1.8 */ trace ");
	put_packet(&out, &PACKET(), "{ byte_order = le; };");
	for (size_t len = 0; len < out.len; len++)
		assert_int_not_equal(read_bytes(out.data, len), 0);
	ky_strbuf_fini(&out);
}

#define CTF2_TEXT "\x1e{\"type\":\"preamble\",\"version\":2}\x1e{\"type\":\"data-stream-class\"}"

static void test_ctf2(void **state)
{
	assert_int_equal(read_text(CTF2_TEXT), 0);
	assert_int_equal(read_text(CTF2_TEXT + 1), 0);
	assert_int_equal(read_packet(PACKET(.version = VERSION(2, 0)), CTF2_TEXT), 0);
	assert_int_equal(
		read_packet(PACKET(.version = VERSION(2, 0), .header_bytes = 44), CTF2_TEXT), 0);
	assert_int_equal(read_packet(PACKET(.version = VERSION(2, 0), .header_bytes = 44,
					    .big_endian = true),
				     CTF2_TEXT),
			 0);
	assert_int_equal(
		read_packet(PACKET(.version = VERSION(2, 1), .header_bytes = 44), CTF2_TEXT),
		KYMO_E_FORMAT);
	assert_int_equal(read_packet(PACKET(.version = VERSION(2, 0), .header_bytes = 44), TEXT_LE),
			 KYMO_E_FORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	    cmocka_unit_test(test_signature),
		cmocka_unit_test(test_one_packet),  cmocka_unit_test(test_text_across_packets),
		cmocka_unit_test(test_bad_headers), cmocka_unit_test(test_every_prefix),
		cmocka_unit_test(test_ctf2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
