/* SPDX-License-Identifier: MIT */
/* Binding a parsed filter to one event class: names become handles, and constants fold. */
#include <string.h>

#include "query/filter-internal.h"

struct binder {
	struct ky_arena *arena;
	const struct ky_event_class *cls;
	bool failed; /* out of memory */
};

static const char *const type_names[] = {"nothing",  "a truth value", "a number",
					 "a number", "a text",	      "an enumeration"};
static struct ky_code *bind(struct binder *b, struct ky_node *node);

static struct ky_code *new_code(struct binder *b, enum ky_op op, enum ky_value_type type)
{
	struct ky_code *code = ky_arena_new(b->arena, struct ky_code);

	if (!code) {
		b->failed = true;
		return NULL;
	}
	code->op = op;
	code->type = type;
	return code;
}

static struct ky_code *constant(struct binder *b, struct ky_operand value)
{
	struct ky_code *code = new_code(b, KY_OP_NUMBER, value.type);

	if (code) {
		code->is_constant = true;
		code->value = value;
	}
	return code;
}

static struct ky_code *query_filter_truth(struct binder *b, bool value)
{
	return constant(b, (struct ky_operand){.type = KY_TYPE_BOOL, .truth = value});
}

static struct ky_code *query_filter_text(struct binder *b, const char *data)
{
	struct ky_operand value = {.type = KY_TYPE_TEXT};

	value.text.data = data;
	value.text.len = strlen(data);
	return constant(b, value);
}

static enum ky_value_type query_filter_field_type(const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		return KY_TYPE_TEXT;
	case KY_FIELD_FLOAT:
		return cls->num.length_bits <= 128 ? KY_TYPE_REAL : KY_TYPE_NONE;
	case KY_FIELD_BITS:
	case KY_FIELD_BITMAP:
	case KY_FIELD_BOOL:
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
		if (cls->num.length_bits > 64 && cls->kind != KY_FIELD_BOOL)
			return KY_TYPE_NONE;
		break;
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		break;
	default:
		return KY_TYPE_NONE;
	}
	return cls->num.n_mappings && cls->kind != KY_FIELD_BITMAP ? KY_TYPE_ENUM : KY_TYPE_NUMBER;
}

bool ky_filter_find_handle(const struct ky_event_class *cls, const struct ky_node *node,
			   struct ky_handle *handle)
{
	const char *name = node->name.name;

	switch (node->name.kind) {
	case KY_NAME_PAYLOAD:
		return ky_handle_find(handle, cls, KY_SCOPE_PAYLOAD, name);
	case KY_NAME_CONTEXT:
		return ky_handle_find(handle, cls, KY_SCOPE_EVENT_CONTEXT, name) ||
		       ky_handle_find(handle, cls, KY_SCOPE_STREAM_CONTEXT, name);
	case KY_NAME_PACKET:
		return ky_handle_find(handle, cls, KY_SCOPE_PACKET_CONTEXT, name);
	default:
		return ky_handle_find_any(handle, cls, name);
	}
}

static struct ky_code *bind_field(struct binder *b, struct ky_node *node)
{
	struct ky_code *code = new_code(b, KY_OP_NAME, KY_TYPE_NONE);

	if (!code)
		return NULL;
	code->name = node->name.kind;
	if (ky_filter_find_handle(b->cls, node, &code->handle)) {
		node->n_good++;
		code->type = query_filter_field_type(code->handle.cls);
	}
	if (code->type == KY_TYPE_NONE)
		code->is_constant = true; /* of type none */
	return code;
}

static struct ky_code *query_filter_bind_name(struct binder *b, struct ky_node *node)
{
	struct ky_code *code;

