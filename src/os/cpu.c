/* SPDX-License-Identifier: MIT */
#include "os/cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool ky_os_cpu_is_online(uint32_t cpu)
{
	char path[64], state = '1';
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	if (access(path, F_OK) < 0)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* A CPU that cannot go offline has no such file. */
	if (fd < 0)
		return true;
	if (read(fd, &state, 1) != 1)
		state = '1';
	close(fd);
	return state != '0';
}
