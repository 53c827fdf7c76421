/* SPDX-License-Identifier: MIT */
/* Do two trace models describe the same bytes, or at least the same values? */
#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/metadata/downgrade.h"
#include "ctf/metadata/same-labels.h"
#include "ctf/model/unicode.h"
#include "ctf/model/walk.h"

struct comparison {
	bool may_differ; /* in bits, where the values are the same */
	bool differ;	 /* and they do */
	uint32_t *
		slots; /* by slot of the first trace model: the one of the same field in the second */
	/* Copies of lengths and selectors in the second, for the field at hand. */
	const struct ky_member *copies;
	size_t n_copies;
	size_t n_used;
};

KY_DEEP3(bool, same_layout_same_class, struct comparison *, const struct ky_field_class *,
	 const struct ky_field_class *)

/* May the bits differ? Then they do. */
static bool differ(struct comparison *c)
{
	c->differ = true;
	return c->may_differ;
}

/* Copies stand in the order of those that need them (ky_downgrade_length()). */
static bool is_next_copy(struct comparison *c, const struct ky_field_ref *a,
			 const struct ky_field_ref *b)
{
	const struct ky_field_class *copy = b->target;

	if (c->n_used == c->n_copies || c->copies[c->n_used].cls != copy || b->n_more)
		return false;
	c->n_used++;
	return copy->num.length_bits == 64 && !copy->num.clock && copy->role == KY_ROLE_NONE &&
	       ky_field_is_signed(copy) == ky_field_is_signed(a->target) && differ(c);
}

static bool same_ref(struct comparison *c, const struct ky_field_ref *a,
		     const struct ky_field_ref *b)
{
	if (!a || !b)
		return !a && !b;
	if (is_next_copy(c, a, b))
		return true;
	return a->scope == b->scope && a->n_more == b->n_more &&
	       c->slots[a->target->slot] == b->target->slot;
}

static bool same_kind(const struct ky_field_class *a, const struct ky_field_class *b)
{
	if (a->kind == b->kind)
		return true;
	return b->kind == KY_FIELD_UINT &&
	       (a->kind == KY_FIELD_BITS || a->kind == KY_FIELD_BOOL || a->kind == KY_FIELD_BITMAP);
}

static bool same_bits(const struct ky_field_class *a, const struct ky_field_class *b)
{
	return a->num.length_bits == b->num.length_bits && a->align_bits == b->align_bits &&
	       a->num.unit_bits == b->num.unit_bits && a->num.big_endian == b->num.big_endian &&
	       a->num.bits_reversed == b->num.bits_reversed;
}

/* Can all values of @a be written as @b? */
static bool same_values(const struct ky_field_class *a, const struct ky_field_class *b)
{
	if (a->kind == KY_FIELD_VARUINT)
		return b->kind == KY_FIELD_UINT && b->num.length_bits == 64;
	if (a->kind == KY_FIELD_VARSINT)
		return b->kind == KY_FIELD_SINT && b->num.length_bits == 64;
	/* Yes or no. */
	if (a->kind == KY_FIELD_BOOL && a->num.length_bits > 64)
		return b->kind == KY_FIELD_UINT;
	return same_kind(a, b) && a->num.length_bits == b->num.length_bits;
}

static bool same_layout_same_numbers(struct comparison *c, const struct ky_field_class *a,
				     const struct ky_field_class *b)
{
	if (!ky_same_labels(a, b) || !a->num.clock != !b->num.clock)
		return false;
	if (a->slot != KY_NO_SLOT)
		c->slots[a->slot] = b->slot;
	return (same_kind(a, b) && same_bits(a, b)) || (same_values(a, b) && differ(c));
}

/* A number of more than 64 bits, and the words that it consists of, as ky_downgrade_number() has them. */
static bool same_words(struct comparison *c, const struct ky_field_class *a,
		       const struct ky_field_class *b)
{
	uint32_t bits = a->num.length_bits, n = (bits + 63) / 64;

	if (a->kind == KY_FIELD_BOOL || bits <= (a->kind == KY_FIELD_FLOAT ? 128 : 64) ||
	    a->align_bits != b->align_bits || b->st.n_members != n || b->fixed_bits != bits)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct ky_field_class *word =
			b->st.members[a->num.big_endian ? n - 1 - i : i].cls;
		uint32_t want = bits - 64 * i < 64 ? bits - 64 * i : 64;

		if (!ky_field_is_num(word) || word->num.length_bits != want ||
		    word->num.big_endian != a->num.big_endian || word->slot != KY_NO_SLOT)
			return false;
	}
	return !a->num.bits_reversed || differ(c);
}

