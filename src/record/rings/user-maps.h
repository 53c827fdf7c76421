/* SPDX-License-Identifier: MIT */
/* Executable and libraries in the text of /proc/PID/maps. */
#ifndef KY_RECORD_RINGS_USER_MAPS_H
#define KY_RECORD_RINGS_USER_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Adjacent mappings of one file. */
struct ky_maps_binary {
	uint64_t base, end, inode;
	const char *path; /* in the text, without a NUL */
	int path_bytes;
	bool has_code;
};

/* The next file with mappings, from *@at on; *@at moves past them. Returns false at the end. */
bool ky_maps_next(const char **at, struct ky_maps_binary *binary);

/* Whether the text @maps has a mapping of file @inode of device @device. */
bool ky_maps_has_file(const char *maps, uint64_t device, uint64_t inode);

#endif
