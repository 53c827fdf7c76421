/* SPDX-License-Identifier: MIT */
/* kymo rotate: the traces of a recording so far become a complete chunk. */
#include "cli/terminal/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/recording/recordings.h"

struct options {
	int unused;
};

static uint64_t cmd_rotate_number(const char *text)
{
	return text ? strtoull(text, NULL, 10) : 0;
}

static void cmd_rotate_report(const struct ky_control_socket_message *answer)
{
	size_t at = 0;
	const char *path, *events, *bytes;
	char size[32];

	(void)ky_control_socket_next(answer, &at);
	path = ky_control_socket_next(answer, &at);
	events = ky_control_socket_next(answer, &at);
	bytes = ky_control_socket_next(answer, &at);
	if (!path || !*path) {
		fputs("No chunk: no traced program ran since the last rotation\n", stderr);
		return;
	}
	fprintf(stderr, "%" PRIu64 " events, %s\n", cmd_rotate_number(events),
		ky_format_bytes(size, cmd_rotate_number(bytes)));
	fputs("Chunk: ", stderr);
	ky_cli_put_text(stderr, path ? path : "");
	fputc('\n', stderr);
}

static int cmd_rotate_run_rotate(const struct ky_command *command, void *data, int n_args,
				 char **args)
{
	struct ky_control_socket_message request = {.len = 0}, answer;
	struct ky_control_socket_place place;
	struct kymo_error err;
	int ret = ky_recordings_find(n_args ? args[0] : NULL, false, &place, &err);

	(void)command;
	(void)data;
	if (ret < 0)
		return ky_cli_error(&err);
	ky_control_socket_add(&request, "rotate");
	ret = ky_control_socket_ask(&place, &request, 0, &answer, &err);
	if (ret < 0)
		return ky_cli_error(&err);
	cmd_rotate_report(&answer);
	return KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {{0}};

const struct ky_command ky_command_rotate = {
	.name = "rotate",
	.summary = "cut a recording: its traces so far become a complete chunk",
	.is_rare = true,
	.usage = "[RECORDING]",
	.description =
		"The traces that the recording has written so far become a chunk: complete traces of their own, which every "
		"reader opens. The chunk moves to OUT/archives/BEGIN-END-NUMBER, and the recording continues in OUT. No event "
		"is lost or in two chunks. kymo print OUT reads all chunks and the present traces as one.\n\n"
		"RECORDING is the recording's name, its number or the directory of its trace (kymo sessions shows them). It may "
		"be left out while one recording runs. kymo record --rotate-size and --rotate-every rotate by themselves; "
		"--keep, --keep-size and --keep-for remove old chunks; --on-rotate runs a command.\n\n"
		"A flight recorder and a raw recording have no chunks. kymo snapshot makes a trace of a flight recorder's events.",
	.examples = "# send away what was recorded so far, while the recording continues\n"
		    "kymo record --name web --background -o web -k sched_switch\n"
		    "kymo rotate web\nkymo report cpu web/archives/*-1\n",
	.see_also = "record sessions stop snapshot",
	.names_recording = true,
	.options = option_defs,
	.options_size = sizeof(struct options),
	.max_args = 1,
	.run = cmd_rotate_run_rotate,
};
