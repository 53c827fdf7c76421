/* SPDX-License-Identifier: MIT */
#include "store/packets/copy-store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct copy_store {
	struct ky_packet_store base;
	struct ky_packet_store *store, *copy;
	uint64_t most_bytes;
	/* Atomic, relaxed: nothing depends on the order. */
	uint64_t bytes;
	bool has_ended;
};

struct copy_trace {
	struct ky_store_trace base;
	struct ky_store_trace_ops ops; /* what the trace of the first store supports */
	struct copy_store *store;
	pthread_mutex_t lock;		     /* a new stream has the same number in both */
	struct ky_store_trace *trace, *copy; /* @copy is NULL without a copy */
};

static struct copy_store *copy_store(struct ky_packet_store *base)
{
	return (struct copy_store *)base;
}

static struct copy_trace *copy_trace(struct ky_store_trace *base)
{
	return (struct copy_trace *)base;
}

static void copy_end(struct copy_store *store)
{
	__atomic_store_n(&store->has_ended, true, __ATOMIC_RELAXED);
}

static bool copy_has_ended(const struct copy_store *store)
{
	return __atomic_load_n(&store->has_ended, __ATOMIC_RELAXED);
}

/* The copy's part of a call, if there is a copy and the first store's part has succeeded. */
static bool goes_on(const struct copy_trace *trace, int ret)
{
	return ret >= 0 && trace->copy && !copy_has_ended(trace->store);
}

/* ---- traces --------------------------------------------------------------------------- */

static int copy_stream(struct ky_store_trace *base, const char *name, struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);
	int number;

	pthread_mutex_lock(&trace->lock);
	number = ky_store_stream(trace->trace, name, err);
	if (goes_on(trace, number) && ky_store_stream(trace->copy, name, NULL) != number)
		copy_end(trace->store);
	pthread_mutex_unlock(&trace->lock);
	return number;
}

static int copy_packet(struct ky_store_trace *base, int stream, const struct ky_packet_out *packet,
		       struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);
	struct copy_store *store = trace->store;
	int ret = ky_store_packet(trace->trace, stream, packet, err);

	if (ret < 0)
		return ret;
	__atomic_fetch_add(&base->bytes_written, packet->size_bytes, __ATOMIC_RELAXED);
	if (!goes_on(trace, ret))
		return KYMO_OK;
	if (__atomic_add_fetch(&store->bytes, packet->size_bytes, __ATOMIC_RELAXED) >
		    store->most_bytes ||
	    ky_store_packet(trace->copy, stream, packet, NULL) < 0)
		copy_end(store);
	return KYMO_OK;
}

static int copy_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			 struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);
	int ret = ky_store_metadata(trace->trace, text, len_bytes, err);

	/* Of an incomplete copy, too: what it has must be readable. */
	if (ret >= 0 && trace->copy)
		(void)ky_store_metadata(trace->copy, text, len_bytes, NULL);
	return ret;
}

static int copy_patch(struct ky_store_trace *base, uint64_t at_bytes, const char *text,
		      size_t len_bytes, struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);
	int ret = ky_store_patch_metadata(trace->trace, at_bytes, text, len_bytes, err);

	if (ret >= 0 && trace->copy)
		(void)ky_store_patch_metadata(trace->copy, at_bytes, text, len_bytes, NULL);
	return ret;
}

static int copy_flush(struct ky_store_trace *base, struct kymo_error *err)
{
	return ky_store_flush(copy_trace(base)->trace, err);
}

static int copy_beacon(struct ky_store_trace *base, int stream, uint64_t until_cycles,
		       struct kymo_error *err)
{
	return ky_store_beacon(copy_trace(base)->trace, stream, until_cycles, err);
}

static int copy_end_streams(struct ky_store_trace *base, struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);

	if (trace->copy)
		(void)ky_store_end_streams(trace->copy, NULL);
	return ky_store_end_streams(trace->trace, err);
}

static int copy_rotate(struct ky_store_trace *base, const char *archive, struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);
	int ret = ky_store_rotate(trace->trace, archive, err);

	if (ret >= 0 && trace->copy && ky_store_rotate(trace->copy, archive, NULL) < 0)
		copy_end(trace->store);
	return ret;
}

static void copy_trace_free(struct copy_trace *trace)
{
	pthread_mutex_destroy(&trace->lock);
	free(trace->base.path);
	free(trace);
}

static int copy_close(struct ky_store_trace *base, struct kymo_error *err)
{
	struct copy_trace *trace = copy_trace(base);
	int ret = ky_store_close(trace->trace, err);

	(void)ky_store_close(trace->copy, NULL);
	copy_trace_free(trace);
	return ret;
}

