/* SPDX-License-Identifier: MIT */
/*
 * Compressed files and archives, by libarchive: one file, compressed (gzip, xz, zstd, bzip2), is imported by its content; the traces in a tar or zip are
 * unpacked into files without names. No name in an archive becomes the name of a file, so that none can lead elsewhere, and all numbers in
 * it have limits. Filters that would run other programs are off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"
#include "base/hash.h"
#include "import/common/foreign-file.h"
#include "import/common/import-internal.h"
#include "os/file.h"
#include "os/library.h"

#define METADATA_MAX_BYTES (64u << 20)
#define TRACES_MAX	   4096
#define STREAMS_MAX	   65536
#define MEMBERS_MAX	   1000000
#define READ_BYTES	   ((size_t)64 << 10)

struct unpacked {
	char *directory; /* of the trace, in the archive */
	struct ky_scratch_trace *trace;
	struct ky_packet_store *store;
	struct ky_store_trace *to;
};

struct reader {
	int fd; /* of the archive */
	const char *path;
	struct ky_import *imports;
	const struct ky_log *log;
	struct kymo_error *err;
	int raw_fd; /* of the unpacked file */
	uint64_t n_members, n_streams, total, total_max;
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

/* ---- libarchive ----------------------------------------------------------------------- */

#define ARCHIVE_FUNCTIONS(X)                 \
	X(archive_read_new)                  \
	X(archive_read_support_filter_gzip)  \
	X(archive_read_support_filter_bzip2) \
	X(archive_read_support_filter_xz)    \
	X(archive_read_support_filter_lzma)  \
	X(archive_read_support_filter_zstd)  \
	X(archive_read_support_format_tar)   \
	X(archive_read_support_format_zip)   \
	X(archive_read_support_format_raw)   \
	X(archive_read_open_fd)              \
	X(archive_read_next_header)          \
	X(archive_read_data_block)           \
	X(archive_format)                    \
	X(archive_error_string)              \
	X(archive_read_free)                 \
	X(archive_entry_pathname)            \
	X(archive_entry_filetype)            \
	X(archive_entry_size)

ARCHIVE_FUNCTIONS(KY_LIBRARY_TYPE)

static struct {
	ARCHIVE_FUNCTIONS(KY_LIBRARY_MEMBER)
} library;

#define SYMBOL(name) {#name, offsetof(__typeof__(library), name)},
static const struct ky_library_symbol symbols[] = {ARCHIVE_FUNCTIONS(SYMBOL){0}};

static int import_archive_load(struct kymo_error *err)
{
	return library.archive_read_free ? KYMO_OK
					 : ky_library_load("libarchive.so.13", "libarchive13",
							   symbols, &library, err);
}

static int import_archive_failed(struct reader *reader, struct archive *archive)
{
	const char *why = library.archive_error_string(archive);
	off_t at;

	ky_error_set(reader->err, KYMO_E_FORMAT, "the archive is damaged: %s", why ? why : "");
	ky_error_path(reader->err, reader->path);
	/* What was read until then: the damage lies before, by a block at most. */
	at = lseek(reader->fd, 0, SEEK_CUR);
	if (at >= 0)
		ky_error_offset(reader->err, (uint64_t)at);
	return KYMO_E_FORMAT;
}

/* All bytes of the member at hand; @take gets them in order. Holes become zeros. */
static int import_archive_data(struct reader *reader, struct archive *archive,
			       int (*take)(struct reader *, const uint8_t *, size_t))
{
	static const uint8_t zeros[4096];
	uint64_t at = 0;
	const void *data;
	size_t len;
	la_int64_t offset;
	int ret, got;

	while ((got = library.archive_read_data_block(archive, &data, &len, &offset)) ==
	       ARCHIVE_OK) {
		uint64_t hole = offset > 0 && (uint64_t)offset > at ? (uint64_t)offset - at : 0;

		reader->total += hole + len;
		if (reader->total > reader->total_max)
			return import_archive_bad(
				reader, KYMO_E_LIMIT,
				"the archive unpacks to more than an archive of traces has");
		for (at += hole; hole; hole -= hole < sizeof(zeros) ? hole : sizeof(zeros)) {
			ret = take(reader, zeros,
				   hole < sizeof(zeros) ? (size_t)hole : sizeof(zeros));
			if (ret < 0)
				return ret;
		}
		ret = take(reader, data, len);
		if (ret < 0)
			return ret;
		at += len;
	}
	return got == ARCHIVE_EOF ? KYMO_OK : import_archive_failed(reader, archive);
}

static int import_archive_member(struct reader *reader, struct archive *archive,
				 struct archive_entry *entry)
{
	const char *name = library.archive_entry_pathname(entry);
	char path[512];
	int ret;

