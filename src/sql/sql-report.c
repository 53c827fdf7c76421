/* SPDX-License-Identifier: MIT */
#include "sql/sql-report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define TABLES_MAX 32

/* What a line "column" says. */
struct report_column {
	const char *name, *help;
	enum ky_cell_class cls;
};

struct report_named {
	const char *name, *text;
};

struct report_table {
	struct ky_table_def def;
	struct ky_column *columns;
	bool *is_declared; /* by column: the file says its class */
	const char *statement;
};

struct ky_sql_report {
	struct ky_report report;
	struct ky_sql *sql;
	struct ky_arena arena;
	const char *title, *about;
	KY_VEC(struct report_column) columns;
	KY_VEC(struct report_named) named; /* tables of the head */
	KY_VEC(struct ky_sql_parameter) parameters;
	KY_VEC(struct report_table) tables;
	const struct ky_table_def *defs[TABLES_MAX + 1];
	struct kymo_error error;
};

/* ---- the head ------------------------------------------------------------------------- */

/* A copy without blanks at both ends. */
static const char *sql_report_trim(struct ky_arena *arena, const char *text, size_t len)
{
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return ky_arena_strndup(arena, text, len);
}

static bool sql_report_class(const char *text, size_t len, enum ky_cell_class *cls)
{
	/* Those that have a number or a text as their value. */
	static const enum ky_cell_class classes[] = {
		KY_CELL_TEXT,  KY_CELL_COUNT,	  KY_CELL_NUMBER, KY_CELL_DURATION,
		KY_CELL_RATIO, KY_CELL_TIMESTAMP, KY_CELL_CPU,	  KY_CELL_SIZE,
		KY_CELL_RATE,  KY_CELL_ADDRESS,	  KY_CELL_PATH};

	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		const char *name = ky_cell_class_text(classes[i]);

		*cls = classes[i];
		if (strlen(name) == len && memcmp(name, text, len) == 0)
			return true;
	}
	return false;
}

/* "took duration" */
static int sql_report_add_column(struct ky_sql_report *own, const char *words, size_t len,
				 const char *help, struct kymo_error *err)
{
	const char *trimmed = sql_report_trim(&own->arena, words, len);
	const char *blank = trimmed ? strrchr(trimmed, ' ') : NULL;
	struct report_column column = {.help = help};

	if (!trimmed || !help)
		return ky_error_nomem(err);
	if (!blank || !sql_report_class(blank + 1, strlen(blank + 1), &column.cls))
		return ky_error_set(
			err, KYMO_E_INVALID,
			"'-- column %s': 'NAME CLASS: TEXT' is expected, with a class "
			"such as duration, timestamp, size, count, number, ratio or text",
			trimmed);
	column.name = sql_report_trim(&own->arena, trimmed, (size_t)(blank - trimmed));
	if (!column.name || ky_vec_push(&own->columns, column) < 0)
		return ky_error_nomem(err);
	return 0;
}

/* "least=1000" */
static int sql_report_add_parameter(struct ky_sql_report *own, const char *words, size_t len,
				    struct kymo_error *err)
{
	const char *equals = memchr(words, '=', len);
	struct ky_sql_parameter parameter;

	if (!equals)
		return ky_error_set(err, KYMO_E_INVALID, "'-- param': NAME=VALUE is expected");
	parameter.name = sql_report_trim(&own->arena, words, (size_t)(equals - words));
	parameter.value =
		sql_report_trim(&own->arena, equals + 1, len - (size_t)(equals + 1 - words));
	if (!parameter.name || !parameter.value || ky_vec_push(&own->parameters, parameter) < 0)
		return ky_error_nomem(err);
	return 0;
}

static int sql_report_add_table(struct ky_sql_report *own, const char *words, size_t len,
				const char *title, struct kymo_error *err)
{
	struct report_named named = {sql_report_trim(&own->arena, words, len), title};

	if (!named.name || !title || ky_vec_push(&own->named, named) < 0)
		return ky_error_nomem(err);
	return 0;
}

#define ABOUT_MAX_BYTES 4096

