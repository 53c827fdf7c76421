/* SPDX-License-Identifier: MIT */
#include "ctf/lower.h"

#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/ctf2-write.h"
#include "ctf/tsdl-lex.h"
#include "ctf/tsdl.h"
#include "ctf/walk.h"

struct lowering {
	struct ky_trace_class *trace; /* a copy: ours to change */
	enum ky_scope scope;
	const struct ky_event_class *event; /* for messages; NULL in scopes of streams */
	struct ky_strbuf path;		    /* of the field at hand, for messages */
	struct kymo_error *err;
};

static int no_word(struct lowering *l, const char *what)
{
	if (l->event)
		return ky_error_set(l->err, KYMO_E_UNSUPPORTED,
				    "CTF 1.8 cannot describe field '%s' of event '%s': %s",
				    ky_strbuf_text(&l->path), l->event->name, what);
	return ky_error_set(l->err, KYMO_E_UNSUPPORTED, "CTF 1.8 cannot describe field '%s': %s",
			    ky_strbuf_text(&l->path), what);
}

/* ---- what has no word --------------------------------------------------------------------- */

static const char *missing_kind(const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_BITS:
		return "it is a bit array";
	case KY_FIELD_BITMAP:
		return "it is a bit map";
	case KY_FIELD_BOOL:
		return "it is a boolean";
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return "it is an integer of variable length";
	case KY_FIELD_OPTIONAL:
		return "it is optional";
	case KY_FIELD_BLOB:
		return cls->role == KY_ROLE_TRACE_UUID ? NULL : "it is a BLOB";
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
		if (cls->num.length_bits > 64)
			return "it is an integer of more than 64 bits";
		if (cls->more_roles)
			return "it has several roles";
		return cls->num.bits_reversed ? "its bits are in reverse order" : NULL;
	case KY_FIELD_FLOAT:
		return cls->num.bits_reversed ? "its bits are in reverse order" : NULL;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		return cls->text.encoding > KY_ENCODING_ASCII ? "it is in UTF-16 or UTF-32" : NULL;
	case KY_FIELD_ARRAY:
		return cls->array.min_align_bits > cls->array.element->align_bits
			       ? "it is aligned more than its elements"
			       : NULL;
	default:
		return NULL;
	}
}

/* ---- names -------------------------------------------------------------------------------- */

static const char *role_name(enum ky_scope scope, enum ky_role role)
{
	switch (role) {
	case KY_ROLE_MAGIC:
		return "magic";
	case KY_ROLE_TRACE_UUID:
		return "uuid";
	case KY_ROLE_STREAM_CLASS_ID:
		return "stream_id";
	case KY_ROLE_STREAM_ID:
		return "stream_instance_id";
	case KY_ROLE_PACKET_SIZE:
		return "packet_size";
	case KY_ROLE_CONTENT_SIZE:
		return "content_size";
	case KY_ROLE_CLOCK_BEGIN:
		return scope == KY_SCOPE_EVENT_HEADER ? "timestamp" : "timestamp_begin";
	case KY_ROLE_CLOCK_END:
		return "timestamp_end";
	case KY_ROLE_DISCARDED:
		return "events_discarded";
	case KY_ROLE_SEQUENCE:
		return "packet_seq_num";
	case KY_ROLE_EVENT_ID:
		return "id";
	case KY_ROLE_CPU_ID:
		return "cpu_id";
	default:
		return NULL;
	}
}

/* A field called so has that role in CTF 1.8, wanted or not. */
static bool is_role_name(enum ky_scope scope, const char *name)
{
	static const char *const names[][9] = {
		[KY_SCOPE_PACKET_HEADER] = {"magic", "uuid", "stream_id", "stream_instance_id",
					    NULL},
		[KY_SCOPE_PACKET_CONTEXT] = {"packet_size", "content_size", "timestamp_begin",
					     "timestamp_end", "events_discarded", "packet_seq_num",
					     NULL},
		[KY_SCOPE_EVENT_HEADER] = {"id", "timestamp", NULL},
	};

	for (size_t i = 0; scope <= KY_SCOPE_EVENT_HEADER && names[scope][i]; i++) {
		if (strcmp(names[scope][i], name) == 0)
			return true;
	}
	return false;
}

