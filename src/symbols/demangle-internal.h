/* SPDX-License-Identifier: MIT */
/* What the readers of mangled names share: one for each way of mangling. */
#ifndef KY_SYMBOLS_DEMANGLE_INTERNAL_H
#define KY_SYMBOLS_DEMANGLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* Names in names, types in types. */
#define KY_DEMANGLE_MAX_DEPTH 64

struct ky_demangler {
	const char *start, *at;
	char *name; /* NULL: nothing is wanted of what is read */
	size_t len;
	int depth;
	bool failed;
};

/* Append to the name that is found; a part of it, behind a "::". Too long a name has failed. */
void ky_demangle_add(struct ky_demangler *r, const char *text, size_t len);
void ky_demangle_add_part(struct ky_demangler *r, const char *text, size_t len);
/* Is @c the next letter? Then it is read. */
bool ky_demangle_take(struct ky_demangler *r, char c);
/* It is no such name. Returns false. */
bool ky_demangle_fail(struct ky_demangler *r);

/*
 * demangle-cplusplus.c, demangle-rust.c: read a name from r->at on, where what it is of stands ("_Z", "_R" is before it).
 * False: it is none, or not understood.
 */
bool ky_demangle_cplusplus(struct ky_demangler *r);
bool ky_demangle_rust(struct ky_demangler *r);

#endif
