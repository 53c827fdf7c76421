/* SPDX-License-Identifier: MIT */
/* Type information of a kernel, any bytes: constants are found within it, or not at all. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/bpf/btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("btf", MFD_CLOEXEC);
	struct ky_btf btf;
	int64_t value;
	char path[64];

	if (fd < 0)
		abort();
	if (write(fd, data, size) != (ssize_t)size) {
		close(fd);
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ky_btf_init(&btf, path);
	(void)ky_btf_constant(&btf, "A", 1, &value);
	(void)ky_btf_constant(&btf, "HRTIMER_MODE_ABS", strlen("HRTIMER_MODE_ABS"), &value);
	ky_btf_fini(&btf);
	close(fd);
	return 0;
}
