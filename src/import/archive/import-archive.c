/* SPDX-License-Identifier: MIT */
/*
 * Compressed files and archives, by libarchive: one file, compressed (gzip, xz, zstd, bzip2), is imported by its content; the traces in a tar or zip are
 * unpacked into files without names, or, if it has none, the files of other formats. No name in an archive becomes the name of a file, so that none
 * can lead elsewhere.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "import/archive/archive-reader.h"
#include "import/common/foreign-file.h"
#include "os/file.h"

#define METADATA_MAX_BYTES (64u << 20)
#define TRACES_MAX	   4096
#define STREAMS_MAX	   65536
#define FILES_MAX	   4096
/* Longer names of members are unknown. */
#define NAME_BYTES 512

struct unpacked {
	char *directory; /* of the trace, in the archive */
	uint64_t n_files;
	struct ky_scratch_trace *trace;
	struct ky_packet_store *store;
	struct ky_store_trace *to;
};

struct unpacking {
	struct ky_archive_reader reader;
	uint64_t n_streams, n_files;
	uint64_t n_unknown; /* files of no format that Kymo knows */
	bool is_done;	    /* it has a trace, or was one file */
	KY_VEC(struct unpacked) traces;
	/* The member at hand. */
	struct unpacked *trace; /* NULL: it is left out */
	int stream;		/* -1: metadata */
};

/* ---- members --------------------------------------------------------------------------- */

static struct unpacked *find_trace(struct unpacking *unpacking, const char *directory)
{
	ky_vec_foreach(&unpacking->traces, trace)
		if (strcmp(trace->directory, directory) == 0)
			return trace;
	return NULL;
}

static int import_archive_new_trace(struct unpacking *unpacking, const char *directory)
{
	const struct ky_store_place place = {.path = ""};
	struct unpacked trace = {.directory = strdup(directory)};
	int ret;

	if (unpacking->traces.len == TRACES_MAX) {
		free(trace.directory);
		return ky_archive_reader_bad(&unpacking->reader, KYMO_E_LIMIT,
					     "the archive has too many directories");
	}
	trace.trace = ky_import_new_trace(unpacking->reader.imports);
	if (!trace.directory || !trace.trace || ky_vec_push(&unpacking->traces, trace) < 0) {
		free(trace.directory);
		return ky_error_nomem(unpacking->reader.err);
	}
	unpacking->trace = ky_vec_last(&unpacking->traces);
	/* The parts of a trace are joined: their mappings move. */
	trace.trace->uses_memory = false;
	ret = ky_scratch_store_open(trace.trace, &unpacking->trace->store, unpacking->reader.err);
	if (!ret)
		ret = ky_store_open(unpacking->trace->store, &place, &unpacking->trace->to,
				    unpacking->reader.err);
	return ret;
}

/* A stream's file is beside the metadata; index/, reports and hidden files are no streams. */
static bool is_left_out(const char *directory, const char *name)
{
	const char *last = strrchr(directory, '/');

	last = last ? last + 1 : directory;
	return !*name || *name == '.' || strcmp(last, "index") == 0 || strcmp(last, "report") == 0;
}

/* Without components that lead nowhere, or elsewhere: "", "." and "..". A converted trace gets this name. */
static void clean_path(char *path)
{
	char *to = path;

	for (char *from = path, *end; *from; from = end) {
		size_t len = strcspn(from, "/");

		end = from + len + strspn(from + len, "/");
		if (!len || (from[0] == '.' && (len == 1 || (len == 2 && from[1] == '.'))))
			continue;
		if (to != path)
			*to++ = '/';
		memmove(to, from, len);
		to += len;
	}
	*to = '\0';
}

