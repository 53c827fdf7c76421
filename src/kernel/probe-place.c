/* SPDX-License-Identifier: MIT */
#include "kernel/probe-place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- steps ---------------------------------------------------------------------------- */

static int too_deep(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "the expression is too long for the kernel");
}

static bool is_signed(Dwarf_Die *type)
{
	uint64_t encoding = ky_probe_type_number(type, DW_AT_encoding, DW_ATE_unsigned);

	return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

/* What is in registers, word by word, and no struct any more, becomes a value, or some bits of one. */
static int settle(struct ky_probe_place *place, struct kymo_error *err)
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
		if (place->has_type && is_signed(&place->type))
			return ky_error_set(err, KYMO_E_UNSUPPORTED,
					    "a signed number in the middle of a register: the "
					    "kernel cannot fetch it");
		place->bits =
			(unsigned int)ky_probe_type_number(&place->type, DW_AT_byte_size, 4) * 8;
		place->bit_offset = 0;
	}
	if (place->bits) {
		place->bit_offset += bit;
		place->container_bits = 64;
	}
	memcpy(place->base, reg, strlen(reg) + 1);
	place->in_words = false;
	place->offset = 0;
	return KYMO_OK;
}

/* Debug information is not trusted: offsets may run over. */
static void move(struct ky_probe_place *place, uint64_t bytes)
{
	place->offset = (int64_t)((uint64_t)place->offset + bytes);
}

/* What is in memory becomes a value. */
static int load(struct ky_probe_place *place, struct kymo_error *err)
{
	char base[sizeof(place->base)];

	if (!place->in_memory)
		return settle(place, err);
	if (snprintf(base, sizeof(base), "%+" PRId64 "(%.150s)", place->offset, place->base) >=
	    (int)sizeof(base) - 40)
		return too_deep(err);
	memcpy(place->base, base, sizeof(base));
	place->in_memory = false;
	place->offset = 0;
	return KYMO_OK;
}

/* The pointer in @place is followed: then @place is what it points at. */
static int follow(struct ky_probe_place *place, const char *what, struct kymo_error *err)
{
	Dwarf_Die target;
	int ret;

	if (!ky_probe_type_is_pointer(&place->type))
		return ky_error_set(err, KYMO_E_INVALID, "%s: what stands before it is no pointer",
				    what);
	ret = load(place, err);
	if (ret < 0)
		return ret;
	place->in_memory = true;
	place->has_type = ky_probe_type_of(&place->type, &target);
	place->type = target;
	return KYMO_OK;
}

static void set_bits(struct ky_probe_place *place, Dwarf_Die *member)
{
	uint64_t bits = ky_probe_type_number(member, DW_AT_bit_size, 0), size = 4;
	uint64_t at = ky_probe_type_number(member, DW_AT_data_bit_offset, UINT64_MAX);

	if (!bits || bits > 32)
		return;
	if (at == UINT64_MAX) {
		/* Before DWARF 4: counted from the other end of the storage unit. */
		uint64_t from_top = ky_probe_type_number(member, DW_AT_bit_offset, 0);

		size = ky_probe_type_number(member, DW_AT_byte_size, 4);
		if (size > 8 || from_top + bits > size * 8)
			return;
		at = size * 8 - from_top - bits;
	}
	move(place, at / 32 * 4);
	place->bits = (unsigned int)bits;
	place->bit_offset = (unsigned int)(at % 32);
	place->container_bits = place->bit_offset + bits > 32 ? 64 : 32;
}

static int step_member(struct ky_probe_place *place, const struct ky_probe_step *step,
		       struct kymo_error *err)
{
	uint64_t offset;
	Dwarf_Die member;

	/* What a reference stands for is written with a dot, but is where a pointer points. */
	if (step->kind == KY_PROBE_ARROW ||
	    (place->has_type && ky_probe_type_is_reference(&place->type))) {
		int ret = follow(place, "->", err);

		if (ret < 0)
			return ret;
	}
	if (!place->has_type || !ky_probe_type_is_struct(&place->type))
		return ky_error_set(err, KYMO_E_INVALID,
				    "'%s': what stands before it is no struct%s", step->member,
				    place->has_type && ky_probe_type_is_pointer(&place->type)
					    ? ", but a pointer: use ->"
					    : "");
	if (!place->in_memory && !place->in_words)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "'%s': the struct is passed in registers", step->member);
	if (!ky_probe_type_member(&place->type, step->member, &member, &offset))
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no member '%s'", step->member);
	move(place, offset);
	set_bits(place, &member);
	place->has_type = ky_probe_type_of(&member, &place->type);
	return KYMO_OK;
}