static int sql_report_add_about(struct ky_sql_report *own, const char *text, struct kymo_error *err)
{
	/* Each line copies those before. */
	if (own->about && strlen(own->about) > ABOUT_MAX_BYTES)
		return ky_error_set(err, KYMO_E_LIMIT, "the description has more than 4096 bytes");
	own->about = own->about ? ky_arena_printf(&own->arena, "%s %s", own->about, text) : text;
	return text && own->about ? 0 : ky_error_nomem(err);
}

static bool sql_report_is(const char *line, const char *word)
{
	size_t len = strlen(word);

	return strncmp(line, word, len) == 0 && (line[len] == ':' || line[len] == ' ');
}

/* A line of the head, behind "--". Others are comments. */
static int sql_report_line(struct ky_sql_report *own, const char *line, size_t len,
			   struct kymo_error *err)
{
	const char *colon = memchr(line, ':', len), *rest = NULL;

	if (sql_report_is(line, "param"))
		return sql_report_add_parameter(own, line + 5, len - 5, err);
	if (!colon)
		return 0;
	rest = sql_report_trim(&own->arena, colon + 1, len - (size_t)(colon + 1 - line));
	if (!rest)
		return ky_error_nomem(err);
	if (sql_report_is(line, "title"))
		own->title = rest;
	else if (sql_report_is(line, "about"))
		return sql_report_add_about(own, rest, err);
	else if (sql_report_is(line, "column"))
		return sql_report_add_column(own, line + 6, (size_t)(colon - line) - 6, rest, err);
	else if (sql_report_is(line, "table"))
		return sql_report_add_table(own, line + 5, (size_t)(colon - line) - 5, rest, err);
	return 0;
}

static int sql_report_head(struct ky_sql_report *own, const char *text, struct kymo_error *err)
{
	int ret = 0;

	for (uint32_t number = 1; *text && !ret; number++) {
		size_t len = strcspn(text, "\n");

		if (len >= 2 && text[0] == '-' && text[1] == '-') {
			const char *line = text + 2;
			size_t rest = len - 2;

			for (; rest && *line == ' '; rest--)
				line++;
			ret = sql_report_line(own, line, rest, err);
		} else if (strspn(text, " \t\r") < len) {
			break;
		}
		if (ret == KYMO_E_INVALID)
			ky_error_line(err, number, 1);
		text += len + (text[len] == '\n');
	}
	return ret;
}

char *ky_sql_report_title(const char *text)
{
	struct ky_sql_report own = {.sql = NULL};
	char *title;

	ky_arena_init(&own.arena);
	(void)sql_report_head(&own, text, NULL);
	title = strdup(own.title ? own.title : "");
	ky_vec_fini(&own.columns);
	ky_vec_fini(&own.named);
	ky_vec_fini(&own.parameters);
	ky_arena_fini(&own.arena);
	return title;
}

/* ---- the tables ----------------------------------------------------------------------- */

static const struct report_column *sql_report_declared(const struct ky_sql_report *own,
						       const char *name)
{
	ky_vec_foreach(&own->columns, column)
		if (strcmp(column->name, name) == 0)
			return column;
	return NULL;
}

static int sql_report_columns(struct ky_sql_report *own, const struct ky_sql_statement *statement,
			      struct report_table *table)
{
	size_t n = ky_sql_n_columns(statement);

	table->columns = ky_arena_array(&own->arena, n, sizeof(*table->columns));
	table->is_declared = ky_arena_array(&own->arena, n, sizeof(*table->is_declared));
	if (!table->columns || !table->is_declared)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		const char *name = ky_arena_strdup(&own->arena, ky_sql_column_name(statement, i));
		const struct report_column *declared = name ? sql_report_declared(own, name) : NULL;

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

static int sql_report_table(struct ky_sql_report *own, const struct ky_sql_statement *statement,
			    const char *text, size_t len, struct kymo_error *err)
{
	struct report_table table = {.def = {.kind = KY_TABLE_RANK}};
	size_t i = own->tables.len;

	if (i == TABLES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "a report has at most %d statements",
				    TABLES_MAX);
	table.statement = ky_arena_strndup(&own->arena, text, len);
	if (i < own->named.len) {
		table.def.name = own->named.data[i].name;
		table.def.title = own->named.data[i].text;
	} else {
		table.def.name = i ? ky_arena_printf(&own->arena, "rows%zu", i + 1) : "rows";
		table.def.title = own->title;
	}
	table.def.help = table.def.title;
	if (!table.statement || !table.def.name || sql_report_columns(own, statement, &table) < 0 ||
	    ky_vec_push(&own->tables, table) < 0)
		return ky_error_nomem(err);
	return 0;
}

static int sql_report_statements(struct ky_sql_report *own, const char *text,
				 struct kymo_error *err)
{
	const char *at = text, *rest;
	int ret = 0;

