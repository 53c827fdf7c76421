/* SPDX-License-Identifier: MIT */
/* Declarators: names, and the arrays around what they name. */
#include "base/error.h"
#include "ctf/resolve/resolve.h"
#include "ctf/tsdl/tsdl-parser.h"
#include "ctf/model/walk.h"

/* A relative path begins with an identifier, an absolute one with a keyword. */
static bool is_path_begin(const struct ky_tsdl_parser *p)
{
	if (p->at->kind != KY_TOKEN_WORD)
		return false;
	switch (p->at->keyword) {
	case KY_KEYWORD_NONE:
		return true;
	case KY_KEYWORD_TRACE:
	case KY_KEYWORD_STREAM:
	case KY_KEYWORD_EVENT:
	case KY_KEYWORD_ENV:
		return p->at[1].kind == KY_TOKEN_PUNCT && p->at[1].punct == '.';
	default:
		return false;
	}
}

static int dimension(struct ky_tsdl_parser *p, struct ky_tsdl_declarator *d)
{
	struct ky_tsdl_dimension dim = {.token = p->at};
	struct ky_tsdl_attr attr = {.name = "an array's length"};
	int ret;

	if (is_path_begin(p)) {
		ret = ky_tsdl_path(p, &dim.path);
	} else if (p->at->kind == KY_TOKEN_WORD || p->at->kind == KY_TOKEN_TEXT ||
		   ky_tsdl_is(p, ']')) {
		return ky_tsdl_expected(p, "an array's length");
	} else {
		ret = ky_tsdl_value(p, &attr);
		if (ret == KYMO_OK)
			ret = ky_tsdl_attr_u64(p, &attr, &dim.length);
	}
	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, ']', "']'");
	if (ret < 0)
		return ret;
	return ky_vec_push(&d->dimensions, dim) < 0 ? ky_error_nomem(p->err) : KYMO_OK;
}

int ky_tsdl_declarator(struct ky_tsdl_parser *p, struct ky_tsdl_declarator *d, bool abstract)
{
	size_t n_open = 0;
	int ret = KYMO_OK;

	while (ky_tsdl_accept(p, '('))
		n_open++;
	if (ky_tsdl_is_identifier(p))
		d->name = p->at++;
	else if (!abstract)
		return ky_tsdl_expected(p, "a name");
	while (ret == KYMO_OK) {
		if (ky_tsdl_accept(p, '['))
			ret = dimension(p, d);
		else if (n_open)
			ret = ky_tsdl_expect(p, ')', "')'");
		else
			break;
		n_open -= p->at[-1].kind == KY_TOKEN_PUNCT && p->at[-1].punct == ')';
	}
	return ret;
}

/* Bytes with a character encoding: text. */
static bool is_character(const struct ky_field_class *cls)
{
	return ky_field_is_int(cls) && !cls->num.is_enum && cls->num.length_bits == 8 &&
	       cls->align_bits == 8 && cls->num.encoding != KY_ENCODING_NONE && !cls->num.clock;
}

static int tsdl_declarator_text_of(struct ky_tsdl_parser *p, const struct ky_tsdl_dimension *dim,
				   struct ky_field_class **cls)
{
	struct ky_field_class *text = ky_tsdl_node(p, KY_FIELD_TEXT);

	if (!text)
		return p->err->code;
	text->align_bits = 8;
	text->text.encoding = (*cls)->num.encoding;
	text->text.length_bytes = dim->length;
	*cls = text;
	return dim->path ? ky_tsdl_ref(p, dim->token, dim->path, &text->text.length_ref) : KYMO_OK;
}

static int array_of(struct ky_tsdl_parser *p, const struct ky_tsdl_dimension *dim,
		    struct ky_field_class **cls)
{
	struct ky_field_class *array = ky_tsdl_node(p, KY_FIELD_ARRAY);

	if (!array)
		return p->err->code;
	ky_field_layout_one(*cls);
	array->array.element = *cls;
	array->array.length = dim->length;
	*cls = array;
	if (dim->path)
		return ky_tsdl_ref(p, dim->token, dim->path, &array->array.length_ref);
	ky_field_layout_one(array);
	return KYMO_OK;
}

int ky_tsdl_declare(struct ky_tsdl_parser *p, const struct ky_tsdl_declarator *d,
		    struct ky_field_class **cls)
{
	for (size_t i = d->dimensions.len; i-- > 0;) {
		const struct ky_tsdl_dimension *dim = &d->dimensions.data[i];
		int ret = is_character(*cls) ? tsdl_declarator_text_of(p, dim, cls)
					     : array_of(p, dim, cls);

		if (ret == KYMO_OK && dim->path)
			ret = ky_tsdl_bind(p, *cls, true);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}
