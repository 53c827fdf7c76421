/* SPDX-License-Identifier: MIT */
#include "symbols/dwarf/dwarf-units.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "symbols/dwarf/elf-guard.h"

#define DEPTH_MAX     128
#define FUNCTIONS_MAX (4u << 20) /* of one unit, with inlined ones */

struct range {
	uint64_t begin, end; /* as the file has them */
	uint32_t index;	     /* of a unit; of a function in its unit */
};

KY_VEC_TYPE(ranges, struct range);

/* A function, or one that is inlined in the function before it. */
struct function {
	Dwarf_Off die;
	uint32_t first_range, n_ranges; /* in the unit's inner ranges */
	uint32_t end;			/* behind the last one inside of it */
	uint32_t call_line, call_file;
};

struct unit {
	Dwarf_Off die;
	bool is_read;
	KY_VEC(struct function) functions; /* outer ones before those inside of them */
	struct ranges outer;		   /* of functions that are not inlined, sorted */
	struct ranges inner;		   /* of all, by function */
};

struct ky_dwarf_units {
	Dwarf *dwarf;
	GElf_Addr bias;
	struct ky_elf_guards guards;
	KY_VEC(struct unit) units;
	struct ranges ranges; /* sorted */
};

/* ---- ranges ----------------------------------------------------------------------------- */

static int dwarf_units_by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void sort(struct ranges *ranges)
{
	if (ranges->len)
		qsort(ranges->data, ranges->len, sizeof(*ranges->data), dwarf_units_by_begin);
}

