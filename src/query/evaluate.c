/* SPDX-License-Identifier: MIT */
/* Evaluating a bound filter. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "query/program.h"

static struct ky_operand none(void)
{
	return (struct ky_operand){.type = KY_TYPE_NONE};
}

static struct ky_operand boolean(bool truth)
{
	return (struct ky_operand){.type = KY_TYPE_BOOL, .truth = truth};
}

static struct ky_operand evaluate_number(__int128 value)
{
	return (struct ky_operand){.type = KY_TYPE_NUMBER, .number = value};
}

bool ky_operand_truth(const struct ky_operand *operand)
{
	switch (operand->type) {
	case KY_TYPE_BOOL:
		return operand->truth;
	case KY_TYPE_NUMBER:
	case KY_TYPE_ENUM:
		return operand->number != 0;
	case KY_TYPE_REAL:
		return operand->real < 0 || operand->real > 0;
	default:
		return false;
	}
}

static struct ky_operand evaluate_load_field(const struct ky_code *code,
					     const struct ky_event *event)
{
	const struct ky_field_class *cls = code->handle.cls;
	struct ky_operand out = {.type = code->type};
	uint64_t raw;

	switch (code->type) {
	case KY_TYPE_TEXT:
		out.text.data = ky_get_text(event, &code->handle, &out.text.len);
		return out;
	case KY_TYPE_REAL:
		return ky_get_real(event, &code->handle, &out.real) ? out : none();
	default:
		if (!ky_get_number(event, &code->handle, &raw))
			return none();
		out.number = cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT
				     ? (__int128)(int64_t)raw
				     : (__int128)raw;
		return out;
	}
}

static struct ky_operand evaluate_load(const struct ky_code *code, const struct ky_event *event)
{
	switch (code->name) {
	case KY_NAME_TIME:
		return event->ns == INT64_MIN ? none() : evaluate_number(event->ns);
	case KY_NAME_CPU:
		return event->cpu_id == UINT32_MAX ? none() : evaluate_number(event->cpu_id);
	default:
		return evaluate_load_field(code, event);
	}
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool evaluate_is_number(enum ky_value_type type)
{
	return type == KY_TYPE_NUMBER || type == KY_TYPE_ENUM || type == KY_TYPE_BOOL;
}

static __int128 as_number(const struct ky_operand *a)
{
	return a->type == KY_TYPE_BOOL ? a->truth : a->number;
}

static double evaluate_as_real(const struct ky_operand *a)
{
	return a->type == KY_TYPE_REAL ? a->real : (double)as_number(a);
}

static bool evaluate_decide(enum ky_op op, int order)
{
	switch (op) {
	case KY_OP_EQ:
	case KY_OP_IN:
		return order == 0;
	case KY_OP_NE:
		return order != 0;
	case KY_OP_LT:
		return order < 0;
	case KY_OP_LE:
		return order <= 0;
	case KY_OP_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

static int evaluate_order_texts(const struct ky_operand *a, const struct ky_operand *b)
{
	size_t len = a->text.len < b->text.len ? a->text.len : b->text.len;
	int order = len ? memcmp(a->text.data, b->text.data, len) : 0;

	if (order)
		return order;
	return a->text.len < b->text.len ? -1 : a->text.len > b->text.len;
}

/* The pattern is a constant and ends with NUL; the text does not. */
static bool match_text(const char *pattern, const char *text, size_t len)
{
	char small[256], *copy = len < sizeof(small) ? small : malloc(len + 1);
	bool match;

	if (!copy)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	match = ky_glob_match(pattern, copy);
	if (copy != small)
		free(copy);
	return match;
}

/* Any label of the value will do: ranges may overlap. */
static bool enum_has_label(const struct ky_field_class *cls, const struct ky_operand *value,
			   const struct ky_operand *label, bool is_pattern)
{
	const char *labels[16];
	size_t n = ky_enum_labels(cls, (uint64_t)value->number, labels, 16);

	for (size_t i = 0; i < n && i < 16; i++) {
		if (is_pattern ? ky_glob_match(label->text.data, labels[i])
			       : strlen(labels[i]) == label->text.len &&
					 memcmp(labels[i], label->text.data, label->text.len) == 0)
			return true;
	}
	return false;
}

static bool evaluate_compare(enum ky_op op, const struct ky_code *left, const struct ky_operand *a,
			     const struct ky_code *right, const struct ky_operand *b)
{
	if (a->type == KY_TYPE_NONE || b->type == KY_TYPE_NONE)
		return false;
	if (a->type == KY_TYPE_ENUM && b->type == KY_TYPE_TEXT)
		return enum_has_label(left->handle.cls, a, b, op == KY_OP_MATCH) !=
		       (op == KY_OP_NE);
	if (b->type == KY_TYPE_ENUM && a->type == KY_TYPE_TEXT)
		return enum_has_label(right->handle.cls, b, a, false) != (op == KY_OP_NE);
	if (op == KY_OP_MATCH)
		return match_text(b->text.data, a->text.data, a->text.len);
	if (a->type == KY_TYPE_TEXT)
		return evaluate_decide(op, evaluate_order_texts(a, b));
	if (evaluate_is_number(a->type) && evaluate_is_number(b->type)) {
		__int128 x = as_number(a), y = as_number(b);

		return evaluate_decide(op, x < y ? -1 : x > y);
	}
	/* Not a number compares with nothing, but for "differs". */
	if (evaluate_as_real(a) < evaluate_as_real(b))
		return evaluate_decide(op, -1);
	if (evaluate_as_real(a) > evaluate_as_real(b))
		return evaluate_decide(op, 1);
	if (evaluate_as_real(a) <= evaluate_as_real(b))
		return evaluate_decide(op, 0);
	return op == KY_OP_NE;
}

