/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <string.h>

#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/model/walk.h"

/* ---- scopes ------------------------------------------------------------------------------ */

int ky_tsdl_scope_push(struct ky_tsdl_parser *p)
{
	struct ky_tsdl_scope *scope = ky_arena_new(&p->arena, struct ky_tsdl_scope);

	if (!scope)
		return ky_error_nomem(p->err);
	ky_names_init(&scope->types);
	scope->parent = p->scope;
	p->scope = scope;
	return KYMO_OK;
}

void ky_tsdl_scope_pop(struct ky_tsdl_parser *p)
{
	ky_names_fini(&p->scope->types);
	p->scope = p->scope->parent;
}

struct ky_field_class *ky_tsdl_look_up(const struct ky_tsdl_parser *p, const char *key)
{
	for (const struct ky_tsdl_scope *scope = p->scope; scope; scope = scope->parent) {
		struct ky_field_class *cls = ky_names_get(&scope->types, key);

		if (cls)
			return cls;
	}
	return NULL;
}

int ky_tsdl_register(struct ky_tsdl_parser *p, const struct ky_token *token, const char *key,
		     struct ky_field_class *cls)
{
	if (ky_names_get(&p->scope->types, key))
		return ky_tsdl_fail(p, token, "type \"%s\" is already defined in this scope", key);
	if (ky_names_set(&p->scope->types, key, cls) < 0)
		return ky_error_nomem(p->err);
	return KYMO_OK;
}

/* ---- specifiers -------------------------------------------------------------------------- */

static bool is_word_of_c(const struct ky_tsdl_parser *p)
{
	if (p->at->kind != KY_TOKEN_WORD)
		return false;
	switch (p->at->keyword) {
	case KY_KEYWORD_CHAR:
	case KY_KEYWORD_SHORT:
	case KY_KEYWORD_INT:
	case KY_KEYWORD_LONG:
	case KY_KEYWORD_FLOAT:
	case KY_KEYWORD_DOUBLE:
	case KY_KEYWORD_SIGNED:
	case KY_KEYWORD_UNSIGNED:
	case KY_KEYWORD_VOID:
	case KY_KEYWORD_BOOL:
	case KY_KEYWORD_COMPLEX:
	case KY_KEYWORD_IMAGINARY:
		return true;
	default:
		return false;
	}
}

static bool is_type_keyword(const struct ky_tsdl_parser *p)
{
	if (p->at->kind != KY_TOKEN_WORD)
		return false;
	switch (p->at->keyword) {
	case KY_KEYWORD_INTEGER:
	case KY_KEYWORD_FLOATING_POINT:
	case KY_KEYWORD_STRING:
	case KY_KEYWORD_ENUM:
	case KY_KEYWORD_STRUCT:
	case KY_KEYWORD_VARIANT:
		return true;
	default:
		return false;
	}
}

static void skip_const(struct ky_tsdl_parser *p)
{
	while (ky_tsdl_is_keyword(p, KY_KEYWORD_CONST))
		p->at++;
}

/* "unsigned long" or an identifier, normalised: one blank between words, no const. */
static int type_words(struct ky_tsdl_parser *p, const char **key)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;

	if (ky_tsdl_is_identifier(p)) {
		*key = (p->at++)->text;
		skip_const(p);
		return KYMO_OK;
	}
	if (!is_word_of_c(p))
		return ky_tsdl_expected(p, "a type");
	while (is_word_of_c(p)) {
		if (buf.len)
			ky_strbuf_addc(&buf, ' ');
		ky_strbuf_adds(&buf, (p->at++)->text);
		skip_const(p);
	}
	*key = ky_strbuf_failed(&buf) ? NULL : ky_arena_strdup(&p->arena, ky_strbuf_text(&buf));
	ky_strbuf_fini(&buf);
	return *key ? KYMO_OK : ky_error_nomem(p->err);
}

int ky_tsdl_specifiers(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	int ret;

	skip_const(p);
	*type = (struct ky_tsdl_type){.token = p->at};
	if (is_type_keyword(p)) {
		ret = ky_tsdl_type_keyword(p, type);
		skip_const(p);
		return ret;
	}
	ret = type_words(p, &type->key);
	if (ret < 0)
		return ret;
	type->cls = ky_tsdl_look_up(p, type->key);
	type->shared = true;
	return KYMO_OK;
}

/* "struct page" and two stars: the key "struct page * *". */
static int pointer_key(struct ky_tsdl_parser *p, const char **key)
{
	struct ky_strbuf buf = KY_STRBUF_INIT;

	if (!ky_tsdl_is(p, '*'))
		return KYMO_OK;
	if (!*key)
		return ky_tsdl_fail(p, p->at, "a pointer needs a type with a name");
	ky_strbuf_adds(&buf, *key);
	while (ky_tsdl_accept(p, '*')) {
		ky_strbuf_adds(&buf, " *");
		skip_const(p);
	}
	*key = ky_strbuf_failed(&buf) ? NULL : ky_arena_strdup(&p->arena, ky_strbuf_text(&buf));
	ky_strbuf_fini(&buf);
	return *key ? KYMO_OK : ky_error_nomem(p->err);
}

