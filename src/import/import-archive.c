/* SPDX-License-Identifier: MIT */
/*
 * Archives (.tar.zst) of kymo report --archive: their traces are unpacked into files without names. No name in an
 * archive becomes the name of a file, so that none can lead elsewhere, and all numbers in it have limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "import/archive.h"
#include "import/import-internal.h"
#include "import/zstd-library.h"
#include "os/file.h"

#define METADATA_MAX_BYTES (64u << 20)
#define TRACES_MAX	   4096
#define STREAMS_MAX	   65536
#define MEMBERS_MAX	   1000000
/* Unpacked bytes per byte of the archive, and those that every archive may have. */
#define RATIO_MAX  1024
#define FREE_BYTES (UINT64_C(256) << 20)
#define WINDOW_LOG 27

struct unpacked {
	char *directory; /* of the trace, in the archive */
	struct ky_scratch_trace *trace;
	struct ky_packet_store *store;
	struct ky_store_trace *to;
};

struct reader {
	const char *path;
	struct ky_import *imports;
	struct kymo_error *err;
	struct ky_archive_head head;
	size_t head_bytes;  /* of head, so far */
	uint64_t left, pad; /* of the member */
	uint64_t n_members, n_streams, total, total_max;
	bool is_over;
	KY_VEC(struct unpacked) traces;
	/* The member at hand. */
	struct unpacked *trace; /* NULL: it is left out */
	int stream;		/* -1: metadata */
};

static int import_archive_bad(const struct reader *reader, int code, const char *what)
{
	ky_error_set(reader->err, code, "%s", what);
	ky_error_path(reader->err, reader->path);
	return code;
}

/* ---- members --------------------------------------------------------------------------- */

static bool parse_octal(const char *text, size_t len, uint64_t *number)
{
	size_t at = 0;

	*number = 0;
	while (at < len && text[at] == ' ')
		at++;
	for (; at < len && text[at] && text[at] != ' '; at++) {
		if (text[at] < '0' || text[at] > '7')
			return false;
		*number = *number << 3 | (uint64_t)(text[at] - '0');
	}
	return true;
}

static struct unpacked *find_trace(struct reader *reader, const char *directory)
{
	ky_vec_foreach(&reader->traces, trace)
		if (strcmp(trace->directory, directory) == 0)
			return trace;
	return NULL;
}

static int import_archive_new_trace(struct reader *reader, const char *directory)
{
	const struct ky_store_place place = {.path = ""};
	struct unpacked trace = {.directory = strdup(directory)};
	int ret;

	if (reader->traces.len == TRACES_MAX) {
		free(trace.directory);
		return import_archive_bad(reader, KYMO_E_LIMIT,
					  "the archive has too many directories");
	}
	trace.trace = ky_import_new_trace(reader->imports);
	if (!trace.directory || !trace.trace || ky_vec_push(&reader->traces, trace) < 0) {
		free(trace.directory);
		return ky_error_nomem(reader->err);
	}
	reader->trace = ky_vec_last(&reader->traces);
	ret = ky_scratch_store_open(trace.trace, &reader->trace->store, reader->err);
	if (!ret)
		ret = ky_store_open(reader->trace->store, &place, &reader->trace->to, reader->err);
	return ret;
}

/* A stream's file is beside the metadata; index/, reports and hidden files are no streams. */
static bool is_left_out(const char *directory, const char *name)
{
	const char *last = strrchr(directory, '/');

	last = last ? last + 1 : directory;
	return !*name || *name == '.' || strcmp(last, "index") == 0 || strcmp(last, "report") == 0;
}

