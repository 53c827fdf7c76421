/* SPDX-License-Identifier: MIT */
/* Tables of a store for statements: they read batch by batch, of these the columns that a statement needs. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/fleet-block.h"
#include "fleet/fleet-local.h"
#include "sql/sql-pass.h"

/* Rows that wait for SQLite. */
#define PIECE_ROWS 4096

/* Columns of which a batch has one value. */
#define COLUMN_TRACE (-1)
#define COLUMN_BATCH (-2)

/* A column that is read. */
struct local_column {
	int64_t number; /* in the store, or one of these */
	bool is_read;
	enum ky_sql_type type;
	struct ky_fleet_vector vector;
};

struct local_reader {
	sqlite3_stmt *batches, *cells;
	struct local_column *columns; /* by column of the table */
	size_t n_columns;
	int time, end;	/* columns; -1: there are none */
	int64_t id;	/* of the batch */
	int64_t number; /* its "batch" */
	char trace[17];
	uint64_t n_rows, at;
	int64_t from_ns; /* earlier rows are gone; INT64_MIN: none */
};

/* A table of the store. */
struct local_source {
	struct ky_sql_source base;
	const int64_t *numbers; /* of the columns */
};

/* ---- batches -------------------------------------------------------------------------- */

static int fleet_local_read_fail(const struct ky_sql_pass *pass, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_IO, "the store cannot be read: %s",
			    ky_sqlite.sqlite3_errmsg(pass->table->sql->db));
}

static sqlite3_stmt *fleet_local_read_prepare(const struct ky_sql_pass *pass, const char *text,
					      struct kymo_error *err)
{
	sqlite3_stmt *statement = NULL;

	if (ky_sqlite.sqlite3_prepare_v2(pass->table->sql->db, text, -1, &statement, NULL) !=
	    SQLITE_OK)
		(void)fleet_local_read_fail(pass, err);
	return statement;
}

/* What the statement's conditions say of whole batches. */
static void fleet_local_read_bind(const struct ky_sql_pass *pass, struct local_reader *reader)
{
	int64_t from = INT64_MIN, to = INT64_MAX;

	(void)ky_sqlite.sqlite3_bind_text(reader->batches, 1, pass->table->name, -1, SQLITE_STATIC);
	ky_vec_foreach(&pass->rows.conditions, condition) {
		const struct ky_sql_cell *value = &condition->value;
		const char *name = pass->table->columns.data[condition->column].name;

		if (value->type == KY_SQL_TEXT && strcmp(name, "host") == 0)
			(void)ky_sqlite.sqlite3_bind_text(reader->batches, 4, value->text,
							  (int)value->len, SQLITE_STATIC);
		if (value->type != KY_SQL_INTEGER || (int)condition->column != reader->time)
			continue;
		if (condition->op != KY_SQL_LT && condition->op != KY_SQL_LE)
			from = value->integer > from ? value->integer : from;
		if (condition->op != KY_SQL_GT && condition->op != KY_SQL_GE)
			to = value->integer < to ? value->integer : to;
	}
	(void)ky_sqlite.sqlite3_bind_int64(reader->batches, 2, from);
	(void)ky_sqlite.sqlite3_bind_int64(reader->batches, 3, to);
}

