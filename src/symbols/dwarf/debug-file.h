/* SPDX-License-Identifier: MIT */
/*
 * Debug files that an ELF file names: .gnu_debuglink, .gnu_debugaltlink, NAME.debug.
 *
 * An ELF file of any user may name any path, and libdw would open it: a FIFO keeps who opens it, and some devices act when they are
 * opened. So these functions look for the files, and libdw gets those that are regular.
 *
 * Threads: one at a time per module.
 */
#ifndef KY_SYMBOLS_DWARF_DEBUG_FILE_H
#define KY_SYMBOLS_DWARF_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

#include "symbols/dwarf/elf-guard.h"

/*
 * What is compressed in a file, or the whole file, may unpack to any size. libdw gets this much memory for a file's symbols, and four times of it for
 * its DWARF (os/memory-limit.h).
 */
#define KY_DEBUG_FILE_BYTES (512u << 20)

/* For Dwfl_Callbacks.debuginfo_path, with ky_debug_file_find(). */
extern char *ky_debug_file_path;

/* The function of Dwfl_Callbacks.find_debuginfo, with its arguments and result. */
int ky_debug_file_find(Dwfl_Module *module, const char *file, const char *link, GElf_Word crc,
		       char **found);

/* What the debug information of a file has in common with that of others, in a file of its own (dwz -m). */
struct ky_debug_alt {
	Dwarf *dwarf;
	Elf *elf;
	int fd;
	struct ky_elf_guards guards;
};

/*
 * dwfl_module_getdwarf(), with the file that .gnu_debugaltlink names. *alt: zeros at first; the caller ends it after dwfl_end(). No other function of
 * libdw that reads DWARF may be called before.
 */
Dwarf *ky_debug_file_dwarf(Dwfl_Module *module, struct ky_debug_alt *alt, Dwarf_Addr *bias);
void ky_debug_alt_fini(struct ky_debug_alt *alt);

#endif
