/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/tsdl/tsdl-path.h"
#include "ctf/model/walk.h"

static int fail_ref(struct ky_tsdl_parser *p, const struct ky_field_ref *ref, int code,
		    const char *what)
{
	ky_error_set(p->err, code, "\"%.200s\" %s", ref->text, what);
	ky_error_line(p->err, ref->line, ref->column);
	return code;
}

int ky_tsdl_ref(struct ky_tsdl_parser *p, const struct ky_token *token, const char *path,
		struct ky_field_ref **ref)
{
	*ref = ky_arena_new(&p->trace->arena, struct ky_field_ref);
	if (!*ref)
		return ky_error_nomem(p->err);
	(*ref)->text = ky_arena_strdup(&p->trace->arena, path);
	(*ref)->line = token->line;
	(*ref)->column = token->column;
	return (*ref)->text ? KYMO_OK : ky_error_nomem(p->err);
}

/* ---- what was found ------------------------------------------------------------------------ */

static int bind_length(struct ky_tsdl_parser *p, struct ky_field_ref *ref,
		       struct ky_field_class *target)
{
	if (target->kind != KY_FIELD_UINT || target->num.length_bits > 64)
		return fail_ref(p, ref, KYMO_E_FORMAT,
				"is no unsigned integer of up to 64 bits, and cannot be a length");
	ref->target = target;
	target->slot = 0;
	return KYMO_OK;
}

static int bind_tag(struct ky_tsdl_parser *p, struct ky_field_class *variant,
		    struct ky_field_class *target)
{
	struct ky_field_ref *ref = variant->var.selector;

	if (!ky_field_is_int(target) || !target->num.is_enum || target->num.length_bits > 64)
		return fail_ref(p, ref, KYMO_E_FORMAT,
				"is no enumeration, and cannot be a variant's tag");
	ref->target = target;
	target->slot = 0;
	switch (ky_variant_ranges(p->trace, variant, &p->variant_budget)) {
	case KYMO_OK:
		break;
	case KYMO_E_LIMIT:
		return fail_ref(p, ref, KYMO_E_LIMIT, "and other tags have too many labels");
	default:
		return ky_error_nomem(p->err);
	}
	for (size_t i = 0; i < variant->var.n_options; i++) {
		if (variant->var.options[i].n_ranges)
			return KYMO_OK;
	}
	return fail_ref(p, ref, KYMO_E_FORMAT,
			"has no label that selects an option of its variant");
}

static int bind_to(struct ky_tsdl_parser *p, struct ky_field_class *cls,
		   struct ky_field_class *target)
{
	if (cls->kind == KY_FIELD_VARIANT)
		return bind_tag(p, cls, target);
	return bind_length(p, ky_field_ref_of(cls), target);
}

/* ---- in the environment --------------------------------------------------------------------- */

static bool is_in_env(const struct ky_field_ref *ref)
{
	return !strncmp(ref->text, "env.", 4);
}

/* A length from the environment never changes; a tag has labels, which nothing there has. */
static int bind_env(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	const struct ky_field_ref *ref = ky_field_ref_of(cls);
	const struct ky_env *env = ky_env_find(p->trace, ref->text + 4);

	if (!env)
		return fail_ref(p, ref, KYMO_E_FORMAT, "is not in the environment");
	if (cls->kind == KY_FIELD_VARIANT)
		return fail_ref(p, ref, KYMO_E_FORMAT,
				"is no enumeration, and cannot be a variant's tag");
	if (env->is_text || env->number < 0)
		return fail_ref(p, ref, KYMO_E_FORMAT,
				"is no number from 0 on, and cannot be a length");
	if (cls->kind == KY_FIELD_ARRAY) {
		cls->array.length = (uint64_t)env->number;
		cls->array.length_ref = NULL;
	} else {
		cls->text.length_bytes = (uint64_t)env->number;
		cls->text.length_ref = NULL;
	}
	return KYMO_OK;
}

/* ---- within the structs being parsed -------------------------------------------------------- */

static bool is_absolute(const struct ky_field_ref *ref)
{
	const char *rest;

	return ky_path_scope(ref->text, &rest) >= 0 || is_in_env(ref);
}

