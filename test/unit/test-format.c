/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "kernel/tracefs/format.h"
#include "base/strbuf.h"
#include "ring-data.h"

#define HEAD                                                                   \
	"name: x\nID: 7\nformat:\n"                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static int parse(struct ky_arena *arena, const char *text, struct ky_format *format,
		 struct kymo_error *err)
{
	size_t len = strlen(text);
	char *exact = malloc(len ? len : 1);
	int ret;

	assert_non_null(exact);
	memcpy(exact, text, len);
	ret = ky_format_parse(arena, exact, len, format, err);
	free(exact);
	return ret;
}

static void test_switch(void **state)
{
	struct ky_arena arena;
	struct ky_format format;

	(void)state;
	ky_arena_init(&arena);
	ring_format(&arena, "sched_switch", &format);
	assert_int_equal(format.id, 372);
	assert_int_equal(format.n_fields, 7);
	assert_int_equal(format.fixed_bytes, 64);
	assert_int_equal(format.pid_offset, 4);
	assert_string_equal(format.fields[0].name, "prev_comm");
	assert_int_equal(format.fields[0].kind, KY_FORMAT_TEXT);
	assert_int_equal(format.fields[0].elements, 16);
	assert_string_equal(format.fields[3].name, "prev_state");
	assert_int_equal(format.fields[3].kind, KY_FORMAT_INT);
	assert_int_equal(format.fields[3].offset, 32);
	assert_int_equal(format.fields[3].size, 8);
	assert_true(format.fields[3].is_signed);
	ky_arena_fini(&arena);
}

#define PRINT_HEAD                                                             \
	"name: print\nID: 5\nformat:\n"                                        \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"           \
	"\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"

/* What follows to the record's end: of text, a field; of anything else, none. Older kernels write no brackets. */
static void test_open_end(void **state)
{
	static const char *const texts[] = {
		PRINT_HEAD "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n"
			   "\tfield:u32 words[];\toffset:16;\tsize:0;\tsigned:0;\n\n"
			   "print fmt: \"%s\", REC->buf\n",
		PRINT_HEAD "\tfield:char buf;\toffset:16;\tsize:0;\tsigned:0;\n\n"
			   "print fmt: \"%s\", REC->buf\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct ky_format format;
		struct ky_arena arena;

		ky_arena_init(&arena);
		assert_int_equal(ky_format_parse(&arena, texts[i], strlen(texts[i]), &format, NULL),
				 0);
		assert_int_equal(format.n_fields, 2);
		assert_int_equal(format.fixed_bytes, 16);
		assert_int_equal(format.fields[1].kind, KY_FORMAT_REST_TEXT);
		ky_arena_fini(&arena);
	}
}

static void test_dynamic(void **state)
{
	struct ky_arena arena;
	struct ky_format format;

	(void)state;
	ky_arena_init(&arena);
	ring_format(&arena, "sched_process_exec", &format);
	assert_int_equal(format.fields[0].kind, KY_FORMAT_LOC_TEXT);
	assert_string_equal(format.fields[0].name, "filename");
	assert_string_equal(format.fields[0].type, "char");
	assert_false(format.fields[0].is_relative);
	ring_format(&arena, "sys_enter_openat", &format);
	assert_int_equal(format.fields[2].kind, KY_FORMAT_POINTER);
	assert_string_equal(format.fields[2].type, "const char *");
	ky_arena_fini(&arena);
}

