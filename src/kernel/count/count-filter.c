/* SPDX-License-Identifier: MIT */
/* The filter of an event as steps of its program: comparisons of fields with constants, and their combinations. */
#include <string.h>

#include "kernel/count/count-internal.h"

static int count_filter_translate(struct ky_count_event *event, const struct ky_node *node,
				  struct kymo_error *err);

static int refuse(const struct ky_node *node, struct kymo_error *err)
{
	return ky_query_error(
		err, node->column,
		"the kernel cannot count by this part of the condition: it compares a "
		"field, or a field & MASK, with a constant");
}

static int count_filter_push(struct ky_count_event *event, const struct ky_count_step *step,
			     const struct ky_node *node, struct kymo_error *err)
{
	struct ky_count_config *config = &event->config;

	if (config->n_steps == KY_COUNT_STEPS_MAX)
		return ky_query_error(
			err, node->column,
			"the condition is too long: at most %d comparisons and operators",
			KY_COUNT_STEPS_MAX);
	if (!ky_count_need_record(config, &step->field))
		return ky_query_error(err, node->column,
				      "the field is too far from the begin of the event's record");
	config->steps[config->n_steps++] = *step;
	return KYMO_OK;
}

static int count_filter_push_op(struct ky_count_event *event, enum ky_count_op op,
				const struct ky_node *node, struct kymo_error *err)
{
	const struct ky_count_step step = {.op = op};

	return count_filter_push(event, &step, node, err);
}

/* ---- constants and fields --------------------------------------------------------------- */

/* A side of a comparison: FIELD or FIELD & MASK. */
struct side {
	bool is_there;
	struct ky_count_field field;
	const struct ky_event_field *source;
	uint64_t mask;
	bool is_event;
};

static bool take_side(const struct ky_count_event *event, const struct ky_node *node,
		      struct side *side)
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
	side->is_there = ky_count_find_field(event, node->name.kind, node->name.name, &side->field,
					     &side->source);
	return true;
}

static bool count_filter_is_text(const struct ky_count_field *field)
{
	return field->source == KY_COUNT_CHARS || field->source == KY_COUNT_DYNAMIC ||
	       field->source == KY_COUNT_USER || field->source == KY_COUNT_COMM;
}

/* ---- comparisons ------------------------------------------------------------------------ */

/* A text, as a whole or (@is_part) as the begin of the field's. */
static int compare_text(struct ky_count_event *event, const struct side *side,
			const struct ky_node *node, const char *text, bool is_part,
			struct kymo_error *err)
{
	struct ky_count_step step = {.op = KY_COUNT_BEGINS, .field = side->field};
	size_t len = strlen(text), most = KY_COUNT_TEXT_BYTES - 1;

	if (side->field.source == KY_COUNT_CHARS && side->field.size - 1 < most)
		most = side->field.size - 1;
	if (side->field.source == KY_COUNT_COMM)
		most = KY_EVENT_COMM_BYTES - 1;
	if (side->source && side->source->how == KY_HOW_RWBS)
		return refuse(node, err);
	if (len > most)
		return most < KY_COUNT_TEXT_BYTES - 1
			       ? count_filter_push_op(event, KY_COUNT_FALSE, node, err)
			       : ky_query_error(err, node->column,
						"the text is too long: at most %zu bytes", most);
	memcpy(step.text, text, len);
	step.text_len = (uint32_t)(len + !is_part);
	return count_filter_push(event, &step, node, err);
}

static bool count_filter_find_label(const struct side *side, const char *text, __int128 *value)
{
	for (uint16_t i = 0; side->source && i < side->source->n_labels; i++)
		if (strcmp(side->source->labels[i].text, text) == 0) {
			*value = side->source->labels[i].value;
			return true;
		}
	return false;
}

