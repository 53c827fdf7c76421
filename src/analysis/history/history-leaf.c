/* SPDX-License-Identifier: MIT */
/* The state history: the leaf of a row that is being written, intervals with numbers of states. */
#include <stdlib.h>
#include <string.h>

#include "analysis/history/history-writer.h"

#define LEAF_FIRST 8u

static int grow_leaf(struct ky_open_row *row)
{
	uint32_t cap = row->cap ? row->cap * 2 : LEAF_FIRST;
	uint64_t *durations = realloc(row->durations, cap * sizeof(*durations));
	uint8_t *codes;

	if (!durations)
		return KYMO_E_MEMORY;
	row->durations = durations;
	codes = realloc(row->codes, cap);
	if (!codes)
		return KYMO_E_MEMORY;
	row->codes = codes;
	row->cap = cap;
	return 0;
}

static int grow_states(struct ky_open_row *row)
{
	uint32_t cap = row->states_cap ? row->states_cap * 2 : LEAF_FIRST;
	uint64_t *states = realloc(row->states, cap * sizeof(*states));

	if (!states)
		return KYMO_E_MEMORY;
	row->states = states;
	row->states_cap = cap;
	if (!row->slots && cap > LEAF_FIRST)
		row->slots = calloc(KY_ROW_SLOTS, 1);
	return row->slots || cap == LEAF_FIRST ? 0 : KYMO_E_MEMORY;
}

static uint32_t first_slot(uint64_t state)
{
	return (uint32_t)(state * UINT64_C(0x9e3779b97f4a7c15) >> 40) % KY_ROW_SLOTS;
}

static void history_leaf_fill_slot(struct ky_open_row *row, uint32_t code)
{
	uint32_t at = first_slot(row->states[code]);

	while (row->slots[at])
		at = (at + 1) % KY_ROW_SLOTS;
	row->slots[at] = (uint8_t)(code + 1);
}

/* The number of a state that the leaf has; or -1. Few states are compared, many are found by their hash. */
static int find_code(const struct ky_open_row *row, uint64_t state)
{
	if (row->n_states > LEAF_FIRST) {
		for (uint32_t at = first_slot(state); row->slots[at];
		     at = (at + 1) % KY_ROW_SLOTS) {
			if (row->states[row->slots[at] - 1] == state)
				return row->slots[at] - 1;
		}
		return -1;
	}
	for (uint32_t i = 0; i < row->n_states; i++) {
		if (row->states[i] == state)
			return (int)i;
	}
	return -1;
}

/* The number of @state in the leaf. Negative: out of memory. */
static int code_of(struct ky_open_row *row, uint64_t state)
{
	int code = find_code(row, state);

	if (code >= 0)
		return code;
	if (row->n_states == row->states_cap && grow_states(row) < 0)
		return KYMO_E_MEMORY;
	row->states[row->n_states++] = state;
	if (row->n_states == LEAF_FIRST + 1) {
		for (uint32_t i = 0; i < LEAF_FIRST; i++)
			history_leaf_fill_slot(row, i);
	}
	if (row->n_states > LEAF_FIRST)
		history_leaf_fill_slot(row, row->n_states - 1);
	return (int)row->n_states - 1;
}

void ky_open_leaf_clear(struct ky_open_row *row)
{
	if (row->n_states > LEAF_FIRST)
		memset(row->slots, 0, KY_ROW_SLOTS);
	row->n = row->n_states = 0;
}

int ky_open_leaf_push(struct ky_open_row *row, int64_t begin_ns, int64_t end_ns, uint64_t state)
{
	int code;

	if (!row->n)
		row->leaf_begin_ns = begin_ns;
	if (row->n == row->cap && grow_leaf(row) < 0)
		return KYMO_E_MEMORY;
	code = code_of(row, state);
	if (code < 0)
		return code;
	row->durations[row->n] = (uint64_t)end_ns - (uint64_t)begin_ns;
	row->codes[row->n++] = (uint8_t)code;
	return row->n == KY_LEAF_INTERVALS || row->n_states >= KY_LEAF_STATES - 1;
}

int ky_open_leaf_put(struct ky_open_row *row, struct ky_strbuf *out)
{
	uint32_t n = row->n, n_states = row->n_states;

	if (row->has_last) {
		int code = find_code(row, row->last_state);

		if (n == row->cap && grow_leaf(row) < 0)
			return KYMO_E_MEMORY;
		if (code < 0 && n_states == row->states_cap && grow_states(row) < 0)
			return KYMO_E_MEMORY;
		if (code < 0) {
			code = (int)n_states;
			row->states[n_states++] = row->last_state;
		}
		row->durations[n] = (uint64_t)row->last_end_ns - (uint64_t)row->last_begin_ns;
		row->codes[n++] = (uint8_t)code;
	}
	ky_leaf_put(out, row->n ? row->leaf_begin_ns : row->last_begin_ns, n, row->durations,
		    row->codes, n_states, row->states);
	return 0;
}
