/* SPDX-License-Identifier: MIT */
/*
 * Buffers of system calls (docs/syscall-content.md) for people: the trace has their bytes as a
 * sequence of numbers. Sinks show them as text when they are text, else in hexadecimal with ASCII
 * after it.
 */
#ifndef KY_FLOW_SINKS_BUFFER_H
#define KY_FLOW_SINKS_BUFFER_H

#include "base/strbuf.h"
#include "ctf/decode/decode.h"

/*
 * Whether the scope that begins at @root may have buffers: it then ends with the field that
 * describes how they were read.
 */
bool ky_buffer_scope(const struct ky_value *root);

/* Whether @v, in such a scope, is a buffer. Its bytes then follow it. */
bool ky_buffer_is(const struct ky_value *v);

/*
 * Adds the bytes of @v to @out. Returns whether they are text: printable UTF-8, whose last
 * character may be incomplete; a NUL may end it.
 */
bool ky_buffer_bytes(struct ky_strbuf *out, const struct ky_value *v);

/* Adds @len bytes at @bytes to @out: 01 61 62 |.ab| */
void ky_buffer_hex(struct ky_strbuf *out, const char *bytes, size_t len);

#endif
