/* SPDX-License-Identifier: MIT */
#include "ctf/decode/plan-interpreter.h"

#include <string.h>

#include "base/bits.h"
#include "base/deep.h"
#include "base/error.h"
#include "ctf/model/walk.h"

/*
 * Bounds that data cannot talk us out of: values in one scope, and array elements of one event
 * that cost no bit, however deep they are nested.
 */
#define VALUES_MAX	(UINT32_C(1) << 24)
#define EMPTY_ITEMS_MAX 1024u

static int past_end(const struct ky_cursor *c, const struct ky_step *step, uint64_t bits,
		    struct kymo_error *err)
{
	return ky_error_set(
		err, KYMO_E_FORMAT,
		"field%s%s of %llu bits goes past the packet's content (%llu bits left)",
		step->name ? " " : "", step->name ? step->name : "", (unsigned long long)bits,
		(unsigned long long)(c->end_bits - c->at_bits));
}

/* Move to a multiple of @align; the padding must lie within the content. */
static inline int align_cursor(struct ky_cursor *c, const struct ky_step *step, uint32_t align,
			       struct kymo_error *err)
{
	uint64_t at = ky_align_up(c->at_bits, align);

	if (__builtin_expect(at > c->end_bits, 0))
		return past_end(c, step, at - c->at_bits, err);
	c->at_bits = at;
	return KYMO_OK;
}

static inline bool plan_interpreter_has_room(const struct ky_cursor *c, uint64_t bits)
{
	return bits <= c->end_bits - c->at_bits;
}

/* Add a value; NULL when there is no room for more. */
static struct ky_value *plan_interpreter_push_value(struct ky_cursor *c, const struct ky_step *step)
{
	struct ky_values *values = c->values;
	struct ky_value *value;

	if (values->list.len >= VALUES_MAX || ky_vec_reserve(&values->list, 1) < 0)
		return NULL;
	value = &values->list.data[values->list.len++];
	value->cls = step->cls;
	value->name = step->name;
	value->n_below = 0;
	value->n_children = 0;
	return value;
}

static int no_value(const struct ky_cursor *c, struct kymo_error *err)
{
	if (c->values->list.len >= VALUES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "more than %u values in one event scope",
				    VALUES_MAX);
	return ky_error_nomem(err);
}

/* ---- leaves ------------------------------------------------------------------------------ */

static int check_shared_byte(struct ky_cursor *c, const struct ky_field_class *cls,
			     struct kymo_error *err)
{
	/* Reading may begin inside of a byte, with a scope or a field: then nothing is known. */
	if ((c->at_bits & 7) && c->has_order && c->last_big_endian != cls->num.big_endian)
		return ky_error_set(err, KYMO_E_FORMAT, "the byte order changes inside a byte");
	c->has_order = true;
	c->last_big_endian = cls->num.big_endian;
	return KYMO_OK;
}

static void keep_float_bits(const struct ky_cursor *c, struct ky_value *value)
{
	if (value->cls->num.length_bits <= 64) {
		value->f_bits = ky_number_word(value->cls, c->data, c->at_bits, 0);
		return;
	}
	value->f_data = c->data + c->at_bits / 8;
	value->n_children = (uint32_t)(c->at_bits & 7);
}

static int run_number(struct ky_cursor *c, const struct ky_step *step, struct kymo_error *err)
{
	const struct ky_field_class *cls = step->cls;
	uint32_t bits = cls->num.length_bits;
	bool big = ky_is_big(cls);
	struct ky_value *value;
	uint64_t raw = 0;
	int ret;

	if (__builtin_expect(cls->num.unit_bits, 0)) {
		ret = align_cursor(c, step, ky_unit_align(cls, c->at_bits), err);
		if (ret < 0)
			return ret;
	}
	if (!plan_interpreter_has_room(c, bits))
		return past_end(c, step, bits, err);
	ret = check_shared_byte(c, cls, err);
	if (ret < 0)
		return ret;
	if (!big && (c->values || cls->slot != KY_NO_SLOT))
		raw = ky_number_read(cls, c->data, c->at_bits);
	if (cls->slot != KY_NO_SLOT)
		c->slots[cls->slot] = raw;
	if (c->values) {
		value = plan_interpreter_push_value(c, step);
		if (!value)
			return no_value(c, err);
		value->u = raw;
		if (cls->kind == KY_FIELD_FLOAT && !big)
			keep_float_bits(c, value);
		if (big) {
			value->big.data = c->data + c->at_bits / 8;
			value->big.at_bits = (uint32_t)(c->at_bits & 7);
		}
	}
	c->at_bits += bits;
	return KYMO_OK;
}

