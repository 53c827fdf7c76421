/* SPDX-License-Identifier: MIT */
#include "store/read/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "ctf/decode/stored-stacks.h"
#include "ctf/ctf2/attributes.h"
#include "ctf/tsdl/tsdl.h"
#include "os/file.h"
#include "store/read/clocks.h"
#include "store/read/join.h"
#include "store/read/quirks.h"
#include "store/read/feed.h"
#include "store/read/follow.h"
#include "store/packets/scratch-trace.h"
#include "store/read/stream.h"
#include "store/read/sync-file.h"
#include "store/read/trace-stacks.h"

/* Deeper directories are not searched. */
#define SEARCH_DEPTH_MAX 32
/* LTTng's metadata of a whole kernel is 0.4 MB. */
#define METADATA_MAX_BYTES ((size_t)1 << 30)

/* ---- directories ------------------------------------------------------------------------- */

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int store_trace_by_name(const struct dirent **a, const struct dirent **b)
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
	listing->len = scandir(path, &listing->entries, visible, store_trace_by_name);
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
	ky_stored_stacks_free(trace->stacks);
	ky_sync_free(trace->sync);
	ky_live_state_fini(&trace->live.state);
	free(trace->path);
	free(trace->metadata_path);
	free(trace);
}

static void warn_of_clock(const struct ky_trace *trace, const struct ky_clock_class *clock)
{
	if (clock->origin_wraps)
		ky_log_warning(
			trace->log,
			"%s: clock \"%s\": its origin, %lld s, is out of the range of 64-bit "
			"nanoseconds; times of day mean nothing, their differences do",
			trace->metadata_path, clock->name, (long long)clock->offset_s);
}

static void warn_of_clocks(const struct ky_trace *trace)
{
	ky_vec_foreach(&trace->cls->clocks, it)
		warn_of_clock(trace, *it);
}

/*
 * Of a trace that an importer made: its place in the file or directory that was given has no path of its own. Standard input has
 * none at all: it counts as a file of this name in the working directory.
 */
static char *real_path_of_scratch(const char *path)
{
	char *above = strdup(path), *real = NULL, *whole = NULL, *slash;

	while (above && !real && (slash = strrchr(above, '/'))) {
		*slash = '\0';
		real = realpath(*above ? above : "/", NULL);
	}
	if (above && !real) {
		real = realpath(".", NULL);
		if (real && asprintf(&whole, "%s/%s", real, path) < 0)
			whole = NULL;
	} else if (real && asprintf(&whole, "%s%s", real, path + strlen(above)) < 0) {
		whole = NULL;
	}
	free(real);
	free(above);
	return whole;
}

char *ky_trace_real_path(const struct ky_trace *trace)
{
	if (trace->feed)
		return strdup(trace->path);
	return trace->scratch ? real_path_of_scratch(trace->path) : realpath(trace->path, NULL);
}

int ky_trace_read_metadata(const struct ky_trace *trace, struct ky_strbuf *bytes,
			   struct kymo_error *err)
{
	int ret;

	if (trace->scratch) {
		ky_strbuf_clear(bytes);
		ky_strbuf_add(bytes, ky_strbuf_text(&trace->scratch->metadata),
			      trace->scratch->metadata.len);
		return ky_strbuf_failed(bytes) ? ky_error_nomem(err) : KYMO_OK;
	}
	ret = ky_read_regular(AT_FDCWD, trace->metadata_path, METADATA_MAX_BYTES, bytes);
	if (ret == 0)
		return KYMO_OK;
	ret = ky_error_errno(err, -ret, "cannot read the metadata");
	ky_error_path(err, trace->metadata_path);
	return ret;
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
	ret = ky_trace_read_metadata(trace, &bytes, err);
	if (ret == KYMO_OK) {
		ret = ky_metadata_read(ky_strbuf_text(&bytes), bytes.len, &trace->cls, err);
		if (ret == KYMO_E_FORMAT && err && !err->hint[0])
			ky_error_hint(err, "the metadata is damaged, or this is not a CTF trace");
	}
	if (ret < 0)
		ky_error_path(err, path);
	else if (trace->cls->n_attributes_lost)
		ky_log_warning(trace->log,
			       "%s: attributes repeated by aliases go beyond %llu MiB; those of "
			       "%llu classes are left out",
			       path, (unsigned long long)(KY_ATTRIBUTE_BYTES_MAX >> 20),
			       (unsigned long long)trace->cls->n_attributes_lost);
	if (!ret)
		warn_of_clocks(trace);
	ky_strbuf_fini(&bytes);
	return ret;
}

