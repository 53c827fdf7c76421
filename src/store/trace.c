/* SPDX-License-Identifier: MIT */
#include "store/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "ctf/attributes.h"
#include "ctf/tsdl.h"
#include "os/file.h"
#include "os/guard.h"
#include "store/clocks.h"
#include "store/join.h"
#include "store/quirks.h"
#include "store/walk.h"

/* Deeper directories are not searched. */
#define SEARCH_DEPTH_MAX 32
/* LTTng's metadata of a whole kernel is 0.4 MB. */
#define METADATA_MAX_BYTES ((size_t)1 << 30)

/* ---- streams ----------------------------------------------------------------------------- */

void ky_stream_free(struct ky_stream *stream)
{
	if (!stream)
		return;
	if (stream->file.data) {
		ky_guard_remove(stream->file.data, stream->file.size_bytes);
		munmap((void *)(uintptr_t)stream->file.data, stream->file.size_bytes);
	}
	ky_vec_foreach(&stream->parts, part)
		free(part->path);
	ky_vec_fini(&stream->parts);
	free(stream);
}

/* Which file it is goes into @part. */
static int map_file(struct ky_stream_file *file, struct ky_stream_part *part,
		    struct kymo_error *err)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), errnum = 0;
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st) < 0) {
		errnum = errno;
	} else if (st.st_size > 0) {
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED) {
			errnum = errno;
		} else {
			file->data = data;
			file->size_bytes = part->size_bytes = (uint64_t)st.st_size;
			part->device = st.st_dev;
			part->inode = st.st_ino;
			if (ky_guard_add(data, (size_t)st.st_size) < 0)
				errnum = ENOMEM;
		}
	}
	if (fd >= 0)
		close(fd);
	if (!errnum)
		return KYMO_OK;
	errnum = ky_error_errno(err, errnum, "cannot map the stream file");
	ky_error_path(err, file->path);
	return errnum;
}

/* Damage is not reported here: reading the stream will. */
static int learn_from_first_packet(struct ky_stream *stream, struct kymo_error *err)
{
	const struct ky_packet *p;
	uint64_t skipped_bytes;
	struct kymo_error own;
	struct ky_walk walk;
	int ret;

	ret = ky_walk_init(&walk, stream, err);
	if (ret < 0)
		return ret;
	do
		ret = ky_walk_next(&walk, &own);
	while (ret < 0 && ky_walk_recover(&walk, &own, &skipped_bytes));
	if (ret > 0) {
		p = walk.packet;
		stream->cls = p->stream_class;
		stream->has_id = p->has_stream_id;
		stream->id = p->stream_id;
		stream->has_cpu_id = p->has_cpu_id;
		stream->cpu_id = p->cpu_id;
	}
	ky_walk_fini(&walk);
	return KYMO_OK;
}

/* Map the file at @path, which is taken over, as the whole of @stream. */
static int open_file(struct ky_stream *stream, char *path, struct kymo_error *err)
{
	if (ky_vec_push(&stream->parts, (struct ky_stream_part){.path = path}) < 0) {
		free(path);
		return ky_error_nomem(err);
	}
	stream->file.path = path;
	stream->name = strrchr(path, '/') + 1;
	return map_file(&stream->file, &stream->parts.data[0], err);
}

