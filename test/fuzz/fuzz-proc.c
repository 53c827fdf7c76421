/* SPDX-License-Identifier: MIT */
/* The texts of /proc, any bytes: no read outside them, results within their bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/process/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_proc_thread thread;
	struct ky_proc_ids ids;
	/* As read: exactly this long, and a NUL. */
	char *text = malloc(size + 1);
	uint32_t flags;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (ky_proc_parse_stat(text, size, &thread) == 0 && thread.comm[KY_COMM_BYTES - 1])
		abort();
	ky_proc_parse_status(text, &ids);
	if (ids.n_levels > KY_PROC_MAX_LEVELS)
		abort();
	(void)ky_proc_parse_fdinfo(text, &flags);
	free(text);
	return 0;
}
