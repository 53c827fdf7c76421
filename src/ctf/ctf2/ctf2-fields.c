/* SPDX-License-Identifier: MIT */
/* Field classes of CTF 2. */
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/ctf2/ctf2-read.h"

/* Aliases may contain aliases: what they unfold to is bounded. */
#define CLASSES_MAX (UINT64_C(1) << 20)

typedef int (*fill_fn)(struct ky_ctf2_reader *r, const struct ky_json *node,
		       struct ky_ctf2_place *place);

/* ---- one function per kind ------------------------------------------------------------------- */

static int byte_order(struct ky_ctf2_reader *r, const struct ky_json *node,
		      struct ky_field_class *cls)
{
	const char *order, *bits = NULL;
	int ret = ky_ctf2_string(r, node, "byte-order", true, &order);

	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, node, "bit-order", false, &bits);
	if (ret < 0)
		return ret;
	if (strcmp(order, "big-endian") == 0)
		cls->num.big_endian = true;
	else if (strcmp(order, "little-endian") != 0)
		return ky_json_error(r->err, ky_json_get(node, "byte-order"),
				     "unknown byte order '%s'", order);
	if (!bits)
		return KYMO_OK;
	if (strcmp(bits, "first-to-last") == 0)
		cls->num.bits_reversed = cls->num.big_endian;
	else if (strcmp(bits, "last-to-first") == 0)
		cls->num.bits_reversed = !cls->num.big_endian;
	else
		return ky_json_error(r->err, ky_json_get(node, "bit-order"),
				     "unknown bit order '%s'", bits);
	return KYMO_OK;
}

static int display_base(struct ky_ctf2_reader *r, const struct ky_json *node,
			struct ky_field_class *cls)
{
	uint64_t base = 10;
	int ret = ky_ctf2_uint(r, node, "preferred-display-base", false, &base);

	if (ret < 0)
		return ret;
	if (base != 2 && base != 8 && base != 10 && base != 16)
		return ky_json_error(r->err, ky_json_get(node, "preferred-display-base"),
				     "the display base is 2, 8, 10 or 16");
	cls->num.base = (uint8_t)base;
	return KYMO_OK;
}

static int fill_bits(struct ky_ctf2_reader *r, const struct ky_json *node,
		     struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	uint64_t length = 0;
	int ret = ky_ctf2_uint(r, node, "length", true, &length);

	cls->num.base = 16;
	if (ret == KYMO_OK)
		ret = byte_order(r, node, cls);
	if (ret == KYMO_OK)
		ret = ky_ctf2_align(r, node, "alignment", &cls->align_bits);
	if (ret < 0)
		return ret;
	if (!length || length > UINT32_MAX / 2)
		return ky_json_error(r->err, ky_json_get(node, "length"),
				     "a length of %llu bits is not valid",
				     (unsigned long long)length);
	cls->num.length_bits = (uint32_t)length;
	return KYMO_OK;
}

static int fill_bitmap(struct ky_ctf2_reader *r, const struct ky_json *node,
		       struct ky_ctf2_place *place)
{
	const struct ky_json *flags;
	int ret = fill_bits(r, node, place);

	if (ret == KYMO_OK)
		ret = ky_ctf2_property(r, node, "flags", true, KY_JSON_OBJECT, &flags);
	if (ret < 0)
		return ret;
	if (!flags->list.len)
		return ky_json_error(r->err, flags, "a bit map needs at least one flag");
	return ky_ctf2_mappings(r, node, "flags", false, 64, place->cls);
}

static int fill_integer(struct ky_ctf2_reader *r, const struct ky_json *node,
			struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	bool is_signed = cls->kind == KY_FIELD_SINT || cls->kind == KY_FIELD_VARSINT;
	int ret = KYMO_OK;

	if (cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT)
		ret = fill_bits(r, node, place);
	if (ret == KYMO_OK)
		ret = display_base(r, node, cls);
	if (ret == KYMO_OK)
		ret = ky_ctf2_mappings(r, node, "mappings", is_signed, ky_ctf2_value_bits(cls),
				       cls);
	if (ret == KYMO_OK)
		ret = ky_ctf2_roles(r, node, cls);
	cls->num.is_enum = cls->num.n_mappings > 0;
	return ret;
}