static int run_leb128(struct ky_cursor *c, const struct ky_step *step, struct kymo_error *err)
{
	const struct ky_field_class *cls = step->cls;
	const uint8_t *at = c->data + c->at_bits / 8;
	struct ky_value *value;
	unsigned int n_bits;
	uint64_t raw;
	int ret = ky_leb128_read(&at, c->data + c->end_bits / 8, cls->kind == KY_FIELD_VARSINT,
				 &raw, &n_bits);

	if (ret == KYMO_E_UNSUPPORTED)
		return ky_error_set(err, ret, "variable-length integer of more than 64 bits");
	if (ret < 0)
		return past_end(c, step, 8, err);
	c->at_bits = (uint64_t)(at - c->data) * 8;
	if (cls->slot != KY_NO_SLOT)
		c->slots[cls->slot] = raw;
	if (!c->values)
		return KYMO_OK;
	value = plan_interpreter_push_value(c, step);
	if (!value)
		return no_value(c, err);
	value->u = raw;
	value->n_children = n_bits;
	return KYMO_OK;
}

unsigned int ky_code_unit_bytes(enum ky_encoding encoding)
{
	switch (encoding) {
	case KY_ENCODING_UTF16BE:
	case KY_ENCODING_UTF16LE:
		return 2;
	case KY_ENCODING_UTF32BE:
	case KY_ENCODING_UTF32LE:
		return 4;
	default:
		return 1;
	}
}

uint64_t ky_text_length(const uint8_t *text, uint64_t room, unsigned int unit)
{
	static const uint8_t zero[4];
	const uint8_t *nul;

	if (unit == 1) {
		nul = memchr(text, 0, room);
		return nul ? (uint64_t)(nul - text) : room;
	}
	for (uint64_t at = 0; at + unit <= room; at += unit) {
		if (memcmp(text + at, zero, unit) == 0)
			return at;
	}
	return room;
}

static int push_text(struct ky_cursor *c, const struct ky_step *step, const uint8_t *text,
		     uint64_t len_bytes, struct kymo_error *err)
{
	struct ky_value *value = plan_interpreter_push_value(c, step);

	if (!value)
		return no_value(c, err);
	value->str.data = (const char *)text;
	value->str.len_bytes = len_bytes;
	return KYMO_OK;
}

static int run_string(struct ky_cursor *c, const struct ky_step *step, struct kymo_error *err)
{
	unsigned int unit = ky_code_unit_bytes(step->cls->text.encoding);
	const uint8_t *text = c->data + c->at_bits / 8;
	uint64_t room = (c->end_bits - c->at_bits) / 8;
	uint64_t len = ky_text_length(text, room, unit);
	int ret = KYMO_OK;

	if (len + unit > room)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "string%s%s does not end within the packet's content",
				    step->name ? " " : "", step->name ? step->name : "");
	if (c->values)
		ret = push_text(c, step, text, len, err);
	c->at_bits += (len + unit) * 8;
	return ret;
}

static int check_there(const struct ky_cursor *c, const struct ky_step *step,
		       const struct ky_field_ref *ref, struct kymo_error *err)
{
	if (ky_is_there(c, ref))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_FORMAT, "field%s%s: '%s', which it needs, is not there",
			    step->name ? " " : "", step->name ? step->name : "",
			    ref->text ? ref->text : "?");
}

/* TEXT and BLOB: so many bytes. */
static int run_bytes(struct ky_cursor *c, const struct ky_step *step, struct kymo_error *err)
{
	const struct ky_field_class *cls = step->cls;
	unsigned int unit = cls->kind == KY_FIELD_TEXT ? ky_code_unit_bytes(cls->text.encoding) : 1;
	uint64_t len = cls->text.length_bytes, shown;
	const uint8_t *text = c->data + c->at_bits / 8;
	int ret = KYMO_OK;

	if (cls->text.length_ref) {
		ret = check_there(c, step, cls->text.length_ref, err);
		if (ret < 0)
			return ret;
		len = c->slots[cls->text.length_ref->target->slot];
	}
	if (len > (c->end_bits - c->at_bits) / 8)
		return past_end(c, step, len > UINT64_MAX / 8 ? UINT64_MAX : len * 8, err);
	shown = len;
	if (cls->kind == KY_FIELD_TEXT && (c->values || unit > 1))
		shown = ky_text_length(text, len, unit);
	/* Behind a NUL anything goes; a text that fills its room must consist of whole units. */
	if (unit > 1 && shown == len && len % unit)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "text%s%s of %llu bytes ends in the middle of a code unit",
				    step->name ? " " : "", step->name ? step->name : "",
				    (unsigned long long)len);
	if (c->values)
		ret = push_text(c, step, text, shown, err);
	c->at_bits += len * 8;
	return ret;
}

