/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-location.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_BIT_OFFSET (8ull << 30)

/* ---- steps ---------------------------------------------------------------------------- */

static int too_deep(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "the expression is too long for the kernel");
}

/* A struct that compilers pass in registers, word by word, becomes a value, or some bits of one. */
static int probe_location_settle(struct ky_probe_location *place, struct kymo_error *err)
{
	unsigned int bit = (unsigned int)(place->offset % 8) * 8;
	const char *reg;

	if (!place->in_words)
		return KYMO_OK;
	reg = place->offset >= 0 && place->offset < 16 ? place->words[place->offset / 8] : NULL;
	if (!reg)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "part of the struct is a floating-point number, in a register "
				    "that the kernel cannot read");
	if (bit && !place->bits) {
		uint64_t size = place->has_type
					? ky_probe_type_number(&place->type, DW_AT_byte_size, 4)
					: 0;
		int ret;

		if (place->has_type && ky_probe_type_is_signed(&place->type)) {
			ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
					   "a signed number in the middle of a register: the "
					   "kernel cannot fetch it");
			ky_error_hint(err, "add ':u%u' for an unsigned number",
				      (unsigned int)(size <= 8 ? size * 8 : 64));
			return ret;
		}
		if (!size || size > 8 - bit / 8)
			return ky_error_set(err, KYMO_E_UNSUPPORTED,
					    "part of a register that is not a number");
		place->bits = (unsigned int)size * 8;
		place->bit_offset = 0;
	}
	if (place->bits) {
		if (place->bit_offset + bit + place->bits > 64)
			return ky_error_set(err, KYMO_E_UNSUPPORTED,
					    "a bit field that the kernel cannot fetch");
		place->bit_offset += bit;
		place->container_bits = 64;
	}
	memcpy(place->base, reg, strlen(reg) + 1);
	place->in_words = false;
	place->offset = 0;
	return KYMO_OK;
}

/* Debug information is not trusted: offsets may run over. */
static void probe_location_move(struct ky_probe_location *place, uint64_t bytes)
{
	place->offset = (int64_t)((uint64_t)place->offset + bytes);
}

/* What is in memory becomes a value. */
static int probe_location_load(struct ky_probe_location *place, struct kymo_error *err)
{
	char base[sizeof(place->base)];

	if (!place->in_memory)
		return probe_location_settle(place, err);
	if (snprintf(base, sizeof(base), "%+" PRId64 "(%.150s)", place->offset, place->base) >=
	    (int)sizeof(base) - 40)
		return too_deep(err);
	memcpy(place->base, base, sizeof(base));
	place->in_memory = false;
	place->offset = 0;
	return KYMO_OK;
}

/* The pointer in @place is followed: then @place is what it points at. */
static int probe_location_follow(struct ky_probe_location *place, const char *what,
				 struct kymo_error *err)
{
	Dwarf_Die target;
	int ret;

	if (!ky_probe_type_is_pointer(&place->type))
		return ky_error_set(err, KYMO_E_INVALID, "%s: the name before it is not a pointer",
				    what);
	ret = probe_location_load(place, err);
	if (ret < 0)
		return ret;
	place->in_memory = true;
	place->has_type = ky_probe_type_of(&place->type, &target);
	place->type = target;
	return KYMO_OK;
}

/* DW_AT_bit_offset, which may be less than none. */
static int64_t top_bits(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Sword value;

	if (dwarf_formsdata(dwarf_attr_integrate(member, DW_AT_bit_offset, &attribute), &value) !=
	    0)
		return 0;
	return value;
}

static int probe_location_set_bits(struct ky_probe_location *place, Dwarf_Die *member,
				   struct kymo_error *err)
{
	uint64_t bits = ky_probe_type_number(member, DW_AT_bit_size, 0), size = 4;
	uint64_t at = ky_probe_type_number(member, DW_AT_data_bit_offset, UINT64_MAX), unit;

	if (!bits)
		return KYMO_OK;
	if (at == UINT64_MAX) {
		/* Before DWARF 4: counted from the other end of the storage unit, and beyond this one in packed structs. */
		int64_t from_top = top_bits(member);

		size = ky_probe_type_number(member, DW_AT_byte_size, 4);
		at = size <= 8 && bits <= 64 ? size * 8 - bits - (uint64_t)from_top : UINT64_MAX;
	}
	/* The kernel fetches at most 8 bytes to take bits from: those of a word, or, in packed structs, from any byte on. */
	unit = at % 32 + bits <= 32 ? 32 : at % 64 + bits <= 64 ? 64 : 8;
	if (bits > 64 || at % unit + bits > 64 || at > MAX_BIT_OFFSET)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "a bit field that the kernel cannot fetch");
	probe_location_move(place, at / unit * unit / 8);
	place->bits = (unsigned int)bits;
	place->bit_offset = (unsigned int)(at % unit);
	place->container_bits = place->bit_offset + bits <= 32 ? 32 : 64;
	return KYMO_OK;
}

