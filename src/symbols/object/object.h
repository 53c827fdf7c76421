/* SPDX-License-Identifier: MIT */
/*
 * A program, library or other ELF file with code, as some process has mapped it.
 * Threads: one at a time per struct.
 */
#ifndef KY_SYMBOLS_OBJECT_H
#define KY_SYMBOLS_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdwfl.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "os/elf-file.h"
#include "symbols/dwarf/debug-file.h"
#include "symbols/dwarf/elf-guard.h"
#include "symbols/tables/symbol-table.h"

struct ky_object_search;
struct ky_dwarf_units;
struct ky_kdi;

/* Where a part of the file is in memory. */
struct ky_object_segment {
	uint64_t offset, address, file_bytes;
};

enum ky_object_state {
	KY_OBJECT_NEW,	   /* nobody has looked for it */
	KY_OBJECT_FOUND,   /* the segments are there */
	KY_OBJECT_SYMBOLS, /* the table and the segments are there */
	KY_OBJECT_NONE,	   /* there is no such file, or another one */
};

struct ky_object {
	char *path;
	char *also; /* a second path to look at, such as /proc/PID/root/...; NULL: none */
	/* A process of this machine that has it mapped there, perhaps deleted, or where no path leads; 0: none. */
	int64_t mapped_by;
	uint64_t mapped_begin, mapped_end;
	uint8_t build_id[KY_ELF_BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: not known; any file at the path will do */
	enum ky_object_state state;
	KY_VEC(struct ky_object_segment) segments;
	uint64_t first_page;  /* the address of the first loaded page */
	uint64_t kernel_text; /* of a kernel's image: where it begins; else 0 */
	struct ky_symbol_table table;
	/* Of the table only what these addresses need, with the sizes of the functions; NULL: all. Borrowed during ky_object_load(). */
	const struct ky_wanted *wanted;
	struct ky_kdi *kdi; /* instead of a table, and of lines; or NULL */
	/* While it is open, for lines: */
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct ky_elf_guards guards;
	struct ky_debug_alt alt;
	const struct ky_object_search
		*search; /* what it was opened with; borrowed until it closes */
	GElf_Addr bias;
	struct ky_dwarf_units *units;
	bool has_no_lines;
	uint64_t used; /* when, for whom is closed first */
};

struct ky_object_search {
	const char *const *dirs;
	size_t n_dirs;
	bool only_dirs;
	bool is_here; /* this kernel's vdso is the processes' */
	bool keep_open;
};

void ky_object_fini(struct ky_object *object);
/* Finds the file and reads its segments, if nobody has. False: the file was not found. It stays open. */
bool ky_object_find(struct ky_object *object, const struct ky_object_search *search);
/* Finds the file and reads its table, if nobody has. False: it has none. */
bool ky_object_load(struct ky_object *object, const struct ky_object_search *search);
/* Opens the file again for lines; false: it cannot. */
bool ky_object_open(struct ky_object *object, const struct ky_object_search *search);
/* Closes what ky_object_open() has opened; the table stays. */
void ky_object_close(struct ky_object *object);
/* An offset in the file to an address of the file. False: no segment has it. */
bool ky_object_address(const struct ky_object *object, uint64_t offset, uint64_t *address);

#endif
