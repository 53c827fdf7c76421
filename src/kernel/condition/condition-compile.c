/* SPDX-License-Identifier: MIT */
/* A condition as steps: comparisons of fields with constants, and their combinations. */
#include <string.h>

#include "base/error.h"
#include "kernel/condition/condition.h"

struct compiler {
	const struct ky_condition_event *event;
	struct kymo_error *err;
};

/* A side of a comparison: FIELD or FIELD & MASK. */
struct side {
	bool is_there;
	struct ky_condition_field field;
	const struct ky_event_field *source;
	uint64_t mask;
	bool is_event;
};

static int compile_node(const struct compiler *compiler, struct ky_node *node);

/* ---- messages --------------------------------------------------------------------------- */

static int refuse(const struct compiler *compiler, const struct ky_node *node)
{
	ky_query_error(
		compiler->err, node->column,
		"the kernel cannot evaluate this part of the condition: it compares a field, or "
		"FIELD & MASK, with a constant");
	return KYMO_E_INVALID;
}

static int refuse_pattern(const struct compiler *compiler, const struct ky_node *node)
{
	return ky_query_error(compiler->err, node->column,
			      "the kernel evaluates patterns of the form \"TEXT*\" only");
}

/* As filters of traces say it. */
static int refuse_types(const struct compiler *compiler, const struct ky_node *node, bool is_text)
{
	return ky_query_error(compiler->err, node->column, "'%s' does not go with %s and %s",
			      ky_op_text(node->op), is_text ? "a text" : "a number",
			      is_text ? "a number" : "a text");
}

/* ---- steps ------------------------------------------------------------------------------ */

static int push(const struct compiler *compiler, const struct ky_condition_step *step,
		const struct ky_node *node)
{
	struct ky_condition *to = compiler->event->to;

	if (to->n_steps == KY_CONDITION_STEPS)
		return ky_query_error(
			compiler->err, node->column,
			"the condition is too long: at most %d comparisons and operators",
			KY_CONDITION_STEPS);
	if (!ky_condition_reach(&step->field, &to->record_bytes))
		return ky_query_error(compiler->err, node->column,
				      "the field is too far from the begin of the event's record");
	to->steps[to->n_steps++] = *step;
	return KYMO_OK;
}

static int push_operator(const struct compiler *compiler, enum ky_condition_op op,
			 const struct ky_node *node)
{
	const struct ky_condition_step step = {.op = op};

	return push(compiler, &step, node);
}

static int push_truth(const struct compiler *compiler, bool truth, const struct ky_node *node)
{
	return push_operator(compiler, truth ? KY_CONDITION_TRUE : KY_CONDITION_FALSE, node);
}

/* ---- fields ----------------------------------------------------------------------------- */

/* What @node is a side of: no constant. Names count in how many events they are, for messages. */
static bool take_side(const struct compiler *compiler, struct ky_node *node, struct side *side)
{
	__int128 mask = -1;

	memset(side, 0, sizeof(*side));
	if (node->op == KY_OP_BIT_AND && node->left->op == KY_OP_NAME) {
		if (!ky_node_constant(node->right, &mask))
			return false;
		node = node->left;
	}
	if (node->op != KY_OP_NAME)
		return false;
	side->mask = (uint64_t)mask;
	side->is_event = node->name.kind == KY_NAME_EVENT;
	side->is_there = side->is_event ||
			 ky_condition_find_field(compiler->event, node->name.kind, node->name.name,
						 &side->field, &side->source);
	node->n_good += side->is_there;
	/* A mask without the bit of the sign leaves bits. */
	if (mask >= 0)
		side->field.is_signed = false;
	return true;
}

static bool find_label(const struct side *side, const char *text, __int128 *value)
{
	for (uint16_t i = 0; side->source && i < side->source->n_labels; i++)
		if (strcmp(side->source->labels[i].text, text) == 0) {
			*value = side->source->labels[i].value;
			return true;
		}
	return false;
}

/* ---- comparisons ------------------------------------------------------------------------ */

/* The longest text that can be compared with the field's; *all: the field's texts are not longer. */
static size_t longest_text(const struct compiler *compiler, const struct side *side, bool *all)
{
	size_t most = KY_CONDITION_TEXT_BYTES - 1;

	*all = false;
	if (side->field.source == KY_CONDITION_CHARS && side->field.size - 1 <= most) {
		most = side->field.size - 1;
		*all = !compiler->event->cuts_texts;
	} else if (side->field.source == KY_CONDITION_COMM) {
		most = KY_EVENT_COMM_BYTES - 1;
		*all = true;
	}
	return most;
}

