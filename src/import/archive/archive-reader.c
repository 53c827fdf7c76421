/* SPDX-License-Identifier: MIT */
#include "import/archive/archive-reader.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"
#include "import/common/foreign-file.h"
#include "os/file.h"
#include "os/library.h"

#define MEMBERS_MAX 1000000
#define READ_BYTES  ((size_t)64 << 10)

#define ARCHIVE_FUNCTIONS(X)                 \
	X(archive_read_new)                  \
	X(archive_read_support_filter_bzip2) \
	X(archive_read_support_format_tar)   \
	X(archive_read_support_format_zip)   \
	X(archive_read_support_format_raw)   \
	X(archive_read_open)                 \
	X(archive_read_open_fd)              \
	X(archive_read_next_header)          \
	X(archive_read_data_block)           \
	X(archive_format)                    \
	X(archive_error_string)              \
	X(archive_read_free)                 \
	X(archive_entry_pathname)            \
	X(archive_entry_filetype)            \
	X(archive_entry_hardlink)            \
	X(archive_entry_size)

ARCHIVE_FUNCTIONS(KY_LIBRARY_TYPE)

static struct {
	ARCHIVE_FUNCTIONS(KY_LIBRARY_MEMBER)
} library;

#define SYMBOL(name) {#name, offsetof(__typeof__(library), name)},
static const struct ky_library_symbol symbols[] = {ARCHIVE_FUNCTIONS(SYMBOL){0}};

static int archive_reader_load(struct kymo_error *err)
{
	return library.archive_read_free ? KYMO_OK
					 : ky_library_load("libarchive.so.13", "libarchive13",
							   symbols, &library, err);
}

int ky_archive_reader_bad(const struct ky_archive_reader *reader, int code, const char *what)
{
	ky_error_set(reader->err, code, "%s", what);
	ky_error_path(reader->err, reader->path);
	return code;
}

/* The damage of the compressed data; NULL: the data are whole, or not compressed. */
static const char *archive_reader_damage(const struct ky_archive_reader *reader, uint64_t *at)
{
	return reader->source ? ky_archive_source_damage(reader->source, at) : NULL;
}

static int archive_reader_failed(struct ky_archive_reader *reader, struct archive *archive)
{
	/* What was read until then: the damage lies before, by a block at most. */
	off_t read_to = lseek(reader->fd, 0, SEEK_CUR);
	uint64_t at = read_to > 0 ? (uint64_t)read_to : 0;
	const char *why = archive_reader_damage(reader, &at);

	reader->is_damage_known = why != NULL;
	if (!why && reader->source && ky_archive_source_is_empty(reader->source))
		return ky_archive_reader_bad(reader, KYMO_E_FORMAT,
					     "the compressed file has no content");
	if (!why)
		why = library.archive_error_string(archive);
	ky_error_set(reader->err, KYMO_E_FORMAT, "the archive is damaged: %s", why ? why : "");
	ky_error_path(reader->err, reader->path);
	ky_error_offset(reader->err, at);
	if (reader->source && ky_archive_source_is_too_large(reader->source))
		ky_error_hint(reader->err, "its own tool unpacks such a file");
	return KYMO_E_FORMAT;
}

static int archive_reader_too_much(const struct ky_archive_reader *reader)
{
	return ky_archive_reader_bad(reader, KYMO_E_LIMIT,
				     "the archive unpacks to more than an archive of traces has");
}

/* ---- a pass ----------------------------------------------------------------------------- */

static int archive_reader_drop(void *context, const uint8_t *data, size_t len)
{
	(void)context;
	(void)data;
	(void)len;
	return KYMO_OK;
}

/* The other members are good. */
static int archive_reader_keep(struct ky_archive_reader *reader)
{
	ky_import_broken(reader->imports, reader->err);
	ky_error_clear(reader->err);
	return KYMO_OK;
}

/* What the link is to may have been left out, or come later. */
static int archive_reader_link(struct ky_archive_reader *reader)
{
	ky_archive_reader_bad(
		reader, KYMO_E_UNSUPPORTED,
		"a file is stored as a link to another one; try the unpacked archive");
	return archive_reader_keep(reader);
}

