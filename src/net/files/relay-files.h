/* SPDX-License-Identifier: MIT */
/*
 * Files of traces at a relay: all are opened relative to a directory of the relay's, and never through a link.
 *
 * Threads: any.
 */
#ifndef KY_NET_FILES_RELAY_FILES_H
#define KY_NET_FILES_RELAY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <kymo/error.h>

/* What a file or directory counts in quotas, besides the bytes of a file: its inode and its name take room, too. */
#define KY_RELAY_ENTRY_BYTES 4096u
/* What the file @name counts. */
uint64_t ky_relay_counted(const char *name, const struct stat *st);
/* So many recordings of one host may have the same name. */
#define KY_RELAY_NAMES_MAX 1000

/*
 * The error of a failed call on @path (may be NULL): "cannot @what: ...". KYMO_E_IO, KYMO_E_MEMORY; KYMO_E_AGAIN:
 * descriptors are short, so a later try may succeed.
 */
int ky_relay_io_error(const char *path, int errnum, const char *what, struct kymo_error *err);
/*
 * Creates the directories above the last name of @path, below @dir_fd. What they count is added to *made_bytes (may be NULL).
 * KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_relay_make_parents(int dir_fd, const char *path, uint64_t *made_bytes,
			  struct kymo_error *err);
/*
 * Opens the directory above the last name of @path (O_PATH), below @dir_fd and without links; *name: the last name. @path is
 * the same afterwards. Returns a descriptor, or -1 with errno.
 */
int ky_relay_open_above(int dir_fd, char *path, const char **name);
/* Opens directory @name in @dir_fd, and creates it if need be; *made_bytes: as above. Returns a descriptor, or -1 with errno. */
int ky_relay_open_directory(int dir_fd, const char *name, uint64_t *made_bytes);
/* The same of a file, with @flags but for O_CREAT. */
int ky_relay_open_file(int dir_fd, const char *name, int flags, uint64_t *made_bytes);
/*
 * Creates directory @host/@name below @dir_fd, or with a number after the name: NAME-2, ..., the first one that does not
 * exist. Names that a recording's own directories have always get a number. Its path is put to @path, which has room for
 * @size bytes. KYMO_E_INVALID: all are in use, @host is a recording, or has a name that would make the relay's directory
 * look like one; KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_relay_make_unique(int dir_fd, const char *host, const char *name, char *path, size_t size,
			 struct kymo_error *err);
/* Whether a directory has traces of its own. A directory of a host has recordings in it, and no traces. */
bool ky_relay_is_recording(int dir_fd);
/* The path of the @number-th (from 1) directory that may have this name, as above. False: it does not fit. */
bool ky_relay_numbered_path(const char *host, const char *name, int number, char *path,
			    size_t size);
/* Removes @path and everything below it; links are not followed. Returns what is gone, as quotas count it. */
uint64_t ky_relay_remove_tree(const char *path);
/*
 * Removes @path below @dir_fd with everything in it, then the directories above it that are empty. No part of @path is followed
 * as a link. Returns what is gone, as quotas count it.
 */
uint64_t ky_relay_remove_below(int dir_fd, const char *path);
/* Writes all of @data to @at_bytes of @fd. Returns 0 or -errno. */
int ky_relay_write(int fd, const void *data, size_t bytes, uint64_t at_bytes);
/*
 * Before bytes from @at_bytes to @end_bytes are written to a file that grows: takes room on the disk for these and for some
 * that will follow, so that the kernel does not look for room page by page. The file's size stays. *room_bytes: 0 before
 * the first call for a file; 1: another process may have taken room.
 */
void ky_relay_reserve(int fd, uint64_t at_bytes, uint64_t end_bytes, uint64_t *room_bytes);
/* The most room that all files of this process may have ahead. */
void ky_relay_limit_room(uint64_t bytes);
/* Gives back what is left of the room, and closes *fd as ky_relay_close_fd() does. */
void ky_relay_close_file(int *fd, uint64_t *room_bytes);
/* Closes *fd, unless it is -1, and sets it to -1. */
void ky_relay_close_fd(int *fd);

#endif
