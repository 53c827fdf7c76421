/* SPDX-License-Identifier: MIT */
/* The table of events: its lines are the rows of the page's table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"
#include "view/tsp/tsp-pattern.h"
#include "view/tsp/tsp-search.h"

#define TAG_FOUND   8	 /* of the protocol: highlighted */
#define SEARCH_ROWS 2048 /* at a time */
#define NEAR_ROWS   128	 /* behind a jump */

/* The id of a column is its number. */
static const struct {
	const char *name, *description, *type;
} columns[] = {
	{"Timestamp", "Local date and time", "STRING"},
	{"Event type", "The name of the event", "STRING"},
	{"CPU", "The CPU that recorded the event", "NUMBER"},
	{"Trace", "The trace of the event", "STRING"},
	{"Contents", "All fields of the event", "STRING"},
	{"Timestamp ns", "Nanoseconds from the clock's origin",
	 "TIMESTAMP"}, /* clients look for it */
};
#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

enum {
	TIMESTAMP,
	TYPE,
	CPU,
	TRACE,
	CONTENTS,
	TIMESTAMP_NS,
};

struct lines {
	struct ky_tsp_answer *answer;
	struct ky_tsp_pattern *patterns[N_COLUMNS]; /* or NULL */
	size_t n_patterns;
	struct ky_view_request *ask;
	uint64_t size; /* of the table */
	bool is_running;
	struct ky_strbuf lines, cells[N_COLUMNS];
	bool is_found[N_COLUMNS];
	uint64_t n, first; /* lines that were put */
};

/* ---- columns ----------------------------------------------------------------------------- */

static void tsp_table_put_columns(struct ky_strbuf *out)
{
	ky_tsp_put_head(out, false);
	ky_strbuf_adds(out, "[");
	for (size_t i = 0; i < N_COLUMNS; i++)
		ky_strbuf_addf(out,
			       "%s{\"id\": %zu, \"name\": \"%s\", \"description\": \"%s\", "
			       "\"type\": \"%s\"}",
			       i ? ", " : "", i, columns[i].name, columns[i].description,
			       columns[i].type);
	ky_strbuf_adds(out, "]}\n");
}

static int check_columns(const struct ky_tsp_request *request, struct kymo_error *err)
{
	for (size_t i = 0; i < request->n_columns; i++) {
		if (request->columns[i] < 0 || request->columns[i] >= (int64_t)N_COLUMNS)
			return ky_error_set(err, KYMO_E_INVALID, "the table has no column %lld",
					    (long long)request->columns[i]);
	}
	if (request->n_columns > N_COLUMNS)
		return ky_error_set(err, KYMO_E_INVALID, "the table has %zu columns", N_COLUMNS);
	return KYMO_OK;
}

/* ---- cells ------------------------------------------------------------------------------- */

static void set_trace(struct lines *lines, int64_t number)
{
	const struct ky_trace_set *set = lines->answer->view->set;
	const struct ky_trace *trace;

	if (number < 0 || (uint64_t)number >= set->traces.len)
		return;
	trace = set->traces.data[number];
	ky_strbuf_adds(&lines->cells[TRACE],
		       *ky_trace_name(trace) || !trace->path ? ky_trace_name(trace) : trace->path);
}

static void set_cells(struct lines *lines, const struct ky_tsp_rows *rows, size_t row)
{
	const struct ky_view_value_text *name = ky_tsp_name(rows, row);

	for (size_t i = 0; i < N_COLUMNS; i++)
		ky_strbuf_clear(&lines->cells[i]);
	if (rows->times[row] != INT64_MIN) {
		ky_tsp_time(&lines->cells[TIMESTAMP], rows->times[row]);
		ky_strbuf_addi(&lines->cells[TIMESTAMP_NS], rows->times[row]);
	}
	set_trace(lines, rows->traces[row]);
	if (rows->cpus[row])
		ky_strbuf_addi(&lines->cells[CPU], rows->cpus[row] - 1);
	ky_strbuf_add(&lines->cells[TYPE], name->data, name->len);
	ky_strbuf_add(&lines->cells[CONTENTS], rows->texts[row].data, rows->texts[row].len);
}

/* Does each pattern find something in its column? */
static bool tsp_table_search(struct lines *lines)
{
	bool is_match = lines->n_patterns > 0;

	for (size_t i = 0; i < N_COLUMNS; i++) {
		const struct ky_strbuf *cell = &lines->cells[i];

		lines->is_found[i] =
			lines->patterns[i] &&
			ky_tsp_pattern_finds(lines->patterns[i], ky_strbuf_text(cell), cell->len);
		is_match &= lines->is_found[i] || !lines->patterns[i];
	}
	return is_match;
}

