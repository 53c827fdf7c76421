/* SPDX-License-Identifier: MIT */
/*
 * Arguments of functions as the kernel fetches them.
 *
 * At its first instruction a function finds its arguments where the calling convention puts them, whether
 * it is optimised or not; debug information says so only for the former. So where it names a
 * register, that is taken; else the convention decides, from the types of the parameters.
 */
#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe-file.h"

/* x86-64, in the order of the calling convention, and in DWARF's. */
static const char *const argument_registers[] = {"%di", "%si", "%dx", "%cx", "%r8", "%r9"};
static const char *const dwarf_registers[] = {"%ax",  "%dx",  "%cx",  "%bx", "%si",  "%di",
					      "%bp",  "%sp",  "%r8",  "%r9", "%r10", "%r11",
					      "%r12", "%r13", "%r14", "%r15"};

#define N_ARGUMENT_REGISTERS 6
#define N_DWARF_REGISTERS    16
#define MAX_TYPE_CHAIN	     32
#define MAX_MEMBERS	     10000

/* What a part of an expression is: a value, or the memory at @offset bytes behind value @base. */
struct place {
	char base[200]; /* "%di", "+8(%di)" */
	bool in_memory;
	int64_t offset;
	Dwarf_Die type;
	bool has_type;
	/* A bit field. */
	unsigned int bits, bit_offset, container_bits;
};

static int no_such(struct kymo_error *err, const char *what, const char *name)
{
	return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no %s '%s'", what, name);
}

/* ---- types ---------------------------------------------------------------------------- */

/* The type of @die, without typedefs and qualifiers. False: void. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
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

static uint64_t number_of(Dwarf_Die *die, unsigned int name, uint64_t otherwise)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) != 0)
		return otherwise;
	return value;
}

static bool is_char(Dwarf_Die *type)
{
	uint64_t encoding = number_of(type, DW_AT_encoding, 0);

	return dwarf_tag(type) == DW_TAG_base_type && number_of(type, DW_AT_byte_size, 0) == 1 &&
	       (encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char);
}

static bool is_struct(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type;
}

static bool is_pointer(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

static bool is_float(Dwarf_Die *type)
{
	uint64_t encoding = number_of(type, DW_AT_encoding, 0);

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
		uint64_t at = number_of(&child, DW_AT_data_member_location, 0);
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
		if ((!called || tag == DW_TAG_inheritance) && type_of(&child, &inner) &&
		    is_struct(&inner)) {
			uint64_t within = *offset + at;

			if (find_member(&inner, name, member, &within, budget)) {
				*offset = within;
				return true;
			}
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* ---- steps ---------------------------------------------------------------------------- */

static int too_deep(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_UNSUPPORTED, "the expression is too long for the kernel");
}

/* What is in memory becomes a value. */
static int load(struct place *place, struct kymo_error *err)
{
	char base[sizeof(place->base)];

	if (!place->in_memory)
		return KYMO_OK;
	if (snprintf(base, sizeof(base), "%+" PRId64 "(%.150s)", place->offset, place->base) >=
	    (int)sizeof(base) - 40)
		return too_deep(err);
	memcpy(place->base, base, sizeof(base));
	place->in_memory = false;
	place->offset = 0;
	return KYMO_OK;
}

/* The pointer in @place is followed: then @place is what it points at. */
static int follow(struct place *place, const char *what, struct kymo_error *err)
{
	Dwarf_Die target;
	int ret;

	if (!is_pointer(&place->type))
		return ky_error_set(err, KYMO_E_INVALID, "%s: what stands before it is no pointer",
				    what);
	ret = load(place, err);
	if (ret < 0)
		return ret;
	place->in_memory = true;
	place->has_type = type_of(&place->type, &target);
	place->type = target;
	return KYMO_OK;
}

static void set_bits(struct place *place, Dwarf_Die *member)
{
	uint64_t bits = number_of(member, DW_AT_bit_size, 0), size = 4;
	uint64_t at = number_of(member, DW_AT_data_bit_offset, UINT64_MAX);

	if (!bits || bits > 32)
		return;
	if (at == UINT64_MAX) {
		/* Before DWARF 4: counted from the other end of the storage unit. */
		uint64_t from_top = number_of(member, DW_AT_bit_offset, 0);

		size = number_of(member, DW_AT_byte_size, 4);
		if (size > 8 || from_top + bits > size * 8)
			return;
		at = size * 8 - from_top - bits;
	}
	place->offset += (int64_t)(at / 32 * 4);
	place->bits = (unsigned int)bits;
	place->bit_offset = (unsigned int)(at % 32);
	place->container_bits = place->bit_offset + bits > 32 ? 64 : 32;
}

