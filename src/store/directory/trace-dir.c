/* SPDX-License-Identifier: MIT */
#include "store/directory/trace-dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

void ky_trace_dir_hint(int errnum, struct kymo_error *err)
{
	if (errnum == ENOSPC || errnum == EDQUOT)
		ky_error_hint(err, "the disk is full: free some space or record to another one; "
				   "the trace so far can be read");
	if (errnum == EFBIG)
		ky_error_hint(err,
			      "the limit on the size of files is reached: raise it (ulimit -f), as "
			      "far as the file system goes; the trace so far can be read");
}

int ky_trace_dir_error(const struct ky_trace_dir *dir, const char *below, const char *name,
		       int errnum, const char *what, struct kymo_error *err)
{
	char path[PATH_MAX];
	int code = ky_error_errno(err, errnum, "cannot %s", what);

	snprintf(path, sizeof(path), "%s/%s%s", dir->path, below, name);
	ky_error_path(err, path);
	ky_trace_dir_hint(errnum, err);
	return code;
}

/* Only an empty directory is ours to fill. 0, or a negative errno (ENOTEMPTY). */
static int check_empty(int dir_fd)
{
	DIR *dir = ky_dir_open(dir_fd, ".");
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			ret = -ENOTEMPTY;
	closedir(dir);
	return ret;
}

static int open_error(int errnum, const char *path, struct kymo_error *err)
{
	int code;

	if (errnum == ENOTEMPTY) {
		code = ky_error_set(err, KYMO_E_INVALID, "the directory is not empty");
		ky_error_hint(err, "choose a new directory, or remove the old one");
	} else {
		code = ky_error_errno(err, errnum, "cannot create the trace directory");
		if (errnum == ENOENT)
			ky_error_hint(err, "its parent directory must exist");
	}
	ky_error_path(err, path);
	return code;
}

static int trace_dir_open_dirs(struct ky_trace_dir *dir)
{
	int ret;

	if (mkdir(dir->path, 0700) == 0)
		dir->is_ours = true;
	else if (errno != EEXIST)
		return -errno;
	dir->fd = ky_file_open(AT_FDCWD, dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir->fd < 0)
		return -errno;
	ret = check_empty(dir->fd);
	if (ret < 0)
		return ret;
	if (mkdirat(dir->fd, "index", 0700) < 0)
		return -errno;
	dir->index_fd = ky_file_open(dir->fd, "index", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return dir->index_fd < 0 ? -errno : 0;
}

/* @path: taken over. */
static int trace_dir_make(struct ky_trace_dir *dir, char *path, struct kymo_error *err)
{
	int ret;

	*dir = (struct ky_trace_dir){.path = path, .fd = -1, .index_fd = -1};
	if (!path)
		return ky_error_nomem(err);
	ret = trace_dir_open_dirs(dir);
	if (ret == 0)
		return KYMO_OK;
	ret = open_error(-ret, path, err);
	ky_trace_dir_fini(dir);
	return ret;
}

int ky_trace_dir_make(struct ky_trace_dir *dir, const char *path, struct kymo_error *err)
{
	return trace_dir_make(dir, strdup(path), err);
}

/* "a/b/" -> "a/.b.XXXXXX": beside it, where readers do not look. */
static char *trace_dir_hidden_name(const char *path)
{
	size_t len = strlen(path), name;
	char *hidden;

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (name = len; name && path[name - 1] != '/'; name--)
		;
	if (asprintf(&hidden, "%.*s.%.*s.XXXXXX", (int)name, path, (int)(len - name), path + name) <
	    0)
		return NULL;
	return hidden;
}

/* It is early enough to say so now. 0 or a negative errno. */
static int check_free(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno == ENOTDIR ? -ENOTEMPTY : -errno;
	ret = check_empty(fd);
	close(fd);
	return ret;
}

int ky_trace_dir_make_hidden(struct ky_trace_dir *dir, const char *path, struct kymo_error *err)
{
	char *hidden = trace_dir_hidden_name(path), *final_path = strdup(path);
	int ret = KYMO_OK, failed = check_free(path);

	if (!hidden || !final_path)
		ret = ky_error_nomem(err);
	else if (failed < 0 || !mkdtemp(hidden))
		ret = open_error(failed < 0 ? -failed : errno, path, err);
	if (ret < 0) {
		free(hidden);
		free(final_path);
		return ret;
	}
	ret = trace_dir_make(dir, hidden, err);
	if (ret < 0) {
		free(final_path);
		return ret;
	}
	dir->is_ours = true;
	dir->final_path = final_path;
	return KYMO_OK;
}

int ky_trace_dir_publish(struct ky_trace_dir *dir, struct kymo_error *err)
{
	int errnum;

	if (!dir->final_path || rename(dir->path, dir->final_path) == 0)
		return KYMO_OK;
	errnum = errno == EEXIST || errno == ENOTDIR ? ENOTEMPTY : errno;
	return open_error(errnum, dir->final_path, err);
}

void ky_trace_dir_remove(struct ky_trace_dir *dir)
{
	(void)unlinkat(dir->fd, "metadata", 0);
	(void)unlinkat(dir->fd, "index", AT_REMOVEDIR);
	if (dir->is_ours)
		(void)rmdir(dir->path);
}

void ky_trace_dir_rest(struct ky_trace_dir *dir)
{
	if (dir->index_fd >= 0)
		close(dir->index_fd);
	if (dir->fd >= 0)
		close(dir->fd);
	dir->fd = dir->index_fd = -1;
}

int ky_trace_dir_wake(struct ky_trace_dir *dir, struct kymo_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int ret;

	if (dir->fd >= 0)
		return KYMO_OK;
	dir->fd = ky_file_open(AT_FDCWD, dir->path, flags, 0);
	if (dir->fd >= 0)
		dir->index_fd = ky_file_open(dir->fd, "index", flags, 0);
	if (dir->index_fd >= 0)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot open the trace directory");
	ky_error_path(err, dir->path);
	ky_trace_dir_rest(dir);
	return ret;
}

void ky_trace_dir_fini(struct ky_trace_dir *dir)
{
	ky_trace_dir_rest(dir);
	free(dir->final_path);
	free(dir->path);
}
