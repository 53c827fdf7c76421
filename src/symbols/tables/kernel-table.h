/* SPDX-License-Identifier: MIT */
/*
 * The kernel's functions, with those of modules and BPF programs, from a file in the format of /proc/kallsyms.
 * Threads: as symbol-table.h.
 */
#ifndef KY_SYMBOLS_KERNEL_TABLE_H
#define KY_SYMBOLS_KERNEL_TABLE_H

#include "base/vec.h"
#include "symbols/tables/symbol-table.h"

struct ky_kernel_table {
	struct ky_symbol_table table;
	/* By the symbols' group, from 1 on: "[nf_tables]". 0 is the kernel itself. */
	KY_VEC(char *) modules;
	const char *problem; /* NULL: none */
	uint64_t text;	     /* the address of _text, where the kernel begins; 0: not known */
};

/* 0 or KYMO_E_MEMORY; a file that cannot be read, or hides addresses, leaves an empty table with a problem. */
int ky_kernel_table_read(struct ky_kernel_table *kernel, const char *path);
void ky_kernel_table_fini(struct ky_kernel_table *kernel);
/* "[kernel]" or the module's name in brackets. */
const char *ky_kernel_table_module(const struct ky_kernel_table *kernel,
				   const struct ky_symbol *symbol);

#endif
