/* SPDX-License-Identifier: MIT */
/* A session's directory in a runtime directory: made, locked, published, removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/runtime/user-runtime-internal.h"

static int open_base(const struct ky_user_runtime *runtime, struct ky_user_dir *dir,
		     struct kymo_error *err)
{
	int ret = ky_user_runtime_make(runtime, dir->uid, err);
	struct stat st;

	if (ret < 0)
		return ret;
	snprintf(dir->base, sizeof(dir->base), "%s", runtime->path);
	snprintf(dir->path, sizeof(dir->path), "%s", runtime->path);
	dir->base_fd = open(dir->path, DIR_FLAGS);
	if (dir->base_fd < 0)
		return ky_user_path_error(err, ky_error_errno(err, errno, "cannot open it"),
					  dir->path);
	if (fstat(dir->base_fd, &st) < 0 || (st.st_uid != dir->uid && st.st_uid != 0) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)))
		return ky_user_not_ours(err, dir->uid, dir->path);
	return KYMO_OK;
}

/* No program looks below this name. */
static void user_dir_hidden_name(const struct ky_user_dir *dir, char name[KY_SESSION_NAME_MAX + 2])
{
	snprintf(name, KY_SESSION_NAME_MAX + 2, ".%s", dir->name);
}

static int lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &lock);
}

static int write_session(struct ky_user_dir *dir, const void *session, size_t bytes,
			 struct kymo_error *err)
{
	char name[sizeof("." KY_SESSION_FILE) + 20];
	uint64_t word;
	int ret;

	/* A name that the directory's user cannot have taken. */
	if (getrandom(&word, sizeof(word), 0) != sizeof(word))
		return ky_error_errno(err, errno, "no random numbers");
	snprintf(name, sizeof(name), "." KY_SESSION_FILE "-%016llx", (unsigned long long)word);
	/* Programs of the directory's user read it; the directory's mode excludes others. */
	dir->session_fd =
		openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (dir->session_fd < 0)
		return ky_error_errno(err, errno, "cannot create the session's file");
	(void)fchmod(dir->session_fd, 0644);
	ret = ky_write_all(dir->session_fd, session, bytes);
	if (ret < 0)
		ret = ky_error_errno(err, -ret, "cannot write the session's file");
	else if (lock(dir->session_fd) < 0 || renameat(dir->fd, name, dir->fd, KY_SESSION_FILE) < 0)
		ret = ky_error_errno(err, errno, "cannot lock the session's file");
	if (ret < 0)
		(void)unlinkat(dir->fd, name, 0);
	return ret;
}

int ky_user_dir_change(struct ky_user_dir *dir, const void *session, size_t bytes,
		       struct kymo_error *err)
{
	int old = dir->session_fd, ret;

	dir->session_fd = -1;
	ret = write_session(dir, session, bytes, err);
	if (ret < 0) {
		if (dir->session_fd >= 0)
			close(dir->session_fd);
		dir->session_fd = old;
		return ky_user_path_error(err, ret, dir->path);
	}
	if (old >= 0)
		close(old);
	return KYMO_OK;
}

/*
 * That rings are in files that outlive the machine is of no use when their directory does not. What was
 * changed before, such as the place itself, a journal writes down along with it.
 */
static void user_dir_settle(const struct ky_user_dir *dir)
{
	if (dir->place_fd < 0)
		return;
	(void)fsync(dir->session_fd);
	(void)fsync(dir->fd);
	(void)fsync(dir->place_fd);
}

bool ky_user_dir_is_synced(const struct ky_user_dir *dir)
{
	void *map = dir->place_fd < 0 ? MAP_FAILED
				      : mmap(NULL, 1, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC,
					     dir->session_fd, 0);

	if (map == MAP_FAILED)
		return false;
	(void)munmap(map, 1);
	return true;
}

/* The place where it is, and what it is called there while no program is to find it. */
static int user_dir_own_place(const struct ky_user_dir *dir, char name[KY_SESSION_NAME_MAX + 2])
{
	if (dir->place_fd < 0) {
		user_dir_hidden_name(dir, name);
		return dir->base_fd;
	}
	memcpy(name, dir->name, sizeof(dir->name));
	return dir->place_fd;
}

/* What programs find when it is elsewhere: a link; which says where, rather than to be followed. */
static int make_link(struct ky_user_dir *dir, struct kymo_error *err)
{
	char hidden[KY_SESSION_NAME_MAX + 2], target[KY_SESSION_PATH_MAX + 1];

	user_dir_hidden_name(dir, hidden);
	snprintf(target, sizeof(target), "%.*s/%s", KY_USER_PLACE_MAX, dir->path, dir->name);
	if (symlinkat(target, dir->base_fd, hidden) < 0)
		return ky_error_errno(err, errno, "cannot make a link to the session's directory");
	return KYMO_OK;
}

static int user_dir_make_directory(struct ky_user_dir *dir, struct kymo_error *err)
{
	char own[KY_SESSION_NAME_MAX + 2];
	struct stat st;
	uint64_t word;
	int parent;

	if (getrandom(&word, sizeof(word), 0) != sizeof(word))
		return ky_error_errno(err, errno, "no random numbers");
	snprintf(dir->name, sizeof(dir->name), "%d-%016llx", (int)getpid(),
		 (unsigned long long)word);
	parent = user_dir_own_place(dir, own);
	if (mkdirat(parent, own, 0700) < 0)
		return ky_error_errno(err, errno, "cannot create the session's directory");
	dir->fd = openat(parent, own, DIR_FLAGS);
	if (dir->fd < 0 || fstat(dir->fd, &st) < 0 || st.st_uid != geteuid())
		return ky_error_set(err, KYMO_E_IO, "the session's directory was taken away");
	if (dir->uid != geteuid() && fchown(dir->fd, dir->uid, (gid_t)-1) < 0)
		return ky_error_errno(err, errno, "cannot give the session's directory to user %u",
				      dir->uid);
	return dir->place_fd < 0 ? KYMO_OK : make_link(dir, err);
}

