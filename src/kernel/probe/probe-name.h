/* SPDX-License-Identifier: MIT */
/*
 * What people call a function whose symbol is mangled: "shop::Shop::place" for _ZN4shop4Shop5placeEi.
 *
 * C++ (Itanium's ABI) and both of Rust's ways. Parameters, template arguments and Rust's hashes are
 * left out, so overloads and instances have one name. Operators and conversions have none here.
 * Symbols are not trusted: what is no name of this kind is nothing.
 * Threads: any.
 */
#ifndef KY_KERNEL_PROBE_PROBE_NAME_H
#define KY_KERNEL_PROBE_PROBE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Longer names are cut off at their beginning's end: they are nothing. */
#define KY_PROBE_PLAIN_BYTES 512

/* The name of @symbol in @name, of KY_PROBE_PLAIN_BYTES. False: it is not mangled, or not understood. */
bool ky_probe_plain_name(const char *symbol, char *name);

/* @symbol is called @wanted (of @len bytes): the whole name, or its end behind a "::". */
bool ky_probe_name_is(const char *symbol, const char *wanted, size_t len);

/* @symbol is what a compiler has made of @function for some of its callers: "f.isra.0", "f.part.0". */
bool ky_probe_name_is_clone(const char *symbol, const char *function);

/* What stands behind a function's name, ".cold", ".part.0", says: a piece of it, behind its beginning. */
bool ky_probe_name_is_piece(const char *rest);

#endif