static int fleet_local_read_open(struct ky_sql_pass *pass, struct kymo_error *err)
{
	const struct local_source *source = (const struct local_source *)pass->source;
	struct local_reader *reader = calloc(1, sizeof(*reader));

	pass->own = reader;
	if (reader)
		reader->columns = calloc(source->base.n_columns, sizeof(*reader->columns));
	if (!reader || !reader->columns)
		return ky_error_nomem(err);
	reader->n_columns = source->base.n_columns;
	reader->time = reader->end = -1;
	for (size_t i = 0; i < reader->n_columns; i++) {
		reader->columns[i].number = source->numbers[i];
		reader->columns[i].is_read = ky_sql_rows_uses(&pass->rows, (uint32_t)i);
		if (strcmp(source->base.columns[i].name, "time") == 0)
			reader->time = (int)i;
		if (strcmp(source->base.columns[i].name, "end") == 0)
			reader->end = (int)i;
	}
	/* Batches without bounds have rows of any time. */
	reader->batches = fleet_local_read_prepare(
		pass,
		"SELECT id, n_rows, from_ns, number, trace FROM kymo_batch WHERE of = ?1 AND n_left > 0 AND "
		"(first_ns IS NULL OR (last_ns >= ?2 AND first_ns <= ?3)) AND "
		"(?4 IS NULL OR host IS NULL OR host = ?4) ORDER BY id",
		err);
	reader->cells =
		fleet_local_read_prepare(pass, "SELECT data FROM kymo_cells WHERE id = ?1", err);
	if (!reader->batches || !reader->cells)
		return KYMO_E_IO;
	fleet_local_read_bind(pass, reader);
	return 1;
}

static void fleet_local_read_close(struct ky_sql_pass *pass)
{
	struct local_reader *reader = pass->own;

	if (!reader)
		return;
	(void)ky_sqlite.sqlite3_finalize(reader->batches);
	(void)ky_sqlite.sqlite3_finalize(reader->cells);
	for (size_t i = 0; i < reader->n_columns; i++)
		ky_fleet_vector_fini(&reader->columns[i].vector);
	free(reader->columns);
	free(reader);
}

/* ---- columns of a batch --------------------------------------------------------------- */

/* A column that the batch does not have is NULL. */
static int fleet_local_read_nulls(struct local_reader *reader, struct ky_fleet_vector *vector,
				  struct kymo_error *err)
{
	ky_vec_clear(&vector->numbers);
	ky_vec_clear(&vector->nulls);
	if (ky_vec_reserve(&vector->numbers, reader->n_rows + 1) < 0 ||
	    ky_vec_reserve(&vector->nulls, reader->n_rows + 1) < 0)
		return ky_error_nomem(err);
	memset(vector->numbers.data, 0, reader->n_rows * sizeof(*vector->numbers.data));
	memset(vector->nulls.data, 1, reader->n_rows);
	vector->numbers.len = vector->nulls.len = reader->n_rows;
	return KYMO_OK;
}

static int fleet_local_read_column(struct ky_sql_pass *pass, int i, struct kymo_error *err)
{
	struct local_reader *reader = pass->own;
	struct local_column *column = &reader->columns[i], *columns = reader->columns;
	const struct ky_fleet_vector *time = NULL, *end = NULL;
	uint64_t cells = (uint64_t)reader->id * KY_FLEET_COLUMNS_MAX + (uint64_t)column->number;
	int ret, step;

	if (reader->time >= 0 && i != reader->time)
		time = &columns[reader->time].vector;
	if (time && reader->end >= 0 && i != reader->end)
		end = &columns[reader->end].vector;
	(void)ky_sqlite.sqlite3_reset(reader->cells);
	(void)ky_sqlite.sqlite3_bind_int64(reader->cells, 1, (sqlite3_int64)cells);
	step = ky_sqlite.sqlite3_step(reader->cells);
	if (step == SQLITE_DONE)
		return fleet_local_read_nulls(reader, &column->vector, err);
	if (step != SQLITE_ROW)
		return fleet_local_read_fail(pass, err);
	ret = ky_fleet_block_decode(ky_sqlite.sqlite3_column_blob(reader->cells, 0),
				    (size_t)ky_sqlite.sqlite3_column_bytes(reader->cells, 0),
				    reader->n_rows, time, end, &column->vector, &column->type, err);
	(void)ky_sqlite.sqlite3_reset(reader->cells);
	return ret;
}

static bool local_is_stored(const struct local_column *column)
{
	return column->is_read && column->number >= 0;
}

