/* SPDX-License-Identifier: MIT */
/*
 * Archives: any bytes as the tar inside, which the target compresses, or (the first byte is odd) as the archive itself.
 * What is unpacked is read as a set of traces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdio.h>
#include <zstd.h>

#include "import/archive/archive.h"
#include "import/common/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fuzzers find no checksums. */
static void mend(uint8_t *tar, size_t size)
{
	for (size_t at = 0; at + KY_ARCHIVE_BLOCK_BYTES <= size; at += KY_ARCHIVE_BLOCK_BYTES) {
		struct ky_archive_head *head = (struct ky_archive_head *)(tar + at);
		char sum[8];

		if (memcmp(head->magic, "ustar", 5) != 0)
			continue;
		snprintf(sum, sizeof(sum), "%06o", ky_archive_checksum(head));
		memcpy(head->checksum, sum, 7);
	}
}

static void use(const char *path)
{
	struct ky_import imports = KY_IMPORT_INIT;
	struct ky_trace_options options = {0};
	struct ky_trace_set set = {0};
	const char *const paths[] = {path};
	struct kymo_error err;

	if (ky_import_paths(&imports, (char **)paths, 1, NULL, NULL, false, &err) == 0) {
		options.scratch = imports.places.data;
		options.n_scratch = imports.places.len;
		if (ky_trace_set_open_with(&set, paths, 1, &options, NULL, &err) == 0)
			ky_trace_set_close(&set);
	}
	ky_import_fini(&imports);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t packed[1 << 18];
	static uint8_t tar[1 << 17];
	int fd = memfd_create("fuzz-archive", MFD_CLOEXEC);
	const uint8_t *from = packed;
	char path[64];
	size_t n;

	if (fd < 0 || !size || size > sizeof(tar)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	memcpy(tar, data + 1, size - 1);
	if (data[0] & 1) {
		from = tar;
		n = size - 1;
	} else {
		mend(tar, size - 1);
		n = ZSTD_compress(packed, sizeof(packed), tar, size - 1, 1);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ZSTD_isError(n) || write(fd, from, n) != (ssize_t)n)
		abort();
	use(path);
	close(fd);
	return 0;
}
