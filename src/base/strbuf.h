/* SPDX-License-Identifier: MIT */
/*
 * A growable text. It ends with a NUL once it has memory.
 *
 * Adding returns no error. When memory is out, the buffer stays failed, later additions do nothing,
 * and ky_strbuf_failed() returns true. So callers add freely and check once. The inline adders are
 * for hot paths: the caller reserves room once, then adds without checks.
 */
#ifndef KY_BASE_STRBUF_H
#define KY_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ky_strbuf {
	char *data; /* NULL until the first addition */
	size_t len;
	size_t cap;
	bool failed;
};

#define KY_STRBUF_INIT            \
	{                         \
		NULL, 0, 0, false \
	}

void ky_strbuf_init(struct ky_strbuf *buf);
void ky_strbuf_fini(struct ky_strbuf *buf);
void ky_strbuf_clear(struct ky_strbuf *buf);
static inline bool ky_strbuf_failed(const struct ky_strbuf *buf)
{
	return buf->failed;
}
/* The text; "" when empty. */
static inline const char *ky_strbuf_text(const struct ky_strbuf *buf)
{
	return buf->data ? buf->data : "";
}
/* Returns the memory, which the caller must free; NULL when the buffer has failed. */
char *ky_strbuf_take(struct ky_strbuf *buf);

/* Make room for @extra bytes and the NUL; false when out of memory. */
bool ky_strbuf_grow(struct ky_strbuf *buf, size_t extra);
static inline bool ky_strbuf_reserve(struct ky_strbuf *buf, size_t extra)
{
	return buf->cap - buf->len > extra || ky_strbuf_grow(buf, extra);
}

void ky_strbuf_add(struct ky_strbuf *buf, const char *text, size_t len);
void ky_strbuf_adds(struct ky_strbuf *buf, const char *text);
void ky_strbuf_addc(struct ky_strbuf *buf, char c);
void ky_strbuf_addu(struct ky_strbuf *buf, uint64_t value);
void ky_strbuf_addi(struct ky_strbuf *buf, int64_t value);
void ky_strbuf_addf(struct ky_strbuf *buf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void ky_strbuf_addv(struct ky_strbuf *buf, const char *fmt, va_list ap);

/*
 * Number formatting without a buffer check: they write at @out and return the end.
 * No NUL is written. Room needed: 20 bytes for decimal, 22 for octal, 16 for hexadecimal.
 */
char *ky_put_u64(char *out, uint64_t value);
char *ky_put_i64(char *out, int64_t value);
char *ky_put_hex(char *out, uint64_t value, bool upper);
/* Exactly @digits decimal digits, with leading zeros. */
char *ky_put_digits(char *out, uint64_t value, unsigned int digits);

#endif
