/* SPDX-License-Identifier: MIT */
/*
 * Trace model -> CTF 2 metadata. The bytes of data streams stay what they are: a trace that was
 * CTF 1.8 is described so that its packets read the same.
 *
 * Differences that matter: CTF 2 shows names as they are, so the leading '_' of CTF 1.8 goes
 * unless that makes two members equal; a UUID is a BLOB; a label stands once with all its ranges.
 */
#include <stdio.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ctf/attributes.h"
#include "ctf/ctf2-write.h"
#include "ctf/json.h"
#include "ctf/unicode.h"
#include "ctf/walk.h"

#define PATH_MAX_STEPS 512

struct writer {
	struct ky_strbuf out;
	const struct ky_trace_class *trace;
	const struct ky_stream_class *stream; /* being written */
	const struct ky_event_class *event;
	struct kymo_error *err;
	int indent;
};

KY_DEEP2(int, write_class, struct writer *, const struct ky_field_class *)

/* ---- JSON --------------------------------------------------------------------------------- */

/* Beyond that, text would grow with the square of its depth. */
#define INDENT_MAX 100

static void line(struct writer *w)
{
	ky_strbuf_addc(&w->out, '\n');
	for (int i = 0; i < w->indent && i < INDENT_MAX; i++)
		ky_strbuf_adds(&w->out, "  ");
}

/* Texts of CTF 1.8 may be no UTF-8, which JSON must be. */
static void put_string(struct writer *w, const char *text)
{
	struct ky_strbuf whole = KY_STRBUF_INIT;

	ky_utf8_repair(&whole, text);
	if (ky_strbuf_failed(&whole))
		w->out.failed = true;
	else
		ky_json_put_text(&w->out, ky_strbuf_text(&whole), whole.len);
	ky_strbuf_fini(&whole);
}

static void open_with(struct writer *w, char bracket)
{
	ky_strbuf_addc(&w->out, bracket);
	w->indent++;
}

static void close_with(struct writer *w, char bracket)
{
	w->indent--;
	line(w);
	ky_strbuf_addc(&w->out, bracket);
}

/* Begin the property @key; the first of its object when the text ends with '{'. */
static void key(struct writer *w, const char *name)
{
	if (w->out.len && w->out.data[w->out.len - 1] != '{')
		ky_strbuf_addc(&w->out, ',');
	line(w);
	put_string(w, name);
	ky_strbuf_adds(&w->out, ": ");
}

/* Begin an element of an array. */
static void element(struct writer *w)
{
	if (w->out.len && w->out.data[w->out.len - 1] != '[')
		ky_strbuf_addc(&w->out, ',');
	line(w);
}

static void prop_string(struct writer *w, const char *name, const char *text)
{
	key(w, name);
	put_string(w, text);
}

static void prop_uint(struct writer *w, const char *name, uint64_t value)
{
	key(w, name);
	ky_strbuf_addu(&w->out, value);
}

static void prop_attributes(struct writer *w, const char *attributes)
{
	if (!attributes)
		return;
	key(w, "attributes");
	ky_strbuf_adds(&w->out, attributes);
}

/* ---- names and places -------------------------------------------------------------------------- */

static bool display_is_unique(const struct ky_field_class *st, size_t index)
{
	for (size_t i = 0; i < st->st.n_members; i++) {
		if (i != index &&
		    strcmp(st->st.members[i].display, st->st.members[index].display) == 0)
			return false;
	}
	return true;
}

static const char *member_name(const struct ky_field_class *st, size_t index)
{
	const struct ky_member *member = &st->st.members[index];

	return display_is_unique(st, index) ? member->display : member->name;
}

static const struct ky_field_class *scope_root(const struct writer *w, enum ky_scope scope)
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

KY_DEEP4(int, find_path, const struct ky_field_class *, const struct ky_field_class *,
	 const char **, int)

