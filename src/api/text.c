/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: text in any encoding, and labels. */
#include <string.h>

#include "api/api.h"
#include "base/text.h"
#include "ctf/model/unicode.h"

size_t ky_api_utf8(enum ky_encoding encoding, const char *text, size_t len_bytes, char *buffer,
		   size_t size_bytes)
{
	const uint8_t *at = (const uint8_t *)text, *end = at + len_bytes;
	size_t total = 0, kept = 0, n, taken;
	uint32_t code;
	char utf8[4];

	while (at < end && (taken = ky_unicode_next(encoding, at, (size_t)(end - at), &code))) {
		n = ky_utf8_put(utf8, code);
		/* Once a character was left out, so are all behind it. */
		if (kept == total && total + n < size_bytes) {
			memcpy(buffer + total, utf8, n);
			kept += n;
		}
		total += n;
		at += taken;
	}
	if (size_bytes)
		buffer[kept] = '\0';
	return total;
}

size_t ky_api_labels(const struct ky_field_class *cls, const uint64_t *words, size_t n_words,
		     const char **labels, size_t max)
{
	if (!labels)
		max = 0;
	if (cls->kind == KY_FIELD_BITMAP)
		return ky_flag_labels(cls, words, n_words, labels, max);
	if (cls->kind >= KY_FIELD_STRING || cls->kind == KY_FIELD_FLOAT || n_words > 1)
		return 0;
	return ky_enum_labels(cls, words[0], labels, max);
}