/*
 * The name that is displayed as @name. In payloads and contexts a '_' stands before all of
 * them, as LTTng writes them; elsewhere only where it must.
 */
static const char *plain_name(struct lowering *l, const char *name, bool always)
{
	if (!always && name[0] != '_' && ky_tsdl_is_name(name))
		return name;
	return ky_arena_printf(&l->trace->arena, "_%s", name);
}

static int rename_member(struct lowering *l, const char **name, const char *displayed,
			 const struct ky_field_class *cls, bool is_option)
{
	const char *role = role_name(l->scope, cls->role);

	if (role && l->scope <= KY_SCOPE_EVENT_HEADER) {
		*name = role;
		return KYMO_OK;
	}
	if (is_role_name(l->scope, displayed) && ky_field_is_num(cls))
		return no_word(l, "its name means something else there");
	*name = plain_name(l, displayed, l->scope > KY_SCOPE_EVENT_HEADER && !is_option);
	if (!*name)
		return ky_error_nomem(l->err);
	return ky_tsdl_is_name(*name) ? KYMO_OK : no_word(l, "its name is no identifier");
}

/* ---- classes ------------------------------------------------------------------------------ */

/* The UUID is 16 integers. */
static int lower_uuid(struct lowering *l, struct ky_field_class *cls)
{
	struct ky_field_class *byte = ky_field_class_new(l->trace, KY_FIELD_UINT);

	if (!byte)
		return ky_error_nomem(l->err);
	byte->align_bits = 8;
	byte->num.length_bits = 8;
	byte->num.base = 10;
	byte->num.big_endian = l->trace->big_endian;
	byte->fixed_bits = 8;
	memset(&cls->array, 0, sizeof(cls->array));
	cls->kind = KY_FIELD_ARRAY;
	cls->array.element = byte;
	cls->array.length = 16;
	return KYMO_OK;
}

/* A plain integer that selects options gets their names as labels. */
static int label_selector(struct lowering *l, const struct ky_field_class *variant)
{
	struct ky_field_class *tag = variant->var.selector->target;
	struct ky_mapping *mappings;

	if (!ky_field_is_num(tag) || tag->num.n_mappings || variant->var.selector->n_more)
		return KYMO_OK;
	mappings = ky_arena_array(&l->trace->arena, variant->var.n_options, sizeof(*mappings));
	if (!mappings)
		return ky_error_nomem(l->err);
	for (size_t i = 0; i < variant->var.n_options; i++) {
		const struct ky_option *option = &variant->var.options[i];

		mappings[i].label = option->display ? option->display : "";
		mappings[i].ranges = option->ranges;
		mappings[i].n_ranges = option->n_ranges;
	}
	tag->num.mappings = mappings;
	tag->num.n_mappings = variant->var.n_options;
	tag->num.is_enum = true;
	return KYMO_OK;
}

/* An option is found by its label, which may bear the '_' that its name is shown without. */
static bool is_label(const struct ky_field_class *tag, const char *name)
{
	for (size_t i = 0; i < tag->num.n_mappings; i++) {
		if (strcmp(tag->num.mappings[i].label, name) == 0)
			return true;
	}
	return false;
}

static int rename_option(struct lowering *l, const struct ky_field_class *variant,
			 struct ky_option *option)
{
	const struct ky_field_class *tag = variant->var.selector->target;
	const char *with;

	if (!option->display)
		return no_word(l, "an option of it has no name");
	with = ky_arena_printf(&l->trace->arena, "_%s", option->display);
	if (!with)
		return ky_error_nomem(l->err);
	if (ky_field_is_num(tag) && !is_label(tag, option->display) && is_label(tag, with)) {
		option->name = with;
		return KYMO_OK;
	}
	return rename_member(l, &option->name, option->display, option->cls, true);
}

KY_DEEP2(int, lower_class, struct lowering *, struct ky_field_class *)