	while (*at && !ret) {
		struct ky_sql_statement *statement;

		ret = ky_sql_prepare(own->sql, at, &rest, &statement, err);
		if (!ret && statement && ky_sql_n_columns(statement))
			ret = sql_report_table(own, statement, at, (size_t)(rest - at), err);
		ky_sql_finish(statement);
		at = rest;
	}
	if (!ret && !own->tables.len)
		ret = ky_error_set(err, KYMO_E_INVALID, "the file has no SELECT");
	return ret;
}

/* ---- the run -------------------------------------------------------------------------- */

static void *sql_report_begin(struct ky_model *model, const struct ky_report_options *options)
{
	(void)model;
	(void)options;
	return calloc(1, 1);
}

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
static void sql_report_choose_class(struct report_table *own, const struct ky_table *table,
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

static void sql_report_fit_cell(struct report_table *own, struct ky_table *table, int comm,
				size_t n, size_t i)
{
	const struct ky_cell *name = comm < 0 ? NULL : &table->cells.data[i - i % n + (size_t)comm];

	sql_report_fit(table, &table->cells.data[i], own->columns[i % n].cls,
		       name && name->type == KY_VALUE_TEXT ? name->text : "");
}

static void sql_report_finish_columns(struct report_table *own, struct ky_table *table)
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

static int sql_report_rows(struct ky_sql_report *own, struct ky_sql_statement *statement,
			   struct ky_table *table)
{
	size_t n = ky_sql_n_columns(statement);
	uint64_t bytes = 0;
	int ret;

	while ((ret = ky_sql_step(statement, &own->error)) > 0) {
		struct ky_cell *row;

		if (ky_table_is_full(table)) {
			table->n_omitted++;
			continue;
		}
		row = ky_table_row(table);
		for (size_t i = 0; i < n; i++) {
			struct ky_sql_value value;

			ky_sql_get(statement, i, &value);
			sql_report_cell(table, &row[i], &value);
			bytes += sizeof(*row) + value.len;
		}
		if (table->failed)
			return ky_error_nomem(&own->error);
		if (bytes > ROWS_MAX_BYTES)
			return ky_error_set(
				&own->error, KYMO_E_LIMIT,
				"the rows of a report have more than 256 MiB; try LIMIT "
				"or fewer columns");
	}
	return ret;
}

/* The range of the report is two parameters. */
static int sql_report_bind(struct ky_sql_report *own, struct ky_sql_statement *statement,
			   const struct ky_report_options *options)
{
	const char *name;
	int ret = 0;

	for (size_t i = 0; !ret && (name = ky_sql_parameter_name(statement, i)) != NULL; i++) {
		struct ky_sql_value value = {.type = KY_SQL_INTEGER};
		bool is_begin = strcmp(name, "begin") == 0;

		if (!is_begin && strcmp(name, "end") != 0)
			continue;
		value.integer = is_begin ? options->focus.begin_ns : options->focus.end_ns;
		ret = ky_sql_bind(statement, NULL, i, &value, &own->error);
	}
	return ret;
}

static int sql_report_fill(struct ky_sql_report *own, size_t i,
			   const struct ky_report_options *options, struct ky_table *table)
{
	struct report_table *from = &own->tables.data[i];
	struct ky_sql_statement *statement;
	int ret = ky_sql_prepare(own->sql, from->statement, NULL, &statement, &own->error);

	if (!ret)
		ret = ky_sql_bind_all(statement, own->parameters.data, own->parameters.len,
				      &own->error);
	if (!ret)
		ret = sql_report_bind(own, statement, options);
	if (!ret)
		ret = sql_report_rows(own, statement, table);
	ky_sql_finish(statement);
	sql_report_finish_columns(from, table);
	return ret;
}

static int sql_report_finish(void *run, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	struct ky_sql_report *own = (struct ky_sql_report *)(uintptr_t)result->report;
	int ret = 0;

	(void)run;
	for (size_t i = 0; i < own->tables.len && ret >= 0; i++)
		ret = sql_report_fill(own, i, options, &result->tables[i]);
	return ret;
}

/* ---- making --------------------------------------------------------------------------- */

/* "./dir/my.sql" is report my. */
static const char *sql_report_name(struct ky_arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	if (len > 4 && strcmp(name + len - 4, ".sql") == 0)
		len -= 4;
	return ky_arena_strndup(arena, name, len);
}

/* The last value of a parameter counts: the range is always there, then comes the file, then the user. */
static int sql_report_parameters(struct ky_sql_report *own,
				 const struct ky_sql_parameter *parameters, size_t n)
{
	if (ky_vec_reserve(&own->parameters, n) < 0)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct ky_sql_parameter *to = &own->parameters.data[own->parameters.len++];

		to->name = ky_arena_strdup(&own->arena, parameters[i].name);
		to->value = ky_arena_strdup(&own->arena, parameters[i].value);
		if (!to->name || !to->value)
			return KYMO_E_MEMORY;
	}
	return 0;
}

static int sql_report_fill_in(struct ky_sql_report *own, const char *path, struct kymo_error *err)
{
	struct ky_report *report = &own->report;

	report->name = sql_report_name(&own->arena, path);
	if (!report->name)
		return ky_error_nomem(err);
	if (!own->title)
		own->title = report->name;
	report->summary = own->title;
	report->description = own->about ? own->about : own->title;
	report->events = report->reading = report->example = "";
	report->tables = own->defs;
	report->needs_text = report->needs_hint = "";
	report->ignores = KY_IGNORES_BY | KY_IGNORES_DURATION;
	report->begin = sql_report_begin;
	report->finish = sql_report_finish;
	report->free = free;
	return 0;
}

int ky_sql_report_new(struct ky_sql *sql, const char *path, const char *text,
		      const struct ky_sql_parameter *parameters, size_t n,
		      struct ky_sql_report **out, struct kymo_error *err)
{
	static const struct ky_sql_parameter range[] = {{"begin", "0"}, {"end", "0"}};
	struct ky_sql_report *own = calloc(1, sizeof(*own));
	int ret;

