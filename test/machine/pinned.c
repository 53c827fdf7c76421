/* SPDX-License-Identifier: MIT */
/* pinned CPU NAME N: on that CPU, under that name, call getppid() N times. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	cpu_set_t cpus;

	if (argc != 4)
		return 2;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0) {
		perror("sched_setaffinity");
		return 1;
	}
	prctl(PR_SET_NAME, argv[2]);
	for (int i = atoi(argv[3]); i > 0; i--)
		syscall(SYS_getppid);
	return 0;
}
