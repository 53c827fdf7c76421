/* SPDX-License-Identifier: MIT */
/* The metadata as trees. */
#include <inttypes.h>
#include <string.h>

#include "base/deep.h"
#include "base/foreign.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ctf/model/walk.h"
#include "flow/sinks/details.h"
#include "flow/sinks/json-value.h"

#define RANGES_SHOWN 8

#define INDENT_MAX 32

void ky_details_indent(struct ky_strbuf *out, int depth)
{
	for (int i = 0; i < depth && i < INDENT_MAX; i++)
		ky_strbuf_adds(out, "  ");
}

static void details_metadata_put_quoted(struct ky_strbuf *out, const char *text)
{
	ky_json_text(out, text, strlen(text));
}

static void details_metadata_put_uuid(struct ky_strbuf *out, const uint8_t uuid[16])
{
	char text[KY_UUID_TEXT_BYTES];

	ky_strbuf_adds(out, ky_format_uuid(text, uuid));
}

static const char *kind_name(const struct ky_field_class *cls)
{
	static const char *const names[] = {
		[KY_FIELD_BITS] = "bit array",
		[KY_FIELD_BITMAP] = "bit map",
		[KY_FIELD_BOOL] = "boolean",
		[KY_FIELD_UINT] = "unsigned integer",
		[KY_FIELD_SINT] = "signed integer",
		[KY_FIELD_FLOAT] = "floating point number",
		[KY_FIELD_VARUINT] = "unsigned integer of variable length",
		[KY_FIELD_VARSINT] = "signed integer of variable length",
		[KY_FIELD_STRING] = "string up to NUL",
		[KY_FIELD_TEXT] = "string",
		[KY_FIELD_BLOB] = "BLOB",
		[KY_FIELD_ARRAY] = "array",
		[KY_FIELD_STRUCT] = "structure",
		[KY_FIELD_OPTIONAL] = "optional",
		[KY_FIELD_VARIANT] = "variant",
	};

	return names[cls->kind];
}

static const char *role_text(enum ky_role role)
{
	static const char *const names[] = {
		[KY_ROLE_NONE] = NULL,
		[KY_ROLE_MAGIC] = "magic number",
		[KY_ROLE_TRACE_UUID] = "trace UUID",
		[KY_ROLE_STREAM_CLASS_ID] = "stream class id",
		[KY_ROLE_STREAM_ID] = "stream id",
		[KY_ROLE_PACKET_SIZE] = "packet size",
		[KY_ROLE_CONTENT_SIZE] = "content size",
		[KY_ROLE_CLOCK_BEGIN] = "time",
		[KY_ROLE_CLOCK_END] = "packet's end",
		[KY_ROLE_DISCARDED] = "discarded events",
		[KY_ROLE_SEQUENCE] = "sequence number",
		[KY_ROLE_EVENT_ID] = "event class id",
		[KY_ROLE_CPU_ID] = "CPU",
	};

	return names[role];
}

/* "@before@text", or nothing without a text. */
static void put_part(struct ky_strbuf *out, const char *before, const char *text)
{
	if (!text)
		return;
	ky_strbuf_adds(out, before);
	ky_foreign_adds(out, text);
}

/* As the metadata has them. */
static void put_attributes(struct ky_strbuf *out, const char *attributes)
{
	put_part(out, ", attributes ", attributes);
}

/* ---- field classes ------------------------------------------------------------------------ */

static void put_ref(struct ky_strbuf *out, const char *what, const struct ky_field_ref *ref)
{
	ky_strbuf_addf(out, ", %s by '", what);
	ky_foreign_adds(out, ref->text ? ref->text : "?");
	ky_strbuf_addf(out, "' of %s", ky_scope_name(ref->scope));
}

static void details_metadata_put_number(struct ky_strbuf *out, const struct ky_field_class *cls)
{
	if (cls->num.is_enum)
		ky_strbuf_adds(out, ", enumeration");
	if (cls->num.length_bits)
		ky_strbuf_addf(out, ", %" PRIu32 " bits, %s-endian", cls->num.length_bits,
			       cls->num.big_endian ? "big" : "little");
	if (cls->num.bits_reversed)
		ky_strbuf_adds(out, ", bits in reverse order");
	if (ky_field_is_int(cls) && cls->num.base && cls->num.base != 10)
		ky_strbuf_addf(out, ", base %u", cls->num.base);
	if (cls->num.clock)
		put_part(out, ", clock ", cls->num.clock->name);
}

