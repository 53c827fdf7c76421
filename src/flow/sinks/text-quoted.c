/* SPDX-License-Identifier: MIT */
/* The text sink: texts, with quotes and escapes. */
#include "flow/sinks/text-internal.h"

#include "base/foreign.h"
#include "base/word.h"

/* For each byte: 0 as it is, 1 in hexadecimal, 2 by its character, else the letter behind the backslash. */
static const char escapes[256] = {
	[1 ... 6] = 1, ['\0'] = '0',	['\a'] = 'a',	   ['\b'] = 'b',  ['\t'] = 't',
	['\n'] = 'n',  ['\v'] = 'v',	['\f'] = 'f',	   ['\r'] = 'r',  [14 ... 26] = 1,
	[27] = 'e',    [28 ... 31] = 1, ['"'] = '"',	   ['\''] = '\'', ['?'] = '?',
	['\\'] = '\\', [127] = 1,	[128 ... 255] = 2,
};

/* The character at *@text, which is moved behind it. Of n bytes, it takes up to 3 * n + 3. */
static char *text_quoted_put_escaped(char *at, const char **text, const char *end)
{
	static const char digits[] = "0123456789abcdef";
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	unsigned char c = (unsigned char)**text;
	size_t n;

	if (escapes[c] == 2) {
		n = ky_foreign_next(*text, (size_t)(end - *text), escape);
		at = *escape ? ky_text_put(at, escape, strlen(escape)) : ky_text_put(at, *text, n);
		*text += n;
		return at;
	}
	++*text;
	*at++ = '\\';
	if (escapes[c] != 1) {
		*at++ = escapes[c];
		return at;
	}
	*at++ = 'x';
	*at++ = digits[c >> 4];
	*at++ = digits[c & 15];
	return at;
}

/* The first bytes of @s, up to one that needs an escape; returns how many. */
static inline size_t text_quoted_put_plain(char *at, const char *s, size_t len)
{
	uint64_t word;
	size_t n = 0;

	for (; len - n >= 8; n += 8) {
		word = ky_load64(s + n, false);
		if (ky_word_is_special(word))
			break;
		ky_word_store(at + n, word);
	}
	if (len >= 8 && n < len && n + 8 > len) {
		/* What is left, and some of those before it. */
		word = ky_load64(s + len - 8, false);
		if (!ky_word_is_special(word)) {
			ky_word_store(at + len - 8, word);
			return len;
		}
	}
	while (n < len && !escapes[(unsigned char)s[n]]) {
		at[n] = s[n];
		n++;
	}
	return n;
}

/* One byte takes up to 4, the last character 6; long texts go through the buffer in pieces. */
#define QUOTED_PIECE 4096

char *ky_text_quoted(struct ky_text *text, char *at, const char *s, size_t len,
		     struct kymo_error *err)
{
	const char *end = s + len;
	size_t n;

	at = ky_text_room(text, at, 8, err);
	if (!at)
		return NULL;
	*at++ = '"';
	while (s < end) {
		const char *stop = end - s > QUOTED_PIECE ? s + QUOTED_PIECE : end;

		at = ky_text_room(text, at, (size_t)(stop - s) * 4 + 8, err);
		if (!at)
			return NULL;
		while (s < stop) {
			n = text_quoted_put_plain(at, s, (size_t)(stop - s));
			at += n;
			s += n;
			if (s < stop)
				at = text_quoted_put_escaped(at, &s, end);
		}
	}
	*at++ = '"';
	return at;
}
