/* SPDX-License-Identifier: MIT */
/*
 * Batches: rows of a table, column by column. Texts are numbers of a dictionary, since most of them come again and again.
 *
 *	ky_fleet_batch_init(&batch, &table);
 *	ky_fleet_batch_add(&batch, 0, &cell);		for each column
 *	ky_fleet_batch_end_row(&batch);
 *	ky_fleet_batch_clear(&batch);			for the next one
 */
#ifndef KY_FLEET_FLEET_BATCH_H
#define KY_FLEET_FLEET_BATCH_H

#include <string.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "sql/sql-rows.h"

struct ky_fleet_column {
	const char *name;
	bool is_text;
	bool is_real;  /* else an integer: a real number is rounded */
	bool is_small; /* an integer that has 32 bits */
	bool is_whole; /* never NULL */
	bool is_time;  /* ns since 1970: differs little from row to row */
};

struct ky_fleet_table {
	const char *name;
	KY_VEC(struct ky_fleet_column) columns;
	int time;	  /* the column "time", or -1 */
	int end;	  /* "end", or -1 */
	bool is_interval; /* "end" is "time" and "duration" together */
};

struct ky_fleet_vector {
	KY_VEC(int64_t) numbers; /* of texts: which of them; of real numbers: their bits; NULL: 0 */
	KY_VEC(uint8_t) nulls;	 /* 1: NULL; shorter than @numbers: the rest has values */
	struct ky_strbuf texts;
	KY_VEC(size_t) ends; /* of each text in @texts */
	uint32_t *slots;     /* by hash: number of a text, plus 1 */
	size_t n_slots;
	const char *last; /* a text that outlives the pass, and its number */
	int64_t last_number;
};

struct ky_fleet_batch {
	const struct ky_fleet_table *table;
	char trace[17]; /* 16 hexadecimal digits */
	uint64_t number;
	uint64_t n_rows;
	int64_t last_ns; /* of tables without a time: the end of the trace */
	bool is_last;	 /* of its table */
	bool failed;	 /* memory was out */
	size_t text_bytes;
	KY_VEC(struct ky_fleet_vector) vectors;
};

void ky_fleet_vector_fini(struct ky_fleet_vector *vector);
/* @table must outlive it. 0 or KYMO_E_MEMORY. */
int ky_fleet_batch_init(struct ky_fleet_batch *batch, const struct ky_fleet_table *table);
void ky_fleet_batch_fini(struct ky_fleet_batch *batch);
/* Without rows; memory stays for the next ones. */
void ky_fleet_batch_clear(struct ky_fleet_batch *batch);
/* The next value of column @i. What its type cannot be is NULL. */
void ky_fleet_batch_add(struct ky_fleet_batch *batch, size_t i, const struct ky_sql_cell *cell);
static inline void ky_fleet_batch_end_row(struct ky_fleet_batch *batch)
{
	batch->n_rows++;
}
/* The value of column @i in @row; a text lives as long as the batch. */
struct ky_sql_cell ky_fleet_batch_cell(const struct ky_fleet_batch *batch, size_t i, size_t row);
/* Memory of its rows. */
size_t ky_fleet_batch_bytes(const struct ky_fleet_batch *batch);

static inline bool ky_fleet_is_null(const struct ky_fleet_vector *vector, size_t row)
{
	return row < vector->nulls.len && vector->nulls.data[row];
}

static inline int64_t ky_fleet_bits(double real)
{
	int64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

static inline double ky_fleet_real(int64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof(real));
	return real;
}

/* The text with that number. */
static inline const char *ky_fleet_text(const struct ky_fleet_vector *vector, int64_t number,
					size_t *len)
{
	size_t begin = number ? vector->ends.data[number - 1] : 0;

	*len = vector->ends.data[number] - begin;
	return ky_strbuf_text(&vector->texts) + begin;
}

/* The smallest and the largest value of column @i; false: all are NULL. */
bool ky_fleet_batch_bounds(const struct ky_fleet_batch *batch, size_t i, int64_t *least,
			   int64_t *most);

#endif
