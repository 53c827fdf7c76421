/* SPDX-License-Identifier: MIT */
/* The text sink: time stamps under every option, buffering, and errors of the output. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "flow/sinks/text.h"

#define OK(name) KY_TEST_DATA "/ok/traces/" name

static struct kymo_error err;

/* All of trace @path as text; malloc()ed. */
static char *text_of(const char *path, const struct ky_text_options *options)
{
	struct ky_trace_set set;
	struct ky_flow *flow;
	struct ky_batch batch;
	FILE *file = tmpfile();
	struct ky_text *text;
	char *out;
	long size;

	assert_non_null(file);
	assert_int_equal(ky_trace_set_open(&set, &path, 1, NULL, &err), 0);
	assert_int_equal(ky_flow_open_set(&set, &flow, &err), 0);
	text = ky_text_new(fileno(file), options);
	assert_non_null(text);
	while (ky_flow_next(flow, &batch, &err) > 0)
		assert_int_equal(ky_text_batch(text, &batch, &err), 0);
	assert_int_equal(ky_text_flush(text, &err), 0);
	ky_text_free(text);
	ky_flow_close(flow);
	ky_trace_set_close(&set);
	size = lseek(fileno(file), 0, SEEK_END);
	out = calloc(1, (size_t)size + 1);
	assert_non_null(out);
	assert_int_equal(pread(fileno(file), out, (size_t)size, 0), size);
	fclose(file);
	return out;
}

static void check_stamps(const char *path, struct ky_text_options options, const char *first,
			 const char *second)
{
	char *text = text_of(path, &options), *next = strchr(text, '\n') + 1;

	if (strncmp(text, first, strlen(first)) != 0)
		fail_msg("%.80s\nis not\n%s", text, first);
	if (strncmp(next, second, strlen(second)) != 0)
		fail_msg("%.80s\nis not\n%s", next, second);
	free(text);
}

static void stamps(void **state)
{
	const char *trace = OK("index");

	setenv("TZ", "UTC", 1);
	check_stamps(
		trace, (struct ky_text_options){0},
		"[12:26:40.000001000] (+?.\?\?\?\?\?\?\?\?\?) box tick: { cpu_id = 0 }, { n = 0 }\n",
		"[12:26:40.000001100] (+0.000000100) box tick: { cpu_id = 0 }, { n = 1 }\n");
	check_stamps(trace, (struct ky_text_options){.clock_date = true},
		     "[2020-09-13 12:26:40.000001000] (+?", "[2020-09-13 12:26:40.000001100] (+0");
	check_stamps(trace, (struct ky_text_options){.clock_seconds = true, .clock_date = true},
		     "[1600000000.000001000] (+?", "[1600000000.000001100] (+0.000000100) ");
	check_stamps(trace, (struct ky_text_options){.clock_cycles = true},
		     "[00000000000000001000] (+\?\?\?\?\?\?\?\?\?\?\?\?) box",
		     "[00000000000000001100] (+000000000100) box");
	check_stamps(trace, (struct ky_text_options){.no_delta = true}, "[12:26:40.000001000] box",
		     "[12:26:40.000001100] box");
	check_stamps(trace, (struct ky_text_options){.no_delta = true, .clock_cycles = true},
		     "[00000000000000001000] box", "[00000000000000001100] box");
	check_stamps(OK("before-epoch"), (struct ky_text_options){0}, "[-9.999999000] (+?.",
		     "[-9.999998900] (+0.000000100)");
}

static void zones(void **state)
{
	setenv("TZ", "Asia/Kolkata", 1);
	check_stamps(OK("index"), (struct ky_text_options){.clock_date = true},
		     "[2020-09-13 17:56:40.000001000]", "[2020-09-13 17:56:40.");
	check_stamps(OK("index"), (struct ky_text_options){.clock_gmt = true},
		     "[12:26:40.000001000]", "[12:26:40.");
	setenv("TZ", "UTC", 1);
}

static void time_going_back(void **state)
{
	struct ky_text_options options = {.clock_gmt = true};
	char *text = text_of(OK("back-in-time"), &options);

	assert_non_null(strstr(text, "[12:26:40.000001000] (-0.000001200) box tick"));
	free(text);
	options.clock_cycles = true;
	text = text_of(OK("back-in-time"), &options);
	assert_non_null(strstr(text, "[00000000000000001000] (-000000001200) box tick"));
	free(text);
}

