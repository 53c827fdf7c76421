/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-convention.h"

#include <stdio.h>
#include <string.h>

#define FLOAT_REGISTERS 8
#define MAX_DEPTH	16
#define MAX_LEAVES	64
#define MAX_PARTS	1024 /* structs within structs, which may all be empty */

const char *const ky_probe_argument_registers[] = {"%di", "%si", "%dx", "%cx", "%r8", "%r9"};

/* What the two words of a small struct hold. */
struct words {
	bool integer[2], real[2];
	bool odd; /* something that is not passed by words, or is unknown */
	int leaves, parts;
};

static void add_leaf(struct words *words, Dwarf_Die *type, uint64_t at)
{
	uint64_t size = ky_probe_type_number(type, DW_AT_byte_size, 8);
	bool real = ky_probe_type_is_float(type);

	if (size == 0 || size > 8 || at % size || at > 16 - size || ++words->leaves > MAX_LEAVES) {
		words->odd = true;
		return;
	}
	(real ? words->real : words->integer)[at / 8] = true;
	if (ky_probe_type_is_method(type)) {
		words->odd |= at != 0;
		words->integer[1] = true;
	}
}

static void add_leaves(struct words *words, Dwarf_Die *type, uint64_t at, int depth);

static void add_elements(struct words *words, Dwarf_Die *type, uint64_t at, int depth)
{
	Dwarf_Word whole = 0, size = 0;
	Dwarf_Die element;

	if (!ky_probe_type_of(type, &element) || dwarf_aggregate_size(type, &whole) != 0 ||
	    dwarf_aggregate_size(&element, &size) != 0 || !size || whole > 16) {
		words->odd = true;
		return;
	}
	for (uint64_t i = 0; i + size <= whole && !words->odd; i += size)
		add_leaves(words, &element, at + i, depth);
}

static void add_leaves(struct words *words, Dwarf_Die *type, uint64_t at, int depth)
{
	Dwarf_Die child, inner;

	if (depth > MAX_DEPTH || ++words->parts > MAX_PARTS) {
		words->odd = true;
	} else if (dwarf_tag(type) == DW_TAG_array_type) {
		add_elements(words, type, at, depth + 1);
	} else if (!ky_probe_type_is_struct(type)) {
		add_leaf(words, type, at);
	} else if (dwarf_child(type, &child) == 0) {
		do {
			int tag = dwarf_tag(&child);
			uint64_t member;

			if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
			    dwarf_hasattr(&child, DW_AT_declaration)) /* static */
				continue;
			if (!ky_probe_type_offset(&child, &member) ||
			    !ky_probe_type_of(&child, &inner)) {
				words->odd = true;
				break;
			}
			member += at;
			if (ky_probe_type_number(&child, DW_AT_bit_size, 0)) {
				/* An integer somewhere in its word. */
				uint64_t bits = ky_probe_type_number(&child, DW_AT_data_bit_offset,
								     (member - at) * 8) +
						at * 8;

				words->odd |= bits >= 128;
				words->integer[bits / 64 % 2] = true;
				words->leaves++;
			} else {
				add_leaves(words, &inner, member, depth + 1);
			}
		} while (!words->odd && dwarf_siblingof(&child, &child) == 0);
	}
}

/* On the stack, behind the return address. */
static void put_on_stack(struct ky_probe_convention *c, uint64_t size,
			 struct ky_probe_location *place)
{
	snprintf(place->base, sizeof(place->base), "%%sp");
	place->in_memory = true;
	place->offset = 8 + (int64_t)c->stack * 8;
	c->stack += (unsigned int)((size + 7) / 8);
}

static bool probe_convention_unknown(struct ky_probe_convention *c)
{
	c->unknown = true;
	return false;
}

static bool pass_words(struct ky_probe_convention *c, const struct words *words, uint64_t size,
		       struct ky_probe_location *place)
{
	unsigned int n = (unsigned int)((size + 7) / 8), integers = 0, reals = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (!words->integer[i] && !words->real[i])
			return probe_convention_unknown(c); /* nothing but padding */
		integers += words->integer[i];
		reals += !words->integer[i];
	}
	if (c->integers + integers > KY_PROBE_ARGUMENT_REGISTERS ||
	    c->floats + reals > FLOAT_REGISTERS) {
		put_on_stack(c, size, place);
		return true;
	}
	c->floats += reals;
	for (unsigned int i = 0; i < n; i++)
		place->words[i] =
			words->integer[i] ? ky_probe_argument_registers[c->integers++] : NULL;
	place->in_words = true;
	return true;
}

static bool pass_struct(struct ky_probe_convention *c, Dwarf_Die *type, bool is_class,
			struct ky_probe_location *place)
{
	uint64_t size = ky_probe_type_number(type, DW_AT_byte_size, 0);
	enum ky_probe_passing how =
		is_class ? ky_probe_type_passing(type) : KY_PROBE_PASSED_AS_STRUCT;
	struct words words = {0};

	if (how == KY_PROBE_PASSED_BY_ADDRESS) {
		if (c->integers >= KY_PROBE_ARGUMENT_REGISTERS)
			return probe_convention_unknown(c);
		snprintf(place->base, sizeof(place->base), "%s",
			 ky_probe_argument_registers[c->integers++]);
		place->in_memory = true;
		return true;
	}
	if (how != KY_PROBE_PASSED_AS_STRUCT || !size || size > 1u << 20 ||
	    ky_probe_type_number(type, DW_AT_alignment, 8) > 8)
		return probe_convention_unknown(c);
	if (size > 16) {
		/* Members of 16 bytes would have it aligned. */
		if (ky_probe_type_has_large(type))
			return probe_convention_unknown(c);
		put_on_stack(c, size, place);
		return true;
	}
	add_leaves(&words, type, 0, 0);
	return words.odd || !words.leaves ? probe_convention_unknown(c)
					  : pass_words(c, &words, size, place);
}

bool ky_probe_pass(struct ky_probe_convention *c, Dwarf_Die *type, bool is_class,
		   struct ky_probe_location *place)
{
	static const struct words method = {.integer = {true, true}};
	uint64_t size = ky_probe_type_number(type, DW_AT_byte_size, 8);

	if (c->unknown)
		return false;
	if (ky_probe_type_is_struct(type))
		return pass_struct(c, type, is_class, place);
	if (ky_probe_type_is_method(type))
		return pass_words(c, &method, 16, place);
	if (size > 8 || dwarf_tag(type) == DW_TAG_array_type)
		return probe_convention_unknown(c);
	if (ky_probe_type_is_float(type)) {
		if (c->floats < FLOAT_REGISTERS) {
			c->floats++;
			return false;
		}
		put_on_stack(c, size, place);
		return true;
	}
	if (c->integers < KY_PROBE_ARGUMENT_REGISTERS)
		snprintf(place->base, sizeof(place->base), "%s",
			 ky_probe_argument_registers[c->integers++]);
	else
		snprintf(place->base, sizeof(place->base), "$stack%u", ++c->stack);
	return true;
}
