/* SPDX-License-Identifier: MIT */
/* Problem: commits are slow. Each of them syncs the file for 100 bytes, and the device flushes its cache each time. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define N_COMMITS 60

int main(void)
{
	char record[100] = "record";
	int fd = open("commits.log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (int i = 0; i < N_COMMITS; i++) {
		if (write(fd, record, sizeof(record)) < 0 || fsync(fd) < 0) {
			perror("commits.log");
			return 1;
		}
	}
	close(fd);
	return unlink("commits.log") < 0;
}
