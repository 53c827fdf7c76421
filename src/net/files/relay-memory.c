/* SPDX-License-Identifier: MIT */
#include "net/files/relay-memory.h"

#include "base/error.h"

/* Of the process: its relay has one thread. */
static uint64_t all_bytes;

int ky_relay_memory_take(uint64_t *own_bytes, uint64_t bytes, struct kymo_error *err)
{
	uint64_t left = all_bytes < KY_RELAY_MEMORY_ALL ? KY_RELAY_MEMORY_ALL - all_bytes : 0;

	if (*own_bytes + bytes > KY_RELAY_MEMORY_OWN && *own_bytes + bytes > left)
		return *own_bytes > KY_RELAY_MEMORY_ALL / 4
			       ? ky_error_set(err, KYMO_E_LIMIT,
					      "the session has too many traces and streams")
			       : ky_error_set(err, KYMO_E_AGAIN,
					      "other sessions have too many traces and streams");
	*own_bytes += bytes;
	all_bytes += bytes;
	return KYMO_OK;
}

void ky_relay_memory_give(uint64_t *own_bytes, uint64_t bytes)
{
	*own_bytes -= bytes;
	all_bytes -= bytes;
}
