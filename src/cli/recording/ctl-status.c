/* SPDX-License-Identifier: MIT */
#include "cli/recording/ctl-status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/recording/recordings.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"

/* What the recorder says of one CPU, and of one program. */
struct cpu {
	uint32_t number;
	uint64_t events, lost;
	unsigned int fill;
	char group[80]; /* "-": the main buffers */
};

struct program {
	uint32_t pid;
	uint64_t events, lost, unread, bytes;
	int has_ended;
	char group[80]; /* "-": the main buffers */
	const char *name;
};

static bool parse_cpu(const char *text, struct cpu *cpu)
{
	return sscanf(text, "%" SCNu32 " %" SCNu64 " %" SCNu64 " %u %79s", &cpu->number,
		      &cpu->events, &cpu->lost, &cpu->fill, cpu->group) == 5;
}

static bool parse_program(const char *text, struct program *program)
{
	int len = 0;

	if (sscanf(text, "%" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %d %79s %n",
		   &program->pid, &program->events, &program->lost, &program->unread,
		   &program->bytes, &program->has_ended, program->group, &len) < 7 ||
	    !len)
		return false;
	program->name = text + len;
	return true;
}

/* ---- text ------------------------------------------------------------------------------ */

static void print_cpus(const struct ky_control_socket_message *status)
{
	const char *text;
	struct cpu cpu;

	if (!ky_recordings_value(status, "cpu", 0))
		return;
	printf("\n%8s %14s %14s %8s\n", "CPU", "events", "lost", "fill");
	for (unsigned int i = 0; (text = ky_recordings_value(status, "cpu", i)); i++) {
		if (!parse_cpu(text, &cpu))
			continue;
		printf("%8" PRIu32 " %14" PRIu64 " %14" PRIu64 " %6u %%", cpu.number, cpu.events,
		       cpu.lost, cpu.fill);
		if (cpu.group[0] != '-') {
			fputs("  group ", stdout);
			ky_cli_put_text(stdout, cpu.group);
		}
		putchar('\n');
	}
}

static void ctl_status_print_programs(const struct ky_control_socket_message *status)
{
	struct program program;
	char size[32];
	const char *text;

	if (!*ky_recordings_word(status, "programs"))
		return;
	printf("\n%8s %14s %14s %14s %12s  %s\n", "pid", "events", "lost", "in buffers", "written",
	       "program");
	for (unsigned int i = 0; (text = ky_recordings_value(status, "program", i)); i++) {
		if (!parse_program(text, &program))
			continue;
		printf("%8" PRIu32 " %14" PRIu64 " %14" PRIu64 " %14" PRIu64 " %12s  ", program.pid,
		       program.events, program.lost, program.unread,
		       ky_format_bytes(size, program.bytes));
		ky_cli_put_text(stdout, program.name);
		fputs(program.has_ended ? " (ended)" : "", stdout);
		if (program.group[0] != '-') {
			fputs("  group ", stdout);
			ky_cli_put_text(stdout, program.group);
		}
		putchar('\n');
	}
	if (*ky_recordings_word(status, "programs_left_out"))
		printf("%8s %" PRIu64 " more programs\n", "...",
		       ky_recordings_number(status, "programs_left_out"));
}

/* Days and hours, where ky_format_duration() has seconds. */
static const char *format_long(char *out, size_t size, double s)
{
	if (s >= 2 * 86400.0)
		snprintf(out, size, "%.0f days", s / 86400);
	else if (s >= 2 * 3600.0)
		snprintf(out, size, "%.0f hours", s / 3600);
	else
		snprintf(out, size, "%.0f min", s / 60);
	return out;
}

static void print_disk(const struct ky_control_socket_message *status)
{
	uint64_t free = ky_recordings_number(status, "disk_free_bytes");
	uint64_t rate = ky_recordings_number(status, "bytes_per_s");
	char size[32], speed[32], time[32];

	if (!*ky_recordings_word(status, "disk_free_bytes"))
		return;
	printf("\nDisk: %s free", ky_format_bytes(size, free));
	if (rate)
		printf("; %s/s written on average, enough for %s", ky_format_bytes(speed, rate),
		       format_long(time, sizeof(time), (double)free / (double)rate));
	putchar('\n');
}

/* ---- JSON ------------------------------------------------------------------------------ */

static json_t *cpus_json(const struct ky_control_socket_message *status)
{
	json_t *list = json_array();
	const char *text;
	struct cpu cpu;

	for (unsigned int i = 0; (text = ky_recordings_value(status, "cpu", i)); i++)
		if (parse_cpu(text, &cpu))
			json_array_append_new(
				list, json_pack("{s:I, s:I, s:I, s:I, s:s?}", "cpu",
						(json_int_t)cpu.number, "events",
						(json_int_t)cpu.events, "lost",
						(json_int_t)cpu.lost, "fill", (json_int_t)cpu.fill,
						"group", cpu.group[0] != '-' ? cpu.group : NULL));
	return list;
}

static json_t *programs_json(const struct ky_control_socket_message *status)
{
	json_t *list = json_array();
	struct program program;
	const char *text;

	for (unsigned int i = 0; (text = ky_recordings_value(status, "program", i)); i++)
		if (parse_program(text, &program))
			json_array_append_new(
				list,
				json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:s?}", "pid",
					  (json_int_t)program.pid, "name",
					  ky_jansson_text(program.name), "events",
					  (json_int_t)program.events, "lost",
					  (json_int_t)program.lost, "unread",
					  (json_int_t)program.unread, "bytes",
					  (json_int_t)program.bytes, "ended", program.has_ended,
					  "group", program.group[0] != '-' ? program.group : NULL));
	return list;
}

static int ctl_status_print_json(const struct ky_control_socket_place *place,
				 const struct ky_control_socket_message *status,
				 struct kymo_error *err)
{
	static const char *const numbers[] = {"buffer_bytes", "disk_free_bytes", "bytes_per_s",
					      "programs_left_out"};
	json_t *root = ky_recordings_json(place, status);

	json_object_set_new(root, "cpus", cpus_json(status));
	json_object_set_new(root, "program_list", programs_json(status));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (*ky_recordings_word(status, numbers[i]))
			json_object_set_new(
				root, numbers[i],
				json_integer((json_int_t)ky_recordings_number(status, numbers[i])));
	return ky_cli_put_json(root, 1, err);
}

int ky_ctl_print_status(const struct ky_control_socket_place *place, bool json,
			struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, status;
	int ret;

	ky_control_socket_add(&request, "details");
	ret = ky_control_socket_ask(place, &request, 0, &status, err);
	if (ret < 0)
		return ret;
	if (json)
		return ctl_status_print_json(place, &status, err);
	ky_recordings_print_one(place, &status);
	print_cpus(&status);
	ctl_status_print_programs(&status);
	print_disk(&status);
	return KYMO_OK;
}
