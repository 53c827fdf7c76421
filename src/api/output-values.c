/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: the values of an event, one after the other: api/output.h. */
#include <string.h>

#include "api/output.h"
#include "api/float-encoding.h"
#include "base/bits.h"
#include "base/text.h"
#include "ctf/model/unicode.h"

/* More values than any event has use for; memory stays bounded whatever a program does. */
#define VALUES_MAX (UINT32_C(1) << 24)

void ky_output_problem(struct kymo_output *output, int code, const char *text, const char *name)
{
	if (output->problem)
		return;
	output->problem = text;
	output->problem_name = name;
	output->problem_code = code;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A new value, zeroed but for its class and name; NULL, and a problem, when there is no room. */
static inline struct ky_value *output_values_add_value(struct kymo_output *output,
						       const struct ky_field_class *cls,
						       const char *name)
{
	struct ky_value *value;

	if (__builtin_expect(output->values.len >= VALUES_MAX, 0)) {
		ky_output_problem(output, KYMO_E_LIMIT, "there are too many values", name);
		return NULL;
	}
	if (__builtin_expect(ky_vec_reserve(&output->values, 1) < 0, 0)) {
		ky_output_problem(output, KYMO_E_MEMORY, "out of memory", name);
		return NULL;
	}
	value = &output->values.data[output->values.len++];
	*value = (struct ky_value){.cls = cls, .name = name};
	return value;
}

/* Length, tag or presence: the field that stands before the one of @step. */
static bool add_before(struct kymo_output *output, const struct ky_put_step *step, uint64_t number)
{
	struct ky_value *value = output_values_add_value(output, step->before, step->name);

	if (value)
		value->u = number;
	return value;
}

/*
 * Enter what is at @step: a value with @n_children, whose steps from @begin on come @times.
 * Returns the value, or NULL.
 */
static struct ky_value *output_values_enter(struct kymo_output *output,
					    const struct ky_put_step *step, uint32_t n_children,
					    uint32_t begin, uint32_t times)
{
	struct ky_value *value = output_values_add_value(output, step->cls, step->name);

	if (!value)
		return NULL;
	value->n_children = n_children;
	if (!times) {
		output->at = step->end;
		return value;
	}
	output->levels[output->n_levels++] = (struct ky_output_level){
		.begin = begin,
		.after = step->end,
		.left = times,
		.value = (uint32_t)output->values.len - 1,
	};
	output->at = begin;
	return value;
}

/* At a KY_PUT_END: once more, or on. */
static void output_values_leave(struct kymo_output *output)
{
	struct ky_output_level *level = &output->levels[output->n_levels - 1];
	struct ky_value *values = output->values.data;

	if (--level->left) {
		output->at = level->begin;
		return;
	}
	values[level->value].n_below = (uint32_t)output->values.len - 1 - level->value;
	output->at = level->after;
	output->n_levels--;
}

/* Go to the next step that wants a value. */
static void output_values_settle(struct kymo_output *output)
{
	const struct kymo_event_def *event = output->event;

	while (output->at < event->steps.len && !output->problem) {
		const struct ky_put_step *step = &event->steps.data[output->at];

		if (step->put == KY_PUT_STRUCT)
			(void)output_values_enter(output, step, (uint32_t)step->cls->st.n_members,
						  output->at + 1, 1);
		else if (step->put == KY_PUT_ARRAY)
			(void)output_values_enter(output, step, step->n, output->at + 1, step->n);
		else if (step->put == KY_PUT_END)
			output_values_leave(output);
		else
			return;
	}
}

void ky_output_restart(struct kymo_output *output)
{
	output->at = 0;
	output->n_levels = 0;
	output->len_bytes = 0;
	ky_vec_clear(&output->values);
	if (output->event)
		output_values_settle(output);
}

/* The step whose value comes now, or NULL. */
static inline const struct ky_put_step *present(struct kymo_output *output)
{
	if (!output || !output->event || output->problem)
		return NULL;
	if (output->at < output->event->steps.len)
		return &output->event->steps.data[output->at];
	ky_output_problem(output, KYMO_E_INVALID, "there are more values than fields", NULL);
	return NULL;
}

/* The same when it is of kind @put; a problem otherwise. */
static inline const struct ky_put_step *present_as(struct kymo_output *output, enum ky_put put,
						   const char *problem)
{
	const struct ky_put_step *step = present(output);

	if (!step || step->put == put)
		return step;
	ky_output_problem(output, KYMO_E_INVALID, problem, step->name);
	return NULL;
}

static inline void output_values_next_step(struct kymo_output *output)
{
	const struct kymo_event_def *event = output->event;

	output->at++;
	/* Mostly it is another that wants a value. */
	if (output->at >= event->steps.len || event->steps.data[output->at].put >= KY_PUT_STRUCT)
		output_values_settle(output);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* @negative: @value is that of a negative number, as two's complement. */
static bool output_values_fits(const struct ky_field_class *cls, uint64_t value, bool negative)
{
	unsigned int bits = cls->num.length_bits;

	switch (cls->kind) {
	case KY_FIELD_VARUINT:
		return !negative;
	case KY_FIELD_VARSINT:
		return negative || value <= INT64_MAX;
	case KY_FIELD_SINT:
		return negative ? (int64_t)value >> (bits - 1) == -1 : value >> (bits - 1) == 0;
	default:
		return !negative && (bits == 64 || value >> bits == 0);
	}
}

static void output_values_put_integer(struct kymo_output *output, uint64_t number, bool negative)
{
	const struct ky_put_step *step = present_as(output, KY_PUT_NUMBER, "it is no integer");
	struct ky_value *value;

	if (!step)
		return;
	if (!output_values_fits(step->cls, number, negative)) {
		ky_output_problem(output, KYMO_E_INVALID, "the value does not fit", step->name);
		return;
	}
	value = output_values_add_value(output, step->cls, step->name);
	if (!value)
		return;
	value->u = number;
	output_values_next_step(output);
}

void kymo_output_u64(struct kymo_output *output, uint64_t value)
{
	output_values_put_integer(output, value, false);
}

void kymo_output_i64(struct kymo_output *output, int64_t value)
{
	output_values_put_integer(output, (uint64_t)value, value < 0);
}

/* So many bytes that live as long as the event's values; NULL, and a problem, if they do not. */
static uint8_t *text_room(struct kymo_output *output, size_t len)
{
	uint8_t *at = output->texts + output->len_bytes;

	if (len > output->writer->options.packet_bytes - output->len_bytes) {
		ky_output_problem(output, KYMO_E_LIMIT, "it is larger than a packet", NULL);
		return NULL;
	}
	output->len_bytes += (uint32_t)len;
	return at;
}

void kymo_output_f64(struct kymo_output *output, double number)
{
	const struct ky_put_step *step =
		present_as(output, KY_PUT_REAL, "it is no floating point number");
	const struct ky_field_class *cls = step ? step->cls : NULL;
	struct ky_value *value = step ? output_values_add_value(output, cls, step->name) : NULL;
	uint64_t words[2];
	uint8_t *quad;

	if (!value)
		return;
	value->f = number;
	ky_float_encode(number, cls->num.length_bits, words);
	if (cls->num.length_bits < 128) {
		value->f_bits = words[0];
	} else {
		quad = text_room(output, 16);
		if (!quad)
			return;
		ky_write_bits(quad, cls->num.big_endian ? 64 : 0, 64, words[0],
			      cls->num.big_endian);
		ky_write_bits(quad, cls->num.big_endian ? 0 : 64, 64, words[1],
			      cls->num.big_endian);
		value->f_data = quad;
	}
	output_values_next_step(output);
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_ascii(const char *text, size_t len)
{
	unsigned char all = 0;

	for (size_t i = 0; i < len; i++)
		all |= (unsigned char)text[i];
	return all < 0x80;
}

/* UTF-8 that is not longer than @max, cut between characters. */
static size_t cut_utf8(const char *text, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

/* One character in a wide encoding; returns its bytes, 2 or 4. */
static size_t output_values_put_wide(uint8_t *to, enum ky_encoding encoding, uint32_t code)
{
	bool big = encoding == KY_ENCODING_UTF16BE || encoding == KY_ENCODING_UTF32BE;

	if (encoding >= KY_ENCODING_UTF32BE) {
		ky_write_bits(to, 0, 32, code, big);
		return 4;
	}
	if (code < 0x10000) {
		ky_write_bits(to, 0, 16, code, big);
		return 2;
	}
	code -= 0x10000;
	ky_write_bits(to, 0, 16, 0xd800 + (code >> 10), big);
	ky_write_bits(to + 2, 0, 16, 0xdc00 + (code & 0x3ff), big);
	return 4;
}

/* Write @text to @to, at most @max bytes; returns how many. Each byte of it takes at most four. */
static size_t output_values_widen(uint8_t *to, size_t max, enum ky_encoding encoding,
				  const char *text, size_t len)
{
	const uint8_t *at = (const uint8_t *)text, *end = at + len;
	size_t total = 0, n;
	uint8_t unit[4];
	uint32_t code;

	while (at < end) {
		at += ky_unicode_next(KY_ENCODING_UTF8, at, (size_t)(end - at), &code);
		n = output_values_put_wide(unit, encoding, code);
		if (n > max - total)
			break;
		memcpy(to + total, unit, n);
		total += n;
	}
	return total;
}

/* Copy @text in the field's encoding. NULL, and a problem, where that is not possible. */
static const char *output_values_convert(struct kymo_output *output, const struct ky_put_step *step,
					 const char *text, size_t *len)
{
	const struct ky_field_class *cls = step->cls;
	bool is_fixed = cls->kind == KY_FIELD_TEXT && !cls->text.length_ref;
	size_t max = is_fixed ? cls->text.length_bytes : SIZE_MAX;
	size_t room;
	uint8_t *to;

	if (cls->text.encoding == KY_ENCODING_ASCII && !is_ascii(text, *len)) {
		ky_output_problem(output, KYMO_E_INVALID, "it is not ASCII", step->name);
		return NULL;
	}
	if (cls->text.encoding <= KY_ENCODING_ASCII) {
		*len = cut_utf8(text, *len, max);
		to = text_room(output, *len);
		return to && *len ? memcpy(to, text, *len) : (char *)to;
	}
	room = *len > SIZE_MAX / 4 ? SIZE_MAX : *len * 4;
	room = room < max ? room : max;
	to = text_room(output, room);
	if (!to)
		return NULL;
	*len = output_values_widen(to, room, cls->text.encoding, text, *len);
	output->len_bytes -= (uint32_t)(room - *len);
	return (const char *)to;
}

static void output_values_put_bytes(struct kymo_output *output, const struct ky_put_step *step,
				    const char *data, size_t len)
{
	struct ky_value *value;

	if (step->before && !add_before(output, step, len))
		return;
	value = output_values_add_value(output, step->cls, step->name);
	if (!value)
		return;
	value->str.data = data;
	value->str.len_bytes = len;
	output_values_next_step(output);
}

void kymo_output_text_n(struct kymo_output *output, const char *text, size_t len)
{
	const struct ky_put_step *step = present_as(output, KY_PUT_TEXT, "it is no text");
	const char *copy;

	if (!step)
		return;
	if (!text && len) {
		ky_output_problem(output, KYMO_E_INVALID, "the text is NULL", step->name);
		return;
	}
	len = len ? strnlen(text, len) : 0;
	copy = output_values_convert(output, step, text ? text : "", &len);
	if (copy)
		output_values_put_bytes(output, step, copy, len);
}

void kymo_output_text(struct kymo_output *output, const char *text)
{
	kymo_output_text_n(output, text, text ? strlen(text) : 1);
}

void kymo_output_bytes(struct kymo_output *output, const void *data, size_t len)
{
	const struct ky_put_step *step = present_as(output, KY_PUT_BYTES, "it is no blob");
	uint8_t *to;

	if (!step)
		return;
	if (!data && len) {
		ky_output_problem(output, KYMO_E_INVALID, "the data is NULL", step->name);
		return;
	}
	if (!step->before && len != step->cls->text.length_bytes) {
		ky_output_problem(output, KYMO_E_INVALID, "it is of another size", step->name);
		return;
	}
	to = text_room(output, len);
	if (!to)
		return;
	if (len)
		memcpy(to, data, len);
	output_values_put_bytes(output, step, (const char *)to, len);
}

/* ---- what contains others -------------------------------------------------------------------- */

void kymo_output_length(struct kymo_output *output, size_t length)
{
	const struct ky_put_step *step = present_as(output, KY_PUT_SEQUENCE, "it is no sequence");

	if (!step)
		return;
	if (length > UINT32_MAX) {
		ky_output_problem(output, KYMO_E_LIMIT, "it has too many elements", step->name);
		return;
	}
	if (!add_before(output, step, length))
		return;
	(void)output_values_enter(output, step, (uint32_t)length, output->at + 1, (uint32_t)length);
	output_values_settle(output);
}

void kymo_output_option(struct kymo_output *output, uint32_t option)
{
	const struct ky_put_step *step = present_as(output, KY_PUT_VARIANT, "it is no variant");
	struct ky_value *value;

	if (!step)
		return;
	if (option >= step->n) {
		ky_output_problem(output, KYMO_E_INVALID, "it has no such option", step->name);
		return;
	}
	if (!add_before(output, step, option))
		return;
	value = output_values_enter(output, step, 1, step->options[option], 1);
	if (value)
		value->option = &step->cls->var.options[option];
	output_values_settle(output);
}

void kymo_output_present(struct kymo_output *output, bool is_present)
{
	const struct ky_put_step *step = present_as(output, KY_PUT_OPTIONAL, "it is not optional");
	struct ky_value *value;

	if (!step || !add_before(output, step, is_present))
		return;
	value = output_values_enter(output, step, is_present, step->options[0], is_present);
	if (value)
		value->option = &step->cls->var.options[0];
	output_values_settle(output);
}