/* The names from @at down to @target; how many there are, or -1 when it is not below. */
static int find_path(const struct ky_field_class *at, const struct ky_field_class *target,
		     const char **path, int n)
{
	if (at == target)
		return n;
	for (size_t i = 0; i < ky_field_n_children(at); i++) {
		bool named = at->kind == KY_FIELD_STRUCT;
		int found;

		if (named && n < PATH_MAX_STEPS)
			path[n] = member_name(at, i);
		found = find_path_deep(-1, ky_field_child(at, i), target, path, n + named);
		if (found >= 0)
			return found;
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

static int put_location(struct writer *w, const char *name, const struct ky_field_ref *ref)
{
	const char *path[PATH_MAX_STEPS];
	const struct ky_field_class *root = scope_root(w, ref->scope);
	int n = root ? find_path(root, ref->target, path, 0) : -1;

	if (n <= 0 || n > PATH_MAX_STEPS)
		return ky_error_set(w->err, KYMO_E_UNSUPPORTED,
				    "the field that '%s' refers to cannot be located",
				    ref->text ? ref->text : "?");
	key(w, name);
	open_with(w, '{');
	prop_string(w, "origin", ky_ctf2_origin(ref->scope));
	key(w, "path");
	ky_strbuf_addc(&w->out, '[');
	for (int i = 0; i < n; i++) {
		ky_strbuf_adds(&w->out, i ? ", " : "");
		put_string(w, path[i]);
	}
	ky_strbuf_addc(&w->out, ']');
	close_with(w, '}');
	return KYMO_OK;
}

/* ---- field classes ------------------------------------------------------------------------------ */

static void put_bound(struct writer *w, uint64_t value, bool is_signed)
{
	if (is_signed)
		ky_strbuf_addi(&w->out, (int64_t)value);
	else
		ky_strbuf_addu(&w->out, value);
}

static void put_ranges(struct writer *w, const struct ky_range *ranges, size_t n, bool is_signed)
{
	for (size_t i = 0; i < n; i++) {
		if (w->out.data[w->out.len - 1] != '[')
			ky_strbuf_adds(&w->out, ", ");
		if (ky_range_is_never(&ranges[i])) {
			/* In words that are allowed, and mean the same. */
			ky_strbuf_adds(&w->out,
				       is_signed ? "[9223372036854775808, 9223372036854775808]"
						 : "[-1, -1]");
			continue;
		}
		ky_strbuf_addc(&w->out, '[');
		put_bound(w, ranges[i].begin.u, is_signed);
		ky_strbuf_adds(&w->out, ", ");
		put_bound(w, ranges[i].end.u, is_signed);
		ky_strbuf_addc(&w->out, ']');
	}
}

static bool is_signed_class(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
}

static bool label_seen(const struct ky_field_class *cls, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (strcmp(cls->num.mappings[i].label, cls->num.mappings[index].label) == 0)
			return true;
	}
	return false;
}

static void put_mappings(struct writer *w, const char *name, const struct ky_field_class *cls)
{
	if (!cls->num.n_mappings)
		return;
	key(w, name);
	open_with(w, '{');
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		if (label_seen(cls, i))
			continue;
		key(w, cls->num.mappings[i].label);
		ky_strbuf_addc(&w->out, '[');
		for (size_t j = i; j < cls->num.n_mappings; j++) {
			if (strcmp(cls->num.mappings[i].label, cls->num.mappings[j].label) == 0)
				put_ranges(w, cls->num.mappings[j].ranges,
					   cls->num.mappings[j].n_ranges, is_signed_class(cls));
		}
		ky_strbuf_addc(&w->out, ']');
	}
	close_with(w, '}');
}

static const char *role_name(enum ky_role role)
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

static void put_role(struct writer *w, const struct ky_field_class *cls)
{
	const char *name = role_name(cls->role);

	/* CTF 2 wants something to compare it with. */
	if (!name || (cls->role == KY_ROLE_TRACE_UUID && !w->trace->has_uuid))
		return;
	key(w, "roles");
	ky_strbuf_addc(&w->out, '[');
	put_string(w, name);
	for (uint32_t more = cls->more_roles; more; more &= more - 1) {
		ky_strbuf_adds(&w->out, ", ");
		put_string(w, role_name((enum ky_role)__builtin_ctz(more)));
	}
	ky_strbuf_addc(&w->out, ']');
}

static void put_bits(struct writer *w, const struct ky_field_class *cls)
{
	prop_uint(w, "length", cls->num.length_bits);
	prop_string(w, "byte-order", cls->num.big_endian ? "big-endian" : "little-endian");
	if (cls->num.bits_reversed)
		prop_string(w, "bit-order",
			    cls->num.big_endian ? "first-to-last" : "last-to-first");
	if (cls->align_bits > 1)
		prop_uint(w, "alignment", cls->align_bits);
}