static int stream_open(struct ky_trace *trace, const char *name, struct kymo_error *err)
{
	struct ky_stream *stream = calloc(1, sizeof(*stream));
	char *path;
	int ret;

	if (!stream)
		return ky_error_nomem(err);
	stream->trace = trace;
	if (asprintf(&path, "%s/%s", trace->path, name) < 0)
		ret = ky_error_nomem(err);
	else
		ret = open_file(stream, path, err);
	if (ret == KYMO_OK)
		ret = learn_from_first_packet(stream, err);
	if (ret == KYMO_OK && ky_vec_push(&trace->streams, stream) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		ky_stream_free(stream);
	return ret;
}

const struct ky_stream_part *ky_stream_part_at(const struct ky_stream *stream, uint64_t offset)
{
	const struct ky_stream_part *at = NULL;

	ky_vec_foreach(&stream->parts, part) {
		if (!at || offset >= part->at_bytes)
			at = part;
	}
	return at;
}

/* How long the file of @part is now, if it is still the same one; else as it was. */
static uint64_t size_now(const struct ky_stream_part *part)
{
	struct stat st;

	if (stat(part->path, &st) < 0 || st.st_dev != part->device || st.st_ino != part->inode)
		return part->size_bytes;
	return (uint64_t)st.st_size;
}

int ky_stream_check(const struct ky_stream *stream, bool ask_files, struct kymo_error *err)
{
	const uint8_t *data = stream->file.data;

	if (!data || (!ask_files && !ky_guard_hit(data, stream->file.size_bytes)))
		return KYMO_OK;
	ky_vec_foreach(&stream->parts, part) {
		uint64_t now = size_now(part);

		if (now >= part->size_bytes && !ky_guard_hit(data + part->at_bytes, 1))
			continue;
		ky_error_set(err, KYMO_E_IO,
			     "the file was cut while it was read: it had %llu bytes, now it has "
			     "%llu",
			     (unsigned long long)part->size_bytes, (unsigned long long)now);
		ky_error_path(err, part->path);
		return KYMO_E_IO;
	}
	return KYMO_OK;
}

int ky_trace_set_check(const struct ky_trace_set *set, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < set->streams.len && ret == KYMO_OK; i++)
		ret = ky_stream_check(set->streams.data[i], true, err);
	return ret;
}

void ky_stream_place(const struct ky_stream *stream, struct kymo_error *err)
{
	const struct ky_stream_part *at;

	if (!err)
		return;
	at = ky_stream_part_at(stream, err->offset == KYMO_NO_OFFSET ? 0 : err->offset);
	ky_error_path(err, at ? at->path : stream->file.path);
	if (at && err->offset != KYMO_NO_OFFSET)
		ky_error_offset(err, err->offset - at->at_bytes);
}

int ky_stream_compare(const void *a, const void *b)
{
	const struct ky_stream *x = *(struct ky_stream *const *)a;
	const struct ky_stream *y = *(struct ky_stream *const *)b;

	if (!x->cls != !y->cls)
		return x->cls ? -1 : 1;
	if (x->cls && x->cls->id != y->cls->id)
		return x->cls->id < y->cls->id ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->file.path, y->file.path);
}

/* ---- directories ------------------------------------------------------------------------- */

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

struct listing {
	struct dirent **entries;
	int len;
};

/* 0 or -errno. */
static int listing_init(struct listing *listing, const char *path)
{
	listing->len = scandir(path, &listing->entries, visible, by_name);
	return listing->len < 0 ? -errno : 0;
}

static void listing_fini(struct listing *listing)
{
	for (int i = 0; i < listing->len; i++)
		free(listing->entries[i]);
	if (listing->len >= 0)
		free(listing->entries);
}

/* What one search for traces shares. */
struct search {
	struct ky_trace_set *set;
	const struct ky_trace_options *options;
	const struct ky_log *log;
	struct ky_map
		visited; /* directories: links may lead to one several times, or in a circle */
	bool found;
	size_t given_len; /* of the path that is searched */
};

/* ---- traces ------------------------------------------------------------------------------ */

void ky_trace_free(struct ky_trace *trace)
{
	if (!trace)
		return;
	ky_vec_foreach(&trace->streams, stream)
		ky_stream_free(*stream);
	ky_vec_fini(&trace->streams);
	ky_trace_class_free(trace->cls);
	free(trace->path);
	free(trace->metadata_path);
	free(trace);
}