static int step_member(struct place *place, const struct ky_probe_step *step,
		       struct kymo_error *err)
{
	uint64_t offset = 0;
	int budget = MAX_MEMBERS;
	Dwarf_Die member;

	if (step->kind == KY_PROBE_ARROW) {
		int ret = follow(place, "->", err);

		if (ret < 0)
			return ret;
	}
	if (!place->has_type || !is_struct(&place->type))
		return ky_error_set(err, KYMO_E_INVALID,
				    "'%s': what stands before it is no struct%s", step->member,
				    place->has_type && is_pointer(&place->type)
					    ? ", but a pointer: use ->"
					    : "");
	if (!place->in_memory)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "'%s': the struct is passed in registers", step->member);
	if (!find_member(&place->type, step->member, &member, &offset, &budget))
		return no_such(err, "member", step->member);
	place->offset += (int64_t)offset;
	set_bits(place, &member);
	place->has_type = type_of(&member, &place->type);
	return KYMO_OK;
}

static int step_index(struct place *place, uint32_t index, struct kymo_error *err)
{
	Dwarf_Die element;
	Dwarf_Word size;
	int ret = KYMO_OK;

	if (dwarf_tag(&place->type) == DW_TAG_array_type) {
		if (!type_of(&place->type, &element))
			return ky_error_set(err, KYMO_E_INVALID, "[]: an array of nothing");
		place->type = element;
	} else {
		ret = follow(place, "[]", err);
	}
	if (ret < 0)
		return ret;
	if (!place->has_type || dwarf_aggregate_size(&place->type, &size) != 0 || size > 1u << 20)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "[]: elements of unknown size");
	place->offset += (int64_t)(index * size);
	return KYMO_OK;
}

static int take_steps(struct place *place, const struct ky_probe_argument *argument,
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

static void put(const struct place *place, const char *type, struct ky_strbuf *fetch)
{
	if (place->in_memory)
		ky_strbuf_addf(fetch, "%+" PRId64 "(%s):%s", place->offset, place->base, type);
	else
		ky_strbuf_addf(fetch, "%s:%s", place->base, type);
}

/* A pointer to text is fetched as the text; an array of characters, too. */
static int put_text(struct place *place, const char *type, struct ky_strbuf *fetch,
		    struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!place->has_type || is_pointer(&place->type)) {
		ret = load(place, err);
		place->in_memory = true;
		place->offset = 0;
	}
	if (!ret)
		put(place, type, fetch);
	return ret;
}

static int put_typed(struct place *place, const char *name, struct ky_strbuf *fetch,
		     struct kymo_error *err)
{
	uint64_t size, encoding;
	Dwarf_Die target;
	char type[32];

	if (!place->has_type) {
		put(place, "x64", fetch);
		return KYMO_OK;
	}
	if (is_pointer(&place->type)) {
		if (type_of(&place->type, &target) && is_char(&target))
			return put_text(place, "string", fetch, err);
		put(place, "x64", fetch);
		return KYMO_OK;
	}
	if (dwarf_tag(&place->type) == DW_TAG_array_type) {
		if (place->in_memory && type_of(&place->type, &target) && is_char(&target))
			return put_text(place, "string", fetch, err);
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "'%s' is an array: name an element, as in %s[0]", name, name);
	}
	if (is_struct(&place->type))
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "'%s' is a struct: name a member",
				    name);
	if (is_float(&place->type) && !place->in_memory)
		return ky_error_set(
			err, KYMO_E_UNSUPPORTED,
			"'%s' is a floating-point number, in a register that the kernel "
			"cannot read",
			name);
	size = number_of(&place->type, DW_AT_byte_size, 8);
	encoding = number_of(&place->type, DW_AT_encoding, DW_ATE_unsigned);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "'%s' has %" PRIu64 " bytes", name,
				    size);
	if (place->bits)
		snprintf(type, sizeof(type), "b%u@%u/%u", place->bits, place->bit_offset,
			 place->container_bits);
	else
		snprintf(type, sizeof(type), "%c%u",
			 is_float(&place->type)					       ? 'x'
			 : encoding == DW_ATE_signed || encoding == DW_ATE_signed_char ? 's'
										       : 'u',
			 (unsigned int)size * 8);
	put(place, type, fetch);
	return KYMO_OK;
}