static int put_number(struct writer *w, const struct ky_field_class *cls)
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

	if (!is_variable && cls->num.unit_bits)
		return ky_error_set(
			w->err, KYMO_E_UNSUPPORTED,
			"CTF 2 metadata cannot describe a bit field in C's notation whose "
			"place varies");
	prop_string(w, "type", types[cls->kind]);
	if (!is_variable)
		put_bits(w, cls);
	if (cls->kind == KY_FIELD_BITMAP)
		put_mappings(w, "flags", cls);
	if (!ky_field_is_int(cls))
		return KYMO_OK;
	if (cls->num.base && cls->num.base != 10)
		prop_uint(w, "preferred-display-base", cls->num.base);
	put_mappings(w, "mappings", cls);
	put_role(w, cls);
	return KYMO_OK;
}

static int put_text(struct writer *w, const struct ky_field_class *cls)
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
	prop_string(w, "type", type);
	if (cls->kind == KY_FIELD_BLOB) {
		if (cls->text.media_type)
			prop_string(w, "media-type", cls->text.media_type);
		put_role(w, cls);
	} else if (strcmp(encodings[cls->text.encoding], "utf-8") != 0) {
		prop_string(w, "encoding", encodings[cls->text.encoding]);
	}
	if (cls->kind == KY_FIELD_STRING)
		return KYMO_OK;
	if (cls->text.length_ref)
		return put_location(w, "length-field-location", cls->text.length_ref);
	prop_uint(w, "length", cls->text.length_bytes);
	return KYMO_OK;
}

static int put_struct(struct writer *w, const struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	prop_string(w, "type", "structure");
	if (cls->st.min_align_bits > 1)
		prop_uint(w, "minimum-alignment", cls->st.min_align_bits);
	key(w, "member-classes");
	open_with(w, '[');
	for (size_t i = 0; i < cls->st.n_members && ret == KYMO_OK; i++) {
		element(w);
		open_with(w, '{');
		prop_string(w, "name", member_name(cls, i));
		prop_attributes(w, cls->st.members[i].attributes);
		key(w, "field-class");
		ret = write_class_deep(KYMO_E_MEMORY, w, cls->st.members[i].cls);
		close_with(w, '}');
	}
	close_with(w, ']');
	return ret;
}

static int put_array(struct writer *w, const struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	/* CTF 1.8 writes the UUID as 16 integers. */
	if (cls->role == KY_ROLE_TRACE_UUID && !cls->array.length_ref && cls->array.length == 16) {
		prop_string(w, "type", "static-length-blob");
		prop_string(w, "media-type", "application/octet-stream");
		put_role(w, cls);
		prop_uint(w, "length", 16);
		return KYMO_OK;
	}
	prop_string(w, "type",
		    cls->array.length_ref ? "dynamic-length-array" : "static-length-array");
	if (cls->array.min_align_bits > 1)
		prop_uint(w, "minimum-alignment", cls->array.min_align_bits);
	if (cls->array.length_ref)
		ret = put_location(w, "length-field-location", cls->array.length_ref);
	else
		prop_uint(w, "length", cls->array.length);
	if (ret < 0)
		return ret;
	key(w, "element-field-class");
	return write_class_deep(KYMO_E_MEMORY, w, cls->array.element);
}

static void put_selector_ranges(struct writer *w, const struct ky_field_class *cls,
				const struct ky_option *option)
{
	key(w, "selector-field-ranges");
	ky_strbuf_addc(&w->out, '[');
	put_ranges(w, option->ranges, option->n_ranges, is_signed_class(cls->var.selector->target));
	ky_strbuf_addc(&w->out, ']');
}

static int put_optional(struct writer *w, const struct ky_field_class *cls)
{
	int ret;

	prop_string(w, "type", "optional");
	ret = put_location(w, "selector-field-location", cls->var.selector);
	if (ret < 0)
		return ret;
	if (cls->var.options[0].n_ranges)
		put_selector_ranges(w, cls, &cls->var.options[0]);
	key(w, "field-class");
	return write_class_deep(KYMO_E_MEMORY, w, cls->var.options[0].cls);
}

