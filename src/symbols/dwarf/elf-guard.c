/* SPDX-License-Identifier: MIT */
#include "symbols/dwarf/elf-guard.h"

#include <libelf.h>

#include "os/sigbus-guard.h"
#include "symbols/dwarf/libdw.h"

Elf *ky_elf_guards_open(struct ky_elf_guards *guards, int fd)
{
	/* A private mapping, as libdw itself opens files: large ones take no memory. */
	Elf *elf = ky_libdw_load(NULL) < 0 || elf_version(EV_CURRENT) == EV_NONE
			   ? NULL
			   : elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);

	ky_elf_guards_add(guards, elf);
	return elf;
}

void ky_elf_guards_add(struct ky_elf_guards *guards, Elf *elf)
{
	size_t bytes = 0;
	const char *data = elf ? elf_rawfile(elf, &bytes) : NULL;
	const struct ky_elf_range range = {data, bytes};

	if (!data || !bytes || ky_vec_reserve(&guards->list, 1) < 0)
		return;
	if (ky_sigbus_guard_add(data, bytes) == 0)
		(void)ky_vec_push(&guards->list, range);
}

void ky_elf_guards_fini(struct ky_elf_guards *guards)
{
	ky_vec_foreach(&guards->list, range)
		ky_sigbus_guard_remove(range->data, range->bytes);
	ky_vec_fini(&guards->list);
}
