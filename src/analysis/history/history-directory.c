/* SPDX-License-Identifier: MIT */
/* The directory of state histories: only this user may write to it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/history/history.h"
#include "base/error.h"

/* ---- the directory ---------------------------------------------------------------------------- */

/* A directory of this user's that others cannot write to. 0 or -errno. */
static int history_place_make_directory(const char *path, bool own)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return own && (st.st_uid != geteuid() || st.st_mode & 022) ? -EPERM : 0;
}

static char *cache_path(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;

	/* Relative paths are invalid, says the specification. */
	if (cache && cache[0] == '/') {
		if (asprintf(&path, "%s", cache) < 0)
			return NULL;
	} else if (home && home[0] == '/') {
		if (asprintf(&path, "%s/.cache", home) < 0)
			return NULL;
	} else {
		errno = ENOENT;
	}
	return path;
}

char *ky_history_directory(struct kymo_error *err)
{
	char *cache = cache_path(), *path = NULL;
	int status;

	if (!cache) {
		ky_error_errno(err, errno, "cannot find the directory for caches");
		ky_error_hint(err, "set XDG_CACHE_HOME");
		return NULL;
	}
	status = history_place_make_directory(cache, false);
	if (status >= 0 && asprintf(&path, "%s/kymo", cache) < 0) {
		path = NULL;
		status = -ENOMEM;
	}
	free(cache);
	if (status >= 0)
		status = history_place_make_directory(path, true);
	if (status >= 0)
		return path;
	ky_error_errno(err, -status, "cannot use the directory for state histories");
	ky_error_path(err, path ? path : "");
	ky_error_hint(err, "set XDG_CACHE_HOME to a directory that only this user can write to");
	free(path);
	return NULL;
}
