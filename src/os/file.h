/* SPDX-License-Identifier: MIT */
/*
 * Whole-file reading and writing, for files that other processes may change, truncate or fill
 * meanwhile. All functions return 0 or a negative errno, so that a caller with the path can
 * name the file (ky_error_errno()). Threads: any.
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

/*
 * Write all of @parts to @fd; continue after short writes and signals. Changes @parts. Returns 0 or
 * -errno.
 */
int ky_writev_all(int fd, struct iovec *parts, int n_parts);

/* Write all of @data to @fd; continue after short writes and signals. Returns 0 or -errno. */
int ky_write_all(int fd, const void *data, size_t len_bytes);

/*
 * Let the kernel copy @size_bytes from @offset_bytes of @from_fd to the position of @to_fd; the
 * kernel shares blocks where the file system can. *copied is the number of copied bytes. The caller
 * must write the rest, because the kernel cannot copy between all pairs of files; that is not an
 * error.
 *
 * Returns 0, or -errno when the target is full (-ENOSPC, -EDQUOT, -EFBIG) or broken (-EIO).
 */
int ky_copy_range(int from_fd, uint64_t offset_bytes, int to_fd, uint64_t size_bytes,
		  uint64_t *copied);

/*
 * Read @name, relative to directory @dirfd (or AT_FDCWD), into @buf, which the function clears
 * first.
 *
 * The function does not rely on the file's size: files in /proc and tracefs have size 0.
 * Returns 0, -EFBIG when the file is longer than @max_bytes (@buf then holds the first @max_bytes),
 * -ENOMEM, or the negative errno of open() or read().
 */
int ky_read_file(int dirfd, const char *name, size_t max_bytes, struct ky_strbuf *buf);

/*
 * The same for regular files only (-EINVAL: @name is something else). For files from untrusted
 * places.
 */
int ky_read_regular(int dirfd, const char *name, size_t max_bytes, struct ky_strbuf *buf);

/*
 * Open the file of @path_fd, a descriptor from O_PATH, after the caller has checked the file's
 * type. Returns a descriptor, or -errno.
 */
int ky_file_reopen(int path_fd, int flags);

/*
 * Open @name, relative to @dirfd (or AT_FDCWD), with @flags, if it is a regular file. The function
 * never opens devices, FIFOs and terminals, because opening alone has effects. O_NOFOLLOW concerns
 * the last part of @name. Returns a descriptor, or -errno (-EINVAL: not a regular file).
 */
int ky_file_open_regular(int dirfd, const char *name, int flags);

/*
 * The same, but only for a file in directory @dirfd itself: not a link, and not a file on which the
 * directory's owner has mounted something, which may never answer (Linux 5.6; older kernels follow
 * such mounts). Returns a descriptor, or -errno (-EXDEV: such a mount).
 */
int ky_file_open_here(int dirfd, const char *name, int flags);
/* The type of @name in @dirfd, with the same restrictions. Returns 0 or -errno. */
int ky_file_stat_here(int dirfd, const char *name, struct stat *st);

/*
 * Opens directory @path, relative to @dirfd (or AT_FDCWD), for readdir(); does not follow links.
 * The caller closes it with closedir(), and dirfd() is valid until then. Returns NULL, with errno,
 * on failure.
 */
DIR *ky_dir_open(int dirfd, const char *path);

/*
 * Make @name in directory @dirfd hold exactly @data, with mode 0600. The function writes a hidden
 * temporary file in the same directory and renames it, so a reader sees either the old or the new
 * contents. Returns 0 or -errno; on failure the old file stays, and the function removes the
 * temporary file.
 */
int ky_file_replace(int dirfd, const char *name, const void *data, size_t len_bytes);

/* Removes directory @path with its contents, as far as possible; other file systems in it stay. */
void ky_tree_remove(const char *path);
/* The bytes of the files in directory @path and below, on its file system, as far as they can be seen. */
uint64_t ky_tree_bytes(const char *path);

/*
 * Take a write lease of @fd. The kernel gives it only when no other descriptor or mapping of the
 * file exists. Returns 0 or -errno (-EAGAIN: the file is in use elsewhere). A process that opens
 * the file meanwhile waits until the lease ends.
 */
int ky_file_lease(int fd);
void ky_file_unlease(int fd);

/*
 * Open a new file without a name in @directory, for reading and writing (0600): the kernel removes it with its last descriptor.
 * Some file systems cannot do that; there it has a name for a moment, and is empty then. Returns a descriptor or -errno.
 */
int ky_file_open_unnamed(const char *directory);

/* openat() that counts refusals for ky_file_refusals(). */
int ky_file_open(int dirfd, const char *name, int flags, mode_t mode);

/*
 * How often the functions here failed in this thread because no descriptor was left. Callers that
 * expect missing files can tell this cause from an absent file.
 */
uint64_t ky_file_refusals(void);

/*
 * Raises this process's limit of open files as far as the kernel allows. New child processes
 * inherit it.
 */
void ky_file_raise_limit(void);

#endif
