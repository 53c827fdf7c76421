/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tracer/tracer.h"

enum type {
	NOTHING,
	NUMBER,
	REAL,
	TEXT,
};

struct value {
	enum type type;
	uint32_t text_bytes;
	union {
		__int128 number; /* signed and unsigned 64-bit integers compare by value */
		double real;
		const char *text;
	};
	/* A number with labels. */
	const struct ky_event_record *record;
	const struct ky_field_record *field;
};

/* Everything that evaluating needs. */
struct run {
	const struct ky_event *event;
	const uint64_t *values;
	uintptr_t ip;
	uint32_t n_texts;
	char texts[4][KY_CONTEXT_TEXT_BYTES]; /* of contexts; those beyond are nothing */
	struct value stack[KY_FILTER_STACK_MAX];
};

static struct value tracer_filter_number(__int128 n)
{
	return (struct value){.type = NUMBER, .number = n};
}

static struct value nothing(void)
{
	return (struct value){.type = NOTHING};
}

static struct value tracer_filter_text(const char *t, size_t bytes)
{
	return (struct value){.type = TEXT, .text = t, .text_bytes = (uint32_t)bytes};
}

/* ---- operands ---- */

static uint64_t swapped(uint64_t bits, uint32_t bytes)
{
	return __builtin_bswap64(bits) >> (64 - 8 * bytes);
}

static bool tracer_filter_is_foreign(const struct ky_field *field)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return field->flags & KY_FIELD_BIG_ENDIAN;
#else
	return field->flags & KY_FIELD_LITTLE_ENDIAN;
#endif
}

static struct value integer(const struct run *run, const struct ky_field *field, uint64_t bits)
{
	uint32_t unused = 64 - 8 * field->bytes;
	struct value value;

	if (tracer_filter_is_foreign(field))
		bits = swapped(bits, field->bytes);
	value = tracer_filter_number(field->flags & KY_FIELD_SIGNED
					     ? (__int128)((int64_t)(bits << unused) >> unused)
					     : (__int128)(bits << unused >> unused));
	if (field->kind == KY_KIND_ENUM) {
		value.record = run->event->record;
		value.field = &value.record->fields[field - run->event->fields];
	}
	return value;
}

static struct value real(const struct ky_field *field, uint64_t bits)
{
	struct value value = {.type = REAL};
	float narrow;

	if (field->bytes == 4) {
		uint32_t low = (uint32_t)bits;

		memcpy(&narrow, &low, sizeof(narrow));
		value.real = narrow;
	} else {
		memcpy(&value.real, &bits, sizeof(value.real));
	}
	return value;
}

static struct value tracer_filter_load_field(const struct run *run, const struct ky_field *field)
{
	uint64_t bits = run->values[field->value];
	const char *string = (const char *)(uintptr_t)bits; // NOLINT(performance-no-int-to-ptr)

	switch (field->kind) {
	case KY_KIND_INTEGER:
	case KY_KIND_BOOLEAN:
	case KY_KIND_ENUM:
		return integer(run, field, bits);
	case KY_KIND_FLOAT:
		return real(field, bits);
	case KY_KIND_STRING:
		return string ? tracer_filter_text(string, strnlen(string, KYMO_STRING_MAX))
			      : tracer_filter_text("", 0);
	case KY_KIND_TEXT:
		return string ? tracer_filter_text(string, run->values[field->value + 1])
			      : tracer_filter_text("", 0);
	default:
		return nothing();
	}
}

static struct value load_context(struct run *run, const struct ky_context *context)
{
	const char *string;
	uint64_t bits = 0;

	if (!context || run->n_texts == sizeof(run->texts) / sizeof(run->texts[0]))
		return nothing();
	string = ky_context_get(context, run->ip, run->texts[run->n_texts], &bits);
	if (!string)
		return tracer_filter_number(bits);
	run->n_texts++;
	return tracer_filter_text(string, strlen(string));
}

/* ---- operators ---- */

static bool tracer_filter_truth(const struct value *a)
{
	switch (a->type) {
	case NUMBER:
		return a->number != 0;
	case REAL:
		return a->real < 0 || a->real > 0;
	default:
		return false;
	}
}

