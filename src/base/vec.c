/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include <stdint.h>

int ky_vec_grow(void **data, size_t *cap, size_t len, size_t extra, size_t size)
{
	size_t want, next = *cap ? *cap : 8;
	void *grown;

	if (extra > SIZE_MAX / 4 || len > SIZE_MAX / 4)
		return KYMO_E_MEMORY;
	want = len + extra;
	while (next < want)
		next *= 2;
	if (next > SIZE_MAX / 2 / size)
		return KYMO_E_MEMORY;
	grown = realloc(*data, next * size);
	if (!grown)
		return KYMO_E_MEMORY;
	*data = grown;
	*cap = next;
	return KYMO_OK;
}