static int put_option(struct writer *w, const struct ky_field_class *cls,
		      const struct ky_option *option)
{
	int ret;

	element(w);
	open_with(w, '{');
	if (option->display)
		prop_string(w, "name", option->display);
	put_selector_ranges(w, cls, option);
	prop_attributes(w, option->attributes);
	key(w, "field-class");
	ret = write_class_deep(KYMO_E_MEMORY, w, option->cls);
	close_with(w, '}');
	return ret;
}

static int put_variant(struct writer *w, const struct ky_field_class *cls)
{
	int ret;

	prop_string(w, "type", "variant");
	ret = put_location(w, "selector-field-location", cls->var.selector);
	if (ret < 0)
		return ret;
	key(w, "options");
	open_with(w, '[');
	/* An option that no label selects can never occur; CTF 2 has no way to write it. */
	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		if (cls->var.options[i].n_ranges)
			ret = put_option(w, cls, &cls->var.options[i]);
	}
	close_with(w, ']');
	return ret;
}

static int write_class(struct writer *w, const struct ky_field_class *cls)
{
	int ret;

	open_with(w, '{');
	switch (cls->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		ret = put_text(w, cls);
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
		ret = put_variant(w, cls);
		break;
	default:
		ret = put_number(w, cls);
	}
	prop_attributes(w, cls->attributes);
	close_with(w, '}');
	return ret;
}

static int put_scope(struct writer *w, const char *name, const struct ky_field_class *root)
{
	if (!root)
		return KYMO_OK;
	key(w, name);
	return write_class(w, root);
}

/* ---- fragments ----------------------------------------------------------------------------------- */

static void begin_fragment(struct writer *w, const char *type)
{
	ky_strbuf_addc(&w->out, 0x1e);
	open_with(w, '{');
	prop_string(w, "type", type);
}

static void end_fragment(struct writer *w)
{
	close_with(w, '}');
	ky_strbuf_addc(&w->out, '\n');
}

static void write_preamble(struct writer *w)
{
	begin_fragment(w, "preamble");
	prop_uint(w, "version", 2);
	if (w->trace->has_uuid) {
		key(w, "uuid");
		for (int i = 0; i < 16; i++)
			ky_strbuf_addf(&w->out, "%s%u", i ? ", " : "[", w->trace->uuid[i]);
		ky_strbuf_addc(&w->out, ']');
	}
	prop_attributes(w, w->trace->preamble_attributes);
	end_fragment(w);
}

static int write_trace_class(struct writer *w)
{
	int ret;

	begin_fragment(w, "trace-class");
	if (w->trace->name)
		prop_string(w, "name", w->trace->name);
	prop_attributes(w, w->trace->attributes);
	if (w->trace->env.len) {
		key(w, "environment");
		open_with(w, '{');
		ky_vec_foreach(&w->trace->env, env) {
			key(w, env->name);
			if (env->is_text)
				put_string(w, env->text);
			else
				ky_strbuf_addi(&w->out, env->number);
		}
		close_with(w, '}');
	}
	ret = put_scope(w, "packet-header-field-class", w->trace->packet_header);
	end_fragment(w);
	return ret;
}

void ky_ctf2_offset(const struct ky_clock_class *clock, int64_t *seconds, uint64_t *cycles)
{
	__int128 all = (__int128)clock->offset_s * clock->frequency_hz + clock->offset_cycles;
	__int128 whole = all / clock->frequency_hz, rest = all % clock->frequency_hz;

	if (rest < 0) {
		whole--;
		rest += clock->frequency_hz;
	}
	*seconds = (int64_t)whole;
	*cycles = (uint64_t)rest;
}

static void put_offset(struct writer *w, const struct ky_clock_class *clock)
{
	uint64_t cycles;
	int64_t seconds;

	ky_ctf2_offset(clock, &seconds, &cycles);
	key(w, "offset-from-origin");
	open_with(w, '{');
	key(w, "seconds");
	ky_strbuf_addi(&w->out, seconds);
	prop_uint(w, "cycles", cycles);
	close_with(w, '}');
}

static void put_identity(struct writer *w, const struct ky_identity *identity)
{
	if (identity->space)
		prop_string(w, "namespace", identity->space);
	if (identity->name)
		prop_string(w, "name", identity->name);
	if (identity->uid)
		prop_string(w, "uid", identity->uid);
}

