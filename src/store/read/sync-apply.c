/* SPDX-License-Identifier: MIT */
/* Where the files of clocks lie, and what opening a trace does with them. */
#include "store/read/sync-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "ctf/tsdl/tsdl.h"
#include "os/file.h"

#define FILE_MAX_BYTES ((size_t)4 << 20)
#define IDENTITY_BYTES 4096

static uint64_t mixed(uint64_t hash, uint64_t value)
{
	return ky_hash_u64(hash ^ value);
}

static size_t above(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len > 1 ? len - 1 : len;
}

/* The file or directory at or above the path of @trace that exists. NULL: memory is out, or nothing of it exists. */
static char *source_of(const struct ky_trace *trace, struct stat *st)
{
	char *path = strdup(trace->path);
	size_t len = path ? strlen(path) : 0;

	while (len) {
		path[len] = '\0';
		if (stat(path, st) == 0)
			return path;
		len = above(path, len);
	}
	free(path);
	return NULL;
}

/* A file of another program: its size and first bytes. An import has another UUID each time. */
static uint64_t identity_of_file(const char *path, const struct stat *st)
{
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY);
	char bytes[IDENTITY_BYTES];
	ssize_t n = fd < 0 ? 0 : pread(fd, bytes, sizeof(bytes), 0);

	if (fd >= 0)
		close(fd);
	return mixed((uint64_t)st->st_size, ky_hash_bytes(bytes, n > 0 ? (size_t)n : 0));
}

static uint64_t identity_of_clocks(const struct ky_trace_class *cls, uint64_t hash)
{
	ky_vec_foreach(&cls->clocks, it) {
		hash = mixed(hash, (*it)->frequency_hz);
		hash = mixed(hash, (uint64_t)(*it)->base_ns);
	}
	return hash;
}

static uint64_t identity_of_class(const struct ky_trace_class *cls)
{
	return identity_of_clocks(cls,
				  cls->has_uuid ? ky_hash_bytes(cls->uuid, sizeof(cls->uuid)) : 0);
}

uint64_t ky_sync_identity(const struct ky_trace *trace)
{
	const struct ky_trace_class *cls = trace->cls;
	struct stat st;
	char *path = trace->scratch && !trace->feed ? source_of(trace, &st) : NULL;
	uint64_t hash;

	if (path && S_ISREG(st.st_mode))
		hash = identity_of_clocks(cls, identity_of_file(path, &st));
	else
		hash = identity_of_class(cls);
	free(path);
	return hash;
}

/* ---- places --------------------------------------------------------------------------- */

/* In directory @dir of @len bytes, unless it is there. */
static void add_in(struct ky_strbuf *paths, const char *dir, size_t len)
{
	size_t from = paths->len, n;
	const char *path;

	if (len)
		ky_strbuf_add(paths, dir, len);
	ky_strbuf_adds(paths, len ? "/" KY_SYNC_FILE_NAME : KY_SYNC_FILE_NAME);
	ky_strbuf_addc(paths, '\0');
	n = paths->len - from;
	path = ky_strbuf_text(paths);
	for (size_t at = 0; at < from; at += strlen(path + at) + 1) {
		if (strcmp(path + at, path + from) == 0) {
			paths->len -= n;
			return;
		}
	}
}

/* Beside the file that @trace was made of, or in its directory. */
static void add_scratch(struct ky_strbuf *paths, const struct ky_trace *trace)
{
	struct stat st;
	char *path = source_of(trace, &st);
	size_t dir;

	if (path && S_ISDIR(st.st_mode)) {
		add_in(paths, path, strlen(path));
	} else if (path) {
		dir = above(path, strlen(path));
		ky_strbuf_add(paths, path, dir);
		ky_strbuf_addf(paths, "%s.%s%s", dir ? "/" : "", path + dir + (path[dir] == '/'),
			       KY_SYNC_FILE_NAME);
		ky_strbuf_addc(paths, '\0');
	}
	free(path);
}

int ky_sync_paths(const struct ky_trace *trace, struct ky_strbuf *paths)
{
	if (trace->feed)
		return KYMO_OK;
	if (trace->scratch) {
		add_scratch(paths, trace);
		return ky_strbuf_failed(paths) ? KYMO_E_MEMORY : KYMO_OK;
	}
	add_in(paths, trace->metadata_path,
	       above(trace->metadata_path, strlen(trace->metadata_path)));
	ky_vec_foreach(&trace->streams, stream) {
		ky_vec_foreach(&(*stream)->parts, part)
			add_in(paths, part->path, above(part->path, strlen(part->path)));
	}
	return ky_strbuf_failed(paths) ? KYMO_E_MEMORY : KYMO_OK;
}

