/* SPDX-License-Identifier: MIT */
/* Rows of the state history: which ones exist, how long they were active, what one did at a moment. */
#include <string.h>

#include "base/error.h"
#include "view/answers/answer-internal.h"

/* More than a person can look through. */
#define MAX_TREE_ROWS 65536u
#define COARSE_PIXELS ((size_t)64)

void ky_view_put_row(struct ky_strbuf *out, const struct ky_history_row *row, bool any)
{
	ky_strbuf_addf(out, "%s[%u,", any ? ",\n" : "", row->id);
	if (row->parent == KY_HISTORY_NO_ROW)
		ky_strbuf_adds(out, "null");
	else
		ky_strbuf_addu(out, row->parent);
	ky_strbuf_addf(out, ",\"%s\",%lld,", ky_row_kind_text(row->kind), (long long)row->number);
	ky_view_put_text(out, row->name);
	ky_strbuf_addf(out, ",%lld,", (long long)row->origin);
}

/* [id, parent or null, kind, number, name, origin, has states] */
static void tree_put_row(struct ky_strbuf *out, const struct ky_history_row *row, bool any)
{
	ky_view_put_row(out, row, any);
	ky_strbuf_addf(out, "%d]", row->begin_ns != INT64_MIN);
}

/* Of more rows than an answer can have, threads are left out that came late. */
static bool tree_fits(const struct ky_history_row *row)
{
	return row->id < MAX_TREE_ROWS ||
	       !(row->kind == KY_ROW_SPANS || row->kind == KY_ROW_THREAD ||
		 row->kind == KY_ROW_PROCESS);
}

static void tree_put_rows(const struct ky_history *history, struct ky_strbuf *out)
{
	size_t n = ky_history_n_rows(history), n_put = 0;

	for (size_t i = 0; i < n && n_put < 2 * MAX_TREE_ROWS; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		if (!tree_fits(row))
			continue;
		tree_put_row(out, row, n_put != 0);
		n_put++;
	}
	ky_strbuf_addf(out, "], \"omitted\": %zu", n - n_put);
}

int ky_view_tree(struct ky_view *view, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK) {
		ky_strbuf_adds(out, "{");
		ky_view_put_ready(view, out);
		ky_strbuf_adds(out, ", \"rows\": [");
		if (history)
			tree_put_rows(history, out);
		else
			ky_strbuf_adds(out, "], \"omitted\": 0");
		ky_strbuf_adds(out, "}\n");
	}
	ky_view_put_history(view);
	return ret;
}

/* ---- activity ---------------------------------------------------------------------------- */

static bool can_be_active(enum ky_row_kind kind)
{
	return kind == KY_ROW_CPU || kind == KY_ROW_IRQ || kind == KY_ROW_THREAD ||
	       kind == KY_ROW_REQUESTS || kind == KY_ROW_SPANS;
}

static int active_ns(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		     double *sum_ns, struct kymo_error *err)
{
	struct ky_history_height heights[COARSE_PIXELS];
	uint64_t span = (uint64_t)end_ns - (uint64_t)begin_ns;
	size_t n = span < COARSE_PIXELS ? (size_t)span : COARSE_PIXELS;
	int ret = ky_history_heights(history, row, begin_ns, end_ns, n, heights, err);

	*sum_ns = 0;
	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		*sum_ns += heights[i].sum_ns;
	return ret;
}

/* [id, ns]: rows with states in the range. */
static int put_activity(struct ky_history *history, int64_t begin_ns, int64_t end_ns,
			const struct ky_view_stop *stop, struct ky_strbuf *out,
			struct kymo_error *err)
{
	size_t n_rows = ky_history_n_rows(history), n_put = 0;
	double sum_ns;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_rows && n_put < 2 * MAX_TREE_ROWS && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		if (!can_be_active(row->kind) || row->begin_ns == INT64_MIN ||
		    row->end_ns <= begin_ns || row->begin_ns >= end_ns)
			continue;
		if (n_put % 256 == 255 && stop->is_over(stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		ret = active_ns(history, row->id, begin_ns, end_ns, &sum_ns, err);
		ky_strbuf_addf(out, "%s[%u,%.0f]", n_put ? "," : "", row->id, sum_ns);
		n_put++;
	}
	return ret;
}

int ky_view_activity(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	int64_t end_ns = request->end_ns < INT64_MAX ? request->end_ns + 1 : INT64_MAX;
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK) {
		ky_strbuf_adds(out, "{");
		ky_view_put_ready(view, out);
		ky_strbuf_adds(out, ", \"rows\": [");
		if (history && end_ns > request->begin_ns)
			ret = put_activity(history, request->begin_ns, end_ns, stop, out, err);
		ky_strbuf_adds(out, "]}\n");
	}
	ky_view_put_history(view);
	return ret;
}

/* ---- a moment ---------------------------------------------------------------------------- */

static void tree_put_time(struct ky_strbuf *out, const char *name, int64_t ns)
{
	ky_strbuf_addf(out, "\"%s\": ", name);
	if (ns == INT64_MIN || ns == INT64_MAX)
		ky_strbuf_adds(out, "null, ");
	else
		ky_strbuf_addf(out, "%lld, ", (long long)ns);
}

static int put_moment(struct ky_history *history, uint32_t row, int64_t ns, struct ky_strbuf *out,
		      struct kymo_error *err)
{
	struct ky_history_interval found;
	enum ky_state_kind kind;
	int ret = ky_history_at(history, row, ns, &found, err);

	if (ret < 0)
		return ret;
	kind = ky_state_kind(found.state);
	tree_put_time(out, "begin", found.begin_ns);
	tree_put_time(out, "end", found.end_ns);
	ky_strbuf_addf(out, "\"kind\": %d, \"value\": %llu, \"name\": ", (int)kind,
		       (unsigned long long)ky_state_value(found.state));
	ky_view_put_text(out, ky_state_has_name(kind)
				      ? ky_history_name(history, ky_state_value(found.state))
				      : "");
	return KYMO_OK;
}

int ky_view_moment(struct ky_view *view, const struct ky_view_request *request,
		   struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK && (!history || request->row >= ky_history_n_rows(history)))
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such row");
	if (ret == KYMO_OK) {
		ky_strbuf_adds(out, "{");
		ret = put_moment(history, (uint32_t)request->row, request->ns, out, err);
		ky_strbuf_adds(out, "}\n");
	}
	ky_view_put_history(view);
	return ret;
}
