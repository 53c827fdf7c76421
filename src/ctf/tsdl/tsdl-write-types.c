/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-write.h"

#include <inttypes.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/tsdl/tsdl-lex.h"
#include "ctf/tsdl/tsdl-path.h"
#include "ctf/model/walk.h"

KY_DEEP3(int, tsdl_write_types_put_field, struct ky_tsdl_writer *, const struct ky_field_class *,
	 const char *)

void ky_tsdl_writer_fini(struct ky_tsdl_writer *w)
{
	ky_vec_fini(&w->open);
	ky_names_fini(&w->named);
	ky_child_tables_fini(&w->tables);
}

/* Beyond that, text would grow with the square of its depth. */
#define INDENT_MAX 40

static void put_indent(struct ky_tsdl_writer *w)
{
	for (int i = 0; i < w->indent && i < INDENT_MAX; i++)
		ky_strbuf_addc(w->out, '\t');
}

int ky_tsdl_cannot_say(struct ky_tsdl_writer *w, const char *what)
{
	return ky_error_set(w->err, KYMO_E_UNSUPPORTED, "CTF 1.8 metadata cannot describe %s",
			    what);
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* In headers and contexts LTTng's names for plain integers are used, as its readers expect. */
static bool put_alias(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	uint32_t bits = cls->num.length_bits;

	if (w->scope > KY_SCOPE_EVENT_HEADER || cls->kind != KY_FIELD_UINT || cls->num.is_enum ||
	    cls->num.base != 10 || cls->num.encoding != KY_ENCODING_NONE ||
	    cls->num.big_endian != w->trace->big_endian)
		return false;
	if (bits % 8 ? cls->align_bits != 1 || (bits != 5 && bits != 27)
		     : cls->align_bits != 8 || (bits & (bits - 1)) || bits > 64)
		return false;
	if (!cls->num.clock)
		ky_strbuf_addf(w->out, "uint%" PRIu32 "_t", bits);
	else if (w->scope == KY_SCOPE_PACKET_HEADER)
		return false; /* the trace block stands before the clocks' names */
	else if (bits == 27 || bits == 32 || bits == 64)
		ky_strbuf_addf(w->out, "uint%" PRIu32 "_clock_%s_t", bits, cls->num.clock->name);
	else
		return false;
	return true;
}

static const char *encoding_name(enum ky_encoding encoding)
{
	switch (encoding) {
	case KY_ENCODING_NONE:
		return "none";
	case KY_ENCODING_UTF8:
		return "UTF8";
	case KY_ENCODING_ASCII:
		return "ASCII";
	default:
		return NULL;
	}
}

static int tsdl_write_types_put_integer(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	const char *encoding = encoding_name(cls->num.encoding);

	if (cls->num.bits_reversed || !encoding)
		return ky_tsdl_cannot_say(w, "this kind of integer");
	if (!cls->num.unit_bits && put_alias(w, cls))
		return KYMO_OK;
	ky_strbuf_addf(w->out,
		       "integer { size = %" PRIu32 "; align = %" PRIu32
		       "; signed = %d; encoding = %s; base = %d;",
		       cls->num.unit_bits ? cls->num.unit_bits : cls->num.length_bits,
		       cls->align_bits, cls->kind == KY_FIELD_SINT, encoding, cls->num.base);
	if (cls->num.big_endian != w->trace->big_endian)
		ky_strbuf_addf(w->out, " byte_order = %s;", cls->num.big_endian ? "be" : "le");
	if (cls->num.clock)
		ky_strbuf_addf(w->out, " map = clock.%s.value;", cls->num.clock->name);
	ky_strbuf_adds(w->out, " }");
	return KYMO_OK;
}

/*
 * @range without the values that @cls has no bits for; false: nothing is left. A bit field may be of an
 * enumeration with more values than the field can have, and CTF 2 has any; TSDL refuses them.
 */
static bool clip_range(const struct ky_field_class *cls, struct ky_range *range)
{
	return ky_range_clip(range, cls->kind == KY_FIELD_SINT, cls->num.length_bits);
}

static bool has_labels(const struct ky_field_class *cls)
{
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		for (size_t r = 0; r < cls->num.mappings[i].n_ranges; r++) {
			struct ky_range range = cls->num.mappings[i].ranges[r];

			if (clip_range(cls, &range))
				return true;
		}
	}
	return false;
}

