/* SPDX-License-Identifier: MIT */
/* Functions' symbols, and what people call them. Threads: any. */
#ifndef KY_KERNEL_PROBE_PROBE_NAME_H
#define KY_KERNEL_PROBE_PROBE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* @symbol is called @wanted (of @len bytes): the whole name, or its end behind a "::". */
bool ky_probe_name_is(const char *symbol, const char *wanted, size_t len);

/* @symbol is what a compiler has made of @function for some of its callers: "f.isra.0", "f.part.0". */
bool ky_probe_name_is_clone(const char *symbol, const char *function);

/* What stands behind a function's name, ".cold", ".part.0", says: a piece of it, behind its beginning. */
bool ky_probe_name_is_piece(const char *rest);

#endif