static void tsp_table_put_cell(struct lines *lines, size_t column, bool is_first, bool is_match)
{
	ky_strbuf_adds(&lines->lines, is_first ? "{\"content\": " : ", {\"content\": ");
	ky_view_put_text(&lines->lines, ky_strbuf_text(&lines->cells[column]));
	if (is_match && lines->is_found[column])
		ky_strbuf_addf(&lines->lines, ", \"tags\": %d", TAG_FOUND);
	ky_strbuf_adds(&lines->lines, "}");
}

static void tsp_table_put_line(struct lines *lines, uint64_t index, bool is_match)
{
	const struct ky_tsp_request *request = lines->answer->request;
	size_t n = request->has_columns && request->n_columns ? request->n_columns : N_COLUMNS;

	lines->first = lines->n ? lines->first : index;
	ky_strbuf_addf(&lines->lines, "%s{\"index\": %llu, \"tags\": %d, \"cells\": [",
		       lines->n++ ? ",\n" : "", (unsigned long long)index,
		       is_match ? TAG_FOUND : 0);
	for (size_t i = 0; i < n; i++)
		tsp_table_put_cell(
			lines,
			n == N_COLUMNS && !request->n_columns ? i : (size_t)request->columns[i],
			i == 0, is_match);
	ky_strbuf_adds(&lines->lines, "]}");
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Up to @n rows from @index on: none if the engine knows them only about. */
static int ask_rows(struct lines *lines, uint64_t index, uint64_t n, struct ky_arena *arena,
		    struct ky_tsp_rows *rows, struct kymo_error *err)
{
	const struct ky_json *total;
	int ret;

	lines->ask->row = index;
	lines->ask->count = n;
	ret = ky_tsp_ask_rows(lines->answer, lines->ask, arena, rows, err);
	if (ret < 0)
		return ret;
	total = ky_view_head(&rows->columns, "total");
	lines->size = total && total->kind == KY_JSON_INTEGER ? total->integer.u : 0;
	lines->is_running = !ky_tsp_is_counted(&rows->columns);
	if (!ky_tsp_flag(&rows->columns, "exact"))
		rows->n = 0;
	return KYMO_OK;
}

/* Names of events are searched for by the engine. *@is_there: false: no match follows. */
static int jump(struct lines *lines, bool is_backward, uint64_t *index, bool *is_there,
		struct kymo_error *err)
{
	const char *filter = lines->answer->request->filter;

	*is_there = true;
	if (!lines->patterns[TYPE])
		return KYMO_OK;
	return ky_tsp_search_jump(lines->answer, filter ? filter : "", lines->patterns[TYPE],
				  is_backward, index, is_there, err);
}

/* The rows that a search looks at together. */
static uint64_t n_searched(const struct lines *lines)
{
	return lines->patterns[TYPE] ? NEAR_ROWS : SEARCH_ROWS;
}

/* Up to @n rows from *@index on, after the first match if *@is_search. */
static int read_some(struct lines *lines, uint64_t *index, uint64_t n, bool *is_search,
		     bool *is_end, struct kymo_error *err)
{
	struct ky_tsp_rows rows;
	struct ky_arena arena;
	int ret;

	ky_arena_init(&arena);
	ret = ask_rows(lines, *index, n, &arena, &rows, err);
	*is_end = ret < 0 || !rows.n;
	for (size_t i = 0; !*is_end && i < rows.n && lines->n < lines->answer->request->count;
	     i++, ++*index) {
		bool is_match;

		set_cells(lines, &rows, i);
		is_match = tsp_table_search(lines);
		*is_search &= !is_match;
		if (!*is_search)
			tsp_table_put_line(lines, *index, is_match);
	}
	ky_arena_fini(&arena);
	if (lines->lines.len > KY_TSP_ANSWER_BYTES)
		ret = ky_error_set(err, KYMO_E_LIMIT, "too many lines at the same time");
	return ret;
}

static int read_forward(struct lines *lines, uint64_t index, bool is_search, struct kymo_error *err)
{
	uint64_t count = lines->answer->request->count;
	bool is_there = true, is_end = false;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && !is_end && lines->n < count) {
		if (is_search)
			ret = jump(lines, false, &index, &is_there, err);
		if (ret < 0 || !is_there)
			break;
		ret = read_some(lines, &index, is_search ? n_searched(lines) : count - lines->n,
				&is_search, &is_end, err);
	}
	return ret;
}

/* The last match of the @n rows from @from on. */
static int find_last(struct lines *lines, uint64_t from, uint64_t n, uint64_t *index,
		     bool *is_found, struct kymo_error *err)
{
	struct ky_tsp_rows rows;
	struct ky_arena arena;
	int ret;

	ky_arena_init(&arena);
	ret = ask_rows(lines, from, n, &arena, &rows, err);
	for (size_t i = 0; ret == KYMO_OK && i < rows.n && n; i++, from++, n--) {
		set_cells(lines, &rows, i);
		if (!tsp_table_search(lines))
			continue;
		*index = from;
		*is_found = true;
	}
	ky_arena_fini(&arena);
	return ret;
}

