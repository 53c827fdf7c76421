/* SPDX-License-Identifier: MIT */
/* A user's own report over a store. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reports/report-options.h"
#include "base/error.h"
#include "fleet/fleet-ask-table.h"

struct ask_own {
	const struct ky_fleet_own *of;
	struct ky_fleet *store;
	struct ky_fleet_answer *answer;
	const char *statements; /* without the head */
	KY_VEC(char *) tables;	/* with times, in the statements */
	int64_t from_ns;
};

/* ---- the range ------------------------------------------------------------------------ */

static bool ask_own_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool ask_own_mentions(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *at = len ? strcasestr(text, name) : NULL;

	for (; at; at = strcasestr(at + 1, name))
		if (!ask_own_is_word(at[len]) && (at == text || !ask_own_is_word(at[-1])))
			return true;
	return false;
}

static int ask_own_on_table(void *data, const struct ky_sql_value *row, size_t n,
			    struct kymo_error *err)
{
	struct ask_own *ask = data;
	char *name;

	if (!n || row[0].type != KY_SQL_TEXT)
		return KYMO_OK;
	name = ky_arena_strndup(&ask->answer->arena, row[0].text, row[0].len);
	if (!name)
		return ky_error_nomem(err);
	if (!ask_own_mentions(ask->statements, name))
		return KYMO_OK;
	return ky_vec_push(&ask->tables, name) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int ask_own_find_tables(struct ask_own *ask, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {ask, ky_fleet_ask_skip_names, ask_own_on_table};

	return ky_fleet_query(
		ask->store,
		ask->store->is_clickhouse
			? "SELECT table FROM system.columns WHERE database = currentDatabase() AND name IN "
			  "('time', 'host', 'trace') GROUP BY table HAVING count() = 3"
			: "SELECT DISTINCT of FROM kymo_column WHERE name = 'time'",
		&sink, err);
}

/* A directory's store knows the times of its batches. */
static int ask_own_find_range(struct ask_own *ask, const char *table, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {&ask->answer->results, ky_fleet_ask_skip_names,
					 ky_fleet_ask_on_range};
	const struct ky_sql_parameter of = {"of", table};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	if (ask->store->is_clickhouse) {
		ky_strbuf_adds(
			&text,
			"SELECT min(\"time\") AS kymo_0, max(\"time\") AS kymo_1, count(DISTINCT "
			"\"host\") AS kymo_2, count(DISTINCT \"trace\") AS kymo_3 FROM ");
		ky_fleet_put_name(&text, table);
		ky_strbuf_addf(&text, " WHERE \"time\" >= %" PRId64, ask->from_ns);
	} else {
		ky_strbuf_addf(
			&text,
			"SELECT min(CASE WHEN from_ns > first_ns THEN from_ns ELSE first_ns END), "
			"max(last_ns), count(DISTINCT ifnull(host, trace)), count(DISTINCT trace) "
			"FROM kymo_batch WHERE of = :of AND n_left > 0 AND last_ns >= %" PRId64,
			ask->from_ns);
	}
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ask->store->ops->query(ask->store, ky_strbuf_text(&text), &of,
					       !ask->store->is_clickhouse, &sink, err);
	ky_strbuf_fini(&text);
	return ret;
}

static int ask_own_find_ranges(struct ask_own *ask, int64_t from_ns, struct kymo_error *err)
{
	struct ky_report_results *results = &ask->answer->results;
	int ret = KYMO_OK;

	ask->from_ns = from_ns;
	results->begin_ns = results->end_ns = INT64_MIN;
	results->n_hosts = results->n_traces = 0;
	for (size_t i = 0; i < ask->tables.len && !ret; i++)
		ret = ask_own_find_range(ask, ask->tables.data[i], err);
	return ret;
}

/* The parameters :begin and :end, and what the header shows. */
static int ask_own_set_range(struct ask_own *ask, struct kymo_error *err)
{
	struct ky_report_results *results = &ask->answer->results;
	int64_t from_ns = INT64_MIN + 1, since_ns;
	int ret = ask_own_find_tables(ask, err);

	if (!ret)
		ret = ask_own_find_ranges(ask, from_ns, err);
	since_ns = ask->of->since_ns > INT64_MAX ? INT64_MAX : (int64_t)ask->of->since_ns;
	if (!ret && since_ns && results->end_ns != INT64_MIN &&
	    !__builtin_sub_overflow(results->end_ns, since_ns, &from_ns) &&
	    from_ns > results->begin_ns) {
		ret = ask_own_find_ranges(ask, from_ns, err);
		results->begin_ns = from_ns;
	}
	if (ret < 0)
		return ret;
	return results->begin_ns == INT64_MIN
		       ? ky_sql_report_set_range(ask->answer->own, 0, INT64_MAX, err)
		       : ky_sql_report_set_range(ask->answer->own, results->begin_ns,
						 results->end_ns, err);
}

/* ---- the tables ----------------------------------------------------------------------- */

static int ask_own_fill(struct ask_own *ask, struct ky_report_result *result,
			struct kymo_error *err)
{
	struct ky_sql_report_fill fill = {ask->answer->own, ask->of->options, result, 0};
	const struct ky_report *report = ky_sql_report(ask->answer->own);
	const struct ky_sql_sink sink = ky_sql_report_sink(&fill);
	size_t n;
	const struct ky_sql_parameter *parameters = ky_sql_report_parameters(ask->answer->own, &n);
	int ret = ky_sql_report_fill_begin(&fill, err);

