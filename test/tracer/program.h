/* SPDX-License-Identifier: MIT */
/* What the traced programs share. */
#ifndef TEST_TRACER_PROGRAM_H
#define TEST_TRACER_PROGRAM_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program, with errno's text, unless @condition holds. */
static inline void check(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

/* How many descriptors the process has of files whose names have @what in them. */
static inline int count_files(const char *what)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[64];
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[len < 0 ? 0 : len] = 0;
		n += strstr(target, what) != NULL;
	}
	if (dir)
		closedir(dir);
	return n;
}

#endif