static int begin_file(struct reader *reader, char *path, uint64_t size_bytes)
{
	char *slash = strrchr(path, '/');
	int ret = KYMO_OK;

	reader->trace = NULL;
	if (!slash)
		return KYMO_OK;
	*slash = '\0';
	if (is_left_out(path, slash + 1))
		return KYMO_OK;
	reader->trace = find_trace(reader, path);
	if (!reader->trace)
		ret = import_archive_new_trace(reader, path);
	if (ret < 0)
		return ret;
	reader->stream = -1;
	if (strcmp(slash + 1, "metadata") == 0)
		return size_bytes > METADATA_MAX_BYTES
			       ? import_archive_bad(reader, KYMO_E_LIMIT,
						    "the metadata is too large")
			       : KYMO_OK;
	if (++reader->n_streams > STREAMS_MAX)
		return import_archive_bad(reader, KYMO_E_LIMIT, "the archive has too many files");
	reader->stream = ky_store_stream(reader->trace->to, slash + 1, reader->err);
	return reader->stream < 0 ? reader->stream : KYMO_OK;
}

static int import_archive_take_head(struct reader *reader)
{
	static const struct ky_archive_head zeros;
	const struct ky_archive_head *head = &reader->head;
	char path[sizeof(head->prefix) + sizeof(head->name) + 2];
	uint64_t sum, size;

	if (memcmp(head, &zeros, sizeof(zeros)) == 0) {
		reader->is_over = true;
		return KYMO_OK;
	}
	if (memcmp(head->magic, "ustar", 5) != 0 ||
	    !parse_octal(head->checksum, sizeof(head->checksum), &sum) ||
	    sum != ky_archive_checksum(head) || !parse_octal(head->size, sizeof(head->size), &size))
		return import_archive_bad(reader, KYMO_E_FORMAT,
					  "the archive is damaged: no head of a member");
	if (++reader->n_members > MEMBERS_MAX)
		return import_archive_bad(reader, KYMO_E_LIMIT, "the archive has too many members");
	reader->left = size;
	reader->pad =
		(KY_ARCHIVE_BLOCK_BYTES - size % KY_ARCHIVE_BLOCK_BYTES) % KY_ARCHIVE_BLOCK_BYTES;
	reader->trace = NULL;
	if (head->type != '0' && head->type != '\0')
		return KYMO_OK;
	snprintf(path, sizeof(path), "%.*s%s%.*s", (int)sizeof(head->prefix), head->prefix,
		 head->prefix[0] ? "/" : "", (int)sizeof(head->name), head->name);
	return begin_file(reader, path, size);
}

static int take_content(struct reader *reader, const uint8_t *data, size_t len)
{
	struct ky_packet_out out = {.data = data, .size_bytes = len};
	struct ky_strbuf *metadata;

	if (!reader->trace || !len)
		return KYMO_OK;
	if (reader->stream >= 0)
		return ky_store_packet(reader->trace->to, reader->stream, &out, reader->err);
	metadata = &reader->trace->trace->metadata;
	if (metadata->len + len > METADATA_MAX_BYTES)
		return import_archive_bad(reader, KYMO_E_LIMIT, "the metadata is too large");
	ky_strbuf_add(metadata, (const char *)data, len);
	return ky_strbuf_failed(metadata) ? ky_error_nomem(reader->err) : KYMO_OK;
}

static int feed(struct reader *reader, const uint8_t *data, size_t len)
{
	int ret = KYMO_OK;

	while (len && !ret && !reader->is_over) {
		size_t n;

		if (reader->left) {
			n = reader->left < len ? (size_t)reader->left : len;
			ret = take_content(reader, data, n);
			reader->left -= n;
		} else if (reader->pad) {
			n = reader->pad < len ? (size_t)reader->pad : len;
			reader->pad -= n;
		} else {
			n = sizeof(reader->head) - reader->head_bytes;
			n = n < len ? n : len;
			memcpy((uint8_t *)&reader->head + reader->head_bytes, data, n);
			reader->head_bytes += n;
			if (reader->head_bytes == sizeof(reader->head)) {
				reader->head_bytes = 0;
				ret = import_archive_take_head(reader);
			}
		}
		data += n;
		len -= n;
	}
	return ret;
}

/* ---- the archive ----------------------------------------------------------------------- */

