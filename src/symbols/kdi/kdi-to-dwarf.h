/* SPDX-License-Identifier: MIT */
/*
 * Kymo's debug information as DWARF, for libdw: functions with their parameters, and all types.
 *
 * Threads: any.
 */
#ifndef KY_SYMBOLS_KDI_TO_DWARF_H
#define KY_SYMBOLS_KDI_TO_DWARF_H

#include "symbols/kdi/kdi.h"

/* Of the file that the debug information is of: its ELF header's type, and the part with the lowest address. */
struct ky_kdi_image {
	uint16_t type;
	uint64_t address, bytes;	 /* of all parts */
	uint64_t alignment, first_bytes; /* of the first part, by which libdw compares files */
};

/* Appends an ELF file with DWARF 4. 0, KYMO_E_MEMORY, KYMO_E_LIMIT: it would be too large. */
int ky_kdi_to_dwarf(const struct ky_kdi *kdi, const struct ky_kdi_image *image,
		    struct ky_strbuf *out);

/* A file in memory with the DWARF for the program or library @path, from ky_kdi_open_id(). Its descriptor; -1: no such file. */
int ky_kdi_debug_file(const char *path, const char *const *dirs, size_t n_dirs);

#endif
