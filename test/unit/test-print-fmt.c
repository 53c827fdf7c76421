/* SPDX-License-Identifier: MIT */
/* Also btf.c and constant.c, and all formats of the kernel that runs. */
#include "unit.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "kernel/events/print-fmt.h"
#include "os/file.h"

#define HEAD                                                                   \
	"name: x\nID: 7\nformat:\n"                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"           \
	"\tfield:unsigned long addr;\toffset:8;\tsize:8;\tsigned:0;\n"         \
	"\tfield:int type;\toffset:16;\tsize:4;\tsigned:1;\n"                  \
	"\tfield:u8 flags;\toffset:20;\tsize:1;\tsigned:0;\n"                  \
	"\tfield:unsigned short mode;\toffset:22;\tsize:2;\tsigned:0;\n"       \
	"\tfield:u8 mac[6];\toffset:24;\tsize:6;\tsigned:0;\n"                 \
	"\tfield:u8 ip[4];\toffset:30;\tsize:4;\tsigned:0;\n"                  \
	"\tfield:__data_loc u64[] dma;\toffset:36;\tsize:4;\tsigned:0;\n\n"

static void apply(struct ky_arena *arena, const char *print, struct ky_btf *btf,
		  struct ky_format *format)
{
	char text[4096];
	int len = snprintf(text, sizeof(text), "%sprint fmt: %s\n", HEAD, print);
	char *exact = malloc((size_t)len);

	assert_non_null(exact);
	memcpy(exact, text, (size_t)len);
	assert_int_equal(ky_format_parse(arena, exact, (size_t)len, format, NULL), 0);
	assert_int_equal(ky_print_fmt_apply(arena, exact, (size_t)len, btf, format, NULL), 0);
	free(exact);
}

static void test_bases(void **state)
{
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	apply(&arena,
	      "\"100%% %-*s %08lx \" \"%d mode=%#ho\", 3, \"a,b)\", (unsigned long)(REC->addr), "
	      "REC->type, ((REC->mode))",
	      NULL, &format);
	assert_int_equal(format.fields[0].base, 16);
	assert_int_equal(format.fields[1].base, 0);
	assert_int_equal(format.fields[3].base, 8);
	/* Of a part of a field, or several, nothing is said. */
	apply(&arena, "\"%x %x %x\", REC->addr & 3, f(REC->type), REC->mode + REC->flags", NULL,
	      &format);
	for (int i = 0; i < 4; i++)
		assert_int_equal(format.fields[i].base, 0);
	ky_arena_fini(&arena);
}

static void test_bases_of_arrays(void **state)
{
	static const char *const hexadecimal[] = {
		"\"%pM %pI4\", REC->mac, REC->ip",
		"\"%s\", __print_hex(REC->mac, 6)",
		"\"%s\", __print_hex_str(REC->mac, 6)",
		"\"%02x %02x\", REC->mac[0], REC->mac[1]",
		"\"%*phC\", 6, REC->mac",
		"\"first line\nsecond %pU\", REC->mac",
	};
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	for (size_t i = 0; i < sizeof(hexadecimal) / sizeof(hexadecimal[0]); i++) {
		apply(&arena, hexadecimal[i], NULL, &format);
		assert_int_equal(format.fields[4].base, 16);
		assert_int_equal(format.fields[5].base, 0);
		assert_int_equal(format.fields[6].base, 0);
	}
	apply(&arena,
	      "\"%s %d\", __print_array(__get_dynamic_array(dma), __get_dynamic_array_len(dma) / 8, 8), "
	      "REC->mac[0]",
	      NULL, &format);
	assert_int_equal(format.fields[4].base, 0);
	assert_int_equal(format.fields[6].base, 16);
	ky_arena_fini(&arena);
}

/* A const char * is the address of one of the kernel's texts, which stand before the last line. An escape is left out at the end only. */
static void test_texts(void **state)
{
	static const char text[] =
		"name: x\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:const char * s;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:const char * p;\toffset:16;\tsize:8;\tsigned:0;\n"
		"\tfield:void * v;\toffset:24;\tsize:8;\tsigned:0;\n"
		"\ntexts:\n"
		"0xffffffff8281a585 : \"a text\"\n0xffffffff8281a585 : \"again\"\n0xff00 : \"esc\\nx\"\n"
		"nonsense\n0x17\n0x18 :\n\n0x19 : \"open\n0xff08 : \"b\\n\""
		"\nprint fmt: \"%s %p %s\", REC->s, REC->p, REC->v\n";
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	for (size_t len = sizeof(text) - 1; len > 150; len--) {
		char *exact = malloc(len);

		assert_non_null(exact);
		memcpy(exact, text, len);
		if (ky_format_parse(&arena, exact, len, &format, NULL) == 0)
			assert_int_equal(
				ky_print_fmt_apply(&arena, exact, len, NULL, &format, NULL), 0);
		if (len == sizeof(text) - 1) {
			assert_int_equal(format.fields[0].n_labels, 2);
			assert_string_equal(format.fields[0].labels[0].text, "a text");
			assert_true((uint64_t)format.fields[0].labels[0].value ==
				    0xffffffff8281a585u);
			assert_string_equal(format.fields[0].labels[1].text, "b");
			assert_int_equal(format.fields[1].n_labels + format.fields[2].n_labels, 0);
		}
		free(exact);
	}
	ky_arena_fini(&arena);
}

