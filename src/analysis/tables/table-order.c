/* SPDX-License-Identifier: MIT */
/* Tables: comparison of cells, the order of rows, and limits of their number. */
#include "analysis/tables/table.h"

#include <stdlib.h>
#include <string.h>

bool ky_table_is_empty(const struct ky_table *table, size_t column)
{
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		if (ky_table_cells(table, i)[column].type != KY_VALUE_NONE)
			return false;
	}
	return true;
}

double ky_cell_number(const struct ky_cell *cell)
{
	switch (cell->type) {
	case KY_VALUE_U64:
		return (double)cell->u;
	case KY_VALUE_I64:
		return (double)cell->s;
	case KY_VALUE_F64:
		return cell->f;
	case KY_VALUE_PROCESS:
		return cell->process->tid >= 0 ? cell->process->tid : cell->process->pid;
	case KY_VALUE_IRQ:
		return cell->irq->nr;
	default:
		return 0;
	}
}

static bool process_equal(const struct ky_process *a, const struct ky_process *b)
{
	return a->tid == b->tid && a->pid == b->pid && strcmp(a->comm, b->comm) == 0 &&
	       strcmp(a->host ? a->host : "", b->host ? b->host : "") == 0;
}

bool ky_cell_equal(const struct ky_cell *a, const struct ky_cell *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case KY_VALUE_TEXT:
		return strcmp(a->text, b->text) == 0;
	case KY_VALUE_PROCESS:
		return a->process == b->process || process_equal(a->process, b->process);
	case KY_VALUE_U64:
	case KY_VALUE_I64:
		return a->u == b->u;
	case KY_VALUE_IRQ:
		return a->irq->nr == b->irq->nr && strcmp(a->irq->kind, b->irq->kind) == 0 &&
		       strcmp(a->irq->name, b->irq->name) == 0;
	default:
		return ky_cell_number(a) == ky_cell_number(b);
	}
}

struct sort_key {
	size_t column;
	bool ascending;
};

static int compare_values(const struct ky_cell *a, const struct ky_cell *b)
{
	double left, right;

	if (a->type == KY_VALUE_TEXT && b->type == KY_VALUE_TEXT)
		return strcmp(a->text, b->text);
	if (a->type == KY_VALUE_U64 && b->type == KY_VALUE_U64)
		return a->u < b->u ? -1 : a->u > b->u;
	/* A real number has no room for the nanoseconds of a date. */
	if (a->type == KY_VALUE_I64 && b->type == KY_VALUE_I64)
		return a->s < b->s ? -1 : a->s > b->s;
	left = ky_cell_number(a);
	right = ky_cell_number(b);
	return left < right ? -1 : left > right;
}

static int compare_by(const struct ky_cell *left_row, const struct ky_cell *right_row,
		      const struct sort_key *key)
{
	const struct ky_cell *left = left_row + key->column, *right = right_row + key->column;

	if (left->type == KY_VALUE_NONE || right->type == KY_VALUE_NONE)
		return (left->type == KY_VALUE_NONE) - (right->type == KY_VALUE_NONE);
	return key->ascending ? compare_values(left, right) : compare_values(right, left);
}

/* @data: the key that matters most, and the one where rows are equal in that. */
static int compare_rows(const void *a, const void *b, void *data)
{
	const struct ky_cell *left = *(const struct ky_cell *const *)a;
	const struct ky_cell *right = *(const struct ky_cell *const *)b;
	const struct sort_key *keys = data;
	int order = compare_by(left, right, &keys[0]);

	if (!order)
		order = compare_by(left, right, &keys[1]);
	/* The rows stand in one array: their addresses are their order so far. */
	return order ? order : left < right ? -1 : left > right;
}

/* Put the rows into the order of @rows, which is freed. */
static void reorder(struct ky_table *table, const struct ky_cell **rows)
{
	size_t n_rows = ky_table_n_rows(table), n = table->def->n_columns;
	struct ky_cell *sorted = rows ? malloc(table->cells.len * sizeof(*sorted)) : NULL;

	if (!sorted) {
		table->failed = true;
		free(rows);
		return;
	}
	for (size_t i = 0; i < n_rows; i++)
		memcpy(sorted + i * n, rows[i], n * sizeof(*sorted));
	memcpy(table->cells.data, sorted, table->cells.len * sizeof(*sorted));
	free(sorted);
	free(rows);
}

static const struct ky_cell **table_list_rows(const struct ky_table *table)
{
	size_t n_rows = ky_table_n_rows(table);
	const struct ky_cell **rows = malloc(n_rows * sizeof(*rows));

	for (size_t i = 0; rows && i < n_rows; i++)
		rows[i] = ky_table_cells(table, i);
	return rows;
}

