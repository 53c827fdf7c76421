/* SPDX-License-Identifier: MIT */
#include "ctf/lower.h"

#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/ctf2-write.h"
#include "ctf/finish.h"
#include "ctf/tsdl-lex.h"
#include "ctf/tsdl.h"
#include "ctf/walk.h"

struct lowering {
	struct ky_trace_class *trace; /* a copy: ours to change */
	enum ky_scope scope;
	const struct ky_event_class *event; /* for messages; NULL in scopes of streams */
	struct ky_strbuf path;		    /* of the field at hand, for messages */
	struct ky_strbuf *notes;	    /* what is called otherwise than it was */
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
	if (!ky_field_is_num(cls) || cls->num.length_bits <= 64)
		return NULL;
	if (cls->kind != KY_FIELD_FLOAT)
		return "it is an integer of more than 64 bits";
	return cls->num.bits_reversed ? "it is long and its bits are in reverse order" : NULL;
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

/* Is @name displayed by another member of @parent? */
static bool is_taken(const struct ky_field_class *parent, size_t except, const char *name)
{
	for (size_t i = 0; i < parent->st.n_members; i++) {
		if (i != except && strcmp(parent->st.members[i].display, name) == 0)
			return true;
	}
	return false;
}

/* Letters, digits and '_' stay, the rest becomes '_'; one more '_' until it is like no other. */
static int other_name(struct lowering *l, const struct ky_field_class *parent, size_t index)
{
	struct ky_member *member = &parent->st.members[index];
	char *name = ky_arena_printf(&l->trace->arena, "%s", member->display);

	if (!name)
		return ky_error_nomem(l->err);
	for (char *c = name; *c; c++) {
		if (!(*c >= '0' && *c <= '9') && !((*c | 32) >= 'a' && (*c | 32) <= 'z'))
			*c = '_';
	}
	while (!*name || is_role_name(l->scope, name) || is_taken(parent, index, name)) {
		name = ky_arena_printf(&l->trace->arena, "%s_", name);
		if (!name)
			return ky_error_nomem(l->err);
	}
	ky_strbuf_addf(l->notes, "%s'%s' is called '%s'", l->notes->len ? ", " : "",
		       ky_strbuf_text(&l->path), name);
	member->display = name;
	return KYMO_OK;
}

static int rename_member(struct lowering *l, const struct ky_field_class *parent, size_t index)
{
	struct ky_member *member = &parent->st.members[index];
	const char *role = role_name(l->scope, member->cls->role);
	bool always = l->scope > KY_SCOPE_EVENT_HEADER;
	int ret;

	if (role && !always) {
		member->name = role;
		return KYMO_OK;
	}
	member->name = plain_name(l, member->display, always);
	if (!member->name)
		return ky_error_nomem(l->err);
	if (ky_tsdl_is_name(member->name) &&
	    !(is_role_name(l->scope, member->display) && ky_field_is_num(member->cls)))
		return KYMO_OK;
	ret = other_name(l, parent, index);
	if (ret == KYMO_OK)
		member->name = plain_name(l, member->display, always);
	return ret == KYMO_OK && !member->name ? ky_error_nomem(l->err) : ret;
}

/* ---- classes ------------------------------------------------------------------------------ */

/* Bytes: those of a BLOB, a UUID among them. */
static int lower_blob(struct lowering *l, struct ky_field_class *cls)
{
	struct ky_field_class *byte = ky_field_class_new(l->trace, KY_FIELD_UINT);
	struct ky_field_ref *length_ref = cls->text.length_ref;
	uint64_t length = cls->text.length_bytes;

	if (!byte)
		return ky_error_nomem(l->err);
	byte->align_bits = 8;
	byte->num.length_bits = 8;
	byte->num.base = cls->role == KY_ROLE_TRACE_UUID ? 10 : 16;
	byte->num.big_endian = l->trace->big_endian;
	byte->fixed_bits = 8;
	memset(&cls->array, 0, sizeof(cls->array));
	cls->kind = KY_FIELD_ARRAY;
	cls->array.element = byte;
	cls->array.length = length;
	cls->array.length_ref = length_ref;
	return KYMO_OK;
}

static int by_begin(const void *a, const void *b, void *is_signed)
{
	const struct ky_range *x = a, *y = b;

	if (*(const bool *)is_signed)
		return x->begin.s < y->begin.s ? -1 : x->begin.s > y->begin.s;
	return x->begin.u < y->begin.u ? -1 : x->begin.u > y->begin.u;
}

static __int128 bound(uint64_t value, bool is_signed)
{
	return is_signed ? (__int128)(int64_t)value : (__int128)value;
}

/* All values of @cls that none of @ranges holds. */
static int other_ranges(struct lowering *l, const struct ky_field_class *cls,
			const struct ky_range *ranges, size_t n_ranges, struct ky_mapping *mapping)
{
	bool is_signed = ky_field_is_signed(cls);
	uint32_t bits = cls->num.length_bits - is_signed;
	__int128 max = ((__int128)1 << bits) - 1, next = is_signed ? -max - 1 : 0;
	struct ky_range *sorted, *others;
	size_t n = 0;

	sorted = ky_arena_memdup(&l->trace->arena, ranges, n_ranges * sizeof(*ranges));
	others = ky_arena_array(&l->trace->arena, n_ranges + 1, sizeof(*others));
	if (!sorted || !others)
		return ky_error_nomem(l->err);
	qsort_r(sorted, n_ranges, sizeof(*sorted), by_begin, &is_signed);
	for (size_t i = 0; i < n_ranges && next <= max; i++) {
		__int128 begin = bound(sorted[i].begin.u, is_signed);
		__int128 end = bound(sorted[i].end.u, is_signed);

		if (begin > max)
			begin = max + 1;
		if (begin > next) {
			others[n].begin.u = (uint64_t)next;
			others[n++].end.u = (uint64_t)(begin - 1);
		}
		if (end >= next)
			next = end + 1;
	}
	if (next <= max) {
		others[n].begin.u = (uint64_t)next;
		others[n++].end.u = (uint64_t)max;
	}
	mapping->ranges = others;
	mapping->n_ranges = n;
	return KYMO_OK;
}

/* Two labels, for values that @ranges hold and for all others. */
static int label_two(struct lowering *l, struct ky_field_class *cls, const char *in,
		     const struct ky_range *ranges, size_t n_ranges, const char *out)
{
	struct ky_mapping *mappings = ky_arena_array(&l->trace->arena, 2, sizeof(*mappings));

	if (!mappings || other_ranges(l, cls, ranges, n_ranges, &mappings[0]) < 0)
		return ky_error_nomem(l->err);
	mappings[0].label = out;
	mappings[1] = (struct ky_mapping){in, ranges, n_ranges};
	cls->num.mappings = mappings;
	cls->num.n_mappings = 2;
	cls->num.is_enum = true;
	return KYMO_OK;
}

/* Integers of variable length get all the bits that they may have; bits have one order. */
static void plain_bits(struct lowering *l, struct ky_field_class *cls)
{
	cls->num.bits_reversed = false;
	if (cls->kind != KY_FIELD_VARUINT && cls->kind != KY_FIELD_VARSINT)
		return;
	cls->kind = cls->kind == KY_FIELD_VARUINT ? KY_FIELD_UINT : KY_FIELD_SINT;
	cls->num.length_bits = 64;
	cls->num.big_endian = l->trace->big_endian;
}

/* In UTF-8 a text ends where it ends, whatever its length was. */
static int lower_text(struct ky_field_class *cls)
{
	if (cls->text.encoding <= KY_ENCODING_ASCII)
		return KYMO_OK;
	cls->kind = KY_FIELD_STRING;
	cls->text.encoding = KY_ENCODING_UTF8;
	cls->text.length_ref = NULL;
	return KYMO_OK;
}

/* In CTF 1.8 any field that a clock is mapped to tells a time. */
static void give_role(struct ky_field_class *cls, enum ky_role role)
{
	cls->role = role;
	cls->more_roles = 0;
	if (role != KY_ROLE_CLOCK_BEGIN && role != KY_ROLE_CLOCK_END)
		cls->num.clock = NULL;
}

/* One field of several roles is as many fields: the first is what others refer to. */
static int split_roles(struct lowering *l, struct ky_field_class *st)
{
	size_t n = st->st.n_members, at = 0;
	struct ky_member *members;

	for (size_t i = 0; i < st->st.n_members; i++)
		n += (size_t)__builtin_popcount(st->st.members[i].cls->more_roles);
	if (n == st->st.n_members)
		return KYMO_OK;
	members = ky_arena_array(&l->trace->arena, n, sizeof(*members));
	if (!members)
		return ky_error_nomem(l->err);
	for (size_t i = 0; i < st->st.n_members; i++) {
		struct ky_field_class *cls = st->st.members[i].cls;

		members[at++] = st->st.members[i];
		for (uint32_t more = cls->more_roles; more; more &= more - 1) {
			struct ky_field_class *copy = ky_field_class_new(l->trace, cls->kind);

			if (!copy)
				return ky_error_nomem(l->err);
			*copy = *cls;
			give_role(copy, (enum ky_role)__builtin_ctz(more));
			members[at] = st->st.members[i];
			members[at++].cls = copy;
		}
		if (cls->more_roles)
			give_role(cls, cls->role);
	}
	st->st.members = members;
	st->st.n_members = n;
	return KYMO_OK;
}

/* What is no integer there is one with the same bits. */
static int lower_number(struct lowering *l, struct ky_field_class *cls)
{
	static const struct ky_range no = {{0}, {0}};

	plain_bits(l, cls);
	if (cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_FLOAT)
		return KYMO_OK;
	cls->num.base = 16;
	if (cls->kind == KY_FIELD_BITMAP)
		cls->num.n_mappings = 0;
	if (cls->kind != KY_FIELD_BOOL) {
		cls->kind = KY_FIELD_UINT;
		return KYMO_OK;
	}
	cls->kind = KY_FIELD_UINT;
	cls->num.base = 10;
	return label_two(l, cls, "false", &no, 1, "true");
}

/* CTF 2 need not name options, and does not show their names: any do. */
static int name_options(struct lowering *l, struct ky_field_class *variant)
{
	for (size_t i = 0; i < variant->var.n_options; i++) {
		struct ky_option *option = &variant->var.options[i];

		if (!option->display)
			option->display = ky_arena_printf(&l->trace->arena, "option_%zu", i);
		if (!option->display)
			return ky_error_nomem(l->err);
	}
	return KYMO_OK;
}

/* A plain integer that selects options gets their names as labels. */
static int label_selector(struct lowering *l, struct ky_field_class *variant)
{
	struct ky_field_class *tag = variant->var.selector->target;
	struct ky_mapping *mappings;

	if (name_options(l, variant) < 0)
		return KYMO_E_MEMORY;
	if (!ky_field_is_num(tag) || tag->num.n_mappings || variant->var.selector->n_more)
		return KYMO_OK;
	mappings = ky_arena_array(&l->trace->arena, variant->var.n_options, sizeof(*mappings));
	if (!mappings)
		return ky_error_nomem(l->err);
	for (size_t i = 0; i < variant->var.n_options; i++) {
		const struct ky_option *option = &variant->var.options[i];

		mappings[i].label = option->display;
		mappings[i].ranges = option->ranges;
		mappings[i].n_ranges = option->n_ranges;
	}
	tag->num.mappings = mappings;
	tag->num.n_mappings = variant->var.n_options;
	tag->num.is_enum = true;
	return KYMO_OK;
}

static const struct ky_mapping *find_label(const struct ky_field_class *tag, const char *name)
{
	for (size_t i = 0; i < tag->num.n_mappings; i++) {
		if (strcmp(tag->num.mappings[i].label, name) == 0)
			return &tag->num.mappings[i];
	}
	return NULL;
}

/* An option is found by its label, which may bear the '_' that its name is shown without. */
static int rename_option(struct lowering *l, const struct ky_field_class *variant,
			 struct ky_option *option)
{
	const struct ky_field_class *tag = variant->var.selector->target;
	const char *with;

