/* SPDX-License-Identifier: MIT */
/* kymo doctor: what this machine allows, and what to do about the rest. */
#include "cli/terminal/command.h"

#include <string.h>
#include <unistd.h>

#include "base/foreign.h"
#include "record/doctor/doctor.h"
#include "cli/terminal/json-output.h"

struct doctor_options {
	bool json;
};

static const char *const status_names[] = {
	[KY_CHECK_OK] = "ok",
	[KY_CHECK_WARN] = "warn",
	[KY_CHECK_FAIL] = "fail",
};

static bool recording_possible(const struct ky_doctor *doctor)
{
	for (size_t i = 0; i < doctor->checks.len; i++)
		if (doctor->checks.data[i].status == KY_CHECK_FAIL)
			return false;
	return true;
}

/* @foreign broken at blanks to lines of @width columns, those after the first indented by @indent. */
static void print_wrapped(const char *foreign, int indent, int width)
{
	struct ky_strbuf shown = KY_STRBUF_INIT;
	const char *text;
	int column = 0;

	ky_foreign_adds(&shown, foreign);
	text = ky_strbuf_text(&shown);

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column && column + 1 + len > width) {
			printf("\n%*s", indent, "");
			column = 0;
		} else if (column) {
			putchar(' ');
			column++;
		}
		printf("%.*s", len, text); /* lint: own text: escaped above */
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
	ky_strbuf_fini(&shown);
}

static void cmd_doctor_print_text(const struct ky_doctor *doctor)
{
	static const char *const colours[] = {"\033[32m", "\033[33m", "\033[1;31m"};
	bool colour = ky_cli_colour(stdout);
	int indent = 18, width = ky_cli_columns(stdout) - indent - 1;

	if (width < 30)
		width = 30;
	for (size_t i = 0; i < doctor->checks.len; i++) {
		const struct ky_check *check = &doctor->checks.data[i];

		printf("%s%-4s%s  %-12s", colour ? colours[check->status] : "",
		       status_names[check->status], colour ? "\033[0m" : "", check->name);
		print_wrapped(check->text, indent, width);
		if (check->advice[0]) {
			printf("%*s", indent, "");
			print_wrapped(check->advice, indent, width);
		}
	}
	if (recording_possible(doctor))
		puts("\nkymo record works here.");
	else if (geteuid() != 0)
		puts("\nkymo record does not record the kernel here: see 'fail' above. It records your own programs: "
		     "--user.");
	else
		puts("\nkymo record does not work here: see 'fail' above.");
}

static void cmd_doctor_put_check(const struct ky_check *check, json_t *checks)
{
	json_array_append_new(checks, json_pack("{s:s, s:s, s:o, s:o}", "name", check->name,
						"status", status_names[check->status], "text",
						ky_jansson_text(check->text), "advice",
						ky_jansson_text(check->advice)));
}

static int cmd_doctor_print_json(const struct ky_doctor *doctor, struct kymo_error *err)
{
	json_t *root = json_object(), *checks = json_array();

	for (size_t i = 0; i < doctor->checks.len; i++)
		cmd_doctor_put_check(&doctor->checks.data[i], checks);
	json_object_set_new(root, "recording_possible", json_boolean(recording_possible(doctor)));
	json_object_set_new(root, "checks", checks);
	return ky_cli_put_json(root, 2, err);
}

static int run_doctor(const struct ky_command *command, void *opaque, int n_args, char **args)
{
	const struct doctor_options *options = opaque;
	struct ky_doctor doctor = {0};
	struct kymo_error err;
	int code = KY_EXIT_OK;

	(void)command;
	(void)n_args;
	(void)args;
	ky_doctor_tracing(&doctor);
	ky_doctor_kernel(&doctor);
	ky_doctor_user(&doctor);
	ky_doctor_machine(&doctor);
	if (!recording_possible(&doctor) || doctor.failed_memory)
		code = KY_EXIT_FAIL;
	if (!options->json)
		cmd_doctor_print_text(&doctor);
	else if (cmd_doctor_print_json(&doctor, &err) < 0)
		code = ky_cli_error(&err);
	ky_vec_fini(&doctor.checks);
	return code;
}

static const struct ky_option_def doctor_options[] = {
	{"json", 0, KY_OPTION_FLAG, NULL, "Write JSON.", offsetof(struct doctor_options, json),
	 NULL},
	{0},
};

const struct ky_command ky_command_doctor = {
	.name = "doctor",
	.summary = "check what recording needs on this machine, with advice",
	.usage = "[OPTIONS]",
	.description =
		"Tests everything that recording needs or can use, and prints one line for each "
		"test: ok; warn when recording works, but slower or with something missing; fail "
		"when recording cannot work. Lines with warn and fail have advice.\n\n"
		"The tests use the real kernel: doctor creates a tracefs instance, starts and "
		"removes it, maps its ring buffer, and creates a BPF map.\n\n"
		"The exit code is 0 when recording the kernel is possible here, else 1.",
	.examples = "# before the first recording\nsudo kymo doctor\n\n"
		    "# for a bug report\nsudo kymo doctor --json > doctor.json",
	.see_also = "list record",
	.options = doctor_options,
	.options_size = sizeof(struct doctor_options),
	.min_args = 0,
	.max_args = 0,
	.run = run_doctor,
};
