/* SPDX-License-Identifier: MIT */
#include "ctf/encode/transcode.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/deep.h"
#include "base/error.h"
#include "base/text.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/model/unicode.h"
#include "ctf/model/walk.h"

/* n_below holds 32 bits, and a limit of its own guards what is decoded. */
#define VALUES_MAX UINT32_MAX

struct run {
	struct ky_transcode *transcode;
	const struct ky_value *at;
	struct ky_values *out;
	char *text; /* where the next one goes */
};

/* ---- what copies are for -------------------------------------------------------------------- */

KY_DEEP3(int, pair, struct ky_transcode *, const struct ky_field_class *,
	 const struct ky_field_class *)

static int pair_members(struct ky_transcode *transcode, const struct ky_field_class *a,
			const struct ky_field_class *b)
{
	const struct ky_member *to = b->st.members;
	int ret = KYMO_OK;

	for (size_t i = 0; i < a->st.n_members && ret == KYMO_OK; i++) {
		const struct ky_field_class *cls = a->st.members[i].cls;

		if (ky_field_is_num(cls)) {
			to += 1 + __builtin_popcount(cls->more_roles);
			continue;
		}
		while (ky_field_is_num(to->cls))
			to++;
		ret = pair_deep(KYMO_E_MEMORY, transcode, cls, to++->cls);
	}
	return ret;
}

/* What refers to something in @a refers in @b to the same, or to a copy. */
static int pair(struct ky_transcode *transcode, const struct ky_field_class *a,
		const struct ky_field_class *b)
{
	struct ky_field_ref *was = ky_field_ref_of(a), *is = ky_field_ref_of(b);
	int ret = KYMO_OK;

	if (was && is)
		ret = ky_map_set(&transcode->copies, (uint64_t)(uintptr_t)is->target, was);
	if (ret < 0)
		return ret;
	switch (a->kind) {
	case KY_FIELD_STRUCT:
		return pair_members(transcode, a, b);
	case KY_FIELD_ARRAY:
		return pair_deep(KYMO_E_MEMORY, transcode, a->array.element, b->array.element);
	case KY_FIELD_OPTIONAL:
		return pair_deep(KYMO_E_MEMORY, transcode, a->var.options[0].cls,
				 b->var.options[1].cls);
	case KY_FIELD_VARIANT:
		for (size_t i = 0; i < a->var.n_options && ret == KYMO_OK; i++)
			ret = pair_deep(KYMO_E_MEMORY, transcode, a->var.options[i].cls,
					b->var.options[i].cls);
		return ret;
	default:
		return KYMO_OK;
	}
}

static int pair_roots(struct ky_transcode *transcode, const struct ky_field_class *a,
		      const struct ky_field_class *b)
{
	return a && b ? pair(transcode, a, b) : KYMO_OK;
}

static int pair_stream(struct ky_transcode *transcode, const struct ky_stream_class *a,
		       const struct ky_stream_class *b)
{
	int ret = pair_roots(transcode, a->packet_context, b->packet_context);

	if (ret == KYMO_OK)
		ret = pair_roots(transcode, a->event_header, b->event_header);
	if (ret == KYMO_OK)
		ret = pair_roots(transcode, a->event_context, b->event_context);
	for (size_t i = 0; i < a->events.len && ret == KYMO_OK; i++) {
		const struct ky_event_class *was = a->events.data[i];
		const struct ky_event_class *is = ky_map_get(&b->events_by_id, was->id);

		if (!ky_event_class_is_used(was))
			continue;
		ret = pair_roots(transcode, was->context, is->context);
		if (ret == KYMO_OK)
			ret = pair_roots(transcode, was->payload, is->payload);
	}
	return ret;
}

int ky_transcode_init(struct ky_transcode *transcode, const struct ky_trace_class *trace,
		      const struct ky_trace_class *as)
{
	size_t n = 0;
	int ret;

	*transcode = (struct ky_transcode){.text = NULL};
	ky_values_init(&transcode->in);
	ky_map_init(&transcode->copies);
	if (!as)
		return KYMO_OK;
	ret = pair_roots(transcode, trace->packet_header, as->packet_header);
	for (size_t i = 0; i < trace->streams.len && ret == KYMO_OK; i++) {
		if (ky_stream_class_is_used(trace->streams.data[i]))
			ret = pair_stream(transcode, trace->streams.data[i], as->streams.data[n++]);
	}
	return ret;
}

void ky_transcode_fini(struct ky_transcode *transcode)
{
	ky_values_fini(&transcode->in);
	ky_map_fini(&transcode->copies);
	free(transcode->text);
}

/* ---- values --------------------------------------------------------------------------------- */