static int read_metadata(struct ky_trace *trace, struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	const char *path;
	int ret;

	if (asprintf(&trace->metadata_path, "%s/metadata", trace->path) < 0) {
		trace->metadata_path = NULL;
		return ky_error_nomem(err);
	}
	path = trace->metadata_path;
	ret = ky_read_file(AT_FDCWD, path, METADATA_MAX_BYTES, &bytes);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read the metadata");
	} else {
		ret = ky_metadata_read(ky_strbuf_text(&bytes), bytes.len, &trace->cls, err);
		if (ret == KYMO_E_FORMAT && err && !err->hint[0])
			ky_error_hint(err, "the metadata is damaged, or this is no CTF trace");
	}
	if (ret < 0)
		ky_error_path(err, path);
	else if (trace->cls->n_attributes_lost)
		ky_log_warning(trace->log,
			       "%s: attributes repeated by aliases go beyond %llu MiB; those of "
			       "%llu classes are left out",
			       path, (unsigned long long)(KY_ATTRIBUTE_BYTES_MAX >> 20),
			       (unsigned long long)trace->cls->n_attributes_lost);
	ky_strbuf_fini(&bytes);
	return ret;
}

static int open_streams(struct ky_trace *trace, const struct listing *listing,
			struct kymo_error *err)
{
	int dir = open(trace->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = KYMO_OK;
	struct stat st;

	if (dir < 0) {
		ret = ky_error_errno(err, errno, "cannot open the trace");
		ky_error_path(err, trace->path);
		return ret;
	}
	for (int i = 0; i < listing->len && ret == KYMO_OK; i++) {
		const char *name = listing->entries[i]->d_name;

		if (strcmp(name, "metadata") != 0 && fstatat(dir, name, &st, 0) == 0 &&
		    S_ISREG(st.st_mode))
			ret = stream_open(trace, name, err);
	}
	close(dir);
	return ret;
}

static int trace_open(const struct search *search, const char *path, const struct listing *listing,
		      struct kymo_error *err)
{
	struct ky_trace *trace = calloc(1, sizeof(*trace));
	int ret;

	if (!trace)
		return ky_error_nomem(err);
	trace->log = search->log;
	trace->recover = search->options->recover;
	trace->path = strdup(path);
	trace->name_at = search->given_len;
	trace->name_at += strspn(path + trace->name_at, "/");
	ret = trace->path ? read_metadata(trace, err) : ky_error_nomem(err);
	if (ret == KYMO_OK) {
		trace->quirks = ky_quirks_of(trace->cls);
		ret = open_streams(trace, listing, err);
	}
	if (ret == KYMO_OK && ky_vec_push(&search->set->traces, trace) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		ky_trace_free(trace);
	return ret;
}

/* ---- finding them ------------------------------------------------------------------------ */

static int visit(struct search *search, const char *path, int depth, struct kymo_error *err);

static int visit_children(struct search *search, const char *path, const struct listing *listing,
			  bool is_trace, int depth, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (int i = 0; i < listing->len && ret == KYMO_OK; i++) {
		const struct dirent *entry = listing->entries[i];
		struct stat st;
		char *child;

		if (entry->d_type == DT_REG || (is_trace && strcmp(entry->d_name, "index") == 0))
			continue;
		if (asprintf(&child, "%s/%s", path, entry->d_name) < 0)
			return ky_error_nomem(err);
		if (stat(child, &st) == 0 && S_ISDIR(st.st_mode))
			ret = visit(search, child, depth + 1, err);
		free(child);
	}
	return ret;
}

static bool has_metadata(const char *path)
{
	struct stat st;
	bool found;
	char *file;

	if (asprintf(&file, "%s/metadata", path) < 0)
		return false;
	found = stat(file, &st) == 0 && S_ISREG(st.st_mode);
	free(file);
	return found;
}

/* 1 when @path is to be searched, 0 when it was before, or negative. */
static int first_visit(struct search *search, const char *path, struct kymo_error *err)
{
	struct stat st;
	uint64_t key;
	int ret;

	if (stat(path, &st) < 0) {
		ret = ky_error_errno(err, errno, "cannot open the trace");
		ky_error_path(err, path);
		return ret;
	}
	key = ky_hash_u64((uint64_t)st.st_dev) ^ (uint64_t)st.st_ino;
	if (ky_map_get(&search->visited, key))
		return 0;
	return ky_map_set(&search->visited, key, search) < 0 ? ky_error_nomem(err) : 1;
}

static int visit(struct search *search, const char *path, int depth, struct kymo_error *err)
{
	struct listing listing;
	bool is_trace;
	int ret = first_visit(search, path, err);

	if (ret <= 0) {
		/* By another way: what is there has been opened. */
		search->found |= ret == 0 && (!depth || has_metadata(path));
		return ret;
	}
	ret = listing_init(&listing, path);
	if (ret < 0 && depth) {
		ky_log_warning(search->log, "%s: cannot search it for traces: %s", path,
			       strerror(-ret));
		return KYMO_OK;
	}
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot search it for traces");
		ky_error_path(err, path);
		if (ret == KYMO_E_PERMISSION)
			ky_error_hint(err, "it belongs to another user; try again as root");
		return ret;
	}
	is_trace = has_metadata(path);
	if (is_trace) {
		ret = trace_open(search, path, &listing, err);
		search->found = true;
	}
	if (ret == KYMO_OK && depth < SEARCH_DEPTH_MAX)
		ret = visit_children(search, path, &listing, is_trace, depth, err);
	listing_fini(&listing);
	return ret;
}

static int not_a_trace(const char *path, const char *what, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_NOT_FOUND, "%s", what);
	ky_error_path(err, path);
	ky_error_hint(err, "name the directory that holds the trace's `metadata`, or one above it");
	return KYMO_E_NOT_FOUND;
}

