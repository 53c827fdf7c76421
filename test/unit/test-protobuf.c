/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/export/protobuf.h"

#define assert_bytes(out, ...)                                          \
	do {                                                            \
		static const unsigned char want_[] = {__VA_ARGS__};     \
		assert_false((out)->failed);                            \
		assert_int_equal((out)->len, sizeof(want_));            \
		assert_memory_equal((out)->data, want_, sizeof(want_)); \
		ky_strbuf_clear(out);                                   \
	} while (0)

static void test_scalars(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_pb_uint(&out, 1, 0);
	ky_pb_uint(&out, 1, 150);
	ky_pb_uint(&out, 327, 1);
	assert_bytes(&out, 0x08, 0x00, 0x08, 0x96, 0x01, 0xb8, 0x14, 0x01);
	ky_pb_int(&out, 2, -1);
	assert_bytes(&out, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
	ky_pb_double(&out, 5, 1.0);
	assert_bytes(&out, 0x29, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f);
	ky_strbuf_fini(&out);
	(void)state;
}

static void test_nested(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	size_t outer = ky_pb_begin(&out, 1), inner = ky_pb_begin(&out, 2);

	ky_pb_uint(&out, 3, 4);
	ky_pb_end(&out, inner);
	ky_pb_end(&out, outer);
	assert_bytes(&out, 0x0a, 0x87, 0x80, 0x80, 0x00, 0x12, 0x82, 0x80, 0x80, 0x00, 0x18, 0x04);
	ky_strbuf_fini(&out);
	(void)state;
}

/* Text must be UTF-8, or readers refuse all of it; what is cut is not cut inside a character. */
static void test_text(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	ky_pb_text(&out, 1, "a\xc3\xa4", 3, 10);
	assert_bytes(&out, 0x0a, 0x03, 'a', 0xc3, 0xa4);
	ky_pb_text(&out, 1, "a\xff", 2, 10);
	assert_bytes(&out, 0x0a, 0x84, 0x80, 0x80, 0x00, 'a', 0xef, 0xbf, 0xbd);
	ky_pb_text(&out, 1, "a\xc3\xa4", 3, 1);
	assert_bytes(&out, 0x0a, 0x81, 0x80, 0x80, 0x00, 'a');
	ky_pb_text(&out, 1, "", 0, 10);
	assert_bytes(&out, 0x0a, 0x00);
	ky_strbuf_fini(&out);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
