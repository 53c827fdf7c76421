/* SPDX-License-Identifier: MIT */
/* Filters (docs/filter.md) as steps for tracker.bpf.c: comparisons of a field with a constant. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "kernel/tracefs/format.h"
#include "latency/tracker/tracker-internal.h"
#include "query/ast.h"

struct compiler {
	const struct ky_format *format;
	struct ky_tracker_side *side;
	bool is_key; /* a context's name must say so: another event's "pid" means another thing */
	struct kymo_error *err;
};

/* What a name stands for. */
struct named {
	struct ky_tracker_value value;
	bool is_text;
	uint32_t text_bytes;
};

/* ---- names -------------------------------------------------------------------------------- */

static const struct ky_format_field *tracker_filter_find(const struct ky_format *format,
							 const char *name, size_t len)
{
	for (size_t i = 0; i < format->n_fields; i++)
		if (strlen(format->fields[i].name) == len &&
		    memcmp(format->fields[i].name, name, len) == 0)
			return &format->fields[i];
	return NULL;
}

/* In traces, the kernel's pid is a tid: "next_tid" is its next_pid. */
static const struct ky_format_field *find_field(const struct ky_format *format, const char *name)
{
	size_t len = strlen(name);
	const struct ky_format_field *field = tracker_filter_find(format, name, len);
	char kernel[64];

	if (field || len < 3 || len >= sizeof(kernel) || strcmp(name + len - 3, "tid") != 0)
		return field;
	snprintf(kernel, sizeof(kernel), "%s", name);
	kernel[len - 3] = 'p';
	return tracker_filter_find(format, kernel, len);
}

static bool tracker_filter_name_field(const struct ky_format_field *field, struct named *named)
{
	named->value.source = KY_TRACKER_FIELD;
	named->value.offset = field->offset;
	named->value.size = (uint8_t)field->size;
	named->value.is_signed = field->is_signed;
	named->is_text = field->kind == KY_FORMAT_TEXT;
	named->text_bytes = field->size;
	return named->is_text ||
	       ((field->kind == KY_FORMAT_INT || field->kind == KY_FORMAT_POINTER) &&
		(field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8));
}

static bool name_context(const char *name, struct named *named)
{
	static const struct {
		const char *name;
		enum ky_tracker_source source;
	} contexts[] = {
		{"tid", KY_TRACKER_TID},       {"vtid", KY_TRACKER_TID},
		{"pid", KY_TRACKER_PID},       {"vpid", KY_TRACKER_PID},
		{"procname", KY_TRACKER_COMM}, {"comm", KY_TRACKER_COMM},
		{"cpu_id", KY_TRACKER_CPU},
	};

	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		if (strcmp(contexts[i].name, name) != 0)
			continue;
		named->value.source = (uint8_t)contexts[i].source;
		named->is_text = contexts[i].source == KY_TRACKER_COMM;
		named->text_bytes = KY_LATENCY_COMM_BYTES;
		return true;
	}
	return false;
}

static int take_name(const struct compiler *compiler, const struct ky_node *node,
		     struct named *named)
{
	const struct ky_format_field *field = NULL;
	enum ky_name_kind kind = node->name.kind;

	memset(named, 0, sizeof(*named));
	if (kind == KY_NAME_CPU) {
		named->value.source = KY_TRACKER_CPU;
		return KYMO_OK;
	}
	if (kind == KY_NAME_FIELD || kind == KY_NAME_PAYLOAD)
		field = find_field(compiler->format, node->name.name);
	if (field && tracker_filter_name_field(field, named))
		return KYMO_OK;
	if (field)
		return ky_query_error(compiler->err, node->column,
				      "%s: a tracker compares only numbers and texts of fixed size",
				      node->name.name);
	if (((kind == KY_NAME_FIELD && !compiler->is_key) || kind == KY_NAME_CONTEXT) &&
	    name_context(node->name.name, named))
		return KYMO_OK;
	return ky_query_error(compiler->err, node->column, "event %s has no field '%s'",
			      compiler->format->name, node->name.name);
}

/* ---- steps -------------------------------------------------------------------------------- */

static int add_step(const struct compiler *compiler, const struct ky_node *node,
		    const struct ky_tracker_step *step)
{
	if (compiler->side->n_steps == KY_TRACKER_STEPS)
		return ky_query_error(
			compiler->err, node->column,
			"the filter is too long for a tracker: at most %d comparisons "
			"and operators",
			KY_TRACKER_STEPS);
	compiler->side->steps[compiler->side->n_steps++] = *step;
	return KYMO_OK;
}

