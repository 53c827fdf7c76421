/* SPDX-License-Identifier: MIT */
#include "sql/sql-report.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql-report-parts.h"

/* ---- statements ----------------------------------------------------------------------- */

static int sql_report_table(struct ky_sql_report *own, const struct ky_sql_statement *statement,
			    const char *text, size_t len, struct kymo_error *err)
{
	size_t n = ky_sql_n_columns(statement);
	const char *copy = ky_arena_strndup(&own->arena, text, len);
	const char **names = calloc(n, sizeof(*names));
	int ret = copy && names ? 0 : ky_error_nomem(err);

	for (size_t i = 0; i < n && !ret; i++)
		names[i] = ky_sql_column_name(statement, i);
	if (!ret)
		ret = ky_sql_report_add_table(own, names, n, copy, err);
	free(names);
	return ret;
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

static int sql_report_rows(struct ky_sql_report *own, struct ky_sql_statement *statement,
			   struct ky_table *table)
{
	size_t n = ky_sql_n_columns(statement);
	struct ky_sql_value *values = calloc(n, sizeof(*values));
	uint64_t bytes = 0;
	int ret = values ? 1 : ky_error_nomem(&own->error), kept;

	while (ret > 0 && (ret = ky_sql_step(statement, &own->error)) > 0) {
		for (size_t i = 0; i < n; i++)
			ky_sql_get(statement, i, &values[i]);
		kept = ky_sql_report_put_row(table, values, n, &bytes, &own->error);
		ret = kept < 0 ? kept : ret;
	}
	free(values);
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
	struct ky_sql_report_table *from = &own->tables.data[i];
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
	ky_sql_report_fit_table(from, table);
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

int ky_sql_report_new_empty(const char *path, const char *text,
			    const struct ky_sql_parameter *parameters, size_t n,
			    struct ky_sql_report **out, struct kymo_error *err)
{
	static const struct ky_sql_parameter range[] = {{"begin", "0"}, {"end", "0"}};
	struct ky_sql_report *own = calloc(1, sizeof(*own));
	int ret;

	*out = own;
	if (!own)
		return ky_error_nomem(err);
	ky_arena_init(&own->arena);
	ret = sql_report_parameters(own, range, 2) < 0 ? ky_error_nomem(err) : 0;
	if (!ret)
		ret = ky_sql_report_read_head(own, text, err);
	if (!ret && sql_report_parameters(own, parameters, n) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = sql_report_fill_in(own, path, err);
	if (ret == KYMO_E_INVALID)
		ky_error_path(err, path);
	return ret;
}

int ky_sql_report_new(struct ky_sql *sql, const char *path, const char *text,
		      const struct ky_sql_parameter *parameters, size_t n,
		      struct ky_sql_report **out, struct kymo_error *err)
{
	int ret = ky_sql_report_new_empty(path, text, parameters, n, out, err);

	if (!ret) {
		(*out)->sql = sql;
		ret = sql_report_statements(*out, text, err);
		if (ret == KYMO_E_INVALID)
			ky_error_path(err, path);
	}
	if (ret < 0) {
		ky_sql_report_free(*out);
		*out = NULL;
	}
	return ret;
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
