/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl-parser.h"

#include <string.h>

/* ---- integer {...} ------------------------------------------------------------------------ */

struct integer {
	uint64_t size;
	uint32_t align;
	bool is_signed, big_endian;
	uint8_t base;
	enum ky_encoding encoding;
	struct ky_clock_class *clock;
};

static int tsdl_numbers_base_of(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
				uint8_t *base)
{
	static const struct {
		const char *name;
		uint8_t base;
	} names[] = {
		{"decimal", 10}, {"dec", 10},	      {"d", 10},    {"i", 10},
		{"u", 10},	 {"hexadecimal", 16}, {"hex", 16},  {"x", 16},
		{"X", 16},	 {"p", 16},	      {"octal", 8}, {"oct", 8},
		{"o", 8},	 {"binary", 2},	      {"bin", 2},   {"b", 2},
	};

	if (attr->kind == KY_ATTR_NUMBER && !attr->negative &&
	    (attr->number == 2 || attr->number == 8 || attr->number == 10 || attr->number == 16)) {
		*base = (uint8_t)attr->number;
		return KYMO_OK;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (ky_tsdl_attr_says(attr, names[i].name)) {
			*base = names[i].base;
			return KYMO_OK;
		}
	}
	return ky_tsdl_fail(p, attr->value_at, "base must be 2, 8, 10 or 16");
}

static int encoding_of(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
		       enum ky_encoding *encoding)
{
	if (ky_tsdl_attr_says(attr, "none"))
		*encoding = KY_ENCODING_NONE;
	else if (ky_tsdl_attr_says(attr, "UTF8") || ky_tsdl_attr_says(attr, "utf8"))
		*encoding = KY_ENCODING_UTF8;
	else if (ky_tsdl_attr_says(attr, "ASCII") || ky_tsdl_attr_says(attr, "ascii"))
		*encoding = KY_ENCODING_ASCII;
	else
		return ky_tsdl_fail(p, attr->value_at, "encoding must be none, UTF8 or ASCII");
	return KYMO_OK;
}

/* clock.NAME.value */
static int tsdl_numbers_clock_of(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
				 struct ky_clock_class **clock)
{
	const char *word = attr->kind == KY_ATTR_WORD ? attr->text : "";
	size_t len = strlen(word);

	if (strncmp(word, "clock.", 6) != 0 || len < 13 || strcmp(word + len - 6, ".value") != 0)
		return ky_tsdl_fail(p, attr->value_at, "map must be like clock.NAME.value");
	word += 6;
	len -= 12;
	*clock = ky_names_getn(&p->clocks, word, len);
	if (*clock)
		return KYMO_OK;
	return ky_tsdl_fail(p, attr->value_at, "there is no clock \"%.*s\"", (int)len, word);
}

static int integer_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	struct integer *in = data;
	int ret;

	if (!strcmp(attr->name, "size")) {
		ret = ky_tsdl_attr_u64(p, attr, &in->size);
		if (ret == KYMO_OK && (!in->size || in->size > INT32_MAX))
			ret = ky_tsdl_fail(p, attr->value_at, "an integer cannot have %llu bits",
					   (unsigned long long)in->size);
		return ret;
	}
	if (!strcmp(attr->name, "align"))
		return ky_tsdl_attr_align(p, attr, &in->align);
	if (!strcmp(attr->name, "signed"))
		return ky_tsdl_attr_bool(p, attr, &in->is_signed);
	if (!strcmp(attr->name, "byte_order"))
		return ky_tsdl_attr_byte_order(p, attr, &in->big_endian);
	if (!strcmp(attr->name, "base"))
		return tsdl_numbers_base_of(p, attr, &in->base);
	if (!strcmp(attr->name, "encoding"))
		return encoding_of(p, attr, &in->encoding);
	if (!strcmp(attr->name, "map"))
		return tsdl_numbers_clock_of(p, attr, &in->clock);
	return KYMO_OK;
}

int ky_tsdl_integer(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	struct integer in = {.big_endian = p->trace->big_endian, .base = 10};
	struct ky_field_class *cls;
	int ret = ky_tsdl_block(p, false, integer_attr, &in);

	if (ret < 0)
		return ret;
	if (!in.size)
		return ky_tsdl_fail(p, type->token, "this integer has no size");
	cls = ky_tsdl_node(p, in.is_signed ? KY_FIELD_SINT : KY_FIELD_UINT);
	if (!cls)
		return p->err->code;
	cls->align_bits = in.align ? in.align : in.size % 8 ? 1 : 8;
	cls->num.length_bits = (uint32_t)in.size;
	cls->num.big_endian = in.big_endian;
	cls->num.base = in.base;
	cls->num.encoding = in.encoding;
	cls->num.clock = in.clock;
	type->cls = cls;
	return KYMO_OK;
}

/* ---- floating_point {...} ------------------------------------------------------------------ */

struct floating_point {
	uint64_t exponent, mantissa;
	uint32_t align;
	bool big_endian;
};

static int float_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	struct floating_point *f = data;

	if (!strcmp(attr->name, "exp_dig"))
		return ky_tsdl_attr_u64(p, attr, &f->exponent);
	if (!strcmp(attr->name, "mant_dig"))
		return ky_tsdl_attr_u64(p, attr, &f->mantissa);
	if (!strcmp(attr->name, "align"))
		return ky_tsdl_attr_align(p, attr, &f->align);
	if (!strcmp(attr->name, "byte_order"))
		return ky_tsdl_attr_byte_order(p, attr, &f->big_endian);
	return KYMO_OK;
}

static bool is_interchange_format(const struct floating_point *f)
{
	return (f->exponent == 5 && f->mantissa == 11) || (f->exponent == 8 && f->mantissa == 24) ||
	       (f->exponent == 11 && f->mantissa == 53) ||
	       (f->exponent == 15 && f->mantissa == 113);
}

int ky_tsdl_float(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	struct floating_point f = {.big_endian = p->trace->big_endian, .align = 8};
	int ret = ky_tsdl_block(p, false, float_attr, &f);

	if (ret < 0)
		return ret;
	if (!is_interchange_format(&f))
		return ky_tsdl_fail(p, type->token,
				    "no IEEE 754 format has %llu exponent and %llu mantissa digits",
				    (unsigned long long)f.exponent, (unsigned long long)f.mantissa);
	type->cls = ky_tsdl_node(p, KY_FIELD_FLOAT);
	if (!type->cls)
		return p->err->code;
	type->cls->align_bits = f.align;
	type->cls->num.length_bits = (uint32_t)(f.exponent + f.mantissa);
	type->cls->num.big_endian = f.big_endian;
	return KYMO_OK;
}

/* ---- string ------------------------------------------------------------------------------ */

static int string_attr(struct ky_tsdl_parser *p, void *data, const struct ky_tsdl_attr *attr)
{
	return strcmp(attr->name, "encoding") != 0 ? KYMO_OK : encoding_of(p, attr, data);
}

int ky_tsdl_string(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	enum ky_encoding encoding = KY_ENCODING_UTF8;
	int ret = KYMO_OK;

	if (ky_tsdl_is(p, '{'))
		ret = ky_tsdl_block(p, false, string_attr, &encoding);
	if (ret < 0)
		return ret;
	type->cls = ky_tsdl_node(p, KY_FIELD_STRING);
	if (!type->cls)
		return p->err->code;
	type->cls->align_bits = 8;
	type->cls->text.encoding = encoding == KY_ENCODING_NONE ? KY_ENCODING_UTF8 : encoding;
	return KYMO_OK;
}
