/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: definitions of texts and bytes. */
#include <string.h>

#include "api/api.h"
#include "api/writer.h"
#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"

static const char *text_problem(const struct kymo_text_options *o)
{
	if (o->kind < KYMO_FIELD_STRING || o->kind > KYMO_FIELD_BLOB)
		return "its kind is not that of a text or bytes";
	if (o->kind == KYMO_FIELD_STRING && o->size_bytes)
		return "a string has no size; KYMO_FIELD_TEXT has";
	if (o->kind != KYMO_FIELD_BLOB &&
	    (o->encoding < KYMO_ENCODING_UTF8 || o->encoding > KYMO_ENCODING_UTF32LE))
		return "there is no such encoding";
	if (o->kind == KYMO_FIELD_TEXT && o->encoding >= KYMO_ENCODING_UTF16BE &&
	    o->size_bytes % (o->encoding >= KYMO_ENCODING_UTF32BE ? 4 : 2))
		return "its size is no multiple of the encoding's units";
	if (o->media_type && o->kind != KYMO_FIELD_BLOB)
		return "only bytes have a media type";
	return NULL;
}

static bool may_add_text(struct kymo_fields *fields, const char *name,
			 const struct kymo_text_options *o)
{
	const char *wrong = text_problem(o);

	if (wrong) {
		ky_define_mistake(fields->writer, KYMO_E_INVALID, "field '%s': %s",
				  ky_define_shown_name(fields, name), wrong);
		return false;
	}
	if (o->kind == KYMO_FIELD_BLOB)
		return ky_define_ctf2(fields, name, "bytes (a sequence of uint does there)");
	return o->encoding <= KYMO_ENCODING_ASCII ||
	       ky_define_ctf2(fields, name, "text in UTF-16 or UTF-32");
}

static void define_text_add_text(struct kymo_fields *fields, const char *name,
				 const struct kymo_text_options *o)
{
	struct ky_trace_class *trace = fields->writer->trace;
	struct ky_field_ref *ref = NULL;
	struct ky_field_class *cls;

	if (o->kind != KYMO_FIELD_STRING && !o->size_bytes) {
		ref = ky_define_companion(fields, name, "length",
					  ky_define_uint(fields->writer, 32));
		if (!ref)
			return;
	}
	cls = ky_field_class_new(trace, (enum ky_field_kind)o->kind);
	if (cls) {
		cls->align_bits = 8;
		cls->text.length_ref = ref;
		cls->text.length_bytes = o->size_bytes;
		if (o->kind != KYMO_FIELD_BLOB)
			cls->text.encoding = (enum ky_encoding)o->encoding;
		else if (o->media_type)
			cls->text.media_type = ky_arena_strdup(&trace->arena, o->media_type);
	}
	ky_define_add(fields, name, cls);
}

void kymo_fields_add_text(struct kymo_fields *fields, const char *name,
			  const struct kymo_text_options *given)
{
	struct kymo_text_options o = kymo_text_options_init();
	struct kymo_error err;
	int ret = KYMO_OK;

	if (!ky_define_may_add(fields, name))
		return;
	if (given)
		ret = ky_api_options(&o, sizeof(o), sizeof(o), given, &err);
	if (ret < 0)
		ky_define_mistake(fields->writer, KYMO_E_INVALID, "field '%s': %s",
				  ky_define_shown_name(fields, name), err.message);
	else if (may_add_text(fields, name, &o))
		define_text_add_text(fields, name, &o);
}

void kymo_fields_add_string(struct kymo_fields *fields, const char *name)
{
	kymo_fields_add_text(fields, name, NULL);
}

void kymo_fields_add_chars(struct kymo_fields *fields, const char *name, size_t size_bytes)
{
	struct kymo_text_options o = kymo_text_options_init();

	o.kind = KYMO_FIELD_TEXT;
	o.size_bytes = size_bytes;
	if (size_bytes)
		kymo_fields_add_text(fields, name, &o);
	else if (ky_define_may_add(fields, name))
		ky_define_mistake(fields->writer, KYMO_E_INVALID, "field '%s': chars want a size",
				  ky_define_shown_name(fields, name));
}
