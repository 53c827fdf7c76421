/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/api.h"
#include "base/error.h"

int ky_api_options(void *own, size_t own_bytes, size_t min_bytes, const void *given,
		   struct kymo_error *err)
{
	size_t size;

	memcpy(&size, given, sizeof(size));
	/* A size that no struct has is memory that was never set: do not read beyond it. */
	if (size < min_bytes || size > own_bytes + 4096) {
		ky_error_set(err, KYMO_E_INVALID, "options of %zu bytes", size);
		ky_error_hint(err, "begin with the options' init function: it sets the size");
		return KYMO_E_INVALID;
	}
	for (size_t i = own_bytes; i < size; i++) {
		if (((const unsigned char *)given)[i])
			return ky_error_set(err, KYMO_E_UNSUPPORTED,
					    "the program uses options of a later version of the "
					    "library");
	}
	memcpy(own, given, size < own_bytes ? size : own_bytes);
	return KYMO_OK;
}