static int add_op(const struct compiler *compiler, const struct ky_node *node,
		  enum ky_tracker_op op)
{
	return add_step(compiler, node, &(struct ky_tracker_step){.op = (uint8_t)op});
}

static enum ky_tracker_op tracker_filter_step(enum ky_op op)
{
	static const uint8_t ops[] = {
		[KY_OP_EQ] = KY_TRACKER_EQ, [KY_OP_NE] = KY_TRACKER_NE, [KY_OP_LT] = KY_TRACKER_LT,
		[KY_OP_LE] = KY_TRACKER_LE, [KY_OP_GT] = KY_TRACKER_GT, [KY_OP_GE] = KY_TRACKER_GE,
	};

	return (enum ky_tracker_op)ops[op];
}

/* A number that no value of the field's sign can be: @is_above: it is larger than all of them. */
static int add_known(const struct compiler *compiler, const struct ky_node *node, enum ky_op op,
		     bool is_above)
{
	bool truth = op == KY_OP_NE || (is_above ? op == KY_OP_LT || op == KY_OP_LE
						 : op == KY_OP_GT || op == KY_OP_GE);

	return add_op(compiler, node, truth ? KY_TRACKER_TRUE : KY_TRACKER_FALSE);
}

static int add_comparison(const struct compiler *compiler, const struct ky_node *node,
			  enum ky_op op, const struct ky_node *side, const struct ky_node *constant)
{
	struct ky_tracker_step step = {.op = (uint8_t)tracker_filter_step(op)};
	__int128 number, mask = -1;
	struct named named;
	int ret;

	if (side->op == KY_OP_BIT_AND) {
		if (side->left->op != KY_OP_NAME || !ky_node_constant(side->right, &mask))
			return ky_query_error(compiler->err, side->column,
					      "a tracker knows only FIELD & NUMBER");
		side = side->left;
	}
	if (side->op != KY_OP_NAME || !ky_node_constant(constant, &number))
		return ky_query_error(compiler->err, node->column,
				      "a tracker compares a field with a constant");
	ret = take_name(compiler, side, &named);
	if (ret < 0)
		return ret;
	if (named.is_text)
		return ky_query_error(compiler->err, node->column, "'%s' is a text",
				      side->name.name);
	step.value = named.value;
	step.mask = (uint64_t)mask;
	step.number = (uint64_t)number;
	/* With a mask, what is left is bits. */
	if (step.mask != UINT64_MAX)
		step.value.is_signed = false;
	if (number < (step.value.is_signed ? (__int128)INT64_MIN : 0))
		return add_known(compiler, node, op, false);
	if (number > (step.value.is_signed ? (__int128)INT64_MAX : (__int128)UINT64_MAX))
		return add_known(compiler, node, op, true);
	return add_step(compiler, node, &step);
}

/* A text is equal, or (a pattern with '*' at its end) begins so. */
static int add_text(const struct compiler *compiler, const struct ky_node *node,
		    const struct ky_node *name, const char *text, bool is_pattern)
{
	struct ky_tracker_step step = {.op = KY_TRACKER_TEXT};
	size_t len = strlen(text), wild = is_pattern ? strcspn(text, "*?") : len;
	struct named named;
	int ret;

	ret = take_name(compiler, name, &named);
	if (ret < 0)
		return ret;
	if (!named.is_text)
		return ky_query_error(compiler->err, node->column, "'%s' is a number",
				      name->name.name);
	if (wild < len && (text[wild] != '*' || wild + 1 != len))
		return ky_query_error(compiler->err, node->column,
				      "a tracker knows only patterns with '*' at the end");
	if (wild == len)
		len++; /* with the NUL */
	else
		len = wild;
	if (len > named.text_bytes)
		return add_op(compiler, node, KY_TRACKER_FALSE);
	if (len > KY_TRACKER_TEXT_BYTES)
		return ky_query_error(compiler->err, node->column,
				      "a tracker compares at most %d bytes of a text",
				      KY_TRACKER_TEXT_BYTES);
	step.value = named.value;
	step.text_len = (uint8_t)len;
	memcpy(step.text, text, wild);
	return add_step(compiler, node, &step);
}