	with = ky_arena_printf(&l->trace->arena, "_%s", option->display);
	if (!with)
		return ky_error_nomem(l->err);
	if (ky_field_is_num(tag) && !find_label(tag, option->display) && find_label(tag, with)) {
		option->name = with;
		return KYMO_OK;
	}
	option->name = plain_name(l, option->display, false);
	if (!option->name)
		return ky_error_nomem(l->err);
	return ky_tsdl_is_name(option->name) ? KYMO_OK : no_word(l, "its name is no identifier");
}

static bool same_ranges(const struct ky_mapping *mapping, const struct ky_option *option)
{
	return mapping && mapping->n_ranges == option->n_ranges &&
	       memcmp(mapping->ranges, option->ranges,
		      option->n_ranges * sizeof(*option->ranges)) == 0;
}

/*
 * An optional field is a variant: of nothing, and of the field. Its selector, when it is an integer,
 * gets labels for that; one that has its own labels already cannot serve.
 */
static int lower_optional(struct lowering *l, struct ky_field_class *cls)
{
	struct ky_field_class *tag = cls->var.selector->target;
	struct ky_option *options = ky_arena_array(&l->trace->arena, 2, sizeof(*options));
	const char *absent = "absent", *present = "present";
	int ret = KYMO_OK;

	if (!options)
		return ky_error_nomem(l->err);
	options[1] = cls->var.options[0];
	options[0].cls = ky_field_class_new(l->trace, KY_FIELD_STRUCT);
	if (!options[0].cls)
		return ky_error_nomem(l->err);
	if (cls->var.selector->n_more)
		return no_word(l, "it is optional, and one of several fields selects it");
	if (!options[1].n_ranges) {
		absent = "false";
		present = "true";
	} else if (!tag->num.n_mappings) {
		ret = label_two(l, tag, present, options[1].ranges, options[1].n_ranges, absent);
	} else if (!same_ranges(find_label(tag, present), &options[1])) {
		return no_word(l, "it is optional, and what selects it has labels");
	}
	options[0].name = options[0].display = absent;
	options[1].name = options[1].display = present;
	cls->kind = KY_FIELD_VARIANT;
	cls->var.options = options;
	cls->var.n_options = 2;
	return ret;
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
		ret = rename_member(l, parent, i);
	} else if (parent->kind == KY_FIELD_VARIANT) {
		struct ky_option *option = &parent->var.options[i];

		ky_strbuf_addf(&l->path, ".%s", option->display);
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
	if (ky_field_is_num(cls))
		return lower_number(l, cls);
	if (cls->kind == KY_FIELD_BLOB)
		return lower_blob(l, cls);
	if (cls->kind == KY_FIELD_STRING || cls->kind == KY_FIELD_TEXT)
		return lower_text(cls);
	if (cls->kind == KY_FIELD_ARRAY)
		cls->array.min_align_bits = 0;
	if (cls->kind == KY_FIELD_STRUCT)
		ret = split_roles(l, cls);
	else if (cls->kind == KY_FIELD_OPTIONAL)
		ret = lower_optional(l, cls);
	else if (cls->kind == KY_FIELD_VARIANT)
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

		/* LTTng's "monotonic" counts from the Unix epoch, whatever else is said. */
		if (ky_tsdl_is_name(clock->name) &&
		    (clock->is_unix_epoch || !ky_clock_is_lttng_monotonic(l->trace, clock)))
			continue;
		clock->name = ky_arena_printf(&l->trace->arena, "clock_%zu", i);
		if (!clock->name)
			return ky_error_nomem(l->err);
	}
	return KYMO_OK;
}

