/* SPDX-License-Identifier: MIT */
/* Problem: each request takes long. The program looks for its configuration in 40 directories that do not have it. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define N_REQUESTS 50
#define N_PLACES   40

int main(void)
{
	for (int i = 0; i < N_REQUESTS; i++) {
		for (int place = 0; place < N_PLACES; place++) {
			char path[64];
			int fd;

			snprintf(path, sizeof(path), "/nonexistent/lib%d/app.conf", place);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				close(fd);
		}
	}
	return 0;
}
