/* SPDX-License-Identifier: MIT */
/* Field classes as CTF 2 metadata. */
#include <stdio.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/text.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/ctf2/ctf2-writer.h"
#include "ctf/model/walk.h"

#define PATH_MAX_STEPS 512

KY_DEEP2(int, write_class, struct ky_ctf2_writer *, const struct ky_field_class *)

/* ---- names and places -------------------------------------------------------------------------- */

static const char *member_name(struct ky_ctf2_writer *w, const struct ky_field_class *st,
			       size_t index)
{
	const struct ky_member *member = &st->st.members[index];

	return ky_child_display_is_unique(&w->tables, st, index) ? member->display : member->name;
}

static const struct ky_field_class *ctf2_write_fields_scope_root(const struct ky_ctf2_writer *w,
								 enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_PACKET_HEADER:
		return w->trace->packet_header;
	case KY_SCOPE_PACKET_CONTEXT:
		return w->stream->packet_context;
	case KY_SCOPE_EVENT_HEADER:
		return w->stream->event_header;
	case KY_SCOPE_STREAM_CONTEXT:
		return w->stream->event_context;
	case KY_SCOPE_EVENT_CONTEXT:
		return w->event->context;
	default:
		return w->event->payload;
	}
}

/*
 * The names of the members on the way from @root down to @target, in @path. How many there are, which may be more
 * than it has room for; or -1 when @target is not below.
 */
static int find_path(struct ky_ctf2_writer *w, const struct ky_field_class *root,
		     const struct ky_field_class *target, const char *path[PATH_MAX_STEPS])
{
	const struct ky_child_place *at = ky_child_place(&w->tables, root, target);
	int n = 0;

	for (; at; at = at->parent == root ? NULL : ky_child_place(&w->tables, root, at->parent)) {
		if (at->parent->kind == KY_FIELD_STRUCT) {
			if (n == PATH_MAX_STEPS)
				return n + 1;
			path[n++] = member_name(w, at->parent, at->index);
		}
		if (at->parent != root)
			continue;
		/* From the root on. */
		for (int i = 0; i < n / 2; i++) {
			const char *name = path[i];

			path[i] = path[n - 1 - i];
			path[n - 1 - i] = name;
		}
		return n;
	}
	return -1;
}

const char *ky_ctf2_origin(enum ky_scope scope)
{
	static const char *const origins[KY_SCOPE_COUNT] = {
		"packet-header",
		"packet-context",
		"event-record-header",
		"event-record-common-context",
		"event-record-specific-context",
		"event-record-payload",
	};

	return origins[scope];
}

static int put_location(struct ky_ctf2_writer *w, const char *name, const struct ky_field_ref *ref)
{
	const char *path[PATH_MAX_STEPS];
	const struct ky_field_class *root = ctf2_write_fields_scope_root(w, ref->scope);
	int n = root ? find_path(w, root, ref->target, path) : -1;

	if (n <= 0 || n > PATH_MAX_STEPS)
		return ky_error_set(w->err, KYMO_E_UNSUPPORTED,
				    "the field that '%s' refers to cannot be located",
				    ref->text ? ref->text : "?");
	ky_ctf2_put_key(w, name);
	ky_ctf2_open_with(w, '{');
	ky_ctf2_put_text(w, "origin", ky_ctf2_origin(ref->scope));
	ky_ctf2_put_key(w, "path");
	ky_strbuf_addc(&w->out, '[');
	for (int i = 0; i < n; i++) {
		ky_strbuf_adds(&w->out, i ? ", " : "");
		ky_ctf2_put_string(w, path[i]);
	}
	ky_strbuf_addc(&w->out, ']');
	ky_ctf2_close_with(w, '}');
	return KYMO_OK;
}

/* ---- field classes ------------------------------------------------------------------------------ */

static const char *ctf2_write_fields_role_name(enum ky_role role)
{
	switch (role) {
	case KY_ROLE_MAGIC:
		return "packet-magic-number";
	case KY_ROLE_TRACE_UUID:
		return "metadata-stream-uuid";
	case KY_ROLE_STREAM_CLASS_ID:
		return "data-stream-class-id";
	case KY_ROLE_STREAM_ID:
		return "data-stream-id";
	case KY_ROLE_PACKET_SIZE:
		return "packet-total-length";
	case KY_ROLE_CONTENT_SIZE:
		return "packet-content-length";
	case KY_ROLE_CLOCK_BEGIN:
		return "default-clock-timestamp";
	case KY_ROLE_CLOCK_END:
		return "packet-end-default-clock-timestamp";
	case KY_ROLE_DISCARDED:
		return "discarded-event-record-counter-snapshot";
	case KY_ROLE_SEQUENCE:
		return "packet-sequence-number";
	case KY_ROLE_EVENT_ID:
		return "event-record-class-id";
	default:
		return NULL;
	}
}

