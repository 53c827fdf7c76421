/* SPDX-License-Identifier: MIT */
/*
 * Types and signatures of DWARF (kdi-make.h).
 *
 * Each compilation unit describes its types again. Types are the same if they have the same name, size and members with the same
 * names and offsets; of what members point to, only name and size count.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/make/kdi-make.h"

#define DEPTH_MAX 200 /* of types in types; more are void */

struct reader {
	struct ky_kdi_info *info;
	struct ky_map by_die;	  /* address of an entry -> number + 1 */
	struct ky_map by_key;	  /* what makes a type the same -> number + 1 */
	struct ky_map by_address; /* of functions -> number + 1 */
	int depth;
};

static uint32_t convert(struct reader *reader, Dwarf_Die *die);

/* ---- attributes ------------------------------------------------------------------------- */

static const char *kdi_dwarf_name(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name ? name : "";
}

static bool kdi_dwarf_constant(Dwarf_Die *die, unsigned int name, uint64_t *value)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formudata(&attribute, &word) != 0)
		return false;
	*value = word;
	return true;
}

static bool kdi_dwarf_is_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	bool is = false;

	return dwarf_attr(die, DW_AT_declaration, &attribute) &&
	       dwarf_formflag(&attribute, &is) == 0 && is;
}

/* The type of an entry; 0: void. */
static uint32_t target_of(struct reader *reader, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die target;

	if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &target))
		return 0;
	return convert(reader, &target);
}

static int64_t offset_of(Dwarf_Die *member)
{
	uint64_t bytes = 0, bits = 0;

	if (kdi_dwarf_constant(member, DW_AT_data_bit_offset, &bits))
		return (int64_t)bits;
	kdi_dwarf_constant(member, DW_AT_data_member_location, &bytes);
	return (int64_t)(bytes * 8);
}

/* ---- keys ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t key, uint64_t value)
{
	return ky_hash_u64(key ^ (value + 0x9e3779b97f4a7c15u + (key << 6)));
}

static uint64_t mix_text(uint64_t key, const char *text)
{
	return mix(key, ky_hash_bytes(text, strlen(text)));
}

static bool is_member(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);
	Dwarf_Attribute attribute;

	return tag == DW_TAG_inheritance || tag == DW_TAG_enumerator ||
	       (tag == DW_TAG_member && !dwarf_attr(die, DW_AT_external, &attribute));
}

/* The first or next child; false: that was the last. Damaged files may lead back. */
static bool step(Dwarf_Die *parent, Dwarf_Die *child, bool is_first)
{
	Dwarf_Off before = is_first ? 0 : dwarf_dieoffset(child);

	if (is_first)
		return dwarf_child(parent, child) == 0;
	return dwarf_siblingof(child, child) == 0 && dwarf_dieoffset(child) > before;
}

static uint64_t key_of_members(Dwarf_Die *die, uint64_t key)
{
	Dwarf_Die child;
	uint64_t value;

	for (bool is = step(die, &child, true); is; is = step(die, &child, false)) {
		if (!is_member(&child))
			continue;
		key = mix_text(key, kdi_dwarf_name(&child));
		value = (uint64_t)offset_of(&child);
		if (dwarf_tag(&child) == DW_TAG_enumerator)
			kdi_dwarf_constant(&child, DW_AT_const_value, &value);
		key = mix(key, value);
	}
	return key;
}

static uint64_t key_of_type(const struct ky_kdi_type *type)
{
	uint64_t key = mix_text(type->kind, type->name);

	key = mix(key, (uint64_t)type->encoding << 32 | type->target);
	return mix(key, type->bytes);
}

/* The number of a type with @key; adds @type if it is new, and sets *is_new. */
static uint32_t number_for(struct reader *reader, uint64_t key, const struct ky_kdi_type *type,
			   Dwarf_Die *die, bool *is_new)
{
	uintptr_t number = (uintptr_t)ky_map_get(&reader->by_key, key);

	*is_new = !number;
	if (!number) {
		number = ky_kdi_info_type(reader->info, type) + (uintptr_t)1;
		if (number > 1)
			ky_map_set(&reader->by_key, key, (void *)number);
	}
	ky_map_set(&reader->by_die, (uintptr_t)die->addr, (void *)number);
	return (uint32_t)(number - 1);
}

/* ---- members ---------------------------------------------------------------------------- */

KY_VEC_TYPE(members, struct ky_kdi_member);

/* Members are added together, after what they need. */
static void take_members(struct reader *reader, uint32_t number, struct members *members)
{
	struct ky_kdi_type *type = &reader->info->types.data[number];
	uint32_t first = (uint32_t)reader->info->members.len;

	ky_vec_foreach(members, member)
		if (ky_kdi_info_member(reader->info, member) < 0)
			break;
	type->first_member = first;
	type->n_members = (uint32_t)reader->info->members.len - first;
	ky_vec_fini(members);
}

