/* SPDX-License-Identifier: MIT */
/* Where programs look for sessions, and where recorders can be asked: which directories these are. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "record/runtime/user-runtime-internal.h"

/* Memory of everybody: all may make directories there, and nobody can take others' away. */
#define SHARED_MEMORY "/dev/shm"

int ky_user_path_error(struct kymo_error *err, int code, const char *path)
{
	ky_error_path(err, path);
	return code;
}

int ky_user_not_ours(struct kymo_error *err, uid_t uid, const char *path)
{
	int ret = ky_error_set(err, KYMO_E_PERMISSION,
			       "this does not belong to user %u, or other users have access", uid);

	ky_error_hint(err, "remove it, as root");
	return ky_user_path_error(err, ret, path);
}

/* ---- which one ------------------------------------------------------------------------ */

static bool is_tmpfs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* A directory of @uid or root, in which nobody else can change anything @mask speaks of. */
static bool is_good(const char *path, uid_t uid, mode_t mask)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == uid || st.st_uid == 0) && !(st.st_mode & mask);
}

/* Any user can take any free name below SHARED_MEMORY. */
static bool user_runtime_is_taken(const char *path, uid_t uid, mode_t mask)
{
	struct stat st;

	return lstat(path, &st) == 0 && !is_good(path, uid, mask);
}

/*
 * The programs of @uid write into their session's directory, as much as they like. /run is the system's, and users
 * could not fill it otherwise; SHARED_MEMORY they can fill anyway.
 */
static bool is_better_off_in_memory(uid_t uid)
{
	return uid != 0 && is_tmpfs(SHARED_MEMORY) && ky_user_place_is_open(SHARED_MEMORY, uid);
}

/*
 * In memory, and at a place that exists on this machine. Root's is /run/kymo, which nobody else can make. Where
 * /run is on a disk, that is for links only, and needed only where somebody has taken the name in SHARED_MEMORY;
 * where it is in memory, links are all that other users' programs find there.
 */
void ky_user_runtime_choose(uid_t uid, struct ky_user_runtime *to)
{
	const mode_t others = S_IWGRP | S_IWOTH;
	char parent[64];
	struct stat st;
	bool in_run;

	*to = (struct ky_user_runtime){0};
	snprintf(to->path, sizeof(to->path), KY_RUNTIME_SHM, uid);
	if (geteuid() == 0) {
		in_run = is_tmpfs("/run");
		to->is_roots = in_run || user_runtime_is_taken(to->path, uid, others);
		if (to->is_roots && (!in_run || is_better_off_in_memory(uid)))
			to->memory = SHARED_MEMORY;
		if (to->is_roots)
			snprintf(to->path, sizeof(to->path), KY_RUNTIME_ROOT, uid);
		return;
	}
	snprintf(parent, sizeof(parent), "/run/user/%u", uid);
	if (stat(parent, &st) == 0 && st.st_uid == uid && is_tmpfs(parent))
		snprintf(to->path, sizeof(to->path), KY_RUNTIME_USER, uid);
}

/* ---- making it ------------------------------------------------------------------------ */

/* Make @path, one level, with @uid as its owner, if it is not there. */
static int make_level(const char *path, uid_t uid, mode_t mode, struct kymo_error *err)
{
	int fd, ret = KYMO_OK;
	struct stat st;

	if (mkdir(path, mode) < 0)
		return errno == EEXIST
			       ? KYMO_OK
			       : ky_user_path_error(err,
						    ky_error_errno(err, errno,
								   "cannot create the directory "
								   "for sessions"),
						    path);
	fd = open(path, DIR_FLAGS);
	if (fd < 0)
		return ky_user_path_error(
			err, ky_error_errno(err, errno, "cannot open the directory for sessions"),
			path);
	/* What we made is ours until it is given away; anything else has been put there since. */
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    (uid != geteuid() && fchown(fd, uid, (gid_t)-1) < 0) || fchmod(fd, mode) < 0)
		ret = ky_user_path_error(err, ky_error_set(err, KYMO_E_IO, "cannot set the owner"),
					 path);
	close(fd);
	return ret;
}

int ky_user_runtime_make(const struct ky_user_runtime *runtime, uid_t uid, struct kymo_error *err)
{
	int ret = runtime->is_roots ? make_level("/run/kymo", 0, 0755, err) : KYMO_OK;

	/* Below /run/kymo, root's; elsewhere the user's, who can record there too. */
	if (!ret)
		ret = make_level(runtime->path, runtime->is_roots ? 0 : uid,
				 runtime->is_roots ? 0755 : 0700, err);
	return ret;
}

