/* SPDX-License-Identifier: MIT */
#include "kernel/events/kernel-filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "query/program.h"

/* LTTng's priorities are the kernel's minus this. */
#define PRIO_OFFSET 100

/* The kernel's limit for a text in a filter, and some for the whole: a page. */
#define MAX_TEXT_BYTES	 200
#define MAX_FILTER_BYTES 3000

struct translator {
	const struct ky_event_class *cls;
	const struct ky_event_field *fields;
	size_t n_fields;
};

/* A field as the kernel knows it. */
struct operand {
	const char *name;
	bool is_text;
	bool is_signed;
	uint8_t bytes;
	int32_t add; /* to a constant that it is compared with */
	const struct ky_field_class *cls;
};

static enum ky_kernel_filter translate(const struct translator *t, const struct ky_code *code,
				       bool negated, struct ky_strbuf *out);

/* ---- fields --------------------------------------------------------------------------- */

/* The name of the field that @handle is of, in the scope where it lies. */
static const char *kernel_filter_name_of(const struct translator *t, const struct ky_handle *handle)
{
	const struct ky_field_class *root = ky_scope_root(t->cls, handle->scope);

	for (size_t i = 0; root && i < root->st.n_members; i++)
		if (root->st.members[i].cls == handle->cls)
			return root->st.members[i].display;
	return NULL;
}

static bool kernel_filter_take_payload(const struct translator *t, const char *name,
				       struct operand *operand)
{
	const struct ky_event_field *field = NULL;

	for (size_t i = 0; i < t->n_fields && !field; i++)
		if (strcmp(t->fields[i].name, name) == 0)
			field = &t->fields[i];
	if (!field || !field->kernel_name)
		return false;
	operand->name = field->kernel_name;
	operand->is_signed = field->is_signed;
	operand->bytes = field->bytes;
	switch (field->how) {
	case KY_HOW_PRIO:
		operand->add = PRIO_OFFSET;
		return true;
	case KY_HOW_TID:
		operand->name = "common_pid";
		return true;
	case KY_HOW_COPY:
		/*
		 * Where the trace has less of it than the record, the kernel compares too much; where it has
		 * a sign, and the kernel none, nothing is less than 0.
		 */
		return field->bytes == field->size && !field->is_kernel_text &&
		       field->is_signed == field->is_kernel_signed;
	case KY_HOW_TEXT:
	case KY_HOW_STRING:
	case KY_HOW_COMM:
		operand->is_text = true;
		return true;
	default:
		return false;
	}
}

static bool take_context(const char *name, struct operand *operand)
{
	operand->is_signed = true;
	operand->bytes = 4;
	if (strcmp(name, "tid") == 0) {
		operand->name = "common_pid";
	} else if (strcmp(name, "procname") == 0) {
		operand->name = "COMM";
		operand->is_text = true;
	} else {
		return false;
	}
	return true;
}

/* Is @code a field that the kernel can compare? */
static bool kernel_filter_take_operand(const struct translator *t, const struct ky_code *code,
				       struct operand *operand)
{
	const char *name;

	memset(operand, 0, sizeof(*operand));
	if (code->is_constant || code->op != KY_OP_NAME)
		return false;
	if (code->name == KY_NAME_CPU) {
		*operand = (struct operand){.name = "CPU", .is_signed = true, .bytes = 4};
		return true;
	}
	if (code->name == KY_NAME_TIME || code->handle.n_arrays)
		return false;
	operand->cls = code->handle.cls;
	name = kernel_filter_name_of(t, &code->handle);
	if (!name)
		return false;
	if (code->handle.scope == KY_SCOPE_PAYLOAD)
		return kernel_filter_take_payload(t, name, operand);
	if (code->handle.scope == KY_SCOPE_STREAM_CONTEXT)
		return take_context(name, operand);
	return false;
}

/* ---- comparisons ---------------------------------------------------------------------- */