static int fill_float(struct ky_ctf2_reader *r, const struct ky_json *node,
		      struct ky_ctf2_place *place)
{
	int ret = fill_bits(r, node, place);
	uint32_t bits = place->cls->num.length_bits;

	if (ret < 0)
		return ret;
	if (bits != 16 && bits != 32 && bits != 64 && (bits < 128 || bits % 32))
		return ky_json_error(r->err, ky_json_get(node, "length"),
				     "there is no floating-point number of %u bits", bits);
	return KYMO_OK;
}

/* "static-length-..." or "dynamic-length-...": the present property decides. */
static int bytes_length(struct ky_ctf2_reader *r, const struct ky_json *node,
			struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	const char *type = ky_json_get(node, "type")->string.data;

	if (strncmp(type, "dynamic", 7) == 0)
		return ky_ctf2_location(r, node, "length-field-location", true, place,
					&cls->text.length_ref);
	return ky_ctf2_uint(r, node, "length", true, &cls->text.length_bytes);
}

static int fill_string(struct ky_ctf2_reader *r, const struct ky_json *node,
		       struct ky_ctf2_place *place)
{
	int ret = ky_ctf2_encoding(r, node, place->cls);

	if (ret == KYMO_OK && place->cls->kind == KY_FIELD_TEXT)
		ret = bytes_length(r, node, place);
	return ret;
}

static int ctf2_fields_fill_blob(struct ky_ctf2_reader *r, const struct ky_json *node,
				 struct ky_ctf2_place *place)
{
	int ret = bytes_length(r, node, place);

	place->cls->text.media_type = "application/octet-stream";
	if (ret == KYMO_OK)
		ret = ky_ctf2_string(r, node, "media-type", false, &place->cls->text.media_type);
	if (ret == KYMO_OK)
		ret = ky_ctf2_roles(r, node, place->cls);
	return ret;
}

static int ctf2_fields_add_member(struct ky_ctf2_reader *r, const struct ky_json *node,
				  struct ky_ctf2_place *place, struct ky_member *member)
{
	const struct ky_json *cls = ky_json_get(node, "field-class");
	int ret = ky_ctf2_string(r, node, "name", true, &member->name);

	if (ret == KYMO_OK)
		ret = ky_ctf2_no_extensions(r, node);
	if (ret < 0)
		return ret;
	member->display = member->name;
	if (ky_ctf2_attributes(r, node, &member->attributes) < 0)
		return KYMO_E_MEMORY;
	if (!cls)
		return ky_json_error(r->err, node, "property 'field-class' is missing");
	return ky_ctf2_field_class(r, cls, place, &member->cls);
}

/* Producers do give two members one name: it hinders nothing, a location means the first. */
static int fill_struct(struct ky_ctf2_reader *r, const struct ky_json *node,
		       struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	const struct ky_json *list;
	int ret = ky_ctf2_property(r, node, "member-classes", false, KY_JSON_ARRAY, &list);

	cls->st.min_align_bits = 1;
	if (ret == KYMO_OK)
		ret = ky_ctf2_align(r, node, "minimum-alignment", &cls->st.min_align_bits);
	if (ret < 0 || !list)
		return ret;
	cls->st.members = ky_ctf2_alloc(r, list->list.len, sizeof(*cls->st.members));
	if (!cls->st.members)
		return KYMO_E_MEMORY;
	for (const struct ky_json *item = list->list.first; item; item = item->next) {
		ret = ctf2_fields_add_member(r, item, place, &cls->st.members[cls->st.n_members]);
		if (ret < 0)
			return ret;
		cls->st.n_members++;
	}
	return KYMO_OK;
}

static int fill_array(struct ky_ctf2_reader *r, const struct ky_json *node,
		      struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	const struct ky_json *element = ky_json_get(node, "element-field-class");
	const char *type = ky_json_get(node, "type")->string.data;
	int ret;

	if (!element)
		return ky_json_error(r->err, node, "property 'element-field-class' is missing");
	ret = ky_ctf2_align(r, node, "minimum-alignment", &cls->array.min_align_bits);
	if (ret == KYMO_OK && strncmp(type, "dynamic", 7) == 0)
		ret = ky_ctf2_location(r, node, "length-field-location", true, place,
				       &cls->array.length_ref);
	else if (ret == KYMO_OK)
		ret = ky_ctf2_uint(r, node, "length", true, &cls->array.length);
	if (ret == KYMO_OK)
		ret = ky_ctf2_field_class(r, element, place, &cls->array.element);
	return ret;
}