/* The begin of intervals first, and their end: others may be differences to them. */
static int fleet_local_read_columns(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct local_reader *reader = pass->own;
	bool others = false;
	int ret = KYMO_OK;

	for (size_t i = 0; i < reader->n_columns; i++)
		others |= local_is_stored(&reader->columns[i]) && (int)i != reader->time;
	if (reader->time >= 0 &&
	    (others || reader->columns[reader->time].is_read || reader->from_ns != INT64_MIN))
		ret = fleet_local_read_column(pass, reader->time, err);
	if (!ret && reader->end >= 0 && others)
		ret = fleet_local_read_column(pass, reader->end, err);
	for (size_t i = 0; i < reader->n_columns && !ret; i++)
		if (local_is_stored(&reader->columns[i]) && (int)i != reader->time &&
		    (int)i != reader->end)
			ret = fleet_local_read_column(pass, (int)i, err);
	return ret;
}

/* The next batch. 1; 0: the last one is over. */
static int fleet_local_read_batch(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct local_reader *reader = pass->own;
	int ret = ky_sqlite.sqlite3_step(reader->batches);
	const unsigned char *trace;
	int64_t n_rows;

	if (ret == SQLITE_DONE)
		return 0;
	if (ret != SQLITE_ROW)
		return fleet_local_read_fail(pass, err);
	reader->id = ky_sqlite.sqlite3_column_int64(reader->batches, 0);
	trace = ky_sqlite.sqlite3_column_text(reader->batches, 4);
	n_rows = ky_sqlite.sqlite3_column_int64(reader->batches, 1);
	reader->from_ns = ky_sqlite.sqlite3_column_type(reader->batches, 2) == SQLITE_NULL
				  ? INT64_MIN
				  : ky_sqlite.sqlite3_column_int64(reader->batches, 2);
	if (n_rows < 0 || (uint64_t)n_rows > KY_FLEET_BLOCK_ROWS)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the store is damaged: a batch is too large");
	reader->n_rows = (uint64_t)n_rows;
	reader->number = ky_sqlite.sqlite3_column_int64(reader->batches, 3);
	(void)snprintf(reader->trace, sizeof(reader->trace), "%s",
		       trace ? (const char *)trace : "");
	reader->at = 0;
	ret = fleet_local_read_columns(pass, err);
	return ret < 0 ? ret : 1;
}

/* ---- rows ----------------------------------------------------------------------------- */

static bool fleet_local_read_passes(const struct local_column *column, uint64_t row,
				    const struct ky_sql_condition *condition)
{
	int64_t value = column->vector.numbers.data[row], with = condition->value.integer;

	if (ky_fleet_is_null(&column->vector, row))
		return false;
	/* Others are compared with the row. */
	if (column->type != KY_SQL_INTEGER || condition->value.type != KY_SQL_INTEGER)
		return true;
	switch (condition->op) {
	case KY_SQL_EQ:
		return value == with;
	case KY_SQL_LT:
		return value < with;
	case KY_SQL_LE:
		return value <= with;
	case KY_SQL_GT:
		return value > with;
	default:
		return value >= with;
	}
}

/* Most rows fall here, before they are made. */
static bool fleet_local_read_wants(const struct ky_sql_pass *pass, uint64_t row)
{
	const struct local_reader *reader = pass->own;

	if (reader->from_ns != INT64_MIN && reader->time >= 0 &&
	    reader->columns[reader->time].vector.numbers.data[row] < reader->from_ns)
		return false;
	ky_vec_foreach(&pass->rows.conditions, condition)
		if (local_is_stored(&reader->columns[condition->column]) &&
		    !fleet_local_read_passes(&reader->columns[condition->column], row, condition))
			return false;
	return true;
}

