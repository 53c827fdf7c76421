/* SPDX-License-Identifier: MIT */
/* kymo mark: one mark into everything that records, so that files on different clocks can be joined by it. */
#include "cli/terminal/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mark.h"
#include "base/strbuf.h"
#include "cli/recording/recordings.h"
#include "kernel/tracefs/tracefs.h"

#define TEXT_MAX     512
#define ANSWER_S     5
#define SYSLOG	     "/dev/log"
#define NOTICE_OF_US "<13>kymo: " /* facility user, level notice */

struct mark_options {
	int unused;
};

struct mark {
	const char *text; /* of the user */
	char line[KY_MARK_BYTES + TEXT_MAX];
	int64_t ns;
	unsigned int n;
};

/* ---- the places --------------------------------------------------------------------------- */

static void cmd_mark_done(struct mark *mark, const char *where, const char *name)
{
	mark->n++;
	fprintf(stderr, "Mark: %s", where);
	if (name)
		ky_cli_put_text(stderr, name);
	fputc('\n', stderr);
}

static void cmd_mark_kernel(struct mark *mark)
{
	struct ky_tracefs fs;
	struct kymo_error err;
	int fd;

	if (ky_tracefs_open(&fs, &err) < 0)
		return;
	fd = openat(fs.fd, "trace_marker", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, mark->line, strlen(mark->line)) == (ssize_t)strlen(mark->line))
		cmd_mark_done(mark, "trace_marker of the kernel", NULL);
	if (fd >= 0)
		close(fd);
	ky_tracefs_close(&fs);
}

static void cmd_mark_syslog(struct mark *mark)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SYSLOG};
	struct ky_strbuf line = KY_STRBUF_INIT;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ky_strbuf_addf(&line, NOTICE_OF_US "%s", mark->line);
	if (fd >= 0 && !ky_strbuf_failed(&line) &&
	    sendto(fd, line.data, line.len, MSG_DONTWAIT, (const struct sockaddr *)&address,
		   sizeof(address)) == (ssize_t)line.len)
		cmd_mark_done(mark, "the system's log", NULL);
	if (fd >= 0)
		close(fd);
	ky_strbuf_fini(&line);
}

static int cmd_mark_recording(void *data, const struct ky_control_socket_place *place)
{
	struct ky_control_socket_message request = {.len = 0}, answer;
	struct mark *mark = data;
	char ns[32];

	snprintf(ns, sizeof(ns), "%" PRId64, mark->ns);
	ky_control_socket_add(&request, "mark");
	ky_control_socket_add(&request, ns);
	ky_control_socket_add(&request, mark->text);
	if (ky_control_socket_ask(place, &request, ANSWER_S, &answer, NULL) == KYMO_OK)
		cmd_mark_done(mark, "recording ", ky_control_socket_name(place->path));
	return KYMO_OK;
}

static int run_mark(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct mark mark = {.text = args[0]};
	struct kymo_error err;
	struct timespec now;

	(void)data;
	(void)n_args;
	if (!*mark.text || strlen(mark.text) >= TEXT_MAX || strpbrk(mark.text, "\n\r"))
		return ky_cli_usage(command, "TEXT is a line of 1 to %d bytes", TEXT_MAX - 1);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	mark.ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	ky_mark_put(mark.line, sizeof(mark.line), mark.ns, mark.text);
	/* The kernel first, as its clock is the finest. */
	cmd_mark_kernel(&mark);
	(void)ky_control_socket_each(cmd_mark_recording, &mark);
	cmd_mark_syslog(&mark);
	if (mark.n) {
		ky_cli_put_text(stdout, mark.line);
		putchar('\n');
		return KY_EXIT_OK;
	}
	ky_error_set(
		&err, KYMO_E_NOT_FOUND,
		"cannot make the mark: no recording of yours runs, and neither trace_marker nor " SYSLOG
		" can be written");
	ky_error_hint(&err, "try it as root");
	return ky_cli_error(&err);
}

static const struct ky_option_def option_defs[] = {{0}};

const struct ky_command ky_command_mark = {
	.name = "mark",
	.summary = "write one mark into all recordings, the kernel's trace and the log",
	.is_rare = true,
	.usage = "TEXT",
	.description =
		"Writes the same line to the kernel's trace_marker (for trace-cmd and ftrace's text), "
		"to the system's log (syslog, journald) and, as an event kymo:mark, to each running recording. The line has "
		"the wall time in nanoseconds: kymo-mark NS TEXT.\n\n"
		"A file that has the line can be put on the axis of wall time, whatever its clock is: kymo print --clock-offset "
		"FILE:mark FILE ... shifts its times so that the mark is where it belongs. So files on different clocks are joined.\n\n"
		"The output is the line; the error output names the places that have it. The exit code is 1 when there are none.",
	.examples = "# a kernel trace and a log of the same minute\n"
		    "trace-cmd start -e sched_switch\n"
		    "kymo mark 'test begins'\n"
		    "cat /sys/kernel/tracing/trace >kernel.txt\n"
		    "dmesg >dmesg.txt\n"
		    "kymo print --clock-offset kernel.txt:mark kernel.txt /var/log/syslog\n",
	.see_also = "record print convert",
	.options = option_defs,
	.options_size = sizeof(struct mark_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_mark,
};
