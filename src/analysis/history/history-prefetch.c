/* SPDX-License-Identifier: MIT */
/*
 * The state history: pictures whose records the kernel's cache lacks. A picture goes down its rows one after the other, so each record would wait
 * for the disk alone. After the first miss, all rows of the picture go down level by level: the kernel gets the places of a level at
 * once, in the order of the file, before one of them is read.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "analysis/history/history-internal.h"
#include "base/error.h"

/* Records with less between them come in one read. */
#define GAP_BYTES ((uint64_t)16 << 10)
/* Of a record: most of them have less. */
#define USUAL_BYTES ((uint64_t)4 << 10)
/* A picture of 256 rows and 4096 pixels has half as many leaves. */
#define PLACES_MAX ((size_t)1 << 15)

struct place {
	struct ky_entry entry; /* without cells */
	uint32_t row;
};

KY_VEC_TYPE(places, struct place *);

struct prefetch {
	struct ky_history *history;
	const struct ky_expected *expected;
	struct ky_arena arena;
	KY_VEC(uint64_t) offsets;
	size_t n_places;
	struct places levels[KY_LEVELS];
};

/* ---- the disk ------------------------------------------------------------------------------------ */

static int prefetch_by_offset(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The kernel begins to read the records at ->offsets, and goes on while others are asked for. */
static void prefetch_bring(struct prefetch *prefetch)
{
	uint64_t from = 0, to = 0;

	if (prefetch->offsets.len)
		qsort(prefetch->offsets.data, prefetch->offsets.len,
		      sizeof(*prefetch->offsets.data), prefetch_by_offset);
	ky_vec_foreach(&prefetch->offsets, offset) {
		if (*offset > to + GAP_BYTES) {
			if (to)
				(void)posix_fadvise(prefetch->history->fd, (off_t)from,
						    (off_t)(to - from), POSIX_FADV_WILLNEED);
			from = *offset;
		}
		to = *offset + USUAL_BYTES;
	}
	if (to)
		(void)posix_fadvise(prefetch->history->fd, (off_t)from, (off_t)(to - from),
				    POSIX_FADV_WILLNEED);
	prefetch->offsets.len = 0;
}

/* ---- levels -------------------------------------------------------------------------------------- */

/* Does a picture read more of @entry than its cells? */
static bool prefetch_is_read(const struct ky_expected *expected, const struct ky_entry *entry)
{
	uint64_t span = (uint64_t)entry->end_ns - (uint64_t)entry->begin_ns;

	return entry->end_ns >= expected->begin_ns && entry->begin_ns <= expected->end_ns &&
	       span / KY_CELLS + (span % KY_CELLS != 0) > expected->pixel_ns;
}

/* Of @row, those of @entries at @level that a picture reads. */
static int prefetch_add(struct prefetch *prefetch, uint32_t row, uint32_t level,
			const struct ky_entry *entries, uint32_t n)
{
	for (uint32_t i = 0; i < n && prefetch->n_places < PLACES_MAX; i++) {
		struct place *place;

		if (!prefetch_is_read(prefetch->expected, &entries[i]))
			continue;
		place = ky_arena_alloc(&prefetch->arena, sizeof(*place));
		if (!place || ky_vec_push(&prefetch->levels[level], place) < 0)
			return KYMO_E_MEMORY;
		place->entry.offset = entries[i].offset;
		place->entry.begin_ns = entries[i].begin_ns;
		place->entry.end_ns = entries[i].end_ns;
		place->row = row;
		prefetch->n_places++;
	}
	return KYMO_OK;
}

static int prefetch_tops(struct prefetch *prefetch, struct kymo_error *err)
{
	const struct ky_expected *expected = prefetch->expected;
	int status = KYMO_OK;

	for (size_t i = 0; i < expected->n_rows && status >= 0; i++)
		if (expected->rows[i] < prefetch->history->rows.len)
			status = ky_vec_push(&prefetch->offsets,
					     prefetch->history->records.data[expected->rows[i]]);
	prefetch_bring(prefetch);
	for (size_t i = 0; i < expected->n_rows && status >= 0; i++) {
		struct ky_row_top *top;

		if (expected->rows[i] >= prefetch->history->rows.len)
			continue;
		status = ky_history_read_top(prefetch->history, expected->rows[i], NULL, &top, err);
		for (uint32_t level = 0; status >= 0 && level < top->n_levels; level++)
			status = prefetch_add(prefetch, expected->rows[i], level,
					      top->levels[level].entries, top->levels[level].n);
		free(top);
	}
	return status;
}

/* All records of @level; of nodes, what is below them. */
static int prefetch_level(struct prefetch *prefetch, uint32_t level, struct kymo_error *err)
{
	struct ky_entry entries[KY_NODE_ENTRIES];
	uint32_t n;
	int status = KYMO_OK;

	ky_vec_foreach(&prefetch->levels[level], place)
		if (status >= 0)
			status = ky_vec_push(&prefetch->offsets, (*place)->entry.offset);
	prefetch_bring(prefetch);
	for (size_t i = 0; level && i < prefetch->levels[level].len && status >= 0; i++) {
		const struct place *place = prefetch->levels[level].data[i];

		status = ky_history_read_node(prefetch->history, place->row, level, NULL,
					      &place->entry, entries, &n, err);
		if (status >= 0)
			status = prefetch_add(prefetch, place->row, level - 1, entries, n);
	}
	return status;
}

void ky_history_prefetch(struct ky_history *history)
{
	struct prefetch prefetch = {.history = history, .expected = &history->expected};
	struct kymo_error ignored; /* the picture meets it again */
	int status;

	history->expected.is_brought = true;
	if (history->expected.is_claimed && atomic_exchange(history->expected.is_claimed, true))
		return;
	ky_arena_init(&prefetch.arena);
	status = prefetch_tops(&prefetch, &ignored);
	for (uint32_t level = KY_LEVELS; level-- > 0 && status >= 0;)
		status = prefetch_level(&prefetch, level, &ignored);
	for (uint32_t level = 0; level < KY_LEVELS; level++)
		ky_vec_fini(&prefetch.levels[level]);
	ky_vec_fini(&prefetch.offsets);
	ky_arena_fini(&prefetch.arena);
}

void ky_history_expect(struct ky_history *history, const uint32_t *rows, size_t n_rows,
		       int64_t begin_ns, int64_t end_ns, size_t n_pixels)
{
	history->expected = (struct ky_expected){
		.rows = rows, .n_rows = n_rows, .begin_ns = begin_ns, .end_ns = end_ns};
	if (n_rows && n_pixels && end_ns > begin_ns)
		history->expected.pixel_ns = ((uint64_t)end_ns - (uint64_t)begin_ns) / n_pixels;
	else
		history->expected.n_rows = 0;
}