KY_DEEP1(const struct ky_field_class *, first_number, const struct ky_field_class *)

/* The first number of at least two bytes. */
static const struct ky_field_class *first_number(const struct ky_field_class *cls)
{
	const struct ky_field_class *found = NULL;

	if (!cls)
		return NULL;
	if (ky_field_is_num(cls))
		return cls->num.length_bits > 8 ? cls : NULL;
	for (size_t i = 0; i < ky_field_n_children(cls) && !found; i++)
		found = first_number_deep(NULL, ky_field_child(cls, i));
	return found;
}

/* A trace of CTF 1.8 has a byte order of its own: the one that its packets begin with. */
static void choose_byte_order(struct ky_trace_class *trace)
{
	const struct ky_field_class *first = first_number(trace->packet_header);

	for (size_t i = 0; i < trace->streams.len && !first; i++) {
		first = first_number(trace->streams.data[i]->packet_context);
		if (!first)
			first = first_number(trace->streams.data[i]->event_header);
	}
	for (size_t i = 0; i < trace->events.len && !first; i++)
		first = first_number(trace->events.data[i]->payload);
	if (first)
		trace->big_endian = first->num.big_endian;
}

static int lower_trace(struct lowering *l)
{
	int ret = lower_clocks(l);

	choose_byte_order(l->trace);
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
		     struct ky_strbuf *notes, struct kymo_error *err)
{
	struct lowering l = {.notes = notes, .err = err};
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
