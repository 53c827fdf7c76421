/* SPDX-License-Identifier: MIT */
/* The state history: what a full leaf or node looks like from afar, as the entry of the node above it. */
#include "analysis/history/history-writer.h"

static void to_cells(struct ky_entry *entry, const struct ky_history_pixel *pixels)
{
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		entry->states[c] = pixels[c].state;
		entry->shares[c] = pixels[c].share;
		entry->more |= (uint64_t)pixels[c].more << c;
	}
}

/* Relative to the fullest one. */
static void to_densities(struct ky_entry *entry, const double *cells)
{
	double most = 0;

	for (uint32_t c = 0; c < KY_CELLS; c++)
		most = cells[c] > most ? cells[c] : most;
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		entry->states[c] = KY_STATE_EVENTS;
		/* Few events are more than none. */
		entry->shares[c] = cells[c] > 0 ? (uint8_t)(1 + cells[c] / most * 254) : 0;
	}
}

static void spread_node(const struct ky_open_node *node, struct ky_entry *entry)
{
	struct ky_spread spread;
	double cells[KY_CELLS];

	ky_spread_begin(&spread, entry->begin_ns, entry->end_ns, KY_CELLS, cells);
	for (uint32_t i = 0; i < node->n; i++) {
		entry->count += node->entries[i].count;
		ky_spread_entry(&spread, &node->entries[i]);
	}
	to_densities(entry, cells);
}

static void paint_node(const struct ky_open_node *node, bool holds_values, struct ky_entry *entry)
{
	struct ky_history_height heights[KY_CELLS];
	struct ky_history_pixel pixels[KY_CELLS];
	struct ky_paint paint;
	struct ky_curve curve;

	ky_paint_begin(&paint, entry->begin_ns, entry->end_ns, KY_CELLS, pixels);
	ky_curve_begin(&curve, entry->begin_ns, entry->end_ns, KY_CELLS, heights);
	for (uint32_t i = 0; i < node->n; i++) {
		entry->count += node->entries[i].count;
		ky_curve_entry(&curve, &node->entries[i], holds_values);
		if (!holds_values)
			ky_paint_entry(&paint, &node->entries[i], false);
	}
	ky_paint_end(&paint);
	if (!holds_values)
		to_cells(entry, pixels);
	ky_curve_cells(&curve, entry, holds_values);
}

static void paint_leaf(const struct ky_open_row *row, struct ky_entry *entry)
{
	struct ky_history_height heights[KY_CELLS];
	struct ky_history_pixel pixels[KY_CELLS];
	bool holds_values = ky_row_holds_values(row->kind);
	struct ky_paint paint;
	struct ky_curve curve;
	int64_t ns = entry->begin_ns;

	ky_paint_begin(&paint, entry->begin_ns, entry->end_ns, KY_CELLS, pixels);
	ky_curve_begin(&curve, entry->begin_ns, entry->end_ns, KY_CELLS, heights);
	for (uint32_t i = 0; i < row->n; i++) {
		int64_t end = ns + (int64_t)row->durations[i];

		ky_curve_add(&curve, ns, end, row->states[row->codes[i]]);
		if (!holds_values)
			ky_paint_add(&paint, ns, end, row->states[row->codes[i]], 255, false);
		ns = end;
	}
	ky_paint_end(&paint);
	entry->count = row->n;
	if (!holds_values)
		to_cells(entry, pixels);
	ky_curve_cells(&curve, entry, holds_values);
}

static void spread_leaf(const struct ky_open_row *row, struct ky_entry *entry)
{
	double cells[KY_CELLS];
	struct ky_spread spread;
	int64_t ns = entry->begin_ns;

	ky_spread_begin(&spread, entry->begin_ns, entry->end_ns, KY_CELLS, cells);
	for (uint32_t i = 0; i < row->n; i++) {
		int64_t end = ns + (int64_t)row->durations[i];
		uint64_t events = ky_state_events(row->states[row->codes[i]]);

		ky_spread_add(&spread, ns, end, (double)events);
		entry->count += events;
		ns = end;
	}
	to_densities(entry, cells);
}

void ky_open_node_entry(const struct ky_open_row *row, const struct ky_open_node *node,
			struct ky_entry *entry)
{
	if (row->kind == KY_ROW_STREAM)
		spread_node(node, entry);
	else
		paint_node(node, ky_row_holds_values(row->kind), entry);
}

void ky_open_leaf_entry(const struct ky_open_row *row, struct ky_entry *entry)
{
	if (row->kind == KY_ROW_STREAM)
		spread_leaf(row, entry);
	else
		paint_leaf(row, entry);
}