static int no_member(Dwarf_Die *type, const char *name, struct kymo_error *err)
{
	int ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no member '%s'", name), n = 0;
	char names[200] = "";
	Dwarf_Die child;

	if (dwarf_child(type, &child) != 0)
		return ret;
	do {
		const char *called =
			dwarf_tag(&child) == DW_TAG_member ? dwarf_diename(&child) : NULL;
		size_t len = strlen(names);

		if (called)
			snprintf(names + len, sizeof(names) - len, "%s%.40s", n++ ? ", " : "",
				 called);
	} while (n < 8 && dwarf_siblingof(&child, &child) == 0);
	if (n)
		ky_error_hint(err, "the struct has: %s%s", names, n == 8 ? " ..." : "");
	return ret;
}

static int step_member(struct ky_probe_location *place, const struct ky_probe_step *step,
		       struct kymo_error *err)
{
	uint64_t offset;
	Dwarf_Die member;

	/* What a reference stands for is written with a dot, but is where a pointer points. */
	if (step->kind == KY_PROBE_ARROW ||
	    (place->has_type && ky_probe_type_is_reference(&place->type))) {
		int ret = probe_location_follow(place, "->", err);

		if (ret < 0)
			return ret;
	}
	if (!place->has_type || !ky_probe_type_is_struct(&place->type))
		return ky_error_set(err, KYMO_E_INVALID,
				    "'%s': the name before it is not a struct%s", step->member,
				    place->has_type && ky_probe_type_is_pointer(&place->type)
					    ? ", but a pointer: use ->"
					    : "");
	if (!place->in_memory && !place->in_words)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "'%s': the struct is passed in registers", step->member);
	if (!ky_probe_type_member(&place->type, step->member, &member, &offset))
		return no_member(&place->type, step->member, err);
	place->offset += (int64_t)offset;
	place->has_type = ky_probe_type_of(&member, &place->type);
	return probe_location_set_bits(place, &member, err);
}

static int step_index(struct ky_probe_location *place, uint32_t index, struct kymo_error *err)
{
	Dwarf_Die element;
	Dwarf_Word size;
	int ret = KYMO_OK;

	if (dwarf_tag(&place->type) == DW_TAG_array_type) {
		if (!ky_probe_type_of(&place->type, &element))
			return ky_error_set(err, KYMO_E_INVALID, "[]: an array of nothing");
		place->type = element;
	} else {
		ret = probe_location_follow(place, "[]", err);
	}
	if (ret < 0)
		return ret;
	if (!place->has_type || dwarf_aggregate_size(&place->type, &size) != 0 || size > 1u << 20)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "[]: elements of unknown size");
	probe_location_move(place, index * size);
	return KYMO_OK;
}

int ky_probe_location_step(struct ky_probe_location *place,
			   const struct ky_probe_argument *argument, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (unsigned int i = 0; i < argument->n_steps && !ret; i++) {
		const struct ky_probe_step *step = &argument->steps[i];

		if (!place->has_type)
			return ky_error_set(err, KYMO_E_INVALID,
					    "'%s' has no members: its type is not known",
					    argument->root);
		if (place->bits)
			return ky_error_set(err, KYMO_E_INVALID, "a bit field has no members");
		ret = step->kind == KY_PROBE_INDEX ? step_index(place, step->index, err)
						   : step_member(place, step, err);
	}
	return ret;
}

/* ---- the end of an expression --------------------------------------------------------- */

static void probe_location_put(const struct ky_probe_location *place, const char *type,
			       struct ky_strbuf *fetch)
{
	if (place->in_memory)
		ky_strbuf_addf(fetch, "%+" PRId64 "(%s):%s", place->offset, place->base, type);
	else
		ky_strbuf_addf(fetch, "%s:%s", place->base, type);
}

