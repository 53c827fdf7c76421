/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto, gzipped: a location and a function for each frame. Numbers of fields are those of
 * github.com/google/pprof/proto/profile.proto.
 */
#include <string.h>
#include <zlib.h>

#include "analysis/export/protobuf.h"
#include "analysis/export/stacks-internal.h"

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRINGS = 6,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
};

enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* The first texts; then each frame's function and file. */
enum { STRING_EMPTY, STRING_SAMPLES, STRING_COUNT, STRING_VALUE, STRING_UNIT, STRINGS };

#define TEXT_MAX_BYTES 4096

static void pprof_type(struct ky_strbuf *out, uint32_t field, uint64_t type, uint64_t unit)
{
	size_t begun = ky_pb_begin(out, field);

	ky_pb_uint(out, TYPE_TYPE, type);
	ky_pb_uint(out, TYPE_UNIT, unit);
	ky_pb_end(out, begun);
}

static void pprof_text(struct ky_strbuf *out, const char *text)
{
	ky_pb_text(out, PROFILE_STRINGS, text, strlen(text), TEXT_MAX_BYTES);
}

static void pprof_strings(struct ky_strbuf *out, const struct ky_stack_tree *tree)
{
	/* The first one must be there, and is empty. */
	ky_pb_bytes(out, PROFILE_STRINGS, "", 0);
	pprof_text(out, "samples");
	pprof_text(out, "count");
	pprof_text(out, tree->is_time ? "cpu" : tree->what[0] ? tree->what : "events");
	pprof_text(out, tree->is_time ? "nanoseconds" : "count");
	ky_vec_foreach(&tree->frames, frame) {
		pprof_text(out, frame->function);
		pprof_text(out, frame->object);
	}
}

static void pprof_frame(struct ky_strbuf *out, uint64_t i)
{
	size_t begun = ky_pb_begin(out, PROFILE_LOCATION), line;

	ky_pb_uint(out, LOCATION_ID, i + 1);
	line = ky_pb_begin(out, LOCATION_LINE);
	ky_pb_uint(out, LINE_FUNCTION, i + 1);
	ky_pb_end(out, line);
	ky_pb_end(out, begun);
	begun = ky_pb_begin(out, PROFILE_FUNCTION);
	ky_pb_uint(out, FUNCTION_ID, i + 1);
	ky_pb_uint(out, FUNCTION_NAME, STRINGS + 2 * i);
	ky_pb_uint(out, FUNCTION_SYSTEM_NAME, STRINGS + 2 * i);
	ky_pb_uint(out, FUNCTION_FILE, STRINGS + 2 * i + 1);
	ky_pb_end(out, begun);
}

static void pprof_sample(struct ky_strbuf *out, const struct ky_stack_tree *tree, uint32_t at)
{
	const struct ky_stack_node *node = &tree->nodes.data[at];
	uint32_t path[KY_STACKS_DEPTH_MAX];
	size_t n = ky_stacks_path(tree, at, path, KY_STACKS_DEPTH_MAX);
	size_t begun = ky_pb_begin(out, PROFILE_SAMPLE);

	for (size_t i = 0; i < n; i++)
		ky_pb_uint(out, SAMPLE_LOCATION, path[i] + 1ull);
	ky_pb_uint(out, SAMPLE_VALUE, node->count);
	ky_pb_uint(out, SAMPLE_VALUE, node->self[0]);
	ky_pb_end(out, begun);
}

/* Appends @plain, gzipped. */
static bool pprof_pack(struct ky_strbuf *out, const struct ky_strbuf *plain)
{
	z_stream stream = {0};
	uLong bound;
	int ret;

	/* 16 more than the window's bits: gzip's header. */
	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	bound = deflateBound(&stream, plain->len);
	if (plain->len > UINT32_MAX || bound > UINT32_MAX || !ky_strbuf_reserve(out, bound)) {
		(void)deflateEnd(&stream);
		return false;
	}
	stream.next_in = (Bytef *)plain->data;
	stream.avail_in = (uInt)plain->len;
	stream.next_out = (Bytef *)out->data + out->len;
	stream.avail_out = (uInt)bound;
	ret = deflate(&stream, Z_FINISH);
	out->len += stream.total_out;
	(void)deflateEnd(&stream);
	return ret == Z_STREAM_END;
}

void ky_stacks_pprof(struct ky_strbuf *out, const struct ky_stack_tree *tree)
{
	struct ky_strbuf plain = KY_STRBUF_INIT;

	pprof_type(&plain, PROFILE_SAMPLE_TYPE, STRING_SAMPLES, STRING_COUNT);
	pprof_type(&plain, PROFILE_SAMPLE_TYPE, STRING_VALUE, STRING_UNIT);
	for (uint32_t i = 1; i < tree->nodes.len; i++)
		if (tree->nodes.data[i].self[0])
			pprof_sample(&plain, tree, i);
	for (uint64_t i = 0; i < tree->frames.len; i++)
		pprof_frame(&plain, i);
	pprof_strings(&plain, tree);
	pprof_type(&plain, PROFILE_PERIOD_TYPE, STRING_VALUE, STRING_UNIT);
	ky_pb_uint(&plain, PROFILE_PERIOD, 1);
	if (ky_strbuf_failed(&plain) || !pprof_pack(out, &plain))
		out->failed = true;
	ky_strbuf_fini(&plain);
}