static void put_text_class(struct ky_strbuf *out, const struct ky_field_class *cls)
{
	static const char *const encodings[] = {
		[KY_ENCODING_NONE] = "none",	    [KY_ENCODING_UTF8] = "UTF-8",
		[KY_ENCODING_ASCII] = "ASCII",	    [KY_ENCODING_UTF16BE] = "UTF-16BE",
		[KY_ENCODING_UTF16LE] = "UTF-16LE", [KY_ENCODING_UTF32BE] = "UTF-32BE",
		[KY_ENCODING_UTF32LE] = "UTF-32LE",
	};

	if (cls->kind == KY_FIELD_BLOB)
		put_part(out, ", ", cls->text.media_type ? cls->text.media_type : "?");
	else
		ky_strbuf_addf(out, ", %s", encodings[cls->text.encoding]);
	if (cls->kind == KY_FIELD_STRING)
		return;
	if (cls->text.length_ref)
		put_ref(out, "length", cls->text.length_ref);
	else
		ky_strbuf_addf(out, ", %" PRIu64 " bytes", cls->text.length_bytes);
}

/* The rest of the line. */
static void put_summary(struct ky_strbuf *out, const struct ky_field_class *cls)
{
	ky_strbuf_adds(out, kind_name(cls)); /* lint: own text */
	if (ky_field_is_num(cls))
		details_metadata_put_number(out, cls);
	else if (cls->kind == KY_FIELD_STRING || cls->kind == KY_FIELD_TEXT ||
		 cls->kind == KY_FIELD_BLOB)
		put_text_class(out, cls);
	else if (cls->kind == KY_FIELD_ARRAY && cls->array.length_ref)
		put_ref(out, "length", cls->array.length_ref);
	else if (cls->kind == KY_FIELD_ARRAY)
		ky_strbuf_addf(out, ", %" PRIu64 " elements", cls->array.length);
	else if (cls->kind == KY_FIELD_OPTIONAL || cls->kind == KY_FIELD_VARIANT)
		put_ref(out, "selected", cls->var.selector);
	if (cls->align_bits > 1)
		ky_strbuf_addf(out, ", aligned to %" PRIu32, cls->align_bits);
	if (role_text(cls->role))
		ky_strbuf_addf(out, " [%s]", role_text(cls->role));
	put_attributes(out, cls->attributes);
	ky_strbuf_addc(out, '\n');
}

static void put_ranges(struct ky_strbuf *out, const struct ky_range *ranges, size_t n,
		       bool is_signed)
{
	for (size_t i = 0; i < n && i < RANGES_SHOWN; i++) {
		ky_strbuf_adds(out, i ? ", " : "");
		if (is_signed)
			ky_strbuf_addi(out, ranges[i].begin.s);
		else
			ky_strbuf_addu(out, ranges[i].begin.u);
		if (ranges[i].begin.u == ranges[i].end.u)
			continue;
		ky_strbuf_adds(out, "..");
		if (is_signed)
			ky_strbuf_addi(out, ranges[i].end.s);
		else
			ky_strbuf_addu(out, ranges[i].end.u);
	}
	ky_strbuf_adds(out, n > RANGES_SHOWN ? ", ..." : "");
}

KY_DEEP3(bool, put_class, struct ky_strbuf *, const struct ky_field_class *, int)

static void put_mappings(struct ky_strbuf *out, const struct ky_field_class *cls, int depth)
{
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &cls->num.mappings[i];

		ky_details_indent(out, depth);
		details_metadata_put_quoted(out, mapping->label);
		ky_strbuf_adds(out, " = ");
		put_ranges(out, mapping->ranges, mapping->n_ranges, ky_field_is_signed(cls));
		ky_strbuf_addc(out, '\n');
	}
}

static void put_child(struct ky_strbuf *out, const struct ky_field_class *cls, size_t i, int depth)
{
	ky_details_indent(out, depth);
	if (cls->kind == KY_FIELD_STRUCT) {
		ky_foreign_adds(out, cls->st.members[i].display);
		put_attributes(out, cls->st.members[i].attributes);
		ky_strbuf_adds(out, ": ");
	} else if (cls->kind == KY_FIELD_ARRAY) {
		ky_strbuf_adds(out, "each: ");
	} else {
		const struct ky_option *option = &cls->var.options[i];

		ky_foreign_adds(out, option->display ? option->display : "option");
		ky_strbuf_adds(out, " (");
		put_ranges(out, option->ranges, option->n_ranges,
			   ky_field_is_signed(cls->var.selector->target));
		ky_strbuf_addc(out, ')');
		put_attributes(out, option->attributes);
		ky_strbuf_adds(out, ": ");
	}
	if (!put_class_deep(false, out, ky_field_child(cls, i), depth))
		out->failed = true;
}

/* The line goes on where the caller stopped; what @cls contains stands below, deeper. */
static bool put_class(struct ky_strbuf *out, const struct ky_field_class *cls, int depth)
{
	put_summary(out, cls);
	if (ky_field_is_num(cls))
		put_mappings(out, cls, depth + 1);
	for (size_t i = 0; i < ky_field_n_children(cls); i++)
		put_child(out, cls, i, depth + 1);
	return true;
}

