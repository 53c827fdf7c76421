/* SPDX-License-Identifier: MIT */
#include "view/answers/query.h"

#include <pthread.h>
#include <string.h>

#include "analysis/render/render.h"
#include "base/error.h"
#include "os/now.h"
#include "sql/sql-report.h"

#define TIME_MAX_NS	 ((int64_t)60 * 1000000000)
#define MEMORY_MAX_BYTES ((uint64_t)512 << 20) /* of SQLite */
#define ROWS_MAX	 1000
#define ANSWER_MAX_BYTES ((size_t)16 << 20)
#define AT_ONCE_MAX	 2

struct view_query {
	const struct ky_view_stop *stop;
	int64_t until_ns;
	bool is_late;
};

/* SQLite is loaded by one thread, and few statements run at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int running;
static uint64_t space_bytes = KY_SQL_TEMPORARY_BYTES;

static bool query_is_over(void *data)
{
	struct view_query *query = data;

	query->is_late |= ky_os_now_ns() > query->until_ns;
	return query->is_late || query->stop->is_over(query->stop->data);
}

/* instr() of two such texts ends in half a minute at most. */
#define VALUE_MAX_BYTES (1u << 20)

static int query_enter(const struct ky_view *view, struct ky_sql **sql, struct kymo_error *err)
{
	int ret;

	pthread_mutex_lock(&lock);
	if (running == AT_ONCE_MAX) {
		ret = ky_error_set(err, KYMO_E_LIMIT,
				   "other statements are running; wait until they end");
	} else {
		ret = ky_sql_open(view->set, sql, err);
		running += ret == KYMO_OK;
	}
	if (!ret) {
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
		ky_sql_limit_values(*sql, VALUE_MAX_BYTES);
		ky_sql_limit_temporary(*sql, space_bytes);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void ky_view_limit_statements(uint64_t bytes)
{
	space_bytes = bytes;
}

static void query_leave(struct ky_sql *sql)
{
	ky_sql_close(sql);
	pthread_mutex_lock(&lock);
	running--;
	pthread_mutex_unlock(&lock);
}

static int query_run(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_sql_report *own,
		     struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_report *report = ky_sql_report(own);
	struct ky_report_results results = {0};
	struct ky_report_options options;
	struct ky_flow *flow;
	int ret;

	ky_report_options_init(&options);
	options.limit = ROWS_MAX;
	options.for_people = false;
	options.focus.begin_ns = request->begin_ns;
	options.focus.end_ns = request->end_ns;
	/* For the range of the report; the statement reads on its own. */
	ret = ky_view_flow(view, "", request->begin_ns, request->end_ns, stop, &flow, err);
	if (!ret) {
		ret = ky_reports_run(&report, 1, view->set, flow, &options, &results, err);
		if (ret < 0 && ky_sql_report_error(own)->code)
			*err = *ky_sql_report_error(own);
		ky_flow_close(flow);
	}
	if (ret >= 0)
		ret = ky_render_json(out, &results, err);
	ky_report_results_fini(&results);
	ky_report_options_fini(&options);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_view_statements(struct ky_view *view, const char *path, const char *text,
		       const struct ky_view_request *request, const struct ky_view_stop *stop,
		       struct ky_strbuf *out, struct kymo_error *err)
{
	struct view_query query = {.stop = stop, .until_ns = ky_os_now_ns() + TIME_MAX_NS};
	struct ky_sql_report *own;
	struct ky_sql *sql;
	int ret = query_enter(view, &sql, err);

	if (ret < 0)
		return ret;
	ky_sql_set_stop(sql, query_is_over, &query);
	ret = ky_sql_report_new(sql, path, text, NULL, 0, &own, err);
	if (!ret)
		ret = query_run(view, request, stop, own, out, err);
	ky_sql_report_free(own);
	query_leave(sql);
	if (ret < 0 && query.is_late)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "the statement took longer than a minute; select a shorter "
				    "range, and use :begin and :end");
	if (!ret && out->len > ANSWER_MAX_BYTES)
		return ky_error_set(err, KYMO_E_LIMIT, "the answer is too large to show");
	return ret;
}

int ky_view_query(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	int ret = ky_view_statements(view, "query", request->filter, request, stop, out, err);

	/* The statement is the page's: no file is wrong. */
	if (ret < 0 && strcmp(err->path, "query") == 0)
		err->path[0] = '\0';
	return ret;
}
