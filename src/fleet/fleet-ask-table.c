/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-ask-table.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

#define COLUMNS_MAX 32

/* ---- what is shown -------------------------------------------------------------------- */

static const struct ky_column host_column = {"host", "Host", KY_CELL_TEXT, "The host."};
static const struct ky_column hosts_column = {"hosts", "Hosts", KY_CELL_COUNT,
					      "How many hosts the row is of."};

/* Threads of several hosts have their names in common, and nothing else. */
static bool ask_table_wants(const struct ky_fleet_ask_table *table,
			    const struct ky_fleet_field *field)
{
	return !table->merges_hosts || (field->part != KY_FLEET_TID && field->part != KY_FLEET_PID);
}

static int ask_table_add_host(struct ky_fleet_ask_table *table, struct ky_column *columns)
{
	const struct ky_fleet_select select = {table->shown->n_columns, KY_FLEET_VALUE,
					       KY_FLEET_HOST, "host", NULL};

	columns[table->shown->n_columns++] = table->merges_hosts ? hosts_column : host_column;
	return ky_vec_push(&table->selects, select);
}

struct ask_fields {
	struct ky_fleet_fields all;
	const char *weight; /* the column that counts what means are of */
};

/* The column @i of @def, if the store has it. */
static int ask_table_add(struct ky_fleet_ask_table *table, const struct ky_table_def *def,
			 uint32_t i, const struct ask_fields *fields,
			 const struct ky_fleet_has *has, struct ky_column *columns)
{
	enum ky_fleet_merge merge = ky_fleet_merge_of(def, i);
	bool is_there = false;

	ky_vec_foreach(&fields->all, field) {
		const struct ky_fleet_select select = {table->shown->n_columns, field->part, merge,
						       field->name, fields->weight};

		if (field->column != i || !has->column(has->data, table->name, field->name))
			continue;
		is_there = true;
		if (ask_table_wants(table, field) && ky_vec_push(&table->selects, select) < 0)
			return KYMO_E_MEMORY;
	}
	if (!is_there)
		return KYMO_OK;
	columns[table->shown->n_columns++] = def->columns[i];
	return KYMO_OK;
}

static int ask_table_add_all(struct ky_fleet_ask_table *table, const struct ky_table_def *def,
			     const struct ask_fields *fields, const struct ky_fleet_has *has,
			     struct ky_column *columns)
{
	bool is_grouped = def->columns[0].group;
	int ret = KYMO_OK;

	/* A column that is a heading stays the first one. */
	for (uint32_t i = 0; i < def->n_columns && !ret; i++) {
		if (i == is_grouped)
			ret = ask_table_add_host(table, columns);
		if (!ret && table->shown->n_columns + 1 < COLUMNS_MAX)
			ret = ask_table_add(table, def, i, fields, has, columns);
	}
	return ret;
}

int ky_fleet_ask_table_init(struct ky_fleet_ask_table *table, struct ky_arena *arena,
			    const struct ky_fleet_ask *ask, const char *name,
			    const struct ky_table_def *def, const struct ky_fleet_has *has)
{
	struct ky_column *columns = ky_arena_array(arena, def->n_columns + 1, sizeof(*columns));
	struct ask_fields fields = {.weight = NULL};
	int count = ky_fleet_count_column(def), ret = KYMO_E_MEMORY;

	*table = (struct ky_fleet_ask_table){.ask = ask, .name = name};
	table->adds_up = def->kind != KY_TABLE_TOP && def->kind != KY_TABLE_LOG;
	table->merges_hosts = ask->merges_hosts && table->adds_up;
	table->shown = ky_arena_memdup(arena, def, sizeof(*def));
	if (count >= 0)
		fields.weight = def->columns[count].name;
	if (columns && table->shown) {
		table->shown->columns = columns;
		table->shown->n_columns = 0;
		ret = ky_fleet_report_fields(arena, def, &fields.all);
	}
	if (!ret)
		ret = ask_table_add_all(table, def, &fields, has, columns);
	ky_vec_fini(&fields.all);
	return ret;
}

void ky_fleet_ask_table_fini(struct ky_fleet_ask_table *table)
{
	ky_vec_fini(&table->selects);
}

/* ---- the statement -------------------------------------------------------------------- */

static void ask_put_call(struct ky_strbuf *text, const char *before, const char *name,
			 const char *after)
{
	ky_strbuf_adds(text, before); /* lint: own text */
	ky_fleet_put_name(text, name);
	ky_strbuf_adds(text, after); /* lint: own text */
}

/* The mean of @name, where each value counts as often as @weight says. */
static void ask_put_mean(struct ky_strbuf *text, const char *name, const char *weight)
{
	ask_put_call(text, "sum(1.0 * ", name, " * (");
	ky_strbuf_addf(text, "%s)) / sum(CASE WHEN ", weight);
	ask_put_call(text, "", name, " IS NULL THEN 0 ELSE ");
	ky_strbuf_addf(text, "%s END)", weight);
}

