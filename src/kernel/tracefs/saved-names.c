/* SPDX-License-Identifier: MIT */
/*
 * Option record-cmd of ftrace: while an event is on, the kernel has one more function at sched_switch and two at wake-ups,
 * which save the names of threads for the text file "trace". A third of what recording a switch costs is their price.
 *
 * The option is the whole kernel's, and an instance takes it over when it is created. A change of it reaches all events that
 * are on, and there the kernel takes for granted that each was switched on under the value from before. So it is off only
 * while an instance is created, and only where no event of anybody can be on: no other instance exists, and the events
 * outside of instances are off. An instance of another recorder, which may have it off, would be counted wrongly.
 */
#include "kernel/tracefs/tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "os/file.h"

#define OPTION_FILE "options/record-cmd"

/* The first character of a file. '\0': an empty file; -1: it cannot be read. */
static int saved_names_first(const struct ky_tracefs *fs, const char *name)
{
	int fd = openat(fs->fd, name, O_RDONLY | O_CLOEXEC);
	char first = '\0';
	ssize_t got = fd >= 0 ? read(fd, &first, 1) : -1;

	if (fd >= 0)
		close(fd);
	return got < 0 ? -1 : first;
}

static bool saved_names_write(const struct ky_tracefs *fs, const char *text)
{
	int fd = openat(fs->fd, OPTION_FILE, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

static bool saved_names_is_alone(const struct ky_tracefs *fs)
{
	DIR *dir = ky_dir_open(fs->fd, "instances");
	struct dirent *entry;
	bool is_alone = dir;

	while (dir && is_alone && (entry = readdir(dir)))
		is_alone = entry->d_name[0] == '.';
	if (dir)
		closedir(dir);
	return is_alone && saved_names_first(fs, "set_event") == '\0';
}

void ky_tracefs_save_no_names(const struct ky_tracefs *fs, struct ky_tracefs_names *names)
{
	sigset_t all;

	names->changed = false;
	/* One recorder at a time; the instances of the others are as they always were. */
	if (flock(fs->fd, LOCK_EX | LOCK_NB) < 0)
		return;
	sigfillset(&all);
	/* A signal that ends the process would leave the kernel without names. */
	(void)pthread_sigmask(SIG_SETMASK, &all, &names->signals);
	names->changed = saved_names_first(fs, OPTION_FILE) == '1' && saved_names_is_alone(fs) &&
			 saved_names_write(fs, "0");
	if (names->changed)
		return;
	(void)pthread_sigmask(SIG_SETMASK, &names->signals, NULL);
	(void)flock(fs->fd, LOCK_UN);
}

void ky_tracefs_save_names(const struct ky_tracefs *fs, const struct ky_tracefs_names *names)
{
	if (!names->changed)
		return;
	(void)saved_names_write(fs, "1");
	(void)flock(fs->fd, LOCK_UN);
	(void)pthread_sigmask(SIG_SETMASK, &names->signals, NULL);
}
