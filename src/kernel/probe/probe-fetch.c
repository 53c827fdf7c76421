/* SPDX-License-Identifier: MIT */
/*
 * Arguments of functions as the kernel fetches them.
 *
 * At its first instruction a function finds its arguments where the calling convention puts them, whether
 * it is optimised or not; debug information says so only for the former. So where it names a
 * register, that is taken; else the convention decides, from the types of the parameters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe/probe-convention.h"
#include "kernel/probe/probe-file.h"
#include "kernel/probe/probe-location.h"

/* In DWARF's order. */
static const char *const dwarf_registers[] = {"%ax",  "%dx",  "%cx",  "%bx", "%si",  "%di",
					      "%bp",  "%sp",  "%r8",  "%r9", "%r10", "%r11",
					      "%r12", "%r13", "%r14", "%r15"};

#define N_DWARF_REGISTERS 16
#define MAX_NAMESPACES	  16

static int no_such(struct kymo_error *err, const char *what, const char *name)
{
	return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no %s '%s'", what, name);
}

/* ---- roots without debug information -------------------------------------------------- */

static bool raw_root(const struct ky_probe_argument *argument, struct ky_probe_location *place)
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
	if (n <= KY_PROBE_ARGUMENT_REGISTERS)
		snprintf(place->base, sizeof(place->base), "%s",
			 ky_probe_argument_registers[n - 1]);
	else
		snprintf(place->base, sizeof(place->base), "$stack%u",
			 n - KY_PROBE_ARGUMENT_REGISTERS);
	return true;
}

int ky_probe_raw_fetch(const struct ky_probe_argument *argument, struct ky_strbuf *fetch,
		       struct kymo_error *err)
{
	struct ky_probe_location place;
	int ret;

	if (!raw_root(argument, &place)) {
		ret = no_such(err, "argument", argument->root);
		ky_error_hint(err,
			      "without debug information there are arg1, arg2 ..., %%di, %%si ..., "
			      "$stack1 ... and $retval");
		return ret;
	}
	ret = ky_probe_location_step(&place, argument, err);
	return ret < 0 ? ret : ky_probe_location_put(&place, argument, fetch, err);
}

/* ---- functions in debug information --------------------------------------------------- */

static bool begins_at(Dwarf_Die *die, Dwarf_Addr pc)
{
	Dwarf_Addr entry;

	return dwarf_tag(die) == DW_TAG_subprogram && dwarf_entrypc(die, &entry) == 0 &&
	       entry == pc;
}