/* Ranges are read as signed here; ky_ctf2_locate() clips them once it knows the selector. */
static int fill_optional(struct ky_ctf2_reader *r, const struct ky_json *node,
			 struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	const struct ky_json *content = ky_json_get(node, "field-class");
	int ret = ky_ctf2_location(r, node, "selector-field-location", false, place,
				   &cls->var.selector);

	if (ret < 0)
		return ret;
	if (!content)
		return ky_json_error(r->err, node, "property 'field-class' is missing");
	cls->var.options = ky_ctf2_alloc(r, 1, sizeof(*cls->var.options));
	if (!cls->var.options)
		return KYMO_E_MEMORY;
	cls->var.n_options = 1;
	return ky_ctf2_field_class(r, content, place, &cls->var.options[0].cls);
}

static int ctf2_fields_add_option(struct ky_ctf2_reader *r, const struct ky_json *node,
				  struct ky_ctf2_place *place, struct ky_option *option)
{
	const struct ky_json *content = ky_json_get(node, "field-class");
	int ret = ky_ctf2_string(r, node, "name", false, &option->name);

	if (ret == KYMO_OK)
		ret = ky_ctf2_no_extensions(r, node);
	if (ret < 0)
		return ret;
	option->display = option->name;
	if (ky_ctf2_attributes(r, node, &option->attributes) < 0)
		return KYMO_E_MEMORY;
	if (!content)
		return ky_json_error(r->err, node, "property 'field-class' is missing");
	if (!ky_json_get(node, "selector-field-ranges"))
		return ky_json_error(r->err, node, "property 'selector-field-ranges' is missing");
	return ky_ctf2_field_class(r, content, place, &option->cls);
}

static int fill_variant(struct ky_ctf2_reader *r, const struct ky_json *node,
			struct ky_ctf2_place *place)
{
	struct ky_field_class *cls = place->cls;
	const struct ky_json *list;
	struct ky_names names;
	int ret = ky_ctf2_property(r, node, "options", true, KY_JSON_ARRAY, &list);

	if (ret == KYMO_OK)
		ret = ky_ctf2_location(r, node, "selector-field-location", false, place,
				       &cls->var.selector);
	if (ret < 0)
		return ret;
	if (!list->list.len)
		return ky_json_error(r->err, list, "a variant needs at least one option");
	cls->var.options = ky_ctf2_alloc(r, list->list.len, sizeof(*cls->var.options));
	if (!cls->var.options)
		return KYMO_E_MEMORY;
	ky_names_init(&names);
	for (const struct ky_json *item = list->list.first; item && ret == KYMO_OK;
	     item = item->next) {
		struct ky_option *option = &cls->var.options[cls->var.n_options];

		ret = ctf2_fields_add_option(r, item, place, option);
		if (ret < 0 || !option->name)
			; /* nothing to compare */
		else if (ky_names_get(&names, option->name))
			ret = ky_json_error(r->err, item, "the variant has two options '%s'",
					    option->name);
		else if (ky_names_set(&names, option->name, option) < 0)
			ret = ky_error_nomem(r->err);
		cls->var.n_options++;
	}
	ky_names_fini(&names);
	return ret;
}

static const struct {
	const char *type;
	enum ky_field_kind kind;
	fill_fn fill;
} kinds[] = {
	{"fixed-length-bit-array", KY_FIELD_BITS, fill_bits},
	{"fixed-length-bit-map", KY_FIELD_BITMAP, fill_bitmap},
	{"fixed-length-boolean", KY_FIELD_BOOL, fill_bits},
	{"fixed-length-unsigned-integer", KY_FIELD_UINT, fill_integer},
	{"fixed-length-signed-integer", KY_FIELD_SINT, fill_integer},
	{"fixed-length-floating-point-number", KY_FIELD_FLOAT, fill_float},
	{"variable-length-unsigned-integer", KY_FIELD_VARUINT, fill_integer},
	{"variable-length-signed-integer", KY_FIELD_VARSINT, fill_integer},
	{"null-terminated-string", KY_FIELD_STRING, fill_string},
	{"static-length-string", KY_FIELD_TEXT, fill_string},
	{"dynamic-length-string", KY_FIELD_TEXT, fill_string},
	{"static-length-blob", KY_FIELD_BLOB, ctf2_fields_fill_blob},
	{"dynamic-length-blob", KY_FIELD_BLOB, ctf2_fields_fill_blob},
	{"structure", KY_FIELD_STRUCT, fill_struct},
	{"static-length-array", KY_FIELD_ARRAY, fill_array},
	{"dynamic-length-array", KY_FIELD_ARRAY, fill_array},
	{"optional", KY_FIELD_OPTIONAL, fill_optional},
	{"variant", KY_FIELD_VARIANT, fill_variant},
};