static int decompress(struct reader *reader, ZSTD_DStream *zstd, ZSTD_inBuffer *in, uint8_t *to,
		      size_t to_bytes, size_t *left)
{
	bool is_full = true;
	int ret = KYMO_OK;

	/* What does not fit into @to waits in the decompressor. */
	while ((in->pos < in->size || is_full) && !ret && !reader->is_over) {
		ZSTD_outBuffer out = {to, to_bytes, 0};

		*left = ky_zstd.ZSTD_decompressStream(zstd, &out, in);
		if (ky_zstd.ZSTD_isError(*left))
			return import_archive_bad(reader, KYMO_E_FORMAT, "the archive is damaged");
		is_full = out.pos == out.size;
		reader->total += out.pos;
		if (reader->total > reader->total_max)
			return import_archive_bad(
				reader, KYMO_E_LIMIT,
				"the archive unpacks to more than an archive of traces has");
		ret = feed(reader, to, out.pos);
	}
	return ret;
}

static int import_archive_unpack(struct reader *reader, ZSTD_DStream *zstd, int fd)
{
	size_t in_bytes = ky_zstd.ZSTD_DStreamInSize(), out_bytes = ky_zstd.ZSTD_DStreamOutSize(),
	       left = 0;
	uint8_t *in = malloc(in_bytes), *out = malloc(out_bytes);
	int ret = in && out ? KYMO_OK : ky_error_nomem(reader->err);

	while (!ret && !reader->is_over) {
		ssize_t got = read(fd, in, in_bytes);
		ZSTD_inBuffer part = {in, got > 0 ? (size_t)got : 0, 0};

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			ret = ky_error_errno(reader->err, errno, "cannot read the archive");
		if (got <= 0)
			break;
		ret = decompress(reader, zstd, &part, out, out_bytes, &left);
	}
	if (!ret && !reader->is_over)
		ret = import_archive_bad(reader, KYMO_E_FORMAT, "the archive is cut off");
	free(in);
	free(out);
	return ret;
}

/* Below the archive's own directory: "kernel", "ust/pid/shop-17"; "" for a trace without one. */
static const char *import_archive_name_of(const char *directory)
{
	const char *slash = strchr(directory, '/');

	return slash ? slash + 1 : directory;
}

static int import_archive_finish(struct reader *reader, int ret)
{
	ky_vec_foreach(&reader->traces, trace) {
		(void)ky_store_close(trace->to, NULL);
		ky_store_free(trace->store);
		/* Another directory, such as one of reports. */
		if (!ret && trace->trace->metadata.len)
			ret = ky_import_add_place(reader->imports, reader->path,
						  import_archive_name_of(trace->directory),
						  trace->trace, reader->err);
		free(trace->directory);
	}
	ky_vec_fini(&reader->traces);
	return ret;
}

static int open_archive(struct ky_import *imports, const char *path, const struct ky_log *log,
			struct kymo_error *err)
{
	struct reader reader = {.path = path, .imports = imports, .err = err};
	ZSTD_DStream *zstd;
	int fd, ret = ky_zstd_library_load(err);
	off_t size;

	(void)log;
	if (ret < 0)
		return ret;
	zstd = ky_zstd.ZSTD_createDStream();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
	if (!zstd || ky_zstd.ZSTD_isError(
			     ky_zstd.ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG)))
		ret = ky_error_nomem(err);
	else if (size < 0 || lseek(fd, 0, SEEK_SET) < 0)
		ret = ky_error_errno(err, errno, "cannot read the archive");
	reader.total_max = FREE_BYTES + (uint64_t)(size > 0 ? size : 0) * RATIO_MAX;
	/* Each stream is an open file. */
	ky_file_raise_limit();
	if (!ret)
		ret = import_archive_unpack(&reader, zstd, fd);
	ret = import_archive_finish(&reader, ret);
	if (fd >= 0)
		close(fd);
	(void)ky_zstd.ZSTD_freeDStream(zstd);
	return ret;
}

static bool probe(const char *path)
{
	static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint8_t begin[4] = {0};
	bool is = fd >= 0 && read(fd, begin, sizeof(begin)) == sizeof(begin) &&
		  memcmp(begin, magic, sizeof(magic)) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

const struct ky_import_format ky_import_archive = {
	.name = "archive",
	.probe = probe,
	.open = open_archive,
};
