/* SPDX-License-Identifier: MIT */
/* Files that say how clocks are to be corrected, of any bytes. What is accepted is the same when it is written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/read/sync-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ky_sync *sync)
{
	static const int64_t times[] = {INT64_MIN, -1, 0, 1, INT64_C(1795729093029937668),
					INT64_MAX};
	struct ky_strbuf text = KY_STRBUF_INIT, again = KY_STRBUF_INIT;
	struct ky_sync *back;
	struct kymo_error err;

	ky_sync_put(&text, sync);
	if (ky_strbuf_failed(&text) ||
	    ky_sync_parse(ky_strbuf_text(&text), text.len, &back, &err) < 0)
		abort();
	ky_sync_put(&again, back);
	if (again.len != text.len ||
	    memcmp(ky_strbuf_text(&again), ky_strbuf_text(&text), text.len) != 0)
		abort();
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (ky_sync_bound(sync, times[i]) > INT64_MAX ||
		    ky_sync_bound_after(sync, times[i]) > INT64_MAX)
			abort();
	}
	ky_sync_free(back);
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_sync *sync;
	struct kymo_error err;

	if (ky_sync_parse((const char *)data, size, &sync, &err) < 0)
		return 0;
	check(sync);
	ky_sync_free(sync);
	return 0;
}
