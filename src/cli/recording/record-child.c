/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/terminal/command.h"

/* The time that the command has to end after the signal. */
#define GRACE_MS 2000

int ky_child_find(const char *name, char *file, size_t size)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(file, size, "%s", name);
		return access(name, X_OK) == 0 ? 0 : errno;
	}
	for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':')) {
		struct stat st;
		int len;

		path += *path == ':';
		len = (int)strcspn(path, ":");
		if (snprintf(file, size, "%.*s/%s", len ? len : 1, len ? path : ".", name) >=
		    (int)size)
			continue;
		if (access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
	}
	return ENOENT;
}

int ky_child_check(const char *name)
{
	char file[PATH_MAX];

	return ky_child_find(name, file, sizeof(file));
}

int ky_child_error(const char *name, int errnum)
{
	struct kymo_error err;

	ky_error_errno(&err, errnum, "cannot run '%s'", name);
	if (errnum == ENOENT)
		ky_error_hint(&err, "check the name, or give its path");
	return ky_cli_error(&err);
}

/* What kymo report asks for. */
static void record_child_obey(void)
{
	const char *file = getenv(KY_CHILD_PID_FILE), *messages = getenv(KY_CHILD_MESSAGES);
	int fd = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd >= 0) {
		dprintf(fd, "%d\n", (int)getpid());
		close(fd);
	}
	fd = messages ? (int)strtol(messages, NULL, 10) : -1;
	if (fd > STDERR_FILENO && dup2(fd, STDERR_FILENO) >= 0)
		close(fd);
	unsetenv(KY_CHILD_PID_FILE);
	unsetenv(KY_CHILD_MESSAGES);
}

/* In the child: wait for the word to go, become the command. */
static void __attribute__((noreturn))
become(const struct ky_child *command, int go_fd, int fail_fd, const sigset_t *mask)
{
	char go, file[PATH_MAX];
	bool is_found = ky_child_find(command->args[0], file, sizeof(file)) == 0;
	int errnum;

	sigprocmask(SIG_SETMASK, mask, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	record_child_obey();
	if (command->files.rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, &command->files);
	if (command->preload && (setenv("LD_PRELOAD", command->preload, 1) < 0 ||
				 setenv("KYMO_CALLS", command->calls, 1) < 0))
		_exit(126);
	/* End of file: the recorder gave up before it began. */
	if (read(go_fd, &go, 1) != 1)
		_exit(127);
	/* The search is over before the recording, which has one execve() then. */
	if (is_found)
		execv(file, command->args);
	execvp(command->args[0], command->args);
	errnum = errno;
	if (write(fail_fd, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

int ky_child_fork(struct ky_child *command, const sigset_t *mask)
{
	int go[2], fail[2];

	if (!command->args)
		return KY_EXIT_OK;
	if (pipe2(go, O_CLOEXEC) < 0)
		return ky_child_error(command->args[0], errno);
	if (pipe2(fail, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return ky_child_error(command->args[0], errno);
	}
	command->pid = fork();
	if (command->pid == 0) {
		close(go[1]);
		become(command, go[0], fail[1], mask);
	}
	close(go[0]);
	close(fail[1]);
	command->go_fd = go[1];
	command->fail_fd = fail[0];
	if (command->pid < 0) {
		command->pid = 0;
		return ky_child_error(command->args[0], errno);
	}
	return KY_EXIT_OK;
}

int ky_child_release(struct ky_child *command)
{
	int errnum = 0;

	if (write(command->go_fd, "!", 1) < 0)
		return errno;
	/* Either exec closes the other end, or the reason comes. */
	while (read(command->fail_fd, &errnum, sizeof(errnum)) < 0 && errno == EINTR)
		;
	return errnum;
}

void ky_child_reap(struct ky_child *command, int flags)
{
	pid_t pid;

	if (!command->pid)
		return;
	do {
		pid = waitpid(command->pid, &command->status, flags);
	} while (pid < 0 && errno == EINTR);
	if (pid == command->pid) {
		command->exited = true;
		command->pid = 0;
	}
}

int ky_child_code(const struct ky_child *command)
{
	return WIFEXITED(command->status) ? WEXITSTATUS(command->status)
					  : 128 + WTERMSIG(command->status);
}

void ky_child_end(struct ky_child *command)
{
	pid_t pid = command->pid;

	if (command->go_fd >= 0)
		close(command->go_fd);
	if (command->fail_fd >= 0)
		close(command->fail_fd);
	command->go_fd = command->fail_fd = -1;
	ky_child_reap(command, WNOHANG);
	if (!command->pid)
		return;
	kill(pid, SIGTERM);
	for (int i = 0; i < GRACE_MS / 10 && command->pid; i++) {
		usleep(10000);
		ky_child_reap(command, WNOHANG);
	}
	if (command->pid)
		fprintf(stderr,
			"kymo: warning: the command (process %d) ignores SIGTERM and still runs\n",
			(int)pid);
}