static enum ky_op opposite(enum ky_op op)
{
	switch (op) {
	case KY_OP_EQ:
		return KY_OP_NE;
	case KY_OP_NE:
		return KY_OP_EQ;
	case KY_OP_LT:
		return KY_OP_GE;
	case KY_OP_LE:
		return KY_OP_GT;
	case KY_OP_GT:
		return KY_OP_LE;
	case KY_OP_GE:
		return KY_OP_LT;
	default:
		return op;
	}
}

static bool kernel_filter_holds(const struct operand *operand, __int128 value)
{
	unsigned int bits = operand->bytes * 8u;
	__int128 one = 1;

	if (operand->is_signed)
		return value >= -(one << (bits - 1)) && value < one << (bits - 1);
	return value >= 0 && value < one << bits;
}

static bool kernel_filter_put_number(const struct operand *operand, const char *op, __int128 value,
				     struct ky_strbuf *out)
{
	value += operand->add;
	if (!operand->bytes || !kernel_filter_holds(operand, value))
		return false;
	if (operand->is_signed)
		ky_strbuf_addf(out, "(%s %s %" PRId64 ")", operand->name, op, (int64_t)value);
	else
		ky_strbuf_addf(out, "(%s %s %" PRIu64 ")", operand->name, op, (uint64_t)value);
	return true;
}

/* A text that the kernel's parser takes as it is. */
static bool kernel_filter_is_plain(const char *text, size_t len, bool is_pattern)
{
	if (!len || len > MAX_TEXT_BYTES)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < ' ' || c == 0x7f || c == '"' || c == '\'' || c == '\\')
			return false;
		if (is_pattern && c == '[')
			return false;
	}
	/* As a pattern, the kernel takes digits for an index, and '!' for a negation. */
	return !is_pattern || (text[0] != '!' && !(text[0] >= '0' && text[0] <= '9'));
}

static bool kernel_filter_put_text(const struct operand *operand, enum ky_op op, bool negated,
				   const char *text, size_t len, struct ky_strbuf *out)
{
	bool is_pattern = op == KY_OP_MATCH;

	if ((op != KY_OP_EQ && op != KY_OP_NE && !is_pattern) ||
	    !kernel_filter_is_plain(text, len, is_pattern))
		return false;
	if (is_pattern)
		ky_strbuf_addf(out, negated ? "!(%s ~ \"%.*s\")" : "(%s ~ \"%.*s\")", operand->name,
			       (int)len, text);
	else
		ky_strbuf_addf(out, "(%s %s \"%.*s\")", operand->name,
			       ky_op_text(negated ? opposite(op) : op), (int)len, text);
	return true;
}

/* The value of an enumeration's label, where it has exactly one. */
static bool label_value(const struct operand *operand, const struct ky_operand *label,
			__int128 *value)
{
	const struct ky_field_class *cls = operand->cls;
	bool found = false;

	for (size_t i = 0; cls && i < cls->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &cls->num.mappings[i];

		if (strlen(mapping->label) != label->text.len ||
		    memcmp(mapping->label, label->text.data, label->text.len) != 0)
			continue;
		if (found || mapping->n_ranges != 1 ||
		    mapping->ranges[0].begin.u != mapping->ranges[0].end.u)
			return false;
		*value = operand->is_signed ? (__int128)mapping->ranges[0].begin.s
					    : (__int128)mapping->ranges[0].begin.u;
		found = true;
	}
	return found;
}

