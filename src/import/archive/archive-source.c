/* SPDX-License-Identifier: MIT */
#include "import/archive/archive-source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lzma.h>
#include <zlib.h>

#include "base/error.h"
#include "os/library.h"
#include "os/zstd-library.h"

#define IN_BYTES  ((size_t)64 << 10)
#define OUT_BYTES ((size_t)128 << 10)
/* zlib: windows of any size, and the heads and checksums of gzip. */
#define GZIP_WINDOW_BITS (15 + 16)
/* zstd -19 needs 2^23, --ultra -22 2^27. */
#define ZSTD_WINDOW_LOG 27
/* xz -9 needs 65 MiB. */
#define XZ_MEMORY_BYTES (UINT64_C(128) << 20)

/* One call of a library: all went well; a stream ended, and another one may follow; damage. */
enum source_step { STEP_MORE, STEP_END, STEP_BAD };

/* What one kind of compression does. */
struct source_kind {
	const char *magic;
	size_t magic_bytes;
	const char *first_bytes; /* that a later stream may have */
	const char *cut, *damaged;
	int (*open)(struct ky_archive_source *source, struct kymo_error *err);
	/* Before the second and each later stream; NULL: nothing to do. */
	bool (*again)(struct ky_archive_source *source);
	enum source_step (*step)(struct ky_archive_source *source);
	void (*close)(struct ky_archive_source *source);
};

struct ky_archive_source {
	const struct source_kind *kind;
	int fd;
	uint64_t read_bytes; /* of the file */
	size_t in_at, in_bytes, out_bytes;
	bool is_between;   /* no stream is begun */
	bool is_file_done; /* all of the file is in `in` */
	bool is_too_large, has_content;
	const char *damage;
	union {
		z_stream gzip;
		ZSTD_DStream *zstd;
		lzma_stream xz;
	} of;
	uint8_t in[IN_BYTES], out[OUT_BYTES];
};

/* ---- gzip ------------------------------------------------------------------------------- */

static int gzip_open(struct ky_archive_source *source, struct kymo_error *err)
{
	return inflateInit2(&source->of.gzip, GZIP_WINDOW_BITS) == Z_OK ? KYMO_OK
									: ky_error_nomem(err);
}

static bool gzip_again(struct ky_archive_source *source)
{
	return inflateReset(&source->of.gzip) == Z_OK;
}

static enum source_step gzip_step(struct ky_archive_source *source)
{
	z_stream *gzip = &source->of.gzip;
	int got;

	gzip->next_in = source->in + source->in_at;
	gzip->avail_in = (uInt)(source->in_bytes - source->in_at);
	gzip->next_out = source->out;
	gzip->avail_out = OUT_BYTES;
	got = inflate(gzip, Z_NO_FLUSH);
	source->in_at = source->in_bytes - gzip->avail_in;
	source->out_bytes = OUT_BYTES - gzip->avail_out;
	if (got == Z_STREAM_END)
		return STEP_END;
	return got == Z_OK || got == Z_BUF_ERROR ? STEP_MORE : STEP_BAD;
}

static void gzip_close(struct ky_archive_source *source)
{
	(void)inflateEnd(&source->of.gzip);
}

/* ---- zstd ------------------------------------------------------------------------------- */