static void ask_put_value(struct ky_strbuf *text, const struct ky_fleet_ask_table *table,
			  const struct ky_fleet_select *select, bool is_clickhouse)
{
	struct ky_strbuf weight = KY_STRBUF_INIT;
	enum ky_fleet_merge merge = select->merge;

	if (!table->adds_up || (merge == KY_FLEET_HOST && !table->merges_hosts))
		merge = KY_FLEET_KEY;
	switch (merge) {
	case KY_FLEET_SUM:
		ask_put_call(text, "sum(", select->name, ")");
		break;
	case KY_FLEET_MOST:
		ask_put_call(text, "max(", select->name, ")");
		break;
	case KY_FLEET_LEAST:
		ask_put_call(text, "min(", select->name, ")");
		break;
	case KY_FLEET_MEAN:
		ky_fleet_put_name(&weight, select->weight);
		ask_put_mean(text, select->name, ky_strbuf_text(&weight));
		break;
	case KY_FLEET_OVER_TIME:
		ask_put_mean(text, select->name, "\"end\" - \"time\"");
		break;
	case KY_FLEET_ONLY:
		ask_put_call(text, "CASE WHEN count(*) = 1 THEN max(", select->name,
			     ") ELSE NULL END");
		break;
	case KY_FLEET_TALLY:
		ask_put_call(text,
			     is_clickhouse ? "arrayStringConcat(groupArray(" : "group_concat(",
			     select->name, is_clickhouse ? "), ', ')" : ", ', ')");
		break;
	case KY_FLEET_HOST:
		ask_put_call(text, "count(DISTINCT ", select->name, ")");
		break;
	default:
		ky_fleet_put_name(text, select->name);
	}
	ky_strbuf_fini(&weight);
}

/* Which columns rows of one group have in common. */
static bool ask_is_key(const struct ky_fleet_ask_table *table, const struct ky_fleet_select *select)
{
	return select->merge == KY_FLEET_KEY ||
	       (select->merge == KY_FLEET_HOST && !table->merges_hosts);
}

static void ask_put_groups(struct ky_strbuf *text, const struct ky_fleet_ask_table *table)
{
	const char *before = " GROUP BY ";

	ky_vec_foreach(&table->selects, select) {
		if (!table->adds_up || !ask_is_key(table, select))
			continue;
		ask_put_call(text, before, select->name, "");
		before = ", ";
	}
}

/* What the first rows are by: the column that people look at. -1: rows are in the order of their names. */
static int ask_sort_column(const struct ky_fleet_ask_table *table)
{
	const struct ky_report_options *options = table->ask->options;
	const struct ky_table_def *def = table->shown;
	enum ky_cell_class cls = def->kind == KY_TABLE_LOG ? KY_CELL_TIMESTAMP : KY_CELL_DURATION;

	if (options->sort && ky_table_column(def, options->sort) >= 0)
		return ky_table_column(def, options->sort);
	if (def->kind == KY_TABLE_TOP && ky_table_column(def, "duration") >= 0)
		return ky_table_column(def, "duration");
	if (def->kind == KY_TABLE_FIXED || def->kind == KY_TABLE_FREQ)
		return -1;
	for (size_t i = 0; i < def->n_columns && def->kind == KY_TABLE_RANK; i++)
		if (def->columns[i].bar != KY_BAR_NONE)
			return (int)i;
	for (size_t i = 0; i < def->n_columns; i++)
		if (def->columns[i].cls == cls)
			return (int)i;
	for (size_t i = 0; i < def->n_columns; i++)
		if (def->columns[i].cls == KY_CELL_COUNT || def->columns[i].cls == KY_CELL_SIZE)
			return (int)i;
	return -1;
}

static bool ask_is_ascending(const struct ky_fleet_ask_table *table)
{
	const struct ky_report_options *options = table->ask->options;

	return options->sort && ky_table_column(table->shown, options->sort) >= 0
		       ? options->ascending
		       : table->shown->kind == KY_TABLE_LOG;
}

/* Headings first, then what matters most, then names, so that the order is always the same. */
static void ask_put_order(struct ky_strbuf *text, const struct ky_fleet_ask_table *table)
{
	int sort = ask_sort_column(table);
	const char *before = " ORDER BY ";

	for (size_t i = 0; i < table->selects.len; i++)
		if (table->shown->columns[table->selects.data[i].column].group) {
			ky_strbuf_addf(text, "%skymo_%zu", before, i);
			before = ", ";
		}
	for (size_t i = 0; i < table->selects.len; i++)
		if ((int)table->selects.data[i].column == sort) {
			ky_strbuf_addf(text, "%skymo_%zu %s", before, i,
				       ask_is_ascending(table) ? "ASC" : "DESC");
			before = ", ";
			break;
		}
	for (size_t i = 0; i < table->selects.len; i++)
		if (ask_is_key(table, &table->selects.data[i])) {
			/* The engines differ in where NULL comes. */
			ky_strbuf_addf(text, "%skymo_%zu IS NULL, kymo_%zu", before, i, i);
			before = ", ";
		}
}