/* ---- fields that contain others ----------------------------------------------------------- */

KY_DEEP5(int, run_below, struct ky_cursor *, const struct ky_scope_plan *, uint32_t, uint32_t,
	 struct kymo_error *)

static int run_below(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t begin,
		     uint32_t end, struct kymo_error *err)
{
	return ky_run(c, plan, begin, end, err);
}

/* The steps of something that contains others. */
static int run_nested(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t begin,
		      uint32_t end, struct kymo_error *err)
{
	int ret = run_below_deep(KYMO_E_MEMORY, c, plan, begin, end, err);

	return __builtin_expect(ret == KYMO_E_MEMORY, 0) ? ky_error_nomem(err) : ret;
}

/* Index of the value just pushed for @step, or -1 when values are not collected. */
static int open_value(struct ky_cursor *c, const struct ky_step *step, int64_t *index,
		      struct kymo_error *err)
{
	*index = -1;
	if (!c->values)
		return KYMO_OK;
	if (!plan_interpreter_push_value(c, step))
		return no_value(c, err);
	*index = (int64_t)c->values->list.len - 1;
	return KYMO_OK;
}

static void close_value(struct ky_cursor *c, int64_t index, uint32_t n_children)
{
	struct ky_value *value;

	if (index < 0)
		return;
	value = &c->values->list.data[index];
	value->n_children = n_children;
	value->n_below = (uint32_t)((int64_t)c->values->list.len - 1 - index);
}

static int run_struct(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t at,
		      struct kymo_error *err)
{
	const struct ky_step *step = &plan->steps[at];
	int64_t index;
	int ret = open_value(c, step, &index, err);

	if (ret == KYMO_OK)
		ret = run_nested(c, plan, at + 1, step->next, err);
	close_value(c, index, (uint32_t)step->cls->st.n_members);
	return ret;
}

/* An array whose elements all have the same size is skipped by one multiplication. */
static int skip_fixed_array(struct ky_cursor *c, const struct ky_step *step, uint64_t count,
			    const struct ky_field_class *element, struct kymo_error *err)
{
	uint64_t stride = ky_align_up((uint64_t)element->fixed_bits, element->align_bits);
	uint64_t bits;

	if (!count)
		return KYMO_OK;
	if (__builtin_mul_overflow(stride, count - 1, &bits) ||
	    __builtin_add_overflow(bits, (uint64_t)element->fixed_bits, &bits) ||
	    !plan_interpreter_has_room(c, bits))
		return past_end(c, step, bits, err);
	c->at_bits += bits;
	return KYMO_OK;
}

int ky_run_elements(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t at,
		    uint64_t count, struct kymo_error *err)
{
	const struct ky_step *step = &plan->steps[at];
	uint64_t before;
	int ret;

	if (!c->values && plan->steps[at + 1].run_next)
		return skip_fixed_array(c, step, count, step->cls->array.element, err);
	for (uint64_t i = 0; i < count; i++) {
		before = c->at_bits;
		ret = run_nested(c, plan, at + 1, step->next, err);
		if (ret < 0)
			return ret;
		/* Elements without a bit cost the writer nothing: their number proves nothing. */
		if (c->at_bits == before && ++c->n_empty > EMPTY_ITEMS_MAX)
			return ky_error_set(err, KYMO_E_LIMIT, "array of %llu elements of no size",
					    (unsigned long long)count);
	}
	return KYMO_OK;
}

static int run_array(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t at,
		     struct kymo_error *err)
{
	const struct ky_step *step = &plan->steps[at];
	const struct ky_field_class *cls = step->cls;
	uint64_t count = cls->array.length;
	int64_t index;
	int ret;

	if (cls->array.length_ref) {
		ret = check_there(c, step, cls->array.length_ref, err);
		if (ret < 0)
			return ret;
		count = c->slots[cls->array.length_ref->target->slot];
	}
	ret = open_value(c, step, &index, err);
	if (ret == KYMO_OK)
		ret = ky_run_elements(c, plan, at, count, err);
	close_value(c, index, (uint32_t)count);
	return ret;
}

