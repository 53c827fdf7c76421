/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reports/report-options.h"
#include "base/error.h"
#include "base/hash.h"
#include "fleet/fleet-ask-table.h"

struct ask {
	const struct ky_fleet_ask *of;
	struct ky_fleet *store;
	struct ky_fleet_answer *answer;
	struct ky_names known; /* "table", "table.column" */
	int64_t from_ns;
};

/* ---- what the store has --------------------------------------------------------------- */

int ky_fleet_ask_skip_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

static int ask_on_column(void *data, const struct ky_sql_value *row, size_t n,
			 struct kymo_error *err)
{
	struct ask *ask = data;
	char *table, *column;

	if (n < 2 || row[0].type != KY_SQL_TEXT || row[1].type != KY_SQL_TEXT)
		return KYMO_OK;
	table = ky_arena_printf(&ask->answer->arena, "%.*s", (int)row[0].len, row[0].text);
	column = ky_arena_printf(&ask->answer->arena, "%.*s.%.*s", (int)row[0].len, row[0].text,
				 (int)row[1].len, row[1].text);
	if (!table || !column || ky_names_set(&ask->known, table, ask) < 0 ||
	    ky_names_set(&ask->known, column, ask) < 0)
		return ky_error_nomem(err);
	return KYMO_OK;
}

static int ask_find_columns(struct ask *ask, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {ask, ky_fleet_ask_skip_names, ask_on_column};

	return ky_fleet_query(ask->store,
			      ask->store->is_clickhouse
				      ? "SELECT table, name FROM system.columns WHERE database = "
					"currentDatabase() AND table LIKE 'report%'"
				      : "SELECT of, name FROM kymo_column WHERE of LIKE 'report%'",
			      &sink, err);
}

static bool ask_has_column(const void *data, const char *table, const char *column)
{
	const struct ask *ask = data;
	char name[600];

	(void)snprintf(name, sizeof(name), "%s.%s", table, column);
	return ky_names_get(&ask->known, name) != NULL;
}

static bool ask_has_table(const struct ask *ask, const char *table)
{
	return table && ky_names_get(&ask->known, table) != NULL;
}

static bool ask_has_report(struct ask *ask, const struct ky_report *report)
{
	for (size_t i = 0; report->tables[i]; i++) {
		const char *name = ky_fleet_report_table_name(&ask->answer->arena, report->name,
							      report->tables[i]);

		if (ask_has_table(ask, name))
			return true;
	}
	return false;
}

/* ---- the range ------------------------------------------------------------------------ */

int ky_fleet_ask_on_range(void *data, const struct ky_sql_value *row, size_t n,
			  struct kymo_error *err)
{
	struct ky_report_results *results = data;

	(void)err;
	if (n != 4 || row[0].type != KY_SQL_INTEGER || row[1].type != KY_SQL_INTEGER ||
	    !row[3].integer)
		return KYMO_OK;
	if (results->begin_ns == INT64_MIN || row[0].integer < results->begin_ns)
		results->begin_ns = row[0].integer;
	if (row[1].integer > results->end_ns)
		results->end_ns = row[1].integer;
	if ((uint64_t)row[2].integer > results->n_hosts)
		results->n_hosts = (uint64_t)row[2].integer;
	if ((uint64_t)row[3].integer > results->n_traces)
		results->n_traces = (uint64_t)row[3].integer;
	return KYMO_OK;
}

