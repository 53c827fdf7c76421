/* SPDX-License-Identifier: MIT */
/*
 * A program or library in which probes are put: where its functions are, and what they are given.
 *
 * Reading ELF and DWARF is libdw's (elfutils); it also finds debug information that is kept
 * apart (by build id, by debug link, compressed, or shared between packages). The file is not trusted.
 *
 * Threads: one at a time per file.
 */
#ifndef KY_KERNEL_PROBE_PROBE_FILE_H
#define KY_KERNEL_PROBE_PROBE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdwfl.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "kernel/probe/probe-spec.h"
#include "symbols/dwarf/debug-file.h"
#include "symbols/dwarf/elf-guard.h"

struct ky_probe_file {
	char path[4096];
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf; /* of the file itself */
	struct ky_elf_guards guards;
	struct ky_debug_alt *alt;
	GElf_Addr bias; /* addresses of the module are those of the file, plus this */
};

/*
 * Find the file that people call @name: a path; else a library ("libc.so.6"); else a program in $PATH.
 * @path has 4096 bytes. 0 or KYMO_E_NOT_FOUND.
 */
int ky_probe_file_find(const char *name, char *path, struct kymo_error *err);
/* The library whose name begins with lib@stem or @stem, with any version; "libc" -> libc.so.6. */
int ky_probe_library_find(const char *stem, char *path);

/* Where to look for BUILD-ID.kdi files, before KY_KDI_PLACE; borrowed. Before files are opened. */
void ky_probe_file_set_dirs(const char *const *dirs, size_t n);
/* 0, KYMO_E_FORMAT (no ELF file, or of another machine), KYMO_E_IO, KYMO_E_MEMORY. */
int ky_probe_file_open(struct ky_probe_file *file, const char *path, struct kymo_error *err);
void ky_probe_file_close(struct ky_probe_file *file);

/* An address as the file says it -> its offset in the file; false: it is not in the file. */
bool ky_probe_file_offset(const struct ky_probe_file *file, uint64_t address, uint64_t *offset);

/* The debug information, or NULL; *bias as of dwfl_module_getdwarf(). */
Dwarf *ky_probe_file_dwarf(const struct ky_probe_file *file, Dwarf_Addr *bias);
/* Does debug information say that a line begins there? Then an instruction does. */
bool ky_probe_file_is_line(const struct ky_probe_file *file, uint64_t address);

KY_VEC_TYPE(ky_probe_addresses, uint64_t);

/*
 * Where @function is: several places for static functions of one name.
 * 0; KYMO_E_NOT_FOUND with similar names; KYMO_E_UNSUPPORTED: it is chosen at run time (ifunc); KYMO_E_MEMORY.
 */
int ky_probe_file_function(const struct ky_probe_file *file, const char *function,
			   struct ky_probe_addresses *addresses, struct kymo_error *err);
/* Borrowed from the file. */
struct ky_probe_symbol {
	const char *name;
	uint64_t address;
};

KY_VEC_TYPE(ky_probe_symbols, struct ky_probe_symbol);

/*
 * What the compiler has made of @function for some of its callers, but for what is at @addresses: "f.constprop.0".
 * 0 or KYMO_E_MEMORY.
 */
int ky_probe_file_clones(const struct ky_probe_file *file, const char *function,
			 const struct ky_probe_addresses *addresses,
			 struct ky_probe_symbols *symbols);
/* The address of any symbol. */
bool ky_probe_file_symbol(const struct ky_probe_file *file, const char *name, size_t len,
			  uint64_t *address);

/* In how many places of its unit the function at @address is inlined; 0, too, where no debug information tells. */
unsigned int ky_probe_file_inlined(const struct ky_probe_file *file, uint64_t address);

/*
 * How the kernel fetches @argument at the function that begins at @address: "+8(%di):s32", appended to
 * @fetch. @exact: the probe is at the function's very beginning.
 * 0; KYMO_E_NOT_FOUND: there is no such thing, KYMO_E_UNSUPPORTED: it cannot be fetched.
 */
int ky_probe_argument_fetch(const struct ky_probe_file *file, uint64_t address, bool exact,
			    const struct ky_probe_argument *argument, struct ky_strbuf *fetch,
			    struct kymo_error *err);

/* Without a file: registers, the stack and the result. */
int ky_probe_raw_fetch(const struct ky_probe_argument *argument, struct ky_strbuf *fetch,
		       struct kymo_error *err);

#endif
