/* SPDX-License-Identifier: MIT */
#include "os/block-name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ky_os_block_name(struct ky_strbuf *out, uint32_t major, uint32_t minor)
{
	char path[64], target[256];
	const char *name;
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	len = readlink(path, target, sizeof(target) - 1);
	target[len < 0 ? 0 : len] = '\0';
	name = strrchr(target, '/');
	if (name)
		ky_strbuf_adds(out, name + 1);
	else
		ky_strbuf_addf(out, "%u:%u", major, minor);
}
