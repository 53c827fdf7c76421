/* SPDX-License-Identifier: MIT */
#include "flow/sinks/buffer.h"

#include <string.h>

#include "base/foreign.h"

bool ky_buffer_scope(const struct ky_value *root)
{
	const struct ky_field_class *cls = root->cls;

	return cls->kind == KY_FIELD_STRUCT && cls->st.n_members &&
	       strcmp(cls->st.members[cls->st.n_members - 1].display, "content_status") == 0;
}

bool ky_buffer_is(const struct ky_value *v)
{
	const struct ky_field_class *element;
	size_t len;

	if (v->cls->kind != KY_FIELD_ARRAY || !v->cls->array.length_ref || !v->name)
		return false;
	element = v->cls->array.element;
	len = strlen(v->name);
	return element->kind == KY_FIELD_UINT && element->num.length_bits == 8 &&
	       element->num.base == 16 && !element->num.is_enum &&
	       (strcmp(v->name, "data") == 0 ||
		(len > 5 && strcmp(v->name + len - 5, "_data") == 0));
}

/* Is what begins at @text only the begin of a character, cut off by the end? */
static bool is_cut_character(const char *text, size_t len)
{
	unsigned char lead = (unsigned char)*text;
	size_t wanted = lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 ? 3 : 2;

	if (lead < 0xc2 || lead > 0xf4 || len >= wanted)
		return false;
	for (size_t i = 1; i < len; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return false;
	}
	return true;
}

static bool buffer_is_text(const char *text, size_t len)
{
	char escape[KY_FOREIGN_ESCAPE_BYTES];
	size_t n;

	if (len > 1 && !text[len - 1])
		len--;
	while (len) {
		n = ky_foreign_plain(text, len);
		if (!n) {
			n = ky_foreign_next(text, len, escape);
			if (!strchr("\t\n\r", *text) && !is_cut_character(text, len))
				return false;
			/* strchr() finds the NUL, too. */
			if (!*text)
				return false;
		}
		text += n;
		len -= n;
	}
	return true;
}

bool ky_buffer_bytes(struct ky_strbuf *out, const struct ky_value *v)
{
	size_t begin = out->len;

	for (uint32_t i = 0; i < v->n_children; i++)
		ky_strbuf_addc(out, (char)v[1 + i].u);
	return !ky_strbuf_failed(out) && buffer_is_text(out->data + begin, out->len - begin);
}

void ky_buffer_hex(struct ky_strbuf *out, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		ky_strbuf_addf(out, "%02x ", (unsigned char)bytes[i]);
	ky_strbuf_addc(out, '|');
	for (size_t i = 0; i < len; i++)
		ky_strbuf_addc(out, bytes[i] >= 32 && bytes[i] < 127 ? bytes[i] : '.');
	ky_strbuf_addc(out, '|');
}
