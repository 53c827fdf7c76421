/* SPDX-License-Identifier: MIT */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_STEP_BYTES 4096
/* At most so many directories open at once while a tree is removed. */
#define TREE_FDS 16

static _Thread_local uint64_t n_refusals;

uint64_t ky_file_refusals(void)
{
	return n_refusals;
}

/* Returns @fd; errno stays. */
static int count_refusal(int fd)
{
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		n_refusals++;
	return fd;
}

int ky_file_open(int dirfd, const char *name, int flags, mode_t mode)
{
	return count_refusal(openat(dirfd, name, flags, mode));
}

int ky_writev_all(int fd, struct iovec *parts, int n_parts)
{
	while (n_parts) {
		ssize_t done;

		if (!parts->iov_len) {
			parts++;
			n_parts--;
			continue;
		}
		done = writev(fd, parts, n_parts);
		if (done < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		/* Writing nothing without an error would loop for ever: a device that is full. */
		if (!done)
			return -ENOSPC;
		while (done) {
			size_t here = (size_t)done < parts->iov_len ? (size_t)done : parts->iov_len;

			parts->iov_base = (uint8_t *)parts->iov_base + here;
			parts->iov_len -= here;
			done -= (ssize_t)here;
			if (!parts->iov_len && done) {
				parts++;
				n_parts--;
			}
		}
	}
	return 0;
}

int ky_write_all(int fd, const void *data, size_t len_bytes)
{
	struct iovec part = {(void *)data, len_bytes};

	return ky_writev_all(fd, &part, 1);
}

static int file_read_all(int fd, size_t max_bytes, struct ky_strbuf *buf)
{
	for (;;) {
		size_t room;
		ssize_t done;

		if (!ky_strbuf_reserve(buf, READ_STEP_BYTES))
			return -ENOMEM;
		/* Of an empty file, too, the text ends. */
		buf->data[buf->len] = '\0';
		room = buf->cap - buf->len - 1;
		done = read(fd, buf->data + buf->len, room);
		if (done < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!done)
			return 0;
		buf->len += (size_t)done;
		buf->data[buf->len] = '\0';
		if (buf->len > max_bytes) {
			buf->len = max_bytes;
			buf->data[buf->len] = '\0';
			return -EFBIG;
		}
	}
}

int ky_read_file(int dirfd, const char *name, size_t max_bytes, struct ky_strbuf *buf)
{
	int fd, ret;

	ky_strbuf_clear(buf);
	fd = count_refusal(openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY));
	if (fd < 0)
		return -errno;
	ret = file_read_all(fd, max_bytes, buf);
	close(fd);
	return ret;
}

int ky_read_regular(int dirfd, const char *name, size_t max_bytes, struct ky_strbuf *buf)
{
	int fd = ky_file_open_regular(dirfd, name, O_RDONLY), ret;

	ky_strbuf_clear(buf);
	if (fd < 0)
		return fd;
	ret = file_read_all(fd, max_bytes, buf);
	close(fd);
	return ret;
}

static bool is_real(int errnum)
{
	return errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG || errnum == EIO;
}

