/* SPDX-License-Identifier: MIT */
/*
 * A directory that the user names for sessions' directories, so that rings are in files of a file system
 * that outlives the machine's reboot. Programs open it by its path, so nobody else may be able to
 * put something else there: each directory on the way is looked at.
 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "record/runtime/user-runtime.h"

static int user_shm_path_refuse(struct kymo_error *err, int code, const char *path, const char *why)
{
	ky_error_set(err, code, "%s", why);
	ky_error_path(err, path);
	return code;
}

static int errno_at(struct kymo_error *err, const char *path, const char *what)
{
	int ret = ky_error_errno(err, errno, "%s", what);

	ky_error_path(err, path);
	return ret;
}

/* Calls @look with each directory on the way to @real, "/" first, until one is not 0. Without a stat: errno. */
static int user_shm_path_walk(const char *real,
			      int (*look)(const char *path, const struct stat *st, void *data),
			      void *data)
{
	char path[KY_USER_PLACE_MAX + 1];
	struct stat st;
	int ret = 0;

	for (size_t len = 1; !ret; len++) {
		if (len > 1 && real[len] && real[len] != '/')
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)len, real);
		ret = look(path, lstat(path, &st) < 0 ? NULL : &st, data);
		if (!real[len])
			break;
	}
	return ret;
}

/* In a directory with the sticky bit others can make files, but cannot rename ours. */
static int look_whose(const char *path, const struct stat *st, void *data)
{
	struct kymo_error *err = data;

	if (!st)
		return errno_at(err, path, "cannot look at it");
	if (!S_ISDIR(st->st_mode))
		return user_shm_path_refuse(err, KYMO_E_INVALID, path, "not a directory");
	if (st->st_uid != 0 && st->st_uid != geteuid()) {
		ky_error_set(err, KYMO_E_PERMISSION,
			     "it belongs to user %u, a user that could replace the ring buffers",
			     st->st_uid);
		ky_error_path(err, path);
		return KYMO_E_PERMISSION;
	}
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) && !(st->st_mode & S_ISVTX))
		return user_shm_path_refuse(
			err, KYMO_E_PERMISSION, path,
			"other users can write there, and could replace the ring buffers");
	return KYMO_OK;
}

/* @path without links, in @real. */
static int user_shm_path_resolve(const char *path, char real[KY_USER_PLACE_MAX + 1],
				 struct kymo_error *err)
{
	char *resolved = realpath(path, NULL);
	int ret = KYMO_OK;

	if (!resolved)
		return errno_at(err, path, "cannot find out where this is");
	if (strlen(resolved) > KY_USER_PLACE_MAX) {
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "too long a path: programs take up to %d bytes",
				   KY_USER_PLACE_MAX);
		ky_error_path(err, path);
	} else {
		snprintf(real, KY_USER_PLACE_MAX + 1, "%s", resolved);
	}
	free(resolved);
	return ret;
}

int ky_user_place_check(const char *path, char real[KY_USER_PLACE_MAX + 1], struct kymo_error *err)
{
	/* Root's is for programs of all users: they go through, and do not look around. */
	mode_t mode = geteuid() == 0 ? 0711 : 0700;
	bool made = mkdir(path, mode) == 0;
	int ret;

	if (made)
		(void)chmod(path, mode);
	else if (errno != EEXIST)
		return errno_at(err, path, "cannot create the directory for ring buffers");
	ret = user_shm_path_resolve(path, real, err);
	if (!ret)
		ret = user_shm_path_walk(real, look_whose, err);
	if (!ret && access(real, W_OK | X_OK) < 0)
		ret = errno_at(err, real, "cannot create files there");
	if (ret < 0 && made)
		(void)rmdir(path);
	return ret;
}

bool ky_user_place_copies(const char *real)
{
	static const unsigned long types[] = {BTRFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */,
					      0xca451a4e /* bcachefs */};
	struct statfs fs;

	for (size_t i = 0; statfs(real, &fs) == 0 && i < sizeof(types) / sizeof(types[0]); i++) {
		if ((unsigned long)fs.f_type == types[i])
			return true;
	}
	return false;
}

/* Reads the first line of @name in the directory @path, or in the next one above that has it, below /sys. */
static bool read_above(char *path, const char *name, char *line, int size)
{
	char file[PATH_MAX + 32];

	for (char *end = path + strlen(path); end > path; end = strrchr(path, '/')) {
		FILE *in;
		bool got;

		*end = '\0';
		snprintf(file, sizeof(file), "%s/%s", path, name);
		in = fopen(file, "re");
		if (!in)
			continue;
		got = fgets(line, size, in) != NULL;
		fclose(in);
		return got;
	}
	return false;
}

bool ky_user_place_keeps_caches(const char *real)
{
	char link[64], line[32], *device;
	struct stat st;
	bool keeps;

	if (stat(real, &st) < 0)
		return false;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	device = realpath(link, NULL);
	keeps = device && read_above(device, "persistence_domain", line, sizeof(line)) &&
		strcmp(line, "cpu_cache\n") == 0;
	free(device);
	return keeps;
}

static int look_open(const char *path, const struct stat *st, void *data)
{
	const uid_t uid = *(const uid_t *)data;

	(void)path;
	return st && (st->st_uid == uid || (st->st_mode & S_IXOTH)) ? 0 : 1;
}

bool ky_user_place_is_open(const char *real, uid_t uid)
{
	return uid == 0 || user_shm_path_walk(real, look_open, &uid) == 0;
}