/* EQUAL, LESS or LESS_EQUAL with a number, which may be out of the field's range. */
static int compare_number(struct ky_count_event *event, const struct side *side,
			  enum ky_count_op op, const struct ky_node *node, __int128 value,
			  struct kymo_error *err)
{
	struct ky_count_step step = {.op = op, .field = side->field, .mask = side->mask};
	__int128 low = side->field.is_signed ? INT64_MIN : 0;
	__int128 high = side->field.is_signed ? (__int128)INT64_MAX : (__int128)UINT64_MAX;

	if (value < low)
		return count_filter_push_op(event, KY_COUNT_FALSE, node, err);
	if (value > high)
		return count_filter_push_op(
			event, op == KY_COUNT_EQUAL ? KY_COUNT_FALSE : KY_COUNT_TRUE, node, err);
	step.value = (uint64_t)value;
	return count_filter_push(event, &step, node, err);
}

/* @op: EQUAL, LESS or LESS_EQUAL. */
static int count_filter_compare_value(struct ky_count_event *event, const struct side *side,
				      enum ky_count_op op, const struct ky_node *value,
				      struct kymo_error *err)
{
	__int128 number;

	if (side->is_event && value->op == KY_OP_TEXT && op == KY_COUNT_EQUAL)
		return count_filter_push_op(event,
					    strcmp(event->name, value->text) == 0 ? KY_COUNT_TRUE
										  : KY_COUNT_FALSE,
					    value, err);
	if (side->is_event)
		return refuse(value, err);
	if (value->op == KY_OP_TEXT && count_filter_is_text(&side->field))
		return op == KY_COUNT_EQUAL
			       ? compare_text(event, side, value, value->text, false, err)
			       : refuse(value, err);
	if (value->op == KY_OP_TEXT) {
		if (!count_filter_find_label(side, value->text, &number))
			return ky_query_error(err, value->column, "no value is called '%s'",
					      value->text);
	} else if (!ky_node_constant(value, &number)) {
		return refuse(value, err);
	}
	return count_filter_is_text(&side->field)
		       ? ky_query_error(err, value->column, "a text is compared with a number")
		       : compare_number(event, side, op, value, number, err);
}

static int count_filter_compare(struct ky_count_event *event, const struct ky_node *node,
				struct kymo_error *err)
{
	const struct ky_node *value = node->right;
	enum ky_op op = node->op;
	struct side side;
	bool is_negated;
	int ret;

	if (!take_side(event, node->left, &side)) {
		value = node->left;
		op = ky_op_mirrored(op);
		if (!take_side(event, node->right, &side))
			return refuse(node, err);
	}
	if (!side.is_there)
		return count_filter_push_op(event, KY_COUNT_FALSE, node, err);
	is_negated = op == KY_OP_NE || op == KY_OP_GT || op == KY_OP_GE;
	if (op == KY_OP_EQ || op == KY_OP_NE)
		ret = count_filter_compare_value(event, &side, KY_COUNT_EQUAL, value, err);
	else
		ret = count_filter_compare_value(
			event, &side,
			op == KY_OP_LT || op == KY_OP_GE ? KY_COUNT_LESS : KY_COUNT_LESS_EQUAL,
			value, err);
	return ret == KYMO_OK && is_negated ? count_filter_push_op(event, KY_COUNT_NOT, node, err)
					    : ret;
}

/* "TEXT*" and texts without wildcards. */
static int count_filter_match(struct ky_count_event *event, const struct ky_node *node,
			      struct kymo_error *err)
{
	char text[KY_COUNT_TEXT_BYTES + 1];
	struct side side;
	size_t len;

	if (!take_side(event, node->left, &side) || node->right->op != KY_OP_TEXT || side.is_event)
		return refuse(node, err);
	if (!side.is_there)
		return count_filter_push_op(event, KY_COUNT_FALSE, node, err);
	len = strcspn(node->right->text, "*?[\\");
	if (!count_filter_is_text(&side.field) || len > KY_COUNT_TEXT_BYTES ||
	    (node->right->text[len] && strcmp(node->right->text + len, "*") != 0))
		return ky_query_error(err, node->right->column,
				      "the kernel counts by patterns of the form \"TEXT*\" only");
	memcpy(text, node->right->text, len);
	text[len] = '\0';
	return compare_text(event, &side, node->right, text, node->right->text[len] == '*', err);
}

