/* SPDX-License-Identifier: MIT */
/* The text sink: names of addresses. */
#include "base/error.h"
#include "flow/sinks/address-names.h"
#include "flow/sinks/text-internal.h"

char *ky_text_put_address(struct ky_text *text, char *at, const struct ky_value *parent,
			  const struct ky_value *child, uint32_t number, struct kymo_error *err)
{
	bool is_element = parent->cls->kind == KY_FIELD_ARRAY;
	struct ky_strbuf out = KY_STRBUF_INIT;

	if (!ky_address_is_field(text->address_event->cls, text->address_scope,
				 is_element ? parent->name : child->name,
				 is_element ? parent->cls : child->cls) ||
	    child->cls->kind == KY_FIELD_ARRAY)
		return at;
	ky_address_put(text->options.addresses, text->address_event, child, is_element ? number : 0,
		       &out);
	at = ky_strbuf_failed(&out) ? NULL : ky_text_room(text, at, out.len, err);
	if (at && out.len)
		at = ky_text_put(at, out.data, out.len);
	if (ky_strbuf_failed(&out))
		ky_error_nomem(err);
	ky_strbuf_fini(&out);
	return at;
}