static void kdi_dwarf_add_one(struct reader *reader, Dwarf_Die *child, struct members *members)
{
	struct ky_kdi_member member = {.name = kdi_dwarf_name(child)};
	uint64_t value = 0;

	if (dwarf_tag(child) == DW_TAG_enumerator) {
		Dwarf_Attribute attribute;
		Dwarf_Sword number;

		if (dwarf_attr(child, DW_AT_const_value, &attribute) &&
		    dwarf_formsdata(&attribute, &number) == 0)
			member.at = number;
	} else {
		member.type = target_of(reader, child);
		member.at = offset_of(child);
		if (kdi_dwarf_constant(child, DW_AT_bit_size, &value) && value <= 4096)
			member.bits = (uint32_t)value;
	}
	(void)ky_vec_push(members, member);
}

static void add_members(struct reader *reader, Dwarf_Die *die, uint32_t number)
{
	struct members members = KY_VEC_INIT;
	Dwarf_Die child;

	for (bool is = step(die, &child, true); is; is = step(die, &child, false))
		if (is_member(&child))
			kdi_dwarf_add_one(reader, &child, &members);
	take_members(reader, number, &members);
}

/* ---- kinds ------------------------------------------------------------------------------ */

static uint32_t convert_struct(struct reader *reader, Dwarf_Die *die, uint8_t kind)
{
	struct ky_kdi_type type = {.kind = kind, .name = kdi_dwarf_name(die)};
	uint32_t number;
	bool is_new;

	if (kdi_dwarf_is_declaration(die)) {
		type.kind = KY_KDI_FORWARD;
		return number_for(reader, key_of_type(&type), &type, die, &is_new);
	}
	kdi_dwarf_constant(die, DW_AT_byte_size, &type.bytes);
	number = number_for(reader, key_of_members(die, key_of_type(&type)), &type, die, &is_new);
	if (is_new && number && !reader->info->is_signatures_only)
		add_members(reader, die, number);
	return number;
}

static uint32_t convert_enum(struct reader *reader, Dwarf_Die *die)
{
	struct ky_kdi_type type = {.kind = KY_KDI_ENUM, .name = kdi_dwarf_name(die)};
	uint32_t number;
	bool is_new;

	kdi_dwarf_constant(die, DW_AT_byte_size, &type.bytes);
	number = number_for(reader, key_of_members(die, key_of_type(&type)), &type, die, &is_new);
	if (is_new && number && !reader->info->is_signatures_only)
		add_members(reader, die, number);
	return number;
}

static uint32_t convert_base(struct reader *reader, Dwarf_Die *die)
{
	struct ky_kdi_type type = {.kind = KY_KDI_BASE, .name = kdi_dwarf_name(die)};
	uint64_t encoding = 0;
	bool is_new;

	kdi_dwarf_constant(die, DW_AT_byte_size, &type.bytes);
	kdi_dwarf_constant(die, DW_AT_encoding, &encoding);
	type.encoding = encoding == DW_ATE_boolean    ? KY_KDI_BOOL
			: encoding == DW_ATE_float    ? KY_KDI_FLOAT
			: encoding == DW_ATE_signed   ? KY_KDI_SIGNED
			: encoding == DW_ATE_unsigned ? KY_KDI_UNSIGNED
			: encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char ||
					encoding == DW_ATE_UTF
				? KY_KDI_CHAR
				: KY_KDI_UNSIGNED;
	return number_for(reader, key_of_type(&type), &type, die, &is_new);
}

static uint32_t convert_reference(struct reader *reader, Dwarf_Die *die, uint8_t kind)
{
	struct ky_kdi_type type = {.kind = kind, .name = ""};
	bool is_new;

	if (kind == KY_KDI_TYPEDEF)
		type.name = kdi_dwarf_name(die);
	type.target = target_of(reader, die);
	return number_for(reader, key_of_type(&type), &type, die, &is_new);
}

/* The elements in one dimension; 0: as many as there are. */
static uint64_t elements_of(Dwarf_Die *dimension)
{
	uint64_t count = 0;

	if (kdi_dwarf_constant(dimension, DW_AT_count, &count))
		return count;
	return kdi_dwarf_constant(dimension, DW_AT_upper_bound, &count) && count < INT64_MAX
		       ? count + 1
		       : 0;
}

/* An array of arrays for several dimensions, of which the last is the innermost. */
static uint32_t convert_array(struct reader *reader, Dwarf_Die *die)
{
	struct ky_kdi_type type = {.kind = KY_KDI_ARRAY, .name = ""};
	uint64_t counts[8];
	uint32_t n = 0;
	Dwarf_Die child;
	bool is_new;

	for (bool is = step(die, &child, true); is; is = step(die, &child, false))
		if (dwarf_tag(&child) == DW_TAG_subrange_type && n < 8)
			counts[n++] = elements_of(&child);
	type.target = target_of(reader, die);
	do {
		type.bytes = n ? counts[--n] : 0;
		type.target = number_for(reader, key_of_type(&type), &type, die, &is_new);
	} while (n && type.target);
	return type.target;
}