/* Times, hosts and traces of the first table of @report that has rows. */
static int ask_find_range(struct ask *ask, const struct ky_report *report, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {&ask->answer->results, ky_fleet_ask_skip_names,
					 ky_fleet_ask_on_range};
	int ret = KYMO_OK;

	for (size_t i = 0; report->tables[i] && !ret; i++) {
		const char *name = ky_fleet_report_table_name(&ask->answer->arena, report->name,
							      report->tables[i]);
		struct ky_strbuf text = KY_STRBUF_INIT;

		if (!ask_has_table(ask, name))
			continue;
		ky_strbuf_adds(
			&text,
			"SELECT min(\"time\") AS kymo_0, max(\"end\") AS kymo_1, count(DISTINCT "
			"\"host\") AS kymo_2, count(DISTINCT \"trace\") AS kymo_3 FROM ");
		ky_fleet_put_name(&text, name);
		ky_fleet_ask_put_where(&text, ask->of, ask->store->is_clickhouse, ask->from_ns);
		ret = ky_strbuf_failed(&text)
			      ? ky_error_nomem(err)
			      : ky_fleet_query(ask->store, ky_strbuf_text(&text), &sink, err);
		ky_strbuf_fini(&text);
	}
	return ret;
}

static int ask_find_ranges(struct ask *ask, struct kymo_error *err)
{
	struct ky_report_results *results = &ask->answer->results;
	int ret = KYMO_OK;

	results->begin_ns = results->end_ns = INT64_MIN;
	results->n_hosts = results->n_traces = 0;
	for (size_t i = 0; i < ask->of->n_reports && !ret; i++)
		ret = ask_find_range(ask, ask->of->reports[i], err);
	return ret;
}

/* The last part of the time before the newest row. */
static int ask_find_since(struct ask *ask, struct kymo_error *err)
{
	const struct ky_report_results *results = &ask->answer->results;
	int ret;

	ask->from_ns = INT64_MIN + 1;
	ret = ask_find_ranges(ask, err);
	if (ret < 0 || !ask->of->since_ns || results->end_ns == INT64_MIN)
		return ret;
	if (__builtin_sub_overflow(results->end_ns, ask->of->since_ns, &ask->from_ns))
		ask->from_ns = INT64_MIN + 1;
	return ask_find_ranges(ask, err);
}

/* ---- reports -------------------------------------------------------------------------- */

static int ask_note_merged(struct ky_report_result *result, uint64_t n_merged)
{
	if (!n_merged)
		return KYMO_OK;
	return ky_report_note(
		result,
		"%" PRIu64
		" row%s of several traces: percentiles, and other figures that cannot be "
		"added up, are empty there",
		n_merged, n_merged == 1 ? " is" : "s are");
}

/* Those of @report that the store has, which are all that there is. NULL: out of memory. */
static const struct ky_table_def **ask_defs(struct ask *ask, const struct ky_report *report,
					    size_t *n)
{
	const struct ky_table_def **defs;
	size_t all = 0;

	while (report->tables[all])
		all++;
	defs = ky_arena_array(&ask->answer->arena, all + 1, sizeof(*defs));
	*n = 0;
	for (size_t i = 0; i < all && defs; i++)
		if (ask_has_table(ask, ky_fleet_report_table_name(&ask->answer->arena, report->name,
								  report->tables[i])))
			defs[(*n)++] = report->tables[i];
	if (defs)
		defs[*n] = NULL;
	return defs;
}

/* @report has the tables that the store has. */
static int ask_table(struct ask *ask, const struct ky_report *report, size_t i,
		     struct ky_report_result *result, struct kymo_error *err)
{
	const struct ky_fleet_has has = {ask, ask_has_column};
	const char *name =
		ky_fleet_report_table_name(&ask->answer->arena, report->name, report->tables[i]);
	const struct ky_table_def **defs = (const struct ky_table_def **)report->tables;
	struct ky_fleet_ask_table table;
	int ret;

	if (!name)
		return ky_error_nomem(err);
	ret = ky_fleet_ask_table_init(&table, &ask->answer->arena, ask->of, name, report->tables[i],
				      &has) < 0
		      ? ky_error_nomem(err)
		      : KYMO_OK;
	if (!ret) {
		defs[i] = table.shown;
		ky_table_init(&result->tables[i], table.shown);
		result->tables[i].hidden = !ky_report_wants(ask->of->options, report, i);
	}
	if (!ret && !result->tables[i].hidden)
		ret = ky_fleet_ask_table_run(&table, ask->store, ask->from_ns, &result->tables[i],
					     err);
	if (!ret && ask_note_merged(result, table.n_merged) < 0)
		ret = ky_error_nomem(err);
	ky_fleet_ask_table_fini(&table);
	return ret;
}

