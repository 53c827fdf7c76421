/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl-parser.h"

#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "ctf/grow.h"
#include "ctf/walk.h"

struct ky_field_class *ky_tsdl_node(struct ky_tsdl_parser *p, enum ky_field_kind kind)
{
	struct ky_field_class *cls;

	if (p->n_nodes == KY_TSDL_NODES_MAX) {
		ky_error_set(p->err, KYMO_E_LIMIT, "the trace has more than %llu fields",
			     (unsigned long long)KY_TSDL_NODES_MAX);
		ky_error_line(p->err, p->at->line, p->at->column);
		return NULL;
	}
	p->n_nodes++;
	cls = ky_field_class_new(p->trace, kind);
	if (!cls)
		ky_error_nomem(p->err);
	return cls;
}

/* ---- integer {...} ------------------------------------------------------------------------ */

struct integer {
	uint64_t size;
	uint32_t align;
	bool is_signed, big_endian;
	uint8_t base;
	enum ky_encoding encoding;
	struct ky_clock_class *clock;
};

static int base_of(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr, uint8_t *base)
{
	static const struct {
		const char *name;
		uint8_t base;
	} names[] = {
		{"decimal", 10},     {"dec", 10}, {"d", 10}, {"i", 10},	    {"u", 10},
		{"hexadecimal", 16}, {"hex", 16}, {"x", 16}, {"X", 16},	    {"p", 16},
		{"octal", 8},	     {"oct", 8},  {"o", 8},  {"binary", 2}, {"b", 2},
	};

	if (attr->kind == KY_ATTR_NUMBER && !attr->negative &&
	    (attr->number == 2 || attr->number == 8 || attr->number == 10 || attr->number == 16)) {
		*base = (uint8_t)attr->number;
		return KYMO_OK;
	}
	for (size_t i = 0; attr->kind == KY_ATTR_WORD && i < sizeof(names) / sizeof(names[0]);
	     i++) {
		if (!strcmp(attr->text, names[i].name)) {
			*base = names[i].base;
			return KYMO_OK;
		}
	}
	return ky_tsdl_fail(p, attr->value_at, "base must be 2, 8, 10 or 16");
}

static int encoding_of(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
		       enum ky_encoding *encoding)
{
	const char *word = attr->kind == KY_ATTR_WORD ? attr->text : "";

	if (!strcmp(word, "none"))
		*encoding = KY_ENCODING_NONE;
	else if (!strcmp(word, "UTF8") || !strcmp(word, "utf8"))
		*encoding = KY_ENCODING_UTF8;
	else if (!strcmp(word, "ASCII") || !strcmp(word, "ascii"))
		*encoding = KY_ENCODING_ASCII;
	else
		return ky_tsdl_fail(p, attr->value_at, "encoding must be none, UTF8 or ASCII");
	return KYMO_OK;
}

/* clock.NAME.value */
static int clock_of(struct ky_tsdl_parser *p, const struct ky_tsdl_attr *attr,
		    struct ky_clock_class **clock)
{
	const char *word = attr->kind == KY_ATTR_WORD ? attr->text : "";
	size_t len = strlen(word);

	if (strncmp(word, "clock.", 6) != 0 || len < 13 || strcmp(word + len - 6, ".value") != 0)
		return ky_tsdl_fail(p, attr->value_at, "map must be like clock.NAME.value");
	word += 6;
	len -= 12;
	ky_vec_foreach(&p->trace->clocks, known) {
		if (!strncmp((*known)->name, word, len) && !(*known)->name[len]) {
			*clock = *known;
			return KYMO_OK;
		}
	}
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
		return base_of(p, attr, &in->base);
	if (!strcmp(attr->name, "encoding"))
		return encoding_of(p, attr, &in->encoding);
	if (!strcmp(attr->name, "map"))
		return clock_of(p, attr, &in->clock);
	return KYMO_OK;
}