static void test_kinds(void **state)
{
	static const char text[] =
		HEAD "\tfield:unsigned long args[6];\toffset:8;\tsize:48;\tsigned:0;\n"
		     "\tfield:u8 mac[6];\toffset:56;\tsize:6;\tsigned:0;\n"
		     "\tfield:struct in6_addr addr;\toffset:62;\tsize:16;\tsigned:0;\n"
		     "\tfield:__rel_loc u64[] stack;\toffset:80;\tsize:4;\tsigned:0;\n"
		     "\tfield:__data_loc cpumask_t mask;\toffset:84;\tsize:4;\tsigned:0;\n"
		     "\tfield:char ACTION[LEN];\toffset:88;\tsize:12;\tsigned:1;\n"
		     "\tfield:char rest[];\toffset:100;\tsize:0;\tsigned:0;\n"
		     "print fmt: \"field:int no;\"\n";
	struct ky_arena arena;
	struct ky_format format;

	(void)state;
	ky_arena_init(&arena);
	assert_int_equal(parse(&arena, text, &format, NULL), 0);
	assert_int_equal(format.n_fields, 7);
	assert_int_equal(format.fields[0].kind, KY_FORMAT_ARRAY);
	assert_int_equal(format.fields[0].element_bytes, 8);
	assert_int_equal(format.fields[0].elements, 6);
	assert_int_equal(format.fields[1].elements, 6);
	assert_int_equal(format.fields[2].kind, KY_FORMAT_ARRAY);
	assert_int_equal(format.fields[2].elements, 16);
	assert_int_equal(format.fields[3].kind, KY_FORMAT_LOC_ARRAY);
	assert_true(format.fields[3].is_relative);
	assert_int_equal(format.fields[3].element_bytes, 8);
	assert_int_equal(format.fields[4].element_bytes, sizeof(long));
	assert_int_equal(format.fields[5].kind, KY_FORMAT_TEXT);
	assert_int_equal(format.fields[5].elements, 12);
	assert_int_equal(format.fields[6].kind, KY_FORMAT_REST_TEXT);
	ky_arena_fini(&arena);
}

static void test_bad(void **state)
{
	static const char *const texts[] = {
		"",
		"name: x\nID: 7\n",
		"ID: 7\n",
		"name: x\nID: 70000\n",
		"name: x\nID: x\n",
		HEAD "\tfield:int a;\n",
		HEAD "\tfield:int a;\toffset:8;\n",
		HEAD "\tfield:int a;\toffset:9000;\tsize:4;\n",
		HEAD "\tfield:int a;\toffset:8;\tsize:99999999999999999999;\n",
		HEAD "\tfield:a;\toffset:8;\tsize:4;\n",
		HEAD "\tfield:;\toffset:8;\tsize:4;\n",
		HEAD "\tfield:int a]\n",
		HEAD "\tfield:int a];\toffset:8;\tsize:4;\n",
		HEAD "\tfield:__data_loc char[] a;\toffset:8;\tsize:8;\tsigned:0;\n",
	};
	struct ky_arena arena;
	struct ky_format format;

	(void)state;
	ky_arena_init(&arena);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct kymo_error err;

		assert_int_equal(parse(&arena, texts[i], &format, &err), KYMO_E_FORMAT);
		assert_true(err.message[0]);
	}
	ky_arena_fini(&arena);
}

static void test_too_many_fields(void **state)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_arena arena;
	struct ky_format format;

	(void)state;
	ky_arena_init(&arena);
	ky_strbuf_adds(&text, HEAD);
	for (int i = 0; i < KY_FORMAT_MAX_FIELDS; i++)
		ky_strbuf_addf(&text, "\tfield:int f%d;\toffset:%d;\tsize:4;\tsigned:1;\n", i, i);
	assert_int_equal(parse(&arena, ky_strbuf_text(&text), &format, NULL), 0);
	ky_strbuf_adds(&text, "\tfield:int one_more;\toffset:8;\tsize:4;\tsigned:1;\n");
	assert_int_equal(parse(&arena, ky_strbuf_text(&text), &format, NULL), KYMO_E_FORMAT);
	ky_strbuf_fini(&text);
	ky_arena_fini(&arena);
}

static void test_page_layout(void **state)
{
	struct ky_page_layout layout;
	size_t len;
	uint8_t *text = ring_data("header_page", &len);

	(void)state;
	assert_int_equal(ky_page_layout_parse((const char *)text, len, &layout, NULL), 0);
	assert_int_equal(layout.time_offset, 0);
	assert_int_equal(layout.commit_offset, 8);
	assert_int_equal(layout.commit_bytes, 8);
	assert_int_equal(layout.data_offset, 16);
	assert_int_equal(ky_page_layout_parse((const char *)text, 60, &layout, NULL),
			 KYMO_E_FORMAT);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch),	    cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_open_end),    cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_bad),	    cmocka_unit_test(test_too_many_fields),
		cmocka_unit_test(test_page_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