	switch (node->name.kind) {
	case KY_NAME_EVENT:
		node->n_good++;
		return query_filter_text(b, b->cls->name);
	case KY_NAME_STREAM:
		node->n_good++;
		return constant(b, (struct ky_operand){.type = KY_TYPE_NUMBER,
						       .number = b->cls->stream->id});
	case KY_NAME_TIME:
	case KY_NAME_CPU:
		node->n_good++;
		code = new_code(b, KY_OP_NAME, KY_TYPE_NUMBER);
		if (code)
			code->name = node->name.kind;
		return code;
	default:
		return bind_field(b, node);
	}
}

static bool query_filter_is_numeric(enum ky_value_type type)
{
	return type == KY_TYPE_NUMBER || type == KY_TYPE_REAL || type == KY_TYPE_ENUM ||
	       type == KY_TYPE_BOOL;
}

/* Do the types go together? Nothing goes with everything: the comparison is false then. */
static bool query_filter_fits(enum ky_op op, const struct ky_code *left,
			      const struct ky_code *right)
{
	enum ky_value_type a = left->type, b = right->type;

	if (a == KY_TYPE_NONE || b == KY_TYPE_NONE)
		return true;
	switch (op) {
	case KY_OP_AND:
	case KY_OP_OR:
		return query_filter_is_numeric(a) && query_filter_is_numeric(b);
	case KY_OP_MATCH:
		return (a == KY_TYPE_TEXT || a == KY_TYPE_ENUM) && b == KY_TYPE_TEXT &&
		       right->is_constant;
	case KY_OP_EQ:
	case KY_OP_NE:
	case KY_OP_IN:
		if ((a == KY_TYPE_ENUM && b == KY_TYPE_TEXT && right->is_constant) ||
		    (b == KY_TYPE_ENUM && a == KY_TYPE_TEXT && left->is_constant))
			return true;
		/* fall through */
	case KY_OP_LT:
	case KY_OP_LE:
	case KY_OP_GT:
	case KY_OP_GE:
		return (a == KY_TYPE_TEXT) == (b == KY_TYPE_TEXT);
	case KY_OP_ADD:
	case KY_OP_SUB:
	case KY_OP_MUL:
	case KY_OP_DIV:
		return query_filter_is_numeric(a) && query_filter_is_numeric(b);
	default:
		return query_filter_is_numeric(a) && query_filter_is_numeric(b) &&
		       a != KY_TYPE_REAL && b != KY_TYPE_REAL;
	}
}

static void mismatch(struct ky_node *node, enum ky_value_type left, enum ky_value_type right)
{
	if (!node->n_bad++) {
		node->bad_left = type_names[left];
		node->bad_right = type_names[right];
	}
}

static bool is_comparison(enum ky_op op)
{
	return (op >= KY_OP_EQ && op <= KY_OP_IN) || op == KY_OP_AND || op == KY_OP_OR ||
	       op == KY_OP_NOT;
}

static enum ky_value_type result_type(enum ky_op op, enum ky_value_type a, enum ky_value_type b)
{
	if (is_comparison(op))
		return KY_TYPE_BOOL;
	if (a == KY_TYPE_NONE || b == KY_TYPE_NONE)
		return KY_TYPE_NONE;
	return a == KY_TYPE_REAL || b == KY_TYPE_REAL ? KY_TYPE_REAL : KY_TYPE_NUMBER;
}

/* What is constant is computed now; so is what its known side decides. */
static struct ky_code *query_filter_fold(struct binder *b, struct ky_code *code)
{
	const struct ky_code *left = code->left, *right = code->right;

	if (code->op == KY_OP_AND || code->op == KY_OP_OR) {
		bool decides = code->op == KY_OP_OR;

		if ((left->is_constant && ky_operand_truth(&left->value) == decides) ||
		    (right->is_constant && ky_operand_truth(&right->value) == decides))
			return query_filter_truth(b, decides);
	}
	if (is_comparison(code->op) && code->op >= KY_OP_EQ &&
	    ((left->is_constant && left->type == KY_TYPE_NONE) ||
	     (code->op != KY_OP_IN && right->is_constant && right->type == KY_TYPE_NONE)))
		return query_filter_truth(b, false);
	for (const struct ky_code *item = right; item; item = item->next) {
		if (!item->is_constant)
			return code;
	}
	return left->is_constant ? constant(b, ky_code_run(code, NULL)) : code;
}

