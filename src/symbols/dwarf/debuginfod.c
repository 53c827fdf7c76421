/* SPDX-License-Identifier: MIT */
#include "symbols/dwarf/debuginfod.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "os/library.h"

/* As elfutils/debuginfod.h declares them, which is in a package of its own. */
struct debuginfod_client;
struct debuginfod_client *debuginfod_begin(void);
void debuginfod_end(struct debuginfod_client *client);
int debuginfod_find_executable(struct debuginfod_client *client, const unsigned char *build_id,
			       int build_id_len, char **path);
int debuginfod_find_debuginfo(struct debuginfod_client *client, const unsigned char *build_id,
			      int build_id_len, char **path);

#define FUNCTIONS(X)        \
	X(debuginfod_begin) \
	X(debuginfod_end) X(debuginfod_find_executable) X(debuginfod_find_debuginfo)

FUNCTIONS(KY_LIBRARY_TYPE)
static struct debuginfod {
	FUNCTIONS(KY_LIBRARY_MEMBER)
} library;

#define SYMBOL(name) {#name, offsetof(struct debuginfod, name)},
static const struct ky_library_symbol symbols[] = {FUNCTIONS(SYMBOL){0}};

static enum { IS_NEW, IS_LOADED, IS_MISSING } state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_wanted(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

static bool debuginfod_load(void)
{
	bool is_loaded;

	pthread_mutex_lock(&lock);
	if (state == IS_NEW)
		state = ky_library_load("libdebuginfod.so.1", "libdebuginfod1", symbols, &library,
					NULL) == 0
				? IS_LOADED
				: IS_MISSING;
	is_loaded = state == IS_LOADED;
	pthread_mutex_unlock(&lock);
	return is_loaded;
}

int ky_debuginfod_open(const uint8_t *build_id, uint32_t bytes)
{
	struct debuginfod_client *client;
	int fd;

	if (!bytes || !is_wanted() || !debuginfod_load())
		return -1;
	client = library.debuginfod_begin();
	if (!client)
		return -1;
	fd = library.debuginfod_find_executable(client, build_id, (int)bytes, NULL);
	if (fd < 0)
		fd = library.debuginfod_find_debuginfo(client, build_id, (int)bytes, NULL);
	library.debuginfod_end(client);
	return fd < 0 ? -1 : fd;
}