static void test_labels(void **state)
{
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	apply(&arena,
	      "\"%s %s\", REC->type ? __print_symbolic((unsigned)REC->type, { (-1), \"none, {x}\" }, "
	      "{0x10,\"he\" \"x\"}, { UNKNOWN, \"no\" }, { 0x10, \"again\" }, {3, \"esc\\\"aped\"}) : \"\", "
	      "__print_flags(REC->flags, \"|\", { (1u << 0), \"A\" }, "
	      "{ ( unsigned long)((( gfp_t)(((1UL))) << 3)) | 4, \"CD\" }, { 0x100, \"TOO_WIDE\" })",
	      NULL, &format);
	assert_int_equal(format.fields[1].n_labels, 2);
	assert_string_equal(format.fields[1].labels[0].text, "none, {x}");
	assert_int_equal(format.fields[1].labels[0].value, -1);
	assert_string_equal(format.fields[1].labels[1].text, "hex");
	assert_int_equal(format.fields[1].labels[1].value, 16);
	assert_int_equal(format.fields[2].n_labels, 2);
	assert_string_equal(format.fields[2].labels[1].text, "CD");
	assert_int_equal(format.fields[2].labels[1].value, 12);
	assert_int_equal(format.fields[0].n_labels, 0);
	ky_arena_fini(&arena);
}

/* Cut anywhere, it teaches less, and is no error. */
static void test_cut(void **state)
{
	static const char print[] =
		"\"%lx %s\", (long)REC->addr, __print_flags(REC->flags, \"|\", { 1, "
		"\"A\" }, { (1 << (2)), \"B\\\\\" })";
	char text[sizeof(print)];
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	for (size_t len = 0; len < sizeof(print); len++) {
		ky_arena_init(&arena);
		memcpy(text, print, len);
		text[len] = '\0';
		apply(&arena, text, NULL, &format);
		ky_arena_fini(&arena);
	}
}

static void check_constant(const char *text, struct ky_btf *btf, bool ok, int64_t expected)
{
	int64_t value;

	assert_int_equal(ky_constant_value(text, strlen(text), btf, &value), ok);
	if (ok)
		assert_int_equal(value, expected);
}

static void test_constants(void **state)
{
	char deep[512];

	(void)state;
	check_constant("0x1236", NULL, true, 0x1236);
	check_constant(" ( -1 ) ", NULL, true, -1);
	check_constant("010ULL", NULL, true, 8);
	check_constant("1 << 2 | 1 << 4", NULL, true, 20);
	check_constant("(7 & ~(u32)2) ^ 8", NULL, true, 13);
	check_constant("2 + 3 * 4 - 10 / 5 % 2", NULL, true, 14);
	check_constant("(unsigned long)(1)", NULL, true, 1);
	check_constant("(( gfp_t)((1UL)) << (10))", NULL, true, 1024);
	check_constant("1 / 0", NULL, false, 0);
	check_constant("1 << 64", NULL, false, 0);
	check_constant("NAME", NULL, false, 0);
	check_constant("(NAME)", NULL, false, 0);
	check_constant("12monkeys", NULL, false, 0);
	check_constant("1 2", NULL, false, 0);
	check_constant("(1", NULL, false, 0);
	check_constant("REC->x", NULL, false, 0);
	check_constant("", NULL, false, 0);
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	check_constant(deep, NULL, false, 0);
}

static void test_btf(void **state)
{
	struct ky_btf btf;
	int64_t value;

	(void)state;
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		skip();
	ky_btf_init(&btf, NULL);
	check_constant("TCP_LISTEN", &btf, true, 10);
	check_constant("(PIDTYPE_TGID)", &btf, true, 1);
	check_constant("1 << (IOPRIO_CLASS_RT)", &btf, true, 2);
	assert_false(ky_btf_constant(&btf, "NO_SUCH_CONSTANT", 16, &value));
	assert_false(ky_btf_constant(&btf, "", 0, &value));
	ky_btf_fini(&btf);
}

