/* SPDX-License-Identifier: MIT */
#include "net/files/relay-files.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

int ky_relay_io_error(const char *path, int errnum, const char *what, struct kymo_error *err)
{
	int ret = ky_error_errno(err, errnum, "cannot %s", what);

	if (path)
		ky_error_path(err, path);
	if (ret == KYMO_E_MEMORY)
		return ret;
	ret = errnum == EMFILE || errnum == ENFILE ? KYMO_E_AGAIN : KYMO_E_IO;
	if (err)
		err->code = ret;
	return ret;
}

static void relay_files_count(uint64_t *made_bytes)
{
	if (made_bytes)
		*made_bytes += KY_RELAY_ENTRY_BYTES;
}

int ky_relay_make_parents(int dir_fd, const char *path, uint64_t *made_bytes,
			  struct kymo_error *err)
{
	char *copy = strdup(path);
	int ret = copy ? KYMO_OK : ky_error_nomem(err);

	for (char *slash = copy ? strchr(copy, '/') : NULL; slash && !ret;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(dir_fd, copy, 0700) == 0)
			relay_files_count(made_bytes);
		else if (errno != EEXIST)
			ret = ky_relay_io_error(copy, errno, "create a directory", err);
		*slash = '/';
	}
	free(copy);
	return ret;
}

int ky_relay_open_file(int dir_fd, const char *name, int flags, uint64_t *made_bytes)
{
	int fd = ky_file_open(dir_fd, name, flags | O_CREAT | O_EXCL, 0600);

	if (fd >= 0)
		relay_files_count(made_bytes);
	else if (errno == EEXIST)
		fd = ky_file_open(dir_fd, name, flags | O_CREAT, 0600);
	return fd;
}

