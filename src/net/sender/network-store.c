/* SPDX-License-Identifier: MIT */
#include "net/sender/network-store.h"

#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "store/directory/index-record.h"

/* Metadata of a recording with all events is a few megabytes. */
#define METADATA_MAX (64u << 20)
/* Frames of a whole packet's size are the most that a relay takes. */
#define PACKET_MAX (KY_NET_PACKET_MAX - sizeof(struct ky_net_data))

struct network_store {
	struct ky_packet_store base;
	struct ky_sender *sender;
	pthread_mutex_t lock; /* of the following */
	uint32_t n_traces;
	struct ky_map paths; /* hashes of the paths in use */
};

struct network_stream {
	uint64_t offset_bytes, entry; /* of the next packet */
};

struct network_trace {
	struct ky_store_trace base;
	struct network_store *store;
	uint32_t id;
	bool has_ended;
	pthread_mutex_t lock; /* of the list of streams */
	KY_VEC(struct network_stream *) streams;
};

static struct network_store *network_store(struct ky_packet_store *base)
{
	return (struct network_store *)base;
}

static struct network_trace *network_trace(struct ky_store_trace *base)
{
	return (struct network_trace *)base;
}

/* ---- streams, packets ----------------------------------------------------------------- */

static int network_stream(struct ky_store_trace *base, const char *name, struct kymo_error *err)
{
	struct network_trace *trace = network_trace(base);
	struct network_stream *stream = calloc(1, sizeof(*stream));
	const struct ky_sender_part part = {name, strlen(name)};
	uint32_t fixed[2] = {0};
	int number = -1, ret;

	pthread_mutex_lock(&trace->lock);
	if (stream && ky_vec_push(&trace->streams, stream) == 0)
		number = (int)trace->streams.len - 1;
	pthread_mutex_unlock(&trace->lock);
	if (number < 0) {
		free(stream);
		return ky_error_nomem(err);
	}
	fixed[0] = htole32((uint32_t)number);
	ret = ky_sender_put(trace->store->sender, KY_FRAME_STREAM, trace->id, fixed, sizeof(fixed),
			    &part, 1, err);
	return ret < 0 ? ret : number;
}

static int network_packet(struct ky_store_trace *base, int number,
			  const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct network_trace *trace = network_trace(base);
	const struct ky_sender_part parts[] = {
		{packet->head, packet->head_bytes},
		{packet->data, packet->size_bytes - packet->head_bytes},
	};
	struct network_stream *stream = NULL;
	struct ky_index_record record;
	struct ky_net_data fixed;
	int ret;

	pthread_mutex_lock(&trace->lock);
	if (number >= 0 && (size_t)number < trace->streams.len)
		stream = trace->streams.data[number];
	pthread_mutex_unlock(&trace->lock);
	if (!stream)
		return ky_error_set(err, KYMO_E_INVALID, "there is no stream %d", number);
	if (packet->size_bytes > PACKET_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a packet of %zu bytes is too large",
				    packet->size_bytes);
	fixed = (struct ky_net_data){
		.stream = htole32((uint32_t)number),
		.index_bytes = htole32(packet->no_times ? 0 : KY_NET_INDEX_BYTES),
		.offset_bytes = htole64(stream->offset_bytes),
		.entry = htole64(stream->entry),
	};
	record = ky_index_record(packet, stream->offset_bytes);
	memcpy(fixed.index, &record, sizeof(fixed.index));
	ret = ky_sender_put(trace->store->sender, KY_FRAME_DATA, trace->id, &fixed, sizeof(fixed),
			    parts, 2, err);
	if (ret < 0)
		return ret;
	stream->offset_bytes += packet->size_bytes;
	stream->entry++;
	__atomic_fetch_add(&base->bytes_written, packet->size_bytes, __ATOMIC_RELAXED);
	return KYMO_OK;
}

static int network_beacon(struct ky_store_trace *base, int stream, uint64_t until_cycles,
			  struct kymo_error *err)
{
	const struct network_trace *trace = network_trace(base);
	uint64_t fixed = htole64(until_cycles);

	if (stream >= 0 || trace->has_ended)
		return KYMO_OK;
	return ky_sender_put(trace->store->sender, KY_FRAME_BEACON, trace->id, &fixed,
			     sizeof(fixed), NULL, 0, err);
}

/* ---- metadata ------------------------------------------------------------------------- */

