/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <string.h>

#include "base/error.h"
#include "cli/options/options.h"

struct sample {
	bool all, brief;
	const char *output;
	struct ky_text_list events;
	uint64_t count, size_bytes, time_ns;
};

#define ROW(name_, letter_, kind_, field)                                           \
	{                                                                           \
		.name = (name_), .letter = (letter_), .kind = (kind_), .help = "x", \
		.at = offsetof(struct sample, field)                                \
	}

static const struct ky_option_def defs[] = {
	ROW("all", 'a', KY_OPTION_FLAG, all),	       ROW("brief", 'b', KY_OPTION_FLAG, brief),
	ROW("output", 'o', KY_OPTION_TEXT, output),    ROW("event", 'e', KY_OPTION_LIST, events),
	ROW("count", 0, KY_OPTION_U64, count),	       ROW("size", 's', KY_OPTION_SIZE, size_bytes),
	ROW("time", 't', KY_OPTION_DURATION, time_ns), {0},
};

static void set_defaults(void *options)
{
	((struct sample *)options)->count = 7;
}

static const struct ky_command mixed = {
	.name = "mixed",
	.usage = "ARGS",
	.options = defs,
	.options_size = sizeof(struct sample),
	.defaults = set_defaults,
	.max_args = 3,
};

static const struct ky_command raw = {
	.name = "raw",
	.usage = "COMMAND",
	.options = defs,
	.options_size = sizeof(struct sample),
	.min_args = 1,
	.max_args = -1,
	.raw_args = true,
};

#define PARSE(command, ...)                                                                   \
	char *argv[] = {__VA_ARGS__, NULL};                                                   \
	struct ky_parsed parsed;                                                              \
	struct kymo_error err;                                                                \
	int code = ky_options_parse((command), (int)(sizeof(argv) / sizeof(*argv)) - 1, argv, \
				    &parsed, &err);                                           \
	const struct sample *got = parsed.options;                                            \
	(void)got

static void test_all_forms_of_a_value(void **state)
{
	PARSE(&mixed, "--output", "a", "--size=64k", "-t5ms", "-e", "x", "--event=y", "--count",
	      "0x10");

	assert_int_equal(code, KYMO_OK);
	assert_string_equal(got->output, "a");
	assert_int_equal(got->size_bytes, 65536);
	assert_int_equal(got->time_ns, 5000000);
	assert_int_equal(got->events.len, 2);
	assert_string_equal(got->events.items[0], "x");
	assert_string_equal(got->events.items[1], "y");
	assert_int_equal(got->count, 16);
	assert_int_equal(parsed.n_args, 0);
	assert_null(parsed.args[0]);
	ky_parsed_fini(&mixed, &parsed);
}

static void test_clusters(void **state)
{
	PARSE(&mixed, "-abo", "out", "in");

	assert_int_equal(code, KYMO_OK);
	assert_true(got->all && got->brief);
	assert_string_equal(got->output, "out");
	assert_int_equal(parsed.n_args, 1);
	assert_int_equal(got->count, 7);
	ky_parsed_fini(&mixed, &parsed);
}

static void test_options_mix_with_operands(void **state)
{
	PARSE(&mixed, "one", "-a", "-", "--", "-b");

	assert_int_equal(code, KYMO_OK);
	assert_true(got->all);
	assert_false(got->brief);
	assert_int_equal(parsed.n_args, 3);
	assert_string_equal(parsed.args[1], "-");
	assert_string_equal(parsed.args[2], "-b");
	assert_null(parsed.args[3]);
	ky_parsed_fini(&mixed, &parsed);
}

static void test_raw_operands(void **state)
{
	PARSE(&raw, "-a", "--", "ls", "-b", "--output");

	assert_int_equal(code, KYMO_OK);
	assert_true(got->all);
	assert_false(got->brief);
	assert_int_equal(parsed.n_args, 3);
	assert_string_equal(parsed.args[0], "ls");
	assert_string_equal(parsed.args[2], "--output");
	ky_parsed_fini(&raw, &parsed);
}

static void test_raw_without_dashes(void **state)
{
	PARSE(&raw, "-a", "ls", "--", "-b");

	assert_int_equal(code, KYMO_OK);
	assert_int_equal(parsed.n_args, 3);
	assert_string_equal(parsed.args[1], "--");
	ky_parsed_fini(&raw, &parsed);
}

static void expect_error(const struct ky_command *command, char *word, const char *message,
			 const char *hint)
{
	PARSE(command, word);

	assert_int_equal(code, KYMO_E_INVALID);
	assert_non_null(strstr(err.message, message));
	assert_string_equal(err.hint, hint);
	ky_parsed_fini(command, &parsed);
}

static void test_wrong_use(void **state)
{
	expect_error(&mixed, "--outptu", "unknown option --outptu", "did you mean --output?");
	expect_error(&mixed, "--outptu=x", "unknown option --outptu", "did you mean --output?");
	expect_error(&mixed, "--out", "unknown option --out", "did you mean --output?");
	expect_error(&mixed, "--xyzzy", "unknown option --xyzzy", "");
	expect_error(&mixed, "-z", "unknown option -z", "");
	expect_error(&mixed, "--all=1", "takes no value", "");
	expect_error(&mixed, "--output", "needs a value", "");
	expect_error(&mixed, "-o", "needs a value", "");
	expect_error(&mixed, "--count=1k", "needs a number, not '1k'", "");
	expect_error(&mixed, "--count=", "needs a number", "");
	expect_error(&mixed, "-sx", "needs a size", "");
	expect_error(&mixed, "--time=fast", "needs a duration", "");
	expect_error(&raw, "-a", "an operand is missing", "");
}

static void test_too_many_operands(void **state)
{
	PARSE(&mixed, "1", "2", "3", "4");

	assert_int_equal(code, KYMO_E_INVALID);
	assert_string_equal(err.message, "one operand too many: '4'");
	ky_parsed_fini(&mixed, &parsed);
}

static void test_help_wins(void **state)
{
	PARSE(&raw, "--help", "--nonsense");

	assert_int_equal(code, KYMO_OK);
	assert_true(parsed.help);
	ky_parsed_fini(&raw, &parsed);
}

static void test_help_of_the_traced_command_is_its_own(void **state)
{
	PARSE(&raw, "ls", "--help");

	assert_int_equal(code, KYMO_OK);
	assert_false(parsed.help);
	ky_parsed_fini(&raw, &parsed);
}

static void test_nearest(void **state)
{
	static const char *const names[] = {"print", "report", "record", "info"};

	assert_string_equal(ky_nearest("pirnt", names, 4), "print");
	assert_string_equal(ky_nearest("rec", names, 4), "record");
	assert_string_equal(ky_nearest("inf", names, 4), "info");
	assert_null(ky_nearest("x", names, 4));
	assert_null(ky_nearest("completely", names, 4));
	assert_null(ky_nearest("x", names, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms_of_a_value),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_options_mix_with_operands),
		cmocka_unit_test(test_raw_operands),
		cmocka_unit_test(test_raw_without_dashes),
		cmocka_unit_test(test_wrong_use),
		cmocka_unit_test(test_too_many_operands),
		cmocka_unit_test(test_help_wins),
		cmocka_unit_test(test_help_of_the_traced_command_is_its_own),
		cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
