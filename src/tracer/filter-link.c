/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tracer/tracer.h"

static const char *filter_link_text_at(const struct ky_slot *slot, uint64_t offset)
{
	return (const char *)slot->file + offset;
}

static const struct ky_field *filter_link_find_field(const struct ky_event *event, const char *name)
{
	for (uint32_t i = 0; i < event->n_fields; i++) {
		if (!strcmp(event->fields[i].name, name))
			return &event->fields[i];
	}
	return NULL;
}

static const struct ky_context *filter_link_find_context(const char *name)
{
	struct ky_context *context = ky_trace_alloc(sizeof(*context));

	return context && ky_context_find(name, context) ? context : NULL;
}

/* ---- form: what the stack has before and after each step ---- */

static int pops(uint32_t code)
{
	if (code >= KY_FILTER_EQ && code <= KY_FILTER_MODULO)
		return 2;
	return code >= KY_FILTER_NOT;
}

static bool is_well_formed(const struct ky_filter_op *ops, uint32_t n)
{
	uint8_t depth_at[KY_FILTER_OPS_MAX + 1] = {0};
	uint32_t depth = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ops[i].code < KY_FILTER_INTEGER || ops[i].code > KY_FILTER_OR ||
		    (depth_at[i] && depth_at[i] != depth) || depth < (uint32_t)pops(ops[i].code))
			return false;
		if (ops[i].code == KY_FILTER_AND || ops[i].code == KY_FILTER_OR) {
			if (depth_at[ops[i].arg] && depth_at[ops[i].arg] != depth)
				return false;
			depth_at[ops[i].arg] = (uint8_t)depth;
			depth--;
			continue;
		}
		depth = depth - (uint32_t)pops(ops[i].code) + 1;
		if (depth > KY_FILTER_STACK_MAX)
			return false;
	}
	return depth == 1 && (!depth_at[n] || depth_at[n] == 1);
}

/* ---- comparisons of numbers with constants, all of which must hold ---- */

/* The one number that has the label; false: there are more, or none. */
static bool number_of_label(const struct ky_event *event, const struct ky_field *field,
			    const char *label, int64_t *number)
{
	const struct ky_event_record *record = event->record;
	const struct ky_field_record *described = &record->fields[field - event->fields];
	const struct ky_label_record *labels =
		(const void *)ky_record_text(record, described->labels);
	uint32_t n = 0;

	for (uint32_t i = 0; i < described->n_labels; i++) {
		if (strcmp(ky_record_text(record, labels[i].name), label) != 0)
			continue;
		if (labels[i].first != labels[i].last)
			return false;
		*number = labels[i].first;
		n++;
	}
	return n == 1;
}

/* False: no number passes. */
static bool filter_link_find_range(uint32_t code, bool is_signed, uint64_t constant,
				   struct ky_test *test)
{
	test->flip = is_signed ? UINT64_C(1) << 63 : 0;
	constant ^= test->flip;
	switch (code) {
	case KY_FILTER_EQ:
		test->low = constant;
		test->span = 0;
		return true;
	case KY_FILTER_NE:
		test->low = constant + 1;
		test->span = UINT64_MAX - 1;
		return true;
	case KY_FILTER_LT:
	case KY_FILTER_LE:
		test->low = 0;
		test->span = constant - (code == KY_FILTER_LT);
		return code == KY_FILTER_LE || constant > 0;
	default:
		test->low = constant + (code == KY_FILTER_GT);
		test->span = UINT64_MAX - test->low;
		return code == KY_FILTER_GE || constant < UINT64_MAX;
	}
}

static bool is_test(const struct ky_slot *slot, const struct ky_event *event,
		    const struct ky_filter_op *ops, struct ky_test *test)
{
	const struct ky_field *field;
	bool is_large = ops[1].arg > INT64_MAX, is_signed;
	int64_t constant = (int64_t)ops[1].arg;

	if (ops[0].code != KY_FILTER_FIELD || ops[1].code > KY_FILTER_TEXT ||
	    ops[2].code < KY_FILTER_EQ || ops[2].code > KY_FILTER_GE)
		return false;
	field = filter_link_find_field(event, filter_link_text_at(slot, ops[0].arg));
	if (!field || (field->kind != KY_KIND_INTEGER && field->kind != KY_KIND_ENUM) ||
	    (field->flags & (KY_FIELD_BIG_ENDIAN | KY_FIELD_LITTLE_ENDIAN)) ||
	    ops[1].code == KY_FILTER_REAL)
		return false;
	is_signed = field->flags & KY_FIELD_SIGNED;
	if (ops[1].code == KY_FILTER_TEXT) {
		if (field->kind != KY_KIND_ENUM || ops[2].code > KY_FILTER_NE ||
		    !number_of_label(event, field, filter_link_text_at(slot, ops[1].arg),
				     &constant))
			return false;
	} else if (is_large && (ops[1].code == KY_FILTER_INTEGER) != is_signed) {
		return false; /* a constant that is beyond the field's kind of number */
	}
	test->value = field->value;
	return filter_link_find_range(ops[2].code, is_signed, (uint64_t)constant, test);
}

