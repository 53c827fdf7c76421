/* SPDX-License-Identifier: MIT */
/* Symbols of probed programs, one a line: any text; what is a name is one of at most its size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/probe/probe-name.h"
#include "symbols/demangle/demangle.h"
#include "kernel/probe/probe-name.h"
#include "symbols/demangle/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name is what is found by it, and by what stands behind its "::". */
static void check(const char *symbol)
{
	char name[KY_DEMANGLED_BYTES];
	const char *last;

	if (!ky_demangle(symbol, name))
		return;
	if (!name[0] || !ky_probe_name_is(symbol, name, strlen(name)))
		abort();
	for (last = name; (last = strstr(last, "::"));) {
		last += 2;
		if (*last && !ky_probe_name_is(symbol, last, strlen(last)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((line_end ? line_end : end) - at);
		char *symbol = strndup(at, len); /* of its exact size: nothing behind it is read */

		if (!symbol)
			return 0;
		check(symbol);
		free(symbol);
		at += len + 1;
	}
	return 0;
}