	if (!ret)
		ret = ask->store->ops->query(ask->store, ask->of->text, parameters, n, &sink, err);
	if (!ret && !result->n_tables)
		ret = ky_error_set(err, KYMO_E_INVALID, "the file has no SELECT");
	if (ret == KYMO_E_INVALID)
		ky_error_path(err, ask->of->path);
	if (!ret)
		ret = ky_report_check_names(&report, 1, ask->of->options, err);
	return ret ? ret : ky_sql_report_fill_end(&fill, err);
}

static int ask_own_run(struct ask_own *ask, struct kymo_error *err)
{
	struct ky_report_results *results = &ask->answer->results;
	struct ky_report_result result = {.model = NULL};
	int ret = ask_own_set_range(ask, err);

	if (ret < 0)
		return ret;
	result.begin_ns = results->begin_ns;
	result.end_ns = results->end_ns;
	if (ky_vec_push(&results->list, result) < 0)
		return ky_error_nomem(err);
	return ask_own_fill(ask, &results->list.data[0], err);
}

int ky_fleet_ask_own(struct ky_fleet *store, const struct ky_fleet_own *of,
		     struct ky_fleet_answer *answer, struct kymo_error *err)
{
	struct ask_own ask = {.of = of, .store = store, .answer = answer};
	const char *rest;
	size_t len;
	int ret;

	memset(answer, 0, sizeof(*answer));
	ky_arena_init(&answer->arena);
	answer->results = (struct ky_report_results){.set = &answer->none,
						     .store = of->place,
						     .begin_ns = INT64_MIN,
						     .end_ns = INT64_MIN,
						     .tables_chosen = of->options->n_tables != 0};
	ask.statements = ky_fleet_statement(of->text, &len, &rest);
	if (!ask.statements)
		ask.statements = "";
	ret = ky_sql_report_new_empty(of->path, of->text, of->parameters, of->n_parameters,
				      &answer->own, err);
	if (!ret && of->since_ns && !ask_own_mentions(ask.statements, ":begin"))
		ret = ky_error_set(
			err, KYMO_E_INVALID,
			"a time since which it counts needs the parameter :begin in the report's statements");
	if (!ret)
		ret = ask_own_run(&ask, err);
	ky_vec_fini(&ask.tables);
	return ret;
}