	if (++reader->n_members > MEMBERS_MAX)
		return import_archive_bad(reader, KYMO_E_LIMIT, "the archive has too many members");
	if (library.archive_entry_filetype(entry) != AE_IFREG || !name ||
	    strlen(name) >= sizeof(path))
		return KYMO_OK;
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	memcpy(path, name, strlen(name) + 1);
	ret = begin_file(reader, path, (uint64_t)library.archive_entry_size(entry));
	return ret < 0 ? ret : import_archive_data(reader, archive, take_content);
}

/* ---- one compressed file -------------------------------------------------------------- */

static int import_archive_write(struct reader *reader, const uint8_t *data, size_t len)
{
	int ret = ky_write_all(reader->raw_fd, data, len);

	return ret < 0 ? ky_error_errno(reader->err, -ret, "cannot write the unpacked file")
		       : KYMO_OK;
}

static int import_archive_raw(struct reader *reader, struct archive *archive)
{
	const char *directory = getenv("TMPDIR");
	int ret;

	reader->raw_fd = ky_file_open_unnamed(directory ? directory : "/var/tmp");
	if (reader->raw_fd < 0)
		return ky_error_errno(reader->err, -reader->raw_fd,
				      "cannot make a file to unpack to");
	ret = import_archive_data(reader, archive, import_archive_write);
	/* What could be unpacked before the damage is a file, too. */
	if (ret == KYMO_E_FORMAT && reader->total) {
		ky_import_broken(reader->imports, reader->err);
		ky_error_clear(reader->err);
		ret = KYMO_OK;
	}
	if (!ret)
		ret = ky_import_unpacked(reader->imports, reader->path, reader->raw_fd, reader->log,
					 reader->err);
	close(reader->raw_fd);
	return ret == 1 ? import_archive_bad(reader, KYMO_E_FORMAT,
					     "the unpacked file is of no format that Kymo knows")
			: ret;
}

static int import_archive_unpack(struct reader *reader, struct archive *archive)
{
	struct archive_entry *entry;
	bool is_any = false;
	int ret = KYMO_OK, got;

	while (!ret && (got = library.archive_read_next_header(archive, &entry)) >= ARCHIVE_WARN &&
	       got != ARCHIVE_EOF) {
		is_any = true;
		if (library.archive_format(archive) == ARCHIVE_FORMAT_RAW)
			return import_archive_raw(reader, archive);
		ret = import_archive_member(reader, archive, entry);
	}
	if (!ret && got != ARCHIVE_EOF)
		ret = import_archive_failed(reader, archive);
	else if (!ret && !is_any)
		ret = import_archive_bad(reader, KYMO_E_FORMAT, "the archive is empty");
	return ret;
}

/* Below the archive's own directory: "kernel", "ust/pid/shop-17"; "" for a trace without one. */
static const char *import_archive_name_of(const char *directory)
{
	const char *slash = strchr(directory, '/');

	return slash ? slash + 1 : directory;
}

/* What could be unpacked before the damage are traces, too. */
static int import_archive_keep(struct reader *reader, int ret)
{
	if (ret != KYMO_E_FORMAT)
		return ret;
	ky_vec_foreach(&reader->traces, trace) {
		if (!trace->trace->metadata.len)
			continue;
		ky_import_broken(reader->imports, reader->err);
		ky_error_clear(reader->err);
		return KYMO_OK;
	}
	return ret;
}

static int import_archive_finish(struct reader *reader, int ret)
{
	ret = import_archive_keep(reader, ret);
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

static struct archive *import_archive_new(void)
{
	struct archive *archive = library.archive_read_new();

	if (!archive)
		return NULL;
	/* A filter that this build of libarchive lacks is not used. */
	(void)library.archive_read_support_filter_gzip(archive);
	(void)library.archive_read_support_filter_bzip2(archive);
	(void)library.archive_read_support_filter_xz(archive);
	(void)library.archive_read_support_filter_lzma(archive);
	(void)library.archive_read_support_filter_zstd(archive);
	(void)library.archive_read_support_format_tar(archive);
	(void)library.archive_read_support_format_zip(archive);
	(void)library.archive_read_support_format_raw(archive);
	return archive;
}

static int import_archive_read(struct reader *reader)
{
	int fd = ky_file_open_regular(AT_FDCWD, reader->path, O_RDONLY), ret;
	struct archive *archive;
	off_t size;

	if (fd < 0) {
		ret = ky_error_errno(reader->err, -fd, "cannot read the archive");
		ky_error_path(reader->err, reader->path);
		return ret;
	}
	reader->fd = fd;
	size = lseek(fd, 0, SEEK_END);
	(void)lseek(fd, 0, SEEK_SET);
	reader->total_max =
		KY_FOREIGN_FREE_BYTES + (uint64_t)(size > 0 ? size : 0) * KY_FOREIGN_RATIO_MAX;
	archive = import_archive_new();
	if (!archive)
		ret = ky_error_nomem(reader->err);
	else if (library.archive_read_open_fd(archive, fd, READ_BYTES) != ARCHIVE_OK)
		ret = import_archive_failed(reader, archive);
	else
		ret = import_archive_unpack(reader, archive);
	if (archive)
		(void)library.archive_read_free(archive);
	close(fd);
	return ret;
}

static int open_archive(struct ky_import *imports, const char *path, const struct ky_log *log,
			struct kymo_error *err)
{
	struct kymo_error own = {0};
	struct reader reader = {.path = path, .imports = imports, .log = log, .err = &own};
	int ret = import_archive_load(&own);

	/* Each stream is an open file. */
	ky_file_raise_limit();
	if (!ret)
		ret = import_archive_read(&reader);
	ret = import_archive_finish(&reader, ret);
	if (ret < 0 && err)
		*err = own;
	return ret;
}

static bool probe(const char *path)
{
	static const struct {
		uint64_t at;
		const char *magic;
		size_t len;
	} magics[] = {
		{0, "\x28\xb5\x2f\xfd", 4},
		{0, "\x1f\x8b", 2},
		{0,
		 "\xfd"
		 "7zXZ\0",
		 6},
		{0, "BZh", 3},
		{0, "PK\3\4", 4},
		{257, "ustar", 5},
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (ky_foreign_begins(path, magics[i].at, magics[i].magic, magics[i].len))
			return true;
	return false;
}

const struct ky_import_format ky_import_archive = {
	.name = "archive",
	.probe = probe,
	.open = open_archive,
};