/* The batch's texts live as long as its rows wait, unless all rows are remembered. */
static void fleet_local_read_cell(struct ky_sql_pass *pass, struct ky_sql_cell *cell,
				  const struct local_column *column, uint64_t row)
{
	const struct local_reader *reader = pass->own;
	const char *text;
	int64_t value;
	size_t len;

	if (column->number == COLUMN_BATCH)
		ky_sql_put(cell, reader->number);
	else if (column->number == COLUMN_TRACE)
		ky_sql_put_text(&pass->rows, cell, reader->trace, strlen(reader->trace));
	if (column->number < 0)
		return;
	value = column->vector.numbers.data[row];
	if (ky_fleet_is_null(&column->vector, row))
		return;
	if (column->type == KY_SQL_INTEGER)
		ky_sql_put(cell, value);
	if (column->type == KY_SQL_REAL) {
		cell->type = KY_SQL_REAL;
		cell->real = ky_fleet_real(value);
	}
	if (column->type != KY_SQL_TEXT)
		return;
	text = ky_fleet_text(&column->vector, value, &len);
	if (pass->is_remembered) {
		ky_sql_put_text(&pass->rows, cell, text, len);
		return;
	}
	cell->type = KY_SQL_TEXT;
	cell->len = (uint32_t)len;
	cell->text = text;
}

static int fleet_local_read_row(struct ky_sql_pass *pass, uint64_t row)
{
	const struct local_reader *reader = pass->own;
	struct ky_sql_cell *cells = ky_sql_rows_new(&pass->rows);

	if (!cells)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < reader->n_columns; i++)
		if (reader->columns[i].is_read)
			fleet_local_read_cell(pass, &cells[i], &reader->columns[i], row);
	return ky_sql_rows_keep(&pass->rows);
}

static int fleet_local_read_next(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct local_reader *reader = pass->own;
	uint64_t until;
	int ret = 1;

	if (reader->at >= reader->n_rows)
		ret = fleet_local_read_batch(pass, err);
	if (ret <= 0)
		return ret;
	until = reader->n_rows - reader->at > PIECE_ROWS ? reader->at + PIECE_ROWS : reader->n_rows;
	for (; reader->at < until; reader->at++)
		if (fleet_local_read_wants(pass, reader->at) &&
		    fleet_local_read_row(pass, reader->at) < 0)
			return ky_error_nomem(err);
	return 1;
}

/* ---- tables --------------------------------------------------------------------------- */

KY_VEC_TYPE(local_columns, struct ky_sql_column);
KY_VEC_TYPE(local_numbers, int64_t);

static int fleet_local_read_add(struct ky_sql *sql, const char *name,
				const struct local_columns *columns,
				const struct local_numbers *numbers)
{
	struct local_source *source = ky_arena_new(&sql->arena, struct local_source);

	if (!source)
		return KYMO_E_MEMORY;
	source->base = (struct ky_sql_source){
		.name = name,
		.about = "rows of the store",
		.columns = ky_arena_memdup(&sql->arena, columns->data,
					   columns->len * sizeof(*columns->data)),
		.n_columns = columns->len,
		.open = fleet_local_read_open,
		.next = fleet_local_read_next,
		.close = fleet_local_read_close,
	};
	source->numbers =
		ky_arena_memdup(&sql->arena, numbers->data, numbers->len * sizeof(*numbers->data));
	return source->base.columns && source->numbers ? ky_sql_add_table(sql, &source->base)
						       : KYMO_E_MEMORY;
}

/* A store may come from elsewhere: a name that is no word becomes one. */
static char *fleet_local_read_word(struct ky_sql *sql, const char *name)
{
	char *word = ky_arena_strdup(&sql->arena, name ? name : "");

	for (char *at = word; at && *at; at++)
		if (!isalnum((unsigned char)*at) || !isascii((unsigned char)*at))
			*at = '_';
	return word;
}

static const char *fleet_local_read_type(int64_t type)
{
	return type == KY_FLEET_TYPE_TEXT   ? "TEXT"
	       : type == KY_FLEET_TYPE_REAL ? "REAL"
					    : "INTEGER";
}

