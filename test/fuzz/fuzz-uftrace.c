/* SPDX-License-Identifier: MIT */
/* uftrace's data directory. */
#include "directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"info",  "task.txt", "sid-1.map",
					    "7.dat", "8.dat",	 "default.opts"};

	fuzz_directory_use(names, sizeof(names) / sizeof(names[0]), data, size);
	return 0;
}