static void put_mapping(struct ky_tsdl_writer *w, const struct ky_field_class *cls,
			const struct ky_mapping *mapping, const struct ky_range *range)
{
	put_indent(w);
	ky_tsdl_put_text(w->out, mapping->label);
	ky_strbuf_adds(w->out, " = ");
	if (cls->kind == KY_FIELD_SINT)
		ky_strbuf_addi(w->out, range->begin.s);
	else
		ky_strbuf_addu(w->out, range->begin.u);
	if (range->begin.u != range->end.u) {
		ky_strbuf_adds(w->out, " ... ");
		if (cls->kind == KY_FIELD_SINT)
			ky_strbuf_addi(w->out, range->end.s);
		else
			ky_strbuf_addu(w->out, range->end.u);
	}
	ky_strbuf_adds(w->out, ",\n");
}

static int tsdl_write_types_put_number(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	struct ky_field_class base = *cls;
	int ret;

	/* An enumeration has at least one label; without any it is shown as its number. */
	if (!has_labels(cls))
		return tsdl_write_types_put_integer(w, cls);
	base.num.is_enum = false;
	ky_strbuf_adds(w->out, "enum : ");
	ret = tsdl_write_types_put_integer(w, &base);
	if (ret < 0)
		return ret;
	ky_strbuf_adds(w->out, " {\n");
	w->indent++;
	for (size_t i = 0; i < cls->num.n_mappings; i++) {
		const struct ky_mapping *mapping = &cls->num.mappings[i];

		for (size_t r = 0; r < mapping->n_ranges; r++) {
			struct ky_range range = mapping->ranges[r];

			if (clip_range(cls, &range))
				put_mapping(w, cls, mapping, &range);
		}
	}
	w->indent--;
	put_indent(w);
	ky_strbuf_adds(w->out, "}");
	return KYMO_OK;
}

static int tsdl_write_types_put_float(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	uint32_t bits = cls->num.length_bits;
	uint32_t exponent = bits == 16 ? 5 : bits == 32 ? 8 : bits == 64 ? 11 : 15;

	ky_strbuf_addf(w->out,
		       "floating_point { exp_dig = %" PRIu32 "; mant_dig = %" PRIu32
		       "; byte_order = %s; align = %" PRIu32 "; }",
		       exponent, bits - exponent,
		       cls->num.big_endian == w->trace->big_endian ? "native"
		       : cls->num.big_endian			   ? "be"
								   : "le",
		       cls->align_bits);
	return KYMO_OK;
}

/* ---- text -------------------------------------------------------------------------------- */

static int tsdl_write_types_put_string(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	if (!encoding_name(cls->text.encoding))
		return ky_tsdl_cannot_say(w, "text in UTF-16 or UTF-32");
	ky_strbuf_adds(w->out, cls->text.encoding == KY_ENCODING_ASCII
				       ? "string { encoding = ASCII; }"
				       : "string");
	return KYMO_OK;
}

/* The characters of a text; char is signed on LTTng's main platform. */
static int put_character(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	const char *encoding = encoding_name(cls->text.encoding);

	if (!encoding || cls->text.encoding == KY_ENCODING_NONE)
		return ky_tsdl_cannot_say(w, "text in UTF-16 or UTF-32");
	ky_strbuf_addf(w->out,
		       "integer { size = 8; align = 8; signed = 1; encoding = %s; base = 10; }",
		       encoding);
	return KYMO_OK;
}

/* ---- compounds --------------------------------------------------------------------------- */

static int tsdl_write_types_put_members(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	int ret = KYMO_OK;

	if (ky_vec_push(&w->open, (struct ky_tsdl_open){.st = cls}) < 0)
		return ky_error_nomem(w->err);
	w->indent++;
	for (size_t i = 0; i < cls->st.n_members && ret == KYMO_OK; i++) {
		ky_vec_last(&w->open)->n_written = i;
		ret = tsdl_write_types_put_field_deep(KYMO_E_MEMORY, w, cls->st.members[i].cls,
						      cls->st.members[i].name);
	}
	w->indent--;
	w->open.len--;
	return ret;
}

