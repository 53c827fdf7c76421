/* SPDX-License-Identifier: MIT */
/*
 * Rows of a table that come faster than SQLite asks for them: those of one batch of events wait here.
 *
 *	row = ky_sql_rows_new(rows);		NULL: memory is out
 *	ky_sql_put(rows, row, COLUMN, 42);
 *	ky_sql_rows_keep(rows);			or not, by the statement's conditions
 */
#ifndef KY_SQL_SQL_ROWS_H
#define KY_SQL_SQL_ROWS_H

#include "sql/sql-tables.h"

struct ky_sql_cell {
	uint8_t type;	  /* enum ky_sql_type; NULL: empty */
	bool is_borrowed; /* a text that lives as long as the pass */
	uint32_t len;	  /* of a text */
	union {
		int64_t integer;
		double real;
		const char *text;
	};
};

enum ky_sql_operator {
	KY_SQL_EQ,
	KY_SQL_LT,
	KY_SQL_LE,
	KY_SQL_GT,
	KY_SQL_GE,
};

/* A comparison that the statement needs: rows that fail it are not kept. */
struct ky_sql_condition {
	uint32_t column;
	enum ky_sql_operator op;
	struct ky_sql_cell value; /* INTEGER or TEXT; TEXT only with EQ */
};

struct ky_sql_rows {
	uint32_t n_columns;
	uint64_t used; /* bits: the columns that the statement reads; the last one: all beyond */
	KY_VEC(struct ky_sql_cell) cells;
	size_t at; /* the first row that was not read */
	size_t n;
	struct ky_arena texts; /* of the rows that wait */
	size_t text_bytes;     /* in @texts */
	bool has_texts;
	KY_VEC(struct ky_sql_condition) conditions;
	struct ky_arena values; /* texts of conditions */
};

void ky_sql_rows_init(struct ky_sql_rows *rows, uint32_t n_columns);
void ky_sql_rows_fini(struct ky_sql_rows *rows);
/* Nothing waits, and there are no conditions. */
void ky_sql_rows_clear(struct ky_sql_rows *rows);
/* All rows were read. */
void ky_sql_rows_drain(struct ky_sql_rows *rows);

static inline bool ky_sql_rows_uses(const struct ky_sql_rows *rows, uint32_t column)
{
	return rows->used >> (column < 63 ? column : 63) & 1;
}

/* The next row, all NULL. NULL: memory is out. Valid until the next call. */
struct ky_sql_cell *ky_sql_rows_new(struct ky_sql_rows *rows);
/* Does @row fulfil the conditions of @rows? */
bool ky_sql_rows_pass(const struct ky_sql_rows *rows, const struct ky_sql_cell *row);
/* The row is complete. 0. */
int ky_sql_rows_keep(struct ky_sql_rows *rows);
int ky_sql_rows_add_condition(struct ky_sql_rows *rows, uint32_t column, enum ky_sql_operator op,
			      sqlite3_value *value);

static inline void ky_sql_put(struct ky_sql_cell *cell, int64_t value)
{
	cell->type = KY_SQL_INTEGER;
	cell->integer = value;
}

/* INT64_MIN is the model's word for unknown. */
static inline void ky_sql_put_time(struct ky_sql_cell *cell, int64_t ns)
{
	if (ns != INT64_MIN && ns != INT64_MAX)
		ky_sql_put(cell, ns);
}

/* @text outlives the pass; NULL and "" are none. */
void ky_sql_put_name(struct ky_sql_cell *cell, const char *text);
/* Copies @text. */
void ky_sql_put_text(struct ky_sql_rows *rows, struct ky_sql_cell *cell, const char *text,
		     size_t len);
void ky_sql_put_uuid(struct ky_sql_rows *rows, struct ky_sql_cell *cell, const uint8_t *uuid);
uint64_t ky_sql_cell_hash(const struct ky_sql_cell *cell);
/* For SQLite. */
void ky_sql_cell_result(sqlite3_context *context, const struct ky_sql_cell *cell);

#endif
