/* SPDX-License-Identifier: MIT */
/*
 * Lines and inlined functions of a file, from its DWARF.
 *
 * The tree of a unit's functions is read when the first address of the unit is asked for.
 * Threads: one at a time per object.
 */
#ifndef KY_SYMBOLS_DWARF_UNITS_H
#define KY_SYMBOLS_DWARF_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdwfl.h>

#include "symbols/dwarf/debug-file.h"
#include "symbols/dwarf/elf-guard.h"

struct ky_dwarf_units;

/* A function at one place; texts are the file's. */
struct ky_dwarf_frame {
	const char *name; /* mangled where it is; NULL: not known */
	const char *file;
	uint32_t line;
	uint64_t begin; /* of the function that is not inlined; 0: not known */
};

/* @alt lives longer. NULL: the module has no debug information, or memory is out. */
struct ky_dwarf_units *ky_dwarf_units_new(Dwfl_Module *module, struct ky_debug_alt *alt);
void ky_dwarf_units_free(struct ky_dwarf_units *units);

/* The frames at @address, which the module has (with its bias); the innermost first. At most @max. */
size_t ky_dwarf_units_find(struct ky_dwarf_units *units, uint64_t address,
			   struct ky_dwarf_frame *frames, size_t max);

/* A function that is inlined in another one; one of its ranges, as the debug information has it. */
struct ky_dwarf_inlined {
	uint64_t begin, end;
	const char *name, *file; /* of the call; NULL: not known */
	uint32_t line, depth;	 /* 1: directly in a function */
};

/*
 * Passes those of the unit whose entry is at @die to @take, outer ones before those in them, until it returns an error, which this
 * returns. Functions that have no code in a range that @wants says are left out.
 */
int ky_dwarf_unit_inlined(Dwarf *dwarf, Dwarf_Off die,
			  bool (*wants)(void *data, uint64_t begin, uint64_t end),
			  int (*take)(void *data, const struct ky_dwarf_inlined *inlined),
			  void *data);

/* Guards the file of @dwarf, if it is another one than that of @module. */
void ky_dwarf_guard(Dwfl_Module *module, Dwarf *dwarf, struct ky_elf_guards *guards);

#endif
