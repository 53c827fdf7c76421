/* SPDX-License-Identifier: MIT */
#include "analysis/tables/table.h"

#include <math.h>
#include <string.h>

#define MAX_COLUMNS 32

/* Where rows go that memory has no place for. */
static _Thread_local struct ky_cell scratch[MAX_COLUMNS];

const char *ky_cell_class_text(enum ky_cell_class cls)
{
	static const char *const texts[] = {
#define KY_CELL_CLASS_TEXT(name, text) [KY_CELL_##name] = text,
		KY_CELL_CLASS_LIST(KY_CELL_CLASS_TEXT)
#undef KY_CELL_CLASS_TEXT
	};

	return texts[cls];
}

void ky_table_init(struct ky_table *table, const struct ky_table_def *def)
{
	memset(table, 0, sizeof(*table));
	table->def = def;
	table->title = def->title;
	ky_arena_init(&table->arena);
}

void ky_table_fini(struct ky_table *table)
{
	ky_vec_fini(&table->cells);
	ky_arena_fini(&table->arena);
}

struct ky_cell *ky_table_row(struct ky_table *table)
{
	size_t n = table->def->n_columns;
	struct ky_cell *row = scratch;

	if (ky_vec_reserve(&table->cells, n) < 0) {
		table->failed = true;
	} else {
		row = table->cells.data + table->cells.len;
		table->cells.len += n;
	}
	memset(row, 0, n * sizeof(*row));
	return row;
}

int ky_table_status(const struct ky_table *table)
{
	return table->failed ? KYMO_E_MEMORY : 0;
}

size_t ky_table_n_rows(const struct ky_table *table)
{
	return table->cells.len / table->def->n_columns;
}

const struct ky_cell *ky_table_cells(const struct ky_table *table, size_t row)
{
	return table->cells.data + row * table->def->n_columns;
}

static const char *table_copy_of(struct ky_table *table, const char *text)
{
	char *copy = ky_arena_strdup(&table->arena, text);

	table->failed |= !copy;
	return copy ? copy : "";
}

void ky_cell_text(struct ky_table *table, struct ky_cell *cell, const char *text)
{
	*cell = (struct ky_cell){.type = KY_VALUE_TEXT, .text = table_copy_of(table, text)};
}

void ky_cell_process(struct ky_table *table, struct ky_cell *cell, int32_t tid, int32_t pid,
		     const char *comm, const char *host)
{
	struct ky_process *process = ky_arena_new(&table->arena, struct ky_process);

	if (!process) {
		table->failed = true;
		return;
	}
	process->tid = tid;
	process->pid = pid;
	process->comm = table_copy_of(table, comm);
	process->host = host ? table_copy_of(table, host) : NULL;
	*cell = (struct ky_cell){.type = KY_VALUE_PROCESS, .process = process};
}

void ky_cell_tally(struct ky_table *table, struct ky_cell *cell, const struct ky_tally_item *items,
		   size_t n_items)
{
	struct ky_tally *tally = ky_arena_new(&table->arena, struct ky_tally);

	if (tally && n_items)
		tally->items = ky_arena_array(&table->arena, n_items, sizeof(*items));
	if (!tally || (n_items && !tally->items)) {
		table->failed = true;
		return;
	}
	tally->n_items = n_items;
	for (size_t i = 0; i < n_items; i++) {
		tally->items[i].name = table_copy_of(table, items[i].name);
		tally->items[i].count = items[i].count;
	}
	*cell = (struct ky_cell){.type = KY_VALUE_TALLY, .tally = tally};
}

void ky_cell_heat(struct ky_table *table, struct ky_cell *cell, const uint64_t *counts, size_t n,
		  uint64_t most)
{
	struct ky_heat *heat = ky_arena_new(&table->arena, struct ky_heat);

	if (heat)
		*heat = (struct ky_heat){
			n, ky_arena_memdup(&table->arena, counts, n * sizeof(*counts)), most};
	if (!heat || (n && !heat->counts)) {
		table->failed = true;
		return;
	}
	*cell = (struct ky_cell){.type = KY_VALUE_HEAT, .heat = heat};
}

unsigned int ky_heat_level(const struct ky_heat *heat, size_t i)
{
	double count = (double)heat->counts[i];

	if (count < 1)
		return 0;
	if (heat->most <= 1)
		return KY_HEAT_LEVELS - 1;
	return 1 + (unsigned int)((KY_HEAT_LEVELS - 2) * log(count) / log((double)heat->most));
}

void ky_cell_irq(struct ky_table *table, struct ky_cell *cell, const char *kind, int32_t nr,
		 const char *name)
{
	struct ky_irq_id *irq = ky_arena_new(&table->arena, struct ky_irq_id);

	if (!irq) {
		table->failed = true;
		return;
	}
	*irq = (struct ky_irq_id){kind, nr, table_copy_of(table, name)};
	*cell = (struct ky_cell){.type = KY_VALUE_IRQ, .irq = irq};
}

int ky_table_column(const struct ky_table_def *def, const char *name)
{
	for (size_t i = 0; i < def->n_columns; i++) {
		if (strcmp(def->columns[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}