static int step_index(struct ky_probe_place *place, uint32_t index, struct kymo_error *err)
{
	Dwarf_Die element;
	Dwarf_Word size;
	int ret = KYMO_OK;

	if (dwarf_tag(&place->type) == DW_TAG_array_type) {
		if (!ky_probe_type_of(&place->type, &element))
			return ky_error_set(err, KYMO_E_INVALID, "[]: an array of nothing");
		place->type = element;
	} else {
		ret = follow(place, "[]", err);
	}
	if (ret < 0)
		return ret;
	if (!place->has_type || dwarf_aggregate_size(&place->type, &size) != 0 || size > 1u << 20)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "[]: elements of unknown size");
	move(place, index * size);
	return KYMO_OK;
}

int ky_probe_place_step(struct ky_probe_place *place, const struct ky_probe_argument *argument,
			struct kymo_error *err)
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

static void put(const struct ky_probe_place *place, const char *type, struct ky_strbuf *fetch)
{
	if (place->in_memory)
		ky_strbuf_addf(fetch, "%+" PRId64 "(%s):%s", place->offset, place->base, type);
	else
		ky_strbuf_addf(fetch, "%s:%s", place->base, type);
}

/* A pointer to text is fetched as the text; an array of characters, too. */
static int put_text(struct ky_probe_place *place, const char *type, struct ky_strbuf *fetch,
		    struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!place->has_type || ky_probe_type_is_pointer(&place->type)) {
		ret = load(place, err);
		place->in_memory = true;
		place->offset = 0;
	}
	if (!ret)
		put(place, type, fetch);
	return ret;
}

static int put_typed(struct ky_probe_place *place, const char *name, struct ky_strbuf *fetch,
		     struct kymo_error *err)
{
	uint64_t size;
	Dwarf_Die target;
	char type[32];
	int ret;

	if (place->has_type && ky_probe_type_is_reference(&place->type) &&
	    ky_probe_type_of(&place->type, &target) && dwarf_tag(&target) == DW_TAG_base_type) {
		ret = follow(place, name, err);
		if (ret < 0)
			return ret;
	}
	if (!place->has_type || !ky_probe_type_is_struct(&place->type)) {
		ret = settle(place, err);
		if (ret < 0)
			return ret;
	}
	if (!place->has_type) {
		put(place, "x64", fetch);
		return KYMO_OK;
	}
	if (ky_probe_type_is_pointer(&place->type)) {
		if (ky_probe_type_of(&place->type, &target) && ky_probe_type_is_char(&target))
			return put_text(place, "string", fetch, err);
		put(place, "x64", fetch);
		return KYMO_OK;
	}
	if (dwarf_tag(&place->type) == DW_TAG_array_type) {
		if (place->in_memory && ky_probe_type_of(&place->type, &target) &&
		    ky_probe_type_is_char(&target))
			return put_text(place, "string", fetch, err);
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
	if (place->bits)
		snprintf(type, sizeof(type), "b%u@%u/%u", place->bits, place->bit_offset,
			 place->container_bits);
	else
		snprintf(type, sizeof(type), "%c%u",
			 ky_probe_type_is_float(&place->type) ? 'x'
			 : is_signed(&place->type)	      ? 's'
							      : 'u',
			 (unsigned int)size * 8);
	put(place, type, fetch);
	return KYMO_OK;
}

int ky_probe_place_put(struct ky_probe_place *place, const struct ky_probe_argument *argument,
		       struct ky_strbuf *fetch, struct kymo_error *err)
{
	/* Of a function of the kernel: in its memory, or in the program's. */
	if (strcmp(argument->type, "string") == 0 || strcmp(argument->type, "ustring") == 0)
		return put_text(place, argument->type, fetch, err);
	if (argument->type[0]) {
		int ret = settle(place, err);

		if (ret < 0)
			return ret;
		put(place, argument->type, fetch);
		return KYMO_OK;
	}
	return put_typed(place, argument->root, fetch, err);
}
