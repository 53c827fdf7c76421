/* SPDX-License-Identifier: MIT */
#include "view/answers/row-index.h"

#include <stdlib.h>
#include <string.h>

/* Circles cannot be, but a history that is being written may be incomplete. */
#define MAX_DEPTH 16

static uint32_t row_index_machine_of(const struct ky_history *history, uint32_t id)
{
	for (int i = 0; i < MAX_DEPTH && id < ky_history_n_rows(history); i++) {
		const struct ky_history_row *row = ky_history_row(history, id);

		if (row->kind == KY_ROW_MACHINE)
			return id;
		id = row->parent;
	}
	return KY_HISTORY_NO_ROW;
}

static int row_index_compare(const void *left, const void *right)
{
	const struct ky_indexed_row *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->machine != b->machine)
		return a->machine < b->machine ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

int ky_row_index_init(struct ky_row_index *index, const struct ky_history *history)
{
	size_t n = ky_history_n_rows(history);

	*index = (struct ky_row_index){0};
	for (size_t i = 0; i < n; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);
		const struct ky_indexed_row one = {
			row->kind,     row_index_machine_of(history, row->id),
			row->number,   row->id,
			row->begin_ns, row->end_ns};

		if (row->kind == KY_ROW_MACHINE && ky_vec_push(&index->machines, row->id) < 0)
			return KYMO_E_MEMORY;
		if (row->kind != KY_ROW_CPU && row->kind != KY_ROW_PROCESS &&
		    row->kind != KY_ROW_THREAD && row->kind != KY_ROW_STREAM)
			continue;
		if (ky_vec_push(&index->rows, one) < 0)
			return KYMO_E_MEMORY;
	}
	if (index->rows.len)
		qsort(index->rows.data, index->rows.len, sizeof(*index->rows.data),
		      row_index_compare);
	return KYMO_OK;
}

void ky_row_index_fini(struct ky_row_index *index)
{
	ky_vec_fini(&index->rows);
	ky_vec_fini(&index->machines);
}

uint32_t ky_row_find(const struct ky_row_index *index, enum ky_row_kind kind, uint32_t machine,
		     int64_t number, int64_t ns)
{
	const struct ky_indexed_row wanted = {kind, machine, number, 0, 0, 0};
	uint32_t found = KY_HISTORY_NO_ROW;
	size_t low = 0, high = index->rows.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (row_index_compare(&index->rows.data[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < index->rows.len; low++) {
		const struct ky_indexed_row *row = &index->rows.data[low];

		if (row->kind != kind || row->machine != machine || row->number != number)
			break;
		found = row->id;
		if (row->begin_ns <= ns && ns <= row->end_ns)
			break;
	}
	return found;
}

uint32_t ky_row_machine(const struct ky_row_index *index, const struct ky_history *history,
			const struct ky_trace *trace)
{
	const struct ky_env *env = ky_env_find(trace->cls, "hostname");

	ky_vec_foreach(&index->machines, machine) {
		if (env && env->is_text &&
		    strcmp(env->text, ky_history_row(history, *machine)->name) == 0)
			return *machine;
	}
	return index->machines.len == 1 ? index->machines.data[0] : KY_HISTORY_NO_ROW;
}

bool ky_is_kernel_trace(const struct ky_trace *trace)
{
	const struct ky_env *env = ky_env_find(trace->cls, "domain");

	if (env && env->is_text)
		return strcmp(env->text, "kernel") == 0;
	ky_vec_foreach(&trace->cls->events, event) {
		if (strcmp((*event)->name, "sched_switch") == 0)
			return true;
	}
	return false;
}
