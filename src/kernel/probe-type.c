/* SPDX-License-Identifier: MIT */
#include "kernel/probe-type.h"

#include <string.h>

#define MAX_TYPE_CHAIN 32
#define MAX_MEMBERS    10000

bool ky_probe_type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	for (int i = 0; i < MAX_TYPE_CHAIN; i++) {
		if (!dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), type))
			return false;
		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			die = type;
			continue;
		default:
			return true;
		}
	}
	return false;
}

uint64_t ky_probe_type_number(Dwarf_Die *die, unsigned int name, uint64_t otherwise)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) != 0)
		return otherwise;
	return value;
}

bool ky_probe_type_is_char(Dwarf_Die *type)
{
	uint64_t encoding = ky_probe_type_number(type, DW_AT_encoding, 0);

	return dwarf_tag(type) == DW_TAG_base_type &&
	       ky_probe_type_number(type, DW_AT_byte_size, 0) == 1 &&
	       (encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char);
}

bool ky_probe_type_is_struct(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type;
}

bool ky_probe_type_is_pointer(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

bool ky_probe_type_is_float(Dwarf_Die *type)
{
	uint64_t encoding = ky_probe_type_number(type, DW_AT_encoding, 0);

	return dwarf_tag(type) == DW_TAG_base_type &&
	       (encoding == DW_ATE_float || encoding == DW_ATE_complex_float);
}

/* A struct that is only declared here is defined in another unit; dwarf_* cannot follow that. */
static bool find_member(Dwarf_Die *type, const char *name, Dwarf_Die *member, uint64_t *offset,
			int *budget)
{
	Dwarf_Die child;

	if (*budget <= 0 || dwarf_child(type, &child) != 0)
		return false;
	do {
		const char *called = dwarf_diename(&child);
		uint64_t at = ky_probe_type_number(&child, DW_AT_data_member_location, 0);
		int tag = dwarf_tag(&child);
		Dwarf_Die inner;

		/* Structs within themselves, which only a damaged file has, would be without end. */
		if (--*budget <= 0)
			return false;
		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		if (called && strcmp(called, name) == 0) {
			*member = child;
			*offset += at;
			return true;
		}
		/* Unnamed structs and unions, and base classes, lend their members. */
		if ((!called || tag == DW_TAG_inheritance) && ky_probe_type_of(&child, &inner) &&
		    ky_probe_type_is_struct(&inner)) {
			uint64_t within = *offset + at;

			if (find_member(&inner, name, member, &within, budget)) {
				*offset = within;
				return true;
			}
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

bool ky_probe_type_member(Dwarf_Die *type, const char *name, Dwarf_Die *member, uint64_t *offset)
{
	int budget = MAX_MEMBERS;

	*offset = 0;
	return find_member(type, name, member, offset, &budget);
}
