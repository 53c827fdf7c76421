/* SPDX-License-Identifier: MIT */
/* Problem: the machine is busy, and no process stays in top. The program starts a process for each line of its input. */
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>

#define N_LINES 60

int main(void)
{
	char program[] = "/bin/true";
	char *const args[] = {program, NULL};
	char *const environment[] = {NULL};

	for (int i = 0; i < N_LINES; i++) {
		pid_t pid;

		if (posix_spawn(&pid, program, NULL, NULL, args, environment))
			return 1;
		waitpid(pid, NULL, 0);
	}
	return 0;
}
