/* SPDX-License-Identifier: MIT */
#include "record/rings/user-maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* A line of /proc/PID/maps. */
struct mapping {
	uint64_t start, end, offset, inode;
	unsigned int major, minor;
	char permissions[5];
	const char *path;
	int path_bytes;
};

/* A number, and what stands behind it; 0 at another character. */
static uint64_t next_number(const char **at, int base, char after)
{
	char *end;
	uint64_t number = strtoull(*at, &end, base);

	if (*end == after)
		end++;
	*at = end;
	return number;
}

/*
 * "START-END PERM OFFSET MAJOR:MINOR INODE    PATH". The next line; false: the end. Not by sscanf(),
 * which measures all the rest of the text each time: programs may have 65,000 mappings.
 */
static bool next_mapping(const char **at, struct mapping *mapping)
{
	const char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return false;
	*at = end + 1;
	memset(mapping, 0, sizeof(*mapping));
	mapping->start = next_number(&line, 16, '-');
	mapping->end = next_number(&line, 16, ' ');
	for (int i = 0; i < 4 && line < end; i++)
		mapping->permissions[i] = *line++;
	mapping->offset = next_number(&line, 16, ' ');
	mapping->major = (unsigned int)next_number(&line, 16, ':');
	mapping->minor = (unsigned int)next_number(&line, 16, ' ');
	mapping->inode = next_number(&line, 10, ' ');
	line += strspn(line, " ");
	mapping->path = line;
	if (line < end)
		mapping->path_bytes = (int)(end - line);
	return true;
}

bool ky_maps_has_file(const char *maps, uint64_t device, uint64_t inode)
{
	struct mapping mapping;

	while (next_mapping(&maps, &mapping)) {
		if (mapping.inode == inode && mapping.major == major(device) &&
		    mapping.minor == minor(device))
			return true;
	}
	return false;
}

static bool is_binary(const struct mapping *mapping)
{
	static const char vdso[] = "[vdso]";

	return (mapping->path_bytes && mapping->path[0] == '/') ||
	       (mapping->path_bytes == (int)strlen(vdso) &&
		memcmp(mapping->path, vdso, strlen(vdso)) == 0);
}

static bool continues(const struct ky_maps_binary *binary, const struct mapping *mapping)
{
	return binary->path && binary->path_bytes == mapping->path_bytes &&
	       binary->inode == mapping->inode && mapping->offset &&
	       memcmp(binary->path, mapping->path, (size_t)binary->path_bytes) == 0;
}

bool ky_maps_next(const char **at, struct ky_maps_binary *binary)
{
	struct mapping mapping;
	const char *next = *at;

	binary->path = NULL;
	while (next_mapping(&next, &mapping)) {
		if (is_binary(&mapping) && binary->path && !continues(binary, &mapping))
			return true;
		*at = next;
		if (!is_binary(&mapping))
			continue;
		if (!binary->path)
			*binary = (struct ky_maps_binary){
				.base = mapping.start,
				.inode = mapping.inode,
				.path = mapping.path,
				.path_bytes = mapping.path_bytes,
			};
		binary->end = mapping.end;
		binary->has_code |= mapping.permissions[2] == 'x';
	}
	return binary->path;
}