static int archive_reader_member(struct ky_archive_reader *reader, struct archive *archive,
				 struct archive_entry *entry,
				 int (*take)(void *, const struct ky_archive_member *),
				 void *context)
{
	struct ky_archive_member member = {
		.archive = archive,
		.name = library.archive_entry_pathname(entry),
		.is_alone = library.archive_format(archive) == ARCHIVE_FORMAT_RAW,
	};

	if (++reader->n_members > MEMBERS_MAX)
		return ky_archive_reader_bad(reader, KYMO_E_LIMIT,
					     "the archive has too many members");
	if (library.archive_entry_hardlink(entry))
		return archive_reader_link(reader);
	/* What is passed over is unpacked, too, and counts. */
	if (library.archive_entry_filetype(entry) != AE_IFREG || !member.name)
		return ky_archive_reader_data(reader, &member, archive_reader_drop, NULL);
	while (member.name[0] == '.' && member.name[1] == '/')
		member.name += 2;
	member.size_bytes = (uint64_t)library.archive_entry_size(entry);
	return take(context, &member);
}

/* A tar ends before its file does, and checksums are at the end of that. */
static int archive_reader_drain(struct ky_archive_reader *reader)
{
	const void *data;
	size_t len;

	while (reader->source && (len = ky_archive_source_read(reader->source, &data)) > 0) {
		reader->total += len;
		if (reader->total > reader->total_max)
			return archive_reader_too_much(reader);
	}
	return KYMO_OK;
}

static int archive_reader_members(struct ky_archive_reader *reader, struct archive *archive,
				  int (*take)(void *, const struct ky_archive_member *),
				  void *context)
{
	struct archive_entry *entry;
	int ret = KYMO_OK, got;
	uint64_t at;

	while (!ret && (got = library.archive_read_next_header(archive, &entry)) >= ARCHIVE_WARN &&
	       got != ARCHIVE_EOF) {
		reader->goes_on = false;
		ret = archive_reader_member(reader, archive, entry, take, context);
		if (ret == KYMO_E_FORMAT && reader->goes_on)
			ret = archive_reader_keep(reader);
	}
	if (!ret && got == ARCHIVE_EOF)
		ret = archive_reader_drain(reader);
	if (!ret && (got != ARCHIVE_EOF ||
		     (archive_reader_damage(reader, &at) && !reader->is_damage_known)))
		return archive_reader_failed(reader, archive);
	if (!ret && !reader->n_members)
		return ky_archive_reader_bad(reader, KYMO_E_FORMAT, "the archive is empty");
	return ret;
}

static struct archive *archive_reader_new(bool is_unpacked)
{
	struct archive *archive = library.archive_read_new();

	if (!archive)
		return NULL;
	/* A filter that this build of libarchive lacks is not used. */
	if (!is_unpacked)
		(void)library.archive_read_support_filter_bzip2(archive);
	(void)library.archive_read_support_format_tar(archive);
	(void)library.archive_read_support_format_zip(archive);
	(void)library.archive_read_support_format_raw(archive);
	return archive;
}

static la_ssize_t archive_reader_more(struct archive *archive, void *context, const void **data)
{
	struct ky_archive_reader *reader = context;

	(void)archive;
	return (la_ssize_t)ky_archive_source_read(reader->source, data);
}

static int archive_reader_open(struct ky_archive_reader *reader, struct archive *archive)
{
	return reader->source
		       ? library.archive_read_open(archive, reader, NULL, archive_reader_more, NULL)
		       : library.archive_read_open_fd(archive, reader->fd, READ_BYTES);
}

static int archive_reader_read(struct ky_archive_reader *reader,
			       int (*take)(void *, const struct ky_archive_member *), void *context)
{
	off_t size = lseek(reader->fd, 0, SEEK_END);
	struct archive *archive;
	int ret;

	(void)lseek(reader->fd, 0, SEEK_SET);
	reader->n_members = reader->total = 0;
	reader->is_damage_known = false;
	reader->total_max =
		KY_FOREIGN_FREE_BYTES + (uint64_t)(size > 0 ? size : 0) * KY_FOREIGN_RATIO_MAX;
	ret = ky_archive_source_open(reader->fd, &reader->source, reader->err);
	if (ret < 0) {
		ky_error_path(reader->err, reader->path);
		return ret;
	}
	archive = archive_reader_new(reader->source != NULL);
	if (!archive)
		ret = ky_error_nomem(reader->err);
	else if (archive_reader_open(reader, archive) != ARCHIVE_OK)
		ret = archive_reader_failed(reader, archive);
	else
		ret = archive_reader_members(reader, archive, take, context);
	if (archive)
		(void)library.archive_read_free(archive);
	ky_archive_source_close(reader->source);
	reader->source = NULL;
	return ret;
}

