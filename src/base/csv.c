/* SPDX-License-Identifier: MIT */
#include "base/csv.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"

static bool needs_quotes(const char *text, size_t len)
{
	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r')
			return true;
	}
	return text[0] == ' ' || text[len - 1] == ' ';
}

/* A sign, digits, and perhaps a point and digits: spreadsheets do no harm with these. */
static bool csv_is_number(const char *text, size_t len)
{
	size_t i = 1, begin = i;

	if (text[0] != '-' && text[0] != '+')
		return false;
	while (i < len && isdigit((unsigned char)text[i]))
		i++;
	if (i > begin && i < len && text[i] == '.') {
		begin = ++i;
		while (i < len && isdigit((unsigned char)text[i]))
			i++;
	}
	return i > begin && i == len;
}

static bool is_formula(const char *text, size_t len)
{
	return len && text[0] && strchr("=+-@\t\r", text[0]) && !csv_is_number(text, len);
}

void ky_csv_text(struct ky_strbuf *out, const char *text, size_t len, bool raw)
{
	bool quotes = needs_quotes(text, len);
	size_t at = 0, n;

	if (quotes)
		ky_strbuf_addc(out, '"');
	if (!raw && is_formula(text, len))
		ky_strbuf_addc(out, '\'');
	while (at < len) {
		/* Most texts are one such piece. */
		for (n = 0; at + n < len && !(text[at + n] & 0x80) && text[at + n] != '"';)
			n++;
		if (n) {
			ky_strbuf_add(out, text + at, n);
			at += n;
			continue;
		}
		n = ky_utf8_length((const uint8_t *)text + at, len - at);
		if (text[at] == '"')
			ky_strbuf_addc(out, '"');
		ky_strbuf_add(out, n ? text + at : "\xef\xbf\xbd", n ? n : 3);
		at += n ? n : 1;
	}
	if (quotes)
		ky_strbuf_addc(out, '"');
}
