/* SPDX-License-Identifier: MIT */
/*
 * Names of recordings: a user's recorders lock a file for each, beside their control sockets, so that
 * two that begin at the same time cannot have one name. The kernel drops the lock of a killed one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/recording/recording-internal.h"
#include "record/runtime/user-runtime.h"

/* The file, or its directory, may go while it is being opened. */
#define TRIES 16

/* Whether the path still leads to the file that is locked. */
static bool recording_name_is_there(int fd, const char *path)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino &&
	       here.st_dev == there.st_dev;
}

int ky_recording_claim_name(struct ky_recording *recording, struct kymo_error *err)
{
	char directory[KY_SESSION_PATH_MAX + 1];

	for (int i = 0; recording->options.name && i < TRIES; i++) {
		int fd;

		if (ky_user_recordings_make(directory, NULL) < 0)
			return KYMO_OK;
		/* Who looks for sockets passes over names that begin with '.'. */
		snprintf(recording->name_path, sizeof(recording->name_path), "%s/.name-%s",
			 directory, recording->options.name);
		fd = ky_file_open(AT_FDCWD, recording->name_path,
				  O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return KYMO_OK;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			close(fd);
			ky_error_set(err, KYMO_E_STATE, "a recording '%s' runs already",
				     recording->options.name);
			ky_error_hint(err, "choose another name, or end it: 'kymo stop %s'",
				      recording->options.name);
			return KYMO_E_STATE;
		}
		if (recording_name_is_there(fd, recording->name_path)) {
			recording->name_fd = fd;
			return KYMO_OK;
		}
		close(fd);
	}
	return KYMO_OK;
}

void ky_recording_free_name(struct ky_recording *recording)
{
	if (recording->name_fd < 0)
		return;
	(void)unlink(recording->name_path);
	close(recording->name_fd);
	recording->name_fd = -1;
	/* The directory, when no other process of the user records. */
	*strrchr(recording->name_path, '/') = '\0';
	(void)rmdir(recording->name_path);
}
