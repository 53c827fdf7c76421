/* SPDX-License-Identifier: MIT */
/* Columns of a store: any bytes are decoded, and values that the bytes make come back as they were. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet-block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COLUMNS 5
#define ROWS	200
#define TEXTS	3
#define REALS	4

static void add(struct ky_fleet_batch *batch, size_t i, const uint8_t *at)
{
	struct ky_sql_cell cell = {.type = KY_SQL_INTEGER};

	if (at[0] % 5 == 0)
		cell.type = KY_SQL_NULL;
	else if (i == TEXTS)
		cell = (struct ky_sql_cell){
			.type = KY_SQL_TEXT, .len = at[0] % 8u, .text = (const char *)at};
	else
		memcpy(&cell.integer, at, at[0] % 9u);
	if (i == REALS && cell.type == KY_SQL_INTEGER && at[1] % 2)
		cell = (struct ky_sql_cell){.type = KY_SQL_REAL,
					    .real = ky_fleet_real(cell.integer)};
	ky_fleet_batch_add(batch, i, &cell);
}

static void decode(struct ky_fleet_vector *vectors, size_t i, const struct ky_strbuf *cells,
		   uint64_t n_rows)
{
	struct kymo_error err;
	enum ky_sql_type type, wanted = i == TEXTS   ? KY_SQL_TEXT
					: i == REALS ? KY_SQL_REAL
						     : KY_SQL_INTEGER;
	int ret = ky_fleet_block_decode(ky_strbuf_text(cells), cells->len, n_rows,
					i ? &vectors[0] : NULL, i > 1 ? &vectors[1] : NULL,
					&vectors[i], &type, &err);

	if (ret < 0 || type != wanted)
		abort();
}

static void compare(const struct ky_fleet_vector *one, const struct ky_fleet_vector *other,
		    uint64_t n_rows)
{
	for (uint64_t row = 0; row < n_rows; row++)
		if (ky_fleet_is_null(one, row) != ky_fleet_is_null(other, row) ||
		    one->numbers.data[row] != other->numbers.data[row])
			abort();
	if (one->ends.len != other->ends.len || one->texts.len != other->texts.len ||
	    memcmp(ky_strbuf_text(&one->texts), ky_strbuf_text(&other->texts), one->texts.len) != 0)
		abort();
}

static void there_and_back(struct ky_fleet_table *table, const uint8_t *data, size_t size)
{
	struct ky_fleet_vector vectors[COLUMNS] = {{.texts = KY_STRBUF_INIT}};
	struct ky_fleet_batch batch;
	struct kymo_error err;

	if (ky_fleet_batch_init(&batch, table) < 0)
		abort();
	for (size_t at = 0; at + 8 * COLUMNS <= size && batch.n_rows < ROWS; at += 8 * COLUMNS) {
		for (size_t i = 0; i < COLUMNS; i++)
			add(&batch, i, data + at + 8 * i);
		ky_fleet_batch_end_row(&batch);
	}
	for (size_t i = 0; i < COLUMNS && batch.n_rows; i++) {
		struct ky_strbuf cells = KY_STRBUF_INIT;

		if (ky_fleet_block_encode(&batch, i, &cells, &err) < 0)
			abort();
		decode(vectors, i, &cells, batch.n_rows);
		compare(&batch.vectors.data[i], &vectors[i], batch.n_rows);
		ky_strbuf_fini(&cells);
	}
	for (size_t i = 0; i < COLUMNS; i++)
		ky_fleet_vector_fini(&vectors[i]);
	ky_fleet_batch_fini(&batch);
}

static void decode_anything(const uint8_t *data, size_t size)
{
	struct ky_fleet_vector vector = {.texts = KY_STRBUF_INIT};
	struct kymo_error err;
	enum ky_sql_type type;
	uint64_t n_rows = size ? data[0] * 5u : 0;

	if (ky_fleet_block_decode((const char *)data, size, n_rows, NULL, NULL, &vector, &type,
				  &err) == 0) {
		if (vector.numbers.len != n_rows)
			abort();
		for (uint64_t row = 0; row < n_rows && type == KY_SQL_TEXT; row++) {
			size_t len;

			if (!ky_fleet_is_null(&vector, row))
				(void)ky_fleet_text(&vector, vector.numbers.data[row], &len);
		}
	}
	ky_fleet_vector_fini(&vector);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_fleet_table table = {.name = "t", .time = 0, .end = 1};
	static struct ky_fleet_column columns[COLUMNS] = {{"time", false},
							  {"end", false},
							  {"value", false},
							  {"text", true},
							  {"real", .is_real = true}};

	table.columns.data = columns;
	table.columns.len = COLUMNS;
	decode_anything(data, size);
	there_and_back(&table, data, size);
	return 0;
}
