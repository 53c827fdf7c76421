/* SPDX-License-Identifier: MIT */
/*
 * Makes debug information of what exists: of a file's symbols and DWARF, or of a running kernel's symbols and BTF.
 * Threads: any; one struct ky_kdi_info at a time.
 */
#ifndef KY_SYMBOLS_KDI_MAKE_H
#define KY_SYMBOLS_KDI_MAKE_H

#include <elfutils/libdwfl.h>

#include "symbols/kdi/kdi-info.h"
#include "symbols/object/object.h"

struct ky_kdi_options {
	bool want_lines; /* and inlined functions */
	bool want_types; /* signatures, and all types */
	bool no_members; /* signatures only */
	/* Of functions only those for which this is true; NULL: all. */
	bool (*wants)(void *data, uint64_t begin, uint64_t end);
	void *data;
};

/* Fills @info from the file @object, which is opened for that. 0, KYMO_E_NOT_FOUND: there is no such file, or it has no symbols; KYMO_E_MEMORY. */
int ky_kdi_make_object(struct ky_kdi_info *info, struct ky_object *object,
		       const struct ky_object_search *search, const struct ky_kdi_options *options,
		       struct kymo_error *err);

/*
 * Fills @info from a list of symbols and BTF. @module: its name, NULL: the kernel; addresses count from _text, or from the
 * module's first symbol. @btf, @base: BTF, and that of the kernel for a module's; NULL: none.
 */
struct ky_kdi_kernel {
	const char *kallsyms, *module;
	bool no_members; /* signatures only */
	const void *btf, *base;
	size_t btf_bytes, base_bytes;
};

/* 0, KYMO_E_NOT_FOUND: no such module, or its addresses are hidden; KYMO_E_FORMAT, KYMO_E_MEMORY. */
int ky_kdi_make_kernel(struct ky_kdi_info *info, const struct ky_kdi_kernel *kernel,
		       struct kymo_error *err);

/* kdi-btf.c: the types of @btf; signatures of the functions by name. 0, KYMO_E_FORMAT, KYMO_E_LIMIT or KYMO_E_MEMORY. */
int ky_kdi_read_btf(struct ky_kdi_info *info, const void *btf, size_t bytes, const void *base,
		    size_t base_bytes);
/* kdi-dwarf.c: the same of DWARF; functions by address less @bias. */
int ky_kdi_read_dwarf(struct ky_kdi_info *info, Dwarf *dwarf, GElf_Addr bias);
/* kdi-lines.c: lines and inlined functions of the functions of @info. */
int ky_kdi_read_lines(struct ky_kdi_info *info, struct ky_object *object);

#endif
