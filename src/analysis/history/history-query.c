/* SPDX-License-Identifier: MIT */
/*
 * The state history: queries. A query goes down from the top of a row. It uses the cells of an entry where they are
 * not wider than a pixel. So it reads at most one leaf for each 64 pixels, whatever the range has.
 */
#include "analysis/history/history-internal.h"

#include <stdlib.h>

#include "base/error.h"

static int read_leaf(struct ky_history *history, uint32_t row, const struct ky_entry *entry,
		     struct kymo_error *err)
{
	struct ky_bytes bytes;
	int status;

	if (history->leaf_at == entry->offset && history->leaf_at)
		return 0;
	history->leaf_at = 0;
	history->leaf_row = 0;
	status = ky_history_record(history, entry->offset, KY_RECORD_LEAF, row, 0, &bytes, err);
	if (status < 0)
		return status;
	if (!ky_leaf_get(&bytes, &history->leaf) || bytes.at != bytes.end || !history->leaf.n ||
	    history->leaf.begin_ns != entry->begin_ns || history->leaf.end_ns != entry->end_ns)
		return ky_history_damaged(history, entry->offset, "malformed intervals", err);
	history->leaf_at = entry->offset;
	history->leaf_row = row + 1;
	return 0;
}

int ky_history_read_node(struct ky_history *history, uint32_t row, uint32_t level,
			 const struct ky_wanted *wanted, const struct ky_entry *entry,
			 struct ky_entry *entries, uint32_t *n, struct kymo_error *err)
{
	struct ky_bytes bytes;
	int status =
		ky_history_record(history, entry->offset, KY_RECORD_NODE, row, level, &bytes, err);

	if (status < 0)
		return status;
	if (!ky_entries_get(&bytes, wanted, entries, n) || bytes.at != bytes.end || !*n ||
	    entries[0].begin_ns != entry->begin_ns || entries[*n - 1].end_ns != entry->end_ns)
		return ky_history_damaged(history, entry->offset, "malformed entries", err);
	return 0;
}

int ky_history_read_top(struct ky_history *history, uint32_t row, const struct ky_wanted *wanted,
			struct ky_row_top **top, struct kymo_error *err)
{
	const char *name;
	size_t len;
	int status;

	*top = NULL;
	if (row >= history->rows.len)
		return ky_error_set(err, KYMO_E_INVALID, "the state history has no row %u", row);
	*top = malloc(sizeof(**top));
	if (!*top)
		return ky_error_nomem(err);
	status = ky_history_top(history, history->records.data[row], row, wanted, *top, &name, &len,
				err);
	if (status < 0) {
		free(*top);
		*top = NULL;
	}
	return status;
}

/* ---- a moment ------------------------------------------------------------------------------------ */

/* The last interval that begins at or before @ns, which the leaf holds. */
static void find_in_leaf(const struct ky_leaf *leaf, int64_t ns,
			 struct ky_history_interval *interval)
{
	int64_t at = leaf->begin_ns;

	for (uint32_t i = 0; i < leaf->n; i++) {
		int64_t end = (int64_t)((uint64_t)at + leaf->durations[i]);

		if (ns < end || i + 1 == leaf->n) {
			*interval =
				(struct ky_history_interval){.begin_ns = at,
							     .end_ns = end,
							     .state = leaf->states[leaf->codes[i]]};
			return;
		}
		at = end;
	}
}

static bool history_query_holds(const struct ky_entry *entry, int64_t ns)
{
	return entry->begin_ns <= ns && ns < entry->end_ns;
}

static const struct ky_entry *find_entry(const struct ky_entry *entries, uint32_t n, int64_t ns)
{
	for (uint32_t i = 0; i < n; i++) {
		if (history_query_holds(&entries[i], ns))
			return &entries[i];
	}
	return NULL;
}

/* Down from @found, which is of @level. */
static int history_query_descend(struct ky_history *history, uint32_t row, uint32_t level,
				 struct ky_entry found, int64_t ns,
				 struct ky_history_interval *interval, struct kymo_error *err)
{
	struct ky_entry entries[KY_NODE_ENTRIES];
	int status;