static void copy_discard(struct ky_store_trace *base)
{
	struct copy_trace *trace = copy_trace(base);

	ky_store_discard(trace->trace);
	ky_store_discard(trace->copy);
	copy_trace_free(trace);
}

static const struct ky_store_trace_ops copy_trace_ops = {
	.stream = copy_stream,
	.packet = copy_packet,
	.metadata = copy_metadata,
	.close = copy_close,
	.discard = copy_discard,
	.patch_metadata = copy_patch,
	.flush = copy_flush,
	.beacon = copy_beacon,
	.end_streams = copy_end_streams,
	.rotate = copy_rotate,
};

/* ---- the store ------------------------------------------------------------------------ */

static void copy_store_open_copy(struct copy_trace *trace)
{
	const struct ky_store_place place = {.path = trace->base.path};

	if (!copy_has_ended(trace->store) &&
	    ky_store_open(trace->store->copy, &place, &trace->copy, NULL) < 0)
		copy_end(trace->store);
}

static int copy_open(struct ky_packet_store *base, const struct ky_store_place *place,
		     struct ky_store_trace **out, struct kymo_error *err)
{
	struct copy_trace *trace = calloc(1, sizeof(*trace));
	int ret;

	*out = NULL;
	if (!trace)
		return ky_error_nomem(err);
	trace->store = copy_store(base);
	pthread_mutex_init(&trace->lock, NULL);
	ret = ky_store_open(trace->store->store, place, &trace->trace, err);
	if (!ret) {
		trace->base.path = strdup(trace->trace->path);
		ret = trace->base.path ? KYMO_OK : ky_error_nomem(err);
	}
	if (ret < 0) {
		ky_store_discard(trace->trace);
		copy_trace_free(trace);
		return ret;
	}
	trace->ops = copy_trace_ops;
	if (!ky_store_can_patch(trace->trace))
		trace->ops.patch_metadata = NULL;
	trace->base.ops = &trace->ops;
	copy_store_open_copy(trace);
	*out = &trace->base;
	return KYMO_OK;
}

static uint32_t copy_readers_delay_ms(struct ky_packet_store *base)
{
	return ky_store_readers_delay_ms(copy_store(base)->store);
}

static int copy_readers_fd(struct ky_packet_store *base)
{
	return ky_store_readers_fd(copy_store(base)->store);
}

static bool copy_is_full(struct ky_packet_store *base)
{
	return ky_store_is_full(copy_store(base)->store);
}

static void copy_backlog(struct ky_packet_store *base, struct ky_store_backlog *backlog)
{
	*backlog = (struct ky_store_backlog){0};
	(void)ky_store_get_backlog(copy_store(base)->store, backlog);
}

static bool copy_can_remove(struct ky_packet_store *base)
{
	return ky_store_can_remove(copy_store(base)->store);
}

static int copy_remove(struct ky_packet_store *base, const char *path, struct kymo_error *err)
{
	return ky_store_remove(copy_store(base)->store, path, err);
}

static bool copy_can_attach(struct ky_packet_store *base)
{
	return ky_store_can_attach(copy_store(base)->store);
}

static int copy_attach(struct ky_packet_store *base, const struct ky_store_file *file,
		       struct kymo_error *err)
{
	return ky_store_attach(copy_store(base)->store, file, err);
}

static void copy_free(struct ky_packet_store *base)
{
	struct copy_store *store = copy_store(base);

	ky_store_free(store->store);
	ky_store_free(store->copy);
	free(store->base.name);
	free(store);
}

static const struct ky_packet_store_ops copy_store_ops = {
	.open = copy_open,
	.readers_delay_ms = copy_readers_delay_ms,
	.readers_fd = copy_readers_fd,
	.is_full = copy_is_full,
	.backlog = copy_backlog,
	.can_remove = copy_can_remove,
	.remove = copy_remove,
	.can_attach = copy_can_attach,
	.attach = copy_attach,
	.free = copy_free,
};

int ky_copy_store_open(struct ky_packet_store *first, struct ky_packet_store *copy,
		       uint64_t most_bytes, struct ky_packet_store **out, struct kymo_error *err)
{
	struct copy_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store)
		store->base.name = strdup(first->name);
	if (!store || !store->base.name) {
		free(store);
		return ky_error_nomem(err);
	}
	store->base.ops = &copy_store_ops;
	store->store = first;
	store->copy = copy;
	store->most_bytes = most_bytes;
	*out = &store->base;
	return KYMO_OK;
}

bool ky_copy_store_is_whole(const struct ky_packet_store *base)
{
	return !copy_has_ended((const struct copy_store *)base);
}