static bool put_comparison(const struct operand *operand, enum ky_op op, bool negated,
			   const struct ky_operand *value, struct ky_strbuf *out)
{
	__int128 number = value->number;

	if (operand->is_text)
		return value->type == KY_TYPE_TEXT &&
		       kernel_filter_put_text(operand, op, negated, value->text.data,
					      value->text.len, out);
	if (op == KY_OP_MATCH)
		return false;
	if (value->type == KY_TYPE_TEXT) {
		if ((op != KY_OP_EQ && op != KY_OP_NE) || !label_value(operand, value, &number))
			return false;
	} else if (value->type == KY_TYPE_BOOL) {
		number = value->truth;
	} else if (value->type != KY_TYPE_NUMBER) {
		return false;
	}
	return kernel_filter_put_number(operand, ky_op_text(negated ? opposite(op) : op), number,
					out);
}

/* (field & MASK) != 0, or the mask alone; the kernel's & asks just that. */
static bool put_mask(const struct translator *t, const struct ky_code *code, bool negated,
		     struct ky_strbuf *out)
{
	const struct ky_code *field = code->left, *mask = code->right;
	struct operand operand;

	if (field->is_constant) {
		field = code->right;
		mask = code->left;
	}
	if (!kernel_filter_take_operand(t, field, &operand) || operand.is_text || operand.add ||
	    !mask->is_constant || mask->value.type != KY_TYPE_NUMBER)
		return false;
	if (negated)
		ky_strbuf_addc(out, '!');
	return kernel_filter_put_number(&operand, "&", mask->value.number, out);
}

static bool kernel_filter_is_number(const struct ky_code *code, __int128 value)
{
	return code->is_constant && code->value.type == KY_TYPE_NUMBER &&
	       code->value.number == value;
}

static bool kernel_filter_put_leaf(const struct translator *t, const struct ky_code *code,
				   bool negated, struct ky_strbuf *out)
{
	const struct ky_code *left = code->left, *right = code->right;
	enum ky_op op = code->op;
	struct operand operand;

	if (op == KY_OP_BIT_AND)
		return put_mask(t, code, negated, out);
	if (op == KY_OP_NAME) {
		const struct ky_operand zero = {.type = KY_TYPE_NUMBER};

		return kernel_filter_take_operand(t, code, &operand) && !operand.is_text &&
		       put_comparison(&operand, KY_OP_NE, negated, &zero, out);
	}
	if (op < KY_OP_EQ || op > KY_OP_MATCH)
		return false;
	if ((op == KY_OP_EQ || op == KY_OP_NE) && left->op == KY_OP_BIT_AND && !left->is_constant &&
	    kernel_filter_is_number(right, 0))
		return put_mask(t, left, negated != (op == KY_OP_EQ), out);
	if (kernel_filter_take_operand(t, left, &operand) && right->is_constant)
		return put_comparison(&operand, op, negated, &right->value, out);
	if (kernel_filter_take_operand(t, right, &operand) && left->is_constant &&
	    op != KY_OP_MATCH)
		return put_comparison(&operand, ky_op_mirrored(op), negated, &left->value, out);
	return false;
}

/* ---- logic ---------------------------------------------------------------------------- */

static void kernel_filter_cut(struct ky_strbuf *out, size_t len)
{
	if (len < out->len) {
		out->len = len;
		out->data[len] = '\0';
	}
}

/* Both must be true. What one side cannot say is left to the recorder. */
static enum ky_kernel_filter both(const struct translator *t, const struct ky_code *code,
				  bool negated, struct ky_strbuf *out)
{
	size_t begin = out->len, middle;
	enum ky_kernel_filter left, right;

	ky_strbuf_addc(out, '(');
	left = translate(t, code->left, negated, out);
	if (left == KY_KERNEL_FILTER_NONE) {
		kernel_filter_cut(out, begin);
		right = translate(t, code->right, negated, out);
		return right == KY_KERNEL_FILTER_NONE ? right : KY_KERNEL_FILTER_PART;
	}
	middle = out->len;
	ky_strbuf_adds(out, " && ");
	right = translate(t, code->right, negated, out);
	if (right == KY_KERNEL_FILTER_NONE) {
		kernel_filter_cut(out, middle);
		left = KY_KERNEL_FILTER_PART;
	}
	ky_strbuf_addc(out, ')');
	return left == KY_KERNEL_FILTER_ALL && right == KY_KERNEL_FILTER_ALL
		       ? KY_KERNEL_FILTER_ALL
		       : KY_KERNEL_FILTER_PART;
}