static int parse_integer(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
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

static int parse_float(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
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

static int parse_string(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
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

/* ---- enum -------------------------------------------------------------------------------- */

struct labelled_range {
	size_t label;
	struct ky_range range;
};

struct enumeration {
	struct ky_field_class *cls;
	KY_VEC(const char *) labels;
	KY_VEC(struct labelled_range) ranges;
	struct ky_names by_label; /* -> index + 1 */
	struct ky_range next;	  /* .begin: the value of a label without one */
	bool overflown;		  /* there is no next value */
};

/* A constant as the enumeration's integer type holds it. */
static int enum_value(struct ky_tsdl_parser *p, const struct enumeration *e, struct ky_range *range)
{
	struct ky_tsdl_attr attr = {.name = "an enumeration's value"};
	unsigned int bits = e->cls->num.length_bits;
	uint64_t limit;
	int ret = ky_tsdl_value(p, &attr);

	if (ret < 0)
		return ret;
	if (attr.kind != KY_ATTR_NUMBER)
		return ky_tsdl_fail(p, attr.value_at, "an enumeration's value must be a number");
	limit = ky_field_is_signed(e->cls) ? ky_mask_bits(bits - 1) + attr.negative
		: attr.negative		   ? 0
					   : ky_mask_bits(bits);
	if (attr.number > limit)
		return ky_tsdl_fail(p, attr.value_at,
				    "this value does not fit in the enumeration's %u-bit %s type",
				    bits, ky_field_is_signed(e->cls) ? "signed" : "unsigned");
	range->begin.u = attr.negative ? -attr.number : attr.number;
	return KYMO_OK;
}

/* "= VALUE", "= FIRST ... LAST", or the next value. */
static int enum_range(struct ky_tsdl_parser *p, struct enumeration *e, struct ky_range *range)
{
	const struct ky_token *token = p->at;
	struct ky_range last;
	bool empty;
	int ret;

	if (!ky_tsdl_accept(p, '=')) {
		*range = e->next;
		if (e->overflown)
			return ky_tsdl_fail(p, token - 1,
					    "no value is left for this label in the enumeration's "
					    "integer type");
		range->end = range->begin;
		return KYMO_OK;
	}
	token = p->at;
	ret = enum_value(p, e, range);
	if (ret < 0)
		return ret;
	range->end = range->begin;
	if (!ky_tsdl_accept(p, KY_PUNCT_ELLIPSIS))
		return KYMO_OK;
	ret = enum_value(p, e, &last);
	if (ret < 0)
		return ret;
	range->end = last.begin;
	empty = ky_field_is_signed(e->cls) ? range->begin.s > range->end.s
					   : range->begin.u > range->end.u;
	return empty ? ky_tsdl_fail(p, token, "this range ends before it begins") : KYMO_OK;
}

static void set_next(struct enumeration *e, const struct ky_range *range)
{
	unsigned int bits = e->cls->num.length_bits;
	uint64_t most = ky_mask_bits(ky_field_is_signed(e->cls) ? bits - 1 : bits);

	e->overflown = range->end.u == most;
	e->next.begin.u = range->end.u + 1;
}

/* The same label may stand there several times: one mapping of several ranges. */
static int add_label(struct ky_tsdl_parser *p, struct enumeration *e, const char *label,
		     const struct ky_range *range)
{
	size_t index = (size_t)(uintptr_t)ky_names_get(&e->by_label, label);
	struct labelled_range entry = {.range = *range};

	if (!index) {
		label = ky_arena_strdup(&p->trace->arena, label);
		if (!label || ky_vec_push(&e->labels, label) < 0)
			return ky_error_nomem(p->err);
		index = e->labels.len;
		if (ky_names_set(&e->by_label, label, (void *)(uintptr_t)index) < 0)
			return ky_error_nomem(p->err);
	}
	entry.label = index - 1;
	return ky_vec_push(&e->ranges, entry) < 0 ? ky_error_nomem(p->err) : KYMO_OK;
}

static int enum_labels(struct ky_tsdl_parser *p, struct enumeration *e)
{
	struct ky_range range;
	const char *label;
	int ret;

	do {
		if (e->labels.len && ky_tsdl_is(p, '}'))
			break; /* a comma after the last label */
		if (p->at->kind != KY_TOKEN_WORD && p->at->kind != KY_TOKEN_TEXT)
			return ky_tsdl_expected(p, "a label");
		label = (p->at++)->text;
		ret = enum_range(p, e, &range);
		if (ret == KYMO_OK)
			ret = add_label(p, e, label, &range);
		if (ret < 0)
			return ret;
		set_next(e, &range);
	} while (ky_tsdl_accept(p, ','));
	return ky_tsdl_expect(p, '}', "',' or '}'");
}

static int store_mappings(struct ky_tsdl_parser *p, const struct enumeration *e)
{
	struct ky_arena *arena = &p->trace->arena;
	struct ky_mapping *mappings =
		ky_arena_array(arena, e->labels.len, sizeof(struct ky_mapping));
	struct ky_range *ranges = ky_arena_array(arena, e->ranges.len, sizeof(*ranges));
	struct ky_range *at = ranges;

	if (!mappings || !ranges)
		return ky_error_nomem(p->err);
	for (size_t i = 0; i < e->ranges.len; i++)
		mappings[e->ranges.data[i].label].n_ranges++;
	for (size_t i = 0; i < e->labels.len; i++) {
		mappings[i].label = e->labels.data[i];
		mappings[i].ranges = at;
		at += mappings[i].n_ranges;
		mappings[i].n_ranges = 0;
	}
	for (size_t i = 0; i < e->ranges.len; i++) {
		struct ky_mapping *mapping = &mappings[e->ranges.data[i].label];
		size_t index = (size_t)(mapping->ranges - ranges) + mapping->n_ranges++;

		ranges[index] = e->ranges.data[i].range;
	}
	e->cls->num.mappings = mappings;
	e->cls->num.n_mappings = e->labels.len;
	return KYMO_OK;
}

static int enum_body(struct ky_tsdl_parser *p, struct ky_field_class *cls)
{
	struct enumeration e = {.cls = cls};
	int ret;

	cls->num.is_enum = true;
	ky_names_init(&e.by_label);
	ret = enum_labels(p, &e);
	if (ret == KYMO_OK)
		ret = store_mappings(p, &e);
	ky_vec_fini(&e.labels);
	ky_vec_fini(&e.ranges);
	ky_names_fini(&e.by_label);
	return ret;
}

/* The integer type behind the colon, or `int`. */
static int enum_base(struct ky_tsdl_parser *p, const struct ky_tsdl_type *type,
		     struct ky_field_class **cls)
{
	const struct ky_token *token = p->at;
	int ret = KYMO_OK;

	if (ky_tsdl_accept(p, ':')) {
		token = p->at;
		ret = ky_tsdl_type_name(p, cls);
	} else {
		const struct ky_field_class *plain = ky_tsdl_look_up(p, "int");

		token = type->token;
		if (!plain)
			return ky_tsdl_fail(p, token,
					    "an enumeration without an integer type is of type "
					    "int, which is not defined");
		ret = ky_tsdl_copy(p, plain, cls);
	}
	if (ret < 0)
		return ret;
	if (!ky_field_is_int(*cls) || (*cls)->num.is_enum || (*cls)->num.length_bits > 64)
		return ky_tsdl_fail(p, token,
				    "an enumeration's type must be an integer of up to 64 bits");
	(*cls)->type_name = NULL;
	return KYMO_OK;
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
	ret = enum_base(p, type, &type->cls);
	if (ret == KYMO_OK)
		ret = ky_tsdl_expect(p, '{', "'{'");
	if (ret == KYMO_OK)
		ret = enum_body(p, type->cls);
	return ret < 0 ? ret : register_compound(p, type, name);
}

/* ---- struct ------------------------------------------------------------------------------ */

static int add_member(struct ky_tsdl_parser *p, void *data, const struct ky_token *name,
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
	struct ky_names names;
	int ret;

	if (ky_vec_push(&p->open, cls) < 0)
		return ky_error_nomem(p->err);
	ret = ky_tsdl_scope_push(p);
	if (ret < 0)
		return ret;
	ky_names_init(&names);
	ret = ky_tsdl_fields(p, add_member, &names);
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
	return ret < 0 ? ret : register_compound(p, type, name);
}

/* ---- variant ----------------------------------------------------------------------------- */

struct options {
	struct ky_field_class *variant;
	struct ky_names names;
};

static int add_option(struct ky_tsdl_parser *p, void *data, const struct ky_token *name,
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
	struct options options = {.variant = variant};
	int ret = ky_tsdl_scope_push(p);

	if (ret < 0)
		return ret;
	ky_names_init(&options.names);
	ret = ky_tsdl_fields(p, add_option, &options);
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

int ky_tsdl_type_keyword(struct ky_tsdl_parser *p, struct ky_tsdl_type *type)
{
	int ret = ky_tsdl_deeper(p);

	if (ret < 0)
		return ret;
	switch ((p->at++)->keyword) {
	case KY_KEYWORD_INTEGER:
		ret = parse_integer(p, type);
		break;
	case KY_KEYWORD_FLOATING_POINT:
		ret = parse_float(p, type);
		break;
	case KY_KEYWORD_STRING:
		ret = parse_string(p, type);
		break;
	case KY_KEYWORD_ENUM:
		ret = parse_enum(p, type);
		break;
	case KY_KEYWORD_STRUCT:
		ret = parse_struct(p, type);
		break;
	default:
		ret = parse_variant(p, type);
	}
	p->depth--;
	return ret;
}
