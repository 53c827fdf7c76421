/* SPDX-License-Identifier: MIT */
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/word.h"

void ky_strbuf_init(struct ky_strbuf *buf)
{
	memset(buf, 0, sizeof(*buf));
}

void ky_strbuf_fini(struct ky_strbuf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

void ky_strbuf_clear(struct ky_strbuf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

char *ky_strbuf_take(struct ky_strbuf *buf)
{
	char *data;

	if (!buf->data)
		ky_strbuf_add(buf, "", 0);
	if (buf->failed) {
		ky_strbuf_fini(buf);
		return NULL;
	}
	data = buf->data;
	memset(buf, 0, sizeof(*buf));
	return data;
}

bool ky_strbuf_grow(struct ky_strbuf *buf, size_t extra)
{
	size_t cap = buf->cap ? buf->cap : 256;
	char *grown;

	if (buf->failed || extra > SIZE_MAX / 4 || buf->len > SIZE_MAX / 4)
		goto fail;
	while (cap - buf->len <= extra)
		cap *= 2;
	grown = realloc(buf->data, cap);
	if (!grown)
		goto fail;
	buf->data = grown;
	buf->cap = cap;
	return true;
fail:
	buf->failed = true;
	return false;
}

void ky_strbuf_add(struct ky_strbuf *buf, const char *text, size_t len)
{
	if (!ky_strbuf_reserve(buf, len))
		return;
	if (len)
		memcpy(buf->data + buf->len, text, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void ky_strbuf_adds(struct ky_strbuf *buf, const char *text)
{
	ky_strbuf_add(buf, text, strlen(text));
}

void ky_strbuf_addc(struct ky_strbuf *buf, char c)
{
	ky_strbuf_add(buf, &c, 1);
}

void ky_strbuf_addu(struct ky_strbuf *buf, uint64_t value)
{
	char text[24];

	ky_strbuf_add(buf, text, (size_t)(ky_put_u64(text, value) - text));
}

void ky_strbuf_addi(struct ky_strbuf *buf, int64_t value)
{
	char text[24];

	ky_strbuf_add(buf, text, (size_t)(ky_put_i64(text, value) - text));
}

void ky_strbuf_addv(struct ky_strbuf *buf, const char *fmt, va_list ap)
{
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len >= 0 && ky_strbuf_reserve(buf, (size_t)len + 1)) {
		vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, again);
		buf->len += (size_t)len;
	}
	va_end(again);
}

void ky_strbuf_addf(struct ky_strbuf *buf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ky_strbuf_addv(buf, fmt, ap);
	va_end(ap);
}

static const char digit_pairs[] = "0001020304050607080910111213141516171819"
				  "2021222324252627282930313233343536373839"
				  "4041424344454647484950515253545556575859"
				  "6061626364656667686970717273747576777879"
				  "8081828384858687888990919293949596979899";

char *ky_put_u64(char *out, uint64_t value)
{
	char text[20], *at = text + sizeof(text);
	size_t len;

	while (value >= 100) {
		at -= 2;
		memcpy(at, digit_pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		at -= 2;
		memcpy(at, digit_pairs + value * 2, 2);
	} else {
		*--at = (char)('0' + value);
	}
	len = (size_t)(text + sizeof(text) - at);
	memcpy(out, at, len);
	return out + len;
}

char *ky_put_i64(char *out, int64_t value)
{
	if (value < 0) {
		*out++ = '-';
		return ky_put_u64(out, 0 - (uint64_t)value);
	}
	return ky_put_u64(out, (uint64_t)value);
}

char *ky_put_hex(char *out, uint64_t value, bool upper)
{
	return ky_word_put_hex(out, value, ky_word_hex_digits(value), upper);
}

char *ky_put_digits(char *out, uint64_t value, unsigned int digits)
{
	for (unsigned int i = digits; i-- > 0; value /= 10)
		out[i] = (char)('0' + value % 10);
	return out + digits;
}