static bool same_layout_is_uuid(const struct ky_field_class *cls)
{
	return cls->role == KY_ROLE_TRACE_UUID;
}

static bool same_option(struct comparison *c, const struct ky_option *a, const struct ky_option *b)
{
	return ky_same_ranges(a->ranges, a->n_ranges, b->ranges, b->n_ranges) &&
	       same_layout_same_class_deep(false, c, a->cls, b->cls);
}

static bool same_layout_is_never(const struct ky_option *option)
{
	return !option->n_ranges || ky_range_is_never(option->ranges);
}

/* Options that nothing selects do not count. */
static size_t next_option(const struct ky_field_class *cls, size_t i)
{
	while (i < cls->var.n_options && same_layout_is_never(&cls->var.options[i]))
		i++;
	return i;
}

/*
 * Values are written anew by the number of their option. What no value selects in @a may have got a
 * number, which no value has either.
 */
static bool same_in_order(struct comparison *c, const struct ky_field_class *a,
			  const struct ky_field_class *b)
{
	if (a->var.n_options != b->var.n_options)
		return false;
	for (size_t i = 0; i < a->var.n_options; i++) {
		const struct ky_option *option = &a->var.options[i], *other = &b->var.options[i];

		if (same_layout_is_never(option)
			    ? !same_layout_same_class_deep(false, c, option->cls, other->cls)
			    : !same_option(c, option, other))
			return false;
	}
	return true;
}

static bool same_options(struct comparison *c, const struct ky_field_class *a,
			 const struct ky_field_class *b)
{
	size_t i = next_option(a, 0), j = next_option(b, 0);

	if (c->may_differ)
		return same_in_order(c, a, b);
	while (i < a->var.n_options && j < b->var.n_options) {
		if (!same_option(c, &a->var.options[i], &b->var.options[j]))
			return false;
		i = next_option(a, i + 1);
		j = next_option(b, j + 1);
	}
	return i >= a->var.n_options && j >= b->var.n_options;
}

/* A field of several roles, and as many fields of one role each, from @first on. */
static size_t same_roles(struct comparison *c, const struct ky_field_class *a,
			 const struct ky_field_class *b, size_t first)
{
	struct ky_field_class one = *a;
	uint32_t roles = a->more_roles;
	size_t i = first;

	one.more_roles = 0;
	for (; i < b->st.n_members; i++) {
		const struct ky_field_class *cls = b->st.members[i].cls;

		if (cls->role != one.role || !ky_field_is_num(a) || !ky_field_is_num(cls))
			return 0;
		if (cls->role != KY_ROLE_CLOCK_BEGIN && cls->role != KY_ROLE_CLOCK_END)
			one.num.clock = NULL;
		if (!same_layout_same_class_deep(false, c, &one, cls))
			return 0;
		if (!roles)
			return differ(c) ? i + 1 - first : 0;
		one.num.clock = a->num.clock;
		one.role = (enum ky_role)__builtin_ctz(roles);
		/* It is the first that others refer to. */
		one.slot = KY_NO_SLOT;
		roles &= roles - 1;
	}
	return 0;
}

/* One that is no number, and the copies before it that tell its lengths and options. */
static size_t same_member(struct comparison *c, const struct ky_field_class *a,
			  const struct ky_field_class *b, size_t first)
{
	struct comparison outer = *c;
	size_t n = 0;
	bool same;

	while (c->may_differ && !ky_field_is_num(a) && first + n < b->st.n_members &&
	       ky_field_is_num(b->st.members[first + n].cls))
		n++;
	if (first + n == b->st.n_members)
		return 0;
	c->copies = &b->st.members[first];
	c->n_copies = n;
	c->n_used = 0;
	same = same_layout_same_class_deep(false, c, a, b->st.members[first + n].cls) &&
	       c->n_used == n;
	c->copies = outer.copies;
	c->n_copies = outer.n_copies;
	c->n_used = outer.n_used;
	return same ? n + 1 : 0;
}

/* Has a member behind member @i of @st its role, too? Then that one counts. */
static bool is_outdone(const struct ky_field_class *st, size_t i)
{
	enum ky_role role = st->st.members[i].cls->role;

	for (size_t j = i + 1; j < st->st.n_members && role != KY_ROLE_NONE; j++) {
		const struct ky_field_class *cls = st->st.members[j].cls;

		if (cls->role == role || cls->more_roles & UINT32_C(1) << role)
			return true;
	}
	return false;
}

