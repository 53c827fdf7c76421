/* SPDX-License-Identifier: MIT */
#include "store/directory/directory-store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/directory/directory-trace.h"
#include "store/live/live-file.h"

struct directory_store {
	struct ky_packet_store base;
	int dir_fd, watch_fd; /* for live readers; -1: not open */
};

/* The directory is there as soon as there is a trace in it. */
static bool directory_store_open_directory(struct directory_store *store)
{
	if (store->dir_fd >= 0)
		return true;
	store->dir_fd = open(store->base.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->dir_fd >= 0)
		ky_live_claim(store->dir_fd);
	return store->dir_fd >= 0;
}

static int directory_readers_fd(struct ky_packet_store *base)
{
	struct directory_store *store = (struct directory_store *)base;

	if (directory_store_open_directory(store) && store->watch_fd < 0)
		store->watch_fd = ky_live_watch(base->name);
	return store->watch_fd;
}

static uint32_t directory_readers_delay_ms(struct ky_packet_store *base)
{
	struct directory_store *store = (struct directory_store *)base;

	return directory_store_open_directory(store) ? ky_live_delay_ms(store->dir_fd) : 0;
}

static void directory_store_free(struct ky_packet_store *base)
{
	struct directory_store *store = (struct directory_store *)base;

	if (store->watch_fd >= 0)
		close(store->watch_fd);
	if (store->dir_fd >= 0)
		close(store->dir_fd);
	free(base->name);
	free(store);
}

static const struct ky_packet_store_ops directory_store_ops = {
	.open = ky_directory_trace_new,
	.readers_delay_ms = directory_readers_delay_ms,
	.readers_fd = directory_readers_fd,
	.free = directory_store_free,
};

int ky_directory_store_open(const char *path, struct ky_packet_store **out, struct kymo_error *err)
{
	struct directory_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store)
		store->base.name = strdup(path);
	if (!store || !store->base.name) {
		free(store);
		return ky_error_nomem(err);
	}
	store->base.ops = &directory_store_ops;
	store->dir_fd = store->watch_fd = -1;
	*out = &store->base;
	return KYMO_OK;
}

int ky_directory_trace_open(const char *path, bool is_atomic, struct ky_store_trace **trace,
			    struct kymo_error *err)
{
	const struct ky_store_place place = {.path = "", .is_atomic = is_atomic};
	struct ky_packet_store *store;
	int ret = ky_directory_store_open(path, &store, err);

	*trace = NULL;
	if (ret < 0)
		return ret;
	ret = ky_store_open(store, &place, trace, err);
	if (ret < 0)
		ky_store_free(store);
	else
		ky_directory_trace_own(*trace, store);
	return ret;
}
