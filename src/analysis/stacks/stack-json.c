/* SPDX-License-Identifier: MIT */
#include "analysis/stacks/stack-json.h"

#include <string.h>

#include "base/utf8.h"

void ky_stacks_json_text(struct ky_strbuf *out, const char *text)
{
	size_t len = strlen(text);

	ky_strbuf_addc(out, '"');
	while (len) {
		size_t n = ky_utf8_length((const uint8_t *)text, len);
		unsigned char c = (unsigned char)*text;

		if (!n)
			ky_strbuf_adds(out, "\\ufffd");
		else if (n == 1 && (c < ' ' || c == 127 || strchr("\"\\<>&'", c)))
			ky_strbuf_addf(out, "\\u%04x", c);
		else if (n == 3 &&
			 (memcmp(text, "\u2028", 3) == 0 || memcmp(text, "\u2029", 3) == 0))
			ky_strbuf_addc(out, ' ');
		else
			ky_strbuf_add(out, text, n);
		text += n ? n : 1;
		len -= n ? n : 1;
	}
	ky_strbuf_addc(out, '"');
}
