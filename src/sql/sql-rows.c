/* SPDX-License-Identifier: MIT */
#include "sql/sql-rows.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

void ky_sql_rows_init(struct ky_sql_rows *rows, uint32_t n_columns)
{
	memset(rows, 0, sizeof(*rows));
	rows->n_columns = n_columns;
	ky_arena_init(&rows->texts);
	ky_arena_init(&rows->values);
}

void ky_sql_rows_fini(struct ky_sql_rows *rows)
{
	ky_vec_fini(&rows->cells);
	ky_vec_fini(&rows->conditions);
	ky_arena_fini(&rows->texts);
	ky_arena_fini(&rows->values);
}

void ky_sql_rows_clear(struct ky_sql_rows *rows)
{
	ky_sql_rows_drain(rows);
	ky_vec_clear(&rows->conditions);
	ky_arena_fini(&rows->values);
	ky_arena_init(&rows->values);
}

void ky_sql_rows_drain(struct ky_sql_rows *rows)
{
	ky_vec_clear(&rows->cells);
	rows->at = rows->n = 0;
	if (!rows->has_texts)
		return;
	ky_arena_fini(&rows->texts);
	ky_arena_init(&rows->texts);
	rows->has_texts = false;
	rows->text_bytes = 0;
}

struct ky_sql_cell *ky_sql_rows_new(struct ky_sql_rows *rows)
{
	struct ky_sql_cell *row;

	if (ky_vec_reserve(&rows->cells, rows->n_columns) < 0)
		return NULL;
	row = rows->cells.data + rows->cells.len;
	memset(row, 0, rows->n_columns * sizeof(*row));
	rows->cells.len += rows->n_columns;
	return row;
}

static int sql_rows_order(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static bool sql_rows_passes(const struct ky_sql_condition *condition,
			    const struct ky_sql_cell *cell)
{
	int order;

	/* SQLite compares other types. */
	if (cell->type != condition->value.type)
		return cell->type != KY_SQL_NULL;
	if (cell->type == KY_SQL_TEXT)
		return cell->len == condition->value.len &&
		       memcmp(cell->text, condition->value.text, cell->len) == 0;
	order = sql_rows_order(cell->integer, condition->value.integer);
	switch (condition->op) {
	case KY_SQL_EQ:
		return order == 0;
	case KY_SQL_LT:
		return order < 0;
	case KY_SQL_LE:
		return order <= 0;
	case KY_SQL_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

bool ky_sql_rows_pass(const struct ky_sql_rows *rows, const struct ky_sql_cell *row)
{
	ky_vec_foreach(&rows->conditions, condition)
		if (!sql_rows_passes(condition, &row[condition->column]))
			return false;
	return true;
}

int ky_sql_rows_keep(struct ky_sql_rows *rows)
{
	if (ky_sql_rows_pass(rows, rows->cells.data + rows->cells.len - rows->n_columns))
		rows->n++;
	else
		rows->cells.len -= rows->n_columns;
	return 0;
}

int ky_sql_rows_add_condition(struct ky_sql_rows *rows, uint32_t column, enum ky_sql_operator op,
			      sqlite3_value *value)
{
	struct ky_sql_condition condition = {.column = column, .op = op};
	int type = ky_sqlite.sqlite3_value_type(value);

	if (type == SQLITE_INTEGER) {
		ky_sql_put(&condition.value, ky_sqlite.sqlite3_value_int64(value));
	} else if (type == SQLITE_TEXT && op == KY_SQL_EQ) {
		const char *text = (const char *)ky_sqlite.sqlite3_value_text(value);
		int len = ky_sqlite.sqlite3_value_bytes(value);

		condition.value.type = KY_SQL_TEXT;
		condition.value.len = (uint32_t)len;
		condition.value.text =
			text ? ky_arena_strndup(&rows->values, text, (size_t)len) : NULL;
		if (!condition.value.text)
			return KYMO_E_MEMORY;
	} else {
		return 0; /* SQLite compares */
	}
	return ky_vec_push(&rows->conditions, condition);
}

void ky_sql_put_name(struct ky_sql_cell *cell, const char *text)
{
	if (!text || !*text)
		return;
	cell->type = KY_SQL_TEXT;
	cell->is_borrowed = true;
	cell->len = (uint32_t)strlen(text);
	cell->text = text;
}

void ky_sql_put_text(struct ky_sql_rows *rows, struct ky_sql_cell *cell, const char *text,
		     size_t len)
{
	const char *copy = ky_arena_strndup(&rows->texts, text, len);

	rows->has_texts = true;
	rows->text_bytes += len + 1;
	if (!copy || len > INT32_MAX)
		return;
	cell->type = KY_SQL_TEXT;
	cell->len = (uint32_t)len;
	cell->text = copy;
}

void ky_sql_put_uuid(struct ky_sql_rows *rows, struct ky_sql_cell *cell, const uint8_t *uuid)
{
	char text[KY_UUID_TEXT_BYTES];

	(void)ky_format_uuid(text, uuid);
	ky_sql_put_text(rows, cell, text, strlen(text));
}

uint64_t ky_sql_cell_hash(const struct ky_sql_cell *cell)
{
	if (cell->type == KY_SQL_NULL)
		return 0;
	return cell->type == KY_SQL_TEXT ? ky_hash_bytes(cell->text, cell->len)
					 : ky_hash_u64((uint64_t)cell->integer + 1);
}

void ky_sql_cell_result(sqlite3_context *context, const struct ky_sql_cell *cell)
{
	if (cell->type == KY_SQL_INTEGER)
		ky_sqlite.sqlite3_result_int64(context, cell->integer);
	else if (cell->type == KY_SQL_REAL)
		ky_sqlite.sqlite3_result_double(context, cell->real);
	else if (cell->type == KY_SQL_TEXT)
		ky_sqlite.sqlite3_result_text(context, cell->text, (int)cell->len,
					      SQLITE_TRANSIENT);
	else
		ky_sqlite.sqlite3_result_null(context);
}