int ky_relay_open_directory(int dir_fd, const char *name, uint64_t *made_bytes)
{
	if (mkdirat(dir_fd, name, 0700) == 0)
		relay_files_count(made_bytes);
	else if (errno != EEXIST)
		return -1;
	return ky_file_open(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static bool relay_files_is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/*
 * With a recording of this name, or with one that has traces of whatever names, its host's directory or the relay's
 * would look like a recording (ky_relay_is_recording()).
 */
static bool is_taken_name(const char *name)
{
	static const char *const taken[] = {"metadata", "archives", "kernel", "ust",
					    "index",	"pid",	    "uid",    "symbols"};

	return relay_files_is_one_of(name, taken, sizeof(taken) / sizeof(taken[0]));
}

/* The same of a host alone: no recording in it has a name that is taken. */
static bool is_taken_host(const char *name)
{
	static const char *const taken[] = {"metadata", "archives", "symbols"};

	return relay_files_is_one_of(name, taken, sizeof(taken) / sizeof(taken[0]));
}

bool ky_relay_numbered_path(const char *host, const char *name, int number, char *path, size_t size)
{
	int len;

	number += is_taken_name(name);
	len = number == 1 ? snprintf(path, size, "%s/%s", host, name)
			  : snprintf(path, size, "%s/%s-%d", host, name, number);

	return len > 0 && (size_t)len < size;
}

static bool relay_files_has(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool ky_relay_is_recording(int dir_fd)
{
	return relay_files_has(dir_fd, "metadata") || relay_files_has(dir_fd, "kernel/index") ||
	       relay_files_has(dir_fd, "ust/pid") || relay_files_has(dir_fd, "ust/uid") ||
	       relay_files_has(dir_fd, "archives");
}

/* No recording's directory is in another's: one that a recorder on this machine writes may be called like a host. */
static int check_host(int dir_fd, const char *host, struct kymo_error *err)
{
	int fd;
	bool is_taken;

	if (is_taken_host(host))
		return ky_error_set(err, KYMO_E_INVALID,
				    "a relay keeps no recordings of a machine that is called '%s', "
				    "as files of recordings are; try another host name",
				    host);
	fd = ky_file_open(dir_fd, host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	is_taken = fd >= 0 && ky_relay_is_recording(fd);
	if (fd >= 0)
		close(fd);
	return is_taken ? ky_error_set(
				  err, KYMO_E_INVALID,
				  "'%s' is a recording in the relay's directory, and no machine",
				  host)
			: KYMO_OK;
}

int ky_relay_make_unique(int dir_fd, const char *host, const char *name, char *path, size_t size,
			 struct kymo_error *err)
{
	int ret = check_host(dir_fd, host, err);

	for (int i = 1;
	     !ret && i < KY_RELAY_NAMES_MAX && ky_relay_numbered_path(host, name, i, path, size);
	     i++) {
		ret = i == 1 ? ky_relay_make_parents(dir_fd, path, NULL, err) : KYMO_OK;
		if (ret < 0)
			return ret;
		if (mkdirat(dir_fd, path, 0700) == 0)
			return KYMO_OK;
		if (errno != EEXIST)
			return ky_relay_io_error(path, errno, "create the session's directory",
						 err);
	}
	return ret ? ret
		   : ky_error_set(err, KYMO_E_INVALID, "the name '%s/%s' is in use", host, name);
}

uint64_t ky_relay_counted(const char *name, const struct stat *st)
{
	/* The relay's own: they come and go, and others come with them. */
	return (uint64_t)st->st_size + (name[0] == '.' ? 0 : KY_RELAY_ENTRY_BYTES);
}

uint64_t ky_relay_remove_tree(const char *path)
{
	char *const paths[] = {(char *)path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	uint64_t bytes = 0;
	FTSENT *entry;

	while (tree && (entry = fts_read(tree))) {
		if (entry->fts_info == FTS_DP)
			bytes += rmdir(entry->fts_accpath) == 0 ? KY_RELAY_ENTRY_BYTES : 0;
		else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DNR &&
			 entry->fts_info != FTS_ERR && unlink(entry->fts_accpath) == 0 &&
			 entry->fts_info == FTS_F)
			bytes += ky_relay_counted(entry->fts_name, entry->fts_statp);
	}
	if (tree)
		fts_close(tree);
	return bytes;
}

int ky_relay_open_above(int dir_fd, char *path, const char **name)
{
	int fd = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	char *slash;

	for (; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		*slash = '\0';
		next = openat(fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		*slash = '/';
		close(fd);
		fd = next;
	}
	*name = path;
	return fd;
}

static uint64_t remove_tree_in(int dir_fd, const char *name)
{
	uint64_t bytes = 0;
	char *path;

	if (asprintf(&path, "/proc/self/fd/%d/%s", dir_fd, name) < 0)
		return 0;
	bytes = ky_relay_remove_tree(path);
	free(path);
	return bytes;
}

uint64_t ky_relay_remove_below(int dir_fd, const char *path)
{
	char *copy = strdup(path), *slash = copy;
	uint64_t bytes = 0;
	const char *name;
	bool goes_on = true;

	for (int i = 0; slash && goes_on; i++) {
		int fd = ky_relay_open_above(dir_fd, copy, &name);

		if (fd < 0)
			break;
		if (i)
			goes_on = unlinkat(fd, name, AT_REMOVEDIR) == 0;
		else
			bytes = remove_tree_in(fd, name);
		bytes += i && goes_on ? KY_RELAY_ENTRY_BYTES : 0;
		close(fd);
		slash = strrchr(copy, '/');
		if (slash)
			*slash = '\0';
	}
	free(copy);
	return bytes;
}

int ky_relay_write(int fd, const void *data, size_t bytes, uint64_t at_bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t done = pwrite(fd, at, bytes, (off_t)at_bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -ENOSPC;
		at += done;
		bytes -= (size_t)done;
		at_bytes += (uint64_t)done;
	}
	return 0;
}

/* Small files take no room ahead, and larger ones as much as they have, up to a limit. */
#define ROOM_MIN_BYTES (UINT64_C(1) << 20)
#define ROOM_MAX_BYTES (UINT64_C(16) << 20)
/* For other file systems, nothing was measured. */
#define ROOM_NONE UINT64_MAX

static bool relay_files_takes_room(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC;
}

/* Of all files; no quota counts it. */
static uint64_t room_limit_bytes = UINT64_C(1) << 30, room_all_bytes;

void ky_relay_limit_room(uint64_t bytes)
{
	__atomic_store_n(&room_limit_bytes, bytes, __ATOMIC_RELAXED);
}

static uint64_t relay_files_ahead(uint64_t end_bytes)
{
	return end_bytes < ROOM_MAX_BYTES ? end_bytes : ROOM_MAX_BYTES;
}

/* The file's part of room_all_bytes, from what its last room was: an end, and as much ahead of it. */
static uint64_t relay_files_counted(uint64_t room_bytes)
{
	if (room_bytes <= 1 || room_bytes == ROOM_NONE)
		return 0;
	return room_bytes < 2 * ROOM_MAX_BYTES ? room_bytes / 2 : ROOM_MAX_BYTES;
}

static bool relay_files_has_room(uint64_t more, uint64_t less)
{
	uint64_t all = __atomic_add_fetch(&room_all_bytes, more - less, __ATOMIC_RELAXED);

	if (all <= __atomic_load_n(&room_limit_bytes, __ATOMIC_RELAXED))
		return true;
	__atomic_sub_fetch(&room_all_bytes, more - less, __ATOMIC_RELAXED);
	return false;
}

void ky_relay_reserve(int fd, uint64_t at_bytes, uint64_t end_bytes, uint64_t *room_bytes)
{
	uint64_t more = relay_files_ahead(end_bytes), less = relay_files_counted(*room_bytes);

	if (end_bytes <= *room_bytes || end_bytes < ROOM_MIN_BYTES)
		return;
	/* Later there may be room again. */
	if (!relay_files_has_room(more, less))
		return;
	/* A disk without so much room may have enough for what comes. */
	if ((*room_bytes <= 1 && !relay_files_takes_room(fd)) ||
	    fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)at_bytes,
		      (off_t)(end_bytes - at_bytes + more)) < 0) {
		*room_bytes = ROOM_NONE;
		__atomic_sub_fetch(&room_all_bytes, more, __ATOMIC_RELAXED);
	} else {
		*room_bytes = end_bytes + more;
	}
}

void ky_relay_close_file(int *fd, uint64_t *room_bytes)
{
	struct stat st;

	__atomic_sub_fetch(&room_all_bytes, relay_files_counted(*room_bytes), __ATOMIC_RELAXED);
	if (*fd >= 0 && *room_bytes && *room_bytes != ROOM_NONE && fstat(*fd, &st) == 0 &&
	    ftruncate(*fd, st.st_size) < 0)
		*room_bytes = ROOM_NONE; /* it stays with the file */
	*room_bytes = 0;
	ky_relay_close_fd(fd);
}

void ky_relay_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