/* The UUID of a clock of CTF 1.8 is what tells it from others of its name. */
static void put_self(struct writer *w, const struct ky_clock_class *clock)
{
	char uid[KY_UUID_TEXT_BYTES];
	struct ky_identity self = clock->self;

	if (clock->has_uuid && !self.uid) {
		self.uid = ky_format_uuid(uid, clock->uuid);
		if (!self.name)
			self.name = clock->name;
	}
	put_identity(w, &self);
}

static void put_origin(struct writer *w, const struct ky_clock_class *clock)
{
	if (clock->is_unix_epoch) {
		prop_string(w, "origin", "unix-epoch");
	} else if (clock->origin.uid) {
		key(w, "origin");
		open_with(w, '{');
		put_identity(w, &clock->origin);
		close_with(w, '}');
	}
}

static void write_clock(struct writer *w, const struct ky_clock_class *clock)
{
	begin_fragment(w, "clock-class");
	prop_string(w, "id", clock->name);
	put_self(w, clock);
	prop_uint(w, "frequency", clock->frequency_hz);
	put_origin(w, clock);
	put_offset(w, clock);
	if (clock->precision_cycles)
		prop_uint(w, "precision", clock->precision_cycles);
	if (clock->has_accuracy)
		prop_uint(w, "accuracy", clock->accuracy_cycles);
	if (clock->description)
		prop_string(w, "description", clock->description);
	prop_attributes(w, clock->attributes);
	end_fragment(w);
}

static int write_stream(struct writer *w, const struct ky_stream_class *stream)
{
	int ret;

	w->stream = stream;
	begin_fragment(w, "data-stream-class");
	prop_uint(w, "id", stream->id);
	if (stream->name)
		prop_string(w, "name", stream->name);
	if (stream->clock)
		prop_string(w, "default-clock-class-id", stream->clock->name);
	prop_attributes(w, stream->attributes);
	ret = put_scope(w, "packet-context-field-class", stream->packet_context);
	if (ret == KYMO_OK)
		ret = put_scope(w, "event-record-header-field-class", stream->event_header);
	if (ret == KYMO_OK)
		ret = put_scope(w, "event-record-common-context-field-class",
				stream->event_context);
	end_fragment(w);
	return ret;
}

static int write_event(struct writer *w, const struct ky_event_class *event)
{
	int ret;

	w->event = event;
	begin_fragment(w, "event-record-class");
	prop_uint(w, "id", event->id);
	prop_uint(w, "data-stream-class-id", event->stream->id);
	if (event->name[0])
		prop_string(w, "name", event->name);
	if (event->has_loglevel || event->emf_uri || event->attributes) {
		key(w, "attributes");
		ky_attributes_of_event(&w->out, event);
	}
	ret = put_scope(w, "specific-context-field-class", event->context);
	if (ret == KYMO_OK)
		ret = put_scope(w, "payload-field-class", event->payload);
	end_fragment(w);
	return ret;
}

static int write_all(struct writer *w)
{
	int ret;

	write_preamble(w);
	if (w->trace->aliases)
		ky_strbuf_adds(&w->out, w->trace->aliases);
	ret = write_trace_class(w);
	ky_vec_foreach(&w->trace->clocks, clock)
		write_clock(w, *clock);
	for (size_t i = 0; i < w->trace->streams.len && ret == KYMO_OK; i++) {
		const struct ky_stream_class *stream = w->trace->streams.data[i];

		ret = write_stream(w, stream);
		for (size_t j = 0; j < stream->events.len && ret == KYMO_OK; j++)
			ret = write_event(w, stream->events.data[j]);
	}
	return ret;
}

int ky_ctf2_write(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
		  struct kymo_error *err)
{
	struct writer w = {.trace = trace, .err = err};
	int ret = write_all(&w);

	*text = NULL;
	if (ret == KYMO_E_MEMORY || (ret == KYMO_OK && ky_strbuf_failed(&w.out)))
		ret = ky_error_nomem(err);
	if (ret < 0) {
		ky_strbuf_fini(&w.out);
		return ret;
	}
	*len_bytes = w.out.len;
	*text = ky_strbuf_take(&w.out);
	return *text ? KYMO_OK : ky_error_nomem(err);
}