static int network_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			    struct kymo_error *err)
{
	const struct network_trace *trace = network_trace(base);
	const struct ky_sender_part part = {text, len_bytes};

	if (len_bytes > METADATA_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "metadata of %zu bytes is too large",
				    len_bytes);
	return ky_sender_put(trace->store->sender, KY_FRAME_METADATA, trace->id, NULL, 0, &part, 1,
			     err);
}

static int network_patch(struct ky_store_trace *base, uint64_t at_bytes, const char *text,
			 size_t len_bytes, struct kymo_error *err)
{
	const struct network_trace *trace = network_trace(base);
	const struct ky_sender_part part = {text, len_bytes};
	uint64_t fixed = htole64(at_bytes);

	if (len_bytes > KY_NET_TEXT_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a change of %zu bytes is too large",
				    len_bytes);
	return ky_sender_put(trace->store->sender, KY_FRAME_PATCH, trace->id, &fixed, sizeof(fixed),
			     &part, 1, err);
}

/* ---- the end -------------------------------------------------------------------------- */

static int put_simple(const struct network_trace *trace, enum ky_frame_type type,
		      struct kymo_error *err)
{
	return ky_sender_put(trace->store->sender, type, trace->id, NULL, 0, NULL, 0, err);
}

static void network_store_free_streams(struct network_trace *trace)
{
	ky_vec_foreach(&trace->streams, stream)
		free(*stream);
	ky_vec_fini(&trace->streams);
}

static void network_trace_free(struct network_trace *trace)
{
	network_store_free_streams(trace);
	pthread_mutex_destroy(&trace->lock);
	free(trace->base.path);
	free(trace);
}

static int network_end_streams(struct ky_store_trace *base, struct kymo_error *err)
{
	struct network_trace *trace = network_trace(base);

	if (trace->has_ended)
		return KYMO_OK;
	trace->has_ended = true;
	network_store_free_streams(trace);
	return put_simple(trace, KY_FRAME_END, err);
}

static int network_close(struct ky_store_trace *base, struct kymo_error *err)
{
	int ret = put_simple(network_trace(base), KY_FRAME_CLOSE, err);

	network_trace_free(network_trace(base));
	return ret;
}

static void network_discard(struct ky_store_trace *base)
{
	(void)put_simple(network_trace(base), KY_FRAME_DISCARD, NULL);
	network_trace_free(network_trace(base));
}

static int network_rotate(struct ky_store_trace *base, const char *archive, struct kymo_error *err)
{
	struct network_trace *trace = network_trace(base);
	const struct ky_sender_part part = {archive, strlen(archive)};
	const uint32_t fixed[2] = {htole32(!trace->has_ended), 0};

	ky_vec_foreach(&trace->streams, stream)
		**stream = (struct network_stream){0};
	return ky_sender_put(trace->store->sender, KY_FRAME_ROTATE, trace->id, fixed, sizeof(fixed),
			     &part, 1, err);
}

static const struct ky_store_trace_ops network_trace_ops = {
	.stream = network_stream,
	.packet = network_packet,
	.metadata = network_metadata,
	.close = network_close,
	.discard = network_discard,
	.patch_metadata = network_patch,
	.beacon = network_beacon,
	.end_streams = network_end_streams,
	.rotate = network_rotate,
};

/* ---- opening -------------------------------------------------------------------------- */

static bool network_store_is_free(const struct network_store *store, const char *path)
{
	return !ky_map_get(&store->paths, ky_hash_bytes(path, strlen(path)));
}

/* Takes a path that no other trace of the session has. NULL: no memory, or *is_used. */
static char *network_store_take_path(struct network_store *store,
				     const struct ky_store_place *place, bool *is_used)
{
	char *path = strdup(*place->path ? place->path : "trace");

	*is_used = false;
	for (int i = 2; path && !network_store_is_free(store, path); i++) {
		free(path);
		path = NULL;
		*is_used = !place->is_numbered;
		if (*is_used || asprintf(&path, "%s-%d", place->path, i) < 0)
			return NULL;
	}
	if (path && ky_map_set(&store->paths, ky_hash_bytes(path, strlen(path)), store) < 0) {
		free(path);
		return NULL;
	}
	return path;
}

static int network_open(struct ky_packet_store *base, const struct ky_store_place *place,
			struct ky_store_trace **out, struct kymo_error *err)
{
	struct network_store *store = network_store(base);
	struct network_trace *trace = calloc(1, sizeof(*trace));
	const uint32_t fixed = htole32(place->is_part ? KY_OPEN_IS_PART : 0);
	struct ky_sender_part part;
	bool is_used = false;
	int ret;