static int transcode_push(struct run *r, const struct ky_value *value)
{
	if (r->out->list.len >= VALUES_MAX)
		return KYMO_E_LIMIT;
	return ky_vec_push(&r->out->list, *value) < 0 ? KYMO_E_MEMORY : KYMO_OK;
}

/* ---- text --------------------------------------------------------------------------------- */

static bool transcode_is_wide(const struct ky_field_class *cls)
{
	return (cls->kind == KY_FIELD_STRING || cls->kind == KY_FIELD_TEXT) &&
	       cls->text.encoding > KY_ENCODING_ASCII;
}

/* A float whose bits lie elsewhere, and are not in the value itself. */
static bool is_long_float(const struct ky_field_class *cls)
{
	return cls->kind == KY_FIELD_FLOAT && cls->num.length_bits == 128 && cls->num.bits_reversed;
}

/* Room for all texts of the scope, whose two bytes become three at most, and for long floats. */
static int reserve_text(struct ky_transcode *transcode)
{
	size_t bytes = 0;
	char *text;

	ky_vec_foreach(&transcode->in.list, v) {
		if (transcode_is_wide(v->cls))
			bytes += v->str.len_bytes + v->str.len_bytes / 2;
		else if (is_long_float(v->cls))
			bytes += 16;
	}
	/* Empty texts have a place, too. */
	if (transcode->text && bytes <= transcode->text_bytes)
		return KYMO_OK;
	text = realloc(transcode->text, bytes + 1);
	if (!text)
		return KYMO_E_MEMORY;
	transcode->text = text;
	transcode->text_bytes = bytes;
	return KYMO_OK;
}

static int transcode_text(struct run *r, const struct ky_value *v, const struct ky_field_class *as)
{
	struct ky_value out = {.cls = as, .name = v->name};
	const uint8_t *from = (const uint8_t *)v->str.data;
	size_t left = v->str.len_bytes, n;
	uint32_t code;

	out.str.data = r->text;
	while (left && (n = ky_unicode_next(v->cls->text.encoding, from, left, &code))) {
		r->text += ky_utf8_put(r->text, code);
		from += n;
		left -= n;
	}
	out.str.len_bytes = (size_t)(r->text - out.str.data);
	return transcode_push(r, &out);
}

/* A BLOB is an array of bytes. */
static int transcode_blob(struct run *r, const struct ky_value *v, const struct ky_field_class *as)
{
	struct ky_value out = {.cls = as, .name = v->name};
	struct ky_value byte = {.cls = as->array.element};
	int ret;

	out.n_below = out.n_children = (uint32_t)v->str.len_bytes;
	ret = transcode_push(r, &out);
	for (size_t i = 0; i < v->str.len_bytes && ret == KYMO_OK; i++) {
		byte.u = (uint8_t)v->str.data[i];
		ret = transcode_push(r, &byte);
	}
	return ret;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* A structure of words, least significant first when it is little-endian. */
static int transcode_words(struct run *r, const struct ky_value *v, const struct ky_field_class *as)
{
	struct ky_value out = {.cls = as, .name = v->name}, word = {.n_below = 0};
	uint32_t n = (uint32_t)as->st.n_members;
	int ret;

	out.n_below = out.n_children = n;
	ret = transcode_push(r, &out);
	for (uint32_t i = 0; i < n && ret == KYMO_OK; i++) {
		word.cls = as->st.members[i].cls;
		word.name = as->st.members[i].display;
		word.u = ky_value_word(v, word.cls->num.big_endian ? n - 1 - i : i);
		ret = transcode_push(r, &word);
	}
	return ret;
}

/* The same float with its bits in the usual order, borrowed from r->text. */
static int transcode_long_float(struct run *r, const struct ky_value *v,
				const struct ky_field_class *as)
{
	struct ky_value out = {.cls = as, .name = v->name};
	uint8_t *to = (uint8_t *)r->text;

	for (unsigned int i = 0; i < 2; i++)
		ky_write_bits(to, as->num.big_endian ? 64 - 64 * i : 64 * i, 64,
			      ky_value_word(v, i), as->num.big_endian);
	r->text += 16;
	out.f = v->f;
	out.f_data = to;
	return transcode_push(r, &out);
}

/* What has the place of @v->cls, or one of its other roles. */
static int transcode_number(struct run *r, const struct ky_value *v,
			    const struct ky_field_class *as)
{
	struct ky_value out = *v;

	if (as->kind == KY_FIELD_STRUCT)
		return transcode_words(r, v, as);
	if (is_long_float(v->cls))
		return transcode_long_float(r, v, as);
	if (v->cls->slot != KY_NO_SLOT)
		r->transcode->in.slots[v->cls->slot] = v->u;
	out.cls = as;
	if (v->cls->kind == KY_FIELD_VARUINT || v->cls->kind == KY_FIELD_VARSINT) {
		out.n_children = 0;
		if (v->cls->num.clock && as->role == KY_ROLE_CLOCK_BEGIN)
			out.u = r->transcode->begin_cycles;
		else if (v->cls->num.clock && as->role == KY_ROLE_CLOCK_END)
			out.u = r->transcode->end_cycles;
	}
	return transcode_push(r, &out);
}

/* A copy of what tells the length or option of the next member, if it is there: what was decoded last. */
static int transcode_copy(struct run *r, const struct ky_member *copy)
{
	const struct ky_field_ref *ref =
		ky_map_get(&r->transcode->copies, (uint64_t)(uintptr_t)copy->cls);
	const struct ky_cursor c = {.slots = r->transcode->in.slots};
	struct ky_value out = {.cls = copy->cls, .name = copy->display};

	if (ky_is_there(&c, ref))
		out.u = c.slots[ref->target->slot];
	return transcode_push(r, &out);
}

/* ---- fields that contain others ----------------------------------------------------------- */

KY_DEEP2(int, transcode_value, struct run *, const struct ky_field_class *)

static int transcode_members(struct run *r, const struct ky_value *st,
			     const struct ky_field_class *as)
{
	const struct ky_member *to = as->st.members;
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < st->n_children && ret == KYMO_OK; i++) {
		const struct ky_value *member = r->at;

		while (!ky_field_is_num(member->cls) && ky_field_is_num(to->cls) && ret == KYMO_OK)
			ret = transcode_copy(r, to++);
		if (ret == KYMO_OK)
			ret = transcode_value_deep(KYMO_E_MEMORY, r, to++->cls);
		for (uint32_t more = member->cls->more_roles; more && ret == KYMO_OK;
		     more &= more - 1)
			ret = transcode_number(r, member, to++->cls);
	}
	return ret;
}

