/* SPDX-License-Identifier: MIT */
/* The shared part of the demanglers, one for each mangling scheme. */
#ifndef KY_SYMBOLS_DEMANGLE_INTERNAL_H
#define KY_SYMBOLS_DEMANGLE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* The limit of nested names and types. */
#define KY_DEMANGLE_MAX_DEPTH 64

struct ky_demangler {
	const char *start, *at;
	char *name; /* NULL: the demangler parses this part and drops its text */
	size_t len;
	int depth;
	bool failed;
};

/* Appends a part to the name, after "::". The demangler fails when the name is too long. */
void ky_demangle_add(struct ky_demangler *r, const char *text, size_t len);
void ky_demangle_add_part(struct ky_demangler *r, const char *text, size_t len);
/* Consumes @c if it is the next letter. Returns whether it was. */
bool ky_demangle_take(struct ky_demangler *r, char c);
/* Marks the symbol as malformed. Returns false. */
bool ky_demangle_fail(struct ky_demangler *r);

/*
 * demangle-cplusplus.c, demangle-rust.c: parse a name from r->at on, after the prefix ("_Z", "_R").
 * Return false when the name is malformed or not understood.
 */
bool ky_demangle_cplusplus(struct ky_demangler *r);
bool ky_demangle_rust(struct ky_demangler *r);

#endif