static void put_role(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	const char *name = ctf2_write_fields_role_name(cls->role);

	/* CTF 2 wants something to compare it with. */
	if (!name || (cls->role == KY_ROLE_TRACE_UUID && !w->trace->has_uuid))
		return;
	ky_ctf2_put_key(w, "roles");
	ky_strbuf_addc(&w->out, '[');
	ky_ctf2_put_string(w, name);
	for (uint32_t more = cls->more_roles; more; more &= more - 1) {
		ky_strbuf_adds(&w->out, ", ");
		ky_ctf2_put_string(w,
				   ctf2_write_fields_role_name((enum ky_role)__builtin_ctz(more)));
	}
	ky_strbuf_addc(&w->out, ']');
}

static void ctf2_write_fields_put_bits(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	ky_ctf2_put_uint(w, "length", cls->num.length_bits);
	ky_ctf2_put_text(w, "byte-order", cls->num.big_endian ? "big-endian" : "little-endian");
	if (cls->num.bits_reversed)
		ky_ctf2_put_text(w, "bit-order",
				 cls->num.big_endian ? "first-to-last" : "last-to-first");
	if (cls->align_bits > 1)
		ky_ctf2_put_uint(w, "alignment", cls->align_bits);
}

static int ctf2_write_fields_put_number(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	static const char *const types[] = {
		[KY_FIELD_BITS] = "fixed-length-bit-array",
		[KY_FIELD_BITMAP] = "fixed-length-bit-map",
		[KY_FIELD_BOOL] = "fixed-length-boolean",
		[KY_FIELD_UINT] = "fixed-length-unsigned-integer",
		[KY_FIELD_SINT] = "fixed-length-signed-integer",
		[KY_FIELD_FLOAT] = "fixed-length-floating-point-number",
		[KY_FIELD_VARUINT] = "variable-length-unsigned-integer",
		[KY_FIELD_VARSINT] = "variable-length-signed-integer",
	};
	bool is_variable = cls->kind == KY_FIELD_VARUINT || cls->kind == KY_FIELD_VARSINT;
	int ret;

	if (!is_variable && cls->num.unit_bits)
		return ky_error_set(
			w->err, KYMO_E_UNSUPPORTED,
			"CTF 2 metadata cannot describe a bit field in C's notation whose "
			"place varies");
	ky_ctf2_put_text(w, "type", types[cls->kind]);
	if (!is_variable)
		ctf2_write_fields_put_bits(w, cls);
	if (cls->kind == KY_FIELD_BITMAP)
		return ky_ctf2_put_mappings(w, "flags", cls);
	if (!ky_field_is_int(cls))
		return KYMO_OK;
	if (cls->num.base && cls->num.base != 10)
		ky_ctf2_put_uint(w, "preferred-display-base", cls->num.base);
	ret = ky_ctf2_put_mappings(w, "mappings", cls);
	if (ret == KYMO_OK)
		put_role(w, cls);
	return ret;
}

static int ctf2_write_fields_put_text(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	static const char *const encodings[] = {
		[KY_ENCODING_NONE] = "utf-8",	    [KY_ENCODING_UTF8] = "utf-8",
		[KY_ENCODING_ASCII] = "utf-8",	    [KY_ENCODING_UTF16BE] = "utf-16be",
		[KY_ENCODING_UTF16LE] = "utf-16le", [KY_ENCODING_UTF32BE] = "utf-32be",
		[KY_ENCODING_UTF32LE] = "utf-32le",
	};
	const char *what = cls->kind == KY_FIELD_BLOB ? "blob" : "string";
	char type[32] = "null-terminated-string";

	if (cls->kind != KY_FIELD_STRING)
		snprintf(type, sizeof(type), "%s-length-%s",
			 cls->text.length_ref ? "dynamic" : "static", what);
	ky_ctf2_put_text(w, "type", type);
	if (cls->kind == KY_FIELD_BLOB) {
		if (cls->text.media_type)
			ky_ctf2_put_text(w, "media-type", cls->text.media_type);
		put_role(w, cls);
	} else if (strcmp(encodings[cls->text.encoding], "utf-8") != 0) {
		ky_ctf2_put_text(w, "encoding", encodings[cls->text.encoding]);
	}
	if (cls->kind == KY_FIELD_STRING)
		return KYMO_OK;
	if (cls->text.length_ref)
		return put_location(w, "length-field-location", cls->text.length_ref);
	ky_ctf2_put_uint(w, "length", cls->text.length_bytes);
	return KYMO_OK;
}

