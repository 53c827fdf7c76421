/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-batch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SLOTS_MIN 64

int ky_fleet_batch_init(struct ky_fleet_batch *batch, const struct ky_fleet_table *table)
{
	memset(batch, 0, sizeof(*batch));
	batch->table = table;
	if (ky_vec_reserve(&batch->vectors, table->columns.len + 1) < 0)
		return KYMO_E_MEMORY;
	batch->vectors.len = table->columns.len;
	ky_vec_foreach(&batch->vectors, vector)
		*vector = (struct ky_fleet_vector){.texts = KY_STRBUF_INIT};
	return KYMO_OK;
}

void ky_fleet_vector_fini(struct ky_fleet_vector *vector)
{
	ky_vec_fini(&vector->numbers);
	ky_vec_fini(&vector->nulls);
	ky_vec_fini(&vector->ends);
	ky_strbuf_fini(&vector->texts);
	free(vector->slots);
}

void ky_fleet_batch_fini(struct ky_fleet_batch *batch)
{
	ky_vec_foreach(&batch->vectors, vector)
		ky_fleet_vector_fini(vector);
	ky_vec_fini(&batch->vectors);
}

void ky_fleet_batch_clear(struct ky_fleet_batch *batch)
{
	ky_vec_foreach(&batch->vectors, vector) {
		ky_vec_clear(&vector->numbers);
		ky_vec_clear(&vector->nulls);
		ky_vec_clear(&vector->ends);
		ky_strbuf_clear(&vector->texts);
		if (vector->slots)
			memset(vector->slots, 0, vector->n_slots * sizeof(*vector->slots));
		vector->last = NULL;
	}
	batch->n_rows = 0;
	batch->text_bytes = 0;
}

/* ---- texts ---------------------------------------------------------------------------- */

static int fleet_batch_grow(struct ky_fleet_vector *vector)
{
	size_t n = vector->n_slots ? vector->n_slots * 2 : SLOTS_MIN;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < vector->ends.len; i++) {
		size_t len, at;
		const char *text = ky_fleet_text(vector, (int64_t)i, &len);

		for (at = ky_hash_bytes(text, len) & (n - 1); slots[at]; at = (at + 1) & (n - 1))
			;
		slots[at] = (uint32_t)i + 1;
	}
	free(vector->slots);
	vector->slots = slots;
	vector->n_slots = n;
	return KYMO_OK;
}

/* The number of a text, new or known; -1: memory is out. */
static int64_t fleet_batch_number(struct ky_fleet_batch *batch, struct ky_fleet_vector *vector,
				  const char *text, size_t len)
{
	size_t at;

	if (vector->ends.len * 2 >= vector->n_slots && fleet_batch_grow(vector) < 0)
		return -1;
	at = ky_hash_bytes(text, len) & (vector->n_slots - 1);
	for (; vector->slots[at]; at = (at + 1) & (vector->n_slots - 1)) {
		size_t known_len;
		const char *known =
			ky_fleet_text(vector, (int64_t)vector->slots[at] - 1, &known_len);

		if (known_len == len && memcmp(known, text, len) == 0)
			return (int64_t)vector->slots[at] - 1;
	}
	ky_strbuf_add(&vector->texts, text, len);
	if (ky_strbuf_failed(&vector->texts) || ky_vec_push(&vector->ends, vector->texts.len) < 0)
		return -1;
	batch->text_bytes += len;
	vector->slots[at] = (uint32_t)vector->ends.len;
	return (int64_t)vector->ends.len - 1;
}

/* ---- values --------------------------------------------------------------------------- */

static int fleet_batch_add_null(struct ky_fleet_vector *vector)
{
	size_t n = vector->numbers.len - vector->nulls.len;

	if (ky_vec_reserve(&vector->nulls, n + 1) < 0)
		return KYMO_E_MEMORY;
	memset(vector->nulls.data + vector->nulls.len, 0, n);
	vector->nulls.len += n;
	vector->nulls.data[vector->nulls.len++] = 1;
	return ky_vec_push(&vector->numbers, 0);
}