static int search_path(struct search *search, const char *given, struct kymo_error *err)
{
	char *path = strdup(given);
	size_t len = strlen(given);
	struct stat st;
	int ret;

	if (!path)
		return ky_error_nomem(err);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	search->found = false;
	search->given_len = len;
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		ret = not_a_trace(path, "not a directory, so not a trace", err);
	else
		ret = visit(search, path, 0, err);
	if (ret == KYMO_OK && !search->found)
		ret = not_a_trace(path, "no trace here: no file `metadata` at or below it", err);
	free(path);
	return ret;
}

static int number_streams(struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace) {
		ky_vec_foreach(&(*trace)->streams, stream) {
			(*stream)->index = (uint32_t)set->streams.len;
			if (ky_vec_push(&set->streams, *stream) < 0)
				return KYMO_E_MEMORY;
		}
	}
	return KYMO_OK;
}

int ky_trace_set_open_with(struct ky_trace_set *set, const char *const *paths, size_t n_paths,
			   const struct ky_trace_options *options, const struct ky_log *log,
			   struct kymo_error *err)
{
	struct search search = {.set = set, .options = options, .log = log};
	int ret = KYMO_OK;

	memset(set, 0, sizeof(*set));
	ky_map_init(&search.visited);
	for (size_t i = 0; i < n_paths && ret == KYMO_OK; i++)
		ret = search_path(&search, paths[i], err);
	ky_map_fini(&search.visited);
	if (ret == KYMO_OK)
		ret = ky_trace_set_join(set, err);
	if (ret == KYMO_OK && number_streams(set) < 0)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = ky_clocks_shift(set, options->clock_offsets, options->n_clock_offsets, err);
	if (ret < 0)
		ky_trace_set_close(set);
	return ret;
}

int ky_trace_set_open(struct ky_trace_set *set, const char *const *paths, size_t n_paths,
		      const struct ky_log *log, struct kymo_error *err)
{
	static const struct ky_trace_options usual = {.recover = false};

	return ky_trace_set_open_with(set, paths, n_paths, &usual, log, err);
}

void ky_trace_set_close(struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace)
		ky_trace_free(*trace);
	ky_vec_fini(&set->traces);
	ky_vec_fini(&set->streams);
}