static int open_scratch_streams(struct ky_trace *trace, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < trace->scratch->streams.len && ret == KYMO_OK; i++) {
		struct ky_scratch_stream *stream = trace->scratch->streams.data[i];

		ret = ky_stream_open(trace, stream->name, stream, err);
	}
	return ret;
}

static int open_entry(struct ky_trace *trace, int dir_fd, const char *name, struct kymo_error *err)
{
	struct stat st;
	int errnum;

	if (strcmp(name, "metadata") == 0 || (trace->leaves_out_late && ky_live_is_late(name)))
		return KYMO_OK;
	errnum = fstatat(dir_fd, name, &st, 0) < 0 ? errno : 0;
	if (errnum == ENOENT && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return KYMO_OK; /* removed since it was listed, as from a recording that is cleared */
	if (errnum)
		ky_log_warning(trace->log, "%s/%s: cannot read this entry of the trace: %s",
			       trace->path, name, strerror(errnum));
	else if (S_ISREG(st.st_mode))
		return ky_stream_open(trace, name, NULL, err);
	else if (!S_ISDIR(st.st_mode)) /* a directory may be another trace */
		ky_log_warning(trace->log, "%s/%s: not a regular file, so not a part of the trace",
			       trace->path, name);
	return KYMO_OK;
}

static int open_streams(struct ky_trace *trace, const struct listing *listing,
			struct kymo_error *err)
{
	int dir, ret = KYMO_OK;

	if (trace->scratch)
		return open_scratch_streams(trace, err);
	dir = open(trace->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		ret = ky_error_errno(err, errno, "cannot open the trace");
		ky_error_path(err, trace->path);
		return ret;
	}
	for (int i = 0; i < listing->len && ret == KYMO_OK; i++)
		ret = open_entry(trace, dir, listing->entries[i]->d_name, err);
	close(dir);
	return ret;
}

/* CTF 1.8 has a stream class in each trace. */
static void warn_of_no_class(const struct ky_trace *trace)
{
	if (trace->cls->major == 1 && !trace->cls->streams.len && trace->streams.len)
		ky_log_warning(trace->log,
			       "%s: the metadata describes no data stream, so its data files "
			       "cannot be read",
			       trace->path);
}

/* Whether all events of the trace come late. */
static bool is_late(const struct listing *listing)
{
	bool has_late = false;

	for (int i = 0; i < listing->len; i++) {
		const char *name = listing->entries[i]->d_name;
		bool late = ky_live_is_late(name);

		if (!late && name[0] != '.' && strcmp(name, "metadata") != 0 &&
		    strcmp(name, "index") != 0 && strncmp(name, "statedump", 9) != 0)
			return false;
		has_late = has_late || late;
	}
	return has_late;
}

/* What is at @path, with the files of @listing; or @scratch; or of @feed. */
static int trace_open(const struct search *search, const char *path, const struct listing *listing,
		      const struct ky_scratch_trace *scratch, struct ky_feed_trace *feed,
		      struct kymo_error *err)
{
	struct ky_trace *trace = calloc(1, sizeof(*trace));
	int ret;

	if (!trace)
		return ky_error_nomem(err);
	trace->log = search->log;
	trace->scratch = feed ? &feed->files : scratch;
	trace->feed = feed;
	trace->recover = search->options->recover;
	/* A relay decides which streams it sends. */
	trace->leaves_out_late = search->options->leaves_out_late && !feed;
	trace->path = strdup(path);
	trace->name_at = search->given_len;
	trace->name_at += strspn(path + trace->name_at, "/");
	trace->given_bytes = trace->name_at;
	ret = trace->path ? KYMO_OK : ky_error_nomem(err);
	if (ret == KYMO_OK && search->options->follow && !scratch)
		ret = ky_follow_begin(trace, err);
	if (ret == KYMO_OK)
		ret = read_metadata(trace, err);
	if (ret == KYMO_OK) {
		trace->quirks = ky_quirks_of(trace->cls);
		ret = open_streams(trace, listing, err);
	}
	if (ret == KYMO_OK)
		warn_of_no_class(trace);
	if (ret == KYMO_OK && ky_vec_push(&search->set->traces, trace) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		ky_trace_free(trace);
	return ret;
}

/* ---- finding them ------------------------------------------------------------------------ */

static int store_trace_visit(struct search *search, const char *path, int depth,
			     struct kymo_error *err);

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
			ret = store_trace_visit(search, child, depth + 1, err);
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

static int first_visit_of_key(struct search *search, uint64_t key, struct kymo_error *err)
{
	if (ky_map_get(&search->visited, key))
		return 0;
	return ky_map_set(&search->visited, key, search) < 0 ? ky_error_nomem(err) : 1;
}

/* 1 when @path is to be searched, 0 when it was before, or negative. */
static int first_visit(struct search *search, const char *path, int depth, struct kymo_error *err)
{
	struct stat st;
	int ret;

	if (stat(path, &st) < 0) {
		int errnum = errno;

		/* Somebody has just removed it. */
		if (errnum == ENOENT && depth)
			return 0;
		ret = ky_error_errno(err, errnum, "cannot open the trace");
		ky_error_path(err, path);
		if (errnum == ENOENT)
			ky_error_hint(err, "no recording of this name is running, either; 'kymo "
					   "sessions' shows the running recordings");
		return ret;
	}
	return first_visit_of_key(search, ky_hash_u64((uint64_t)st.st_dev) ^ (uint64_t)st.st_ino,
				  err);
}

static int store_trace_visit(struct search *search, const char *path, int depth,
			     struct kymo_error *err)
{
	struct listing listing;
	bool is_trace;
	int ret = first_visit(search, path, depth, err);

	if (ret <= 0) {
		/* By another way: what is there has been opened. */
		search->found |= ret == 0 && (!depth || has_metadata(path));
		return ret;
	}
	ret = listing_init(&listing, path);
	if (ret < 0 && depth) {
		if (ret != -ENOENT)
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
	if (is_trace && !(search->options->leaves_out_late && is_late(&listing))) {
		ret = trace_open(search, path, &listing, NULL, NULL, err);
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

/* Most files that somebody names and that have no known format are logs. */
static int not_a_known_file(const char *path, const struct stat *st, struct kymo_error *err)
{
	if (S_ISREG(st->st_mode) && !st->st_size) {
		ky_error_set(err, KYMO_E_NOT_FOUND, "the file is empty, so it has no events");
		ky_error_path(err, path);
		return KYMO_E_NOT_FOUND;
	}
	ky_error_set(err, KYMO_E_NOT_FOUND,
		     "not a directory, so not a trace, and no file of a known format");
	ky_error_path(err, path);
	ky_error_hint(err,
		      "<log-format> says how the lines of a log are written; if the file is part "
		      "of a trace, name the directory of `metadata`");
	return KYMO_E_NOT_FOUND;
}

/* Whether there are traces at @path instead of what is there. */
static bool has_scratch(const struct ky_trace_options *options, const char *path)
{
	for (size_t i = 0; i < options->n_scratch; i++) {
		if (strcmp(options->scratch[i].path, path) == 0)
			return true;
	}
	return false;
}

static int open_scratch(struct search *search, const struct ky_trace_at *at, const char *path,
			struct kymo_error *err)
{
	char *here;
	int ret;

	if (asprintf(&here, "%s/%s", path, at->name) < 0)
		return ky_error_nomem(err);
	ret = trace_open(search, here, NULL, at->trace, NULL, err);
	free(here);
	return ret;
}

/* Is the trace in folder "ust" of what is there? Then an importer has read this folder. */
static bool is_in_ust(const struct ky_trace_at *at)
{
	return strncmp(at->name, "ust/", 4) == 0;
}

/* @given: the path as the options have it. The traces of programs are beside it. */
static int visit_scratch(struct search *search, const char *given, const char *path,
			 struct kymo_error *err)
{
	char *programs = NULL;
	bool has_ust = false;
	struct stat st;
	/* Standard input has no file, and one that an importer has read may be gone. */
	int ret = stat(path, &st) < 0
			  ? first_visit_of_key(search, ky_hash_bytes(path, strlen(path)), err)
			  : first_visit(search, path, 0, err);

	search->found |= ret >= 0;
	if (ret <= 0)
		return ret;
	ret = asprintf(&programs, "%s/ust", path) < 0 ? ky_error_nomem(err) : KYMO_OK;
	for (size_t i = 0; i < search->options->n_scratch && !ret; i++) {
		const struct ky_trace_at *at = &search->options->scratch[i];

		if (strcmp(at->path, given) != 0)
			continue;
		has_ust |= is_in_ust(at);
		ret = open_scratch(search, at, path, err);
	}
	if (!ret && !has_ust && access(programs, F_OK) == 0)
		ret = store_trace_visit(search, programs, 1, err);
	free(programs);
	return ret;
}

static struct ky_feed *find_feed(const struct ky_trace_options *options, const char *path)
{
	for (size_t i = 0; i < options->n_feeds; i++)
		if (strcmp(options->feeds[i].path, path) == 0)
			return options->feeds[i].feed;
	return NULL;
}

/* A trace without metadata has not begun. */
static int visit_feed(struct search *search, struct ky_feed *feed, const char *path,
		      struct kymo_error *err)
{
	int ret = KYMO_OK;

	search->given_len = strlen(path);
	search->found = false;
	for (size_t i = 0; i < feed->traces.len && !ret; i++) {
		struct ky_feed_trace *trace = feed->traces.data[i];
		char *here;

		if (!trace->files.metadata.len)
			continue;
		if (asprintf(&here, "%s/%s", path, trace->name) < 0)
			return ky_error_nomem(err);
		ret = trace_open(search, here, NULL, NULL, trace, err);
		search->found = true;
		free(here);
	}
	if (ret < 0 || search->found)
		return ret;
	ky_error_set(err, KYMO_E_NOT_FOUND, "there is no trace yet");
	ky_error_path(err, path);
	return KYMO_E_NOT_FOUND;
}

static int search_path(struct search *search, const char *given, struct kymo_error *err)
{
	struct ky_feed *feed = find_feed(search->options, given);
	bool has = has_scratch(search->options, given);
	char *path = strdup(given);
	size_t len = strlen(given);
	struct stat st;
	int ret;

	if (feed) {
		free(path);
		return visit_feed(search, feed, given, err);
	}
	if (!path)
		return ky_error_nomem(err);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	search->found = false;
	search->given_len = len;
	if (!has && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		ret = not_a_known_file(path, &st, err);
	else
		ret = has ? visit_scratch(search, given, path, err)
			  : store_trace_visit(search, path, 0, err);
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
	/* What is joined lies in several places: traces that grow are left as they are. */
	if (ret == KYMO_OK && !options->follow)
		ret = ky_trace_set_join(set, err);
	if (ret == KYMO_OK && number_streams(set) < 0)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK && !options->leaves_clocks)
		ret = ky_sync_apply(set, err);
	if (ret == KYMO_OK)
		ret = ky_clocks_shift(set, options->clock_offsets, options->n_clock_offsets, err);
	for (size_t i = 0; i < set->traces.len && ret == KYMO_OK; i++)
		if (ky_trace_stacks_attach(set->traces.data[i], options->follow) < 0)
			ret = ky_error_nomem(err);
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

int ky_trace_set_check(const struct ky_trace_set *set, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < set->streams.len && ret == KYMO_OK; i++)
		ret = ky_stream_check(set->streams.data[i], true, err);
	return ret;
}