static int fleet_local_read_line(struct ky_sql *sql, sqlite3_stmt *lines,
				 struct local_columns *columns, struct local_numbers *numbers)
{
	const char *name = (const char *)ky_sqlite.sqlite3_column_text(lines, 2);
	struct ky_sql_column column = {
		.name = fleet_local_read_word(sql, name),
		.type = fleet_local_read_type(ky_sqlite.sqlite3_column_int64(lines, 3)),
		.about = "",
		.kind = name && strcmp(name, "time") == 0 ? KY_SQL_TIME : KY_SQL_MADE,
	};

	return column.name && ky_vec_push(columns, column) == 0 &&
			       ky_vec_push(numbers, ky_sqlite.sqlite3_column_int64(lines, 1)) == 0
		       ? KYMO_OK
		       : KYMO_E_MEMORY;
}

/* What ClickHouse's tables have, too. */
static int fleet_local_read_own(struct local_columns *columns, struct local_numbers *numbers)
{
	const struct ky_sql_column trace = {.name = "trace", .type = "TEXT", .about = ""};
	const struct ky_sql_column batch = {.name = "batch", .type = "INTEGER", .about = ""};

	return ky_vec_push(columns, trace) == 0 && ky_vec_push(numbers, COLUMN_TRACE) == 0 &&
			       ky_vec_push(columns, batch) == 0 &&
			       ky_vec_push(numbers, COLUMN_BATCH) == 0
		       ? KYMO_OK
		       : KYMO_E_MEMORY;
}

static int fleet_local_read_tables(struct ky_sql *sql, sqlite3_stmt *lines)
{
	struct local_columns columns = KY_VEC_INIT;
	struct local_numbers numbers = KY_VEC_INIT;
	const char *name = NULL;
	int ret = KYMO_OK, step = SQLITE_DONE;

	while (!ret && (step = ky_sqlite.sqlite3_step(lines)) == SQLITE_ROW) {
		const char *of = (const char *)ky_sqlite.sqlite3_column_text(lines, 0);

		of = of ? of : "";
		if (name && strcmp(of, name) != 0) {
			ret = fleet_local_read_add(sql, name, &columns, &numbers);
			ky_vec_clear(&columns);
			ky_vec_clear(&numbers);
		}
		if (!columns.len) {
			name = ky_arena_strdup(&sql->arena, of);
			ret = ret ? ret : fleet_local_read_own(&columns, &numbers);
		}
		if (!ret)
			ret = name ? fleet_local_read_line(sql, lines, &columns, &numbers)
				   : KYMO_E_MEMORY;
	}
	if (!ret && step != SQLITE_DONE)
		ret = KYMO_E_IO;
	if (!ret && columns.len)
		ret = fleet_local_read_add(sql, name, &columns, &numbers);
	ky_vec_fini(&columns);
	ky_vec_fini(&numbers);
	return ret;
}

int ky_fleet_local_open_sql(struct ky_fleet_local *local, struct kymo_error *err)
{
	sqlite3_stmt *lines = NULL;
	int ret = ky_sql_open_file(local->path, &local->sql, err);

	if (ret < 0)
		return ret;
	if (ky_sqlite.sqlite3_prepare_v2(local->sql->db,
					 "SELECT of, number, name, type FROM kymo_column ORDER BY "
					 "of, number",
					 -1, &lines, NULL) != SQLITE_OK) {
		ky_error_set(err, KYMO_E_FORMAT,
			     "this is no store of Kymo, or of an earlier version");
		ky_error_path(err, local->path);
		return KYMO_E_FORMAT;
	}
	ret = fleet_local_read_tables(local->sql, lines);
	if (ret == KYMO_E_IO) {
		ky_error_set(err, ret, "the store cannot be read: %s",
			     ky_sqlite.sqlite3_errmsg(local->sql->db));
		ky_error_path(err, local->path);
	}
	(void)ky_sqlite.sqlite3_finalize(lines);
	return ret < 0 && ret != KYMO_E_IO ? ky_error_nomem(err) : ret;
}
