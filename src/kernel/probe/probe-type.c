/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-type.h"

#include <string.h>

#define MAX_TYPE_CHAIN 32
#define MAX_MEMBERS    10000
#define MAX_DEPTH      64	  /* of structs within structs */
#define MAX_OFFSET     (1u << 30) /* of a member */

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

bool ky_probe_type_is_reference(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

bool ky_probe_type_is_pointer(Dwarf_Die *type)
{
	return dwarf_tag(type) == DW_TAG_pointer_type || ky_probe_type_is_reference(type);
}

bool ky_probe_type_is_float(Dwarf_Die *type)
{
	uint64_t encoding = ky_probe_type_number(type, DW_AT_encoding, 0);

	return dwarf_tag(type) == DW_TAG_base_type &&
	       (encoding == DW_ATE_float || encoding == DW_ATE_complex_float ||
		encoding == DW_ATE_decimal_float);
}

bool ky_probe_type_is_signed(Dwarf_Die *type)
{
	uint64_t encoding = ky_probe_type_number(type, DW_AT_encoding, DW_ATE_void);
	Dwarf_Die of;

	/* Not all compilers say it of enumerations themselves. */
	if (encoding == DW_ATE_void && dwarf_tag(type) == DW_TAG_enumeration_type &&
	    ky_probe_type_of(type, &of))
		encoding = ky_probe_type_number(&of, DW_AT_encoding, DW_ATE_void);
	return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

bool ky_probe_type_is_method(Dwarf_Die *type)
{
	Dwarf_Die of;

	return dwarf_tag(type) == DW_TAG_ptr_to_member_type && ky_probe_type_of(type, &of) &&
	       dwarf_tag(&of) == DW_TAG_subroutine_type;
}

bool ky_probe_type_offset(Dwarf_Die *member, uint64_t *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	Dwarf_Op *ops;
	size_t n;

	*offset = 0;
	if (dwarf_hasattr(member, DW_AT_virtuality) &&
	    ky_probe_type_number(member, DW_AT_virtuality, 0) != DW_VIRTUALITY_none)
		return false;
	/* Members of unions and bit fields may have none. */
	if (!dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute))
		return true;
	if (dwarf_formudata(&attribute, &value) == 0) {
		*offset = value;
	} else if (dwarf_getlocation(&attribute, &ops, &n) == 0 && n == 1 &&
		   ops[0].atom == DW_OP_plus_uconst) {
		*offset = ops[0].number; /* DWARF 2 */
	} else {
		return false;
	}
	return *offset <= MAX_OFFSET;
}

/* A struct that is only declared here is defined in another unit; dwarf_* cannot follow that. */
static bool find_member(Dwarf_Die *type, const char *name, Dwarf_Die *member, uint64_t *offset,
			int *budget, int depth)
{
	Dwarf_Die child;

	if (*budget <= 0 || depth > MAX_DEPTH || dwarf_child(type, &child) != 0)
		return false;
	do {
		const char *called = dwarf_diename(&child);
		int tag = dwarf_tag(&child);
		Dwarf_Die inner;
		uint64_t at;

		/* Structs within themselves, which only a damaged file has, would be without end. */
		if (--*budget <= 0)
			return false;
		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    !ky_probe_type_offset(&child, &at))
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

			if (find_member(&inner, name, member, &within, budget, depth + 1)) {
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
	return find_member(type, name, member, offset, &budget, 0);
}

/* A constructor of class @of that takes another object of it. */
static bool copies(Dwarf_Die *function, Dwarf_Die *of)
{
	const char *name = dwarf_diename(function), *called = dwarf_diename(of);
	size_t len = called ? strcspn(called, "<") : 0;
	Dwarf_Die child, type, target;

	if (!name || !len || strncmp(name, called, len) != 0 || (name[len] && name[len] != '<') ||
	    dwarf_child(function, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
		    ky_probe_type_of(&child, &type) && ky_probe_type_is_reference(&type) &&
		    ky_probe_type_of(&type, &target) &&
		    dwarf_dieoffset(&target) == dwarf_dieoffset(of))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* What member function @function of @of says about how @of is passed. */
static enum ky_probe_passing passing_by_function(Dwarf_Die *function, Dwarf_Die *of)
{
	const char *name = dwarf_diename(function);

	if (dwarf_hasattr(function, DW_AT_virtuality))
		return KY_PROBE_PASSED_BY_ADDRESS;
	if (!(name && name[0] == '~') && !copies(function, of))
		return KY_PROBE_PASSED_AS_STRUCT;
	if (dwarf_hasattr(function, DW_AT_deleted))
		return KY_PROBE_PASSED_UNKNOWN;
	/* The compiler's own is as good as none, unless a member has one. */
	return dwarf_hasattr(function, DW_AT_defaulted) || dwarf_hasattr(function, DW_AT_artificial)
		       ? KY_PROBE_PASSED_AS_STRUCT
		       : KY_PROBE_PASSED_BY_ADDRESS;
}

static enum ky_probe_passing passing(Dwarf_Die *type, int *budget, int depth);

static enum ky_probe_passing passing_by_member(Dwarf_Die *member, int *budget, int depth)
{
	Dwarf_Die inner;

	if (dwarf_hasattr(member, DW_AT_virtuality))
		return KY_PROBE_PASSED_BY_ADDRESS;
	if (!ky_probe_type_of(member, &inner))
		return KY_PROBE_PASSED_UNKNOWN;
	while (dwarf_tag(&inner) == DW_TAG_array_type)
		if (--*budget <= 0 || !ky_probe_type_of(&inner, &inner))
			return KY_PROBE_PASSED_UNKNOWN;
	return ky_probe_type_is_struct(&inner) ? passing(&inner, budget, depth + 1)
					       : KY_PROBE_PASSED_AS_STRUCT;
}

static enum ky_probe_passing passing(Dwarf_Die *type, int *budget, int depth)
{
	enum ky_probe_passing found = KY_PROBE_PASSED_AS_STRUCT;
	Dwarf_Die child;

	if (depth > MAX_DEPTH || dwarf_hasattr(type, DW_AT_declaration))
		return KY_PROBE_PASSED_UNKNOWN;
	if (dwarf_child(type, &child) != 0)
		return found;
	do {
		enum ky_probe_passing one = KY_PROBE_PASSED_AS_STRUCT;
		int tag = dwarf_tag(&child);

		if (--*budget <= 0)
			return KY_PROBE_PASSED_UNKNOWN;
		if (tag == DW_TAG_subprogram)
			one = passing_by_function(&child, type);
		else if ((tag == DW_TAG_member && !dwarf_hasattr(&child, DW_AT_declaration)) ||
			 tag == DW_TAG_inheritance)
			one = passing_by_member(&child, budget, depth);
		if (one == KY_PROBE_PASSED_BY_ADDRESS)
			return one;
		if (one != KY_PROBE_PASSED_AS_STRUCT)
			found = one;
	} while (dwarf_siblingof(&child, &child) == 0);
	return found;
}

enum ky_probe_passing ky_probe_type_passing(Dwarf_Die *type)
{
	int budget = MAX_MEMBERS;

	switch (ky_probe_type_number(type, DW_AT_calling_convention, 0)) {
	case DW_CC_pass_by_reference:
		return KY_PROBE_PASSED_BY_ADDRESS;
	case DW_CC_pass_by_value:
		return KY_PROBE_PASSED_AS_STRUCT;
	default:
		return passing(type, &budget, 0);
	}
}

static bool has_large(Dwarf_Die *type, int *budget)
{
	Dwarf_Die child, inner;

	if (ky_probe_type_number(type, DW_AT_alignment, 8) > 8)
		return true;
	if (dwarf_tag(type) == DW_TAG_array_type)
		return !ky_probe_type_of(type, &inner) || dwarf_hasattr(type, DW_AT_GNU_vector) ||
		       --*budget <= 0 || has_large(&inner, budget);
	if (!ky_probe_type_is_struct(type))
		return ky_probe_type_number(type, DW_AT_byte_size, 8) > 8;
	if (dwarf_child(type, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
			continue;
		if (--*budget <= 0 || ky_probe_type_number(&child, DW_AT_alignment, 8) > 8 ||
		    !ky_probe_type_of(&child, &inner) || has_large(&inner, budget))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

bool ky_probe_type_has_large(Dwarf_Die *type)
{
	int budget = MAX_TYPE_CHAIN * 16;

	return has_large(type, &budget);
}
