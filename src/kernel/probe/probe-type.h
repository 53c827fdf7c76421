/* SPDX-License-Identifier: MIT */
/*
 * Types in debug information. It is not trusted: chains that have no end are cut.
 *
 * Threads: one at a time per file that the types are of.
 */
#ifndef KY_KERNEL_PROBE_PROBE_TYPE_H
#define KY_KERNEL_PROBE_PROBE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include <dwarf.h>
#include <elfutils/libdw.h>

/* The type of @die, without typedefs and qualifiers. False: void. */
bool ky_probe_type_of(Dwarf_Die *die, Dwarf_Die *type);

/* Attribute @name (DW_AT_*) of @die; @otherwise where it has none that is a number. */
uint64_t ky_probe_type_number(Dwarf_Die *die, unsigned int name, uint64_t otherwise);

bool ky_probe_type_is_char(Dwarf_Die *type);
/* Or a union, or a class. */
bool ky_probe_type_is_struct(Dwarf_Die *type);
/* Or a reference. */
bool ky_probe_type_is_pointer(Dwarf_Die *type);
bool ky_probe_type_is_reference(Dwarf_Die *type);
enum ky_probe_passing {
	KY_PROBE_PASSED_AS_STRUCT,  /* as in C */
	KY_PROBE_PASSED_BY_ADDRESS, /* of a copy */
	KY_PROBE_PASSED_UNKNOWN,
};

/* How objects of class @type are passed: by what it, or what is in it, has in place of the compiler's own copying. */
enum ky_probe_passing ky_probe_type_passing(Dwarf_Die *type);
/* There may be numbers of more than 8 bytes within @type, or members that are aligned to more. */
bool ky_probe_type_has_large(Dwarf_Die *type);
bool ky_probe_type_is_float(Dwarf_Die *type);
bool ky_probe_type_is_signed(Dwarf_Die *type);
/* A pointer to a member function: two words. */
bool ky_probe_type_is_method(Dwarf_Die *type);
/* Where @member lies in its struct, in bytes. False: only a running program knows, as of virtual base classes. */
bool ky_probe_type_offset(Dwarf_Die *member, uint64_t *offset);

/* Find member @name of struct @type, or of what it lends its members from; *offset is where it lies in it, in bytes. */
bool ky_probe_type_member(Dwarf_Die *type, const char *name, Dwarf_Die *member, uint64_t *offset);

#endif
