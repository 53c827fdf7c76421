/* SPDX-License-Identifier: MIT */
/* kymo snapshot: what a flight recorder has in memory becomes a trace. */
#include "cli/terminal/command.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/daemon/policy-client.h"
#include "cli/recording/recordings.h"

struct options {
	const char *output;
	uint64_t recorder;
};

/* As the recorder, which may be in another directory, will understand it. */
static int absolute(const char *path, char to[PATH_MAX], struct kymo_error *err)
{
	size_t len = 0;

	to[0] = 0;
	if (*path != '/') {
		if (!getcwd(to, PATH_MAX))
			return ky_error_errno(err, errno, "the current directory is gone");
		len = strlen(to);
		to[len++] = '/';
	}
	if (strlen(path) >= PATH_MAX - len)
		return ky_error_set(err, KYMO_E_INVALID, "the name of the output is too long");
	memcpy(to + len, path, strlen(path) + 1);
	return KYMO_OK;
}

static uint64_t cmd_snapshot_number(const char *text)
{
	return text ? strtoull(text, NULL, 10) : 0;
}

static void cmd_snapshot_report(const struct ky_control_socket_message *answer)
{
	size_t at = 0;
	const char *path, *events, *bytes, *counted;
	char size[32];

	(void)ky_control_socket_next(answer, &at);
	path = ky_control_socket_next(answer, &at);
	events = ky_control_socket_next(answer, &at);
	bytes = ky_control_socket_next(answer, &at);
	counted = ky_control_socket_next(answer, &at);
	fprintf(stderr, "%" PRIu64 " ", cmd_snapshot_number(events));
	ky_cli_put_text(stderr, counted ? counted : "events");
	fprintf(stderr, ", %s\nTrace: ", ky_format_bytes(size, cmd_snapshot_number(bytes)));
	ky_cli_put_text(stderr, path ? path : "");
	fputc('\n', stderr);
}

static int cmd_snapshot_take(const char *id, const struct options *options, struct kymo_error *err)
{
	const char *output = options->output;
	struct ky_control_socket_message request = {.len = 0}, answer;
	struct ky_control_socket_place place;
	char path[PATH_MAX] = "";
	int ret = options->recorder
			  ? ky_recordings_find_own((pid_t)options->recorder, true, &place, err)
			  : ky_recordings_find(id, true, &place, err);

	if (!ret && output)
		ret = absolute(output, path, err);
	if (ret < 0)
		return ret;
	ky_control_socket_add(&request, "snapshot");
	ky_control_socket_add(&request, path);
	ret = ky_control_socket_ask(&place, &request, 0, &answer, err);
	if (ret == KYMO_OK)
		cmd_snapshot_report(&answer);
	return ret;
}

static int run_snapshot(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	const char *id = n_args ? args[0] : NULL;
	struct kymo_error err, of_daemon;
	int ret;

	if (options->recorder > INT32_MAX || (options->recorder && id))
		return ky_cli_usage(command, "--recorder needs a process ID, and no RECORDING");
	ret = cmd_snapshot_take(id, options, &err);
	/* It can be one that the daemon has for this user. */
	if (ret == KYMO_E_NOT_FOUND && !options->recorder) {
		int asked = ky_policy_snapshot(id, options->output, &of_daemon);

		if (asked == KYMO_E_NOT_FOUND)
			return ky_cli_error(&err);
		ret = asked;
		err = of_daemon;
	}
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Directory to create for the trace; its parent must exist. Default: the recording's "
	 "directory name, followed by '-snapshot-1', '-snapshot-2' and so on.",
	 offsetof(struct options, output), NULL},
	{"recorder", 0, KY_OPTION_U64, "PID",
	 "Instead of RECORDING: the recorder with this process ID, of your own. No other recorder is asked: for programs that "
	 "start recorders.",
	 offsetof(struct options, recorder), NULL},
	{0},
};

const struct ky_command ky_command_snapshot = {
	.name = "snapshot",
	.summary = "write the buffers of a flight recorder as a trace",
	.usage = "[OPTIONS] [RECORDING]",
	.description =
		"A flight recorder, kymo record --overwrite, keeps the newest events in memory. "
		"This command makes a complete trace of these events. The recording goes on, and "
		"so do the programs; the number of snapshots has no limit.\n\n"
		"RECORDING is its name, its number or the directory of its trace (kymo sessions "
		"shows them). It may be left out while only one flight recorder runs. A recorder "
		"answers its user and root. Root's own recordings come before those of other users "
		"with the same name.\n\n"
		"A snapshot also contains events of programs that ended recently (kymo record "
		"--keep-ended), and a new state dump of the kernel (processes, open files).\n\n"
		"The snapshot of a policy's recording (kymo record --policy) is a copy in a directory of yours, NAME-snapshot by default.",
	.examples = "# the events before an error\nkymo snapshot -o what-happened\n"
		    "kymo print what-happened\n\n"
		    "# one of several recordings\nkymo snapshot 4711",
	.is_rare = true,
	.see_also = "record list ctl print",
	.names_recording = true,
	.options = option_defs,
	.options_size = sizeof(struct options),
	.min_args = 0,
	.max_args = 1,
	.run = run_snapshot,
};