static uint32_t find_tests(const struct ky_slot *slot, const struct ky_event *event,
			   const struct ky_filter_op *ops, uint32_t n, struct ky_test *tests)
{
	uint32_t n_tests = 0;

	for (uint32_t i = 0; i + 3 <= n && n_tests < 4;) {
		if (!is_test(slot, event, &ops[i], &tests[n_tests++]))
			return 0;
		i += 3;
		if (i == n)
			return n_tests;
		/* A conjunction that begins here ends the whole, or goes to one that does. */
		if (ops[i].code != KY_FILTER_AND ||
		    (ops[i].arg != n && ops[ops[i].arg].code != KY_FILTER_AND))
			return 0;
		i++;
	}
	return 0;
}

/* ---- linking ---- */

/* Whether ->arg is the place of a text; else it is a number, of which no place can be made. */
static bool filter_link_has_text(const struct ky_filter_op *op)
{
	return op->code == KY_FILTER_TEXT || op->code == KY_FILTER_FIELD ||
	       op->code == KY_FILTER_CONTEXT || op->code == KY_FILTER_HAS;
}

static void link_op(const struct ky_slot *slot, const struct ky_event *event,
		    const struct ky_filter_op *from, struct ky_linked_op *to)
{
	const char *name = filter_link_has_text(from) ? filter_link_text_at(slot, from->arg) : NULL;

	to->code = from->code;
	to->number = from->arg;
	switch (from->code) {
	case KY_FILTER_TEXT:
		to->text = name;
		break;
	case KY_FILTER_FIELD:
		to->field = filter_link_find_field(event, name);
		if (to->field)
			break;
		to->code = KY_FILTER_CONTEXT;
		/* fall through */
	case KY_FILTER_CONTEXT:
		to->context = filter_link_find_context(name);
		break;
	case KY_FILTER_HAS:
		to->code = KY_FILTER_INTEGER;
		to->number = filter_link_find_field(event, name) || filter_link_find_context(name);
		break;
	case KY_FILTER_AND:
	case KY_FILTER_OR:
		to->jump = (uint32_t)from->arg;
		break;
	default:
		break;
	}
}

/* A comparison with something that the event does not have, and nothing else. */
static bool filter_link_is_never(const struct ky_filter_linked *filter)
{
	return filter->n_ops == 3 && filter->ops[0].code == KY_FILTER_CONTEXT &&
	       !filter->ops[0].context && filter->ops[2].code <= KY_FILTER_MATCH;
}

int ky_filter_link(const struct ky_slot *slot, const struct ky_session_rule *rule,
		   const struct ky_event *event, struct ky_filter_linked **to)
{
	const struct ky_filter_op *ops = (const void *)((const char *)slot->file + rule->code);
	struct ky_filter_linked *filter;

	*to = NULL;
	if (!is_well_formed(ops, rule->n_code))
		return KY_OFF_FILTER;
	filter = ky_trace_alloc(sizeof(*filter));
	if (!filter)
		return KY_OFF_MEMORY;
	filter->n_ops = rule->n_code;
	filter->n_tests = find_tests(slot, event, ops, rule->n_code, filter->tests);
	if (!filter->n_tests) {
		filter->ops = ky_trace_alloc(rule->n_code * sizeof(filter->ops[0]));
		if (!filter->ops)
			return KY_OFF_MEMORY;
		for (uint32_t i = 0; i < rule->n_code; i++)
			link_op(slot, event, &ops[i], &filter->ops[i]);
		if (filter_link_is_never(filter))
			return 0;
	}
	*to = filter;
	return 0;
}