/* The range with @address, or NULL. */
static const struct range *dwarf_units_find(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->data[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Code that was merged, or dropped, may give ranges that overlap. */
	for (int i = 0; low && i < 8; i++, low--)
		if (address < ranges->data[low - 1].end)
			return &ranges->data[low - 1];
	return NULL;
}

/* The addresses of @die, each with @index. Code that was dropped is at 0. */
static int dwarf_units_add_ranges(struct ranges *ranges, Dwarf_Die *die, uint32_t index)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0)
		if (begin < end && begin &&
		    ky_vec_push(ranges, (struct range){begin, end, index}) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

/* ---- units ------------------------------------------------------------------------------ */

static int add_unit(struct ky_dwarf_units *units, Dwarf_Die *die)
{
	struct unit unit = {.die = dwarf_dieoffset(die)};

	if (dwarf_tag(die) != DW_TAG_compile_unit)
		return KYMO_OK;
	if (ky_vec_push(&units->units, unit) < 0)
		return KYMO_E_MEMORY;
	return dwarf_units_add_ranges(&units->ranges, die, (uint32_t)(units->units.len - 1));
}

void ky_dwarf_guard(Dwfl_Module *module, Dwarf *dwarf, struct ky_elf_guards *guards)
{
	Elf *elf = dwarf_getelf(dwarf);
	GElf_Addr bias;

	/* What opened the file itself guards it. */
	if (elf != dwfl_module_getelf(module, &bias))
		ky_elf_guards_add(guards, elf);
}

struct ky_dwarf_units *ky_dwarf_units_new(Dwfl_Module *module, struct ky_debug_alt *alt)
{
	struct ky_dwarf_units *units = calloc(1, sizeof(*units));
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int ret = KYMO_OK;

	if (!units)
		return NULL;
	units->dwarf = ky_debug_file_dwarf(module, alt, &units->bias);
	if (units->dwarf)
		ky_dwarf_guard(module, units->dwarf, &units->guards);
	while (units->dwarf && !ret &&
	       dwarf_get_units(units->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			ret = add_unit(units, &die);
	if (ret || !units->units.len) {
		ky_dwarf_units_free(units);
		return NULL;
	}
	sort(&units->ranges);
	return units;
}

static void unit_fini(struct unit *unit)
{
	ky_vec_fini(&unit->functions);
	ky_vec_fini(&unit->outer);
	ky_vec_fini(&unit->inner);
}

void ky_dwarf_units_free(struct ky_dwarf_units *units)
{
	if (!units)
		return;
	ky_vec_foreach(&units->units, unit)
		unit_fini(unit);
	ky_vec_fini(&units->units);
	ky_vec_fini(&units->ranges);
	ky_elf_guards_fini(&units->guards);
	free(units);
}

/* ---- functions of a unit ---------------------------------------------------------------- */

static uint32_t number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static int dwarf_units_add_function(struct unit *unit, Dwarf_Die *die)
{
	uint32_t index = (uint32_t)unit->functions.len;
	struct function function = {
		.die = dwarf_dieoffset(die),
		.first_range = (uint32_t)unit->inner.len,
		.end = index + 1,
	};
	bool is_inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	int ret = dwarf_units_add_ranges(&unit->inner, die, index);

	function.n_ranges = (uint32_t)unit->inner.len - function.first_range;
	if (ret || !function.n_ranges || index >= FUNCTIONS_MAX)
		return ret;
	if (is_inlined) {
		function.call_line = number(die, DW_AT_call_line);
		function.call_file = number(die, DW_AT_call_file);
	}
	for (uint32_t i = 0; !is_inlined && !ret && i < function.n_ranges; i++)
		ret = ky_vec_push(&unit->outer, unit->inner.data[function.first_range + i]);
	return ret ? ret : ky_vec_push(&unit->functions, function);
}

/* What may have functions inside. */
static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_module:
		return true;
	default:
		return false;
	}
}

/* Which functions are wanted, by their ranges; wants NULL: all. */
struct choice {
	bool (*wants)(void *data, uint64_t begin, uint64_t end);
	void *data;
};

/* The path from the unit to the entry at hand. */
struct walk {
	Dwarf_Die dies[DEPTH_MAX];
	uint32_t functions[DEPTH_MAX]; /* UINT32_MAX: no function */
	int depth;
	const struct choice *choice;
	bool is_skipped; /* what is below the entry */
};

static bool dwarf_units_is_wanted(const struct choice *choice, const struct unit *unit,
				  uint32_t index)
{
	const struct function *function = &unit->functions.data[index];
	const struct range *range = &unit->inner.data[function->first_range];

	for (uint32_t i = 0; choice->wants && i < function->n_ranges; i++)
		if (choice->wants(choice->data, range[i].begin, range[i].end))
			return true;
	return !choice->wants;
}

static int visit(struct unit *unit, struct walk *walk)
{
	Dwarf_Die *die = &walk->dies[walk->depth];
	int tag = dwarf_tag(die), ret = KYMO_OK;
	uint32_t before = (uint32_t)unit->functions.len;

	if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
		ret = dwarf_units_add_function(unit, die);
	walk->functions[walk->depth] = unit->functions.len > before ? before : UINT32_MAX;
	walk->is_skipped =
		unit->functions.len > before && !dwarf_units_is_wanted(walk->choice, unit, before);
	return ret;
}

static void leave(struct unit *unit, const struct walk *walk)
{
	uint32_t function = walk->functions[walk->depth];

	if (function != UINT32_MAX)
		unit->functions.data[function].end = (uint32_t)unit->functions.len;
}

/* To the next entry of the tree. False: the tree ends. */
static bool dwarf_units_advance(struct unit *unit, struct walk *walk)
{
	Dwarf_Die *die = &walk->dies[walk->depth];

	if (walk->depth + 1 < DEPTH_MAX && !walk->is_skipped && is_scope(dwarf_tag(die)) &&
	    dwarf_child(die, die + 1) == 0) {
		walk->depth++;
		return true;
	}
	for (; walk->depth; walk->depth--) {
		Dwarf_Off before;

		leave(unit, walk);
		die = &walk->dies[walk->depth];
		before = dwarf_dieoffset(die);
		/* A damaged file may lead back. */
		if (dwarf_siblingof(die, die) == 0)
			return dwarf_dieoffset(die) > before;
	}
	return false;
}

static int read_unit(struct ky_dwarf_units *units, struct unit *unit, const struct choice *choice)
{
	struct walk *walk;
	int ret = KYMO_OK;
	bool is_more;

	if (unit->is_read)
		return KYMO_OK;
	unit->is_read = true;
	walk = calloc(1, sizeof(*walk));
	if (!walk)
		return KYMO_E_MEMORY;
	walk->depth = 1;
	walk->choice = choice;
	is_more = dwarf_offdie(units->dwarf, unit->die, &walk->dies[0]) &&
		  dwarf_child(&walk->dies[0], &walk->dies[1]) == 0;
	while (is_more && !ret) {
		ret = visit(unit, walk);
		is_more = dwarf_units_advance(unit, walk);
	}
	free(walk);
	sort(&unit->outer);
	return ret;
}

/* ---- frames ----------------------------------------------------------------------------- */

static bool covers(const struct unit *unit, const struct function *function, uint64_t address)
{
	const struct range *range = &unit->inner.data[function->first_range];

	for (uint32_t i = 0; i < function->n_ranges; i++)
		if (address >= range[i].begin && address < range[i].end)
			return true;
	return false;
}

/* The functions with @address, outer ones first. */
static size_t chain(const struct unit *unit, uint64_t address, uint32_t *functions, size_t max)
{
	const struct range *outer = dwarf_units_find(&unit->outer, address);
	size_t n = 0;
	uint32_t at, end;

	if (!outer)
		return 0;
	functions[n++] = outer->index;
	end = unit->functions.data[outer->index].end;
	for (at = outer->index + 1; at < end && n < max;) {
		const struct function *function = &unit->functions.data[at];

		if (covers(unit, function, address)) {
			functions[n++] = at++;
			end = function->end;
		} else {
			at = function->end;
		}
	}
	return n;
}

static const char *name_of(Dwarf_Die *die)
{
	static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name,
					     DW_AT_name};
	Dwarf_Attribute attribute;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name =
			dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));

		if (name)
			return name;
	}
	return NULL;
}