/* Without its role, which did not count; a time always does. */
static const struct ky_field_class *without_role(const struct ky_field_class *cls,
						 struct ky_field_class *plain)
{
	if (cls->role == KY_ROLE_CLOCK_BEGIN || cls->more_roles)
		return cls;
	*plain = *cls;
	plain->role = KY_ROLE_NONE;
	if (ky_field_is_num(plain))
		plain->num.clock = NULL;
	return plain;
}

static bool same_members(struct comparison *c, const struct ky_field_class *a,
			 const struct ky_field_class *b)
{
	size_t at = 0, n;

	if (a->align_bits != b->align_bits && !differ(c))
		return false;
	for (size_t i = 0; i < a->st.n_members; i++) {
		const struct ky_field_class *cls = a->st.members[i].cls;
		struct ky_field_class plain;

		if (at >= b->st.n_members)
			return false;
		if (b->st.members[at].cls->role == KY_ROLE_NONE && is_outdone(a, i))
			cls = without_role(cls, &plain);
		if (cls->more_roles && c->may_differ)
			n = same_roles(c, cls, b, at);
		else
			n = same_member(c, cls, b, at);
		if (!n)
			return false;
		at += n;
	}
	return at == b->st.n_members;
}

/* A BLOB, and the array of bytes that says the same. */
static bool same_bytes(const struct ky_field_class *a, const struct ky_field_class *b)
{
	if (b->kind == KY_FIELD_BLOB)
		return a->text.length_ref || a->text.length_bytes == b->text.length_bytes;
	return b->kind == KY_FIELD_ARRAY && a->align_bits == b->align_bits &&
	       b->array.element->kind == KY_FIELD_UINT && b->array.element->num.length_bits == 8 &&
	       (a->text.length_ref || a->text.length_bytes == b->array.length);
}

/* An optional field, and the variant of nothing and it. */
static bool same_optional(struct comparison *c, const struct ky_field_class *a,
			  const struct ky_field_class *b)
{
	const struct ky_option *option = b->var.options;

	if (b->kind == KY_FIELD_OPTIONAL)
		return same_option(c, a->var.options, option);
	if (b->kind != KY_FIELD_VARIANT || b->var.n_options != 2 ||
	    option->cls->kind != KY_FIELD_STRUCT || option->cls->st.n_members)
		return false;
	option++;
	/* Selected by a boolean: by all that is not 0. */
	if (!a->var.options->n_ranges)
		return option->n_ranges == 1 && option->ranges->begin.u == 1 &&
		       same_layout_same_class_deep(false, c, a->var.options->cls, option->cls);
	if (ky_range_is_never(a->var.options->ranges))
		return same_layout_same_class_deep(false, c, a->var.options->cls, option->cls);
	return same_option(c, a->var.options, option);
}

static bool same_layout_is_wide(const struct ky_field_class *cls)
{
	return (cls->kind == KY_FIELD_STRING || cls->kind == KY_FIELD_TEXT) &&
	       cls->text.encoding > KY_ENCODING_ASCII;
}

static bool same_array(struct comparison *c, const struct ky_field_class *a,
		       const struct ky_field_class *b)
{
	if (!a->array.length_ref && a->array.length != b->array.length)
		return false;
	if (a->align_bits != b->align_bits && !differ(c))
		return false;
	return same_layout_same_class_deep(false, c, a->array.element, b->array.element);
}

static bool same_layout_same_class(struct comparison *c, const struct ky_field_class *a,
				   const struct ky_field_class *b)
{
	/* 16 integers or a BLOB, and CTF 2 has no role for it when the metadata tells no UUID. */
	if (same_layout_is_uuid(a) || same_layout_is_uuid(b))
		return a->align_bits == b->align_bits && a->fixed_bits == b->fixed_bits;
	if (a->role != b->role || a->more_roles != b->more_roles)
		return false;
	if (ky_field_is_num(a) && b->kind == KY_FIELD_STRUCT)
		return same_words(c, a, b);
	if (ky_field_is_num(a))
		return ky_field_is_num(b) && same_layout_same_numbers(c, a, b);
	/* In UTF-8 it is as long as it is. */
	if (same_layout_is_wide(a) && !same_layout_is_wide(b))
		return b->kind == KY_FIELD_STRING && differ(c);
	if (!same_ref(c, ky_field_ref_of(a), ky_field_ref_of(b)))
		return false;
	if (a->kind == KY_FIELD_BLOB)
		return same_bytes(a, b);
	if (a->kind == KY_FIELD_OPTIONAL)
		return same_optional(c, a, b);
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case KY_FIELD_TEXT:
		return a->text.length_ref || a->text.length_bytes == b->text.length_bytes;
	case KY_FIELD_ARRAY:
		return same_array(c, a, b);
	case KY_FIELD_STRUCT:
		return same_members(c, a, b);
	case KY_FIELD_VARIANT:
		return same_options(c, a, b);
	default:
		return true;
	}
}

