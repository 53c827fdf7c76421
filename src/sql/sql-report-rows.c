/* SPDX-License-Identifier: MIT */
/* Tables and rows of a user's own report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql-report-parts.h"

/* ---- tables --------------------------------------------------------------------------- */

static const struct ky_sql_report_column *sql_report_declared(const struct ky_sql_report *own,
							      const char *name)
{
	ky_vec_foreach(&own->columns, column)
		if (strcmp(column->name, name) == 0)
			return column;
	return NULL;
}

static int sql_report_columns(struct ky_sql_report *own, const char *const *names, size_t n,
			      struct ky_sql_report_table *table)
{
	table->columns = ky_arena_array(&own->arena, n, sizeof(*table->columns));
	table->is_declared = ky_arena_array(&own->arena, n, sizeof(*table->is_declared));
	if (!table->columns || !table->is_declared)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		const char *name = ky_arena_strdup(&own->arena, names[i]);
		const struct ky_sql_report_column *declared =
			name ? sql_report_declared(own, name) : NULL;

		if (!name)
			return KYMO_E_MEMORY;
		table->is_declared[i] = declared;
		table->columns[i] = (struct ky_column){
			.name = name,
			.title = name,
			.cls = declared ? declared->cls : KY_CELL_TEXT,
			.help = declared ? declared->help : "As the statement says.",
		};
	}
	table->def.columns = table->columns;
	table->def.n_columns = n;
	return 0;
}

/* Room for all tables: results point to their definitions. */
static int sql_report_reserve(struct ky_sql_report *own)
{
	return own->tables.len ? 0 : ky_vec_reserve(&own->tables, KY_SQL_REPORT_TABLES_MAX);
}

int ky_sql_report_add_table(struct ky_sql_report *own, const char *const *names, size_t n,
			    const char *statement, struct kymo_error *err)
{
	struct ky_sql_report_table table = {.def = {.kind = KY_TABLE_RANK}, .statement = statement};
	size_t i = own->tables.len;

	if (i == KY_SQL_REPORT_TABLES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a report has at most %d statements",
				    KY_SQL_REPORT_TABLES_MAX);
	if (i < own->named.len) {
		table.def.name = own->named.data[i].name;
		table.def.title = own->named.data[i].text;
	} else {
		table.def.name = i ? ky_arena_printf(&own->arena, "rows%zu", i + 1) : "rows";
		table.def.title = own->title;
	}
	table.def.help = table.def.title;
	if (!table.def.name || sql_report_reserve(own) < 0 ||
	    sql_report_columns(own, names, n, &table) < 0 || ky_vec_push(&own->tables, table) < 0)
		return ky_error_nomem(err);
	own->defs[i] = &own->tables.data[i].def;
	return 0;
}

/* ---- rows ----------------------------------------------------------------------------- */

static void sql_report_cell(struct ky_table *table, struct ky_cell *cell,
			    const struct ky_sql_value *value)
{
	char *text;

	if (value->type == KY_SQL_INTEGER && value->integer >= 0)
		ky_cell_u64(cell, (uint64_t)value->integer);
	else if (value->type == KY_SQL_INTEGER)
		ky_cell_i64(cell, value->integer);
	else if (value->type == KY_SQL_REAL)
		ky_cell_f64(cell, value->real);
	if (value->type != KY_SQL_TEXT && value->type != KY_SQL_BLOB)
		return;
	text = strndup(value->text ? value->text : "", value->len);
	if (text)
		ky_cell_text(table, cell, text);
	else
		table->failed = true;
	free(text);
}

/* Times since 1970 are larger than any duration. */
#define TIME_LEAST_NS INT64_C(100000000000000000)

/* What columns of Kymo's own tables are, by their names; others are numbers. */
static enum ky_cell_class sql_report_guess(const char *name, const struct ky_table *table,
					   size_t column)
{
	static const struct {
		const char *name;
		enum ky_cell_class cls;
	} known[] = {{"duration", KY_CELL_DURATION}, {"bytes", KY_CELL_SIZE},
		     {"cpu", KY_CELL_CPU},	     {"tid", KY_CELL_PROCESS},
		     {"time", KY_CELL_TIMESTAMP},    {"end", KY_CELL_TIMESTAMP},
		     {"woken", KY_CELL_TIMESTAMP},   {"queued", KY_CELL_TIMESTAMP},
		     {"issued", KY_CELL_TIMESTAMP},  {"raised", KY_CELL_TIMESTAMP}};
	enum ky_cell_class cls = KY_CELL_NUMBER;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].name, name) == 0)
			cls = known[i].cls;
	for (size_t r = 0; r < ky_table_n_rows(table); r++) {
		const struct ky_cell *cell = &ky_table_cells(table, r)[column];

		if (cell->type == KY_VALUE_NONE)
			continue;
		if (cls != KY_CELL_NUMBER && cell->type != KY_VALUE_U64)
			return KY_CELL_NUMBER;
		if (cls == KY_CELL_TIMESTAMP && cell->s < TIME_LEAST_NS)
			return KY_CELL_NUMBER;
	}
	return cls;
}

