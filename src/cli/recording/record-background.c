/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "cli/terminal/command.h"
#include "os/file.h"

#define LOG_MAX_BYTES (1u << 20)

/* The new process says that it has begun, or ends. */
static int record_background_wait_for(pid_t pid, int fd)
{
	ssize_t n;
	char byte;
	int status;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	close(fd);
	if (n == 1)
		return KY_EXIT_OK;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return KY_EXIT_FAIL;
	return WIFEXITED(status) ? WEXITSTATUS(status) : KY_EXIT_FAIL;
}

int ky_background_fork(struct ky_background *background)
{
	struct kymo_error err;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0) {
		ky_error_errno(&err, errno, "cannot start in the background");
		return ky_cli_error(&err);
	}
	fflush(stdout);
	pid = fork();
	if (pid > 0) {
		close(fds[1]);
		return record_background_wait_for(pid, fds[0]);
	}
	close(fds[0]);
	if (pid < 0) {
		ky_error_errno(&err, errno, "cannot start in the background");
		close(fds[1]);
		return ky_cli_error(&err);
	}
	/* No terminal, whose end would be this one's. */
	(void)setsid();
	background->ready_fd = fds[1];
	return -1;
}

bool ky_background_begin(struct ky_background *background, const char *log_path)
{
	int null = -1, log = -1;
	bool is_heard;

	if (background->ready_fd < 0)
		return true;
	if (background->is_wanted)
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (background->is_wanted)
		log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(log >= 0 ? log : null, STDERR_FILENO);
		close(null);
	}
	if (log >= 0)
		close(log);
	is_heard = write(background->ready_fd, "!", 1) == 1;
	close(background->ready_fd);
	background->ready_fd = -1;
	return is_heard;
}

/* A recorder of another user names any file: only one of its user's is shown. */
static bool is_users(const char *path, uid_t uid)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid;
}

void ky_background_show_log(const char *log_path, uid_t uid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *line, *rest;

	if (is_users(log_path, uid) &&
	    ky_read_regular(AT_FDCWD, log_path, LOG_MAX_BYTES, &text) == 0 &&
	    !ky_strbuf_failed(&text) && text.len) {
		for (line = strtok_r(text.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			ky_cli_put_text(stderr, line);
			fputc('\n', stderr);
		}
	}
	ky_strbuf_fini(&text);
}
