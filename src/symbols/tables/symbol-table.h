/* SPDX-License-Identifier: MIT */
/*
 * A table of functions by address.
 *
 * Of several symbols at one address, the table keeps the one that perf would show: one with a size before one without, strong before
 * weak, global before local, with fewer underscores at its begin, the longer one.
 * Threads: one at a time while it is filled; then any.
 */
#ifndef KY_SYMBOLS_SYMBOL_TABLE_H
#define KY_SYMBOLS_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define KY_SYMBOL_TABLE_MAX	  (8u << 20)
#define KY_SYMBOL_TABLE_NAMES_MAX (512u << 20)

enum ky_symbol_kind {
	KY_SYMBOL_LOCAL,
	KY_SYMBOL_WEAK,
	KY_SYMBOL_GLOBAL,
	KY_SYMBOL_END, /* no function: nothing before it reaches beyond it */
};

struct ky_symbol {
	uint64_t address;
	uint32_t bytes; /* 0: up to the next one */
	uint32_t name;	/* in names */
	uint32_t group; /* the caller's, such as a module */
	uint8_t kind;
};

struct ky_symbol_table {
	KY_VEC(struct ky_symbol) symbols;
	struct {
		char *data;
		size_t len, cap;
	} names;
	/* Of several symbols at one address the first that was added is kept, as the kernel does when it prints an address; but a strong one before a weak one. */
	bool keeps_first;
};

/* Sorted addresses, of which the functions are wanted. */
struct ky_wanted {
	uint64_t *addresses;
	size_t n;
};

/* Is one of them in [@begin, @end)? */
bool ky_wanted_has(const struct ky_wanted *wanted, uint64_t begin, uint64_t end);

void ky_symbol_table_fini(struct ky_symbol_table *table);
/* Copies @name. 0, KYMO_E_LIMIT or KYMO_E_MEMORY. */
int ky_symbol_table_add(struct ky_symbol_table *table, const struct ky_symbol *symbol,
			const char *name, size_t len);
/* Sorts; to call once, before the first look. */
void ky_symbol_table_finish(struct ky_symbol_table *table);
/* The function at @address, or NULL. */
const struct ky_symbol *ky_symbol_table_find(const struct ky_symbol_table *table, uint64_t address);
static inline const char *ky_symbol_name(const struct ky_symbol_table *table,
					 const struct ky_symbol *symbol)
{
	return table->names.data + symbol->name;
}

#endif
