/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/model/arena-append.h"

struct ky_field_class *ky_tsdl_node(struct ky_tsdl_parser *p, enum ky_field_kind kind)
{
	struct ky_field_class *cls;

	if (p->n_nodes == KY_TSDL_NODES_MAX + p->tokens.len) {
		ky_error_set(p->err, KYMO_E_LIMIT, "the trace has more than %llu fields",
			     (unsigned long long)p->n_nodes);
		ky_error_line(p->err, p->at->line, p->at->column);
		return NULL;
	}
	p->n_nodes++;
	cls = ky_field_class_new(p->trace, kind);
	if (!cls)
		ky_error_nomem(p->err);
	return cls;
}

/* ---- names of compounds -------------------------------------------------------------------- */

/* "struct NAME", in the parser's arena. */
static int compound_key(struct ky_tsdl_parser *p, struct ky_tsdl_type *type,
			const struct ky_token *name)
{
	type->key = ky_arena_printf(&p->arena, "%s %s", type->token->text, name->text);
	return type->key ? KYMO_OK : ky_error_nomem(p->err);
}

/* A compound was spelled out: make it known by its name, if it has one. */
static int register_compound(struct ky_tsdl_parser *p, struct ky_tsdl_type *type,
			     const struct ky_token *name)
{
	int ret;

	if (!name)
		return KYMO_OK;
	type->cls->type_name = ky_arena_strdup(&p->trace->arena, name->text);
	if (!type->cls->type_name)
		return ky_error_nomem(p->err);
	ret = compound_key(p, type, name);
	if (ret < 0)
		return ret;
	type->shared = true;
	return ky_tsdl_register(p, name, type->key, type->cls);
}

static int refer_to_compound(struct ky_tsdl_parser *p, struct ky_tsdl_type *type,
			     const struct ky_token *name)
{
	int ret;

	if (!name)
		return ky_tsdl_expected(p, "a name or '{'");
	ret = compound_key(p, type, name);
	if (ret < 0)
		return ret;
	type->shared = true;
	type->cls = ky_tsdl_look_up(p, type->key);
	return KYMO_OK;
}

static const struct ky_token *optional_name(struct ky_tsdl_parser *p)
{
	return ky_tsdl_is_identifier(p) ? p->at++ : NULL;
}

static int parse_enum(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	const struct ky_token *name = optional_name(p);
	int ret;

	if (name && !ky_tsdl_is(p, ':') && !ky_tsdl_is(p, '{'))
		return refer_to_compound(p, type, name);
	ret = ky_tsdl_enum(p, type);
	return ret < 0 ? ret : register_compound(p, type, name);
}

/* ---- struct ------------------------------------------------------------------------------ */

static int tsdl_types_add_member(struct ky_tsdl_parser *p, void *data, const struct ky_token *name,
				 struct ky_field_class *cls)
{
	struct ky_names *names = data;
	struct ky_field_class *st = *ky_vec_last(&p->open);
	struct ky_member member = {.cls = cls};

	if (ky_names_get(names, name->text))
		return ky_tsdl_fail(p, name, "this struct has two fields \"%s\"", name->text);
	if (ky_name_copy(p->trace, name->text, &member.name, &member.display) < 0 ||
	    ky_names_set(names, member.name, cls) < 0 ||
	    ky_arena_append(&p->trace->arena, (void **)&st->st.members, &st->st.n_members, &member,
			    sizeof(member)) < 0)
		return ky_error_nomem(p->err);
	return KYMO_OK;
}

static int struct_body(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	struct ky_tsdl_struct body = {.cls = cls, .align_bits = 1}, *outer = p->body;
	struct ky_names names;
	int ret;

	if (ky_vec_push(&p->open, cls) < 0)
		return ky_error_nomem(p->err);
	ret = ky_tsdl_scope_push(p);
	if (ret < 0)
		return ret;
	ky_names_init(&names);
	p->body = &body;
	ret = ky_tsdl_fields(p, tsdl_types_add_member, &names);
	p->body = outer;
	ky_names_fini(&names);
	ky_tsdl_scope_pop(p);
	p->open.len--;
	return ret;
}

/* align(BITS) behind a struct, if it is there. */
static int struct_align(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	struct ky_tsdl_attr attr = {.name = "align"};
	uint32_t align;
	int ret;

	if (!ky_tsdl_is_keyword(p, KY_KEYWORD_ALIGN))
		return KYMO_OK;
	p->at++;
	ret = ky_tsdl_expect(p, '(', "'('");
	if (ret == KYMO_OK)
		ret = ky_tsdl_value(p, &attr);
	if (ret == KYMO_OK)
		ret = ky_tsdl_attr_align(p, &attr, &align);
	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, ')', "')'");
	if (ret < 0)
		return ret;
	if (type->shared) {
		/* "struct NAME align(16)" here leaves the type of that name as it is. */
		if (!type->cls)
			return ky_tsdl_fail(p, type->token, "there is no type \"%s\"", type->key);
		ret = ky_tsdl_copy(p, type->cls, &type->cls);
		if (ret < 0)
			return ret;
		type->shared = false;
	}
	if (align > type->cls->st.min_align_bits)
		type->cls->st.min_align_bits = align;
	ky_field_layout_one(type->cls);
	return KYMO_OK;
}