void ky_table_sort_then(struct ky_table *table, size_t column, bool ascending, size_t then,
			bool then_ascending)
{
	struct sort_key keys[] = {{column, ascending}, {then, then_ascending}};
	const struct ky_cell **rows;

	if (ky_table_n_rows(table) < 2)
		return;
	rows = table_list_rows(table);
	if (rows)
		qsort_r(rows, ky_table_n_rows(table), sizeof(*rows), compare_rows, keys);
	reorder(table, rows);
}

void ky_table_sort(struct ky_table *table, size_t column, bool ascending)
{
	ky_table_sort_then(table, column, ascending, column, ascending);
}

struct group_key {
	struct sort_key keys[2];
	const struct ky_cell *begin; /* of the table's cells */
	size_t n_columns;
	const struct ky_cell **best; /* by row: the first row of its group then */
};

static int compare_groups(const void *a, const void *b, void *data)
{
	struct group_key *key = data;
	const struct ky_cell *left = *(const struct ky_cell *const *)a;
	const struct ky_cell *right = *(const struct ky_cell *const *)b;
	const struct ky_cell *l = key->best[(size_t)(left - key->begin) / key->n_columns];
	const struct ky_cell *r = key->best[(size_t)(right - key->begin) / key->n_columns];

	return l == r ? compare_rows(a, b, key->keys) : compare_rows(&l, &r, key->keys);
}

void ky_table_sort_groups(struct ky_table *table, size_t column, bool ascending)
{
	size_t n_rows = ky_table_n_rows(table), n = table->def->n_columns;
	struct group_key key = {
		{{column, ascending}, {column, ascending}}, table->cells.data, n, NULL};
	const struct ky_cell **rows;

	if (n_rows < 2)
		return;
	rows = table_list_rows(table);
	key.best = malloc(n_rows * sizeof(*key.best));
	for (size_t i = 0, begin = 0; rows && key.best && i < n_rows; i++) {
		if (!ky_cell_equal(rows[i], rows[begin]))
			begin = i;
		key.best[i] = rows[i];
		if (begin == i)
			continue;
		if (compare_rows(&rows[i], &key.best[begin], key.keys) < 0)
			key.best[begin] = rows[i];
	}
	/* Each row's group is where its first one stands. */
	for (size_t i = 0, begin = 0; rows && key.best && i < n_rows; i++) {
		if (!ky_cell_equal(rows[i], rows[begin]))
			begin = i;
		key.best[i] = key.best[begin];
	}
	if (rows && key.best)
		qsort_r(rows, n_rows, sizeof(*rows), compare_groups, &key);
	reorder(table, key.best ? rows : (free(rows), NULL));
	free(key.best);
}

bool ky_table_is_full(struct ky_table *table)
{
	bool grouped = table->def->columns[0].group;
	size_t n = table->def->n_columns;

	for (; table->n_counted < ky_table_n_rows(table); table->n_counted++) {
		const struct ky_cell *row = ky_table_cells(table, table->n_counted);

		table->n_groups += !grouped || !table->n_counted || !ky_cell_equal(row, row - n);
	}
	return table->max_kept && table->n_groups > table->max_kept;
}

/* The first rows of the first groups. */
static void limit(struct ky_table *table, uint64_t max_groups, uint64_t max_rows)
{
	size_t n = table->def->n_columns, n_rows = ky_table_n_rows(table), kept = 0;
	bool grouped = table->def->columns[0].group;
	uint64_t groups = 0, in_group = 0;

	for (size_t i = 0; i < n_rows; i++) {
		const struct ky_cell *row = ky_table_cells(table, i);

		if (!i || (grouped && !ky_cell_equal(row, row - n))) {
			groups++;
			in_group = 0;
		}
		if (groups > max_groups)
			break;
		if (in_group++ >= max_rows)
			continue;
		memmove(table->cells.data + kept * n, row, n * sizeof(*row));
		kept++;
	}
	table->n_omitted += n_rows - kept;
	table->cells.len = kept * n;
}

void ky_table_limit(struct ky_table *table, uint64_t max)
{
	if (max)
		limit(table, max, max);
}

void ky_table_limit_groups(struct ky_table *table, uint64_t max)
{
	if (max)
		limit(table, max, UINT64_MAX);
}

void ky_table_limit_rows(struct ky_table *table, uint64_t max)
{
	if (max)
		limit(table, UINT64_MAX, max);
}
