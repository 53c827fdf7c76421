/* SPDX-License-Identifier: MIT */
/* Writing the roots of scopes as TSDL: by name, or in place. */
#include "ctf/tsdl/tsdl-write.h"

#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/model/walk.h"
#include "ctf/tsdl/tsdl-lex.h"

static bool tsdl_write_scopes_same_numbers(const struct ky_field_class *a,
					   const struct ky_field_class *b)
{
	if (a->num.length_bits != b->num.length_bits || a->num.unit_bits != b->num.unit_bits ||
	    a->num.big_endian != b->num.big_endian || a->num.base != b->num.base ||
	    a->num.encoding != b->num.encoding || a->num.clock != b->num.clock ||
	    a->num.n_mappings != b->num.n_mappings || a->num.is_enum != b->num.is_enum)
		return false;
	for (size_t i = 0; i < a->num.n_mappings; i++) {
		const struct ky_mapping *m = &a->num.mappings[i], *n = &b->num.mappings[i];

		if (strcmp(m->label, n->label) != 0 || m->n_ranges != n->n_ranges ||
		    memcmp(m->ranges, n->ranges, m->n_ranges * sizeof(*m->ranges)) != 0)
			return false;
	}
	return true;
}

KY_DEEP2(bool, tsdl_write_scopes_same_class, const struct ky_field_class *,
	 const struct ky_field_class *)

static bool same_children(const struct ky_field_class *a, const struct ky_field_class *b)
{
	size_t n = ky_field_n_children(a);

	if (n != ky_field_n_children(b))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (a->kind == KY_FIELD_STRUCT &&
		    strcmp(a->st.members[i].name, b->st.members[i].name) != 0)
			return false;
		if (a->kind == KY_FIELD_VARIANT &&
		    strcmp(a->var.options[i].name, b->var.options[i].name) != 0)
			return false;
		if (!tsdl_write_scopes_same_class_deep(false, ky_field_child(a, i),
						       ky_field_child(b, i)))
			return false;
	}
	return true;
}

/* Would both be written as the same text, at the same place of their scopes? */
static bool tsdl_write_scopes_same_class(const struct ky_field_class *a,
					 const struct ky_field_class *b)
{
	const struct ky_field_ref *ra = ky_field_ref_of(a), *rb = ky_field_ref_of(b);

	if (a->kind != b->kind || a->align_bits != b->align_bits || !ra != !rb)
		return false;
	if (ra && (!ra->text || !rb->text || strcmp(ra->text, rb->text) != 0))
		return false;
	switch (a->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		return a->text.encoding == b->text.encoding &&
		       a->text.length_bytes == b->text.length_bytes;
	case KY_FIELD_ARRAY:
		return a->array.length == b->array.length && same_children(a, b);
	case KY_FIELD_STRUCT:
		return a->st.min_align_bits == b->st.min_align_bits && same_children(a, b);
	case KY_FIELD_VARIANT:
		return same_children(a, b);
	default:
		return ky_field_is_num(a) && tsdl_write_scopes_same_numbers(a, b);
	}
}

int ky_tsdl_name_scope(struct ky_tsdl_writer *w, enum ky_scope scope,
		       const struct ky_field_class *root)
{
	int ret;

	if (!root || !root->type_name || !ky_tsdl_is_name(root->type_name) ||
	    ky_names_get(&w->named, root->type_name))
		return KYMO_OK;
	w->scope = scope;
	w->indent = 0;
	w->is_naming = true;
	ret = ky_tsdl_put_struct(w, root, root->type_name);
	w->is_naming = false;
	ky_strbuf_adds(w->out, ";\n\n");
	if (ret == KYMO_OK && ky_names_set(&w->named, root->type_name, (void *)(uintptr_t)root) < 0)
		return ky_error_nomem(w->err);
	return ret;
}

int ky_tsdl_put_scope(struct ky_tsdl_writer *w, enum ky_scope scope,
		      const struct ky_field_class *root, const char *name)
{
	const struct ky_field_class *named =
		root->type_name ? ky_names_get(&w->named, root->type_name) : NULL;
	int ret = KYMO_OK;

	w->scope = scope;
	w->indent = 1;
	ky_strbuf_addf(w->out, "\t%s := ", name);
	if (named && tsdl_write_scopes_same_class(named, root))
		ky_strbuf_addf(w->out, "struct %s", root->type_name);
	else
		ret = ky_tsdl_put_struct(w, root, NULL);
	ky_strbuf_adds(w->out, ";\n");
	return ret;
}