	*out = NULL;
	if (!own)
		return ky_error_nomem(err);
	own->sql = sql;
	ky_arena_init(&own->arena);
	ret = sql_report_parameters(own, range, 2) < 0 ? ky_error_nomem(err) : 0;
	if (!ret)
		ret = sql_report_head(own, text, err);
	if (!ret && sql_report_parameters(own, parameters, n) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = sql_report_fill_in(own, path, err);
	if (!ret)
		ret = sql_report_statements(own, text, err);
	if (ret < 0) {
		if (ret == KYMO_E_INVALID)
			ky_error_path(err, path);
		ky_sql_report_free(own);
		return ret;
	}
	for (size_t i = 0; i < own->tables.len; i++)
		own->defs[i] = &own->tables.data[i].def;
	*out = own;
	return KYMO_OK;
}

void ky_sql_report_free(struct ky_sql_report *own)
{
	if (!own)
		return;
	ky_vec_fini(&own->columns);
	ky_vec_fini(&own->named);
	ky_vec_fini(&own->parameters);
	ky_vec_fini(&own->tables);
	ky_arena_fini(&own->arena);
	free(own);
}

const struct ky_report *ky_sql_report(const struct ky_sql_report *own)
{
	return &own->report;
}

const struct kymo_error *ky_sql_report_error(const struct ky_sql_report *own)
{
	return &own->error;
}