static struct ky_code *bind_list(struct binder *b, struct ky_node *node, struct ky_code *code)
{
	struct ky_code **tail = &code->right;

	for (struct ky_node *item = node->right; item; item = item->next) {
		*tail = bind(b, item);
		if (!*tail)
			return NULL;
		if (!query_filter_fits(KY_OP_IN, code->left, *tail)) {
			mismatch(node, code->left->type, (*tail)->type);
			return query_filter_truth(b, false);
		}
		tail = &(*tail)->next;
	}
	node->n_good += code->left->type != KY_TYPE_NONE;
	return query_filter_fold(b, code);
}

static struct ky_code *bind_binary(struct binder *b, struct ky_node *node)
{
	struct ky_code *code = new_code(b, node->op, KY_TYPE_BOOL);

	if (!code)
		return NULL;
	code->left = bind(b, node->left);
	if (!code->left)
		return NULL;
	if (node->op == KY_OP_IN)
		return bind_list(b, node, code);
	code->right = bind(b, node->right);
	if (!code->right)
		return NULL;
	if (!query_filter_fits(node->op, code->left, code->right)) {
		mismatch(node, code->left->type, code->right->type);
		code->type = result_type(node->op, KY_TYPE_NONE, KY_TYPE_NONE);
		return is_comparison(node->op)
			       ? query_filter_truth(b, false)
			       : constant(b, (struct ky_operand){.type = KY_TYPE_NONE});
	}
	node->n_good += code->left->type != KY_TYPE_NONE && code->right->type != KY_TYPE_NONE;
	code->type = result_type(node->op, code->left->type, code->right->type);
	return query_filter_fold(b, code);
}

static struct ky_code *bind_unary(struct binder *b, struct ky_node *node)
{
	struct ky_code *code = new_code(b, node->op, KY_TYPE_BOOL);
	enum ky_value_type type;

	if (!code)
		return NULL;
	code->left = bind(b, node->left);
	if (!code->left)
		return NULL;
	type = code->left->type;
	if (type == KY_TYPE_TEXT || (node->op == KY_OP_INVERT && type == KY_TYPE_REAL)) {
		mismatch(node, type, type);
		return constant(b, (struct ky_operand){.type = KY_TYPE_NONE});
	}
	node->n_good += type != KY_TYPE_NONE;
	code->type = result_type(node->op, type, type);
	return query_filter_fold(b, code);
}

static struct ky_code *bind(struct binder *b, struct ky_node *node)
{
	struct ky_operand value = {.type = KY_TYPE_NUMBER};
	struct ky_handle handle;

	switch (node->op) {
	case KY_OP_NUMBER:
		value.number = node->number.negative ? (__int128)(int64_t)node->number.u
						     : (__int128)node->number.u;
		return constant(b, value);
	case KY_OP_REAL:
		return constant(b, (struct ky_operand){.type = KY_TYPE_REAL, .real = node->real});
	case KY_OP_TEXT:
		return query_filter_text(b, node->text);
	case KY_OP_NAME:
		return query_filter_bind_name(b, node);
	case KY_OP_HAS:
		if (node->left->name.kind >= KY_NAME_EVENT)
			return query_filter_truth(b, true);
		return query_filter_truth(b, ky_filter_find_handle(b->cls, node->left, &handle));
	case KY_OP_NOT:
	case KY_OP_NEGATE:
	case KY_OP_INVERT:
		return bind_unary(b, node);
	default:
		return bind_binary(b, node);
	}
}

struct ky_code *ky_filter_bind(struct ky_arena *arena, const struct ky_event_class *cls,
			       struct ky_node *root)
{
	struct binder b = {.arena = arena, .cls = cls};

	return bind(&b, root);
}