static double tracer_filter_as_real(const struct value *a)
{
	return a->type == REAL ? a->real : (double)a->number;
}

static bool tracer_filter_decide(uint32_t code, int order)
{
	switch (code) {
	case KY_FILTER_EQ:
		return order == 0;
	case KY_FILTER_NE:
		return order != 0;
	case KY_FILTER_LT:
		return order < 0;
	case KY_FILTER_LE:
		return order <= 0;
	case KY_FILTER_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

static bool same_text(const struct value *pattern, const char *t, size_t bytes, bool is_pattern)
{
	if (is_pattern)
		return ky_trace_glob(pattern->text, pattern->text_bytes, t, bytes, true);
	return pattern->text_bytes == bytes && !memcmp(pattern->text, t, bytes);
}

/* Any label of the value will do: ranges may overlap. */
static bool tracer_filter_has_label(const struct value *a, const struct value *label,
				    bool is_pattern)
{
	const struct ky_label_record *labels =
		(const void *)ky_record_text(a->record, a->field->labels);
	bool is_signed = a->field->flags & KY_FIELD_SIGNED;

	for (uint32_t i = 0; i < a->field->n_labels; i++) {
		const char *name = ky_record_text(a->record, labels[i].name);
		__int128 first = labels[i].first, last = labels[i].last;

		if (!is_signed) {
			first = (uint64_t)labels[i].first;
			last = (uint64_t)labels[i].last;
		}
		if (a->number >= first && a->number <= last &&
		    same_text(label, name, strlen(name), is_pattern))
			return true;
	}
	return false;
}

static int tracer_filter_order_texts(const struct value *a, const struct value *b)
{
	size_t bytes = a->text_bytes < b->text_bytes ? a->text_bytes : b->text_bytes;
	int order = bytes ? memcmp(a->text, b->text, bytes) : 0;

	return order ? order : a->text_bytes < b->text_bytes ? -1 : a->text_bytes > b->text_bytes;
}

static bool tracer_filter_compare(uint32_t code, const struct value *a, const struct value *b)
{
	if (a->type == NOTHING || b->type == NOTHING)
		return false;
	if (a->field && b->type == TEXT)
		return tracer_filter_has_label(a, b, code == KY_FILTER_MATCH) !=
		       (code == KY_FILTER_NE);
	if (b->field && a->type == TEXT)
		return tracer_filter_has_label(b, a, false) != (code == KY_FILTER_NE);
	if (a->type == TEXT && b->type == TEXT)
		return code == KY_FILTER_MATCH
			       ? same_text(b, a->text, a->text_bytes, true)
			       : tracer_filter_decide(code, tracer_filter_order_texts(a, b));
	if (a->type == TEXT || b->type == TEXT || code == KY_FILTER_MATCH)
		return false;
	if (a->type == NUMBER && b->type == NUMBER)
		return tracer_filter_decide(code,
					    a->number < b->number ? -1 : a->number > b->number);
	if (tracer_filter_as_real(a) < tracer_filter_as_real(b))
		return tracer_filter_decide(code, -1);
	if (tracer_filter_as_real(a) > tracer_filter_as_real(b))
		return tracer_filter_decide(code, 1);
	/* Not a number compares with nothing, but for "differs". */
	return tracer_filter_as_real(a) <= tracer_filter_as_real(b) ? tracer_filter_decide(code, 0)
								    : code == KY_FILTER_NE;
}

static struct value tracer_filter_real_arithmetic(uint32_t code, double a, double b)
{
	struct value value = {.type = REAL};

	switch (code) {
	case KY_FILTER_ADD:
		value.real = a + b;
		return value;
	case KY_FILTER_SUBTRACT:
		value.real = a - b;
		return value;
	case KY_FILTER_MULTIPLY:
		value.real = a * b;
		return value;
	case KY_FILTER_DIVIDE:
		value.real = a / b;
		return value;
	default:
		return nothing();
	}
}

/* Wraps at 128 bits, far beyond what fields hold; a division by zero is nothing. */
static struct value tracer_filter_whole_arithmetic(uint32_t code, __int128 a, __int128 b)
{
	unsigned __int128 x = (unsigned __int128)a, y = (unsigned __int128)b;
	bool can_shift = b >= 0 && b <= 127;

	switch (code) {
	case KY_FILTER_OR_BITS:
		return tracer_filter_number(a | b);
	case KY_FILTER_XOR_BITS:
		return tracer_filter_number(a ^ b);
	case KY_FILTER_AND_BITS:
		return tracer_filter_number(a & b);
	case KY_FILTER_SHIFT_LEFT:
		return can_shift ? tracer_filter_number((__int128)(x << (unsigned int)b))
				 : nothing();
	case KY_FILTER_SHIFT_RIGHT:
		return can_shift ? tracer_filter_number(a >> (unsigned int)b) : nothing();
	case KY_FILTER_ADD:
		return tracer_filter_number((__int128)(x + y));
	case KY_FILTER_SUBTRACT:
		return tracer_filter_number((__int128)(x - y));
	case KY_FILTER_MULTIPLY:
		return tracer_filter_number((__int128)(x * y));
	case KY_FILTER_DIVIDE:
		return b ? tracer_filter_number(b == -1 ? (__int128)(0 - x) : a / b) : nothing();
	default:
		return b ? tracer_filter_number(b == -1 ? 0 : a % b) : nothing();
	}
}

static struct value binary(uint32_t code, const struct value *a, const struct value *b)
{
	if (code <= KY_FILTER_MATCH)
		return tracer_filter_number(tracer_filter_compare(code, a, b));
	if ((a->type != NUMBER && a->type != REAL) || (b->type != NUMBER && b->type != REAL))
		return nothing();
	if (a->type == REAL || b->type == REAL)
		return tracer_filter_real_arithmetic(code, tracer_filter_as_real(a),
						     tracer_filter_as_real(b));
	return tracer_filter_whole_arithmetic(code, a->number, b->number);
}

static struct value tracer_filter_unary(uint32_t code, const struct value *a)
{
	if (code == KY_FILTER_NOT)
		return tracer_filter_number(!tracer_filter_truth(a));
	if (a->type == NUMBER)
		return tracer_filter_number(code == KY_FILTER_INVERT
						    ? ~a->number
						    : (__int128)(0 - (unsigned __int128)a->number));
	if (a->type == REAL && code == KY_FILTER_NEGATE)
		return (struct value){.type = REAL, .real = -a->real};
	return nothing();
}

/* ---- the machine; filter-link.c has checked the stack ---- */

static struct value tracer_filter_load(struct run *run, const struct ky_linked_op *op)
{
	switch (op->code) {
	case KY_FILTER_INTEGER:
		return tracer_filter_number((int64_t)op->number);
	case KY_FILTER_UNSIGNED:
		return tracer_filter_number(op->number);
	case KY_FILTER_REAL:
		return (struct value){.type = REAL, .real = op->real};
	case KY_FILTER_TEXT:
		return tracer_filter_text(op->text, strlen(op->text));
	case KY_FILTER_FIELD:
		return tracer_filter_load_field(run, op->field);
	default:
		return load_context(run, op->context);
	}
}

static bool run_ops(const struct ky_filter_linked *filter, struct run *run)
{
	struct value *top = run->stack - 1;

	for (uint32_t i = 0; i < filter->n_ops; i++) {
		const struct ky_linked_op *op = &filter->ops[i];

		if (op->code < KY_FILTER_EQ) {
			*++top = tracer_filter_load(run, op);
		} else if (op->code < KY_FILTER_NOT) {
			top--;
			top[0] = binary(op->code, &top[0], &top[1]);
		} else if (op->code < KY_FILTER_AND) {
			*top = tracer_filter_unary(op->code, top);
		} else if (tracer_filter_truth(top) == (op->code == KY_FILTER_OR)) {
			*top = tracer_filter_number(op->code == KY_FILTER_OR);
			i = op->jump - 1;
		} else {
			top--;
		}
	}
	return tracer_filter_truth(top);
}

bool ky_filter_run(const struct ky_filter_linked *filter, const struct ky_event *event,
		   const uint64_t *values, uintptr_t ip)
{
	struct run run;

	run.event = event;
	run.values = values;
	run.ip = ip;
	run.n_texts = 0;
	return run_ops(filter, &run);
}