static int lower_child(struct lowering *l, struct ky_field_class *parent, size_t i)
{
	struct ky_field_class *child = ky_field_child(parent, i);
	size_t len = l->path.len;
	int ret = KYMO_OK;

	if (parent->kind == KY_FIELD_STRUCT) {
		struct ky_member *member = &parent->st.members[i];

		ky_strbuf_addf(&l->path, ".%s", member->display);
		ret = rename_member(l, &member->name, member->display, child, false);
	} else if (parent->kind == KY_FIELD_VARIANT) {
		struct ky_option *option = &parent->var.options[i];

		ky_strbuf_addf(&l->path, ".%s", option->display ? option->display : "?");
		ret = rename_option(l, parent, option);
	}
	if (ret == KYMO_OK)
		ret = lower_class_deep(KYMO_E_MEMORY, l, child);
	/* What the error says stays. */
	if (ret == KYMO_OK && l->path.data) {
		l->path.len = len;
		l->path.data[len] = '\0';
	}
	return ret;
}

static int lower_class(struct lowering *l, struct ky_field_class *cls)
{
	const char *missing = missing_kind(cls);
	int ret = KYMO_OK;

	if (missing)
		return no_word(l, missing);
	if (cls->kind == KY_FIELD_BLOB)
		return lower_uuid(l, cls);
	if (cls->kind == KY_FIELD_VARIANT)
		ret = label_selector(l, cls);
	for (size_t i = 0; i < ky_field_n_children(cls) && ret == KYMO_OK; i++)
		ret = lower_child(l, cls, i);
	return ret;
}

static int lower_scope(struct lowering *l, enum ky_scope scope, struct ky_field_class *root)
{
	if (!root)
		return KYMO_OK;
	l->scope = scope;
	ky_strbuf_clear(&l->path);
	ky_strbuf_adds(&l->path, ky_scope_name(scope));
	return lower_class(l, root);
}

static int lower_stream(struct lowering *l, struct ky_stream_class *stream)
{
	int ret = lower_scope(l, KY_SCOPE_PACKET_CONTEXT, stream->packet_context);

	if (ret == KYMO_OK)
		ret = lower_scope(l, KY_SCOPE_EVENT_HEADER, stream->event_header);
	if (ret == KYMO_OK)
		ret = lower_scope(l, KY_SCOPE_STREAM_CONTEXT, stream->event_context);
	for (size_t i = 0; i < stream->events.len && ret == KYMO_OK; i++) {
		l->event = stream->events.data[i];
		ret = lower_scope(l, KY_SCOPE_EVENT_CONTEXT, stream->events.data[i]->context);
		if (ret == KYMO_OK)
			ret = lower_scope(l, KY_SCOPE_PAYLOAD, stream->events.data[i]->payload);
	}
	l->event = NULL;
	return ret;
}

static int lower_clocks(struct lowering *l)
{
	for (size_t i = 0; i < l->trace->clocks.len; i++) {
		struct ky_clock_class *clock = l->trace->clocks.data[i];

		if (ky_tsdl_is_name(clock->name))
			continue;
		clock->name = ky_arena_printf(&l->trace->arena, "clock_%zu", i);
		if (!clock->name)
			return ky_error_nomem(l->err);
	}
	return KYMO_OK;
}

static int lower_trace(struct lowering *l)
{
	int ret = lower_clocks(l);

	if (ret == KYMO_OK)
		ret = lower_scope(l, KY_SCOPE_PACKET_HEADER, l->trace->packet_header);
	for (size_t i = 0; i < l->trace->streams.len && ret == KYMO_OK; i++)
		ret = lower_stream(l, l->trace->streams.data[i]);
	return ret;
}

/* Writing and reading is the copy that can be changed. */
static int copy_of(const struct ky_trace_class *trace, struct ky_trace_class **copy,
		   struct kymo_error *err)
{
	size_t len_bytes;
	char *text;
	int ret = ky_ctf2_write(trace, &text, &len_bytes, err);

	if (ret < 0)
		return ret;
	ret = ky_metadata_read(text, len_bytes, copy, err);
	free(text);
	return ret;
}

int ky_lower_to_tsdl(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
		     struct kymo_error *err)
{
	struct lowering l = {.err = err};
	int ret = copy_of(trace, &l.trace, err);

	if (ret < 0)
		return ret;
	ret = lower_trace(&l);
	if (ret == KYMO_E_MEMORY)
		ky_error_nomem(err);
	ky_strbuf_fini(&l.path);
	if (ret == KYMO_OK)
		ret = ky_tsdl_write(l.trace, text, len_bytes, err);
	ky_trace_class_free(l.trace);
	return ret;
}
