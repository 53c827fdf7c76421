/* SPDX-License-Identifier: MIT */
/* Binding a parsed filter to every event class, and asking it. */
#include "query/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "query/filter-internal.h"
#include "query/nearest.h"

struct class_filter {
	enum ky_verdict verdict;
	const struct ky_code *code;
};

struct ky_filter {
	struct ky_arena arena;
	struct class_filter **traces; /* [trace][event class index] */
};

/* ---- names that no event has ------------------------------------------------------------------- */

/* Is @scope one of those that the name is looked for in? */
static bool is_looked_in(const struct ky_node *node, enum ky_scope scope)
{
	switch (node->name.kind) {
	case KY_NAME_PAYLOAD:
		return scope == KY_SCOPE_PAYLOAD;
	case KY_NAME_CONTEXT:
		return scope == KY_SCOPE_EVENT_CONTEXT || scope == KY_SCOPE_STREAM_CONTEXT;
	case KY_NAME_PACKET:
		return scope == KY_SCOPE_PACKET_CONTEXT;
	default:
		return true;
	}
}

static void offer_fields(struct ky_nearest *n, const struct ky_node *node,
			 const struct ky_event_class *cls)
{
	for (int s = KY_SCOPE_PACKET_CONTEXT; s < KY_SCOPE_COUNT; s++) {
		const struct ky_field_class *root = ky_scope_root(cls, (enum ky_scope)s);

		if (!is_looked_in(node, (enum ky_scope)s))
			continue;
		for (size_t i = 0; root && i < root->st.n_members; i++)
			ky_nearest_offer(n, root->st.members[i].display);
	}
}

/* Context fields that one expects in every event; kymo record adds them only if it is asked to. */
static bool is_recorded_on_demand(const char *name)
{
	static const char *const fields[] = {"procname", "pid", "ppid", "uid", "gid"};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(name, fields[i]) == 0)
			return true;
	return false;
}

static int unknown_name(const struct ky_node *node, const struct ky_trace_class *const *traces,
			size_t n_traces, struct kymo_error *err)
{
	struct ky_nearest n = {.name = node->name.name};

	for (size_t t = 0; t < n_traces; t++)
		for (size_t e = 0; e < traces[t]->events.len; e++)
			offer_fields(&n, node, traces[t]->events.data[e]);
	ky_query_error(err, node->column, "no event has a %sfield '%s'",
		       node->name.kind == KY_NAME_CONTEXT ? "context " : "", node->name.name);
	if (is_recorded_on_demand(node->name.name))
		ky_error_hint(err, "a recording with the context field %s has it", node->name.name);
	else
		ky_nearest_hint(&n, err);
	return KYMO_E_INVALID;
}

/* Once all classes are bound: names that none has, operators whose types never fit. */
static int query_filter_check(const struct ky_node *node,
			      const struct ky_trace_class *const *traces, size_t n_traces,
			      struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!node)
		return KYMO_OK;
	if (node->op == KY_OP_HAS)
		return KYMO_OK;
	if (node->op == KY_OP_NAME)
		return node->n_good ? KYMO_OK : unknown_name(node, traces, n_traces, err);
	ret = query_filter_check(node->left, traces, n_traces, err);
	for (const struct ky_node *item = node->right; item && ret == KYMO_OK; item = item->next)
		ret = query_filter_check(item, traces, n_traces, err);
	if (ret < 0)
		return ret;
	if (node->op == KY_OP_MATCH && node->n_bad && !node->n_good)
		return ky_query_error(err, node->column,
				      "=~ needs a text or an enumeration on its left and a pattern "
				      "in quotes on its right, not %s and %s",
				      node->bad_left, node->bad_right);
	if (node->n_bad && !node->n_good)
		return ky_query_error(err, node->column, "'%s' does not go with %s and %s",
				      ky_op_text(node->op), node->bad_left, node->bad_right);
	return KYMO_OK;
}

/* ---- contexts that are missing ---------------------------------------------------------------- */

static bool query_filter_has_field(const struct ky_node *node,
				   const struct ky_trace_class *const *traces, size_t n_traces)
{
	struct ky_handle handle;

	for (size_t t = 0; t < n_traces; t++)
		for (size_t e = 0; e < traces[t]->events.len; e++)
			if (ky_filter_find_handle(traces[t]->events.data[e], node, &handle))
				return true;
	return false;
}

