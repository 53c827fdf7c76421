/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/error.h"
#include "failing-store.h"
#include "store/read/trace.h"

struct failing_store {
	struct ky_packet_store base;
	struct ky_packet_store *to;
	uint64_t fail_at, calls;
	bool plain;
};

struct failing_trace {
	struct ky_store_trace base;
	struct failing_store *store;
	struct ky_store_trace *to;
};

static int count_call(struct failing_store *store, struct kymo_error *err)
{
	uint64_t number = __atomic_fetch_add(&store->calls, 1, __ATOMIC_RELAXED);

	return number < store->fail_at ? KYMO_OK
				       : ky_error_set(err, KYMO_E_IO, FAILING_STORE_MESSAGE);
}

static int begin(struct ky_store_trace *base, struct ky_store_trace **to, struct kymo_error *err)
{
	struct failing_trace *trace = (struct failing_trace *)base;

	*to = trace->to;
	return count_call(trace->store, err);
}

static int end(struct ky_store_trace *base, int ret)
{
	base->bytes_written = ((struct failing_trace *)base)->to->bytes_written;
	return ret;
}

static int failing_stream(struct ky_store_trace *base, const char *name, struct kymo_error *err)
{
	struct ky_store_trace *to;
	int ret = begin(base, &to, err);

	return ret < 0 ? ret : ky_store_stream(to, name, err);
}

static int failing_packet(struct ky_store_trace *base, int stream,
			  const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct ky_packet_out copy = *packet;
	struct ky_store_trace *to;
	int ret = begin(base, &to, err);

	if (ret < 0)
		return ret;
	copy.block = NULL;
	return end(base, ky_store_packet(to, stream, &copy, err));
}

static int failing_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			    struct kymo_error *err)
{
	struct ky_store_trace *to;
	int ret = begin(base, &to, err);

	return ret < 0 ? ret : ky_store_metadata(to, text, len_bytes, err);
}

static int failing_copy(struct ky_store_trace *base, int stream, const struct ky_bytes_out *bytes,
			struct kymo_error *err)
{
	struct ky_store_trace *to;
	int ret = begin(base, &to, err);

	return ret < 0 ? ret : end(base, ky_store_copy(to, stream, bytes, err));
}

static int failing_list(struct ky_store_trace *base, int stream, const struct ky_packet_out *packet,
			struct kymo_error *err)
{
	struct ky_store_trace *to;
	int ret = begin(base, &to, err);

	return ret < 0 ? ret : ky_store_list(to, stream, packet, err);
}

static int failing_patch(struct ky_store_trace *base, uint64_t at_bytes, const char *text,
			 size_t len_bytes, struct kymo_error *err)
{
	struct ky_store_trace *to;
	int ret = begin(base, &to, err);

	return ret < 0 ? ret : ky_store_patch_metadata(to, at_bytes, text, len_bytes, err);
}

static int failing_end_streams(struct ky_store_trace *base, struct kymo_error *err)
{
	return ky_store_end_streams(((struct failing_trace *)base)->to, err);
}

static void trace_free(struct failing_trace *trace)
{
	free(trace->base.path);
	free(trace);
}

static int failing_close(struct ky_store_trace *base, struct kymo_error *err)
{
	struct failing_trace *trace = (struct failing_trace *)base;
	int ret = ky_store_close(trace->to, err);

	trace_free(trace);
	return ret;
}

static void failing_discard(struct ky_store_trace *base)
{
	struct failing_trace *trace = (struct failing_trace *)base;

	ky_store_discard(trace->to);
	trace_free(trace);
}

static const struct ky_store_trace_ops failing_ops = {
	.stream = failing_stream,
	.packet = failing_packet,
	.metadata = failing_metadata,
	.close = failing_close,
	.discard = failing_discard,
	.copy = failing_copy,
	.list = failing_list,
	.patch_metadata = failing_patch,
	.end_streams = failing_end_streams,
};

static const struct ky_store_trace_ops plain_ops = {
	.stream = failing_stream,
	.packet = failing_packet,
	.metadata = failing_metadata,
	.close = failing_close,
};

static int failing_open(struct ky_packet_store *base, const struct ky_store_place *place,
			struct ky_store_trace **out, struct kymo_error *err)
{
	struct failing_store *store = (struct failing_store *)base;
	struct failing_trace *trace = calloc(1, sizeof(*trace));
	int ret = count_call(store, err);

	*out = NULL;
	assert_non_null(trace);
	if (!ret)
		ret = ky_store_open(store->to, place, &trace->to, err);
	if (ret < 0) {
		free(trace);
		return ret;
	}
	trace->base.ops = store->plain ? &plain_ops : &failing_ops;
	trace->base.path = strdup(trace->to->path);
	trace->store = store;
	*out = &trace->base;
	return KYMO_OK;
}

static void failing_free(struct ky_packet_store *base)
{
	ky_store_free(((struct failing_store *)base)->to);
	free(base);
}

static const struct ky_packet_store_ops failing_store_ops = {
	.open = failing_open,
	.free = failing_free,
};

struct ky_packet_store *failing_store_new(struct ky_packet_store *to, uint64_t fail_at, bool plain)
{
	struct failing_store *store = calloc(1, sizeof(*store));

	assert_non_null(store);
	store->base.ops = &failing_store_ops;
	store->base.name = to->name;
	store->to = to;
	store->fail_at = fail_at;
	store->plain = plain;
	return &store->base;
}

uint64_t failing_store_calls(const struct ky_packet_store *store)
{
	return ((const struct failing_store *)store)->calls;
}

uint64_t readable_packets(const char *path)
{
	struct ky_trace_set set;
	struct kymo_error err;
	uint64_t packets = 0;
	int ret = ky_trace_set_open(&set, &path, 1, NULL, &err);

	if (ret == KYMO_E_NOT_FOUND)
		return 0;
	if (ret < 0)
		fail_msg("%s: %s", err.path, err.message);
	ky_vec_foreach(&set.streams, stream) {
		struct ky_packet_list list = KY_VEC_INIT;

		if (ky_stream_packets(*stream, &list, &err) < 0)
			fail_msg("%s: %s", err.path, err.message);
		packets += list.len;
		ky_vec_fini(&list);
	}
	ky_trace_set_close(&set);
	return packets;
}
