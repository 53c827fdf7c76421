/* SPDX-License-Identifier: MIT */
/* What the readers of mangled names share: one for each way of mangling. */
#ifndef KY_KERNEL_PROBE_PROBE_NAME_READER_H
#define KY_KERNEL_PROBE_PROBE_NAME_READER_H

#include <stdbool.h>
#include <stddef.h>

/* Names in names, types in types. */
#define KY_NAME_MAX_DEPTH 64

struct ky_name_reader {
	const char *start, *at;
	char *name; /* NULL: nothing is wanted of what is read */
	size_t len;
	int depth;
	bool failed;
};

/* Append to the name that is found; a part of it, behind a "::". Too long a name has failed. */
void ky_name_add(struct ky_name_reader *r, const char *text, size_t len);
void ky_name_add_part(struct ky_name_reader *r, const char *text, size_t len);
/* Is @c the next letter? Then it is read. */
bool ky_name_take(struct ky_name_reader *r, char c);
/* It is no such name. Returns false. */
bool ky_name_fail(struct ky_name_reader *r);

/*
 * probe-name-cplusplus.c, probe-name-rust.c: read a name from r->at on, where what it is of stands ("_Z", "_R" is before it).
 * False: it is none, or not understood.
 */
bool ky_name_cplusplus(struct ky_name_reader *r);
bool ky_name_rust(struct ky_name_reader *r);

#endif
