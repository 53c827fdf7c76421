/* SPDX-License-Identifier: MIT */
#include "record/request/user-filter.h"

#include <string.h>

#include "base/error.h"
#include "query/ast.h"

struct compiler {
	struct ky_user_filter *filter;
	struct kymo_error *err;
	int depth; /* values on the stack */
};

bool ky_user_filter_has_text(uint32_t code)
{
	return code == KY_FILTER_TEXT || code == KY_FILTER_FIELD || code == KY_FILTER_CONTEXT ||
	       code == KY_FILTER_HAS;
}

void ky_user_filter_fini(struct ky_user_filter *filter)
{
	ky_vec_fini(&filter->ops);
	ky_strbuf_fini(&filter->texts);
	ky_vec_fini(&filter->names);
}

/* @change: of the number of values on the stack. */
static int user_filter_emit(struct compiler *c, const struct ky_node *node, uint32_t code,
			    uint64_t arg, int change)
{
	struct ky_filter_op op = {.code = code, .arg = arg};

	c->depth += change;
	if (c->filter->ops.len == KY_FILTER_OPS_MAX || c->depth > KY_FILTER_STACK_MAX)
		return ky_query_error(c->err, node->column,
				      "the expression is too long for a filter of a recording");
	return ky_vec_push(&c->filter->ops, op) < 0 ? ky_error_nomem(c->err) : KYMO_OK;
}

static uint64_t user_filter_add_text(struct compiler *c, const char *text)
{
	uint64_t at = c->filter->texts.len;

	ky_strbuf_add(&c->filter->texts, text, strlen(text) + 1);
	return at;
}

static int emit_name(struct compiler *c, const struct ky_node *node, bool is_asked)
{
	struct ky_user_name name = {.column = node->column, .is_asked = is_asked};
	const char *text = node->name.name;
	uint32_t code = KY_FILTER_FIELD;

	switch (node->name.kind) {
	case KY_NAME_FIELD:
	case KY_NAME_PAYLOAD:
		break;
	case KY_NAME_CPU:
		text = "cpu_id";
		/* fallthrough */
	case KY_NAME_CONTEXT:
		name.is_context = true;
		code = KY_FILTER_CONTEXT;
		break;
	case KY_NAME_EVENT:
		return ky_query_error(c->err, node->column,
				      "$event is for reading; while recording, patterns choose "
				      "and exclude events");
	default:
		return ky_query_error(c->err, node->column,
				      "'$%s' is for reading; a filter of a recording can use "
				      "fields, $ctx.NAME and $cpu",
				      text);
	}
	if (strlen(text) > KY_NAME_MAX)
		return ky_query_error(c->err, node->column, "the name is too long");
	memcpy(name.text, text, strlen(text) + 1);
	if (ky_vec_push(&c->filter->names, name) < 0)
		return ky_error_nomem(c->err);
	return user_filter_emit(c, node, is_asked ? KY_FILTER_HAS : code,
				user_filter_add_text(c, text), 1);
}

static int emit_node(struct compiler *c, const struct ky_node *node);

/* a && b, a || b: b is evaluated only where a does not decide. */
static int emit_logic(struct compiler *c, const struct ky_node *node, uint32_t code)
{
	int ret = emit_node(c, node->left);
	size_t jump = c->filter->ops.len;

	if (!ret)
		ret = user_filter_emit(c, node, code, 0, -1);
	if (!ret)
		ret = emit_node(c, node->right);
	if (!ret)
		c->filter->ops.data[jump].arg = c->filter->ops.len;
	return ret;
}

/* x in (a, b): x == a || x == b; each || jumps to the end. */
static int emit_in(struct compiler *c, const struct ky_node *node)
{
	size_t first = c->filter->ops.len;
	int ret = KYMO_OK;

	for (const struct ky_node *item = node->right; item && !ret; item = item->next) {
		ret = emit_node(c, node->left);
		if (!ret)
			ret = emit_node(c, item);
		if (!ret)
			ret = user_filter_emit(c, node, KY_FILTER_EQ, 0, -1);
		if (!ret && item->next)
			ret = user_filter_emit(c, node, KY_FILTER_OR, UINT64_MAX, -1);
	}
	for (size_t i = first; i < c->filter->ops.len; i++) {
		if (c->filter->ops.data[i].code == KY_FILTER_OR &&
		    c->filter->ops.data[i].arg == UINT64_MAX)
			c->filter->ops.data[i].arg = c->filter->ops.len;
	}
	return ret;
}