	for (; level > 0; level--) {
		const struct ky_entry *next;
		uint32_t n;

		status = ky_history_read_node(history, row, level, NULL, &found, entries, &n, err);
		if (status < 0)
			return status;
		next = find_entry(entries, n, ns);
		if (!next)
			return ky_history_damaged(history, found.offset, "malformed entries", err);
		found = *next;
	}
	status = read_leaf(history, row, &found, err);
	if (status >= 0)
		find_in_leaf(&history->leaf, ns, interval);
	return status;
}

static int find_in_row(struct ky_history *history, const struct ky_row_top *top, int64_t ns,
		       struct ky_history_interval *interval, struct kymo_error *err)
{
	const struct ky_history_row *row = &top->row;

	*interval = (struct ky_history_interval){INT64_MIN, INT64_MAX, KY_STATE_NONE};
	if (row->begin_ns == INT64_MIN)
		return 0;
	if (ns < row->begin_ns) {
		interval->end_ns = row->begin_ns;
		return 0;
	}
	if (ns >= row->end_ns) {
		interval->begin_ns = row->end_ns;
		return 0;
	}
	for (uint32_t i = top->n_levels; i-- > 0;) {
		const struct ky_entry *entry =
			find_entry(top->levels[i].entries, top->levels[i].n, ns);

		if (entry)
			return history_query_descend(history, row->id, i, *entry, ns, interval,
						     err);
	}
	find_in_leaf(&top->leaf, ns, interval);
	history->leaf = top->leaf;
	history->leaf_at = 0;
	history->leaf_row = row->id + 1;
	return 0;
}

/* Loops over intervals ask for the same leaf again and again. */
static bool history_query_has_leaf(const struct ky_history *history, uint32_t row, int64_t ns)
{
	const struct ky_leaf *leaf = &history->leaf;

	return history->leaf_row == (uint64_t)row + 1 && leaf->n && leaf->begin_ns <= ns &&
	       ns < leaf->end_ns;
}

int ky_history_at(struct ky_history *history, uint32_t row, int64_t ns,
		  struct ky_history_interval *interval, struct kymo_error *err)
{
	struct ky_row_top *top;
	int status;

	if (history_query_has_leaf(history, row, ns)) {
		find_in_leaf(&history->leaf, ns, interval);
		return 0;
	}
	status = ky_history_read_top(history, row, NULL, &top, err);
	if (status >= 0)
		status = find_in_row(history, top, ns, interval, err);
	free(top);
	return status;
}

/* ---- ranges ---------------------------------------------------------------------------------------- */

struct range {
	struct ky_history *history;
	uint32_t row;
	int64_t begin_ns, end_ns;
	struct ky_wanted wanted;
	uint64_t pixel_ns; /* rounded down; not 0 */
	bool holds_values;
	struct ky_paint *paint; /* one of the three */
	struct ky_spread *spread;
	struct ky_curve *curve;
};

static void history_query_put_leaf(const struct range *range, const struct ky_leaf *leaf)
{
	int64_t ns = leaf->begin_ns;

	if (range->paint)
		return ky_paint_leaf(range->paint, leaf);
	for (uint32_t i = 0; i < leaf->n && ns <= range->end_ns; i++) {
		int64_t end = (int64_t)((uint64_t)ns + leaf->durations[i]);
		uint64_t state = leaf->states[leaf->codes[i]];

		if (end < range->begin_ns)
			;
		else if (range->curve)
			ky_curve_add(range->curve, ns, end, state);
		else
			ky_spread_add(range->spread, ns, end, (double)ky_state_events(state));
		ns = end;
	}
}

static int put_entries(const struct range *range, const struct ky_entry *entries, uint32_t n,
		       uint32_t level, struct kymo_error *err);

