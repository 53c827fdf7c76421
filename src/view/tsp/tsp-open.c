/* SPDX-License-Identifier: MIT */
/* Which traces a server without a secret opens. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/read/clocks.h"
#include "view/tsp/tsp-internal.h"

/* The search for traces below a path of a client ends here. */
#define MAX_ENTRIES 20000
#define MAX_DEPTH   8

static bool is_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	return strncmp(path, root, len) == 0 &&
	       (!path[len] || path[len] == '/' || (len && root[len - 1] == '/'));
}

static int refuse_foreign(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_PERMISSION, "this server does not open this path");
	ky_error_hint(err,
		      "the server opens traces of the user who runs it; or name the trace on its "
		      "command line");
	return KYMO_E_PERMISSION;
}

static int refuse_outside(struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_PERMISSION,
		     "this server opens only traces below the paths of its command line");
	ky_error_hint(err, "name the trace or its directory there");
	return KYMO_E_PERMISSION;
}

/* ---- a bounded search -------------------------------------------------------------------- */

/* Count the entries below the directory @fd, which the function closes. False: too many. */
static bool tsp_open_count_entries(int fd, unsigned int depth, size_t *n)
{
	DIR *directory = fdopendir(fd);
	const struct dirent *entry;
	bool good = true;

	if (!directory) {
		close(fd);
		return true; /* the reader tells why */
	}
	while (good && (entry = readdir(directory))) {
		struct stat status;
		int below;

		if (entry->d_name[0] == '.')
			continue;
		good = ++*n <= MAX_ENTRIES;
		if (!good || fstatat(fd, entry->d_name, &status, 0) < 0 || !S_ISDIR(status.st_mode))
			continue;
		below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0)
			good = depth < MAX_DEPTH ? tsp_open_count_entries(below, depth + 1, n)
						 : (close(below), false);
	}
	closedir(directory);
	return good;
}

static int check_size(const char *path, struct kymo_error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;

	if (fd < 0 || tsp_open_count_entries(fd, 0, &n))
		return KYMO_OK;
	ky_error_set(err, KYMO_E_INVALID, "the directory has too many files to search for a trace");
	ky_error_path(err, path);
	ky_error_hint(err, "open the directory of one trace");
	return KYMO_E_INVALID;
}

/* ---- owners ------------------------------------------------------------------------------ */

static bool is_own_stream(const struct ky_stream *stream)
{
	ky_vec_foreach(&stream->parts, part) {
		int fd = ky_stream_part_open(part);
		struct stat status;
		bool is_own;

		if (fd < 0)
			return false;
		is_own = fstat(fd, &status) == 0 && status.st_uid == geteuid();
		close(fd);
		if (!is_own)
			return false;
	}
	return true;
}

/* Links can lead to others' files. */
static bool is_own_set(const struct ky_trace_set *set)
{
	struct stat status;

	ky_vec_foreach(&set->traces, trace) {
		const char *metadata = (*trace)->metadata_path;

		if (!metadata || stat(metadata, &status) < 0 || status.st_uid != geteuid())
			return false;
	}
	ky_vec_foreach(&set->streams, stream) {
		if (!is_own_stream(*stream))
			return false;
	}
	return true;
}

static bool is_own_path(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && status.st_uid == geteuid();
}

/* ---- opening ----------------------------------------------------------------------------- */

char *ky_tsp_allowed_path(const struct ky_tsp *tsp, const char *path, struct kymo_error *err)
{
	char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
	int error = path[0] == '/' ? errno : EINVAL;
	bool good = false;

	for (size_t i = 0; real && i < tsp->n_roots && !good; i++)
		good = is_below(real, tsp->roots[i]);
	if (good || (real && !tsp->is_limited && is_own_path(real)))
		return real;
	if (path[0] != '/')
		ky_error_set(err, KYMO_E_INVALID, "the URI of a trace is an absolute path");
	else if (tsp->is_limited)
		refuse_outside(err);
	else if (real)
		refuse_foreign(err);
	else
		ky_error_errno(err, error, "cannot open the trace");
	free(real);
	return NULL;
}

int ky_tsp_open(const struct ky_tsp *tsp, const char *const *paths, size_t n_paths, bool follows,
		struct ky_trace_set *set, struct kymo_error *err)
{
	const struct ky_trace_options options = {.follow = follows, .leaves_out_late = follows};
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_paths && !tsp->is_limited && ret == KYMO_OK; i++)
		ret = check_size(paths[i], err);
	if (ret == KYMO_OK)
		ret = ky_trace_set_open_with(set, paths, n_paths, &options, NULL, err);
	if (ret < 0)
		return ret;
	if (!tsp->is_limited && !is_own_set(set))
		ret = refuse_foreign(err);
	if (ret == KYMO_OK)
		ret = ky_clocks_correlate(set, err);
	if (ret < 0)
		ky_trace_set_close(set);
	return ret;
}
