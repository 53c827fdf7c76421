/* SPDX-License-Identifier: MIT */
/*
 * The kernel's functions at single addresses, by a BPF program that has the kernel print them. The kernel takes 20 ms for the list
 * of all its functions (kernel-table.h), and 3 us for one. Names are those of the list.
 * Threads: one at a time.
 */
#ifndef KY_SYMBOLS_KERNEL_LOOKUP_H
#define KY_SYMBOLS_KERNEL_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"

/* More of them are cheaper by the list. */
#define KY_KERNEL_LOOKUP_MAX 4096

struct ky_kernel_function {
	uint64_t begin, end;
	const char *name;
	const char *module; /* "[nf_tables]"; "[kernel]" */
};

struct ky_kernel_lookup {
	int program, data, format; /* descriptors; < 0: none */
	struct ky_kernel_text *text;
	KY_VEC(struct ky_kernel_function) functions; /* found so far, by address */
	struct ky_arena texts;
};

/* False: this user may not, or the kernel is older than 5.13. */
bool ky_kernel_lookup_open(struct ky_kernel_lookup *lookup);
void ky_kernel_lookup_fini(struct ky_kernel_lookup *lookup);
/* 1; 0: there is no function; KYMO_E_LIMIT: too many were found already; KYMO_E_MEMORY. */
int ky_kernel_lookup_find(struct ky_kernel_lookup *lookup, uint64_t address,
			  const struct ky_kernel_function **function);

#endif