static int count_filter_in(struct ky_count_event *event, const struct ky_node *node,
			   struct kymo_error *err)
{
	struct side side;
	bool is_first = true;
	int ret = KYMO_OK;

	if (!take_side(event, node->left, &side))
		return refuse(node, err);
	if (!side.is_there)
		return count_filter_push_op(event, KY_COUNT_FALSE, node, err);
	for (const struct ky_node *item = node->right; item && ret == KYMO_OK; item = item->next) {
		ret = count_filter_compare_value(event, &side, KY_COUNT_EQUAL, item, err);
		if (ret == KYMO_OK && !is_first)
			ret = count_filter_push_op(event, KY_COUNT_OR, node, err);
		is_first = false;
	}
	return ret;
}

/* ---- combinations ----------------------------------------------------------------------- */

static int count_filter_combine(struct ky_count_event *event, const struct ky_node *node,
				enum ky_count_op op, struct kymo_error *err)
{
	int ret = count_filter_translate(event, node->left, err);

	if (ret == KYMO_OK && op != KY_COUNT_NOT)
		ret = count_filter_translate(event, node->right, err);
	return ret == KYMO_OK ? count_filter_push_op(event, op, node, err) : ret;
}

static int count_filter_translate(struct ky_count_event *event, const struct ky_node *node,
				  struct kymo_error *err)
{
	struct side side;

	switch (node->op) {
	case KY_OP_AND:
		return count_filter_combine(event, node, KY_COUNT_AND, err);
	case KY_OP_OR:
		return count_filter_combine(event, node, KY_COUNT_OR, err);
	case KY_OP_NOT:
		return count_filter_combine(event, node, KY_COUNT_NOT, err);
	case KY_OP_HAS:
		if (!take_side(event, node->left, &side))
			return refuse(node, err);
		return count_filter_push_op(event, side.is_there ? KY_COUNT_TRUE : KY_COUNT_FALSE,
					    node, err);
	case KY_OP_EQ:
	case KY_OP_NE:
	case KY_OP_LT:
	case KY_OP_LE:
	case KY_OP_GT:
	case KY_OP_GE:
		return count_filter_compare(event, node, err);
	case KY_OP_MATCH:
		return count_filter_match(event, node, err);
	case KY_OP_IN:
		return count_filter_in(event, node, err);
	default:
		return refuse(node, err);
	}
}

/* Is it never true? Constants alone, without their comparisons, tell. */
static bool count_filter_is_never(const struct ky_count_config *config)
{
	uint64_t stack = 1, known = 1; /* bit by bit: its value, and whether it is known */

	for (uint32_t i = 0; i < config->n_steps; i++) {
		uint64_t a = stack & 1, a_known = known & 1, b = stack >> 1 & 1,
			 b_known = known >> 1 & 1, value, is_known;

		switch (config->steps[i].op) {
		case KY_COUNT_NOT:
			stack ^= 1;
			continue;
		case KY_COUNT_AND:
			value = a & b;
			is_known = (a_known & b_known) | (a_known & !a) | (b_known & !b);
			break;
		case KY_COUNT_OR:
			value = (a & a_known) | (b & b_known);
			is_known = (a_known & b_known) | (a_known & a) | (b_known & b);
			break;
		default:
			stack = stack << 1 | (config->steps[i].op == KY_COUNT_TRUE);
			known = known << 1 | (config->steps[i].op == KY_COUNT_TRUE ||
					      config->steps[i].op == KY_COUNT_FALSE);
			continue;
		}
		stack = (stack >> 2) << 1 | (value & is_known);
		known = (known >> 2) << 1 | is_known;
	}
	return config->n_steps && known & 1 && !(stack & 1);
}

int ky_count_compile(struct ky_count_event *event, const struct ky_node *node,
		     struct kymo_error *err)
{
	int ret = count_filter_translate(event, node, err);

	event->is_never = ret == KYMO_OK && count_filter_is_never(&event->config);
	return ret;
}
