/* SPDX-License-Identifier: MIT */
/*
 * What people call a function whose symbol is mangled: "shop::Shop::place" for _ZN4shop4Shop5placeEi.
 *
 * C++ (Itanium's ABI) and both of Rust's ways. Parameters, template arguments and Rust's hashes are
 * left out, so overloads and instances have one name. Operators and conversions have none here.
 * Symbols are not trusted: a symbol that is malformed has no name.
 * Threads: any.
 */
#ifndef KY_SYMBOLS_DEMANGLE_H
#define KY_SYMBOLS_DEMANGLE_H

#include <stdbool.h>

/* A longer name counts as none. */
#define KY_DEMANGLED_BYTES 512

/* The name of @symbol in @name, of KY_DEMANGLED_BYTES. False: it is not mangled, or not understood. */
bool ky_demangle(const char *symbol, char *name);

#endif