int ky_tsdl_bind(struct ky_tsdl_parser *p, struct ky_field_class *cls, bool must)
{
	struct ky_field_ref *ref = ky_field_ref_of(cls);

	if (is_absolute(ref))
		return KYMO_OK;
	for (size_t i = p->open.len; i-- > 0;) {
		const struct ky_field_class *st = p->open.data[i];
		struct ky_field_class *target =
			ky_path_follow(&p->tables, st, st->st.n_members, ref->text);

		if (target)
			return bind_to(p, cls, target);
	}
	if (must && !p->open.len)
		return fail_ref(p, ref, KYMO_E_FORMAT, "names no field: there is no struct here");
	return KYMO_OK;
}

/* ---- in other dynamic scopes ---------------------------------------------------------------- */

/* The roots that a tree can see, as far as they exist. */
struct view {
	struct ky_field_class *roots[KY_SCOPE_COUNT];
	enum ky_scope scope; /* of the tree being bound */
	struct ky_child_tables *tables;
};

static struct ky_field_class *root_member(const struct view *view, int scope, const char *path)
{
	const struct ky_field_class *root = view->roots[scope];

	if (!root || scope > (int)view->scope)
		return NULL;
	return ky_path_follow(view->tables, root, root->st.n_members, path);
}

static struct ky_field_class *find_in_view(const struct view *view, const char *path)
{
	const char *rest;
	int scope = ky_path_scope(path, &rest);

	if (scope >= 0)
		return root_member(view, scope, rest);
	/* A relative path that leads nowhere in its own scope: the nearest outer one counts. */
	for (scope = (int)view->scope - 1; scope >= 0; scope--) {
		struct ky_field_class *target = root_member(view, scope, path);

		if (target)
			return target;
	}
	return NULL;
}

KY_DEEP3(int, bind_tree, struct ky_tsdl_parser *, struct ky_field_class *, const struct view *)

static int bind_tree(struct ky_tsdl_parser *p, struct ky_field_class *cls, const struct view *view)
{
	struct ky_field_ref *ref = ky_field_ref_of(cls);
	int ret = KYMO_OK;

	if (ref && !ref->target && is_in_env(ref)) {
		ret = bind_env(p, cls);
	} else if (ref && !ref->target) {
		struct ky_field_class *target = find_in_view(view, ref->text);

		if (!target)
			return fail_ref(p, ref, KYMO_E_FORMAT,
					"names no field that is decoded earlier");
		ret = bind_to(p, cls, target);
	}
	for (size_t i = 0; i < ky_field_n_children(cls) && ret == KYMO_OK; i++)
		ret = bind_tree_deep(KYMO_E_MEMORY, p, ky_field_child(cls, i), view);
	return ret;
}

static int bind_root(struct ky_tsdl_parser *p, struct view *view, enum ky_scope scope,
		     struct ky_field_class *root)
{
	view->roots[scope] = root;
	view->scope = scope;
	return root ? bind_tree(p, root, view) : KYMO_OK;
}

static int bind_stream(struct ky_tsdl_parser *p, struct view *view, struct ky_stream_class *stream)
{
	int ret = bind_root(p, view, KY_SCOPE_PACKET_CONTEXT, stream->packet_context);

	if (ret == KYMO_OK)
		ret = bind_root(p, view, KY_SCOPE_EVENT_HEADER, stream->event_header);
	if (ret == KYMO_OK)
		ret = bind_root(p, view, KY_SCOPE_STREAM_CONTEXT, stream->event_context);
	for (size_t i = 0; i < stream->events.len && ret == KYMO_OK; i++) {
		struct ky_event_class *event = stream->events.data[i];

		ret = bind_root(p, view, KY_SCOPE_EVENT_CONTEXT, event->context);
		if (ret == KYMO_OK)
			ret = bind_root(p, view, KY_SCOPE_PAYLOAD, event->payload);
	}
	return ret;
}

int ky_tsdl_bind_scopes(struct ky_tsdl_parser *p)
{
	struct view view = {.tables = &p->tables};
	int ret = bind_root(p, &view, KY_SCOPE_PACKET_HEADER, p->trace->packet_header);

	for (size_t i = 0; i < p->trace->streams.len && ret == KYMO_OK; i++)
		ret = bind_stream(p, &view, p->trace->streams.data[i]);
	return ret;
}