static bool run_in(const struct ky_code *code, const struct ky_event *event)
{
	struct ky_operand value = ky_code_run(code->left, event);

	for (const struct ky_code *item = code->right; item; item = item->next) {
		struct ky_operand other = ky_code_run(item, event);

		if (evaluate_compare(KY_OP_IN, code->left, &value, item, &other))
			return true;
	}
	return false;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static struct ky_operand evaluate_real_arithmetic(enum ky_op op, double a, double b)
{
	struct ky_operand out = {.type = KY_TYPE_REAL};

	switch (op) {
	case KY_OP_ADD:
		out.real = a + b;
		break;
	case KY_OP_SUB:
		out.real = a - b;
		break;
	case KY_OP_MUL:
		out.real = a * b;
		break;
	default:
		out.real = a / b;
	}
	return out;
}

/* Wraps at 128 bits, far beyond what fields hold; a division by zero has no value. */
static struct ky_operand evaluate_whole_arithmetic(enum ky_op op, __int128 a, __int128 b)
{
	unsigned __int128 x = (unsigned __int128)a, y = (unsigned __int128)b;

	switch (op) {
	case KY_OP_ADD:
		return evaluate_number((__int128)(x + y));
	case KY_OP_SUB:
		return evaluate_number((__int128)(x - y));
	case KY_OP_MUL:
		return evaluate_number((__int128)(x * y));
	case KY_OP_DIV:
		return b ? evaluate_number(b == -1 ? (__int128)(0 - x) : a / b) : none();
	case KY_OP_MOD:
		return b ? evaluate_number(b == -1 ? 0 : a % b) : none();
	case KY_OP_BIT_AND:
		return evaluate_number(a & b);
	case KY_OP_BIT_OR:
		return evaluate_number(a | b);
	case KY_OP_BIT_XOR:
		return evaluate_number(a ^ b);
	case KY_OP_SHIFT_LEFT:
		return b < 0 || b > 127 ? none()
					: evaluate_number((__int128)(x << (unsigned int)b));
	default:
		return b < 0 || b > 127 ? none() : evaluate_number(a >> (unsigned int)b);
	}
}

static struct ky_operand arithmetic(enum ky_op op, const struct ky_operand *a,
				    const struct ky_operand *b)
{
	if (a->type == KY_TYPE_NONE || b->type == KY_TYPE_NONE)
		return none();
	if (a->type == KY_TYPE_REAL || b->type == KY_TYPE_REAL)
		return evaluate_real_arithmetic(op, evaluate_as_real(a), evaluate_as_real(b));
	return evaluate_whole_arithmetic(op, as_number(a), as_number(b));
}

static struct ky_operand evaluate_unary(enum ky_op op, struct ky_operand a)
{
	if (a.type == KY_TYPE_NONE)
		return a;
	if (a.type == KY_TYPE_REAL) {
		a.real = -a.real;
		return a;
	}
	return evaluate_number(op == KY_OP_INVERT
				       ? ~as_number(&a)
				       : (__int128)(0 - (unsigned __int128)as_number(&a)));
}

struct ky_operand ky_code_run(const struct ky_code *code, const struct ky_event *event)
{
	struct ky_operand a, b;

	if (code->is_constant)
		return code->value;
	switch (code->op) {
	case KY_OP_NAME:
		return evaluate_load(code, event);
	case KY_OP_NOT:
		a = ky_code_run(code->left, event);
		return boolean(!ky_operand_truth(&a));
	case KY_OP_NEGATE:
	case KY_OP_INVERT:
		return evaluate_unary(code->op, ky_code_run(code->left, event));
	case KY_OP_OR:
	case KY_OP_AND:
		a = ky_code_run(code->left, event);
		if (ky_operand_truth(&a) == (code->op == KY_OP_OR))
			return boolean(code->op == KY_OP_OR);
		b = ky_code_run(code->right, event);
		return boolean(ky_operand_truth(&b));
	case KY_OP_IN:
		return boolean(run_in(code, event));
	case KY_OP_EQ:
	case KY_OP_NE:
	case KY_OP_LT:
	case KY_OP_LE:
	case KY_OP_GT:
	case KY_OP_GE:
	case KY_OP_MATCH:
		a = ky_code_run(code->left, event);
		b = ky_code_run(code->right, event);
		return boolean(evaluate_compare(code->op, code->left, &a, code->right, &b));
	default:
		a = ky_code_run(code->left, event);
		b = ky_code_run(code->right, event);
		return arithmetic(code->op, &a, &b);
	}
}