/* A signature: of a function, or of what a pointer to functions is to. */
static uint32_t convert_function(struct reader *reader, Dwarf_Die *die)
{
	struct ky_kdi_type type = {.kind = KY_KDI_FUNCTION, .name = ""};
	struct members members = KY_VEC_INIT;
	uint64_t key;
	uint32_t number;
	Dwarf_Die child;
	bool is_new;

	type.target = target_of(reader, die);
	for (bool is = step(die, &child, true); is; is = step(die, &child, false)) {
		struct ky_kdi_member argument = {.name = ""};

		if (dwarf_tag(&child) == DW_TAG_unspecified_parameters)
			type.encoding = 1;
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		argument.name = kdi_dwarf_name(&child);
		argument.type = target_of(reader, &child);
		(void)ky_vec_push(&members, argument);
	}
	key = key_of_type(&type);
	ky_vec_foreach(&members, member)
		key = mix(mix_text(key, member->name), member->type);
	number = number_for(reader, key, &type, die, &is_new);
	if (is_new && number)
		take_members(reader, number, &members);
	ky_vec_fini(&members);
	return number;
}

static uint32_t convert_kind(struct reader *reader, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		return convert_base(reader, die);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return convert_struct(reader, die, KY_KDI_STRUCT);
	case DW_TAG_union_type:
		return convert_struct(reader, die, KY_KDI_UNION);
	case DW_TAG_enumeration_type:
		return convert_enum(reader, die);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return convert_reference(reader, die, KY_KDI_POINTER);
	case DW_TAG_const_type:
		return convert_reference(reader, die, KY_KDI_CONST);
	case DW_TAG_volatile_type:
		return convert_reference(reader, die, KY_KDI_VOLATILE);
	case DW_TAG_restrict_type:
		return convert_reference(reader, die, KY_KDI_RESTRICT);
	case DW_TAG_typedef:
		return convert_reference(reader, die, KY_KDI_TYPEDEF);
	case DW_TAG_array_type:
		return convert_array(reader, die);
	case DW_TAG_subroutine_type:
		return convert_function(reader, die);
	case DW_TAG_atomic_type:
		return target_of(reader, die);
	default:
		return 0;
	}
}

static uint32_t convert(struct reader *reader, Dwarf_Die *die)
{
	uintptr_t known = (uintptr_t)ky_map_get(&reader->by_die, (uintptr_t)die->addr);
	uint32_t number;

	if (known)
		return (uint32_t)(known - 1);
	if (reader->depth >= DEPTH_MAX)
		return 0;
	reader->depth++;
	number = convert_kind(reader, die);
	reader->depth--;
	return number;
}

/* ---- units ------------------------------------------------------------------------------ */

static int index_functions(struct reader *reader)
{
	struct ky_kdi_info *info = reader->info;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && i < info->functions.len; i++)
		ret = ky_map_set(&reader->by_address, info->functions.data[i].address,
				 (void *)(uintptr_t)(i + 1));
	return ret;
}

static void set_signature(struct reader *reader, Dwarf_Die *die, GElf_Addr shift)
{
	Dwarf_Die origin = *die;
	Dwarf_Attribute attribute;
	Dwarf_Addr begin;
	uintptr_t number;

	if (dwarf_lowpc(die, &begin) != 0)
		return;
	number = (uintptr_t)ky_map_get(&reader->by_address, begin + shift);
	if (!number)
		return;
	/* The abstract function has all arguments, also those that the compiler has removed. */
	if (dwarf_attr(die, DW_AT_abstract_origin, &attribute))
		dwarf_formref_die(&attribute, &origin);
	reader->info->functions.data[number - 1].signature = convert_function(reader, &origin);
}

static bool is_named_type(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_typedef:
		return !kdi_dwarf_is_declaration(die);
	default:
		return false;
	}
}

static void read_unit_types(struct reader *reader, Dwarf_Die *unit, GElf_Addr shift)
{
	Dwarf_Die child;

	for (bool is = step(unit, &child, true); is; is = step(unit, &child, false)) {
		if (dwarf_tag(&child) == DW_TAG_subprogram)
			set_signature(reader, &child, shift);
		else if (!reader->info->is_signatures_only && is_named_type(&child))
			(void)convert(reader, &child);
	}
}

int ky_kdi_read_dwarf(struct ky_kdi_info *info, Dwarf *dwarf, GElf_Addr bias)
{
	struct reader reader = {.info = info};
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int ret;

	ky_map_init(&reader.by_die);
	ky_map_init(&reader.by_key);
	ky_map_init(&reader.by_address);
	ret = index_functions(&reader);
	while (!ret && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0)
		read_unit_types(&reader, &die, bias);
	ky_map_fini(&reader.by_die);
	ky_map_fini(&reader.by_key);
	ky_map_fini(&reader.by_address);
	return ret;
}
