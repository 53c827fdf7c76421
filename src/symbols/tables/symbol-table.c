/* SPDX-License-Identifier: MIT */
#include "symbols/tables/symbol-table.h"

#include <string.h>

/* A symbol may lie inside of another one: how many are looked at for one that reaches the address. */
#define ENCLOSING_MAX 16

bool ky_wanted_has(const struct ky_wanted *wanted, uint64_t begin, uint64_t end)
{
	size_t low = 0, high = wanted->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (wanted->addresses[middle] < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low < wanted->n && wanted->addresses[low] < end;
}

void ky_symbol_table_fini(struct ky_symbol_table *table)
{
	ky_vec_fini(&table->symbols);
	ky_vec_fini(&table->names);
}

int ky_symbol_table_add(struct ky_symbol_table *table, const struct ky_symbol *symbol,
			const char *name, size_t len)
{
	struct ky_symbol copy = *symbol;

	if (table->symbols.len >= KY_SYMBOL_TABLE_MAX ||
	    len + 1 > KY_SYMBOL_TABLE_NAMES_MAX - table->names.len)
		return KYMO_E_LIMIT;
	if (ky_vec_reserve(&table->names, len + 1) < 0)
		return KYMO_E_MEMORY;
	copy.name = (uint32_t)table->names.len;
	memcpy(table->names.data + copy.name, name, len);
	table->names.data[copy.name + len] = '\0';
	table->names.len += len + 1;
	return ky_vec_push(&table->symbols, copy);
}

static size_t symbol_table_underscores(const char *name)
{
	return strspn(name, "_");
}

static int symbol_table_by_name(const char *left, const char *right)
{
	size_t n = symbol_table_underscores(left), m = symbol_table_underscores(right);

	if (n != m)
		return n < m ? -1 : 1;
	n = strlen(left);
	m = strlen(right);
	if (n != m)
		return n > m ? -1 : 1;
	return strcmp(left, right);
}

static int by_address(const void *a, const void *b, void *data)
{
	const struct ky_symbol *x = a, *y = b;
	const struct ky_symbol_table *table = data;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (!x->bytes != !y->bytes)
		return x->bytes ? -1 : 1;
	if ((x->kind == KY_SYMBOL_WEAK) != (y->kind == KY_SYMBOL_WEAK))
		return x->kind == KY_SYMBOL_WEAK ? 1 : -1;
	if ((x->kind == KY_SYMBOL_END) != (y->kind == KY_SYMBOL_END))
		return x->kind == KY_SYMBOL_END ? 1 : -1;
	/* Names are in the order in which they were added. */
	if (table->keeps_first)
		return x->name < y->name ? -1 : x->name > y->name;
	if (x->kind != y->kind)
		return x->kind < y->kind ? 1 : -1;
	return symbol_table_by_name(table->names.data + x->name, table->names.data + y->name);
}

void ky_symbol_table_finish(struct ky_symbol_table *table)
{
	bool is_sorted = true;
	size_t kept = 0;

	/* The kernel's list is in order already. */
	for (size_t i = 1; i < table->symbols.len && is_sorted; i++)
		is_sorted = by_address(&table->symbols.data[i - 1], &table->symbols.data[i],
				       table) <= 0;
	if (!is_sorted)
		qsort_r(table->symbols.data, table->symbols.len, sizeof(*table->symbols.data),
			by_address, table);
	ky_vec_foreach(&table->symbols, symbol) {
		if (kept && table->symbols.data[kept - 1].address == symbol->address)
			continue;
		table->symbols.data[kept++] = *symbol;
	}
	table->symbols.len = kept;
}

const struct ky_symbol *ky_symbol_table_find(const struct ky_symbol_table *table, uint64_t address)
{
	size_t low = 0, high = table->symbols.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->symbols.data[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (int i = 0; low && i < ENCLOSING_MAX; i++, low--) {
		const struct ky_symbol *symbol = &table->symbols.data[low - 1];

		if (symbol->kind == KY_SYMBOL_END)
			return NULL;
		if (symbol->bytes ? address - symbol->address < symbol->bytes : i == 0)
			return symbol;
	}
	return NULL;
}
