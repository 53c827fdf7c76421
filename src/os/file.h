/* SPDX-License-Identifier: MIT */
/*
 * Whole-file reading and writing, for files that other people may change, cut or fill up
 * meanwhile. Everything returns 0 or a negative errno, so that a caller who knows the path
 * can say which file it was (ky_error_errno()). Threads: any.
 */
#ifndef KY_OS_FILE_H
#define KY_OS_FILE_H

#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Write all of @parts, which are changed, to @fd, going on as below. 0 or -errno. */
int ky_writev_all(int fd, struct iovec *parts, int n_parts);

/* Write all of @data to @fd, going on after short writes and signals. 0 or -errno. */
int ky_write_all(int fd, const void *data, size_t len_bytes);

/*
 * Let the kernel copy @size_bytes from @offset_bytes of @from_fd to where @to_fd stands, sharing blocks
 * where the file system can. *copied tells how much was; the rest is the caller's to write: not every
 * pair of files can be copied so, which is no error.
 * Returns 0, or -errno when the target is full (-ENOSPC, -EDQUOT, -EFBIG) or broken (-EIO).
 */
int ky_copy_range(int from_fd, uint64_t offset_bytes, int to_fd, uint64_t size_bytes,
		  uint64_t *copied);

/*
 * Read @name, relative to directory @dirfd (or AT_FDCWD), into @buf, which is cleared first.
 *
 * Sizes are not trusted: files in /proc and tracefs say 0.
 * Returns 0, -EFBIG when the file is longer than @max_bytes (@buf then holds its first
 * @max_bytes), -ENOMEM, or the negative errno of open() or read().
 */
int ky_read_file(int dirfd, const char *name, size_t max_bytes, struct ky_strbuf *buf);

/* The same of a regular file only (-EINVAL: @name is something else): for files that may come from anywhere. */
int ky_read_regular(int dirfd, const char *name, size_t max_bytes, struct ky_strbuf *buf);

/*
 * Open what @path_fd, of O_PATH, stands for: for who has looked first at what it is. A descriptor, or -errno.
 */
int ky_file_reopen(int path_fd, int flags);

/*
 * Open @name, relative to @dirfd (or AT_FDCWD), with @flags, if it is a regular file. Devices, FIFOs and
 * terminals are not opened at all, for that alone has effects. O_NOFOLLOW is about @name's last part.
 * A descriptor, or -errno (-EINVAL: not a regular file).
 */
int ky_file_open_regular(int dirfd, const char *name, int flags);

/*
 * The same, but of directory @dirfd itself: no link, and nothing that its owner has mounted over a file there, which may
 * never answer (Linux 5.6; before that, such mounts are followed). A descriptor, or -errno (-EXDEV: such a mount).
 */
int ky_file_open_here(int dirfd, const char *name, int flags);
/* What @name in @dirfd is, likewise. 0 or -errno. */
int ky_file_stat_here(int dirfd, const char *name, struct stat *st);

/*
 * Directory @path, relative to @dirfd (or AT_FDCWD), for readdir(); links are not followed. The caller
 * closes it by closedir(), and dirfd() is valid until then. NULL: errno says why.
 */
DIR *ky_dir_open(int dirfd, const char *path);

/*
 * Make @name in directory @dirfd hold exactly @data, mode 0600: written to a hidden temporary
 * name beside it and renamed, so that a reader sees the old or the new contents.
 * 0 or -errno; on failure the old file stays and the temporary one is removed.
 */
int ky_file_replace(int dirfd, const char *name, const void *data, size_t len_bytes);

/* Remove directory @path with all that is in it, as far as that goes; other file systems in it stay. */
void ky_tree_remove(const char *path);

/*
 * Take a lease for writing of @fd: only who has the file alone gets one, mappings count. 0 or -errno
 * (-EAGAIN: others have it). Who opens the file meanwhile waits until it is given back.
 */
int ky_file_lease(int fd);
void ky_file_unlease(int fd);

/* openat(), whose refusals are counted as below. */
int ky_file_open(int dirfd, const char *name, int flags, mode_t mode);

/*
 * How often the functions here, called by this thread, found no descriptor left for what they were to open. For who
 * takes much from files and directories of which any may be missing: this is another reason than that.
 */
uint64_t ky_file_refusals(void);

/* Let this process, and what it starts from now on, have as many files open as it may ask for. */
void ky_file_raise_limit(void);

#endif