static int add_equal(const struct compiler *compiler, const struct ky_node *node, enum ky_op op,
		     const struct ky_node *left, const struct ky_node *right)
{
	const struct ky_node *swap = left;
	int ret;

	if (left->op == KY_OP_TEXT || left->op == KY_OP_NUMBER || left->op == KY_OP_NEGATE) {
		left = right;
		right = swap;
		op = ky_op_mirrored(op);
	}
	if (right->op != KY_OP_TEXT)
		return add_comparison(compiler, node, op, left, right);
	if (left->op != KY_OP_NAME || (op != KY_OP_EQ && op != KY_OP_NE && op != KY_OP_MATCH))
		return ky_query_error(compiler->err, node->column,
				      "a tracker compares texts of fields by ==, != and =~");
	ret = add_text(compiler, node, left, right->text, op == KY_OP_MATCH);
	return ret < 0 || op != KY_OP_NE ? ret : add_op(compiler, node, KY_TRACKER_NOT);
}

static int tracker_filter_compile(const struct compiler *compiler, const struct ky_node *node);

static int tracker_filter_add_list(const struct compiler *compiler, const struct ky_node *node)
{
	int ret = KYMO_OK;

	for (const struct ky_node *item = node->right; item && ret >= 0; item = item->next) {
		ret = add_equal(compiler, node, KY_OP_EQ, node->left, item);
		if (ret >= 0 && item != node->right)
			ret = add_op(compiler, node, KY_TRACKER_OR);
	}
	return ret;
}

static int add_both(const struct compiler *compiler, const struct ky_node *node,
		    enum ky_tracker_op op)
{
	int ret = tracker_filter_compile(compiler, node->left);

	if (ret >= 0)
		ret = tracker_filter_compile(compiler, node->right);
	return ret < 0 ? ret : add_op(compiler, node, op);
}

static int tracker_filter_compile(const struct compiler *compiler, const struct ky_node *node)
{
	static const struct ky_node zero = {.op = KY_OP_NUMBER};
	struct named named;
	int ret;

	switch (node->op) {
	case KY_OP_AND:
		return add_both(compiler, node, KY_TRACKER_AND);
	case KY_OP_OR:
		return add_both(compiler, node, KY_TRACKER_OR);
	case KY_OP_NOT:
		ret = tracker_filter_compile(compiler, node->left);
		return ret < 0 ? ret : add_op(compiler, node, KY_TRACKER_NOT);
	case KY_OP_EQ:
	case KY_OP_NE:
	case KY_OP_LT:
	case KY_OP_LE:
	case KY_OP_GT:
	case KY_OP_GE:
	case KY_OP_MATCH:
		return add_equal(compiler, node, node->op, node->left, node->right);
	case KY_OP_IN:
		return tracker_filter_add_list(compiler, node);
	case KY_OP_HAS:
		return take_name(compiler, node->left, &named) < 0
			       ? KYMO_E_INVALID
			       : add_op(compiler, node, KY_TRACKER_TRUE);
	case KY_OP_NAME:
	case KY_OP_BIT_AND:
		return add_comparison(compiler, node, KY_OP_NE, node, &zero);
	default:
		return ky_query_error(
			compiler->err, node->column,
			"a tracker's filter cannot have this; it compares fields with "
			"constants");
	}
}

int ky_tracker_filter(const char *text, const struct ky_format *format,
		      struct ky_tracker_side *side, struct kymo_error *err)
{
	struct compiler compiler = {.format = format, .side = side, .err = err};
	struct ky_arena arena;
	struct ky_node *node;
	int ret;

	ky_arena_init(&arena);
	node = ky_query_parse(text, &arena, err);
	ret = node ? tracker_filter_compile(&compiler, node) : err->code;
	ky_arena_fini(&arena);
	return ret;
}

int ky_tracker_key(const char *text, const struct ky_format *format, struct ky_tracker_side *side,
		   struct kymo_error *err)
{
	struct compiler compiler = {.format = format, .side = side, .is_key = true, .err = err};
	struct ky_arena arena;
	struct named named;
	struct ky_node *node;
	int ret;

	ky_arena_init(&arena);
	node = ky_query_parse(text, &arena, err);
	ret = node ? KYMO_OK : err->code;
	if (!ret && node->op != KY_OP_NAME)
		ret = ky_query_error(err, node->column, "the key of a tracker is a field");
	if (!ret)
		ret = take_name(&compiler, node, &named);
	if (!ret && named.is_text)
		ret = ky_query_error(err, node->column, "the key of a tracker is a number");
	if (!ret && side->n_keys == KY_TRACKER_KEYS)
		ret = ky_query_error(err, node->column, "a tracker has at most %d keys",
				     KY_TRACKER_KEYS);
	if (!ret)
		side->keys[side->n_keys++] = named.value;
	ky_arena_fini(&arena);
	return ret;
}