/* Among what is in @die, or in the namespaces and types there, where Rust's functions are. */
static bool find_within(Dwarf_Die *die, Dwarf_Addr pc, int depth, Dwarf_Die *function)
{
	Dwarf_Die child;

	if (depth > MAX_NAMESPACES || dwarf_child(die, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (begins_at(&child, pc)) {
			*function = child;
			return true;
		}
		if ((tag == DW_TAG_namespace || ky_probe_type_is_struct(&child)) &&
		    find_within(&child, pc, depth + 1, function))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static bool find_in_unit(Dwarf_Die *unit, Dwarf_Addr pc, Dwarf_Die *function)
{
	Dwarf_Die *scopes = NULL;
	int n = dwarf_getscopes(unit, pc, &scopes);
	bool found = false;

	for (int i = 0; i < n && !found; i++) {
		found = begins_at(&scopes[i], pc);
		if (found)
			*function = scopes[i];
	}
	free(scopes);
	return found || find_within(unit, pc, 0, function);
}

/* The function that begins at @address of the debug information, and its unit. */
static bool find_function(const struct ky_probe_file *file, uint64_t address, Dwarf_Die *function,
			  Dwarf_Die *unit, Dwarf_Addr *pc)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = ky_probe_file_dwarf(file, &bias);
	Dwarf_Off offset = 0, next;
	size_t header;

	if (!dwarf)
		return false;
	/* In the file's own addresses: a debug file may be linked elsewhere. */
	*pc = address + file->bias - bias;
	while (dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
		if (dwarf_offdie(dwarf, offset + header, unit) && dwarf_haspc(unit, *pc) == 1 &&
		    find_in_unit(unit, *pc, function))
			return true;
		offset = next;
	}
	return false;
}

static int count_instance(Dwarf_Die *instance, void *data)
{
	unsigned int *n = data;

	++*n;
	return DWARF_CB_OK;
}

unsigned int ky_probe_file_inlined(const struct ky_probe_file *file, uint64_t address)
{
	Dwarf_Die function, unit, abstract;
	Dwarf_Attribute origin;
	unsigned int n = 0;
	Dwarf_Addr pc;

	if (!find_function(file, address, &function, &unit, &pc) ||
	    !dwarf_formref_die(dwarf_attr(&function, DW_AT_abstract_origin, &origin), &abstract))
		return 0;
	(void)dwarf_func_inline_instances(&abstract, count_instance, &n);
	return n;
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

/* Compilers give clones of a function other parameters. */
static bool is_clone(const struct ky_probe_file *file, uint64_t address)
{
	const char *name = dwfl_module_addrname(file->module, address + file->bias);

	return name && strchr(name, '.');
}

static int probe_fetch_missing(struct kymo_error *err, const char *name)
{
	return ky_error_set(
		err, KYMO_E_UNSUPPORTED,
		"parameter '%s' is nowhere the kernel could fetch it when the function begins: "
		"it was optimised away, or is a struct or floating-point number",
		name);
}

/* Languages whose compilers pass arguments in ways of their own. */
static bool probe_fetch_is_foreign(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_D:
	case DW_LANG_Go:
	case DW_LANG_Haskell:
	case DW_LANG_OCaml:
	case DW_LANG_Rust:
	case DW_LANG_Swift:
		return true;
	default:
		return false;
	}
}

/* Where the convention cannot be relied on: the compiler says so, or has a language without one. */
static bool has_own_ways(const struct ky_probe_file *file, uint64_t address, Dwarf_Die *function,
			 Dwarf_Die *unit)
{
	return is_clone(file, address) || probe_fetch_is_foreign(unit) ||
	       ky_probe_type_number(function, DW_AT_calling_convention, DW_CC_normal) ==
		       DW_CC_nocall;
}

static bool has_classes(Dwarf_Die *unit)
{
	int language = dwarf_srclang(unit);

	return language != DW_LANG_C && language != DW_LANG_C89 && language != DW_LANG_C99 &&
	       language != DW_LANG_C11;
}

static int find_parameter(const struct ky_probe_file *file, Dwarf_Die *function, Dwarf_Die *unit,
			  Dwarf_Addr pc, uint64_t address, const char *name,
			  struct ky_probe_location *place, struct kymo_error *err)
{
	struct ky_probe_convention convention = {0};
	char names[200] = "";
	Dwarf_Die child, result;
	int ret;

	/* A large struct is returned where a first, hidden argument points. */
	if (ky_probe_type_of(function, &result) && ky_probe_type_is_struct(&result)) {
		struct ky_probe_location place_of_result = {0};
		struct ky_probe_convention of_result = {0};

		if (!ky_probe_pass(&of_result, &result, has_classes(unit), &place_of_result))
			convention.unknown = true;
		convention.integers = place_of_result.in_memory;
	}
	if (has_own_ways(file, address, function, unit))
		convention.unknown = true;
	if (dwarf_child(function, &child) == 0) {
		do {
			const char *called = dwarf_diename(&child), *reg;
			bool known;

			if (dwarf_tag(&child) != DW_TAG_formal_parameter)
				continue;
			memset(place, 0, sizeof(*place));
			place->has_type = ky_probe_type_of(&child, &place->type);
			known = place->has_type &&
				ky_probe_pass(&convention, &place->type, has_classes(unit), place);
			if (called)
				snprintf(names + strlen(names), sizeof(names) - strlen(names),
					 "%s%.40s", names[0] ? ", " : "", called);
			if (!called || strcmp(called, name) != 0)
				continue;
			reg = register_at(&child, pc);
			if (reg && !place->in_memory)
				snprintf(place->base, sizeof(place->base), "%s", reg);
			return reg || known ? KYMO_OK : probe_fetch_missing(err, name);
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
	struct ky_probe_location place;
	Dwarf_Die function, unit;
	Dwarf_Addr pc;
	bool known = find_function(file, address, &function, &unit, &pc);
	bool raw = raw_root(argument, &place);
	int ret = KYMO_OK;

	if (known && argument->is_return) {
		place.has_type = ky_probe_type_of(&function, &place.type);
		/* In other registers, or where the caller wanted it. */
		if (place.has_type &&
		    (ky_probe_type_is_struct(&place.type) || ky_probe_type_is_float(&place.type)))
			place.has_type = false;
	} else if (known && exact && argument->root[0] != '%' && argument->root[0] != '$') {
		struct ky_probe_location named = {0};

		ret = find_parameter(file, &function, &unit, pc, address, argument->root, &named,
				     err);
		if (!ret)
			place = named;
		else if (raw && ret == KYMO_E_NOT_FOUND)
			ret = KYMO_OK; /* no parameter is named arg1: take the register */
	} else if (!raw) {
		ret = no_such(err, "argument", argument->root);
		ky_error_hint(
			err, known ? "parameters have their places at the very beginning of a "
				     "function only"
				   : "names need debug information (gcc -g, or Debian's -dbgsym "
				     "package); without, there are arg1, arg2 ..., %%di, %%si ...");
	}
	if (!ret)
		ret = ky_probe_location_step(&place, argument, err);
	return ret < 0 ? ret : ky_probe_location_put(&place, argument, fetch, err);
}