/* A BTF of three types: an int, enum {A, B = -2}, and a 64-bit one with B = 5 and C. */
static const uint32_t small_types[] = {
	0, 0x01000000, 4, 32, 0, 0x86000002, 4, 1, 7, 3, (uint32_t)-2,
	0, 0x13000002, 8, 3,  5, 0,	     5, 9, 1,
};
static const char small_strings[] = "\0A\0B\0C";

static void ask_small(const uint8_t *bytes, size_t len, bool whole)
{
	int fd = memfd_create("btf", 0);
	struct ky_btf btf;
	char path[64];
	int64_t value;

	assert_int_equal(write(fd, bytes, len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ky_btf_init(&btf, path);
	assert_int_equal(ky_btf_constant(&btf, "A", 1, &value), whole);
	if (whole) {
		assert_int_equal(value, 7);
		assert_true(ky_btf_constant(&btf, "C", 1, &value));
		assert_int_equal(value, INT64_C(0x100000009));
		/* Two constants of one name. */
		assert_false(ky_btf_constant(&btf, "B", 1, &value));
	}
	ky_btf_fini(&btf);
	close(fd);
}

static void test_small_btf(void **state)
{
	uint32_t header[6] = {0x0001eb9f,	    24, 0, sizeof(small_types), sizeof(small_types),
			      sizeof(small_strings)};
	uint8_t bytes[24 + sizeof(small_types) + sizeof(small_strings)];

	(void)state;
	memcpy(bytes, header, 24);
	memcpy(bytes + 24, small_types, sizeof(small_types));
	memcpy(bytes + 24 + sizeof(small_types), small_strings, sizeof(small_strings));
	ask_small(bytes, sizeof(bytes), true);
	for (size_t len = 0; len < sizeof(bytes); len++)
		ask_small(bytes, len, false);
	bytes[24 + 3 * 4 + 3] = 31; /* a kind that nobody knows */
	bytes[24 + 7] = 31;
	ask_small(bytes, sizeof(bytes), false);
}

/* ---- all formats of this kernel ------------------------------------------------------- */

struct totals {
	size_t formats, fields, labels, hex, symbolic, named;
};

static size_t count_text(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void check_format(const char *path, struct ky_btf *btf, struct totals *totals)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_format format;
	struct ky_arena arena;

	assert_int_equal(ky_read_file(-1, path, 1 << 20, &text), 0);
	ky_arena_init(&arena);
	assert_int_equal(ky_format_parse(&arena, ky_strbuf_text(&text), text.len, &format, NULL),
			 0);
	assert_int_equal(
		ky_print_fmt_apply(&arena, ky_strbuf_text(&text), text.len, btf, &format, NULL), 0);
	totals->formats++;
	totals->symbolic += count_text(ky_strbuf_text(&text), "__print_symbolic(REC->");
	for (size_t i = 0; i < format.n_fields; i++) {
		const struct ky_format_field *field = &format.fields[i];

		totals->fields++;
		totals->labels += field->n_labels;
		totals->named += field->n_labels != 0;
		totals->hex += field->base == 16;
		for (size_t k = 0; k < field->n_labels; k++) {
			int64_t value = field->labels[k].value;
			int shift = 64 - 8 * field->size;

			assert_int_equal(field->kind, KY_FORMAT_INT);
			if (field->is_signed)
				assert_true((int64_t)((uint64_t)value << shift) >> shift == value);
			else
				assert_true((uint64_t)value << shift >> shift == (uint64_t)value);
		}
	}
	ky_arena_fini(&arena);
	ky_strbuf_fini(&text);
}

static void test_all_formats(void **state)
{
	struct totals totals = {0};
	struct ky_btf btf;
	glob_t found;

	(void)state;
	if (glob("/sys/kernel/tracing/events/*/*/format", 0, NULL, &found) != 0 ||
	    access(found.gl_pathv[0], R_OK) < 0)
		skip();
	ky_btf_init(&btf, NULL);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_format(found.gl_pathv[i], &btf, &totals);
	printf("# %zu formats, %zu fields, %zu of them with names of values (%zu names), %zu in "
	       "hexadecimal\n",
	       totals.formats, totals.fields, totals.named, totals.labels, totals.hex);
	assert_true(totals.fields > totals.formats);
	assert_true(!totals.symbolic || totals.named * 2 > totals.symbolic);
	ky_btf_fini(&btf);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bases),	    cmocka_unit_test(test_bases_of_arrays),
		cmocka_unit_test(test_labels),	    cmocka_unit_test(test_texts),
		cmocka_unit_test(test_cut),	    cmocka_unit_test(test_constants),
		cmocka_unit_test(test_btf),	    cmocka_unit_test(test_small_btf),
		cmocka_unit_test(test_all_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
