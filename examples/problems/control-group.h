/* SPDX-License-Identifier: MIT */
/* Work in a control group of its own with a limit, of version 2 or 1 of control groups. Needs root. */
#ifndef KYMO_EXAMPLES_CONTROL_GROUP_H
#define KYMO_EXAMPLES_CONTROL_GROUP_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_LIMIT 77 /* the status of a program that cannot have its limit */

struct limit {
	const char *controller;
	const char *file, *value;	  /* of version 2 */
	const char *old_file, *old_value; /* of version 1 */
};

static int put(const char *directory, const char *name, const char *value)
{
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = write(fd, value, strlen(value));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* The directory of a new group with the limit. 0 or -1. */
static int make_group(const struct limit *limit, char *directory, size_t size)
{
	char more[64];

	snprintf(directory, size, "/sys/fs/cgroup/kymo-problem-%d", (int)getpid());
	snprintf(more, sizeof(more), "+%s", limit->controller);
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0) {
		put("/sys/fs/cgroup", "cgroup.subtree_control", more);
		if (mkdir(directory, 0755) == 0 && put(directory, limit->file, limit->value) == 0)
			return 0;
	} else {
		snprintf(directory, size, "/sys/fs/cgroup/%s/kymo-problem-%d", limit->controller,
			 (int)getpid());
		if (mkdir(directory, 0755) == 0 &&
		    put(directory, limit->old_file, limit->old_value) == 0)
			return 0;
	}
	rmdir(directory);
	return -1;
}

/* A child works in the group. The status of the program. */
static int work_with_limit(const struct limit *limit, void (*work)(void))
{
	char directory[256];
	int status = -1;
	pid_t child;

	if (make_group(limit, directory, sizeof(directory)) < 0) {
		fprintf(stderr, "cannot make a control group with %s\n", limit->file);
		return NO_LIMIT;
	}
	child = fork();
	if (child == 0) {
		if (put(directory, "cgroup.procs", "0") < 0)
			_exit(NO_LIMIT);
		work();
		_exit(0);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	rmdir(directory);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

#endif
