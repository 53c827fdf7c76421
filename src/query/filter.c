/* SPDX-License-Identifier: MIT */
/* Binding a parsed filter to every event class, and asking it. */
#include "query/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "query/program.h"

struct class_filter {
	enum ky_verdict verdict;
	const struct ky_code *code;
};

struct ky_filter {
	struct ky_arena arena;
	struct class_filter **traces; /* [trace][event class index] */
};

struct binder {
	struct ky_arena *arena;
	const struct ky_event_class *cls;
	bool failed; /* out of memory */
};

static const char *const type_names[] = {"nothing",  "a truth value", "a number",
					 "a number", "a text",	      "an enumeration"};

/* ---- binding --------------------------------------------------------------------------------- */

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

static bool find_handle(const struct ky_event_class *cls, const struct ky_node *node,
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
	if (find_handle(b->cls, node, &code->handle)) {
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
		return query_filter_truth(b, find_handle(b->cls, node->left, &handle));
	case KY_OP_NOT:
	case KY_OP_NEGATE:
	case KY_OP_INVERT:
		return bind_unary(b, node);
	default:
		return bind_binary(b, node);
	}
}

/* ---- names that no event has ------------------------------------------------------------------- */

struct nearest {
	const char *name;
	const char *best[3];
	size_t distance[3];
};

static void query_filter_offer(struct nearest *n, const char *name)
{
	size_t distance = ky_edit_distance(n->name, name);

	for (int i = 0; i < 3; i++) {
		if (n->best[i] && strcmp(n->best[i], name) == 0)
			return;
		if (n->best[i] && n->distance[i] <= distance)
			continue;
		memmove(&n->best[i + 1], &n->best[i], (size_t)(2 - i) * sizeof(n->best[0]));
		memmove(&n->distance[i + 1], &n->distance[i],
			(size_t)(2 - i) * sizeof(n->distance[0]));
		n->best[i] = name;
		n->distance[i] = distance;
		return;
	}
}

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

static void offer_fields(struct nearest *n, const struct ky_node *node,
			 const struct ky_event_class *cls)
{
	for (int s = KY_SCOPE_PACKET_CONTEXT; s < KY_SCOPE_COUNT; s++) {
		const struct ky_field_class *root = ky_scope_root(cls, (enum ky_scope)s);

		if (!is_looked_in(node, (enum ky_scope)s))
			continue;
		for (size_t i = 0; root && i < root->st.n_members; i++)
			query_filter_offer(n, root->st.members[i].display);
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
	struct nearest n = {.name = node->name.name};

	for (size_t t = 0; t < n_traces; t++)
		for (size_t e = 0; e < traces[t]->events.len; e++)
			offer_fields(&n, node, traces[t]->events.data[e]);
	ky_query_error(err, node->column, "no event has a %sfield '%s'",
		       node->name.kind == KY_NAME_CONTEXT ? "context " : "", node->name.name);
	if (is_recorded_on_demand(node->name.name))
		ky_error_hint(err, "a recording with the context field %s has it", node->name.name);
	else if (n.best[0])
		ky_error_hint(err, "the nearest names are: %s%s%s%s%s", n.best[0],
			      n.best[1] ? ", " : "", n.best[1] ? n.best[1] : "",
			      n.best[2] ? ", " : "", n.best[2] ? n.best[2] : "");
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
			if (find_handle(traces[t]->events.data[e], node, &handle))
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
	struct binder b = {.arena = &filter->arena, .cls = cls};
	struct ky_code *code = bind(&b, root);

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