static int zstd_open(struct ky_archive_source *source, struct kymo_error *err)
{
	int ret = ky_zstd_library_load(err);

	if (ret < 0)
		return ret;
	source->of.zstd = ky_zstd.ZSTD_createDStream();
	if (!source->of.zstd)
		return ky_error_nomem(err);
	(void)ky_zstd.ZSTD_DCtx_setParameter(source->of.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
	return KYMO_OK;
}

static enum source_step zstd_step(struct ky_archive_source *source)
{
	ZSTD_inBuffer in = {source->in, source->in_bytes, source->in_at};
	ZSTD_outBuffer out = {source->out, OUT_BYTES, 0};
	size_t got = ky_zstd.ZSTD_decompressStream(source->of.zstd, &out, &in);

	source->in_at = in.pos;
	source->out_bytes = out.pos;
	if (ky_zstd.ZSTD_isError(got)) {
		source->is_too_large =
			ky_zstd.ZSTD_getErrorCode(got) == ZSTD_error_frameParameter_windowTooLarge;
		return STEP_BAD;
	}
	return got ? STEP_MORE : STEP_END;
}

static void zstd_close(struct ky_archive_source *source)
{
	(void)ky_zstd.ZSTD_freeDStream(source->of.zstd);
}

/* ---- xz --------------------------------------------------------------------------------- */

#define XZ_FUNCTIONS(X)        \
	X(lzma_stream_decoder) \
	X(lzma_code)           \
	X(lzma_end)

XZ_FUNCTIONS(KY_LIBRARY_TYPE)

static struct {
	XZ_FUNCTIONS(KY_LIBRARY_MEMBER)
} library;

#define SYMBOL(name) {#name, offsetof(__typeof__(library), name)},
static const struct ky_library_symbol symbols[] = {XZ_FUNCTIONS(SYMBOL){0}};

static bool xz_again(struct ky_archive_source *source)
{
	return library.lzma_stream_decoder(&source->of.xz, XZ_MEMORY_BYTES, 0) == LZMA_OK;
}

static int xz_open(struct ky_archive_source *source, struct kymo_error *err)
{
	int ret = library.lzma_end
			  ? KYMO_OK
			  : ky_library_load("liblzma.so.5", "liblzma5", symbols, &library, err);

	if (ret < 0)
		return ret;
	source->of.xz = (lzma_stream)LZMA_STREAM_INIT;
	return xz_again(source) ? KYMO_OK : ky_error_nomem(err);
}

static enum source_step xz_step(struct ky_archive_source *source)
{
	lzma_stream *xz = &source->of.xz;
	lzma_ret got;

	xz->next_in = source->in + source->in_at;
	xz->avail_in = source->in_bytes - source->in_at;
	xz->next_out = source->out;
	xz->avail_out = OUT_BYTES;
	got = library.lzma_code(xz, LZMA_RUN);
	source->in_at = source->in_bytes - xz->avail_in;
	source->out_bytes = OUT_BYTES - xz->avail_out;
	if (got == LZMA_STREAM_END)
		return STEP_END;
	source->is_too_large = got == LZMA_MEMLIMIT_ERROR;
	return got == LZMA_OK || got == LZMA_BUF_ERROR ? STEP_MORE : STEP_BAD;
}

static void xz_close(struct ky_archive_source *source)
{
	library.lzma_end(&source->of.xz);
}

/* ---- a source --------------------------------------------------------------------------- */

static const struct source_kind kinds[] = {
	{
		.magic = "\x1f\x8b",
		.magic_bytes = 2,
		.first_bytes = "\x1f",
		.cut = "its gzip data are cut",
		.damaged = "its gzip data are wrong",
		.open = gzip_open,
		.again = gzip_again,
		.step = gzip_step,
		.close = gzip_close,
	},
	{
		.magic = "\x28\xb5\x2f\xfd",
		.magic_bytes = 4,
		/* The others begin frames that decoders skip. */
		.first_bytes = "\x28PQRSTUVWXYZ[\\]^_",
		.cut = "its zstd data are cut",
		.damaged = "its zstd data are wrong",
		.open = zstd_open,
		.step = zstd_step,
		.close = zstd_close,
	},
	{
		.magic = "\xfd"
			 "7zXZ\0",
		.magic_bytes = 6,
		.first_bytes = "\xfd",
		.cut = "its xz data are cut",
		.damaged = "its xz data are wrong",
		.open = xz_open,
		.again = xz_again,
		.step = xz_step,
		.close = xz_close,
	},
};

static void source_fill(struct ky_archive_source *source)
{
	ssize_t got;

	if (source->in_at < source->in_bytes || source->is_file_done)
		return;
	do {
		got = pread(source->fd, source->in, IN_BYTES, (off_t)source->read_bytes);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		source->damage = "the rest of the file cannot be read";
	source->is_file_done = got <= 0;
	source->in_at = 0;
	source->in_bytes = got > 0 ? (size_t)got : 0;
	source->read_bytes += source->in_bytes;
}

int ky_archive_source_open(int fd, struct ky_archive_source **out, struct kymo_error *err)
{
	struct ky_archive_source *source = malloc(sizeof(*source));
	int ret = KYMO_OK;

	*out = NULL;
	if (!source)
		return ky_error_nomem(err);
	memset(source, 0, offsetof(struct ky_archive_source, in));
	source->fd = fd;
	source_fill(source);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !source->kind; i++)
		if (source->in_bytes >= kinds[i].magic_bytes &&
		    memcmp(source->in, kinds[i].magic, kinds[i].magic_bytes) == 0)
			source->kind = &kinds[i];
	if (source->kind)
		ret = source->kind->open(source, err);
	if (ret < 0 || !source->kind) {
		free(source);
		return ret;
	}
	*out = source;
	return KYMO_OK;
}

void ky_archive_source_close(struct ky_archive_source *source)
{
	if (!source)
		return;
	source->kind->close(source);
	free(source);
}

/* Streams may follow each other, and zeros the last one, to the end of a block. */
static bool source_begin_next(struct ky_archive_source *source)
{
	while (!source->damage) {
		source_fill(source);
		while (source->in_at < source->in_bytes && !source->in[source->in_at])
			source->in_at++;
		if (source->in_at < source->in_bytes || source->is_file_done)
			break;
	}
	if (source->damage || source->in_at == source->in_bytes)
		return false;
	source->is_between = false;
	if (!strchr(source->kind->first_bytes, source->in[source->in_at]))
		source->damage = "other data follow its compressed data";
	else if (source->kind->again && !source->kind->again(source))
		source->damage = "there is no memory for its next part";
	return !source->damage;
}

static void source_step(struct ky_archive_source *source)
{
	size_t from = source->in_at;
	enum source_step step = source->kind->step(source);
	bool is_stuck = source->in_at == from && !source->out_bytes;

	if (step == STEP_END) {
		source->is_between = true;
	} else if (step == STEP_BAD && !source->damage) {
		source->damage = source->is_too_large
					 ? "unpacking needs more than 128 MiB of memory"
					 : source->kind->damaged;
	} else if (is_stuck && !source->damage && source->in_at == source->in_bytes &&
		   source->is_file_done) {
		source->damage = source->kind->cut;
	} else if (is_stuck && !source->damage && source->in_at < source->in_bytes) {
		source->damage = source->kind->damaged;
	}
}

size_t ky_archive_source_read(struct ky_archive_source *source, const void **data)
{
	source->out_bytes = 0;
	while (!source->out_bytes && !source->damage) {
		if (source->is_between && !source_begin_next(source))
			break;
		source_fill(source);
		if (!source->damage)
			source_step(source);
	}
	*data = source->out;
	source->has_content |= source->out_bytes > 0;
	return source->out_bytes;
}

bool ky_archive_source_is_empty(const struct ky_archive_source *source)
{
	return !source->has_content;
}

bool ky_archive_source_is_too_large(const struct ky_archive_source *source)
{
	return source->is_too_large;
}

const char *ky_archive_source_damage(const struct ky_archive_source *source, uint64_t *offset_bytes)
{
	*offset_bytes = source->read_bytes - (source->in_bytes - source->in_at);
	return source->damage;
}
