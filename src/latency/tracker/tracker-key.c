/* SPDX-License-Identifier: MIT */
/* The keys of a tracker: numbers that both of its events have. */
#include "base/error.h"
#include "latency/tracker/tracker-internal.h"

static int tracker_key_unknown(const struct ky_node *node, const struct ky_condition_event *event,
			       struct kymo_error *err)
{
	int ret = ky_condition_unknown(node, event, 1, err);
	const struct ky_event_field *source;
	struct ky_condition_field field;

	if (node->name.kind == KY_NAME_FIELD &&
	    ky_condition_find_field(event, KY_NAME_CONTEXT, node->name.name, &field, &source))
		ky_error_hint(err, "$ctx.%s is that of the thread in which it happens",
			      node->name.name);
	return ret;
}

int ky_tracker_key(const char *text, const struct ky_condition_event *event, struct ky_arena *arena,
		   struct ky_tracker_side *side, struct kymo_error *err)
{
	const struct ky_node *node = ky_query_parse(text, arena, err);
	const struct ky_event_field *source;
	struct ky_condition_field field;
	enum ky_name_kind kind;

	if (!node)
		return err->code;
	if (node->op != KY_OP_NAME)
		return ky_query_error(err, node->column, "the key of a tracker is a field");
	/* A context's name must say so: another event's "pid" means another thing. */
	kind = node->name.kind == KY_NAME_FIELD ? KY_NAME_PAYLOAD : node->name.kind;
	if (!ky_condition_find_field(event, kind, node->name.name, &field, &source))
		return tracker_key_unknown(node, event, err);
	if (ky_condition_is_text(&field))
		return ky_query_error(err, node->column, "the key of a tracker is a number");
	if (side->n_keys == KY_TRACKER_KEYS)
		return ky_query_error(err, node->column, "a tracker has at most %d keys",
				      KY_TRACKER_KEYS);
	if (!ky_condition_reach(&field, &side->condition.record_bytes))
		return ky_query_error(err, node->column,
				      "the field is too far from the begin of the event's record");
	side->keys[side->n_keys++] = field;
	return KYMO_OK;
}