static int history_query_put_entry(const struct range *range, const struct ky_entry *entry,
				   uint32_t level, struct kymo_error *err)
{
	uint64_t span = (uint64_t)entry->end_ns - (uint64_t)entry->begin_ns;
	struct ky_entry entries[KY_NODE_ENTRIES];
	uint32_t n;
	int status;

	if (entry->end_ns < range->begin_ns || entry->begin_ns > range->end_ns)
		return 0;
	if (span / KY_CELLS + (span % KY_CELLS != 0) <= range->pixel_ns) {
		if (range->paint)
			ky_paint_entry(range->paint, entry, range->holds_values);
		else if (range->curve)
			ky_curve_entry(range->curve, entry, range->holds_values);
		else
			ky_spread_entry(range->spread, entry);
		return 0;
	}
	if (!level) {
		status = read_leaf(range->history, range->row, entry, err);
		if (status >= 0)
			history_query_put_leaf(range, &range->history->leaf);
		return status;
	}
	status = ky_history_read_node(range->history, range->row, level, &range->wanted, entry,
				      entries, &n, err);
	return status < 0 ? status : put_entries(range, entries, n, level - 1, err);
}

/* @level: of the entries; 0 are leaves. It falls with each call, so that the depth is limited. */
static int put_entries(const struct range *range, const struct ky_entry *entries, uint32_t n,
		       uint32_t level, struct kymo_error *err)
{
	int status = 0;

	for (uint32_t i = 0; i < n && status >= 0; i++)
		status = history_query_put_entry(range, &entries[i], level, err);
	return status;
}

static int put_range(struct range *range, struct kymo_error *err)
{
	struct ky_row_top *top;
	int status;

	range->wanted = (struct ky_wanted){.begin_ns = range->begin_ns,
					   .end_ns = range->end_ns,
					   .curves = range->curve != NULL};
	status = ky_history_read_top(range->history, range->row, &range->wanted, &top, err);

	if (range->history->expected.is_missed && !range->history->expected.is_brought)
		ky_history_prefetch(range->history);
	if (status >= 0)
		range->holds_values = ky_row_holds_values(top->row.kind);
	for (uint32_t i = status < 0 ? 0 : top->n_levels; i-- > 0 && status >= 0;)
		status = put_entries(range, top->levels[i].entries, top->levels[i].n, i, err);
	if (status >= 0)
		history_query_put_leaf(range, &top->leaf);
	free(top);
	return status;
}

/* 0 or KYMO_E_INVALID. */
static int check_range(const struct range *range, size_t n, struct kymo_error *err)
{
	if (!n || n > UINT32_MAX || range->end_ns <= range->begin_ns ||
	    (uint64_t)range->end_ns - (uint64_t)range->begin_ns < n)
		return ky_error_set(err, KYMO_E_INVALID,
				    "the range is shorter than a nanosecond for each pixel");
	return 0;
}

int ky_history_pixels(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		      size_t n, struct ky_history_pixel *pixels, struct kymo_error *err)
{
	struct range range = {
		.history = history, .row = row, .begin_ns = begin_ns, .end_ns = end_ns};
	struct ky_paint paint;
	int status = check_range(&range, n, err);

	if (status < 0)
		return status;
	ky_paint_begin(&paint, begin_ns, end_ns, n, pixels);
	range.pixel_ns = paint.step_ns;
	range.paint = &paint;
	status = put_range(&range, err);
	ky_paint_end(&paint);
	return status;
}

int ky_history_density(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		       size_t n, double *events, struct kymo_error *err)
{
	struct range range = {
		.history = history, .row = row, .begin_ns = begin_ns, .end_ns = end_ns};
	struct ky_spread spread;
	int status = check_range(&range, n, err);

	if (status < 0)
		return status;
	ky_spread_begin(&spread, begin_ns, end_ns, n, events);
	range.pixel_ns = ((uint64_t)end_ns - (uint64_t)begin_ns) / n;
	range.spread = &spread;
	return put_range(&range, err);
}

int ky_history_heights(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		       size_t n, struct ky_history_height *heights, struct kymo_error *err)
{
	struct range range = {
		.history = history, .row = row, .begin_ns = begin_ns, .end_ns = end_ns};
	struct ky_curve curve;
	int status = check_range(&range, n, err);

	if (status < 0)
		return status;
	ky_curve_begin(&curve, begin_ns, end_ns, n, heights);
	range.pixel_ns = ((uint64_t)end_ns - (uint64_t)begin_ns) / n;
	range.curve = &curve;
	return put_range(&range, err);
}