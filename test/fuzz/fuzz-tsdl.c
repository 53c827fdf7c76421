/* SPDX-License-Identifier: MIT */
/*
 * Metadata of any bytes: no crash, no hang, no memory out of proportion. What can be read and
 * written again must mean the same when it is read once more.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/tsdl/tsdl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const char *text, size_t len)
{
	struct ky_trace_class *trace;
	struct kymo_error err;
	size_t again_len;
	char *again;
	int ret = ky_metadata_read(text, len, &trace, &err);

	if (ret == KYMO_E_LIMIT || ret == KYMO_E_MEMORY)
		return;
	if (ret < 0 || ky_tsdl_write(trace, &again, &again_len, &err) < 0)
		abort();
	if (again_len != len || memcmp(again, text, len) != 0)
		abort();
	free(again);
	ky_trace_class_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_trace_class *trace;
	struct kymo_error err;
	char *text;
	size_t len;

	if (ky_metadata_text(data, size, &text, &len, &err) == 0)
		free(text);
	if (ky_metadata_read(data, size, &trace, &err) < 0)
		return 0;
	if (trace->major == 1 && ky_tsdl_write(trace, &text, &len, &err) == 0) {
		check_written(text, len);
		free(text);
	}
	ky_trace_class_free(trace);
	return 0;
}