static int put_result(struct place *place, const struct ky_probe_argument *argument,
		      struct ky_strbuf *fetch, struct kymo_error *err)
{
	/* Of a function of the kernel: in its memory, or in the program's. */
	if (strcmp(argument->type, "string") == 0 || strcmp(argument->type, "ustring") == 0)
		return put_text(place, argument->type, fetch, err);
	if (argument->type[0]) {
		put(place, argument->type, fetch);
		return KYMO_OK;
	}
	return put_typed(place, argument->root, fetch, err);
}

/* ---- roots without debug information -------------------------------------------------- */

static bool raw_root(const struct ky_probe_argument *argument, struct place *place)
{
	const char *root = argument->root;
	unsigned int n;
	int len = 0;

	memset(place, 0, sizeof(*place));
	if (argument->is_return || root[0] == '%' || root[0] == '$') {
		snprintf(place->base, sizeof(place->base), "%s", root);
		return true;
	}
	if (sscanf(root, "arg%2u%n", &n, &len) != 1 || root[len] || n < 1)
		return false;
	if (n <= N_ARGUMENT_REGISTERS)
		snprintf(place->base, sizeof(place->base), "%s", argument_registers[n - 1]);
	else
		snprintf(place->base, sizeof(place->base), "$stack%u", n - N_ARGUMENT_REGISTERS);
	return true;
}

int ky_probe_raw_fetch(const struct ky_probe_argument *argument, struct ky_strbuf *fetch,
		       struct kymo_error *err)
{
	struct place place;
	int ret;

	if (!raw_root(argument, &place)) {
		ret = no_such(err, "argument", argument->root);
		ky_error_hint(err,
			      "without debug information there are arg1, arg2 ..., %%di, %%si ..., "
			      "$stack1 ... and $retval");
		return ret;
	}
	ret = take_steps(&place, argument, err);
	return ret < 0 ? ret : put_result(&place, argument, fetch, err);
}

/* ---- functions in debug information --------------------------------------------------- */

/* The function that begins at @address of the debug information, and its unit. */
static bool find_function(const struct ky_probe_file *file, uint64_t address, Dwarf_Die *function,
			  Dwarf_Addr *pc)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(file->module, &bias);
	Dwarf_Off offset = 0, next;
	size_t header;

	if (!dwarf)
		return false;
	/* In the file's own addresses: a debug file may be linked elsewhere. */
	*pc = address + file->bias - bias;
	while (dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
		Dwarf_Die unit, *scopes = NULL;
		int n;

		if (dwarf_offdie(dwarf, offset + header, &unit) && dwarf_haspc(&unit, *pc) == 1) {
			n = dwarf_getscopes(&unit, *pc, &scopes);
			for (int i = 0; i < n; i++) {
				Dwarf_Addr entry;

				if (dwarf_tag(&scopes[i]) != DW_TAG_subprogram ||
				    dwarf_entrypc(&scopes[i], &entry) != 0 || entry != *pc)
					continue;
				*function = scopes[i];
				free(scopes);
				return true;
			}
			free(scopes);
		}
		offset = next;
	}
	return false;
}

/* The register that the debug information names. */
static const char *register_at(Dwarf_Die *parameter, Dwarf_Addr pc)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr_integrate(parameter, DW_AT_location, &attribute) ||
	    dwarf_getlocation_addr(&attribute, pc, &ops, &n, 1) != 1 || n != 1)
		return NULL;
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom < DW_OP_reg0 + N_DWARF_REGISTERS)
		return dwarf_registers[ops[0].atom - DW_OP_reg0];
	return NULL;
}

struct convention {
	unsigned int integers, floats, stack; /* used up to now */
	bool unknown; /* a struct came: where it and the next ones are is complicated */
};