/* What is not there has an empty structure in its place. */
static int transcode_option(struct run *r, const struct ky_value *v,
			    const struct ky_field_class *as)
{
	const struct ky_cursor c = {.slots = r->transcode->in.slots};
	struct ky_value nothing = {.n_below = 0};

	if (v->cls->var.count_slot != KY_NO_SLOT)
		(void)ky_option_enter(&c, v->cls);
	if (v->cls->kind == KY_FIELD_VARIANT)
		return transcode_value_deep(KYMO_E_MEMORY, r,
					    as->var.options[v->option - v->cls->var.options].cls);
	if (v->n_children)
		return transcode_value_deep(KYMO_E_MEMORY, r, as->var.options[1].cls);
	nothing.cls = as->var.options[0].cls;
	return transcode_push(r, &nothing);
}

/* The children of @v, which are next. */
static int transcode_below(struct run *r, const struct ky_value *v, const struct ky_field_class *as)
{
	int ret = KYMO_OK;

	if (v->cls->kind == KY_FIELD_STRUCT)
		return transcode_members(r, v, as);
	if (v->cls->kind != KY_FIELD_ARRAY)
		return transcode_option(r, v, as);
	for (uint32_t i = 0; i < v->n_children && ret == KYMO_OK; i++)
		ret = transcode_value_deep(KYMO_E_MEMORY, r, as->array.element);
	return ret;
}

/* The value at r->at, and all below it. */
static int transcode_value(struct run *r, const struct ky_field_class *as)
{
	const struct ky_value *v = r->at++;
	size_t index = r->out->list.len;
	struct ky_value out = *v;
	int ret;

	if (ky_field_is_num(v->cls))
		return transcode_number(r, v, as);
	if (transcode_is_wide(v->cls))
		return transcode_text(r, v, as);
	if (v->cls->kind == KY_FIELD_BLOB && as->kind == KY_FIELD_ARRAY)
		return transcode_blob(r, v, as);
	out.cls = as;
	ret = transcode_push(r, &out);
	if (ret < 0 || v->cls->kind == KY_FIELD_STRING || v->cls->kind == KY_FIELD_TEXT ||
	    v->cls->kind == KY_FIELD_BLOB)
		return ret;
	ret = transcode_below(r, v, as);
	if (ret == KYMO_OK)
		r->out->list.data[index].n_below = (uint32_t)(r->out->list.len - index - 1);
	return ret;
}

int ky_transcode_scope(struct ky_transcode *transcode, const struct ky_field_class *root,
		       struct ky_values *out, struct kymo_error *err)
{
	struct run r = {.transcode = transcode, .at = transcode->in.list.data, .out = out};
	int ret = reserve_text(transcode);

	ky_vec_clear(&out->list);
	r.text = transcode->text;
	if (ret == KYMO_OK && root && transcode->in.list.len)
		ret = transcode_value(&r, root);
	if (ret == KYMO_E_LIMIT)
		return ky_error_set(err, KYMO_E_LIMIT, "an event of too many values");
	return ret < 0 ? ky_error_nomem(err) : ret;
}