/* One may be true: the kernel must know both. */
static enum ky_kernel_filter either(const struct translator *t, const struct ky_code *code,
				    bool negated, struct ky_strbuf *out)
{
	size_t begin = out->len;
	enum ky_kernel_filter left, right = KY_KERNEL_FILTER_NONE;

	ky_strbuf_addc(out, '(');
	left = translate(t, code->left, negated, out);
	ky_strbuf_adds(out, " || ");
	if (left != KY_KERNEL_FILTER_NONE)
		right = translate(t, code->right, negated, out);
	ky_strbuf_addc(out, ')');
	if (left == KY_KERNEL_FILTER_NONE || right == KY_KERNEL_FILTER_NONE) {
		kernel_filter_cut(out, begin);
		return KY_KERNEL_FILTER_NONE;
	}
	return left == KY_KERNEL_FILTER_ALL ? right : left;
}

/* x in (a, b): one comparison for each. */
static enum ky_kernel_filter listed(const struct translator *t, const struct ky_code *code,
				    bool negated, struct ky_strbuf *out)
{
	size_t begin = out->len;
	struct operand operand;

	if (!kernel_filter_take_operand(t, code->left, &operand))
		return KY_KERNEL_FILTER_NONE;
	ky_strbuf_addc(out, '(');
	for (const struct ky_code *item = code->right; item; item = item->next) {
		if (!item->is_constant ||
		    !put_comparison(&operand, KY_OP_EQ, negated, &item->value, out)) {
			kernel_filter_cut(out, begin);
			return KY_KERNEL_FILTER_NONE;
		}
		if (item->next)
			ky_strbuf_adds(out, negated ? " && " : " || ");
	}
	ky_strbuf_addc(out, ')');
	return KY_KERNEL_FILTER_ALL;
}

static enum ky_kernel_filter translate(const struct translator *t, const struct ky_code *code,
				       bool negated, struct ky_strbuf *out)
{
	size_t begin = out->len;

	if (code->is_constant)
		return KY_KERNEL_FILTER_NONE;
	/* A constant that is still there does not decide. */
	if ((code->op == KY_OP_AND || code->op == KY_OP_OR) &&
	    (code->left->is_constant || code->right->is_constant))
		return translate(t, code->left->is_constant ? code->right : code->left, negated,
				 out);
	switch (code->op) {
	case KY_OP_NOT:
		return translate(t, code->left, !negated, out);
	case KY_OP_AND:
		return negated ? either(t, code, true, out) : both(t, code, false, out);
	case KY_OP_OR:
		return negated ? both(t, code, true, out) : either(t, code, false, out);
	case KY_OP_IN:
		return listed(t, code, negated, out);
	default:
		if (kernel_filter_put_leaf(t, code, negated, out))
			return KY_KERNEL_FILTER_ALL;
		kernel_filter_cut(out, begin);
		return KY_KERNEL_FILTER_NONE;
	}
}

enum ky_kernel_filter ky_kernel_filter(const struct ky_filter *filter,
				       const struct ky_event_class *cls,
				       const struct ky_event_field *fields, size_t n_fields,
				       struct ky_strbuf *text)
{
	const struct translator t = {cls, fields, n_fields};
	const struct ky_code *code = ky_filter_code(filter, 0, cls);
	size_t begin = text->len;
	enum ky_kernel_filter result;

	if (!code)
		return KY_KERNEL_FILTER_NONE;
	result = translate(&t, code, false, text);
	if (text->len - begin > MAX_FILTER_BYTES) {
		kernel_filter_cut(text, begin);
		return KY_KERNEL_FILTER_NONE;
	}
	return result;
}