int ky_copy_range(int from_fd, uint64_t offset_bytes, int to_fd, uint64_t size_bytes,
		  uint64_t *copied)
{
	off_t from = (off_t)offset_bytes;
	ssize_t n;

	*copied = 0;
	while (*copied < size_bytes) {
		n = copy_file_range(from_fd, &from, to_fd, NULL, size_bytes - *copied, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return is_real(errno) ? -errno : 0;
		/* The file has become shorter; the caller's next read reports that. */
		if (!n)
			return 0;
		*copied += (uint64_t)n;
	}
	return 0;
}

int ky_file_reopen(int path_fd, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = count_refusal(open(path, (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
	return fd < 0 ? -errno : fd;
}

/* Open @place, of O_PATH, if it is a regular file; it is closed. */
static int reopen_regular(int place, int flags)
{
	struct stat st;
	int fd;

	if (fstat(place, &st) < 0)
		fd = -errno;
	else
		fd = S_ISREG(st.st_mode) ? ky_file_reopen(place, flags) : -EINVAL;
	close(place);
	return fd;
}

/*
 * Open @name of directory @dirfd itself, which is a regular file and was one a moment ago. Another file of that name is at
 * most a FIFO or a socket: a link is not followed, and only root makes devices.
 */
static int open_seen_regular(int dirfd, const char *name, int flags)
{
	struct stat st;
	int fd;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
	fd = count_refusal(
		openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

/* Opens the directory above @name's last part; *last is that part. Returns -errno. */
static int open_directory_of(int dirfd, const char *name, const char **last)
{
	const char *slash = strrchr(name, '/');
	char directory[PATH_MAX];
	int fd;

	*last = slash ? slash + 1 : name;
	if (slash && (size_t)(slash + 1 - name) >= sizeof(directory))
		return -ENAMETOOLONG;
	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash + 1 - name) : 1,
		 slash ? name : ".");
	fd = count_refusal(openat(dirfd, directory, O_PATH | O_DIRECTORY | O_CLOEXEC));
	return fd < 0 ? -errno : fd;
}

/* Opening a descriptor of O_PATH again takes longer than all of open_seen_regular(), so this is for links only. */
int ky_file_open_regular(int dirfd, const char *name, int flags)
{
	const char *last;
	int directory = open_directory_of(dirfd, name, &last), fd, place;

	if (directory < 0)
		return directory;
	fd = open_seen_regular(directory, last, flags);
	if (fd == -ELOOP && !(flags & O_NOFOLLOW)) {
		place = count_refusal(openat(directory, last, O_PATH | O_CLOEXEC));
		fd = place < 0 ? -errno : reopen_regular(place, flags);
	}
	close(directory);
	return fd;
}

/* A descriptor of O_PATH, or -1 with errno. */
static int open_place_here(int dirfd, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
			       .resolve = RESOLVE_NO_XDEV | RESOLVE_BENEATH};
	int place = (int)syscall(SYS_openat2, dirfd, name, &how, sizeof(how));

	if (place < 0 && errno == ENOSYS)
		place = openat(dirfd, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	return count_refusal(place);
}

int ky_file_open_here(int dirfd, const char *name, int flags)
{
	int place = open_place_here(dirfd, name);

	return place < 0 ? -errno : reopen_regular(place, flags);
}

int ky_file_stat_here(int dirfd, const char *name, struct stat *st)
{
	int place = open_place_here(dirfd, name);
	int ret = place < 0 || fstat(place, st) < 0 ? -errno : 0;

	if (place >= 0)
		close(place);
	return ret;
}

DIR *ky_dir_open(int dirfd, const char *path)
{
	int fd =
		count_refusal(openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int error = errno;

	if (!dir && fd >= 0)
		close(fd);
	errno = error;
	return dir;
}

int ky_file_open_unnamed(const char *directory)
{
	char path[PATH_MAX + 16];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	snprintf(path, sizeof(path), "%s/kymo-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

int ky_file_replace(int dirfd, const char *name, const void *data, size_t len_bytes)
{
	char temp[NAME_MAX + 1];
	int len = snprintf(temp, sizeof(temp), ".%s.tmp", name);
	int fd, ret;

	if (len < 0 || (size_t)len >= sizeof(temp))
		return -ENAMETOOLONG;
	fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	ret = ky_write_all(fd, data, len_bytes);
	if (close(fd) < 0 && !ret)
		ret = -errno;
	if (!ret && renameat(dirfd, temp, dirfd, name) < 0)
		ret = -errno;
	if (ret)
		unlinkat(dirfd, temp, 0);
	return ret;
}

int ky_file_lease(int fd)
{
	/*
	 * Who opens it meanwhile has the kernel send us a signal: not SIGIO, which would kill us, but
	 * one that does nothing. Said each time: the kernel forgets it with the lease.
	 */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return -errno;
	return 0;
}

void ky_file_unlease(int fd)
{
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
}

void ky_file_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int file_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

void ky_tree_remove(const char *path)
{
	(void)nftw(path, file_remove_one, TREE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

uint64_t ky_tree_bytes(const char *path)
{
	char *const paths[] = {(char *)path, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	uint64_t bytes = 0;
	FTSENT *entry;

	while (tree && (entry = fts_read(tree)))
		if (entry->fts_info == FTS_F)
			bytes += (uint64_t)entry->fts_statp->st_size;
	if (tree)
		fts_close(tree);
	return bytes;
}