static void details_metadata_put_scope(struct ky_strbuf *out, const char *name,
				       const struct ky_field_class *root, int depth)
{
	if (!root)
		return;
	ky_details_indent(out, depth);
	ky_strbuf_addf(out, "%s: ", name);
	put_class(out, root, depth);
}

/* ---- the trace ---------------------------------------------------------------------------- */

static void details_metadata_put_event(struct ky_strbuf *out, const struct ky_event_class *cls)
{
	ky_details_indent(out, 2);
	ky_strbuf_addf(out, "event class %" PRIu64 " ", cls->id);
	details_metadata_put_quoted(out, cls->name);
	if (cls->has_loglevel)
		ky_strbuf_addf(out, ", log level %" PRId64, cls->loglevel);
	put_part(out, ", model ", cls->emf_uri);
	put_attributes(out, cls->attributes);
	ky_strbuf_addc(out, '\n');
	details_metadata_put_scope(out, "context", cls->context, 3);
	details_metadata_put_scope(out, "payload", cls->payload, 3);
}

static void details_metadata_put_stream(struct ky_strbuf *out, const struct ky_stream_class *cls)
{
	ky_details_indent(out, 1);
	ky_strbuf_addf(out, "stream class %" PRIu64, cls->id);
	put_part(out, ", clock ", cls->clock ? cls->clock->name : NULL);
	put_attributes(out, cls->attributes);
	ky_strbuf_addc(out, '\n');
	details_metadata_put_scope(out, "packet context", cls->packet_context, 2);
	details_metadata_put_scope(out, "event header", cls->event_header, 2);
	details_metadata_put_scope(out, "event context", cls->event_context, 2);
	ky_vec_foreach(&cls->events, event)
		details_metadata_put_event(out, *event);
}

static void details_metadata_put_clock(struct ky_strbuf *out, const struct ky_clock_class *clock)
{
	ky_details_indent(out, 1);
	put_part(out, "clock ", clock->name);
	ky_strbuf_addf(out,
		       ": %" PRIu64 " Hz, begins at %" PRId64 " s and %" PRId64
		       " cycles%s, precision %" PRIu64 " cycles",
		       clock->frequency_hz, clock->offset_s, clock->offset_cycles,
		       clock->is_unix_epoch ? " after the Unix epoch" : "",
		       clock->precision_cycles);
	if (clock->has_uuid) {
		ky_strbuf_adds(out, ", UUID ");
		details_metadata_put_uuid(out, clock->uuid);
	}
	if (clock->description) {
		ky_strbuf_adds(out, ", ");
		details_metadata_put_quoted(out, clock->description);
	}
	put_attributes(out, clock->attributes);
	ky_strbuf_addc(out, '\n');
}

static void details_metadata_put_variable(struct ky_strbuf *out, struct ky_env *env)
{
	put_part(out, "    ", env->name);
	ky_strbuf_adds(out, " = ");
	if (env->is_text)
		details_metadata_put_quoted(out, env->text);
	else
		ky_strbuf_addi(out, env->number);
	ky_strbuf_addc(out, '\n');
}

static void details_metadata_put_env(struct ky_strbuf *out, const struct ky_trace_class *cls)
{
	if (cls->env.len)
		ky_strbuf_adds(out, "  environment\n");
	ky_vec_foreach(&cls->env, env)
		details_metadata_put_variable(out, env);
}

void ky_details_trace(struct ky_strbuf *out, const struct ky_trace *trace)
{
	const struct ky_trace_class *cls = trace->cls;

	put_part(out, "trace ", trace->path);
	ky_strbuf_addf(out, "\n  CTF %" PRIu32 ".%" PRIu32, cls->major, cls->minor);
	if (cls->major == 1)
		ky_strbuf_adds(out, cls->big_endian ? ", big-endian" : ", little-endian");
	if (cls->has_uuid) {
		ky_strbuf_adds(out, ", UUID ");
		details_metadata_put_uuid(out, cls->uuid);
	}
	put_attributes(out, cls->attributes);
	ky_strbuf_addc(out, '\n');
	if (cls->preamble_attributes) {
		put_part(out, "  preamble, attributes ", cls->preamble_attributes);
		ky_strbuf_addc(out, '\n');
	}
	details_metadata_put_env(out, cls);
	ky_vec_foreach(&cls->clocks, clock)
		details_metadata_put_clock(out, *clock);
	details_metadata_put_scope(out, "packet header", cls->packet_header, 1);
	ky_vec_foreach(&cls->streams, stream)
		details_metadata_put_stream(out, *stream);
}