/* What babeltrace2 cannot show: time that goes back, and before the epoch. */
static void named_and_coloured_stamps(void **state)
{
	struct ky_text_options options = {
		.clock_gmt = true,
		.names = KY_TEXT_NAMES_CHOSEN | KY_TEXT_NAME_HEADER,
		.fields = KY_TEXT_FIELDS_CHOSEN,
	};
	char *text = text_of(OK("back-in-time"), &options);

	assert_non_null(strstr(text, "\ntimestamp = 12:26:40.000001000, delta = -0.000001200, "
				     "name = tick, { 0 }, { 3 }\n"));
	free(text);
	options.colours = KY_TEXT_COLOURS_BRIGHT;
	options.names = 0;
	check_stamps(
		OK("before-epoch"), options,
		"[\033[1m\033[93m-9.999999000\033[0m] (+?.?\?\?\?\?\?\?\?\?) \033[1m\033[95mtick",
		"[\033[1m\033[93m-9.999998900\033[0m] (+0.000000100) \033[1m\033[95mtick");
}

static void formatted_times(void **state)
{
	struct ky_text_options options = {.clock_gmt = true, .clock_date = true};
	char out[64];

	assert_string_equal(ky_text_time(out, 0, &options), "1970-01-01 00:00:00.000000000");
	assert_string_equal(ky_text_time(out, -1, &options), "-0.000000001");
	assert_string_equal(ky_text_time(out, INT64_MIN, &options), "-9223372036.854775808");
	assert_string_equal(ky_text_time(out, INT64_MAX, &options),
			    "2262-04-11 23:47:16.854775807");
	options.clock_seconds = true;
	assert_string_equal(ky_text_time(out, INT64_MAX, &options), "9223372036.854775807");
}

/* ---- events made here: long and odd ones ------------------------------------------------- */

#define TSDL                                                                    \
	"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };"       \
	"typealias integer { size = 32; align = 8; } := u32;"                   \
	"typealias integer { size = 8; align = 8; encoding = UTF8; } := char8;" \
	"stream { packet.context := struct { string name; string other; }; };"  \
	"event { name = e; fields := struct { string s; u32 n; u32 q[n]; string t; }; };"

/* A trace directory whose packet holds strings of @len bytes each, and a sequence of @n. */
static void write_long_trace(const char *dir, size_t len, uint32_t n)
{
	char path[128], *string = malloc(len + 1);
	FILE *file;

	assert_non_null(string);
	memset(string, '?', len);
	string[len] = '\0';
	snprintf(path, sizeof(path), "%s/metadata", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(TSDL, file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/s", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 3; i++)
		fwrite(string, len + 1, 1, file);
	fwrite(&n, 4, 1, file);
	for (uint32_t i = 0; i < n; i++)
		fwrite(&i, 4, 1, file);
	fwrite(string, len + 1, 1, file);
	fclose(file);
	free(string);
}

/* Lines longer than the buffer, and than a power of two. */
static void long_lines(void **state)
{
	static const size_t lengths[] = {0, 1, 4095, 4096, 70000, 300000};
	struct ky_text_options options = {0};
	char dir[] = "/tmp/kymo-test-text-XXXXXX", path[128];

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t n = (uint32_t)(lengths[i] / 3);
		size_t expected =
			strlen("e: { name = \"\", other = \"\" }, { s = \"\", n = , q = [ ], "
			       "t = \"\" }\n");
		char *text, number[16];

		write_long_trace(dir, lengths[i], n);
		text = text_of(dir, &options);
		expected += lengths[i] * 2 * 4 + (size_t)sprintf(number, "%u", n);
		for (uint32_t k = 0; k < n; k++)
			expected += 2 * (size_t)sprintf(number, "%u", k) + strlen(" [] = ") + !!k;
		assert_int_equal(strlen(text), expected);
		free(text);
	}
	snprintf(path, sizeof(path), "%s/metadata", dir);
	remove(path);
	snprintf(path, sizeof(path), "%s/s", dir);
	remove(path);
	rmdir(dir);
}

static void full_disk(void **state)
{
	const char *path = OK("kinds");
	struct ky_text_options options = {0};
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct ky_trace_set set;
	struct ky_flow *flow;
	struct ky_batch batch;
	struct ky_text *text = ky_text_new(fd, &options);

	assert_true(fd >= 0);
	assert_int_equal(ky_trace_set_open(&set, &path, 1, NULL, &err), 0);
	assert_int_equal(ky_flow_open_set(&set, &flow, &err), 0);
	assert_int_equal(ky_flow_next(flow, &batch, &err), 1);
	assert_int_equal(ky_text_batch(text, &batch, &err), 0);
	assert_int_equal(ky_text_flush(text, &err), KYMO_E_IO);
	assert_non_null(strstr(err.message, "No space left"));
	ky_text_free(text);
	ky_flow_close(flow);
	ky_trace_set_close(&set);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps),
		cmocka_unit_test(zones),
		cmocka_unit_test(time_going_back),
		cmocka_unit_test(formatted_times),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(named_and_coloured_stamps),
	};

	return cmocka_run_group_tests_name("text-sink", tests, NULL, NULL);
}