/* ---- recorders' sockets --------------------------------------------------------------- */

#define RECORDINGS_PLACES 2

/* Where they may be, the best first. Returns how many. */
static unsigned int list_recordings(char paths[RECORDINGS_PLACES][KY_SESSION_PATH_MAX + 1])
{
	struct ky_user_runtime runtime;
	uid_t uid = geteuid();
	unsigned int n = 0;
	bool in_run;

	ky_user_runtime_choose(uid, &runtime);
	in_run = strncmp(runtime.path, "/run/", 5) == 0 && !runtime.memory;
	if (in_run && uid != 0)
		snprintf(paths[n++], sizeof(paths[0]), "/run/user/%u/kymo-recordings", uid);
	else if (in_run)
		snprintf(paths[n++], sizeof(paths[0]), "/run/kymo/recordings");
	snprintf(paths[n++], sizeof(paths[0]), SHARED_MEMORY "/kymo-recordings-%u", uid);
	/* Root's place when another user has taken the name in memory. */
	if (!in_run && uid == 0)
		snprintf(paths[n++], sizeof(paths[0]), "/run/kymo/recordings");
	return n;
}

typedef int (*found_recordings)(void *data, const struct ky_user_recordings *recordings);

static int each_own(found_recordings found, void *data)
{
	char paths[RECORDINGS_PLACES][KY_SESSION_PATH_MAX + 1];
	struct ky_user_recordings recordings = {.uid = geteuid(), .is_own = true};
	unsigned int n = list_recordings(paths);
	int ret = KYMO_OK;

	for (unsigned int i = 0; i < n && !ret; i++) {
		if (!is_good(paths[i], geteuid(), 077))
			continue;
		memcpy(recordings.path, paths[i], sizeof(paths[0]));
		ret = found(data, &recordings);
	}
	return ret;
}

/* Of those that match @pattern, the directories of other users which only they can get into. */
static int each_others(const char *pattern, found_recordings found, void *data)
{
	struct ky_user_recordings recordings = {.is_own = false};
	glob_t paths = {0};
	int ret = KYMO_OK;
	struct stat st;

	if (glob(pattern, GLOB_NOSORT, NULL, &paths) == 0) {
		for (size_t i = 0; i < paths.gl_pathc && !ret; i++) {
			if (lstat(paths.gl_pathv[i], &st) < 0 || !S_ISDIR(st.st_mode) ||
			    st.st_uid == geteuid() || (st.st_mode & 077) ||
			    strlen(paths.gl_pathv[i]) >= sizeof(recordings.path))
				continue;
			recordings.uid = st.st_uid;
			snprintf(recordings.path, sizeof(recordings.path), "%s", paths.gl_pathv[i]);
			ret = found(data, &recordings);
		}
	}
	globfree(&paths);
	return ret;
}

int ky_user_recordings_each(found_recordings found, void *data)
{
	int ret = each_own(found, data);

	if (!ret && geteuid() == 0)
		ret = each_others("/run/user/*/kymo-recordings", found, data);
	if (!ret && geteuid() == 0)
		ret = each_others(SHARED_MEMORY "/kymo-recordings-*", found, data);
	return ret;
}

/* Whether a directory can be there; what is wrong with it if not. */
static int make_recordings(const char *path, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (strncmp(path, "/run/kymo/", 10) == 0)
		ret = make_level("/run/kymo", 0, 0755, err);
	if (!ret)
		ret = make_level(path, geteuid(), 0700, err);
	if (ret < 0 || is_good(path, geteuid(), 077))
		return ret;
	return ky_user_not_ours(err, geteuid(), path);
}

/* What is wrong with something of our own is said, not avoided. */
static bool user_runtime_is_foreign(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid != geteuid();
}

int ky_user_recordings_make(char path[KY_SESSION_PATH_MAX + 1], struct kymo_error *err)
{
	char paths[RECORDINGS_PLACES][KY_SESSION_PATH_MAX + 1];
	unsigned int n = list_recordings(paths);
	int ret = KYMO_E_NOT_FOUND;

	for (unsigned int i = 0; ret < 0 && i < n && (!i || user_runtime_is_foreign(path)); i++) {
		memcpy(path, paths[i], sizeof(paths[0]));
		ret = make_recordings(path, err);
	}
	return ret;
}