static int parse_struct(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	const struct ky_token *name = optional_name(p);
	int ret;

	if (!ky_tsdl_accept(p, '{')) {
		ret = refer_to_compound(p, type, name);
		return ret < 0 ? ret : struct_align(p, type);
	}
	type->cls = ky_tsdl_node(p, KY_FIELD_STRUCT);
	if (!type->cls)
		return p->err->code;
	ret = struct_body(p, type->cls);
	if (ret == KYMO_OK)
		ret = struct_align(p, type);
	ky_field_layout_one(type->cls);
	return ret < 0 ? ret : register_compound(p, type, name);
}

/* ---- variant ----------------------------------------------------------------------------- */

struct options {
	struct ky_field_class *variant;
	struct ky_names names;
};

static int tsdl_types_add_option(struct ky_tsdl_parser *p, void *data, const struct ky_token *name,
				 struct ky_field_class *cls)
{
	struct options *options = data;
	struct ky_field_class *variant = options->variant;
	struct ky_option option = {.cls = cls};

	if (ky_names_get(&options->names, name->text))
		return ky_tsdl_fail(p, name, "this variant has two options \"%s\"", name->text);
	if (ky_name_copy(p->trace, name->text, &option.name, &option.display) < 0 ||
	    ky_names_set(&options->names, option.name, cls) < 0 ||
	    ky_arena_append(&p->trace->arena, (void **)&variant->var.options,
			    &variant->var.n_options, &option, sizeof(option)) < 0)
		return ky_error_nomem(p->err);
	return KYMO_OK;
}

static int variant_body(struct ky_tsdl_parser *p, struct ky_field_class *variant)
{
	struct ky_tsdl_struct body = {.cls = NULL}, *outer = p->body;
	struct options options = {.variant = variant};
	int ret = ky_tsdl_scope_push(p);

	if (ret < 0)
		return ret;
	ky_names_init(&options.names);
	p->body = &body;
	ret = ky_tsdl_fields(p, tsdl_types_add_option, &options);
	p->body = outer;
	ky_names_fini(&options.names);
	ky_tsdl_scope_pop(p);
	if (ret == KYMO_OK && !variant->var.n_options)
		return ky_tsdl_fail(p, p->at - 1, "a variant needs at least one option");
	return ret;
}

/* <PATH>, if it is there. */
static int variant_tag(struct ky_tsdl_parser *p, const struct ky_token **token, const char **path)
{
	struct ky_tsdl_attr attr = {.name = "a variant's tag"};
	int ret;

	*path = NULL;
	if (!ky_tsdl_accept(p, '<'))
		return KYMO_OK;
	*token = p->at;
	if (p->at->kind != KY_TOKEN_WORD)
		return ky_tsdl_expected(p, "the name of the variant's tag");
	ret = ky_tsdl_value(p, &attr);
	if (ret == KYMO_OK && !strchr(attr.text, '.') &&
	    ky_tsdl_keyword(attr.text) != KY_KEYWORD_NONE)
		return ky_tsdl_fail(p, *token, "keyword \"%s\" cannot be a variant's tag",
				    attr.text);
	*path = attr.text;
	return ret < 0 ? ret : ky_tsdl_expect(p, '>', "'>'");
}

static int tag_variant(struct ky_tsdl_parser *p, struct ky_tsdl_type *type,
		       const struct ky_token *token, const char *path)
{
	int ret = KYMO_OK;

	if (type->shared) {
		/* A name stands for the options; where it is used, the tag is given. */
		if (!type->cls)
			return ky_tsdl_fail(p, type->token, "there is no type \"%s\"", type->key);
		ret = ky_tsdl_copy(p, type->cls, &type->cls);
		type->shared = false;
	}
	if (ret == KYMO_OK)
		ret = ky_tsdl_ref(p, token, path, &type->cls->var.selector);
	return ret < 0 ? ret : ky_tsdl_bind(p, type->cls, true);
}

static int parse_variant(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	const struct ky_token *name = optional_name(p), *tag_at = NULL;
	const char *tag;
	int ret = variant_tag(p, &tag_at, &tag);

	if (ret < 0)
		return ret;
	if (ky_tsdl_accept(p, '{')) {
		type->cls = ky_tsdl_node(p, KY_FIELD_VARIANT);
		if (!type->cls)
			return p->err->code;
		ret = variant_body(p, type->cls);
		if (ret == KYMO_OK)
			ret = register_compound(p, type, name);
	} else {
		ret = refer_to_compound(p, type, name);
	}
	return ret < 0 || !tag ? ret : tag_variant(p, type, tag_at, tag);
}

/* ---- all of them ------------------------------------------------------------------------- */

KY_DEEP2(int, type_keyword, struct ky_tsdl_parser *, struct ky_tsdl_type *)

static int type_keyword(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	switch ((p->at++)->keyword) {
	case KY_KEYWORD_INTEGER:
		return ky_tsdl_integer(p, type);
	case KY_KEYWORD_FLOATING_POINT:
		return ky_tsdl_float(p, type);
	case KY_KEYWORD_STRING:
		return ky_tsdl_string(p, type);
	case KY_KEYWORD_ENUM:
		return parse_enum(p, type);
	case KY_KEYWORD_STRUCT:
		return parse_struct(p, type);
	default:
		return parse_variant(p, type);
	}
}

int ky_tsdl_type_keyword(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	return type_keyword_deep(KYMO_E_MEMORY, p, type);
}
