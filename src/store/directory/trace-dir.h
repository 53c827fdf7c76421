/* SPDX-License-Identifier: MIT */
/*
 * The directory of a trace during its writing: its creation, and its move to its final place or its
 * removal.
 *
 * Threads: one at a time, except for ky_trace_dir_error() and the descriptors.
 */
#ifndef KY_STORE_TRACE_DIR_H
#define KY_STORE_TRACE_DIR_H

#include <stdbool.h>

#include <kymo/error.h>

struct ky_trace_dir {
	char *path;
	char *final_path; /* its final place, or NULL */
	bool is_ours;	  /* the recorder created it */
	int fd, index_fd; /* of the directory, and of its index/ */
};

/*
 * See ky_directory_trace_open(): hidden means atomic. After a failure the caller need not call
 * ky_trace_dir_fini().
 */
int ky_trace_dir_make(struct ky_trace_dir *dir, const char *path, struct kymo_error *err);
int ky_trace_dir_make_hidden(struct ky_trace_dir *dir, const char *path, struct kymo_error *err);

/*
 * Sets the error for @errnum of file @name in @below ("" or "index/") of the directory: "cannot
 * @what".
 */
int ky_trace_dir_error(const struct ky_trace_dir *dir, const char *below, const char *name,
		       int errnum, const char *what, struct kymo_error *err);

/* Adds a remedy for @errnum, for a part of a recording that cannot be written. */
void ky_trace_dir_hint(int errnum, struct kymo_error *err);

/* Moves a hidden directory to its final place; it replaces an empty directory there. */
int ky_trace_dir_publish(struct ky_trace_dir *dir, struct kymo_error *err);

/*
 * Removes the metadata, index/ and, if the recorder created it, the directory; files of other
 * processes stay.
 */
void ky_trace_dir_remove(struct ky_trace_dir *dir);

/* Closes the descriptors while there is nothing to write. */
void ky_trace_dir_rest(struct ky_trace_dir *dir);
/* Reopens the descriptors after ky_trace_dir_rest(). Returns 0, or negative with @err. */
int ky_trace_dir_wake(struct ky_trace_dir *dir, struct kymo_error *err);

/* Closes the descriptors; removes nothing. */
void ky_trace_dir_fini(struct ky_trace_dir *dir);

#endif