/* Stars after the specifiers: a pointer type is a type of its own, defined by typealias. */
static int resolve_type(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	if (ky_tsdl_is(p, '*')) {
		int ret = pointer_key(p, &type->key);

		if (ret < 0)
			return ret;
		type->cls = ky_tsdl_look_up(p, type->key);
		type->shared = true;
	}
	if (!type->cls)
		return ky_tsdl_fail(p, type->token, "there is no type \"%s\"", type->key);
	return KYMO_OK;
}

int ky_tsdl_type_name(struct ky_tsdl_parser *p, struct ky_field_class **cls)
{
	struct ky_tsdl_type type;
	int ret = ky_tsdl_specifiers(p, &type);

	if (ret == KYMO_OK)
		ret = resolve_type(p, &type);
	return ret < 0 ? ret : ky_tsdl_take(p, &type, cls);
}

/* ---- typedef and typealias ----------------------------------------------------------------- */

static int tsdl_decl_define(struct ky_tsdl_parser *p, const struct ky_tsdl_type *type,
			    const struct ky_tsdl_declarator *d, const struct ky_token *token,
			    const char *key)
{
	struct ky_field_class *cls = type->cls;
	int ret;

	/* Another name for the same type needs no copy: users take theirs. */
	if (d->dimensions.len || !type->shared) {
		ret = ky_tsdl_take(p, type, &cls);
		if (ret == KYMO_OK)
			ret = ky_tsdl_declare(p, d, &cls);
		if (ret < 0)
			return ret;
		if (!cls->type_name) {
			cls->type_name = ky_arena_strdup(&p->trace->arena, key);
			if (!cls->type_name)
				return ky_error_nomem(p->err);
		}
	}
	return ky_tsdl_register(p, token, key, cls);
}

static int typedef_name(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	struct ky_tsdl_type mine = *type;
	struct ky_tsdl_declarator d = {.name = NULL};
	int ret = resolve_type(p, &mine);

	if (ret == KYMO_OK)
		ret = ky_tsdl_declarator(p, &d, false);
	if (ret == KYMO_OK)
		ret = tsdl_decl_define(p, &mine, &d, d.name, d.name->text);
	ky_vec_fini(&d.dimensions);
	/* From here on it has a name, and a second declarator takes a copy. */
	type->shared = true;
	return ret;
}

/* "typedef TYPE a, b[2];" from TYPE on, or from the names on. */
static int typedef_names(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	int ret;

	do {
		ret = typedef_name(p, type);
	} while (ret == KYMO_OK && ky_tsdl_accept(p, ','));
	return ret < 0 ? ret : ky_tsdl_expect(p, ';', "';'");
}

static int typedef_declaration(struct ky_tsdl_parser *p)
{
	struct ky_tsdl_type type;
	int ret;

	p->at++;
	ret = ky_tsdl_specifiers(p, &type);
	return ret < 0 ? ret : typedef_names(p, &type);
}

/* What stands right of ":=": words of C, an identifier, "struct NAME", and stars. */
static int alias_name(struct ky_tsdl_parser *p, const char **key)
{
	const struct ky_token *kind = NULL;
	int ret;

	skip_const(p);
	if (ky_tsdl_is_keyword(p, KY_KEYWORD_STRUCT) || ky_tsdl_is_keyword(p, KY_KEYWORD_ENUM) ||
	    ky_tsdl_is_keyword(p, KY_KEYWORD_VARIANT)) {
		kind = p->at++;
		if (!ky_tsdl_is_identifier(p))
			return ky_tsdl_expected(p, "a name");
	}
	ret = type_words(p, key);
	if (ret < 0)
		return ret;
	if (kind) {
		*key = ky_arena_printf(&p->arena, "%s %s", kind->text, *key);
		if (!*key)
			return ky_error_nomem(p->err);
	}
	return pointer_key(p, key);
}

static int typealias_parts(struct ky_tsdl_parser *p, struct ky_tsdl_declarator *d)
{
	const struct ky_token *name_at;
	struct ky_tsdl_type type;
	const char *key;
	int ret = ky_tsdl_specifiers(p, &type);

	if (ret == KYMO_OK)
		ret = resolve_type(p, &type);
	if (ret == KYMO_OK)
		ret = ky_tsdl_declarator(p, d, true);
	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, KY_PUNCT_ASSIGN_TYPE, "':='");
	name_at = p->at;
	if (ret == KYMO_OK)
		ret = alias_name(p, &key);
	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, ';', "';'");
	return ret < 0 ? ret : tsdl_decl_define(p, &type, d, name_at, key);
}

static int typealias_declaration(struct ky_tsdl_parser *p)
{
	struct ky_tsdl_declarator d = {.name = NULL};
	int ret;

	p->at++;
	ret = typealias_parts(p, &d);
	ky_vec_fini(&d.dimensions);
	return ret;
}

/* ---- declarations ------------------------------------------------------------------------- */

