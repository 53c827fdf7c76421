/* SPDX-License-Identifier: MIT */
/*
 * Files that libelf has mapped, and that their owners may truncate meanwhile: the missing part reads as zeros (os/sigbus-guard.h),
 * which libdw takes for damage.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_SYMBOLS_DWARF_ELF_GUARD_H
#define KY_SYMBOLS_DWARF_ELF_GUARD_H

#include <stddef.h>

#include <elfutils/libdwfl.h>

#include "base/vec.h"

struct ky_elf_guards {
	KY_VEC(struct ky_elf_range {
		const void *data;
		size_t bytes;
	})
	list;
};

/* Opens the file of @fd. NULL: it is no ELF file, or out of memory. The caller ends the result after ky_elf_guards_fini(). */
Elf *ky_elf_guards_open(struct ky_elf_guards *guards, int fd);
/* The same for a file that libelf has open. NULL is allowed. */
void ky_elf_guards_add(struct ky_elf_guards *guards, Elf *elf);
/* The guards end; before the files are closed. */
void ky_elf_guards_fini(struct ky_elf_guards *guards);

#endif