/* @path: DIRECTORY/NAME; the directory is "" for files that are in none. */
static int begin_file(struct unpacking *unpacking, char *path, uint64_t size_bytes)
{
	char *slash, *name = path;
	const char *directory = "";
	int ret = KYMO_OK;

	unpacking->trace = NULL;
	clean_path(path);
	slash = strrchr(path, '/');
	if (slash) {
		*slash = '\0';
		directory = path;
		name = slash + 1;
	}
	if (is_left_out(directory, name))
		return KYMO_OK;
	unpacking->trace = find_trace(unpacking, directory);
	if (!unpacking->trace)
		ret = import_archive_new_trace(unpacking, directory);
	if (ret < 0)
		return ret;
	unpacking->trace->n_files++;
	unpacking->stream = -1;
	if (strcmp(name, "metadata") == 0)
		return size_bytes > METADATA_MAX_BYTES
			       ? ky_archive_reader_bad(&unpacking->reader, KYMO_E_LIMIT,
						       "the metadata is too large")
			       : KYMO_OK;
	if (++unpacking->n_streams > STREAMS_MAX)
		return ky_archive_reader_bad(&unpacking->reader, KYMO_E_LIMIT,
					     "the archive has too many files");
	unpacking->stream = ky_store_stream(unpacking->trace->to, name, unpacking->reader.err);
	return unpacking->stream < 0 ? unpacking->stream : KYMO_OK;
}

static int take_content(void *context, const uint8_t *data, size_t len)
{
	struct unpacking *unpacking = context;
	struct ky_packet_out out = {.data = data, .size_bytes = len};
	struct ky_strbuf *metadata;

	if (!unpacking->trace || !len)
		return KYMO_OK;
	if (unpacking->stream >= 0)
		return ky_store_packet(unpacking->trace->to, unpacking->stream, &out,
				       unpacking->reader.err);
	metadata = &unpacking->trace->trace->metadata;
	if (metadata->len + len > METADATA_MAX_BYTES)
		return ky_archive_reader_bad(&unpacking->reader, KYMO_E_LIMIT,
					     "the metadata is too large");
	ky_strbuf_add(metadata, (const char *)data, len);
	return ky_strbuf_failed(metadata) ? ky_error_nomem(unpacking->reader.err) : KYMO_OK;
}

static int import_archive_member(void *context, const struct ky_archive_member *member)
{
	struct unpacking *unpacking = context;
	char path[NAME_BYTES] = "";
	int ret;

	if (member->is_alone) {
		ret = ky_archive_reader_file(&unpacking->reader, member);
		unpacking->is_done = true;
		return ret == 1 ? ky_archive_reader_bad(
					  &unpacking->reader, KYMO_E_FORMAT,
					  "the unpacked file is of no format that Kymo knows")
				: ret;
	}
	if (strlen(member->name) < sizeof(path))
		memcpy(path, member->name, strlen(member->name) + 1);
	ret = begin_file(unpacking, path, member->size_bytes);
	return ret < 0 ? ret
		       : ky_archive_reader_data(&unpacking->reader, member, take_content,
						unpacking);
}

/* ---- an archive without a trace: files of other programs ---------------------------------- */

static int import_archive_other(void *context, const struct ky_archive_member *member)
{
	struct unpacking *unpacking = context;
	int ret;

	char name[NAME_BYTES] = "";

	if (!member->size_bytes)
		return KYMO_OK;
	if (strlen(member->name) < sizeof(name))
		memcpy(name, member->name, strlen(member->name) + 1);
	clean_path(name);
	if (unpacking->n_files == FILES_MAX)
		return ky_archive_reader_bad(&unpacking->reader, KYMO_E_LIMIT,
					     "the archive has too many files");
	unpacking->reader.imports->member = *name ? name : NULL;
	ret = ky_archive_reader_file(&unpacking->reader, member);
	unpacking->reader.imports->member = NULL;
	unpacking->n_files += !ret;
	unpacking->n_unknown += ret == 1;
	if (ret != KYMO_E_FORMAT)
		return ret < 0 ? ret : KYMO_OK;
	/* The other files are good. */
	ky_import_broken(unpacking->reader.imports, unpacking->reader.err);
	ky_error_clear(unpacking->reader.err);
	return KYMO_OK;
}

