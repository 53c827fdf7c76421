/* SPDX-License-Identifier: MIT */
/*
 * The only program of a virtual machine: runs /race-ring with each of its arguments (the kernel hands on
 * what follows "--" on its command line), and turns the machine off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char *name)
{
	char *const args[] = {"/race-ring", name, NULL};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("RACE_SHORT", "1", 1);
		execv(args[0], args);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sys", "/sys", "sysfs", 0, NULL))
		printf("cannot mount\n");
	for (int i = 1; i < argc; i++)
		printf("# %s: %d\n", argv[i], run(argv[i]));
	printf("# over\n");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