static int no_option(const struct ky_cursor *c, const struct ky_step *step, struct kymo_error *err)
{
	const struct ky_field_ref *selector = step->cls->var.selector;

	if (step->cls->kind == KY_FIELD_OPTIONAL)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_FORMAT, "variant%s%s: no option for %s = %lld",
			    step->name ? " " : "", step->name ? step->name : "",
			    selector->text ? selector->text : "selector",
			    (long long)c->slots[selector->target->slot]);
}

static int run_option(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t at,
		      struct kymo_error *err)
{
	const struct ky_step *step = &plan->steps[at];
	const struct ky_field_class *cls = step->cls;
	size_t i;
	int64_t index;
	int ret = check_there(c, step, cls->var.selector, err);

	if (ret == KYMO_OK)
		ret = open_value(c, step, &index, err);
	if (ret < 0)
		return ret;
	i = ky_option_enter(c, cls);
	if (i == cls->var.n_options) {
		close_value(c, index, 0);
		return no_option(c, step, err);
	}
	if (index >= 0)
		c->values->list.data[index].option = &cls->var.options[i];
	at = step->option_steps[i];
	ret = run_nested(c, plan, at, plan->steps[at].next, err);
	close_value(c, index, 1);
	return ret;
}

static int run_step(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t at,
		    struct kymo_error *err)
{
	const struct ky_step *step = &plan->steps[at];

	switch (step->cls->kind) {
	case KY_FIELD_STRUCT:
		return run_struct(c, plan, at, err);
	case KY_FIELD_ARRAY:
		return run_array(c, plan, at, err);
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return run_option(c, plan, at, err);
	case KY_FIELD_STRING:
		return run_string(c, step, err);
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return run_bytes(c, step, err);
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return run_leb128(c, step, err);
	default:
		return run_number(c, step, err);
	}
}

int ky_run(struct ky_cursor *c, const struct ky_scope_plan *plan, uint32_t begin, uint32_t end,
	   struct kymo_error *err)
{
	bool skipping = !c->values;
	int ret;

	while (begin < end) {
		const struct ky_step *step = &plan->steps[begin];

		ret = align_cursor(c, step, step->cls->align_bits, err);
		if (ret < 0)
			return ret;
		if (skipping && step->run_next && step->run_next <= end) {
			if (!plan_interpreter_has_room(c, step->run_bits))
				return past_end(c, step, step->run_bits, err);
			c->at_bits += step->run_bits;
			begin = step->run_next;
			continue;
		}
		ret = run_step(c, plan, begin, err);
		if (ret < 0)
			return ret;
		begin = step->next;
	}
	return KYMO_OK;
}

/* ---- entering a scope of an event ---------------------------------------------------------- */

static uint64_t plan_interpreter_scope_begin(const struct ky_event *event, enum ky_scope scope)
{
	switch (scope) {
	case KY_SCOPE_PACKET_HEADER:
		return 0;
	case KY_SCOPE_PACKET_CONTEXT:
		return event->packet->context_begin_bits;
	case KY_SCOPE_EVENT_HEADER:
		return event->begin_bits;
	case KY_SCOPE_STREAM_CONTEXT:
		return event->begin_bits + event->stream_context_bits;
	case KY_SCOPE_EVENT_CONTEXT:
		return event->begin_bits + event->event_context_bits;
	default:
		return event->begin_bits + event->payload_bits;
	}
}

int ky_enter_scope(struct ky_cursor *cursor, const struct ky_event *event, enum ky_scope scope,
		   struct kymo_error *err)
{
	uint32_t outer = ky_scope_plan_of(event->cls, scope)->outer_scopes;
	int ret;

	for (int s = KY_SCOPE_PACKET_HEADER; outer && s < (int)scope; s++) {
		if (!(outer & 1u << s))
			continue;
		/* That scope may itself look further out. */
		ret = ky_enter_scope(cursor, event, (enum ky_scope)s, err);
		if (ret == KYMO_OK)
			ret = ky_skip_scope(cursor, ky_scope_plan_of(event->cls, (enum ky_scope)s),
					    err);
		if (ret < 0)
			return ret;
	}
	cursor->at_bits = plan_interpreter_scope_begin(event, scope);
	return KYMO_OK;
}
