/* SPDX-License-Identifier: MIT */
/*
 * Another program that runs for a while, and what it writes.
 *
 * Threads: any.
 */
#ifndef KY_OS_CHILD_H
#define KY_OS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"

/* What ends a program before its own end. */
struct ky_child_limits {
	size_t max_bytes; /* of the standard output */
	int64_t max_ns;
	bool (*is_over)(
		void *data); /* true: nobody wants the output any more. Called some times a second */
	void *data;
};

/*
 * Run @argv[0], which is looked for in PATH, with the words of @argv up to a NULL, and add what it writes to the standard
 * output to @out, and the last part of its standard error to @errors. It gets no input and no open file, runs in a process group
 * of its own with the default handling of signals, and the whole group is killed at the end.
 *
 * Returns the exit status, from 0 to 255 (128 and more: a signal ended it); KYMO_E_NOT_FOUND when the program cannot be run; KYMO_E_LIMIT for
 * too much output or time; KYMO_E_INTERRUPTED; KYMO_E_IO; KYMO_E_MEMORY.
 */
int ky_child_run(const char *const *argv, const struct ky_child_limits *limits,
		 struct ky_strbuf *out, struct ky_strbuf *errors, struct kymo_error *err);

#endif
