/* SPDX-License-Identifier: MIT */
#include "os/zstd-library.h"

#include <pthread.h>
#include <stddef.h>

#define SYMBOL(name) {#name, offsetof(struct ky_zstd_library, name)},

static const struct ky_library_symbol symbols[] = {KY_ZSTD_FUNCTIONS(SYMBOL){0}};

struct ky_zstd_library ky_zstd;

int ky_zstd_library_load(struct kymo_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int ret = KYMO_OK;

	pthread_mutex_lock(&lock);
	if (!ky_zstd.ZSTD_isError)
		ret = ky_library_load("libzstd.so.1", "libzstd1", symbols, &ky_zstd, err);
	pthread_mutex_unlock(&lock);
	return ret;
}
