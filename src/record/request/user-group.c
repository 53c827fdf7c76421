/* SPDX-License-Identifier: MIT */
#include "record/request/user-group.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abi/control.h"
#include "os/file.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

bool ky_user_is_group_name(const char *name)
{
	size_t len = strlen(name);

	return len && len <= KY_USER_GROUP_NAME_MAX && strspn(name, NAME_CHARACTERS) == len &&
	       *name != '-' && strcmp(name, "channel0") != 0 &&
	       strncmp(name, "statedump", 9) != 0 && strcmp(name, "watch") != 0;
}

bool ky_user_dir_group(int dir_fd, char name[KY_USER_GROUP_NAME_MAX + 1])
{
	int fd = ky_file_open_regular(dir_fd, KY_SESSION_FILE, O_RDONLY | O_NOFOLLOW);
	struct ky_session_file file;
	ssize_t got = -1;

	if (fd < 0)
		return false;
	if (pread(fd, &file, sizeof(file), 0) == sizeof(file) && file.magic == KY_SESSION_MAGIC &&
	    file.version == KY_CONTROL_VERSION && file.group)
		got = pread(fd, name, KY_USER_GROUP_NAME_MAX + 1, file.group);
	close(fd);
	return got > 0 && memchr(name, '\0', (size_t)got) && ky_user_is_group_name(name);
}