/* An alias' name stands for the class that the alias was given. */
static int resolve_alias(struct ky_ctf2_reader *r, const struct ky_json **node)
{
	const struct ky_json *target;

	if ((*node)->kind != KY_JSON_STRING)
		return KYMO_OK;
	target = ky_names_get(&r->aliases, (*node)->string.data);
	if (!target)
		return ky_json_error(r->err, *node, "there is no field class alias '%s' before",
				     (*node)->string.data);
	*node = target;
	return KYMO_OK;
}

static struct ky_ctf2_place *new_place(struct ky_ctf2_reader *r, enum ky_field_kind kind,
				       struct ky_ctf2_place *parent)
{
	struct ky_ctf2_place *place = ky_arena_new(&r->json, struct ky_ctf2_place);

	if (!place)
		return NULL;
	place->cls = ky_field_class_new(r->trace, kind);
	place->parent = parent;
	place->order = r->order++;
	if (!place->cls || ky_map_set(&r->places, (uint64_t)(uintptr_t)place->cls, place) < 0)
		return NULL;
	return place;
}

KY_DEEP5(int, ctf2_fields_build, struct ky_ctf2_reader *, const struct ky_json *, size_t,
	 struct ky_ctf2_place *, struct ky_field_class **)

static int ctf2_fields_build(struct ky_ctf2_reader *r, const struct ky_json *node, size_t kind,
			     struct ky_ctf2_place *parent, struct ky_field_class **cls)
{
	struct ky_ctf2_place *place;
	int ret;

	if (++r->n_classes > CLASSES_MAX + r->classes_more)
		return ky_error_set(r->err, KYMO_E_LIMIT, "the field classes are more than %llu",
				    (unsigned long long)CLASSES_MAX + r->classes_more);
	place = new_place(r, kinds[kind].kind, parent);
	if (!place)
		return ky_error_nomem(r->err);
	ret = ky_ctf2_attributes(r, node, &place->cls->attributes);
	if (ret == KYMO_OK)
		ret = kinds[kind].fill(r, node, place);
	*cls = place->cls;
	return ret;
}

int ky_ctf2_field_class(struct ky_ctf2_reader *r, const struct ky_json *node,
			struct ky_ctf2_place *parent, struct ky_field_class **cls)
{
	const struct ky_json *type;
	int ret = resolve_alias(r, &node);

	if (ret < 0)
		return ret;
	if (node->kind != KY_JSON_OBJECT)
		return ky_json_error(r->err, node, "a field class is an object or an alias' name");
	ret = ky_ctf2_property(r, node, "type", true, KY_JSON_STRING, &type);
	if (ret == KYMO_OK)
		ret = ky_ctf2_no_extensions(r, node);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].type, type->string.data) == 0)
			return ctf2_fields_build_deep(KYMO_E_MEMORY, r, node, i, parent, cls);
	}
	return ky_json_error(r->err, type, "unknown field class type '%s'", type->string.data);
}

int ky_ctf2_scope(struct ky_ctf2_reader *r, const struct ky_json *fragment, const char *key,
		  enum ky_scope scope, struct ky_field_class **root)
{
	const struct ky_json *node = ky_json_get(fragment, key);
	int ret;

	*root = NULL;
	if (!node)
		return KYMO_OK;
	r->scope = scope;
	r->order = 0;
	ret = ky_ctf2_field_class(r, node, NULL, root);
	if (ret == KYMO_OK && (*root)->kind != KY_FIELD_STRUCT)
		ret = ky_json_error(r->err, node, "'%s' must be a structure", key);
	return ret;
}
