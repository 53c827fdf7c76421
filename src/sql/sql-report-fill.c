/* SPDX-License-Identifier: MIT */
/* The rows of another engine become the tables of a user's own report. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "sql/sql-report-parts.h"

int ky_sql_report_set_range(struct ky_sql_report *own, int64_t begin_ns, int64_t end_ns,
			    struct kymo_error *err)
{
	struct ky_sql_parameter begin = {"begin",
					 ky_arena_printf(&own->arena, "%" PRId64, begin_ns)};
	struct ky_sql_parameter end = {"end", ky_arena_printf(&own->arena, "%" PRId64, end_ns)};

	return begin.value && end.value && ky_vec_push(&own->parameters, begin) == 0 &&
			       ky_vec_push(&own->parameters, end) == 0
		       ? KYMO_OK
		       : ky_error_nomem(err);
}

const struct ky_sql_parameter *ky_sql_report_parameters(const struct ky_sql_report *own, size_t *n)
{
	*n = own->parameters.len;
	return own->parameters.data;
}

int ky_sql_report_fill_begin(struct ky_sql_report_fill *fill, struct kymo_error *err)
{
	fill->result->report = &fill->own->report;
	fill->result->n_tables = 0;
	fill->result->tables = calloc(KY_SQL_REPORT_TABLES_MAX, sizeof(*fill->result->tables));
	return fill->result->tables ? KYMO_OK : ky_error_nomem(err);
}

static int sql_report_fill_columns(void *data, const char *const *names, size_t n,
				   struct kymo_error *err)
{
	struct ky_sql_report_fill *fill = data;
	struct ky_report_result *result = fill->result;
	size_t i = fill->own->tables.len;
	struct ky_table *table = &result->tables[i];
	int ret = ky_sql_report_add_table(fill->own, names, n, NULL, err);

	if (ret < 0)
		return ret;
	ky_table_init(table, fill->own->defs[i]);
	result->n_tables++;
	table->hidden = !ky_report_wants(fill->options, &fill->own->report, i);
	if (!fill->options->sort)
		table->max_kept = ky_report_table_limit(fill->options, table->def);
	fill->bytes = 0;
	return KYMO_OK;
}

static int sql_report_fill_row(void *data, const struct ky_sql_value *values, size_t n,
			       struct kymo_error *err)
{
	struct ky_sql_report_fill *fill = data;
	struct ky_table *table = &fill->result->tables[fill->result->n_tables - 1];

	return table->hidden ? KYMO_OK : ky_sql_report_put_row(table, values, n, &fill->bytes, err);
}

struct ky_sql_sink ky_sql_report_sink(struct ky_sql_report_fill *fill)
{
	return (struct ky_sql_sink){fill, sql_report_fill_columns, sql_report_fill_row};
}

int ky_sql_report_fill_end(struct ky_sql_report_fill *fill, struct kymo_error *err)
{
	const struct ky_report_options *options = fill->options;

	for (size_t i = 0; i < fill->result->n_tables; i++) {
		struct ky_table *table = &fill->result->tables[i];
		int column = options->sort ? ky_table_column(table->def, options->sort) : -1;

		ky_sql_report_fit_table(&fill->own->tables.data[i], table);
		if (column >= 0)
			ky_table_sort(table, (size_t)column, options->ascending);
		ky_table_limit(table, ky_report_table_limit(options, table->def));
		if (ky_table_status(table) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}