static bool same_root(struct comparison *c, const struct ky_field_class *a,
		      const struct ky_field_class *b)
{
	/* A struct without members describes nothing. */
	if (!a || !b)
		return (!a || !a->st.n_members) && (!b || !b->st.n_members);
	return same_layout_same_class_deep(false, c, a, b);
}

static int differs(struct kymo_error *err, enum ky_scope scope, const char *of)
{
	return ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "%s%s%s cannot be described in the other version of CTF",
			    ky_scope_name(scope), *of ? " of " : "", of);
}

/* Where no header tells ids, there is one event that any has: the first. */
static const struct ky_event_class *event_told(const struct ky_stream_class *stream, uint64_t id)
{
	const struct ky_event_class *event = ky_map_get(&stream->events_by_id, id);

	if (event && ky_event_class_id_told(event) == id)
		return event;
	event = stream->events.len ? stream->events.data[0] : NULL;
	return event && ky_event_class_id_told(event) == id ? event : NULL;
}

static int same_event(struct comparison *c, const struct ky_event_class *a,
		      const struct ky_stream_class *stream, struct kymo_error *err)
{
	const struct ky_event_class *b = event_told(stream, ky_event_class_id_told(a));

	if (!b || !ky_utf8_same(a->name, b->name))
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "event %s cannot be described in the other version of CTF",
				    a->name);
	if (!same_root(c, a->context, b->context))
		return differs(err, KY_SCOPE_EVENT_CONTEXT, a->name);
	if (!same_root(c, a->payload, b->payload))
		return differs(err, KY_SCOPE_PAYLOAD, a->name);
	return KYMO_OK;
}

static int same_layout_same_stream(struct comparison *c, const struct ky_stream_class *a,
				   const struct ky_stream_class *b, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!same_root(c, a->packet_context, b->packet_context))
		return differs(err, KY_SCOPE_PACKET_CONTEXT, "");
	if (!same_root(c, a->event_header, b->event_header))
		return differs(err, KY_SCOPE_EVENT_HEADER, "");
	if (!same_root(c, a->event_context, b->event_context))
		return differs(err, KY_SCOPE_STREAM_CONTEXT, "");
	if (!a->clock != !b->clock ||
	    (a->clock && (a->clock->base_ns != b->clock->base_ns ||
			  a->clock->is_unix_epoch != b->clock->is_unix_epoch ||
			  a->clock->frequency_hz != b->clock->frequency_hz)))
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "the clock cannot be described in the other version of CTF");
	for (size_t i = 0; i < a->events.len && ret == KYMO_OK; i++) {
		if (ky_event_class_is_used(a->events.data[i]))
			ret = same_event(c, a->events.data[i], b, err);
	}
	return ret;
}

static int same_layout_same_trace(struct comparison *c, const struct ky_trace_class *a,
				  const struct ky_trace_class *b, struct kymo_error *err)
{
	bool missing = false;
	size_t n = 0;
	int ret = KYMO_OK;

	if (!same_root(c, a->packet_header, b->packet_header))
		return differs(err, KY_SCOPE_PACKET_HEADER, "");
	for (size_t i = 0; i < a->streams.len && ret == KYMO_OK; i++) {
		if (!ky_stream_class_is_used(a->streams.data[i]))
			continue;
		if (n < b->streams.len)
			ret = same_layout_same_stream(c, a->streams.data[i], b->streams.data[n++],
						      err);
		else
			missing = true;
	}
	if (ret == KYMO_OK && (missing || n != b->streams.len))
		ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
				   "a stream cannot be described in the other version of CTF");
	return ret;
}

int ky_same_layout(const struct ky_trace_class *a, const struct ky_trace_class *b, bool *anew,
		   struct kymo_error *err)
{
	struct comparison c = {.may_differ = a->major == 2 && b->major == 1};
	int ret;

	c.slots = calloc((size_t)a->n_slots + 1, sizeof(*c.slots));
	if (!c.slots)
		return ky_error_nomem(err);
	ret = same_layout_same_trace(&c, a, b, err);
	free(c.slots);
	*anew = c.differ;
	return ret;
}