static const uint32_t codes[] = {
	[KY_OP_NOT] = KY_FILTER_NOT,
	[KY_OP_NEGATE] = KY_FILTER_NEGATE,
	[KY_OP_INVERT] = KY_FILTER_INVERT,
	[KY_OP_EQ] = KY_FILTER_EQ,
	[KY_OP_NE] = KY_FILTER_NE,
	[KY_OP_LT] = KY_FILTER_LT,
	[KY_OP_LE] = KY_FILTER_LE,
	[KY_OP_GT] = KY_FILTER_GT,
	[KY_OP_GE] = KY_FILTER_GE,
	[KY_OP_MATCH] = KY_FILTER_MATCH,
	[KY_OP_BIT_OR] = KY_FILTER_OR_BITS,
	[KY_OP_BIT_XOR] = KY_FILTER_XOR_BITS,
	[KY_OP_BIT_AND] = KY_FILTER_AND_BITS,
	[KY_OP_SHIFT_LEFT] = KY_FILTER_SHIFT_LEFT,
	[KY_OP_SHIFT_RIGHT] = KY_FILTER_SHIFT_RIGHT,
	[KY_OP_ADD] = KY_FILTER_ADD,
	[KY_OP_SUB] = KY_FILTER_SUBTRACT,
	[KY_OP_MUL] = KY_FILTER_MULTIPLY,
	[KY_OP_DIV] = KY_FILTER_DIVIDE,
	[KY_OP_MOD] = KY_FILTER_MODULO,
};

static int emit_operator(struct compiler *c, const struct ky_node *node)
{
	int ret = emit_node(c, node->left);

	if (!ret && node->right)
		ret = emit_node(c, node->right);
	return ret ? ret : user_filter_emit(c, node, codes[node->op], 0, node->right ? -1 : 0);
}

static int emit_node(struct compiler *c, const struct ky_node *node)
{
	uint64_t bits;

	switch (node->op) {
	case KY_OP_NUMBER:
		return user_filter_emit(c, node,
					node->number.negative || node->number.u <= INT64_MAX
						? KY_FILTER_INTEGER
						: KY_FILTER_UNSIGNED,
					node->number.u, 1);
	case KY_OP_REAL:
		memcpy(&bits, &node->real, sizeof(bits));
		return user_filter_emit(c, node, KY_FILTER_REAL, bits, 1);
	case KY_OP_TEXT:
		return user_filter_emit(c, node, KY_FILTER_TEXT,
					user_filter_add_text(c, node->text), 1);
	case KY_OP_NAME:
		return emit_name(c, node, false);
	case KY_OP_HAS:
		return emit_name(c, node->left, true);
	case KY_OP_AND:
		return emit_logic(c, node, KY_FILTER_AND);
	case KY_OP_OR:
		return emit_logic(c, node, KY_FILTER_OR);
	case KY_OP_IN:
		return emit_in(c, node);
	default:
		return emit_operator(c, node);
	}
}

int ky_user_filter_compile(const char *text, struct ky_user_filter *filter, struct kymo_error *err)
{
	struct compiler c = {.filter = filter, .err = err};
	struct ky_node *node;
	struct ky_arena arena;
	int ret;

	ky_arena_init(&arena);
	node = ky_query_parse(text, &arena, err);
	ret = node ? emit_node(&c, node) : err ? err->code : KYMO_E_INVALID;
	ky_arena_fini(&arena);
	if (!ret && ky_strbuf_failed(&filter->texts))
		ret = ky_error_nomem(err);
	if (ret < 0)
		ky_error_input(err, "filter");
	return ret;
}