/* Where the convention puts a parameter of @type. False: not known, or no integer. */
static bool pass(struct convention *c, Dwarf_Die *type, struct place *place)
{
	uint64_t size = number_of(type, DW_AT_byte_size, 8);

	if (c->unknown || is_struct(type) || dwarf_tag(type) == DW_TAG_array_type ||
	    (size > 8 && !is_pointer(type))) {
		c->unknown = true;
		return false;
	}
	if (is_float(type)) {
		if (c->floats++ >= 8)
			c->stack++;
		return false;
	}
	if (c->integers < N_ARGUMENT_REGISTERS)
		snprintf(place->base, sizeof(place->base), "%s", argument_registers[c->integers++]);
	else
		/* Behind the return address. */
		snprintf(place->base, sizeof(place->base), "$stack%u", ++c->stack);
	return true;
}

/* Compilers give clones of a function other parameters. */
static bool is_clone(const struct ky_probe_file *file, uint64_t address)
{
	const char *name = dwfl_module_addrname(file->module, address + file->bias);

	return name && strchr(name, '.');
}

static int missing(struct kymo_error *err, const char *name)
{
	return ky_error_set(
		err, KYMO_E_UNSUPPORTED,
		"parameter '%s' is nowhere the kernel could fetch it when the function begins: "
		"it was optimised away, or is a struct or floating-point number",
		name);
}

static int find_parameter(const struct ky_probe_file *file, Dwarf_Die *function, Dwarf_Addr pc,
			  uint64_t address, const char *name, struct place *place,
			  struct kymo_error *err)
{
	struct convention convention = {0};
	char names[200] = "";
	Dwarf_Die child, result;
	int ret;

	/* A large struct is returned where a first, hidden argument points. */
	if (type_of(function, &result) && is_struct(&result) &&
	    number_of(&result, DW_AT_byte_size, 0) > 16)
		convention.integers = 1;
	if (is_clone(file, address))
		convention.unknown = true;
	if (dwarf_child(function, &child) == 0) {
		do {
			const char *called = dwarf_diename(&child), *reg;
			bool known;

			if (dwarf_tag(&child) != DW_TAG_formal_parameter)
				continue;
			place->has_type = type_of(&child, &place->type);
			known = place->has_type && pass(&convention, &place->type, place);
			if (called)
				snprintf(names + strlen(names), sizeof(names) - strlen(names),
					 "%s%.40s", names[0] ? ", " : "", called);
			if (!called || strcmp(called, name) != 0)
				continue;
			reg = register_at(&child, pc);
			if (reg)
				snprintf(place->base, sizeof(place->base), "%s", reg);
			return reg || known ? KYMO_OK : missing(err, name);
		} while (dwarf_siblingof(&child, &child) == 0);
	}
	ret = no_such(err, "parameter", name);
	ky_error_hint(err, names[0] ? "the function has: %s" : "the function has no parameters%s",
		      names);
	return ret;
}

int ky_probe_argument_fetch(const struct ky_probe_file *file, uint64_t address, bool exact,
			    const struct ky_probe_argument *argument, struct ky_strbuf *fetch,
			    struct kymo_error *err)
{
	struct place place;
	Dwarf_Die function;
	Dwarf_Addr pc;
	bool known = find_function(file, address, &function, &pc);
	bool raw = raw_root(argument, &place);
	int ret = KYMO_OK;

	if (known && argument->is_return) {
		place.has_type = type_of(&function, &place.type);
		/* In other registers, or where the caller wanted it. */
		if (place.has_type && (is_struct(&place.type) || is_float(&place.type)))
			place.has_type = false;
	} else if (known && exact && argument->root[0] != '%' && argument->root[0] != '$') {
		struct place named = {0};

		ret = find_parameter(file, &function, pc, address, argument->root, &named, err);
		if (!ret)
			place = named;
		else if (raw && ret == KYMO_E_NOT_FOUND)
			ret = KYMO_OK; /* arg1 is nobody's name: the register then */
	} else if (!raw) {
		ret = no_such(err, "argument", argument->root);
		ky_error_hint(
			err, known ? "parameters have their places at the very beginning of a "
				     "function only"
				   : "names need debug information (gcc -g, or Debian's -dbgsym "
				     "package); without, there are arg1, arg2 ..., %%di, %%si ...");
	}
	if (!ret)
		ret = take_steps(&place, argument, err);
	return ret < 0 ? ret : put_result(&place, argument, fetch, err);
}
