/* SPDX-License-Identifier: MIT */
/*
 * The directory that a trace is written to: made, put in its place when all is in it, or taken away.
 *
 * Threads: one at a time, but for ky_trace_dir_error() and the descriptors.
 */
#ifndef KY_STORE_TRACE_DIR_H
#define KY_STORE_TRACE_DIR_H

#include <stdbool.h>

#include <kymo/error.h>

struct ky_trace_dir {
	char *path;
	char *final_path; /* where it is to be moved, or NULL */
	bool is_ours;	  /* it was not there before */
	int fd, index_fd; /* of the directory, and of index/ in it */
};

/* See ky_directory_trace_open(): hidden is atomic. On failure @dir needs no ky_trace_dir_fini(). */
int ky_trace_dir_make(struct ky_trace_dir *dir, const char *path, struct kymo_error *err);
int ky_trace_dir_make_hidden(struct ky_trace_dir *dir, const char *path, struct kymo_error *err);

/* The error of @errnum on file @name of @below ("" or "index/") in the directory: "cannot @what". */
int ky_trace_dir_error(const struct ky_trace_dir *dir, const char *below, const char *name,
		       int errnum, const char *what, struct kymo_error *err);

/* What helps against @errnum, where a part of a recording cannot be written. */
void ky_trace_dir_hint(int errnum, struct kymo_error *err);

/* Put the finished directory in its place, if it is hidden; an empty one that is there already gives way. */
int ky_trace_dir_publish(struct ky_trace_dir *dir, struct kymo_error *err);

/* The metadata, index/ and the directory, if it is ours, go; what others may have put there stays. */
void ky_trace_dir_remove(struct ky_trace_dir *dir);

/* Close the descriptors while nothing is written to the directory. */
void ky_trace_dir_rest(struct ky_trace_dir *dir);
/* Open the descriptors again that ky_trace_dir_rest() closed. 0, or negative with @err. */
int ky_trace_dir_wake(struct ky_trace_dir *dir, struct kymo_error *err);

/* Closes; nothing is removed. */
void ky_trace_dir_fini(struct ky_trace_dir *dir);

#endif
