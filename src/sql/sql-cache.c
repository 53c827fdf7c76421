/* SPDX-License-Identifier: MIT */
#include "sql/sql-cache.h"

#include <stdlib.h>
#include <string.h>

void ky_sql_cache_fini(struct ky_sql_cache *cache)
{
	if (cache->is_built)
		ky_sql_rows_fini(&cache->rows);
	ky_vec_fini(&cache->order);
	memset(cache, 0, sizeof(*cache));
}

static const struct ky_sql_cell *sql_cache_row(const struct ky_sql_cache *cache, size_t at)
{
	return cache->rows.cells.data + (size_t)cache->order.data[at] * cache->rows.n_columns;
}

/* NULL, then numbers, then texts. */
static int sql_cache_compare(const struct ky_sql_cell *a, const struct ky_sql_cell *b)
{
	size_t len = a->len < b->len ? a->len : b->len;
	int order;

	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->type == KY_SQL_INTEGER)
		return a->integer < b->integer ? -1 : a->integer > b->integer;
	if (a->type != KY_SQL_TEXT)
		return 0;
	order = memcmp(a->text, b->text, len);
	return order ? order : a->len < b->len ? -1 : a->len > b->len;
}

static int sql_cache_order(const void *left, const void *right, void *data)
{
	const struct ky_sql_cache *cache = data;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct ky_sql_cell *row_a, *row_b;
	int order = 0;

	row_a = cache->rows.cells.data + (size_t)a * cache->rows.n_columns;
	row_b = cache->rows.cells.data + (size_t)b * cache->rows.n_columns;
	if (cache->key != UINT32_MAX)
		order = sql_cache_compare(&row_a[cache->key], &row_b[cache->key]);
	if (!order && cache->time != UINT32_MAX)
		order = sql_cache_compare(&row_a[cache->time], &row_b[cache->time]);
	return order ? order : a < b ? -1 : a > b;
}

/* The rows outlive the pass whose names they have. */
static int sql_cache_own_names(struct ky_sql_cache *cache)
{
	struct ky_map copies;
	int ret = 0;

	ky_map_init(&copies);
	ky_vec_foreach(&cache->rows.cells, cell) {
		const char *copy;

		if (!cell->is_borrowed || ret < 0)
			continue;
		copy = ky_map_get(&copies, (uintptr_t)cell->text);
		if (!copy) {
			copy = ky_arena_strndup(&cache->rows.texts, cell->text, cell->len);
			ret = copy ? ky_map_set(&copies, (uintptr_t)cell->text,
						(void *)(uintptr_t)copy)
				   : KYMO_E_MEMORY;
		}
		cell->text = copy;
		cell->is_borrowed = false;
	}
	ky_map_fini(&copies);
	return ret;
}

int ky_sql_cache_build(struct ky_sql_cache *cache, struct ky_sql_rows *rows, uint32_t key,
		       uint32_t time)
{
	size_t n = rows->n;

	if (ky_vec_reserve(&cache->order, n + 1) < 0)
		return KYMO_E_MEMORY;
	cache->rows = *rows;
	ky_sql_rows_init(rows, cache->rows.n_columns);
	rows->used = cache->rows.used;
	cache->is_built = true;
	cache->key = key;
	cache->time = time;
	for (size_t i = 0; i < n; i++)
		cache->order.data[cache->order.len++] = (uint32_t)i;
	if (sql_cache_own_names(cache) < 0)
		return KYMO_E_MEMORY;
	qsort_r(cache->order.data, n, sizeof(uint32_t), sql_cache_order, cache);
	return 0;
}

/* The first place whose row is not before @value in the key's column, or with @after: is behind it. */
static size_t sql_cache_search(const struct ky_sql_cache *cache, const struct ky_sql_cell *value,
			       bool after)
{
	size_t low = 0, high = cache->order.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = sql_cache_compare(&sql_cache_row(cache, middle)[cache->key], value);

		if (order < 0 || (after && order == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void ky_sql_cache_find(struct ky_sql_cache *cache, const struct ky_sql_rows *conditions)
{
	cache->at = 0;
	cache->end = cache->order.len;
	cache->is_in_order = cache->key == UINT32_MAX;
	ky_vec_foreach(&conditions->conditions, condition) {
		if (condition->column != cache->key || condition->op != KY_SQL_EQ)
			continue;
		cache->at = sql_cache_search(cache, &condition->value, false);
		cache->end = sql_cache_search(cache, &condition->value, true);
		cache->is_in_order = true;
		return;
	}
}

/* Rows are in the order of time, as far as they have one key: those behind an upper bound of it do not matter. */
static bool sql_cache_is_behind(const struct ky_sql_cache *cache,
				const struct ky_sql_rows *conditions, const struct ky_sql_cell *row)
{
	if (cache->time == UINT32_MAX || row[cache->time].type != KY_SQL_INTEGER)
		return false;
	ky_vec_foreach(&conditions->conditions, condition)
		if (condition->column == cache->time && condition->value.type == KY_SQL_INTEGER &&
		    condition->op != KY_SQL_GT && condition->op != KY_SQL_GE &&
		    row[cache->time].integer > condition->value.integer)
			return true;
	return false;
}

const struct ky_sql_cell *ky_sql_cache_next(struct ky_sql_cache *cache,
					    const struct ky_sql_rows *conditions)
{
	while (cache->at < cache->end) {
		const struct ky_sql_cell *row = sql_cache_row(cache, cache->at);

		if (cache->is_in_order && sql_cache_is_behind(cache, conditions, row))
			break;
		cache->at++;
		if (ky_sql_rows_pass(conditions, row))
			return row;
	}
	return NULL;
}