	*out = NULL;
	if (!trace)
		return ky_error_nomem(err);
	pthread_mutex_lock(&store->lock);
	trace->base.path = network_store_take_path(store, place, &is_used);
	trace->id = ++store->n_traces;
	pthread_mutex_unlock(&store->lock);
	trace->base.ops = &network_trace_ops;
	trace->store = store;
	pthread_mutex_init(&trace->lock, NULL);
	if (!trace->base.path) {
		ret = is_used ? ky_error_set(err, KYMO_E_INVALID, "the path '%s' is in use",
					     place->path)
			      : ky_error_nomem(err);
	} else {
		part = (struct ky_sender_part){trace->base.path, strlen(trace->base.path)};
		ret = ky_sender_put(store->sender, KY_FRAME_OPEN, trace->id, &fixed, sizeof(fixed),
				    &part, 1, err);
	}
	if (ret < 0)
		network_trace_free(trace);
	else
		*out = &trace->base;
	return ret;
}

static uint32_t network_readers_delay_ms(struct ky_packet_store *base)
{
	return ky_sender_readers_delay_ms(network_store(base)->sender);
}

static int network_readers_fd(struct ky_packet_store *base)
{
	return ky_sender_readers_fd(network_store(base)->sender);
}

static bool network_is_full(struct ky_packet_store *base)
{
	return ky_sender_is_full(network_store(base)->sender);
}

static void network_backlog(struct ky_packet_store *base, struct ky_store_backlog *backlog)
{
	ky_sender_backlog(network_store(base)->sender, backlog);
}

static bool network_can_remove(struct ky_packet_store *base)
{
	return ky_sender_features(network_store(base)->sender) & KY_NET_FEATURE_REMOVE;
}

static int network_remove(struct ky_packet_store *base, const char *path, struct kymo_error *err)
{
	const struct ky_sender_part part = {path, strlen(path)};

	return ky_sender_put(network_store(base)->sender, KY_FRAME_REMOVE, 0, NULL, 0, &part, 1,
			     err);
}

static bool network_can_attach(struct ky_packet_store *base)
{
	return ky_sender_features(network_store(base)->sender) & KY_NET_FEATURE_FILE;
}

static int network_attach(struct ky_packet_store *base, const struct ky_store_file *file,
			  struct kymo_error *err)
{
	struct ky_net_file fixed = {0};
	const struct ky_sender_part parts[] = {{&fixed, sizeof(fixed)},
					       {file->data, file->size_bytes}};

	if (file->size_bytes > KY_NET_FILE_MAX || strlen(file->place) >= sizeof(fixed.place) ||
	    strlen(file->name) >= sizeof(fixed.name))
		return ky_error_set(err, KYMO_E_LIMIT,
				    "the symbols in %s are too large for a relay", file->name);
	memcpy(fixed.place, file->place, strlen(file->place));
	memcpy(fixed.name, file->name, strlen(file->name));
	return ky_sender_put(network_store(base)->sender, KY_FRAME_FILE, 0, NULL, 0, parts, 2, err);
}

static void network_free(struct ky_packet_store *base)
{
	struct network_store *store = network_store(base);

	ky_sender_close(store->sender);
	ky_map_fini(&store->paths);
	pthread_mutex_destroy(&store->lock);
	free(base->name);
	free(store);
}

static const struct ky_packet_store_ops network_store_ops = {
	.open = network_open,
	.readers_delay_ms = network_readers_delay_ms,
	.readers_fd = network_readers_fd,
	.is_full = network_is_full,
	.backlog = network_backlog,
	.can_remove = network_can_remove,
	.remove = network_remove,
	.can_attach = network_can_attach,
	.attach = network_attach,
	.free = network_free,
};

int ky_network_store_open(const char *name, const struct ky_sender_options *options,
			  struct ky_packet_store **out, struct kymo_error *err)
{
	struct network_store *store = calloc(1, sizeof(*store));
	int ret;

	*out = NULL;
	if (!store)
		return ky_error_nomem(err);
	store->base.ops = &network_store_ops;
	store->base.name = strdup(name);
	pthread_mutex_init(&store->lock, NULL);
	ret = store->base.name ? ky_sender_open(options, &store->sender, err) : ky_error_nomem(err);
	if (ret < 0)
		network_free(&store->base);
	else
		*out = &store->base;
	return ret;
}

int ky_network_store_finish(struct ky_packet_store *store, int patience_ms, bool (*gives_up)(void),
			    struct kymo_error *err)
{
	return ky_sender_finish(network_store(store)->sender, patience_ms, gives_up, err);
}
