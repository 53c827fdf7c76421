/* SPDX-License-Identifier: MIT */
/* Problem: throughput is low. The program writes a file of 20 KiB byte by byte. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define N_BYTES 20480

int main(void)
{
	int fd = open("export.csv", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (int i = 0; i < N_BYTES; i++) {
		if (write(fd, "x", 1) < 0) {
			perror("export.csv");
			return 1;
		}
	}
	close(fd);
	return unlink("export.csv") < 0;
}