static int fleet_batch_add_text(struct ky_fleet_batch *batch, struct ky_fleet_vector *vector,
				const struct ky_sql_cell *cell)
{
	int64_t number;

	if (cell->is_borrowed && cell->text == vector->last)
		return ky_vec_push(&vector->numbers, vector->last_number);
	number = fleet_batch_number(batch, vector, cell->text, cell->len);
	if (number < 0)
		return KYMO_E_MEMORY;
	if (cell->is_borrowed) {
		vector->last = cell->text;
		vector->last_number = number;
	}
	return ky_vec_push(&vector->numbers, number);
}

static int fleet_batch_add_number_text(struct ky_fleet_batch *batch, struct ky_fleet_vector *vector,
				       const struct ky_sql_cell *number)
{
	struct ky_sql_cell cell = {.type = KY_SQL_TEXT};
	char text[32];

	cell.len = (uint32_t)(number->type == KY_SQL_REAL
				      ? snprintf(text, sizeof(text), "%.17g", number->real)
				      : snprintf(text, sizeof(text), "%" PRId64, number->integer));
	cell.text = text;
	return fleet_batch_add_text(batch, vector, &cell);
}

static int fleet_batch_add_real(struct ky_fleet_vector *vector, const struct ky_sql_cell *cell)
{
	double real = cell->type == KY_SQL_INTEGER ? (double)cell->integer : cell->real;

	if ((cell->type != KY_SQL_INTEGER && cell->type != KY_SQL_REAL) || isnan(real))
		return fleet_batch_add_null(vector);
	return ky_vec_push(&vector->numbers, ky_fleet_bits(real));
}

/* Numbers in a column of texts are texts, and what no integer can be is NULL. */
void ky_fleet_batch_add(struct ky_fleet_batch *batch, size_t i, const struct ky_sql_cell *cell)
{
	struct ky_fleet_vector *vector = &batch->vectors.data[i];
	bool is_text = batch->table->columns.data[i].is_text;
	int ret;

	if (batch->table->columns.data[i].is_real)
		ret = fleet_batch_add_real(vector, cell);
	else if (cell->type == KY_SQL_INTEGER && !is_text)
		ret = ky_vec_push(&vector->numbers, cell->integer);
	else if (cell->type == KY_SQL_TEXT && is_text)
		ret = fleet_batch_add_text(batch, vector, cell);
	else if (is_text && (cell->type == KY_SQL_INTEGER || cell->type == KY_SQL_REAL))
		ret = fleet_batch_add_number_text(batch, vector, cell);
	else if (cell->type == KY_SQL_REAL && fabs(cell->real) < 9e18)
		ret = ky_vec_push(&vector->numbers, (int64_t)cell->real);
	else
		ret = fleet_batch_add_null(vector);
	batch->failed |= ret < 0;
}

struct ky_sql_cell ky_fleet_batch_cell(const struct ky_fleet_batch *batch, size_t i, size_t row)
{
	const struct ky_fleet_column *column = &batch->table->columns.data[i];
	const struct ky_fleet_vector *vector = &batch->vectors.data[i];
	struct ky_sql_cell cell = {.type = KY_SQL_NULL};
	size_t len;

	if (ky_fleet_is_null(vector, row))
		return cell;
	if (column->is_text) {
		cell.type = KY_SQL_TEXT;
		cell.text = ky_fleet_text(vector, vector->numbers.data[row], &len);
		cell.len = (uint32_t)len;
	} else if (column->is_real) {
		cell.type = KY_SQL_REAL;
		cell.real = ky_fleet_real(vector->numbers.data[row]);
	} else {
		ky_sql_put(&cell, vector->numbers.data[row]);
	}
	return cell;
}

size_t ky_fleet_batch_bytes(const struct ky_fleet_batch *batch)
{
	return batch->n_rows * batch->vectors.len * (sizeof(int64_t) + 1) + batch->text_bytes;
}

bool ky_fleet_batch_bounds(const struct ky_fleet_batch *batch, size_t i, int64_t *least,
			   int64_t *most)
{
	const struct ky_fleet_vector *vector = &batch->vectors.data[i];

	*least = INT64_MAX;
	*most = INT64_MIN;
	for (size_t row = 0; row < batch->n_rows; row++) {
		int64_t value = vector->numbers.data[row];

		if (ky_fleet_is_null(vector, row))
			continue;
		*least = value < *least ? value : *least;
		*most = value > *most ? value : *most;
	}
	return *least <= *most;
}
