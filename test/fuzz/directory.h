/* SPDX-License-Identifier: MIT */
/* A directory whose files are parts of a fuzzer's input: for each, the number of its name, a length (16 bits, little-endian), bytes. */
#ifndef FUZZ_DIRECTORY_H
#define FUZZ_DIRECTORY_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/graph/flow.h"
#include "import/common/import.h"

static char fuzz_directory[64];

static void fuzz_directory_leave(void)
{
	(void)rmdir(fuzz_directory);
}

static int fuzz_directory_open(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	snprintf(fuzz_directory, sizeof(fuzz_directory), "/dev/shm/kymo-fuzz-XXXXXX");
	if (!mkdtemp(fuzz_directory))
		abort();
	fd = open(fuzz_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || atexit(fuzz_directory_leave) != 0)
		abort();
	return fd;
}

static void fuzz_directory_write(const char *const *names, size_t n_names, const uint8_t *data,
				 size_t size)
{
	int at = fuzz_directory_open();

	while (size >= 3) {
		size_t len = data[1] | (size_t)data[2] << 8;
		int fd = openat(at, names[data[0] % n_names], O_WRONLY | O_CREAT | O_TRUNC, 0600);

		data += 3;
		size -= 3;
		len = len < size ? len : size;
		if (fd < 0 || write(fd, data, len) != (ssize_t)len)
			abort();
		close(fd);
		data += len;
		size -= len;
	}
}

static void fuzz_directory_clear(const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		(void)unlinkat(fuzz_directory_open(), names[i], 0);
}

static inline void fuzz_read_all(const char *path)
{
	struct ky_import imports = KY_IMPORT_INIT;
	struct ky_trace_options options = {0};
	struct ky_trace_set set = {0};
	const char *const paths[] = {path};
	struct kymo_error err;
	struct ky_flow *flow;
	struct ky_batch batch;

	if (ky_import_paths(&imports, (char **)(uintptr_t)paths, 1, NULL, NULL, false, &err) == 0) {
		options.scratch = imports.places.data;
		options.n_scratch = imports.places.len;
		if (options.n_scratch &&
		    ky_trace_set_open_with(&set, paths, 1, &options, NULL, &err) == 0) {
			if (ky_flow_open_set(&set, &flow, &err) == 0) {
				while (ky_flow_next(flow, &batch, &err) > 0)
					;
				ky_flow_close(flow);
			}
			ky_trace_set_close(&set);
		}
	}
	ky_import_fini(&imports);
}

/* The input as files of these names; then everything in it. */
static inline void fuzz_directory_use(const char *const *names, size_t n_names, const uint8_t *data,
				      size_t size)
{
	fuzz_directory_write(names, n_names, data, size);
	fuzz_read_all(fuzz_directory);
	fuzz_directory_clear(names, n_names);
}

#endif