static int each_path(const struct ky_trace *trace,
		     int (*file)(void *data, const char *path, struct kymo_error *err), void *data,
		     struct kymo_error *err)
{
	struct ky_strbuf paths = KY_STRBUF_INIT;
	int ret = ky_sync_paths(trace, &paths) < 0 ? ky_error_nomem(err) : KYMO_OK;

	for (size_t at = 0; at < paths.len && !ret; at += strlen(ky_strbuf_text(&paths) + at) + 1)
		ret = file(data, ky_strbuf_text(&paths) + at, err);
	ky_strbuf_fini(&paths);
	return ret;
}

static int save_one(void *data, const char *path, struct kymo_error *err)
{
	const struct ky_strbuf *text = data;
	size_t len = above(path, strlen(path));
	const char *name = path + len + (path[len] == '/');
	char *dir = len ? strndup(path, len) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int ret = fd < 0 ? -errno : ky_file_replace(fd, name, ky_strbuf_text(text), text->len);

	/* Whoever may read the trace may read it. */
	if (!ret && fchmodat(fd, name, 0644, 0) < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	free(dir);
	if (ret == 0)
		return KYMO_OK;
	ret = ky_error_errno(err, -ret, "cannot write");
	ky_error_path(err, path);
	return ret;
}

int ky_sync_save(const struct ky_trace *trace, const struct ky_sync *sync, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_sync_put(&text, sync);
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : each_path(trace, save_one, &text, err);
	ky_strbuf_fini(&text);
	return ret;
}

int ky_sync_copy(const struct ky_sync *sync, const char *dir, const char *metadata, size_t len,
		 struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT, path = KY_STRBUF_INIT;
	struct ky_sync copy = *sync;
	struct ky_trace_class *cls;
	int ret = ky_metadata_read(metadata, len, &cls, err);

	if (ret < 0)
		return ret;
	copy.trace = identity_of_class(cls);
	ky_trace_class_free(cls);
	ky_sync_put(&text, &copy);
	ky_strbuf_addf(&path, "%s/%s", dir, KY_SYNC_FILE_NAME);
	ret = ky_strbuf_failed(&text) || ky_strbuf_failed(&path)
		      ? ky_error_nomem(err)
		      : save_one(&text, ky_strbuf_text(&path), err);
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&path);
	return ret;
}

static int remove_one(void *data, const char *path, struct kymo_error *err)
{
	unsigned int *n = data;
	int ret;

	if (unlink(path) == 0) {
		++*n;
		return KYMO_OK;
	}
	if (errno == ENOENT)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot remove");
	ky_error_path(err, path);
	return ret;
}

int ky_sync_remove(const struct ky_trace *trace, unsigned int *n, struct kymo_error *err)
{
	*n = 0;
	return each_path(trace, remove_one, n, err);
}

/* ---- opening -------------------------------------------------------------------------- */

static void correct_clocks(struct ky_trace *trace, const struct ky_sync *sync)
{
	const __int128 one = (__int128)1 << 62;
	const struct ky_clock_line line = {
		.is_set = sync->drift || sync->shift_ns,
		.at_ns = sync->at_ns,
		.shift_ns = sync->shift_ns,
		.drift = (int64_t)(sync->drift * one / KY_SYNC_DRIFT_ONE),
	};

	ky_vec_foreach(&trace->cls->clocks, clock)
		(*clock)->line = line;
}

static int apply_one(void *data, const char *path, struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	struct ky_trace *trace = data;
	struct ky_sync *sync = NULL;
	struct kymo_error why;
	int ret = trace->sync ? -ENOENT : ky_read_regular(AT_FDCWD, path, FILE_MAX_BYTES, &bytes);

	if (ret < 0) {
		if (ret != -ENOENT && ret != -ENOTDIR)
			ky_log_warning(trace->log,
				       "%s: cannot read it, so the times of the trace are not "
				       "corrected: %s",
				       path, strerror(-ret));
		ky_strbuf_fini(&bytes);
		return KYMO_OK;
	}
	ret = ky_sync_parse(ky_strbuf_text(&bytes), bytes.len, &sync, &why);
	ky_strbuf_fini(&bytes);
	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0)
		ky_log_warning(trace->log,
			       "%s: cannot use it, so the times of the trace are not corrected: %s",
			       path, why.message);
	else if (sync->trace != ky_sync_identity(trace))
		ky_log_warning(trace->log,
			       "%s: belongs to another trace, so the times of this one are not "
			       "corrected; try 'kymo sync' again",
			       path);
	else {
		correct_clocks(trace, sync);
		trace->sync = sync;
		return KYMO_OK;
	}
	ky_sync_free(sync);
	return KYMO_OK;
}

int ky_sync_apply(struct ky_trace_set *set, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&set->traces, trace) {
		if (!ret)
			ret = each_path(*trace, apply_one, *trace, err);
	}
	return ret;
}
