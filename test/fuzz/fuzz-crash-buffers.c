/* SPDX-License-Identifier: MIT */
/* The buffers of LTTng-UST after a crash (lttng create --shm-path). */
#include "directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"metadata", "ch_0", "ch_1"};

	fuzz_directory_use(names, sizeof(names) / sizeof(names[0]), data, size);
	return 0;
}