/* A report like @report, with tables that have other columns. */
static int ask_report(struct ask *ask, const struct ky_report *report, struct kymo_error *err)
{
	struct ky_report_results *results = &ask->answer->results;
	struct ky_report *copy = ky_arena_memdup(&ask->answer->arena, report, sizeof(*report));
	struct ky_report_result result = {
		.report = copy, .begin_ns = results->begin_ns, .end_ns = results->end_ns};
	struct ky_report_result *kept;
	int ret = KYMO_OK;

	if (copy)
		copy->tables = ask_defs(ask, report, &result.n_tables);
	result.tables = calloc(result.n_tables + 1, sizeof(*result.tables));
	if (!copy || !copy->tables || !result.tables || ky_vec_push(&results->list, result) < 0) {
		free(result.tables);
		return ky_error_nomem(err);
	}
	copy->next = NULL;
	kept = &results->list.data[results->list.len - 1];
	for (size_t i = 0; i < kept->n_tables; i++)
		ky_table_init(&kept->tables[i], copy->tables[i]);
	for (size_t i = 0; i < kept->n_tables && !ret; i++)
		ret = ask_table(ask, copy, i, kept, err);
	return ret;
}

/* Tables that were asked for by name, and are not in the store. */
static int ask_check_tables(const struct ask *ask, struct kymo_error *err)
{
	ky_vec_foreach(&ask->answer->results.list, result)
		for (size_t i = 0; i < result->n_tables; i++)
			if (!result->tables[i].hidden)
				return KYMO_OK;
	return ask->of->options->n_tables
		       ? ky_error_set(err, KYMO_E_INVALID,
				      "%s has no rows of table %s; logs are not loaded",
				      ask->of->place, ask->of->options->tables[0])
		       : KYMO_OK;
}

static int ask_none(const struct ask *ask, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_NOT_FOUND, "%s has no rows of report %s", ask->of->place,
			    ask->of->reports[0]->name);
}

static int fleet_ask_all(struct ask *ask, struct kymo_error *err)
{
	int ret = ask_find_columns(ask, err);
	bool any = false;

	if (!ret)
		ret = ask_find_since(ask, err);
	for (size_t i = 0; i < ask->of->n_reports && !ret; i++) {
		if (!ask_has_report(ask, ask->of->reports[i]))
			continue;
		any = true;
		ret = ask_report(ask, ask->of->reports[i], err);
	}
	if (!ret && !any)
		ret = ask_none(ask, err);
	return ret ? ret : ask_check_tables(ask, err);
}

int ky_fleet_ask_reports(struct ky_fleet *store, const struct ky_fleet_ask *of,
			 struct ky_fleet_answer *answer, struct kymo_error *err)
{
	struct ask ask = {.of = of, .store = store, .answer = answer};
	int ret;

	memset(answer, 0, sizeof(*answer));
	ky_arena_init(&answer->arena);
	answer->results = (struct ky_report_results){.set = &answer->none,
						     .store = of->place,
						     .begin_ns = INT64_MIN,
						     .end_ns = INT64_MIN,
						     .tables_chosen = of->options->n_tables != 0};
	ky_names_init(&ask.known);
	ret = ky_report_check_names(of->reports, of->n_reports, of->options, err);
	if (!ret)
		ret = fleet_ask_all(&ask, err);
	ky_names_fini(&ask.known);
	return ret;
}

void ky_fleet_answer_fini(struct ky_fleet_answer *answer)
{
	ky_report_results_fini(&answer->results);
	ky_sql_report_free(answer->own);
	ky_arena_fini(&answer->arena);
}
