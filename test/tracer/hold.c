/* SPDX-License-Identifier: MIT */
/*
 * hold FILE PROGRAM ARGS...: runs PROGRAM, and stops it (SIGSTOP) when it has read from a file of that name, before
 * its next instruction. Prints its process id then. SIGCONT makes it go on.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

#if defined(__x86_64__)

/* Is it at the end of a read from a file called @name? */
static int has_read(pid_t pid, const char *name)
{
	struct user_regs_struct regs;
	char path[64], target[4096];
	const char *last;
	ssize_t len;

	check(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0, "registers");
	if (regs.orig_rax != SYS_pread64 || (long)regs.rax < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)regs.rdi);
	len = readlink(path, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = 0;
	last = strrchr(target, '/');
	return last && strcmp(last + 1, name) == 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	check(argc > 2, "usage");
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "start");
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD);
	while (!has_read(pid, argv[1])) {
		check(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0 &&
			      waitpid(pid, &status, 0) == pid && WIFSTOPPED(status),
		      "step");
	}
	check(ptrace(PTRACE_DETACH, pid, NULL, SIGSTOP) == 0, "stop");
	printf("%d\n", pid);
	fflush(stdout);
	check(waitpid(pid, &status, 0) == pid, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#else
int main(void)
{
	return 77;
}
#endif
