/* SPDX-License-Identifier: MIT */
#include "import/common/unpack.h"

#include <zlib.h>

#include "base/error.h"
#include "os/zstd-library.h"

static int unpack_zstd(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes,
		       struct kymo_error *err)
{
	ZSTD_inBuffer in = {from, from_bytes, 0};
	ZSTD_outBuffer out = {to, to_bytes, 0};
	ZSTD_DStream *zstd;
	size_t got = 0;
	int ret = ky_zstd_library_load(err);

	if (ret < 0)
		return ret;
	zstd = ky_zstd.ZSTD_createDStream();
	if (!zstd)
		return ky_error_nomem(err);
	while (out.pos < out.size && in.pos < in.size && !ky_zstd.ZSTD_isError(got))
		got = ky_zstd.ZSTD_decompressStream(zstd, &out, &in);
	ky_zstd.ZSTD_freeDStream(zstd);
	return !ky_zstd.ZSTD_isError(got) && out.pos == out.size
		       ? KYMO_OK
		       : ky_error_set(err, KYMO_E_FORMAT, "compressed data is damaged");
}

static int unpack_zlib(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes,
		       struct kymo_error *err)
{
	uLongf got = (uLongf)to_bytes;

	if (uncompress(to, &got, from, (uLong)from_bytes) == Z_OK && got == to_bytes)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_FORMAT, "compressed data is damaged");
}

int ky_unpack(enum ky_unpack_kind kind, const uint8_t *from, size_t from_bytes, uint8_t *to,
	      size_t to_bytes, struct kymo_error *err)
{
	switch (kind) {
	case KY_UNPACK_ZSTD:
		return unpack_zstd(from, from_bytes, to, to_bytes, err);
	case KY_UNPACK_ZLIB:
		return unpack_zlib(from, from_bytes, to, to_bytes, err);
	default:
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "data is compressed in a way that Kymo does not know; "
				    "try: unpack the file with trace-cmd first");
	}
}
