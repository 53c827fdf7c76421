/* SPDX-License-Identifier: MIT */
/* What the tables of a store have in their columns. */
#include <string.h>

#include "analysis/reports/report.h"
#include "base/error.h"
#include "fleet/fleet-report-fields.h"
#include "fleet/fleet.h"

enum { SCHEMA_TABLE, SCHEMA_COLUMN, SCHEMA_TYPE, SCHEMA_ABOUT, SCHEMA_COLUMNS };

struct schema_run {
	const struct ky_sql_sink *sink;
	struct ky_arena arena;
};

/* Of all tables, and of those of reports. */
static const struct {
	const char *column, *about;
	bool of_reports;
} common[] = {
	{"trace", "the trace's name in the store", false},
	{"batch", "the number of the batch that brought the row", false},
	{"time", "the begin of the report's range, ns since 1970", true},
	{"end", "the end of the report's range, ns since 1970", true},
	{"host", "the machine's name", true},
};

static const char *schema_part(const struct ky_column *column, enum ky_fleet_part part)
{
	static const char *const parts[] = {[KY_FLEET_VALUE] = "%s",
					    [KY_FLEET_TID] = "%s (its thread id)",
					    [KY_FLEET_PID] = "%s (its process id)",
					    [KY_FLEET_COMM] = "%s (its name)",
					    [KY_FLEET_KIND] = "%s (its kind)",
					    [KY_FLEET_NR] = "%s (its number)"};

	if (column->cls == KY_CELL_RATIO || column->cls == KY_CELL_RATE)
		return "%s In millionths.";
	return column->cls == KY_CELL_DURATION ? "%s In ns." : parts[part];
}

static const char *schema_of_table(struct schema_run *run, const struct ky_table_def *def,
				   const char *column)
{
	struct ky_fleet_fields fields = KY_VEC_INIT;
	const char *about = "";

	if (ky_fleet_report_fields(&run->arena, def, &fields) == 0)
		ky_vec_foreach(&fields, field)
			if (strcmp(field->name, column) == 0)
				about = ky_arena_printf(
					&run->arena,
					schema_part(&def->columns[field->column], field->part),
					def->columns[field->column].help);
	ky_vec_fini(&fields);
	return about;
}

static const char *schema_of_report(struct schema_run *run, const char *table, const char *column)
{
	for (size_t i = 0; ky_reports[i]; i++)
		for (size_t t = 0; ky_reports[i]->tables[t]; t++) {
			const char *name = ky_fleet_report_table_name(
				&run->arena, ky_reports[i]->name, ky_reports[i]->tables[t]);

			if (name && strcmp(name, table) == 0)
				return schema_of_table(run, ky_reports[i]->tables[t], column);
		}
	return "";
}

static const char *schema_about(struct schema_run *run, const char *table, const char *column)
{
	bool is_report = strncmp(table, "report_", 7) == 0;
	const char *about;

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		if (strcmp(common[i].column, column) == 0 && (is_report || !common[i].of_reports))
			return common[i].about;
	about = is_report ? schema_of_report(run, table, column) : ky_sql_about(table, column);
	return about ? about : "";
}

static int schema_on_columns(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	static const char *const own[] = {"table", "column", "type", "about"};
	struct schema_run *run = data;

	(void)names;
	if (n != SCHEMA_ABOUT)
		return ky_error_set(err, KYMO_E_FORMAT, "the store's answer has %zu columns", n);
	return run->sink->columns(run->sink->data, own, SCHEMA_COLUMNS, err);
}

static int schema_on_row(void *data, const struct ky_sql_value *values, size_t n,
			 struct kymo_error *err)
{
	struct schema_run *run = data;
	struct ky_sql_value row[SCHEMA_COLUMNS];
	const char *table, *column;
	int ret;

	memcpy(row, values, n * sizeof(*row));
	ky_arena_init(&run->arena);
	table = ky_arena_strndup(&run->arena, values[SCHEMA_TABLE].text, values[SCHEMA_TABLE].len);
	column = ky_arena_strndup(&run->arena, values[SCHEMA_COLUMN].text,
				  values[SCHEMA_COLUMN].len);
	row[SCHEMA_ABOUT] = (struct ky_sql_value){.type = KY_SQL_TEXT};
	row[SCHEMA_ABOUT].text = table && column ? schema_about(run, table, column) : "";
	row[SCHEMA_ABOUT].len = strlen(row[SCHEMA_ABOUT].text);
	ret = run->sink->row(run->sink->data, row, SCHEMA_COLUMNS, err);
	ky_arena_fini(&run->arena);
	return ret;
}

int ky_fleet_schema(struct ky_fleet *store, const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct schema_run run = {.sink = sink};
	const struct ky_sql_sink own = {&run, schema_on_columns, schema_on_row};

	return ky_fleet_query(
		store,
		store->is_clickhouse
			? "SELECT table, name AS column, type FROM system.columns WHERE database = "
			  "currentDatabase() AND table NOT LIKE 'kymo%'"
			: "SELECT of AS \"table\", name AS column, CASE type WHEN 1 THEN 'text' "
			  "WHEN 2 THEN 'real' ELSE 'integer' END AS type FROM kymo_column ORDER BY of, number",
		&own, err);
}
