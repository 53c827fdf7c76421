/* SPDX-License-Identifier: MIT */
/*
 * Writing protocol buffer messages: fields are appended to a struct ky_strbuf, which
 * remembers when memory ran out.
 */
#ifndef KY_ANALYSIS_EXPORT_PROTOBUF_H
#define KY_ANALYSIS_EXPORT_PROTOBUF_H

#include "base/strbuf.h"

/* A field with a number: unsigned, boolean or enumeration. */
void ky_pb_uint(struct ky_strbuf *out, uint32_t field, uint64_t value);

/* A field of type int32 or int64. */
static inline void ky_pb_int(struct ky_strbuf *out, uint32_t field, int64_t value)
{
	ky_pb_uint(out, field, (uint64_t)value);
}

void ky_pb_double(struct ky_strbuf *out, uint32_t field, double value);

/* A field with bytes: what is text must be UTF-8 (ky_pb_text() sees to that). */
void ky_pb_bytes(struct ky_strbuf *out, uint32_t field, const char *data, size_t len_bytes);

/* A text field; U+FFFD stands for what is no UTF-8, and what is longer than @max_bytes is cut. */
void ky_pb_text(struct ky_strbuf *out, uint32_t field, const char *text, size_t len_bytes,
		size_t max_bytes);

/*
 * A nested message: its fields are what is added before ky_pb_end(), which takes what
 * ky_pb_begin() returned. Messages of 256 MiB and more mark @out as failed.
 */
size_t ky_pb_begin(struct ky_strbuf *out, uint32_t field);
void ky_pb_end(struct ky_strbuf *out, size_t begun);

#endif
