/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries that few commands need. They are loaded when the first of these commands runs: loading OpenSSL and GnuTLS
 * takes three times as long as all the rest of a short command, and small machines need not have them.
 *
 *	#define FUNCTIONS(X) X(SSL_new) X(SSL_free)
 *	FUNCTIONS(KY_LIBRARY_TYPE)
 *	struct library { FUNCTIONS(KY_LIBRARY_MEMBER) };
 *	#define SYMBOL(name) {#name, offsetof(struct library, name)},
 *	static const struct ky_library_symbol symbols[] = {FUNCTIONS(SYMBOL) {0}};
 *	static struct library ssl;
 *
 *	ky_library_load("libssl.so.3", "libssl3", symbols, &ssl, err), then ssl.SSL_new(...)
 */
#ifndef KY_OS_LIBRARY_H
#define KY_OS_LIBRARY_H

#include <stddef.h>

#include <kymo/error.h>

struct ky_library_symbol {
	const char *name; /* NULL ends a list */
	size_t offset;	  /* of the pointer to it in the struct of pointers */
};

/* The type of a pointer to function @name; and the pointer, in a struct of pointers. C++ wants both apart. */
#define KY_LIBRARY_TYPE(name)	typedef __typeof__(&(name)) name##_pointer;
#define KY_LIBRARY_MEMBER(name) name##_pointer name;

/*
 * Loads the library @file and fills the pointers of @table in; it stays loaded. @package: the Debian package that has
 * it, for the hint. KYMO_E_UNSUPPORTED: the library or one of the symbols is missing. One thread at a time for each @table.
 */
int ky_library_load(const char *file, const char *package, const struct ky_library_symbol *symbols,
		    void *table, struct kymo_error *err);

#endif