/* A text, as a whole or (@is_part) as the begin of the field's. */
static int compare_text(const struct compiler *compiler, const struct side *side,
			const struct ky_node *node, const char *text, bool is_part)
{
	struct ky_condition_step step = {.op = KY_CONDITION_BEGINS, .field = side->field};
	size_t len = strlen(text), most;
	bool all;

	if ((side->source && side->source->how == KY_HOW_RWBS) || side->mask != UINT64_MAX)
		return refuse(compiler, node);
	most = longest_text(compiler, side, &all);
	if (compiler->event->cuts_texts && !is_part)
		most--;
	if (len > most && all)
		return push_truth(compiler, false, node);
	if (len > most)
		return ky_query_error(compiler->err, node->column,
				      "the text is too long: at most %zu bytes", most);
	memcpy(step.text, text, len);
	step.text_len = (uint32_t)(len + !is_part);
	return push(compiler, &step, node);
}

/* EQUAL, LESS or LESS_EQUAL with a number, which may be out of the field's range. */
static int compare_number(const struct compiler *compiler, const struct side *side,
			  enum ky_condition_op op, const struct ky_node *node, __int128 value)
{
	struct ky_condition_step step = {.op = op, .field = side->field, .mask = side->mask};
	__int128 low = side->field.is_signed ? INT64_MIN : 0;
	__int128 high = side->field.is_signed ? (__int128)INT64_MAX : (__int128)UINT64_MAX;

	if (value < low)
		return push_truth(compiler, false, node);
	if (value > high)
		return push_truth(compiler, op != KY_CONDITION_EQUAL, node);
	step.value = (uint64_t)value;
	return push(compiler, &step, node);
}

/* @op: EQUAL, LESS or LESS_EQUAL. @node: the comparison. */
static int compare_value(const struct compiler *compiler, const struct side *side,
			 enum ky_condition_op op, const struct ky_node *node,
			 const struct ky_node *value)
{
	bool is_text = ky_condition_is_text(&side->field);
	__int128 number;

	if (side->is_event)
		return value->op == KY_OP_TEXT && op == KY_CONDITION_EQUAL
			       ? push_truth(compiler,
					    strcmp(compiler->event->name, value->text) == 0, value)
			       : refuse(compiler, value);
	if (value->op != KY_OP_TEXT) {
		if (!ky_node_constant(value, &number))
			return refuse(compiler, value);
		return is_text ? refuse_types(compiler, node, true)
			       : compare_number(compiler, side, op, value, number);
	}
	if (is_text)
		return op == KY_CONDITION_EQUAL
			       ? compare_text(compiler, side, value, value->text, false)
			       : refuse(compiler, value);
	if (find_label(side, value->text, &number))
		return compare_number(compiler, side, op, value, number);
	return side->source && side->source->n_labels
		       ? ky_query_error(compiler->err, value->column, "no value is called '%s'",
					value->text)
		       : refuse_types(compiler, node, false);
}

static int compile_comparison(const struct compiler *compiler, struct ky_node *node)
{
	const struct ky_node *value = node->right;
	enum ky_op op = node->op;
	struct side side;
	bool is_negated;
	int ret;

	if (!take_side(compiler, node->left, &side)) {
		value = node->left;
		op = ky_op_mirrored(op);
		if (!take_side(compiler, node->right, &side))
			return refuse(compiler, node);
	}
	if (!side.is_there)
		return push_truth(compiler, false, node);
	is_negated = op == KY_OP_NE || op == KY_OP_GT || op == KY_OP_GE;
	if (op == KY_OP_EQ || op == KY_OP_NE)
		ret = compare_value(compiler, &side, KY_CONDITION_EQUAL, node, value);
	else
		ret = compare_value(compiler, &side,
				    op == KY_OP_LT || op == KY_OP_GE ? KY_CONDITION_LESS
								     : KY_CONDITION_LESS_EQUAL,
				    node, value);
	return ret == KYMO_OK && is_negated ? push_operator(compiler, KY_CONDITION_NOT, node) : ret;
}

/* "TEXT*" and texts without wildcards. */
static int compile_match(const struct compiler *compiler, struct ky_node *node)
{
	const char *pattern;
	char text[KY_CONDITION_TEXT_BYTES + 1];
	struct side side;
	size_t len;

	if (!take_side(compiler, node->left, &side) || node->right->op != KY_OP_TEXT ||
	    side.is_event)
		return refuse(compiler, node);
	if (!side.is_there)
		return push_truth(compiler, false, node);
	if (!ky_condition_is_text(&side.field))
		return ky_query_error(
			compiler->err, node->column,
			"=~ needs a text on its left and a pattern in quotes on its right, "
			"not a number and a text");
	pattern = node->right->text;
	len = strcspn(pattern, "*?[\\");
	if (pattern[len] && strcmp(pattern + len, "*") != 0)
		return refuse_pattern(compiler, node->right);
	if (len > KY_CONDITION_TEXT_BYTES)
		len = KY_CONDITION_TEXT_BYTES;
	memcpy(text, pattern, len);
	text[len] = '\0';
	return compare_text(compiler, &side, node->right, text, pattern[len] == '*');
}

