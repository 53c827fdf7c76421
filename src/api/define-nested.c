/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: definitions of fields that contain others. */
#include <inttypes.h>
#include <string.h>

#include "api/api.h"
#include "api/writer.h"
#include "base/error.h"
#include "ctf/model/arena-append.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl-lex.h"

/* A tag has 16 bits at most. */
#define OPTIONS_MAX 65536u

/* A class of @kind, or NULL. */
static struct ky_field_class *class_new(struct kymo_fields *fields, enum ky_field_kind kind)
{
	return ky_field_class_new(fields->writer->trace, kind);
}

/* A copy of @name for messages. */
static const char *name_copy(struct kymo_fields *fields, const char *name)
{
	const char *copy =
		name ? ky_arena_strdup(&fields->writer->trace->arena, name) : fields->name;

	return copy ? copy : "";
}

static bool may_nest(struct kymo_fields *fields, const char *name)
{
	if (!ky_define_may_add(fields, name))
		return false;
	if (fields->depth + 1 >= KY_DEFINE_MAX_DEPTH)
		ky_define_mistake(fields->writer, KYMO_E_INVALID,
				  "field '%s' is nested deeper than %d", name ? name : fields->name,
				  KY_DEFINE_MAX_DEPTH);
	return fields->depth + 1 < KY_DEFINE_MAX_DEPTH;
}

/* Add @cls (NULL: no memory), and give what fields are added to it with. */
static struct kymo_fields *define_nested_nested(struct kymo_fields *fields, const char *name,
						struct ky_field_class *cls)
{
	ky_define_add(fields, name, cls);
	if (!cls)
		return NULL;
	return ky_define_fields(fields->writer, cls, name_copy(fields, name), fields->depth + 1);
}

struct kymo_fields *kymo_fields_add_struct(struct kymo_fields *fields, const char *name)
{
	return may_nest(fields, name)
		       ? define_nested_nested(fields, name, ky_struct_new(fields->writer->trace))
		       : NULL;
}

struct kymo_fields *kymo_fields_add_array(struct kymo_fields *fields, const char *name,
					  size_t length)
{
	struct ky_field_class *cls;

	if (!may_nest(fields, name))
		return NULL;
	if (length > UINT32_MAX) {
		ky_define_mistake(fields->writer, KYMO_E_INVALID,
				  "array '%s' has more than %" PRIu32 " elements",
				  name_copy(fields, name), UINT32_MAX);
		return NULL;
	}
	cls = class_new(fields, KY_FIELD_ARRAY);
	if (cls)
		cls->array.length = length;
	return define_nested_nested(fields, name, cls);
}

struct kymo_fields *kymo_fields_add_sequence(struct kymo_fields *fields, const char *name)
{
	struct ky_field_class *cls;
	struct ky_field_ref *ref;

	if (!may_nest(fields, name))
		return NULL;
	ref = ky_define_companion(fields, name, "length", ky_define_uint(fields->writer, 32));
	if (!ref)
		return NULL;
	cls = class_new(fields, KY_FIELD_ARRAY);
	if (cls)
		cls->array.length_ref = ref;
	return define_nested_nested(fields, name, cls);
}

/* ---- one of several ------------------------------------------------------------------------ */

struct kymo_variant_def *kymo_fields_add_variant(struct kymo_fields *fields, const char *name)
{
	struct kymo_variant_def *variant;
	struct ky_field_class *tag;
	struct ky_field_ref *ref;

	if (!may_nest(fields, name))
		return NULL;
	tag = ky_define_uint(fields->writer, 8);
	if (tag)
		tag->num.is_enum = true;
	ref = ky_define_companion(fields, name, "tag", tag);
	variant = ref ? ky_define_allocate(fields->writer, sizeof(*variant)) : NULL;
	if (!variant)
		return NULL;
	variant->writer = fields->writer;
	variant->depth = fields->depth + 1;
	variant->name = name_copy(fields, name);
	variant->tag = tag;
	variant->cls = class_new(fields, KY_FIELD_VARIANT);
	if (variant->cls)
		variant->cls->var.selector = ref;
	ky_define_add(fields, name, variant->cls);
	return variant->cls ? variant : NULL;
}

static bool may_add_option(struct kymo_variant_def *variant, const char *name)
{
	struct kymo_writer *writer = variant->writer;
	const struct ky_field_class *cls = variant->cls;

	if (ky_define_is_closed(writer, "option") || !ky_define_name(writer, "option", name))
		return false;
	for (size_t i = 0; i < cls->var.n_options; i++) {
		if (strcmp(cls->var.options[i].display, name) == 0) {
			ky_define_mistake(writer, KYMO_E_INVALID,
					  "variant '%s' has two options named '%s'", variant->name,
					  name);
			return false;
		}
	}
	if (cls->var.n_options == OPTIONS_MAX)
		ky_define_mistake(writer, KYMO_E_INVALID, "variant '%s' has too many options",
				  variant->name);
	return cls->var.n_options < OPTIONS_MAX;
}

/* An option whose field is not known yet, and the tag's label that selects it. */
static int option_new(struct ky_trace_class *trace, struct ky_field_class *cls,
		      struct ky_field_class *tag, const char *name)
{
	size_t n = cls->var.n_options;
	struct ky_option option = {0};

	/* Words of the metadata language, and names that would lose their '_', get one. */
	if (*name == '_' || !ky_tsdl_is_name(name))
		name = ky_arena_printf(&trace->arena, "_%s", name);
	if (!name || ky_name_copy(trace, name, &option.name, &option.display) < 0)
		return KYMO_E_MEMORY;
	if (n >= 256)
		tag->num.length_bits = 16;
	if (ky_enum_add(trace, tag, option.name, (int64_t)n, (int64_t)n) < 0)
		return KYMO_E_MEMORY;
	return ky_arena_append(&trace->arena, (void **)&cls->var.options, &cls->var.n_options,
			       &option, sizeof(option));
}

struct kymo_fields *kymo_variant_def_add(struct kymo_variant_def *variant, const char *name)
{
	struct kymo_fields *fields;

	if (!variant || !may_add_option(variant, name))
		return NULL;
	if (option_new(variant->writer->trace, variant->cls, variant->tag, name) < 0) {
		ky_define_no_memory(variant->writer);
		return NULL;
	}
	fields = ky_define_fields(
		variant->writer, variant->cls,
		variant->cls->var.options[variant->cls->var.n_options - 1].display, variant->depth);
	if (fields)
		fields->option = variant->cls->var.n_options - 1;
	return fields;
}

struct kymo_fields *kymo_fields_add_optional(struct kymo_fields *fields, const char *name)
{
	struct ky_field_class *present, *cls;
	struct ky_option option = {0};
	struct ky_field_ref *ref;

	if (!may_nest(fields, name) ||
	    !ky_define_ctf2(fields, name, "optional fields (a sequence does there)"))
		return NULL;
	present = class_new(fields, KY_FIELD_BOOL);
	if (present) {
		present->align_bits = 8;
		present->num.length_bits = 8;
		present->num.base = 10;
		present->num.big_endian = fields->writer->trace->big_endian;
	}
	ref = ky_define_companion(fields, name, "present", present);
	if (!ref)
		return NULL;
	cls = class_new(fields, KY_FIELD_OPTIONAL);
	if (cls) {
		cls->var.selector = ref;
		if (ky_arena_append(&fields->writer->trace->arena, (void **)&cls->var.options,
				    &cls->var.n_options, &option, sizeof(option)) < 0)
			cls = NULL;
	}
	return define_nested_nested(fields, name, cls);
}