int ky_archive_reader_pass(struct ky_archive_reader *reader,
			   int (*take)(void *, const struct ky_archive_member *), void *context)
{
	int ret = archive_reader_load(reader->err);

	if (ret < 0)
		return ret;
	/* Over a pipe, it has come into a file. */
	reader->fd = ky_foreign_open_content(reader->path, reader->imports->unpacked_fd);
	if (reader->fd < 0) {
		ret = ky_error_errno(reader->err, -reader->fd, "cannot read the archive");
		ky_error_path(reader->err, reader->path);
		return ret;
	}
	ret = archive_reader_read(reader, take, context);
	close(reader->fd);
	return ret;
}

/* ---- bytes ------------------------------------------------------------------------------ */

static int archive_reader_zeros(uint64_t n, int (*take)(void *, const uint8_t *, size_t),
				void *context)
{
	static const uint8_t zeros[4096];
	int ret = KYMO_OK;

	while (n && !ret) {
		size_t len = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);

		ret = take(context, zeros, len);
		n -= len;
	}
	return ret;
}

int ky_archive_reader_data(struct ky_archive_reader *reader, const struct ky_archive_member *member,
			   int (*take)(void *, const uint8_t *, size_t), void *context)
{
	uint64_t at = 0, damage_at;
	const void *data;
	size_t len;
	la_int64_t offset;
	int ret = KYMO_OK, got;

	while ((got = library.archive_read_data_block(member->archive, &data, &len, &offset)) ==
	       ARCHIVE_OK) {
		uint64_t hole = offset > 0 && (uint64_t)offset > at ? (uint64_t)offset - at : 0;

		reader->total += hole + len;
		if (reader->total > reader->total_max)
			return archive_reader_too_much(reader);
		ret = archive_reader_zeros(hole, take, context);
		if (!ret)
			ret = take(context, data, len);
		if (ret < 0)
			return ret;
		at += hole + len;
	}
	reader->goes_on = got == ARCHIVE_WARN || got == ARCHIVE_FAILED;
	/* Members of an archive may be whole although the data behind them are damaged: they come in blocks. */
	return got == ARCHIVE_EOF &&
			       !(member->is_alone && archive_reader_damage(reader, &damage_at))
		       ? KYMO_OK
		       : archive_reader_failed(reader, member->archive);
}

/* ---- one file --------------------------------------------------------------------------- */

struct archive_file {
	int fd;
	uint64_t size_bytes;
	struct kymo_error *err;
};

static int archive_reader_write(void *context, const uint8_t *data, size_t len)
{
	struct archive_file *file = context;
	int ret = ky_write_all(file->fd, data, len);

	file->size_bytes += len;
	return ret < 0 ? ky_error_errno(file->err, -ret, "cannot write the unpacked file")
		       : KYMO_OK;
}

int ky_archive_reader_file(struct ky_archive_reader *reader, const struct ky_archive_member *member)
{
	struct archive_file file = {.fd = ky_import_new_file(reader->err), .err = reader->err};
	bool is_broken;
	int ret;

	if (file.fd < 0)
		return file.fd;
	ret = ky_archive_reader_data(reader, member, archive_reader_write, &file);
	/* What could be unpacked before the damage is a file, too. */
	is_broken = ret == KYMO_E_FORMAT && file.size_bytes;
	if (is_broken) {
		ky_import_broken(reader->imports, reader->err);
		ky_error_clear(reader->err);
	}
	if (!ret || is_broken)
		ret = ky_import_unpacked(reader->imports, reader->path, file.fd, reader->log,
					 reader->err);
	close(file.fd);
	return ret;
}
