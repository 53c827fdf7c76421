/* SPDX-License-Identifier: MIT */
/* Compressed records: one zstd stream over all of them, whose content is records again. */
#include <stdlib.h>

#include "base/error.h"
#include "import/perf/perf-file.h"
#include "os/zstd-library.h"

/* Of one compressed record: perf's own buffers are smaller. */
#define UNPACKED_MAX_BYTES ((size_t)64 << 20)
#define WINDOW_LOG	   27
/* What zstd wants next between two blocks: the head of one. */
#define BLOCK_HEAD_BYTES 3u

struct ky_perf_unpack {
	ZSTD_DStream *zstd;
	uint8_t *data;
	size_t at, len, cap;
	size_t wanted; /* what zstd wants next, as it says; 0: nothing */
	uint64_t from; /* the last compressed record */
};

void ky_perf_unpack_free(struct ky_perf_unpack *unpack)
{
	if (!unpack)
		return;
	if (unpack->zstd)
		ky_zstd.ZSTD_freeDStream(unpack->zstd);
	free(unpack->data);
	free(unpack);
}

static int perf_unpack_open(struct ky_perf_file *perf, struct kymo_error *err)
{
	int ret = ky_zstd_library_load(err);

	if (ret < 0)
		return ret;
	perf->unpack = calloc(1, sizeof(*perf->unpack));
	if (perf->unpack)
		perf->unpack->zstd = ky_zstd.ZSTD_createDStream();
	if (!perf->unpack || !perf->unpack->zstd)
		return ky_error_nomem(err);
	ky_zstd.ZSTD_DCtx_setParameter(perf->unpack->zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	return KYMO_OK;
}

static int perf_unpack_reserve(struct ky_perf_unpack *unpack, struct kymo_error *err)
{
	size_t cap = unpack->cap ? unpack->cap : (size_t)256 << 10;
	uint8_t *data;

	/* What was handed out makes room. */
	if (unpack->at) {
		memmove(unpack->data, unpack->data + unpack->at, unpack->len - unpack->at);
		unpack->len -= unpack->at;
		unpack->at = 0;
	}
	if (unpack->cap - unpack->len >= (size_t)128 << 10)
		return KYMO_OK;
	cap = unpack->cap ? 2 * cap : cap;
	if (cap > UNPACKED_MAX_BYTES)
		return ky_error_set(err, KYMO_E_LIMIT, "a compressed record unpacks to too much");
	data = realloc(unpack->data, cap);
	if (!data)
		return ky_error_nomem(err);
	unpack->data = data;
	unpack->cap = cap;
	return KYMO_OK;
}

int ky_perf_unpack_add(struct ky_perf_file *perf, const uint8_t *bytes, size_t len, uint64_t at,
		       struct kymo_error *err)
{
	ZSTD_inBuffer in = {bytes, len, 0};
	bool is_full = false;
	int ret = perf->unpack ? KYMO_OK : perf_unpack_open(perf, err);

	while (!ret && (in.pos < in.size || is_full)) {
		struct ky_perf_unpack *unpack = perf->unpack;
		ZSTD_outBuffer out;
		size_t got;

		ret = perf_unpack_reserve(unpack, err);
		if (ret < 0) {
			ky_error_path(err, perf->file.path);
			ky_error_offset(err, at);
			break;
		}
		out = (ZSTD_outBuffer){unpack->data, unpack->cap, unpack->len};
		got = ky_zstd.ZSTD_decompressStream(unpack->zstd, &out, &in);
		if (ky_zstd.ZSTD_isError(got))
			return ky_foreign_bad(&perf->file, at, "a compressed record is damaged",
					      err);
		ret = ky_foreign_unpack(&perf->file, at, out.pos - unpack->len, err);
		unpack->len = out.pos;
		unpack->wanted = got;
		unpack->from = at;
		is_full = out.pos == out.size;
	}
	return ret;
}

/* perf flushes what it writes, but never ends the stream: a block may follow. */
int ky_perf_unpack_end(const struct ky_perf_file *perf, struct kymo_error *err)
{
	const struct ky_perf_unpack *unpack = perf->unpack;

	if (!unpack ||
	    (unpack->at == unpack->len && (!unpack->wanted || unpack->wanted == BLOCK_HEAD_BYTES)))
		return KYMO_OK;
	return ky_foreign_bad(&perf->file, unpack->from,
			      "the compressed records are cut: the rest of the last one is missing",
			      err);
}

bool ky_perf_unpack_next(struct ky_perf_file *perf, struct ky_perf_head *head, int *ret,
			 struct kymo_error *err)
{
	struct ky_perf_unpack *unpack = perf->unpack;
	const uint8_t *bytes = unpack->data + unpack->at;
	size_t left = unpack->len - unpack->at;

	*ret = KYMO_OK;
	if (left < KY_PERF_HEAD_BYTES)
		return false;
	head->type = ky_foreign_u32(bytes, perf->file.swap);
	head->misc = ky_foreign_u16(bytes + 4, perf->file.swap);
	head->size = ky_foreign_u16(bytes + 6, perf->file.swap);
	if (head->size < KY_PERF_HEAD_BYTES) {
		*ret = ky_foreign_bad(&perf->file, perf->record_at,
				      "a record in a compressed one has no length", err);
		return true;
	}
	/* The rest of it comes with the next compressed record. */
	if (head->size > left)
		return false;
	head->bytes = bytes;
	unpack->at += head->size;
	return true;
}
