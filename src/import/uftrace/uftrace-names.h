/* SPDX-License-Identifier: MIT */
/*
 * Names of functions in uftrace's directory: NAME.sym has those of a file that a process had mapped. Of each function that is called, one
 * event tells its name, so that a directory of another machine has names. Threads: one at a time per directory.
 */
#ifndef KY_IMPORT_UFTRACE_NAMES_H
#define KY_IMPORT_UFTRACE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "base/vec.h"

struct uftrace;
struct uftrace_table;

struct uftrace_image {
	int64_t pid;
	uint64_t begin, end, base; /* base: what the table's addresses count from */
	const struct uftrace_table *table;
};

struct uftrace_names {
	KY_VEC(struct uftrace_image) images;
	struct ky_names tables; /* path -> its table, which may be empty */
	struct ky_map told;	/* hash of process and address: it was asked for */
	size_t n_told;
	uint64_t bytes; /* of all tables' texts */
};

/*
 * Process @pid has mapped the file at @path, of @len bytes, from @begin to @end, with its offset. @id: the digits of its build ID, or NULL.
 * 0 or KYMO_E_MEMORY.
 */
int ky_uftrace_names_map(struct uftrace *uftrace, struct uftrace_image image, uint64_t offset,
			 const char *path, size_t len, const char *id);

/* Puts the event of the function at @address, the first time, at @ns. 0 or negative. */
int ky_uftrace_names_tell(struct uftrace *uftrace, int64_t tid, int64_t pid, uint64_t address,
			  uint64_t ns);

void ky_uftrace_names_fini(struct uftrace_names *names);

#endif
