/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: definitions of fields that contain no others. */
#include <string.h>

#include "api/api.h"
#include "api/writer.h"
#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"

#define ALIGN_MAX_BITS 4096u

/* ---- adding -------------------------------------------------------------------------------- */

const char *ky_define_shown_name(const struct kymo_fields *fields, const char *name)
{
	return name ? name : fields->name;
}

/* Is what @fields is about, an element or option, there already? */
static bool define_fields_is_taken(const struct kymo_fields *fields)
{
	const struct ky_field_class *cls = fields->cls;

	return cls->kind == KY_FIELD_ARRAY ? cls->array.element != NULL
					   : cls->var.options[fields->option].cls != NULL;
}

bool ky_define_may_add(struct kymo_fields *fields, const char *name)
{
	struct kymo_writer *writer = fields ? fields->writer : NULL;
	const struct ky_field_class *cls = fields ? fields->cls : NULL;

	if (!writer || ky_define_is_closed(writer, name ? name : "field"))
		return false;
	if (cls->kind != KY_FIELD_STRUCT) {
		if (define_fields_is_taken(fields))
			ky_define_mistake(writer, KYMO_E_INVALID, "%s '%s' has %s already",
					  cls->kind == KY_FIELD_ARRAY ? "array" : "option",
					  fields->name,
					  cls->kind == KY_FIELD_ARRAY ? "an element" : "a field");
		return !define_fields_is_taken(fields);
	}
	if (!ky_define_name(writer, "field", name))
		return false;
	for (size_t i = 0; i < cls->st.n_members; i++) {
		if (!strcmp(cls->st.members[i].display, name)) {
			ky_define_mistake(writer, KYMO_E_INVALID, "there are two fields named '%s'",
					  name);
			return false;
		}
	}
	return true;
}

/* In the metadata a '_' stands before the name, so that it is never a word of the language. */
void ky_define_add(struct kymo_fields *fields, const char *name, struct ky_field_class *cls)
{
	struct kymo_writer *writer = fields->writer;
	char *prefixed;

	if (!cls) {
		ky_define_no_memory(writer);
	} else if (fields->cls->kind == KY_FIELD_ARRAY) {
		fields->cls->array.element = cls;
	} else if (fields->cls->kind != KY_FIELD_STRUCT) {
		fields->cls->var.options[fields->option].cls = cls;
	} else {
		prefixed = ky_arena_printf(&writer->trace->arena, "_%s", name);
		if (!prefixed || ky_struct_add(writer->trace, fields->cls, prefixed, cls) < 0)
			ky_define_no_memory(writer);
	}
}

bool ky_define_ctf2(struct kymo_fields *fields, const char *name, const char *what)
{
	struct kymo_writer *writer = fields->writer;

	if (writer->options.format == KYMO_FORMAT_CTF_2)
		return true;
	ky_define_mistake(writer, KYMO_E_UNSUPPORTED,
			  "field '%s': CTF 1.8 has no %s; KYMO_FORMAT_CTF_2 has",
			  ky_define_shown_name(fields, name), what);
	return false;
}

struct ky_field_class *ky_define_uint(struct kymo_writer *writer, unsigned int bits)
{
	return ky_int_new(writer->trace, bits, false, 10);
}

