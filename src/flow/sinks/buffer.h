/* SPDX-License-Identifier: MIT */
/*
 * Buffers of system calls (docs/syscall-content.md) for people: their bytes are a sequence of numbers in the trace, and are shown as
 * text where they are text, else in hexadecimal with ASCII behind.
 */
#ifndef KY_FLOW_SINKS_BUFFER_H
#define KY_FLOW_SINKS_BUFFER_H

#include "base/strbuf.h"
#include "ctf/decode/decode.h"

/* May there be buffers in the scope that begins at @root? It ends with what says how they were read. */
bool ky_buffer_scope(const struct ky_value *root);

/* Is @v, of such a scope, one? Then it is followed by its bytes. */
bool ky_buffer_is(const struct ky_value *v);

/* Add the bytes of @v to @out. Returns whether they are text: printable UTF-8, whose last character may be cut, and a NUL may end it. */
bool ky_buffer_bytes(struct ky_strbuf *out, const struct ky_value *v);

/* Add @len bytes at @bytes to @out: 01 61 62 |.ab| */
void ky_buffer_hex(struct ky_strbuf *out, const char *bytes, size_t len);

#endif