static int import_archive_others(struct unpacking *unpacking)
{
	struct ky_import *imports = unpacking->reader.imports;
	struct kymo_error *err = unpacking->reader.err;
	int ret = ky_archive_reader_pass(&unpacking->reader, import_archive_other, unpacking);

	if (ret == KYMO_E_FORMAT && unpacking->n_files) {
		ky_import_broken(imports, err);
		ky_error_clear(err);
		return KYMO_OK;
	}
	if (!ret && unpacking->n_files && unpacking->n_unknown)
		ky_log_warning(
			unpacking->reader.log,
			"%s: files that are compressed, or of no format that Kymo knows, are "
			"left out: %" PRIu64 "; try the unpacked archive",
			unpacking->reader.path, unpacking->n_unknown);
	if (ret || unpacking->n_files)
		return ret;
	if (!imports->broken.code)
		return ky_archive_reader_bad(
			&unpacking->reader, KYMO_E_FORMAT,
			"the archive has no trace, and no file of a format that Kymo knows");
	*err = imports->broken;
	return err->code;
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Below the archive's own directory: "kernel", "ust/pid/shop-17"; its name, or "trace", for a trace that is there itself. */
static const char *import_archive_name_of(const char *directory)
{
	const char *slash = strchr(directory, '/');

	return slash ? slash + 1 : *directory ? directory : "trace";
}

/* What could be unpacked before the damage are traces, too. */
static int import_archive_keep(struct unpacking *unpacking, int ret)
{
	if (ret != KYMO_E_FORMAT)
		return ret;
	ky_vec_foreach(&unpacking->traces, trace) {
		if (!trace->trace->metadata.len)
			continue;
		ky_import_broken(unpacking->reader.imports, unpacking->reader.err);
		ky_error_clear(unpacking->reader.err);
		return KYMO_OK;
	}
	return ret;
}

/* Logs beside the traces, say. */
static void import_archive_tell_left_out(const struct unpacking *unpacking)
{
	uint64_t n_files = 0;

	ky_vec_foreach(&unpacking->traces, trace)
		n_files += trace->trace->metadata.len ? 0 : trace->n_files;
	if (n_files)
		ky_log_warning(unpacking->reader.log,
			       "%s: files that belong to no trace are left out: %" PRIu64
			       "; try the unpacked archive to open them",
			       unpacking->reader.path, n_files);
}

static int import_archive_finish(struct unpacking *unpacking, int ret)
{
	ret = import_archive_keep(unpacking, ret);
	ky_vec_foreach(&unpacking->traces, trace) {
		(void)ky_store_close(trace->to, NULL);
		ky_store_free(trace->store);
		/* Another directory, such as one of reports. */
		unpacking->is_done |= trace->trace->metadata.len > 0;
		if (!ret && trace->trace->metadata.len)
			ret = ky_import_add_place(unpacking->reader.imports, unpacking->reader.path,
						  import_archive_name_of(trace->directory),
						  trace->trace, unpacking->reader.err);
		free(trace->directory);
	}
	if (!ret && unpacking->is_done)
		import_archive_tell_left_out(unpacking);
	ky_vec_fini(&unpacking->traces);
	return ret;
}

static int open_archive(struct ky_import *imports, const char *path, const struct ky_log *log,
			struct kymo_error *err)
{
	struct kymo_error own = {0};
	struct unpacking unpacking = {
		.reader = {.path = path, .imports = imports, .log = log, .err = &own}};
	int ret;

	/* Each stream is an open file. */
	ky_file_raise_limit();
	ret = ky_archive_reader_pass(&unpacking.reader, import_archive_member, &unpacking);
	ret = import_archive_finish(&unpacking, ret);
	if ((!ret || ret == KYMO_E_FORMAT) && !unpacking.is_done) {
		/* Files before the damage are good. */
		ky_error_clear(&own);
		ret = import_archive_others(&unpacking);
	}
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