/* The first context field in the tree that no event class has; NULL: none exists. */
static const char *missing_context(const struct ky_node *node,
				   const struct ky_trace_class *const *traces, size_t n_traces)
{
	const char *name = NULL;

	if (!node || node->op == KY_OP_HAS)
		return NULL;
	if (node->op == KY_OP_NAME)
		return node->name.kind == KY_NAME_CONTEXT &&
				       !query_filter_has_field(node, traces, n_traces)
			       ? node->name.name
			       : NULL;
	name = missing_context(node->left, traces, n_traces);
	for (const struct ky_node *item = node->right; item && !name; item = item->next)
		name = missing_context(item, traces, n_traces);
	return name;
}

bool ky_filter_missing_context(const char *text, const struct ky_trace_class *const *traces,
			       size_t n_traces, char *name, size_t size)
{
	struct ky_arena arena;
	const char *missing;
	struct ky_node *root;

	ky_arena_init(&arena);
	root = ky_query_parse(text, &arena, NULL);
	missing = missing_context(root, traces, n_traces);
	if (missing)
		snprintf(name, size, "%s", missing);
	ky_arena_fini(&arena);
	return missing != NULL;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static int bind_class(struct ky_filter *filter, struct ky_node *root,
		      const struct ky_event_class *cls, struct class_filter *out)
{
	struct ky_code *code = ky_filter_bind(&filter->arena, cls, root);

	if (!code)
		return KYMO_E_MEMORY;
	out->verdict = KY_DEPENDS;
	out->code = code;
	if (code->is_constant)
		out->verdict = ky_operand_truth(&code->value) ? KY_ALWAYS : KY_NEVER;
	return KYMO_OK;
}

static int bind_all(struct ky_filter *filter, struct ky_node *root,
		    const struct ky_trace_class *const *traces, size_t n_traces,
		    struct kymo_error *err)
{
	filter->traces = ky_arena_array(&filter->arena, n_traces + 1, sizeof(*filter->traces));
	if (!filter->traces)
		return ky_error_nomem(err);
	for (size_t t = 0; t < n_traces; t++) {
		size_t n = traces[t]->events.len;

		filter->traces[t] =
			ky_arena_array(&filter->arena, n + 1, sizeof(struct class_filter));
		if (!filter->traces[t])
			return ky_error_nomem(err);
		for (size_t e = 0; e < n; e++) {
			if (bind_class(filter, root, traces[t]->events.data[e],
				       &filter->traces[t][e]) < 0)
				return ky_error_nomem(err);
		}
	}
	return query_filter_check(root, traces, n_traces, err);
}

int ky_filter_compile(const char *text_of, const struct ky_trace_class *const *traces,
		      size_t n_traces, struct ky_filter **out, struct kymo_error *err)
{
	struct ky_filter *filter = calloc(1, sizeof(*filter));
	struct kymo_error local;
	struct ky_node *root;
	int ret;

	*out = NULL;
	if (!filter)
		return ky_error_nomem(err);
	if (!err)
		err = &local;
	ky_arena_init(&filter->arena);
	root = ky_query_parse(text_of, &filter->arena, err);
	ret = root ? bind_all(filter, root, traces, n_traces, err) : err->code;
	if (ret < 0) {
		ky_filter_free(filter);
		return ret;
	}
	*out = filter;
	return KYMO_OK;
}

void ky_filter_free(struct ky_filter *filter)
{
	if (!filter)
		return;
	ky_arena_fini(&filter->arena);
	free(filter);
}

enum ky_verdict ky_filter_verdict(const struct ky_filter *filter, size_t trace,
				  const struct ky_event_class *cls)
{
	return filter->traces[trace][cls->index].verdict;
}

const struct ky_code *ky_filter_code(const struct ky_filter *filter, size_t trace,
				     const struct ky_event_class *cls)
{
	const struct class_filter *f = &filter->traces[trace][cls->index];

	return f->verdict == KY_DEPENDS ? f->code : NULL;
}

struct ky_operand ky_filter_value(const struct ky_filter *filter, size_t trace,
				  const struct ky_event *event)
{
	return ky_code_run(filter->traces[trace][event->cls->index].code, event);
}

bool ky_filter_match(const struct ky_filter *filter, size_t trace, const struct ky_event *event)
{
	const struct class_filter *f = &filter->traces[trace][event->cls->index];
	struct ky_operand value;

	if (f->verdict != KY_DEPENDS)
		return f->verdict == KY_ALWAYS;
	value = ky_code_run(f->code, event);
	return ky_operand_truth(&value);
}
