/* SPDX-License-Identifier: MIT */
/* Rows of the state history: which ones exist, how long they were active, what one did at a moment. */
#include <string.h>

#include "base/error.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

/* More than a person can look through. */
#define MAX_TREE_ROWS 65536u
#define COARSE_PIXELS ((size_t)64)

struct tree {
	struct ky_view_column ids, parents, numbers, origins, states, texts;
	struct ky_view_names kinds;
};

static void tree_init(struct tree *tree)
{
	*tree = (struct tree){.ids = KY_VIEW_COLUMN("id", KY_VIEW_STEPS),
			      .parents = KY_VIEW_COLUMN("parent", KY_VIEW_STEPS),
			      .numbers = KY_VIEW_COLUMN("number", KY_VIEW_STEPS),
			      .origins = KY_VIEW_COLUMN("origin", KY_VIEW_STEPS),
			      .states = KY_VIEW_COLUMN("states", KY_VIEW_NUMBERS),
			      .texts = KY_VIEW_COLUMN("name", KY_VIEW_TEXTS)};
	ky_view_names_init(&tree->kinds, "kinds", "kind");
}

/* Its parent is -1: none. */
static void tree_add_row(struct tree *tree, const struct ky_history_row *row)
{
	ky_view_add_step(&tree->ids, row->id);
	ky_view_add_step(&tree->parents,
			 row->parent == KY_HISTORY_NO_ROW ? -1 : (int64_t)row->parent);
	ky_view_add_name(&tree->kinds, ky_row_kind_text(row->kind));
	ky_view_add_step(&tree->numbers, row->number);
	ky_view_add_step(&tree->origins, row->origin);
	ky_view_add_number(&tree->states, row->begin_ns != INT64_MIN);
	ky_view_add_text(&tree->texts, row->name, strlen(row->name));
}

static void tree_put(struct tree *tree, struct ky_strbuf *out)
{
	ky_view_put_column(out, &tree->ids);
	ky_view_put_column(out, &tree->parents);
	ky_view_put_names(out, &tree->kinds);
	ky_view_put_column(out, &tree->numbers);
	ky_view_put_column(out, &tree->origins);
	ky_view_put_column(out, &tree->states);
	ky_view_put_column(out, &tree->texts);
}

/* Of more rows than an answer can have, threads are left out that came late. */
static bool tree_fits(const struct ky_history_row *row)
{
	return row->id < MAX_TREE_ROWS ||
	       !(row->kind == KY_ROW_SPANS || row->kind == KY_ROW_THREAD ||
		 row->kind == KY_ROW_PROCESS);
}

/* Returns how many are left out. */
static size_t tree_add_rows(struct tree *tree, const struct ky_history *history)
{
	size_t n = history ? ky_history_n_rows(history) : 0;

	for (size_t i = 0; i < n && tree->ids.n < 2 * MAX_TREE_ROWS; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		if (tree_fits(row))
			tree_add_row(tree, row);
	}
	return n - tree->ids.n;
}

int ky_view_tree(struct ky_view *view, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_strbuf head = KY_STRBUF_INIT;
	struct ky_history *history;
	struct tree tree;
	size_t n_omitted;
	int ret = ky_view_take_history(view, &history, err);

	tree_init(&tree);
	n_omitted = tree_add_rows(&tree, history);
	ky_strbuf_adds(&head, "{");
	ky_view_put_ready(view, &head);
	ky_strbuf_addf(&head, ", \"omitted\": %zu}", n_omitted);
	ky_view_put_history(view);
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	tree_put(&tree, out);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
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

/* Rows with states in the range. */
static int tree_add_activity(struct ky_history *history, int64_t begin_ns, int64_t end_ns,
			     const struct ky_view_stop *stop, struct ky_view_column *ids,
			     struct ky_view_column *times, struct kymo_error *err)
{
	size_t n_rows = ky_history_n_rows(history);
	double sum_ns;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_rows && ids->n < 2 * MAX_TREE_ROWS && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);

		if (!can_be_active(row->kind) || row->begin_ns == INT64_MIN ||
		    row->end_ns <= begin_ns || row->begin_ns >= end_ns)
			continue;
		if (ids->n % 256 == 255 && stop->is_over(stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		ret = active_ns(history, row->id, begin_ns, end_ns, &sum_ns, err);
		ky_view_add_step(ids, row->id);
		ky_view_add_number(times, (uint64_t)(sum_ns + 0.5));
	}
	return ret;
}

int ky_view_activity(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	int64_t end_ns = request->end_ns < INT64_MAX ? request->end_ns + 1 : INT64_MAX;
	struct ky_view_column ids = KY_VIEW_COLUMN("id", KY_VIEW_STEPS);
	struct ky_view_column times = KY_VIEW_COLUMN("ns", KY_VIEW_NUMBERS);
	struct ky_strbuf head = KY_STRBUF_INIT;
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	ky_strbuf_adds(&head, "{");
	ky_view_put_ready(view, &head);
	ky_strbuf_adds(&head, "}");
	if (ret == KYMO_OK && history && end_ns > request->begin_ns)
		ret = tree_add_activity(history, request->begin_ns, end_ns, stop, &ids, &times,
					err);
	ky_view_put_history(view);
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	ky_view_put_column(out, &ids);
	ky_view_put_column(out, &times);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
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
