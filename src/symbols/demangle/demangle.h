/* SPDX-License-Identifier: MIT */
/*
 * Source-level names of functions with mangled symbols: "shop::Shop::place" for
 * _ZN4shop4Shop5placeEi.
 *
 * C++ (Itanium's ABI) and both schemes of Rust. The name has no parameters, template arguments and
 * Rust hashes, so overloads and instances share one name. Operators and conversions get no name.
 * Symbols are untrusted: a malformed symbol gets no name. Threads: any.
 */
#ifndef KY_SYMBOLS_DEMANGLE_H
#define KY_SYMBOLS_DEMANGLE_H

#include <stdbool.h>

/* Longer names are rejected. */
#define KY_DEMANGLED_BYTES 512

/*
 * Writes the name of @symbol to @name, of KY_DEMANGLED_BYTES. Returns false when the symbol is not
 * mangled, or not understood.
 */
bool ky_demangle(const char *symbol, char *name);

#endif
