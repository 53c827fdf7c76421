/* SPDX-License-Identifier: MIT */
#include "net/link/ssh.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "os/memory-limit.h"

/* How long ssh may take to end by itself. */
#define END_MS 1000

/* @dir as a word of the shell on the other machine. */
static char *quote(const char *dir)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_addf(&text, "%s", "exec kymo relay --stdio --dir '");
	for (; *dir; dir++)
		ky_strbuf_addf(&text, *dir == '\'' ? "'\\%c'" : "%c", *dir);
	ky_strbuf_addf(&text, "%s", "'");
	if (!ky_strbuf_failed(&text))
		return text.data;
	ky_strbuf_fini(&text);
	return NULL;
}

static void __attribute__((noreturn)) become(int fd, const char *host, const char *command)
{
	sigset_t none;

	ky_memory_limit_child();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Ctrl-C is for the recorder, which still has to send the rest. */
	(void)signal(SIGINT, SIG_IGN);
	if (dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0)
		execlp("ssh", "ssh", "-T", "--", host, command, (char *)NULL);
	_exit(127); /* lint: allow: a child that could not become ssh */
}

int ky_ssh_connect(const char *host, const char *dir, pid_t *pid, struct kymo_error *err)
{
	char *command = quote(dir);
	int fds[2], errnum;

	if (!command)
		return ky_error_nomem(err);
	*pid = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
		*pid = fork();
		if (*pid == 0)
			become(fds[1], host, command);
		errnum = errno;
		close(fds[1]);
		free(command);
		if (*pid > 0)
			return fds[0];
		*pid = 0;
		close(fds[0]);
	} else {
		errnum = errno;
		free(command);
	}
	ky_error_errno(err, errnum, "cannot run ssh");
	return KYMO_E_IO;
}

void ky_ssh_end(pid_t *pid)
{
	if (*pid <= 0)
		return;
	for (int ms = 0; ms < END_MS; ms += 10) {
		if (waitpid(*pid, NULL, WNOHANG) != 0) {
			*pid = 0;
			return;
		}
		usleep(10000);
	}
	kill(*pid, SIGTERM);
	(void)waitpid(*pid, NULL, 0);
	*pid = 0;
}