/* Rows that the engine may leave out; 0: none. Groups of rows have limits of their own. */
static uint64_t ask_limit(const struct ky_fleet_ask_table *table)
{
	return table->shown->columns[0].group
		       ? 0
		       : ky_report_table_limit(table->ask->options, table->shown);
}

static void ask_put_from(struct ky_strbuf *text, const struct ky_fleet_ask_table *table,
			 bool is_clickhouse, int64_t from_ns)
{
	ky_strbuf_adds(text, " FROM ");
	ky_fleet_put_name(text, table->name);
	ky_fleet_ask_put_where(text, table->ask, is_clickhouse, from_ns);
	ask_put_groups(text, table);
}

static void ask_put_statement(struct ky_strbuf *text, const struct ky_fleet_ask_table *table,
			      bool is_clickhouse, int64_t from_ns)
{
	ky_strbuf_adds(text,
		       table->adds_up ? "SELECT count(*) AS kymo_rows" : "SELECT 1 AS kymo_rows");
	for (size_t i = 0; i < table->selects.len; i++) {
		ky_strbuf_adds(text, ", ");
		ask_put_value(text, table, &table->selects.data[i], is_clickhouse);
		ky_strbuf_addf(text, " AS kymo_%zu", i);
	}
	ask_put_from(text, table, is_clickhouse, from_ns);
	ask_put_order(text, table);
	if (ask_limit(table))
		ky_strbuf_addf(text, " LIMIT %" PRIu64, ask_limit(table));
}

static int ask_no_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

/* ---- what is left --------------------------------------------------------------------- */

/* The share of each step in the steps of its heading and host. */
static void ask_find_shares(struct ky_table *to)
{
	int share = ky_table_column(to->def, "share"), count = ky_table_column(to->def, "count");
	size_t n_rows = ky_table_n_rows(to), n = to->def->n_columns;

	if (to->def->kind != KY_TABLE_FREQ || share < 0 || count < 0)
		return;
	for (size_t begin = 0, end; begin < n_rows; begin = end) {
		struct ky_cell *first = &to->cells.data[begin * n];
		double sum = 0;

		for (end = begin; end < n_rows; end++) {
			const struct ky_cell *cells = ky_table_cells(to, end);

			if (!ky_cell_equal(&cells[0], &first[0]) ||
			    (n > 1 && cells[1].type == KY_VALUE_TEXT &&
			     !ky_cell_equal(&cells[1], &first[1])))
				break;
			sum += ky_cell_number(&cells[count]);
		}
		for (size_t i = begin; i < end && sum > 0; i++) {
			struct ky_cell *cells = &to->cells.data[i * n];

			ky_cell_f64(&cells[share], ky_cell_number(&cells[count]) / sum);
		}
	}
}

static int ask_count_omitted(struct ky_fleet_ask_table *table, struct ky_fleet *store,
			     int64_t from_ns, struct ky_table *to, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t n = 0;
	int ret;

	ky_strbuf_adds(&text, "SELECT count(*) FROM (SELECT 1 AS kymo_row");
	ask_put_from(&text, table, store->is_clickhouse, from_ns);
	ky_strbuf_adds(&text, ") AS kymo_all");
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : ky_fleet_number(store, ky_strbuf_text(&text), &n, err);
	ky_strbuf_fini(&text);
	if (!ret && n > (int64_t)ky_table_n_rows(to))
		to->n_omitted = (size_t)n - ky_table_n_rows(to);
	return ret;
}

static void ask_arrange(const struct ky_fleet_ask_table *table, struct ky_table *to)
{
	int sort = ask_sort_column(table);

	if (!table->shown->columns[0].group)
		return;
	if (sort >= 0)
		ky_table_sort_groups(to, (size_t)sort, ask_is_ascending(table));
	ky_table_limit(to, ky_report_table_limit(table->ask->options, table->shown));
}

int ky_fleet_ask_table_run(struct ky_fleet_ask_table *table, struct ky_fleet *store,
			   int64_t from_ns, struct ky_table *to, struct kymo_error *err)
{
	struct ky_fleet_ask_run run = {.table = table, .to = to};
	const struct ky_sql_sink sink = {&run, ask_no_names, ky_fleet_ask_on_row};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ask_put_statement(&text, table, store->is_clickhouse, from_ns);
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : ky_fleet_query(store, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	if (ret < 0)
		return ret;
	ask_find_shares(to);
	ask_arrange(table, to);
	if (ask_limit(table) && ky_table_n_rows(to) == ask_limit(table))
		ret = ask_count_omitted(table, store, from_ns, to, err);
	return ret;
}
