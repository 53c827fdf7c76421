/* SPDX-License-Identifier: MIT */
#include "analysis/tables/jansson-text.h"

#include "base/error.h"
#include "base/foreign.h"
#include "ctf/model/unicode.h"

json_t *ky_jansson_text(const char *text)
{
	json_t *json = json_string(text);
	struct ky_strbuf utf8 = KY_STRBUF_INIT;

	if (json)
		return json;
	ky_utf8_repair(&utf8, text);
	json = json_string(ky_strbuf_text(&utf8));
	ky_strbuf_fini(&utf8);
	return json;
}

/* A piece of JSON: in texts jansson has escaped what lies below U+0020, and outside of them are line feeds. */
static int add_piece(const char *piece, size_t len, void *data)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	struct ky_strbuf *out = data;
	size_t n;

	for (; len; piece += n, len -= n) {
		n = ky_foreign_plain(piece, len);
		if (n) {
			ky_strbuf_add(out, piece, n);
			continue;
		}
		n = ky_foreign_next(piece, len, escape);
		if (n > 1)
			ky_strbuf_adds(out, escape);
		else if (*piece == 0x7f)
			ky_strbuf_adds(out, "\\u007f");
		else
			ky_strbuf_addc(out, *piece);
	}
	return ky_strbuf_failed(out) ? -1 : 0;
}

int ky_jansson_add(struct ky_strbuf *out, json_t *root, size_t flags, struct kymo_error *err)
{
	int ret = root ? json_dump_callback(root, add_piece, out, flags) : -1;

	json_decref(root);
	ky_strbuf_addc(out, '\n');
	return ret < 0 || ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}
