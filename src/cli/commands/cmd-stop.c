/* SPDX-License-Identifier: MIT */
/* kymo stop: end a recording, and wait until its trace is whole. */
#include "cli/terminal/command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/recording/record-background.h"
#include "cli/recording/recordings.h"

struct options {
	int unused;
};

/* How often a process is looked at where the kernel cannot wait for it (before Linux 5.3). */
#define LOOK_US 20000

/* Wait until process @pid, which is no child of ours, has ended. */
static void wait_for_end(pid_t pid, int fd)
{
	struct pollfd wanted = {fd, POLLIN, 0};

	if (fd < 0) {
		while (pid > 0 && (kill(pid, 0) == 0 || errno == EPERM))
			usleep(LOOK_US);
		return;
	}
	while (poll(&wanted, 1, -1) < 0 && errno == EINTR)
		;
	close(fd);
}

static int stop(const char *id, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, status, answer;
	struct ky_control_socket_place place;
	const char *log;
	int fd = -1, ret;
	pid_t pid;

	ret = ky_recordings_find(id, false, &place, err);
	if (!ret)
		ret = ky_recordings_ask(&place, &status, err);
	if (ret < 0)
		return ret;
	pid = (pid_t)strtol(ky_recordings_word(&status, "pid"), NULL, 10);
	if (pid > 0)
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
	ky_control_socket_add(&request, "stop");
	ret = ky_control_socket_ask(&place, &request, 0, &answer, err);
	if (ret < 0) {
		if (fd >= 0)
			close(fd);
		return ret;
	}
	wait_for_end(pid, fd);
	log = ky_recordings_word(&status, "log");
	if (*log) {
		ky_background_show_log(log);
	} else {
		fputs("Stopped: ", stderr);
		ky_cli_put_text(stderr, ky_recordings_word(&status, "output"));
		fputc('\n', stderr);
	}
	return KYMO_OK;
}

static int run_stop(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct kymo_error err;

	(void)command;
	(void)data;
	return stop(n_args ? args[0] : NULL, &err) < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {{0}};

const struct ky_command ky_command_stop = {
	.name = "stop",
	.summary = "end a recording and wait until its trace is complete",
	.usage = "[NAME]",
	.description =
		"Ends a recording and returns when its trace is complete. NAME is the recording's "
		"name, its number, its directory or the last part of the directory (kymo sessions "
		"shows them); it may be left out while only one recording runs. For a recording in "
		"the background, kymo stop prints the recorder's summary.",
	.examples = "# a recording in the background, and its end\n"
		    "kymo record --name web --background -k sched_switch\nkymo stop web\n",
	.see_also = "record sessions ctl snapshot",
	.names_recording = true,
	.options = option_defs,
	.options_size = sizeof(struct options),
	.max_args = 1,
	.run = run_stop,
};
