/* SPDX-License-Identifier: MIT */
/*
 * JSON as it is, and as programs write it: numbers of any size, NaN, bytes that are no UTF-8, line feeds in texts. jansson takes none of
 * these; here a text becomes one that it takes.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "import/logs/log-format.h"

/* The text between quotes, of which @at is the first. Returns the place behind the second. */
static const char *log_json_repair_text(struct ky_strbuf *to, const char *at, const char *end)
{
	ky_strbuf_addc(to, *at++);
	while (at < end && *at != '"') {
		size_t n = ky_utf8_length((const uint8_t *)at, (size_t)(end - at));

		if ((unsigned char)*at < 0x20) {
			ky_strbuf_addf(to, "\\u%04x", (unsigned int)(unsigned char)*at++);
		} else if (!n) {
			ky_strbuf_adds(to, "\xef\xbf\xbd");
			at++;
		} else {
			n = *at == '\\' && at + 1 < end ? 2 : n;
			ky_strbuf_add(to, at, n);
			at += n;
		}
	}
	if (at < end)
		ky_strbuf_addc(to, *at++);
	return at;
}

static bool log_json_repair_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '+' || c == '.';
}

/* Whether @word is a number that 64 bits with a sign, or a double, do not hold. */
static bool log_json_repair_is_wide(const char *word, size_t len)
{
	char text[512], *end;
	double real;

	if (len >= sizeof(text) || (!isdigit((unsigned char)*word) && *word != '-'))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	errno = 0;
	if (!strpbrk(text, ".eE"))
		return ((void)strtoll(text, &end, 10), !*end) && errno == ERANGE;
	real = strtod(text, &end);
	return !*end && isinf(real);
}

/* A value outside quotation marks: a number, or a word of JavaScript such as NaN. */
static const char *log_json_repair_word(struct ky_strbuf *to, const char *at, const char *end)
{
	static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
	const char *begin = at;
	bool is_quoted;
	size_t len;

	while (at < end && log_json_repair_is_word(*at))
		at++;
	len = (size_t)(at - begin);
	is_quoted = log_json_repair_is_wide(begin, len);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		is_quoted |= strlen(words[i]) == len && memcmp(words[i], begin, len) == 0;
	ky_strbuf_adds(to, is_quoted ? "\"" : "");
	ky_strbuf_add(to, begin, len);
	ky_strbuf_adds(to, is_quoted ? "\"" : "");
	return at;
}

/* @texts: also what stands in texts. */
static void log_json_repair(struct ky_strbuf *to, const char *at, const char *end, bool texts)
{
	while (at < end) {
		if (*at == '"' && texts) {
			at = log_json_repair_text(to, at, end);
		} else if (*at == '"') {
			const char *from = at++;

			while (at < end && *at != '"')
				at += *at == '\\' && at + 1 < end ? 2 : 1;
			at += at < end;
			ky_strbuf_add(to, from, (size_t)(at - from));
		} else if (log_json_repair_is_word(*at)) {
			at = log_json_repair_word(to, at, end);
		} else {
			ky_strbuf_addc(to, *at++);
		}
	}
}

void *ky_log_json_load(const char *text, size_t len, bool texts, bool *is_repaired)
{
	struct ky_strbuf repaired = KY_STRBUF_INIT;
	json_t *made = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

	*is_repaired = !made;
	if (made)
		return made;
	log_json_repair(&repaired, text, text + len, texts);
	if (!ky_strbuf_failed(&repaired))
		made = json_loadb(ky_strbuf_text(&repaired), repaired.len, JSON_ALLOW_NUL, NULL);
	ky_strbuf_fini(&repaired);
	return made;
}