static bool is_compound_keyword(const struct ky_tsdl_parser *p)
{
	return ky_tsdl_is_keyword(p, KY_KEYWORD_STRUCT) ||
	       ky_tsdl_is_keyword(p, KY_KEYWORD_VARIANT) || ky_tsdl_is_keyword(p, KY_KEYWORD_ENUM);
}

bool ky_tsdl_is_declaration(const struct ky_tsdl_parser *p)
{
	return ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEDEF) ||
	       ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEALIAS) || is_compound_keyword(p);
}

int ky_tsdl_declaration(struct ky_tsdl_parser *p)
{
	struct ky_tsdl_type type;
	int ret;

	if (ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEDEF))
		return typedef_declaration(p);
	if (ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEALIAS))
		return typealias_declaration(p);
	/* The grammar lets several follow each other: "struct a {...} struct b {...};" */
	do {
		ret = ky_tsdl_specifiers(p, &type);
	} while (ret == KYMO_OK && is_compound_keyword(p));
	if (ret < 0)
		return ret;
	if (ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEDEF)) {
		p->at++;
		return typedef_names(p, &type);
	}
	return ky_tsdl_expect(p, ';', "';'");
}

/* ---- fields ------------------------------------------------------------------------------ */

/* A variant without a tag is a type, but no field. */
static int check_field(struct ky_tsdl_parser *p, const struct ky_token *name,
		       const struct ky_field_class *cls)
{
	while (cls->kind == KY_FIELD_ARRAY)
		cls = cls->array.element;
	if (cls->kind == KY_FIELD_VARIANT && !cls->var.selector)
		return ky_tsdl_fail(p, name, "the variant \"%s\" has no tag", name->text);
	return KYMO_OK;
}

/* A bit field without a name is padding, which members of a struct must be to be read. */
static const struct ky_token *padding_name(struct ky_tsdl_parser *p, const struct ky_token *colon)
{
	struct ky_token *token = ky_arena_memdup(&p->arena, colon, sizeof(*colon));

	if (!token)
		return NULL;
	token->text = ky_arena_printf(&p->arena, "__padding_%zu", p->n_paddings++);
	return token->text ? token : NULL;
}

/* ": SIZE", behind the name and type of a field. Sets *name to NULL for what is no field. */
static int bit_field(struct ky_tsdl_parser *p, const struct ky_token **name,
		     struct ky_field_class *cls)
{
	const struct ky_token *colon = p->at++;
	int ret = ky_tsdl_bit_field(p, *name, cls);

	if (ret < 0 || *name || !cls->num.length_bits)
		return ret;
	*name = padding_name(p, colon);
	return *name ? KYMO_OK : ky_error_nomem(p->err);
}

static int one_field(struct ky_tsdl_parser *p, struct ky_tsdl_type *type, ky_tsdl_field_fn field,
		     void *data)
{
	struct ky_tsdl_type mine = *type;
	struct ky_tsdl_declarator d = {.name = NULL};
	struct ky_field_class *cls = NULL;
	int ret = resolve_type(p, &mine);

	if (ret == KYMO_OK)
		ret = ky_tsdl_declarator(p, &d, ky_tsdl_is(p, ':'));
	if (ret == KYMO_OK)
		ret = ky_tsdl_take(p, &mine, &cls);
	if (ret == KYMO_OK)
		ret = ky_tsdl_declare(p, &d, &cls);
	if (ret == KYMO_OK && ky_tsdl_is(p, ':'))
		ret = bit_field(p, &d.name, cls);
	ky_vec_fini(&d.dimensions);
	if (ret < 0 || !d.name)
		return ret;
	ret = check_field(p, d.name, cls);
	return ret < 0 ? ret : field(p, data, d.name, cls);
}

static int field_declaration(struct ky_tsdl_parser *p, ky_tsdl_field_fn field, void *data)
{
	struct ky_tsdl_type type;
	bool compound = is_compound_keyword(p);
	int ret = ky_tsdl_specifiers(p, &type);

	if (ret < 0)
		return ret;
	if (compound && ky_tsdl_accept(p, ';'))
		return KYMO_OK; /* a type that only wants to be known by its name */
	if (ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEDEF)) {
		p->at++;
		return typedef_names(p, &type);
	}
	do {
		ret = one_field(p, &type, field, data);
		/* A class that is spelled out serves the first name; the others copy it. */
		type.shared = true;
	} while (ret == KYMO_OK && ky_tsdl_accept(p, ','));
	return ret < 0 ? ret : ky_tsdl_expect(p, ';', "';' or ','");
}

int ky_tsdl_fields(struct ky_tsdl_parser *p, ky_tsdl_field_fn field, void *data)
{
	int ret = KYMO_OK;

	while (ret == KYMO_OK && !ky_tsdl_accept(p, '}')) {
		if (ky_tsdl_accept(p, ';'))
			continue;
		if (ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEDEF))
			ret = typedef_declaration(p);
		else if (ky_tsdl_is_keyword(p, KY_KEYWORD_TYPEALIAS))
			ret = typealias_declaration(p);
		else
			ret = field_declaration(p, field, data);
	}
	return ret;
}