/* The last match at *@index or before; *@index is then its. */
static int find_backward(struct lines *lines, uint64_t *index, bool *is_found,
			 struct kymo_error *err)
{
	uint64_t end = *index < lines->size ? *index + 1 : lines->size; /* of those to look at */
	bool is_there = true;
	int ret = KYMO_OK;

	*is_found = false;
	while (end && is_there && !*is_found && ret == KYMO_OK) {
		uint64_t last = end - 1, n;

		ret = jump(lines, true, &last, &is_there, err);
		n = last + 1 < n_searched(lines) ? last + 1 : n_searched(lines);
		end = last + 1 - n;
		if (ret == KYMO_OK && is_there)
			ret = find_last(lines, end, n, index, is_found, err);
	}
	return ret;
}

/* ---- lines ------------------------------------------------------------------------------- */

static int take_patterns(struct lines *lines, struct kymo_error *err)
{
	const struct ky_tsp_request *request = lines->answer->request;
	int ret = KYMO_OK;

	for (size_t i = 0; i < request->n_searches && ret == KYMO_OK; i++) {
		uint64_t column = request->searches[i].column;

		if (column >= N_COLUMNS || lines->patterns[column])
			return ky_error_set(err, KYMO_E_INVALID, "the table has no such column");
		ret = ky_tsp_pattern_new(request->searches[i].pattern, &lines->patterns[column],
					 err);
		lines->n_patterns += ret == KYMO_OK;
	}
	return ret;
}

static int read_lines(struct lines *lines, struct kymo_error *err)
{
	const struct ky_tsp_request *request = lines->answer->request;
	bool is_search = lines->n_patterns && request->has_direction, is_there = true, is_exact;
	uint64_t index = request->index;
	struct ky_tsp_rows rows;
	struct ky_arena arena;
	int ret;

	ky_arena_init(&arena);
	ret = ask_rows(lines, 0, 1, &arena, &rows, err); /* the size of the table */
	ky_arena_fini(&arena);
	if (ret == KYMO_OK && !request->has_index && request->has_time)
		ret = ky_tsp_ask_rank(lines->answer, lines->ask, request->time_ns, &index,
				      &is_exact, err);
	if (ret == KYMO_OK && is_search && request->is_backward)
		ret = find_backward(lines, &index, &is_there, err);
	lines->first = index;
	if (ret == KYMO_OK && is_there && request->count)
		ret = read_forward(lines, index, is_search, err);
	return ret;
}

static void put_lines(struct lines *lines)
{
	const struct ky_tsp_request *request = lines->answer->request;
	struct ky_strbuf *out = lines->answer->out;
	size_t n = request->n_columns ? request->n_columns : N_COLUMNS;

	ky_tsp_put_head(out, lines->is_running);
	ky_strbuf_addf(out, "{\"size\": %llu, \"lowIndex\": %llu, \"columnIds\": [",
		       (unsigned long long)lines->size,
		       (unsigned long long)(lines->n || lines->first < lines->size ? lines->first
										   : lines->size));
	for (size_t i = 0; i < n; i++)
		ky_strbuf_addf(out, "%s%lld", i ? ", " : "",
			       request->n_columns ? (long long)request->columns[i] : (long long)i);
	ky_strbuf_adds(out, "], \"lines\": [");
	ky_strbuf_add(out, ky_strbuf_text(&lines->lines), lines->lines.len);
	ky_strbuf_adds(out, "]}}\n");
	if (ky_strbuf_failed(&lines->lines))
		out->failed = true;
}

static int answer_lines(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct lines lines = {.answer = answer, .ask = calloc(1, sizeof(*lines.ask))};
	int ret = lines.ask ? check_columns(answer->request, err) : ky_error_nomem(err);

	if (ret == KYMO_OK && answer->request->filter)
		snprintf(lines.ask->filter, sizeof(lines.ask->filter), "%s",
			 answer->request->filter);
	if (ret == KYMO_OK)
		ret = take_patterns(&lines, err);
	if (ret == KYMO_OK)
		ret = read_lines(&lines, err);
	if (ret == KYMO_OK)
		put_lines(&lines);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		ky_tsp_pattern_free(lines.patterns[i]);
		ky_strbuf_fini(&lines.cells[i]);
	}
	ky_strbuf_fini(&lines.lines);
	free(lines.ask);
	return ret;
}

int ky_tsp_table(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	int ret = ky_tsp_check_output(answer->request->output, "TABLE", err);

	if (ret < 0)
		return ret;
	if (answer->request->what == KY_TSP_TABLE_LINES)
		return answer_lines(answer, err);
	tsp_table_put_columns(answer->out);
	return KYMO_OK;
}
