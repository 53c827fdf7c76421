/* SPDX-License-Identifier: MIT */
#include "os/memfd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

dev_t ky_memfd_device(void)
{
	int fd = memfd_create("kymo-device", MFD_CLOEXEC);
	struct stat st = {0};

	if (fd < 0)
		return 0;
	(void)fstat(fd, &st);
	close(fd);
	return st.st_dev;
}

int ky_memfd_open(dev_t device, int dir_fd, const char *name, uint64_t bytes, int flags)
{
	/* To open a file has effects on devices, and is not for files that others protect: so it is looked at before. */
	int place = openat(dir_fd, name, O_PATH | O_CLOEXEC), fd = -1;
	struct stat st;

	if (place < 0)
		return -1;
	if (fstat(place, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == device &&
	    st.st_nlink == 0 && st.st_size >= 0 && (uint64_t)st.st_size == bytes)
		fd = ky_file_reopen(place, flags);
	close(place);
	return fd < 0 ? -1 : fd;
}