int ky_tsdl_put_struct(struct ky_tsdl_writer *w, const struct ky_field_class *cls, const char *name)
{
	int ret;

	ky_strbuf_addf(w->out, name ? "struct %s {\n" : "struct {\n", name);
	ret = tsdl_write_types_put_members(w, cls);
	put_indent(w);
	ky_strbuf_adds(w->out, "}");
	if (cls->st.min_align_bits > 1)
		ky_strbuf_addf(w->out, " align(%" PRIu32 ")", cls->st.min_align_bits);
	return ret;
}

static int tsdl_write_types_put_variant(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	int ret;

	ky_strbuf_adds(w->out, "variant <");
	ret = ky_tsdl_put_ref(w, cls->var.selector, false);
	ky_strbuf_adds(w->out, "> {\n");
	w->indent++;
	for (size_t i = 0; i < cls->var.n_options && ret == KYMO_OK; i++) {
		if (!cls->var.options[i].name)
			return ky_tsdl_cannot_say(w, "a variant's option without a name");
		ret = tsdl_write_types_put_field_deep(KYMO_E_MEMORY, w, cls->var.options[i].cls,
						      cls->var.options[i].name);
	}
	w->indent--;
	put_indent(w);
	ky_strbuf_adds(w->out, "}");
	return ret;
}

static int put_type(struct ky_tsdl_writer *w, const struct ky_field_class *cls)
{
	switch (cls->kind) {
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
		return tsdl_write_types_put_number(w, cls);
	case KY_FIELD_FLOAT:
		return tsdl_write_types_put_float(w, cls);
	case KY_FIELD_STRING:
		return tsdl_write_types_put_string(w, cls);
	case KY_FIELD_TEXT:
		return put_character(w, cls);
	case KY_FIELD_STRUCT:
		return ky_tsdl_put_struct(w, cls, NULL);
	case KY_FIELD_VARIANT:
		return tsdl_write_types_put_variant(w, cls);
	case KY_FIELD_OPTIONAL:
		return ky_tsdl_cannot_say(w, "an optional field");
	case KY_FIELD_BLOB:
		return ky_tsdl_cannot_say(w, "a blob");
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return ky_tsdl_cannot_say(w, "an integer of variable length");
	default:
		return ky_tsdl_cannot_say(w, "a boolean, bit array or bit map");
	}
}

static int put_dimension(struct ky_tsdl_writer *w, const struct ky_field_ref *ref, uint64_t length)
{
	int ret = KYMO_OK;

	ky_strbuf_addc(w->out, '[');
	if (ref)
		ret = ky_tsdl_put_ref(w, ref, true);
	else
		ky_strbuf_addu(w->out, length);
	ky_strbuf_addc(w->out, ']');
	return ret;
}

/* TYPE NAME[OUTER][INNER]; */
static int tsdl_write_types_put_field(struct ky_tsdl_writer *w, const struct ky_field_class *cls,
				      const char *name)
{
	const struct ky_field_class *base = cls;
	int ret;

	if (!ky_tsdl_is_name(name))
		return ky_error_set(w->err, KYMO_E_UNSUPPORTED,
				    "CTF 1.8 metadata cannot name a field \"%s\"", name);
	while (base->kind == KY_FIELD_ARRAY)
		base = base->array.element;
	put_indent(w);
	ret = put_type(w, base);
	ky_strbuf_addf(w->out, " %s", name);
	if (ky_field_is_num(cls) && cls->num.unit_bits)
		ky_strbuf_addf(w->out, " : %" PRIu32, cls->num.length_bits);
	for (; cls->kind == KY_FIELD_ARRAY && ret == KYMO_OK; cls = cls->array.element)
		ret = put_dimension(w, cls->array.length_ref, cls->array.length);
	if (base->kind == KY_FIELD_TEXT && ret == KYMO_OK)
		ret = put_dimension(w, base->text.length_ref, base->text.length_bytes);
	ky_strbuf_adds(w->out, ";\n");
	return ret;
}
