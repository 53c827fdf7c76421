/* SPDX-License-Identifier: MIT */
/*
 * Problem: reading a file again takes as long as the first time, and half of it is work of the kernel. The control group has not
 * enough memory to keep the file.
 */
#include <pthread.h>
#include <stdlib.h>

#include "control-group.h"

#define FILE_BYTES (24 << 20)
#define N_PASSES   6
#define CHUNK	   (128 << 10)

static const char name[] = "memory-limit.data";
static char chunk[CHUNK];

static void scan(void)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	pthread_setname_np(pthread_self(), "scanner");
	for (int pass = 0; pass < N_PASSES; pass++) {
		for (off_t at = 0; at < FILE_BYTES; at += CHUNK)
			if (pread(fd, chunk, CHUNK, at) != CHUNK)
				_exit(1);
	}
}

/* A file of which the page cache has nothing. */
static int make_file(void)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (off_t at = 0; fd >= 0 && at < FILE_BYTES; at += CHUNK)
		if (write(fd, chunk, CHUNK) != CHUNK)
			return -1;
	if (fd < 0 || fsync(fd) < 0)
		return -1;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return close(fd);
}

int main(void)
{
	/* The mistake: 8 MiB for a file of 24 MiB. */
	const struct limit limit = {"memory", "memory.max", "8388608", "memory.limit_in_bytes",
				    "8388608"};
	int status = make_file() < 0 ? 1 : work_with_limit(&limit, scan);

	unlink(name);
	return status;
}
