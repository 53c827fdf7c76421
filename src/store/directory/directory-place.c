/* SPDX-License-Identifier: MIT */
#include "store/directory/directory-place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"

/* Traces of one name: up to the first number names are counted, behind it they are random. */
#define SAME_NAME_MAX	1000
#define SAME_NAME_TRIES 100

static int path_error(int errnum, const char *path, struct kymo_error *err)
{
	int code = ky_error_errno(err, errnum, "cannot create the trace directory");

	ky_error_path(err, path);
	return code;
}

int ky_directory_make_parents(char *path, size_t store_len, struct kymo_error *err)
{
	for (char *slash = strchr(path + store_len + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		int ret = KYMO_OK;

		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			ret = path_error(errno, path, err);
		*slash = '/';
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

/*
 * Create a directory whose name is free: *path gets a number behind it. When a program has taken thousands of one kind,
 * the names become ones that the program cannot guess.
 */
static int make_numbered(char **path, struct kymo_error *err)
{
	char *name = *path, *numbered = NULL;
	uint64_t word = 0;
	int made = 0;

	for (int i = 1; i <= SAME_NAME_MAX + SAME_NAME_TRIES; i++) {
		if (i >= SAME_NAME_MAX && getrandom(&word, sizeof(word), 0) < 0)
			continue;
		made = i == 1		   ? asprintf(&numbered, "%s", name)
		       : i < SAME_NAME_MAX ? asprintf(&numbered, "%s-%d", name, i)
					   : asprintf(&numbered, "%s-%" PRIx64, name, word);
		if (made < 0)
			return ky_error_nomem(err);
		if (mkdir(numbered, 0700) == 0) {
			free(name);
			*path = numbered;
			return KYMO_OK;
		}
		if (errno != EEXIST)
			break;
		free(numbered);
		numbered = NULL;
	}
	made = path_error(errno, numbered ? numbered : name, err);
	free(numbered);
	return made;
}

static int directory_place_make_directory(struct ky_trace_dir *dir,
					  const struct ky_store_place *place, char **path,
					  size_t store_len, struct kymo_error *err)
{
	int ret = *place->path ? ky_directory_make_parents(*path, store_len, err) : KYMO_OK;

	if (!ret && place->is_numbered)
		ret = make_numbered(path, err);
	if (!ret)
		ret = (place->is_atomic ? ky_trace_dir_make_hidden : ky_trace_dir_make)(dir, *path,
											err);
	if (!ret && place->is_numbered)
		dir->is_ours = true;
	return ret;
}

int ky_directory_make_place(const struct ky_packet_store *store, const struct ky_store_place *place,
			    struct ky_trace_dir *dir, char **below, struct kymo_error *err)
{
	size_t store_len = strlen(store->name);
	char *path;
	int ret;

	if (asprintf(&path, "%s%s%s", store->name, *place->path ? "/" : "", place->path) < 0)
		return ky_error_nomem(err);
	ret = directory_place_make_directory(dir, place, &path, store_len, err);
	if (!ret) {
		*below = strdup(*place->path ? path + store_len + 1 : "");
		if (!*below) {
			ret = ky_error_nomem(err);
			ky_trace_dir_remove(dir);
			ky_trace_dir_fini(dir);
		}
	}
	free(path);
	return ret;
}