struct ky_field_ref *ky_define_companion(struct kymo_fields *fields, const char *name,
					 const char *suffix, struct ky_field_class *cls)
{
	struct ky_arena *arena = &fields->writer->trace->arena;
	struct ky_field_ref *ref = ky_arena_new(arena, struct ky_field_ref);
	char *full = name ? ky_arena_printf(arena, "_%s_%s", name, suffix) : NULL;

	if (fields->cls->kind != KY_FIELD_STRUCT) {
		ky_define_mistake(
			fields->writer, KYMO_E_INVALID,
			"'%s': what needs a field of its own before it (a sequence, a "
			"variant, a size that varies) cannot be an element or option; put "
			"it into a structure",
			fields->name);
		return NULL;
	}
	if (!cls || !ref || !full) {
		ky_define_no_memory(fields->writer);
		return NULL;
	}
	if (!ky_define_may_add(fields, full))
		return NULL;
	ky_define_add(fields, full, cls);
	if (fields->writer->code != KYMO_OK)
		return NULL;
	ref->target = cls;
	ref->text = fields->cls->st.members[fields->cls->st.n_members - 1].name;
	return ref;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static const char *number_problem(const struct kymo_number_options *o)
{
	bool is_float = o->kind == KYMO_FIELD_FLOAT;

	if (o->kind > KYMO_FIELD_VARSINT)
		return "its kind is not that of a number";
	if (o->base != 2 && o->base != 8 && o->base != 10 && o->base != 16)
		return "numbers are shown in base 2, 8, 10 or 16";
	if (o->byte_order > KYMO_BYTE_ORDER_BIG)
		return "there is no such byte order";
	if (o->align_bits > ALIGN_MAX_BITS || (o->align_bits & (o->align_bits - 1)))
		return "it is aligned to a power of two up to 4096 bits";
	if (o->kind >= KYMO_FIELD_VARUINT)
		return NULL;
	if (is_float && o->bits != 16 && o->bits != 32 && o->bits != 64 && o->bits != 128)
		return "floating point numbers have 32 or 64 bits (in CTF 2 also 16 or 128)";
	if (!is_float && (!o->bits || o->bits > 64))
		return "it has 1 to 64 bits";
	return NULL;
}

/* What CTF 1.8 has no word for, or NULL. */
static const char *beyond_ctf18(const struct kymo_number_options *o)
{
	switch (o->kind) {
	case KYMO_FIELD_UINT:
	case KYMO_FIELD_SINT:
		return NULL;
	case KYMO_FIELD_FLOAT:
		return o->bits == 32 || o->bits == 64 ? NULL
						      : "floating point numbers of 16 or 128 bits";
	case KYMO_FIELD_BITS:
		return "bit arrays";
	case KYMO_FIELD_BITMAP:
		return "bit maps";
	case KYMO_FIELD_BOOL:
		return "booleans";
	default:
		return "integers of variable length";
	}
}

static struct ky_field_class *number_class(struct ky_trace_class *trace,
					   const struct kymo_number_options *o)
{
	struct ky_field_class *cls = ky_field_class_new(trace, (enum ky_field_kind)o->kind);

	if (!cls)
		return NULL;
	cls->num.base = (uint8_t)o->base;
	cls->num.big_endian = o->byte_order == KYMO_BYTE_ORDER_NATIVE
				      ? trace->big_endian
				      : o->byte_order == KYMO_BYTE_ORDER_BIG;
	cls->align_bits = 8;
	if (o->kind >= KYMO_FIELD_VARUINT)
		return cls;
	cls->num.length_bits = o->bits;
	if (o->align_bits)
		cls->align_bits = o->align_bits;
	else if (o->bits % 8 || (o->bits & (o->bits - 1)))
		cls->align_bits = 1; /* babeltrace 1 knows no aligned integer of 24 bits */
	return cls;
}

struct kymo_enum_def *kymo_fields_add_number(struct kymo_fields *fields, const char *name,
					     const struct kymo_number_options *given)
{
	struct kymo_number_options o = kymo_number_options_init();
	struct kymo_enum_def *number;
	struct kymo_error err;
	const char *wrong;
	int ret = KYMO_OK;

	if (!ky_define_may_add(fields, name))
		return NULL;
	if (given)
		ret = ky_api_options(&o, sizeof(o), sizeof(o), given, &err);
	wrong = ret < 0 ? err.message : number_problem(&o);
	if (wrong) {
		ky_define_mistake(fields->writer, KYMO_E_INVALID, "field '%s': %s",
				  ky_define_shown_name(fields, name), wrong);
		return NULL;
	}
	wrong = beyond_ctf18(&o);
	if (wrong && !ky_define_ctf2(fields, name, wrong))
		return NULL;
	number = ky_define_allocate(fields->writer, sizeof(*number));
	if (!number)
		return NULL;
	number->writer = fields->writer;
	number->cls = number_class(fields->writer->trace, &o);
	ky_define_add(fields, name, number->cls);
	return number->cls ? number : NULL;
}

static struct kymo_enum_def *define_fields_add_number(struct kymo_fields *fields, const char *name,
						      enum kymo_field_kind kind, unsigned int bits,
						      unsigned int base)
{
	struct kymo_number_options o = kymo_number_options_init();

	o.kind = kind;
	o.bits = bits;
	o.base = base;
	return kymo_fields_add_number(fields, name, &o);
}

void kymo_fields_add_uint(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	(void)define_fields_add_number(fields, name, KYMO_FIELD_UINT, bits, 10);
}

void kymo_fields_add_int(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	(void)define_fields_add_number(fields, name, KYMO_FIELD_SINT, bits, 10);
}

void kymo_fields_add_hex(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	(void)define_fields_add_number(fields, name, KYMO_FIELD_UINT, bits, 16);
}

void kymo_fields_add_float(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	(void)define_fields_add_number(fields, name, KYMO_FIELD_FLOAT, bits, 10);
}

/* ---- labels -------------------------------------------------------------------------------- */

struct kymo_enum_def *kymo_fields_add_enum(struct kymo_fields *fields, const char *name,
					   unsigned int bits, bool is_signed)
{
	struct kymo_enum_def *enumeration = define_fields_add_number(
		fields, name, is_signed ? KYMO_FIELD_SINT : KYMO_FIELD_UINT, bits, 10);

	if (enumeration)
		enumeration->cls->num.is_enum = true;
	return enumeration;
}

/* Has the number room for @value, or the bit map for bit @value? */
static bool in_range(const struct ky_field_class *cls, uint64_t value, bool is_negative)
{
	uint32_t bits = cls->num.length_bits;

	switch (cls->kind) {
	case KY_FIELD_BITMAP:
		return !is_negative && value < bits;
	case KY_FIELD_UINT:
		return !is_negative && (bits == 64 || value >> bits == 0);
	case KY_FIELD_SINT:
		return is_negative ? (int64_t)value >> (bits - 1) == -1 : value >> (bits - 1) == 0;
	case KY_FIELD_VARUINT:
		return !is_negative;
	case KY_FIELD_VARSINT:
		return is_negative || value <= INT64_MAX;
	default:
		return false;
	}
}

/* @begin and @end are in order, and negative as said. */
static void define_fields_add_label(struct kymo_enum_def *enumeration, const char *label,
				    uint64_t begin, uint64_t end, bool begin_negative,
				    bool end_negative)
{
	struct kymo_writer *writer = enumeration->writer;
	struct ky_field_class *cls = enumeration->cls;

	if (ky_define_is_closed(writer, "label"))
		return;
	if (!label) {
		ky_define_mistake(writer, KYMO_E_INVALID, "a label is NULL");
		return;
	}
	if (!in_range(cls, begin, begin_negative) || !in_range(cls, end, end_negative)) {
		ky_define_mistake(writer, KYMO_E_INVALID,
				  "label '%s': no range of values for a %s of %u bits", label,
				  kymo_field_kind_text((enum kymo_field_kind)cls->kind),
				  cls->num.length_bits);
		return;
	}
	cls->num.is_enum = cls->kind != KY_FIELD_BITMAP;
	if (ky_enum_add(writer->trace, cls, label, (int64_t)begin, (int64_t)end) < 0)
		ky_define_no_memory(writer);
}

static void no_range(struct kymo_writer *writer, const char *label)
{
	ky_define_mistake(writer, KYMO_E_INVALID, "label '%s': its range ends before it begins",
			  label ? label : "NULL");
}

void kymo_enum_def_add(struct kymo_enum_def *enumeration, const char *label, int64_t begin,
		       int64_t end)
{
	if (!enumeration)
		return;
	if (begin > end)
		no_range(enumeration->writer, label);
	else
		define_fields_add_label(enumeration, label, (uint64_t)begin, (uint64_t)end,
					begin < 0, end < 0);
}

void kymo_enum_def_add_unsigned(struct kymo_enum_def *enumeration, const char *label,
				uint64_t begin, uint64_t end)
{
	if (!enumeration)
		return;
	if (begin > end)
		no_range(enumeration->writer, label);
	else
		define_fields_add_label(enumeration, label, begin, end, false, false);
}