/* Without a word of the file: a column of numbers has numbers. */
static void sql_report_choose_class(struct ky_sql_report_table *own, const struct ky_table *table,
				    size_t column)
{
	bool has_text = own->is_declared[column], has_number = false;

	for (size_t r = 0; r < ky_table_n_rows(table); r++) {
		enum ky_cell_type type = ky_table_cells(table, r)[column].type;

		has_text |= type == KY_VALUE_TEXT;
		has_number |= type != KY_VALUE_NONE;
	}
	if (has_number && !has_text)
		own->columns[column].cls =
			sql_report_guess(own->columns[column].name, table, column);
}

static void sql_report_fit_text(struct ky_table *table, struct ky_cell *cell)
{
	char text[40];

	if (cell->type == KY_VALUE_F64)
		snprintf(text, sizeof(text), "%.15g", cell->f);
	else
		snprintf(text, sizeof(text), "%lld", (long long)cell->s);
	ky_cell_text(table, cell, text);
}

/* A timestamp is a number with a sign; texts have no unit. */
static void sql_report_fit(struct ky_table *table, struct ky_cell *cell, enum ky_cell_class cls,
			   const char *comm)
{
	bool is_text = cls == KY_CELL_TEXT || cls == KY_CELL_PATH;

	if (cls == KY_CELL_TIMESTAMP && cell->type == KY_VALUE_U64)
		ky_cell_i64(cell, (int64_t)cell->u);
	else if (cls == KY_CELL_PROCESS && cell->type == KY_VALUE_U64)
		ky_cell_process(table, cell, (int32_t)cell->u, -1, comm, NULL);
	else if (is_text && cell->type != KY_VALUE_TEXT && cell->type != KY_VALUE_NONE)
		sql_report_fit_text(table, cell);
	else if (!is_text && cell->type == KY_VALUE_TEXT)
		*cell = (struct ky_cell){.type = KY_VALUE_NONE};
}

static void sql_report_fit_cell(struct ky_sql_report_table *own, struct ky_table *table, int comm,
				size_t n, size_t i)
{
	const struct ky_cell *name = comm < 0 ? NULL : &table->cells.data[i - i % n + (size_t)comm];

	sql_report_fit(table, &table->cells.data[i], own->columns[i % n].cls,
		       name && name->type == KY_VALUE_TEXT ? name->text : "");
}

void ky_sql_report_fit_table(struct ky_sql_report_table *own, struct ky_table *table)
{
	int comm = ky_table_column(&own->def, "comm");
	size_t n = own->def.n_columns;

	for (size_t c = 0; c < n; c++)
		sql_report_choose_class(own, table, c);
	for (size_t i = 0; i < table->cells.len; i++)
		sql_report_fit_cell(own, table, comm, n, i);
}

/* Rows of a report are in memory together. */
#define ROWS_MAX_BYTES (UINT64_C(256) << 20)

int ky_sql_report_put_row(struct ky_table *table, const struct ky_sql_value *values, size_t n,
			  uint64_t *bytes, struct kymo_error *err)
{
	struct ky_cell *row;

	if (ky_table_is_full(table)) {
		table->n_omitted++;
		return 0;
	}
	row = ky_table_row(table);
	for (size_t i = 0; i < n && i < table->def->n_columns; i++) {
		sql_report_cell(table, &row[i], &values[i]);
		*bytes += sizeof(*row) + values[i].len;
	}
	if (table->failed)
		return ky_error_nomem(err);
	if (*bytes > ROWS_MAX_BYTES)
		return ky_error_set(
			err, KYMO_E_LIMIT,
			"the rows of a report have more than 256 MiB; try LIMIT or fewer columns");
	return 0;
}