static int put_struct(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	ky_ctf2_put_text(w, "type", "structure");
	if (cls->st.min_align_bits > 1)
		ky_ctf2_put_uint(w, "minimum-alignment", cls->st.min_align_bits);
	ky_ctf2_put_key(w, "member-classes");
	ky_ctf2_open_with(w, '[');
	for (size_t i = 0; i < cls->st.n_members && ret == KYMO_OK; i++) {
		ky_ctf2_put_element(w);
		ky_ctf2_open_with(w, '{');
		ky_ctf2_put_text(w, "name", member_name(w, cls, i));
		ky_ctf2_put_attributes(w, cls->st.members[i].attributes);
		ky_ctf2_put_key(w, "field-class");
		ret = write_class_deep(KYMO_E_MEMORY, w, cls->st.members[i].cls);
		ky_ctf2_close_with(w, '}');
	}
	ky_ctf2_close_with(w, ']');
	return ret;
}

static int put_array(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	/* CTF 1.8 writes the UUID as 16 integers. */
	if (cls->role == KY_ROLE_TRACE_UUID && !cls->array.length_ref && cls->array.length == 16) {
		ky_ctf2_put_text(w, "type", "static-length-blob");
		ky_ctf2_put_text(w, "media-type", "application/octet-stream");
		put_role(w, cls);
		ky_ctf2_put_uint(w, "length", 16);
		return KYMO_OK;
	}
	ky_ctf2_put_text(w, "type",
			 cls->array.length_ref ? "dynamic-length-array" : "static-length-array");
	if (cls->array.min_align_bits > 1)
		ky_ctf2_put_uint(w, "minimum-alignment", cls->array.min_align_bits);
	if (cls->array.length_ref)
		ret = put_location(w, "length-field-location", cls->array.length_ref);
	else
		ky_ctf2_put_uint(w, "length", cls->array.length);
	if (ret < 0)
		return ret;
	ky_ctf2_put_key(w, "element-field-class");
	return write_class_deep(KYMO_E_MEMORY, w, cls->array.element);
}

static void put_selector_ranges(struct ky_ctf2_writer *w, const struct ky_field_class *cls,
				const struct ky_option *option)
{
	ky_ctf2_put_key(w, "selector-field-ranges");
	ky_strbuf_addc(&w->out, '[');
	ky_ctf2_put_ranges(w, option->ranges, option->n_ranges,
			   ky_ctf2_is_signed(cls->var.selector->target));
	ky_strbuf_addc(&w->out, ']');
}

static int put_optional(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	int ret;

	ky_ctf2_put_text(w, "type", "optional");
	ret = put_location(w, "selector-field-location", cls->var.selector);
	if (ret < 0)
		return ret;
	if (cls->var.options[0].n_ranges)
		put_selector_ranges(w, cls, &cls->var.options[0]);
	ky_ctf2_put_key(w, "field-class");
	return write_class_deep(KYMO_E_MEMORY, w, cls->var.options[0].cls);
}

static int ctf2_write_fields_put_option(struct ky_ctf2_writer *w, const struct ky_field_class *cls,
					const struct ky_option *option)
{
	int ret;

	ky_ctf2_put_element(w);
	ky_ctf2_open_with(w, '{');
	if (option->display)
		ky_ctf2_put_text(w, "name", option->display);
	put_selector_ranges(w, cls, option);
	ky_ctf2_put_attributes(w, option->attributes);
	ky_ctf2_put_key(w, "field-class");
	ret = write_class_deep(KYMO_E_MEMORY, w, option->cls);
	ky_ctf2_close_with(w, '}');
	return ret;
}

static int ctf2_write_fields_put_variant(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	int ret;

	ky_ctf2_put_text(w, "type", "variant");
	ret = put_location(w, "selector-field-location", cls->var.selector);
	if (ret < 0)
		return ret;
	ky_ctf2_put_key(w, "options");
	ky_ctf2_open_with(w, '[');
	/* An option that no label selects can never occur; CTF 2 has no way to write it. */
	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		if (cls->var.options[i].n_ranges)
			ret = ctf2_write_fields_put_option(w, cls, &cls->var.options[i]);
	}
	ky_ctf2_close_with(w, ']');
	return ret;
}

static int write_class(struct ky_ctf2_writer *w, const struct ky_field_class *cls)
{
	int ret;

	ky_ctf2_open_with(w, '{');
	switch (cls->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		ret = ctf2_write_fields_put_text(w, cls);
		break;
	case KY_FIELD_STRUCT:
		ret = put_struct(w, cls);
		break;
	case KY_FIELD_ARRAY:
		ret = put_array(w, cls);
		break;
	case KY_FIELD_OPTIONAL:
		ret = put_optional(w, cls);
		break;
	case KY_FIELD_VARIANT:
		ret = ctf2_write_fields_put_variant(w, cls);
		break;
	default:
		ret = ctf2_write_fields_put_number(w, cls);
	}
	ky_ctf2_put_attributes(w, cls->attributes);
	ky_ctf2_close_with(w, '}');
	return ret;
}

int ky_ctf2_put_scope(struct ky_ctf2_writer *w, const char *name, const struct ky_field_class *root)
{
	if (!root)
		return KYMO_OK;
	ky_ctf2_put_key(w, name);
	return write_class(w, root);
}