static int compile_in(const struct compiler *compiler, struct ky_node *node)
{
	struct side side;
	bool is_first = true;
	int ret = KYMO_OK;

	if (!take_side(compiler, node->left, &side))
		return refuse(compiler, node);
	if (!side.is_there)
		return push_truth(compiler, false, node);
	for (const struct ky_node *item = node->right; item && ret == KYMO_OK; item = item->next) {
		ret = compare_value(compiler, &side, KY_CONDITION_EQUAL, node, item);
		if (ret == KYMO_OK && !is_first)
			ret = push_operator(compiler, KY_CONDITION_OR, node);
		is_first = false;
	}
	return ret;
}

/* A number alone: it is not 0. */
static int compile_truth(const struct compiler *compiler, struct ky_node *node)
{
	struct side side;
	int ret;

	if (!take_side(compiler, node, &side) || side.is_event || ky_condition_is_text(&side.field))
		return refuse(compiler, node);
	if (!side.is_there)
		return push_truth(compiler, false, node);
	ret = compare_number(compiler, &side, KY_CONDITION_EQUAL, node, 0);
	return ret == KYMO_OK ? push_operator(compiler, KY_CONDITION_NOT, node) : ret;
}

/* ---- combinations ----------------------------------------------------------------------- */

static int combine(const struct compiler *compiler, struct ky_node *node, enum ky_condition_op op)
{
	int ret = compile_node(compiler, node->left);

	if (ret == KYMO_OK && op != KY_CONDITION_NOT)
		ret = compile_node(compiler, node->right);
	return ret == KYMO_OK ? push_operator(compiler, op, node) : ret;
}

static int compile_node(const struct compiler *compiler, struct ky_node *node)
{
	__int128 number;
	struct side side;

	switch (node->op) {
	case KY_OP_AND:
		return combine(compiler, node, KY_CONDITION_AND);
	case KY_OP_OR:
		return combine(compiler, node, KY_CONDITION_OR);
	case KY_OP_NOT:
		return combine(compiler, node, KY_CONDITION_NOT);
	case KY_OP_HAS:
		return take_side(compiler, node->left, &side)
			       ? push_truth(compiler, side.is_there, node)
			       : refuse(compiler, node);
	case KY_OP_EQ:
	case KY_OP_NE:
	case KY_OP_LT:
	case KY_OP_LE:
	case KY_OP_GT:
	case KY_OP_GE:
		return compile_comparison(compiler, node);
	case KY_OP_MATCH:
		return compile_match(compiler, node);
	case KY_OP_IN:
		return compile_in(compiler, node);
	default:
		return ky_node_constant(node, &number) ? push_truth(compiler, number != 0, node)
						       : compile_truth(compiler, node);
	}
}

/* Is it never true? Constants alone, without their comparisons, tell. */
static bool is_never(const struct ky_condition *condition)
{
	uint64_t stack = 1, known = 1; /* bit by bit: its value, and whether it is known */

	for (uint32_t i = 0; i < condition->n_steps; i++) {
		enum ky_condition_op op = condition->steps[i].op;
		uint64_t a = stack & 1, a_known = known & 1, b = stack >> 1 & 1,
			 b_known = known >> 1 & 1, value, is_known;

		switch (op) {
		case KY_CONDITION_NOT:
			stack ^= 1;
			continue;
		case KY_CONDITION_AND:
			value = a & b;
			is_known = (a_known & b_known) | (a_known & !a) | (b_known & !b);
			break;
		case KY_CONDITION_OR:
			value = (a & a_known) | (b & b_known);
			is_known = (a_known & b_known) | (a_known & a) | (b_known & b);
			break;
		default:
			stack = stack << 1 | (op == KY_CONDITION_TRUE);
			known = known << 1 | (op == KY_CONDITION_TRUE || op == KY_CONDITION_FALSE);
			continue;
		}
		stack = (stack >> 2) << 1 | (value & is_known);
		known = (known >> 2) << 1 | is_known;
	}
	return condition->n_steps && known & 1 && !(stack & 1);
}

/* ---- the whole -------------------------------------------------------------------------- */

/* The first name that no event has; has() may ask for those. */
static const struct ky_node *unknown_in(const struct ky_node *node)
{
	const struct ky_node *found;

	if (!node || node->op == KY_OP_HAS)
		return NULL;
	if (node->op == KY_OP_NAME)
		return node->n_good ? NULL : node;
	found = unknown_in(node->left);
	for (const struct ky_node *item = node->right; item && !found; item = item->next)
		found = unknown_in(item);
	return found;
}

int ky_condition_compile(const char *text, struct ky_condition_event *events, size_t n_events,
			 struct ky_arena *arena, struct kymo_error *err)
{
	struct ky_node *root = ky_query_parse(text, arena, err);
	const struct ky_node *unknown;
	int ret = KYMO_OK;

	if (!root)
		return err->code;
	for (size_t i = 0; i < n_events && ret == KYMO_OK; i++) {
		ret = compile_node(&(struct compiler){&events[i], err}, root);
		events[i].is_never = ret == KYMO_OK && is_never(events[i].to);
	}
	if (ret < 0)
		return ret;
	unknown = unknown_in(root);
	return unknown ? ky_condition_unknown(unknown, events, n_events, err) : KYMO_OK;
}
