/* SPDX-License-Identifier: MIT */
/* kymo stop: end a recording, and wait until its trace is whole. */
#include "cli/terminal/command.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/daemon/policy-client.h"
#include "cli/recording/record-background.h"
#include "cli/recording/recordings.h"

struct options {
	const char *output;
};

static int cmd_stop_stop(const char *id, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, status, answer;
	struct ky_control_socket_place place;
	const char *log;
	int ret = ky_recordings_find(id, false, &place, err);

	if (!ret)
		ret = ky_recordings_ask(&place, &status, err);
	if (ret < 0)
		return ret;
	ky_control_socket_add(&request, "stop");
	ky_control_socket_add(&request, "wait");
	/* The answer comes when the trace is complete, or says why it is not. */
	ret = ky_control_socket_ask(&place, &request, 0, &answer, err);
	log = ky_recordings_word(&status, "log");
	if (*log)
		ky_background_show_log(log, place.uid);
	if (ret < 0)
		return ret;
	if (!*log) {
		fputs("Stopped: ", stderr);
		ky_cli_put_text(stderr, ky_recordings_word(&status, "output"));
		fputc('\n', stderr);
	}
	return KYMO_OK;
}

/* @err: what looking for one of the user's own recorders has said. */
static int stop_policy(const char *id, const char *output, int ret, struct kymo_error *err)
{
	struct kymo_error of_daemon;
	int asked = ky_policy_stop(id, output, &of_daemon);

	if (asked == KYMO_E_NOT_FOUND && !output)
		return ret;
	*err = of_daemon;
	return asked;
}

static int run_stop(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct kymo_error err;

	const struct options *options = data;
	const char *id = n_args ? args[0] : NULL;
	int ret = options->output ? KYMO_E_NOT_FOUND : cmd_stop_stop(id, &err);

	(void)command;
	/* It can be one that the daemon has for this user. */
	if (ret == KYMO_E_NOT_FOUND)
		ret = stop_policy(id, options->output, ret, &err);
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "For a recording of a policy (kymo record --policy): the directory to create for the trace. Default: the recording's name, "
	 "in the current directory.",
	 offsetof(struct options, output), NULL},
	{0},
};

const struct ky_command ky_command_stop = {
	.name = "stop",
	.summary = "end a recording and wait until its trace is complete",
	.usage = "[OPTIONS] [NAME]",
	.description =
		"Ends a recording and returns when its trace is complete. NAME is the recording's "
		"name, its number, its directory or the last part of the directory (kymo sessions "
		"shows them); it may be left out while only one recording runs. For a recording in "
		"the background, kymo stop prints the recorder's summary.\n\n"
		"A recording of a policy (kymo record --policy --background) is the daemon's. kymo stop ends it, or finds that it has "
		"ended, and copies its trace into a directory of yours.",
	.examples = "# a recording in the background, and its end\n"
		    "kymo record --name web --background -k sched_switch\nkymo stop web\n",
	.see_also = "record sessions ctl snapshot",
	.names_recording = true,
	.options = option_defs,
	.options_size = sizeof(struct options),
	.max_args = 1,
	.run = run_stop,
};