/*
 * Another recorder may remove the runtime directory, empty as it is, as soon as it was made; and another user
 * may just have taken its name.
 */
#define MAKE_TRIES 8

/* Open @place, and have the session's directory there. */
static int open_place(struct ky_user_dir *dir, const char *place, struct kymo_error *err)
{
	dir->place_fd = open(place, DIR_FLAGS);
	if (dir->place_fd < 0)
		return ky_user_path_error(err, ky_error_errno(err, errno, "cannot open it"), place);
	if (!ky_user_place_is_open(place, dir->uid))
		return ky_user_path_error(err,
					  ky_error_set(err, KYMO_E_PERMISSION,
						       "programs of user %u have no permission "
						       "there",
						       dir->uid),
					  place);
	snprintf(dir->path, sizeof(dir->path), "%s", place);
	return KYMO_OK;
}

int ky_user_dir_make(uid_t uid, const char *place, const void *session, size_t bytes,
		     struct ky_user_dir *dir, struct kymo_error *err)
{
	struct ky_user_runtime runtime;
	int ret = KYMO_E_NOT_FOUND;
	size_t len;

	for (int i = 0; i < MAKE_TRIES && (ret == KYMO_E_NOT_FOUND || ret == KYMO_E_PERMISSION);
	     i++) {
		ky_user_runtime_choose(uid, &runtime);
		*dir = (struct ky_user_dir){.uid = uid,
					    .base_fd = -1,
					    .place_fd = -1,
					    .fd = -1,
					    .session_fd = -1,
					    .watch = -1};
		ret = open_base(&runtime, dir, err);
		if (!ret && (place || runtime.memory))
			ret = open_place(dir, place ? place : runtime.memory, err);
		if (!ret)
			ret = user_dir_make_directory(dir, err);
		if (ret < 0)
			ky_user_dir_remove(dir);
	}
	if (!ret)
		ret = write_session(dir, session, bytes, err);
	if (ret < 0) {
		if (err && !err->path[0])
			ky_user_path_error(err, ret, dir->path);
		ky_user_dir_remove(dir);
		return ret;
	}
	len = strlen(dir->path);
	snprintf(dir->path + len, sizeof(dir->path) - len, "/%s", dir->name);
	user_dir_settle(dir);
	return KYMO_OK;
}

int ky_user_dir_publish(struct ky_user_dir *dir, struct kymo_error *err)
{
	char hidden[KY_SESSION_NAME_MAX + 2];

	user_dir_hidden_name(dir, hidden);
	if (renameat(dir->base_fd, hidden, dir->base_fd, dir->name) < 0)
		return ky_user_path_error(
			err, ky_error_errno(err, errno, "cannot publish the session"), dir->path);
	dir->is_published = true;
	return KYMO_OK;
}

void ky_user_dir_unpublish(struct ky_user_dir *dir)
{
	char hidden[KY_SESSION_NAME_MAX + 2];

	if (!dir->is_published)
		return;
	(void)unlinkat(dir->fd, KY_SESSION_FILE, 0);
	user_dir_hidden_name(dir, hidden);
	(void)renameat(dir->base_fd, dir->name, dir->base_fd, hidden);
	dir->is_published = false;
}

/* All files of a directory; its sub-directories stay. */
static void user_dir_remove_files(int dir_fd)
{
	DIR *dir = ky_dir_open(dir_fd, ".");
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		(void)unlinkat(dir_fd, entry->d_name, 0);
	closedir(dir);
}

void ky_user_dir_remove(struct ky_user_dir *dir)
{
	char own[KY_SESSION_NAME_MAX + 2], hidden[KY_SESSION_NAME_MAX + 2];
	int parent = user_dir_own_place(dir, own);

	ky_user_dir_unpublish(dir);
	if (dir->fd >= 0) {
		user_dir_remove_files(dir->fd);
		close(dir->fd);
	}
	if (dir->session_fd >= 0)
		close(dir->session_fd);
	if (parent >= 0 && dir->name[0])
		(void)unlinkat(parent, own, AT_REMOVEDIR);
	if (dir->place_fd >= 0) {
		user_dir_hidden_name(dir, hidden);
		if (dir->name[0])
			(void)unlinkat(dir->base_fd, hidden, 0);
		close(dir->place_fd);
	}
	if (dir->base_fd >= 0) {
		close(dir->base_fd);
		/* When no session is there. */
		(void)rmdir(dir->base);
	}
	dir->fd = dir->session_fd = dir->base_fd = dir->place_fd = -1;
}

int ky_user_dir_open_file(const struct ky_user_dir *dir, const char *name, int flags)
{
	int fd = ky_file_open_here(dir->fd, name, flags);
	struct stat st;

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	if (fstat(fd, &st) < 0 || st.st_uid != dir->uid || st.st_nlink != 1) {
		close(fd);
		errno = st.st_nlink ? EPERM : ENOENT;
		return -1;
	}
	return fd;
}