/* A pointer to text is fetched as the text; an array of characters, too. */
static int probe_location_put_text(struct ky_probe_location *place, const char *type,
				   struct ky_strbuf *fetch, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!place->has_type || ky_probe_type_is_pointer(&place->type)) {
		ret = probe_location_load(place, err);
		place->in_memory = true;
		place->offset = 0;
	}
	if (!ret)
		probe_location_put(place, type, fetch);
	return ret;
}

static void probe_location_put_bits(const struct ky_probe_location *place, struct ky_strbuf *fetch)
{
	char type[32];

	snprintf(type, sizeof(type), "b%u@%u/%u", place->bits, place->bit_offset,
		 place->container_bits);
	probe_location_put(place, type, fetch);
}

/* What a reference to is followed for. */
static bool is_value(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_pointer_type;
}

static int put_typed(struct ky_probe_location *place, const char *name, struct ky_strbuf *fetch,
		     struct kymo_error *err)
{
	uint64_t size;
	Dwarf_Die target;
	char type[32];
	int ret;

	if (place->has_type && ky_probe_type_is_reference(&place->type) &&
	    ky_probe_type_of(&place->type, &target) && is_value(&target)) {
		ret = probe_location_follow(place, name, err);
		if (ret < 0)
			return ret;
	}
	if (!place->has_type || !ky_probe_type_is_struct(&place->type)) {
		ret = probe_location_settle(place, err);
		if (ret < 0)
			return ret;
	}
	if (!place->has_type) {
		probe_location_put(place, "x64", fetch);
		return KYMO_OK;
	}
	if (ky_probe_type_is_pointer(&place->type)) {
		if (ky_probe_type_of(&place->type, &target) && ky_probe_type_is_char(&target))
			return probe_location_put_text(place, "string", fetch, err);
		probe_location_put(place, "x64", fetch);
		return KYMO_OK;
	}
	if (dwarf_tag(&place->type) == DW_TAG_array_type) {
		if (place->in_memory && ky_probe_type_of(&place->type, &target) &&
		    ky_probe_type_is_char(&target))
			return probe_location_put_text(place, "string", fetch, err);
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "'%s' is an array: name an element, as in %s[0]", name, name);
	}
	if (ky_probe_type_is_struct(&place->type))
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "'%s' is a struct: name a member",
				    name);
	if (ky_probe_type_is_float(&place->type) && !place->in_memory)
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"'%s' is a floating-point number, in a register that the kernel "
			"cannot read",
			name);
	size = ky_probe_type_number(&place->type, DW_AT_byte_size, 8);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "'%s' has %" PRIu64 " bytes", name,
				    size);
	if (place->bits) {
		probe_location_put_bits(place, fetch);
		return KYMO_OK;
	}
	snprintf(type, sizeof(type), "%c%u",
		 ky_probe_type_is_float(&place->type)	 ? 'x'
		 : ky_probe_type_is_signed(&place->type) ? 's'
							 : 'u',
		 (unsigned int)size * 8);
	probe_location_put(place, type, fetch);
	return KYMO_OK;
}

/* With the type that the user gave. */
static int put_as(struct ky_probe_location *place, const char *type, struct ky_strbuf *fetch,
		  struct kymo_error *err)
{
	bool is_plain = type[0] == 'u' || type[0] == 'x';
	unsigned long bits = is_plain ? strtoul(type + 1, NULL, 10) : 0;
	unsigned int within = place->in_words ? (unsigned int)(place->offset % 8) * 8 : 0;
	int ret;

	/* What does not begin where a register does is some of its bits. */
	if (within && !place->bits && bits && bits <= 64 - within)
		place->bits = (unsigned int)bits;
	ret = probe_location_settle(place, err);
	if (ret < 0)
		return ret;
	if (!place->bits) {
		probe_location_put(place, type, fetch);
		return KYMO_OK;
	}
	if (!bits)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "some bits of a word can be fetched as u8 ... u64 only, not as "
				    "'%s'",
				    type);
	if (bits < place->bits)
		place->bits = (unsigned int)bits;
	probe_location_put_bits(place, fetch);
	return KYMO_OK;
}

int ky_probe_location_put(struct ky_probe_location *place, const struct ky_probe_argument *argument,
			  struct ky_strbuf *fetch, struct kymo_error *err)
{
	/* Of a function of the kernel: in its memory, or in the program's. */
	if (strcmp(argument->type, "string") == 0 || strcmp(argument->type, "ustring") == 0)
		return probe_location_put_text(place, argument->type, fetch, err);
	if (argument->type[0])
		return put_as(place, argument->type, fetch, err);
	return put_typed(place, argument->root, fetch, err);
}