static void set_line(struct ky_dwarf_frame *frame, Dwarf_Die *cu, uint64_t address)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, address);
	int number_of = 0;

	if (!line)
		return;
	frame->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number_of) == 0 && number_of > 0)
		frame->line = (uint32_t)number_of;
}

static void set_call(struct ky_dwarf_frame *frame, Dwarf_Die *cu, const struct function *inlined)
{
	Dwarf_Files *files;
	size_t n;

	frame->line = inlined->call_line;
	if (dwarf_getsrcfiles(cu, &files, &n) == 0 && inlined->call_file < n)
		frame->file = dwarf_filesrc(files, inlined->call_file, NULL, NULL);
}

static size_t unit_frames(struct ky_dwarf_units *units, struct unit *unit, uint64_t address,
			  struct ky_dwarf_frame *frames, size_t max)
{
	uint32_t functions[64];
	size_t n = chain(unit, address, functions, max < 64 ? max : 64);
	Dwarf_Die cu, die;

	if (!dwarf_offdie(units->dwarf, unit->die, &cu))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct function *function = &unit->functions.data[functions[n - 1 - i]];
		struct ky_dwarf_frame *frame = &frames[i];

		*frame = (struct ky_dwarf_frame){0};
		if (dwarf_offdie(units->dwarf, function->die, &die))
			frame->name = name_of(&die);
		if (i)
			set_call(frame, &cu, &unit->functions.data[functions[n - i]]);
		else
			set_line(frame, &cu, address);
		if (i == n - 1)
			frame->begin = unit->inner.data[function->first_range].begin;
	}
	if (n)
		return n;
	/* Assembler has lines, and no functions. */
	frames[0] = (struct ky_dwarf_frame){0};
	set_line(&frames[0], &cu, address);
	return frames[0].file ? 1 : 0;
}

size_t ky_dwarf_units_find(struct ky_dwarf_units *units, uint64_t address,
			   struct ky_dwarf_frame *frames, size_t max)
{
	const struct range *range;

	address -= units->bias;
	range = dwarf_units_find(&units->ranges, address);
	if (!range || !max ||
	    read_unit(units, &units->units.data[range->index], &(struct choice){0}) < 0)
		return 0;
	return unit_frames(units, &units->units.data[range->index], address, frames, max);
}

/* ---- all inlined functions -------------------------------------------------------------- */

struct each {
	int (*take)(void *data, const struct ky_dwarf_inlined *inlined);
	void *data;
	Dwarf_Die cu;
};

static int pass_function(const struct ky_dwarf_units *units, const struct unit *unit,
			 const struct function *function, uint32_t depth, struct each *each)
{
	struct ky_dwarf_inlined inlined = {.depth = depth};
	struct ky_dwarf_frame call = {0};
	Dwarf_Die die;
	int ret = KYMO_OK;

	if (dwarf_offdie(units->dwarf, function->die, &die))
		inlined.name = name_of(&die);
	set_call(&call, &each->cu, function);
	inlined.file = call.file;
	inlined.line = call.line;
	for (uint32_t i = 0; !ret && i < function->n_ranges; i++) {
		inlined.begin = unit->inner.data[function->first_range + i].begin;
		inlined.end = unit->inner.data[function->first_range + i].end;
		ret = each->take(each->data, &inlined);
	}
	return ret;
}

/* The functions of a unit stand before those that are inlined in them. */
static int pass_unit(const struct ky_dwarf_units *units, const struct unit *unit, struct each *each)
{
	uint32_t ends[DEPTH_MAX], depth = 0;
	int ret = KYMO_OK;

	if (!dwarf_offdie(units->dwarf, unit->die, &each->cu))
		return KYMO_OK;
	for (uint32_t i = 0; !ret && i < unit->functions.len; i++) {
		const struct function *function = &unit->functions.data[i];

		while (depth && i >= ends[depth - 1])
			depth--;
		if (depth)
			ret = pass_function(units, unit, function, depth, each);
		if (depth < DEPTH_MAX)
			ends[depth++] = function->end;
	}
	return ret;
}

int ky_dwarf_unit_inlined(Dwarf *dwarf, Dwarf_Off die,
			  bool (*wants)(void *data, uint64_t begin, uint64_t end),
			  int (*take)(void *data, const struct ky_dwarf_inlined *inlined),
			  void *data)
{
	struct ky_dwarf_units units = {.dwarf = dwarf};
	struct unit unit = {.die = die};
	struct each each = {.take = take, .data = data};
	int ret = read_unit(&units, &unit, &(struct choice){wants, data});

	if (!ret)
		ret = pass_unit(&units, &unit, &each);
	unit_fini(&unit);
	return ret;
}
