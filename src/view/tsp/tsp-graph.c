/* SPDX-License-Identifier: MIT */
/* Outputs of type TIME_GRAPH: the tree of rows, their states, and tooltips, from the state history. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "view/tsp/tsp-internal.h"

#define USUAL_SAMPLES 1000
#define MAX_SAMPLES   ((uint64_t)1 << 24) /* of all rows together */
#define MAX_REFINED   20000		  /* borders of states, for each answer */
#define ROWS_UNASKED  64
#define PARENTS	      (1U << KY_ROW_MACHINE | 1U << KY_ROW_PROCESS | 1U << KY_ROW_STREAM)

/* ---- texts ------------------------------------------------------------------------------- */

void ky_tsp_label(const struct ky_history_row *row, struct ky_strbuf *label)
{
	ky_strbuf_clear(label);
	ky_strbuf_adds(label, row->kind == KY_ROW_PROCESS ? "process " : "");
	ky_strbuf_adds(label, row->name);
	if (row->kind == KY_ROW_PROCESS || row->kind == KY_ROW_THREAD)
		ky_strbuf_addf(label, " (%lld)", (long long)row->number);
	else if (row->kind == KY_ROW_SPANS || row->kind == KY_ROW_REQUESTS)
		ky_strbuf_addf(label, " %lld", (long long)row->number);
}

const char *ky_tsp_state_name(struct ky_history *history, uint64_t state, struct ky_strbuf *text)
{
	enum ky_state_kind kind = ky_state_kind(state);
	uint64_t value = ky_state_value(state), n_rows = ky_history_n_rows(history);

	ky_strbuf_clear(text);
	if (ky_state_has_name(kind))
		ky_strbuf_adds(text, ky_history_name(history, value));
	else if (kind == KY_STATE_RUNS && value < n_rows)
		ky_tsp_label(ky_history_row(history, (uint32_t)value), text);
	else if (kind == KY_STATE_ACTIVE && value && value - 1 < n_rows)
		ky_tsp_label(ky_history_row(history, (uint32_t)(value - 1)), text);
	else if (kind == KY_STATE_READ || kind == KY_STATE_WRITE)
		ky_strbuf_addf(text, "%llu sectors", (unsigned long long)value);
	else if (kind == KY_STATE_VALUE)
		ky_strbuf_addu(text, value);
	return ky_strbuf_text(text);
}

/* ---- the tree ---------------------------------------------------------------------------- */

struct tree {
	struct ky_history *history;
	unsigned int kinds;
	uint32_t *rows; /* sorted: brothers are neighbours */
	size_t n;
	bool *is_shown;
	const struct ky_view *view;
	struct ky_strbuf *out, label;
	bool any;
};

static bool tsp_graph_has_states(const struct tree *tree, const struct ky_history_row *row)
{
	return (tree->kinds & 1U << row->kind) && row->begin_ns != INT64_MIN;
}

static void tsp_graph_show(struct tree *tree, size_t i)
{
	const struct ky_history_row *row = ky_history_row(tree->history, (uint32_t)i);

	if (!tsp_graph_has_states(tree, row))
		return;
	tree->is_shown[row->id] = true;
	while (row->parent < tree->n) {
		row = ky_history_row(tree->history, row->parent);
		tree->is_shown[row->id] = true;
	}
}

/* Rows with states, and all above them. A parent has a smaller kind, so the way up ends. */
static void tsp_graph_choose(struct tree *tree)
{
	for (size_t i = 0; i < tree->n; i++)
		tsp_graph_show(tree, i);
}

static void tsp_graph_put_metadata(struct ky_strbuf *out, const struct ky_history_row *row)
{
	const char *key = row->kind == KY_ROW_THREAD	? "tid"
			  : row->kind == KY_ROW_PROCESS ? "pid"
			  : row->kind == KY_ROW_CPU	? "cpu"
							: NULL;

	if (key)
		ky_strbuf_addf(out, ", \"metadata\": {\"%s\": [%lld]}", key,
			       (long long)row->number);
}

/* Clients take the first entry's begin for the trace's. */
static void tsp_graph_put_entry(struct tree *tree, const struct ky_history_row *row)
{
	bool is_parent = row->begin_ns == INT64_MIN || !tree->any;
	int64_t begin_ns = is_parent ? tree->view->begin_ns : row->begin_ns;
	int64_t end_ns = is_parent ? tree->view->end_ns : row->end_ns;
	long long parent = row->parent < tree->n ? (long long)row->parent : -1;

	ky_tsp_label(row, &tree->label);
	ky_strbuf_addf(tree->out, "%s{\"id\": %u, \"parentId\": %lld, \"labels\": [",
		       tree->any ? ",\n" : "", row->id, parent);
	ky_view_put_text(tree->out, ky_strbuf_text(&tree->label));
	ky_strbuf_addf(tree->out, "], \"start\": %lld, \"end\": %lld, \"hasData\": %s",
		       (long long)begin_ns, (long long)end_ns,
		       tsp_graph_has_states(tree, row) ? "true" : "false");
	/* Clients draw times of which nothing is known in the entry's style. */
	ky_strbuf_adds(tree->out, ", \"style\": {\"parentKey\": \"unknown\", \"values\": {}}");
	tsp_graph_put_metadata(tree->out, row);
	ky_strbuf_adds(tree->out, "}");
	tree->any = true;
}

static void put_below(struct tree *tree, uint32_t parent)
{
	size_t low = 0, high = tree->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ky_history_row(tree->history, tree->rows[middle])->parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < tree->n; low++) {
		const struct ky_history_row *row = ky_history_row(tree->history, tree->rows[low]);

		if (row->parent != parent)
			return;
		if (!tree->is_shown[row->id])
			continue;
		tsp_graph_put_entry(tree, row);
		put_below(tree, row->id);
	}
}

static int tsp_graph_put_tree(struct tree *tree, struct kymo_error *err)
{
	int ret = KYMO_OK;

	tree->n = ky_history_n_rows(tree->history);
	tree->rows = calloc(tree->n + 1, sizeof(*tree->rows));
	tree->is_shown = calloc(tree->n + 1, sizeof(*tree->is_shown));
	if (tree->rows && tree->is_shown) {
		for (size_t i = 0; i < tree->n; i++)
			tree->rows[i] = (uint32_t)i;
		ky_history_sort_rows(tree->history, tree->rows, tree->n);
		tsp_graph_choose(tree);
		put_below(tree, KY_HISTORY_NO_ROW);
	} else {
		ret = ky_error_nomem(err);
	}
	ky_strbuf_fini(&tree->label);
	free(tree->rows);
	free(tree->is_shown);
	return ret;
}

int ky_tsp_put_tree(struct ky_tsp_answer *answer, struct ky_history *history,
		    struct kymo_error *err)
{
	struct tree tree = {.history = history,
			    .kinds = ky_tsp_row_kinds(answer->request->output),
			    .view = answer->view,
			    .out = answer->out};
	int ret = KYMO_OK;

	ky_tsp_put_head(answer->out, !history);
	ky_strbuf_adds(answer->out, "{\"headers\": [{\"name\": \"Name\", \"tooltip\": \"\", "
				    "\"dataType\": \"STRING\"}], \"autoExpandLevel\": -1, "
				    "\"entries\": [");
	if (history && answer->view->begin_ns != INT64_MIN)
		ret = tsp_graph_put_tree(&tree, err);
	ky_strbuf_adds(answer->out, "]}}\n");
	return ret;
}

/* ---- states ------------------------------------------------------------------------------ */

struct picture {
	struct ky_tsp_answer *answer;
	struct ky_history *history;
	int64_t begin_ns, end_ns; /* [begin, end) */
	size_t n;
	struct ky_history_pixel *pixels;
	struct ky_strbuf name, label;	    /* of the state, of the row */
	size_t n_refined, n_rows, n_states; /* states: of the row */
};

static int64_t tsp_graph_time_of(const struct picture *picture, size_t pixel)
{
	uint64_t span = (uint64_t)picture->end_ns - (uint64_t)picture->begin_ns;

	return (int64_t)((uint64_t)picture->begin_ns +
			 (uint64_t)((unsigned __int128)span * pixel / picture->n));
}

/* Of pixels without one main state, those with and without short states differ. */
static bool tsp_graph_is_same(const struct ky_history_pixel *a, const struct ky_history_pixel *b)
{
	return a->state == b->state &&
	       (ky_state_kind(a->state) != KY_STATE_NONE || a->more == b->more);
}

/* The time at which the state of pixel @x begins: exact if the state before it ends within a pixel of it. */
static int border(struct picture *picture, uint32_t row, size_t x, int64_t *ns,
		  struct kymo_error *err)
{
	struct ky_history_interval at;
	int64_t before_ns;
	int ret;

	*ns = tsp_graph_time_of(picture, x);
	if (!x || x == picture->n || picture->n_refined >= MAX_REFINED)
		return KYMO_OK;
	picture->n_refined++;
	before_ns = tsp_graph_time_of(picture, x - 1);
	ret = ky_history_at(picture->history, row, *ns, &at, err);
	if (ret < 0)
		return ret;
	if (at.state == picture->pixels[x].state && at.begin_ns > before_ns)
		*ns = at.begin_ns;
	else if (at.state == picture->pixels[x - 1].state &&
		 at.end_ns < tsp_graph_time_of(picture, x + 1))
		*ns = at.end_ns;
	return KYMO_OK;
}

/* The names of neighbours have colours of their own: threads of a CPU, spans. Colour-blind people can distinguish them. */
static const char *tsp_graph_colour_of(const char *name)
{
	static const char *const colours[] = {"#0072b2", "#56b4e9", "#009e73", "#7a6fbe",
					      "#cc79a7", "#e69f00", "#4a9a9a", "#8c6d46"};

	return colours[ky_hash_bytes(name, strlen(name)) % (sizeof(colours) / sizeof(*colours))];
}

static void tsp_graph_put_state(struct picture *picture, int64_t begin_ns, int64_t end_ns,
				uint64_t state)
{
	const struct ky_tsp_request *request = picture->answer->request;
	enum ky_state_kind kind = ky_state_kind(state);
	const char *name = ky_tsp_state_name(picture->history, state, &picture->name);
	const char *const texts[] = {name, ky_tsp_style(kind), ky_strbuf_text(&picture->label)};
	uint64_t duration_ns = (uint64_t)end_ns - (uint64_t)begin_ns;
	struct ky_strbuf *out = picture->answer->out;
	bool is_dim;

	if (!ky_tsp_matches(&request->exclude, texts, 3, duration_ns))
		return;
	is_dim = !ky_tsp_matches(&request->dim, texts, 3, duration_ns);
	ky_strbuf_addf(out, "%s{\"start\": %lld, \"end\": %lld, ", picture->n_states++ ? "," : "",
		       (long long)begin_ns, (long long)end_ns);
	if (*name) {
		ky_strbuf_adds(out, "\"label\": ");
		ky_view_put_text(out, name);
		ky_strbuf_adds(out, ", ");
	}
	ky_strbuf_addf(out, "\"tags\": %d, \"style\": {\"parentKey\": \"%s\", \"values\": {",
		       is_dim, ky_tsp_style(kind));
	if (*name && (kind == KY_STATE_RUNS || kind == KY_STATE_SPAN))
		ky_strbuf_addf(out, "\"background-color\": \"%s\"", tsp_graph_colour_of(name));
	ky_strbuf_adds(out, "}}}");
}

static int tsp_graph_put_states(struct picture *picture, uint32_t row, struct kymo_error *err)
{
	int64_t from_ns = picture->begin_ns, to_ns;
	int ret = KYMO_OK;

	for (size_t x = 0, to; x < picture->n && ret == KYMO_OK; x = to, from_ns = to_ns) {
		const struct ky_history_pixel *pixel = &picture->pixels[x];

		for (to = x + 1; to < picture->n && tsp_graph_is_same(pixel, &picture->pixels[to]);)
			to++;
		ret = border(picture, row, to, &to_ns, err);
		if (to_ns <= from_ns)
			to_ns = tsp_graph_time_of(picture, to); /* two borders in one pixel */
		if (ky_state_kind(pixel->state) != KY_STATE_NONE || pixel->more)
			tsp_graph_put_state(picture, from_ns, to_ns, pixel->state);
	}
	return ret;
}

static int tsp_graph_put_row(struct picture *picture, int64_t id, unsigned int kinds,
			     struct kymo_error *err)
{
	struct ky_strbuf *out = picture->answer->out;
	const struct ky_history_row *row;
	int ret;

	if (id < 0 || (uint64_t)id >= ky_history_n_rows(picture->history))
		return KYMO_OK;
	row = ky_history_row(picture->history, (uint32_t)id);
	if (!(kinds & 1U << row->kind))
		return KYMO_OK;
	ky_strbuf_addf(out, "%s{\"entryId\": %u, \"states\": [", picture->n_rows++ ? ",\n" : "",
		       row->id);
	ky_tsp_label(row, &picture->label);
	picture->n_states = 0;
	ret = ky_history_pixels(picture->history, row->id, picture->begin_ns, picture->end_ns,
				picture->n, picture->pixels, err);
	if (ret == KYMO_OK)
		ret = tsp_graph_put_states(picture, row->id, err);
	ky_strbuf_adds(out, "]}");
	if (ret == KYMO_OK && out->len > KY_TSP_ANSWER_BYTES)
		ret = ky_error_set(err, KYMO_E_LIMIT,
				   "the answer is too large; ask for fewer items or samples");
	return ret;
}

static int tsp_graph_put_rows(struct picture *picture, struct kymo_error *err)
{
	const struct ky_tsp_request *request = picture->answer->request;
	const struct ky_view_stop *stop = picture->answer->stop;
	unsigned int kinds = ky_tsp_row_kinds(request->output);
	int ret = KYMO_OK;

	picture->pixels = calloc(picture->n, sizeof(*picture->pixels));
	if (!picture->pixels)
		return ky_error_nomem(err);
	for (size_t i = 0; i < request->n_items && ret == KYMO_OK; i++) {
		if (i % ROWS_UNASKED == ROWS_UNASKED - 1 && stop->is_over(stop->data))
			ret = ky_error_set(err, KYMO_E_INTERRUPTED,
					   "the client has closed the connection");
		else
			ret = tsp_graph_put_row(picture, request->items[i], kinds, err);
	}
	free(picture->pixels);
	ky_strbuf_fini(&picture->name);
	ky_strbuf_fini(&picture->label);
	return ret;
}

static int tsp_graph_answer_states(struct ky_tsp_answer *answer, struct ky_history *history,
				   struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	struct picture picture = {.answer = answer,
				  .history = history,
				  .begin_ns = request->begin_ns,
				  .end_ns = request->end_ns + 1,
				  .n = request->n_times ? request->n_times : USUAL_SAMPLES};
	uint64_t span = (uint64_t)picture.end_ns - (uint64_t)picture.begin_ns;
	int ret = KYMO_OK;

	if (picture.n * request->n_items > MAX_SAMPLES)
		return ky_error_set(err, KYMO_E_LIMIT, "too many items with so many samples");
	if (span < picture.n)
		picture.n = (size_t)span;
	ky_tsp_put_head(answer->out, !history);
	ky_strbuf_adds(answer->out, "{\"rows\": [");
	if (history)
		ret = tsp_graph_put_rows(&picture, err);
	ky_strbuf_adds(answer->out, "]}}\n");
	return ret;
}

/* ---- tooltips ---------------------------------------------------------------------------- */

static void put_pair(struct ky_strbuf *out, const char *name, const char *text, bool *any)
{
	if (!*text)
		return;
	ky_strbuf_addf(out, "%s\"%s\": ", *any ? ", " : "", name);
	ky_view_put_text(out, text);
	*any = true;
}

static void tsp_graph_put_time(struct ky_strbuf *out, const char *name, int64_t ns, bool *any)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (ns != INT64_MIN && ns != INT64_MAX)
		ky_tsp_time(&text, ns);
	put_pair(out, name, ky_strbuf_text(&text), any);
	ky_strbuf_fini(&text);
}

static void put_tooltip(struct ky_tsp_answer *answer, struct ky_history *history,
			const struct ky_history_row *row, const struct ky_history_interval *at)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char duration[32];
	bool any = false;

	ky_tsp_label(row, &text);
	put_pair(answer->out, ky_row_kind_text(row->kind), ky_strbuf_text(&text), &any);
	put_pair(answer->out, "state", ky_state_text(ky_state_kind(at->state)), &any);
	put_pair(answer->out, "name", ky_tsp_state_name(history, at->state, &text), &any);
	tsp_graph_put_time(answer->out, "begin", at->begin_ns, &any);
	tsp_graph_put_time(answer->out, "end", at->end_ns, &any);
	if (at->begin_ns != INT64_MIN && at->end_ns != INT64_MAX)
		put_pair(
			answer->out, "duration",
			ky_format_duration(duration, (uint64_t)at->end_ns - (uint64_t)at->begin_ns),
			&any);
	ky_strbuf_fini(&text);
}

/* Arrows and annotations have their time only. */
static void put_simple_tooltip(struct ky_tsp_answer *answer)
{
	const struct ky_tsp_request *request = answer->request;
	char duration[32];
	bool any = false;

	tsp_graph_put_time(answer->out, "begin", request->element_ns, &any);
	put_pair(answer->out, "duration",
		 ky_format_duration(duration, (uint64_t)request->element_duration_ns), &any);
}

static int answer_tooltip(struct ky_tsp_answer *answer, struct ky_history *history,
			  struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	unsigned int kinds = ky_tsp_row_kinds(request->output);
	const struct ky_history_row *row = NULL;
	struct ky_history_interval at;
	int ret = KYMO_OK;

	if (request->n_items != 1)
		return ky_error_set(err, KYMO_E_INVALID, "a tooltip is for one item");
	ky_tsp_put_head(answer->out, !history);
	ky_strbuf_adds(answer->out, "{");
	if (history && request->items[0] >= 0 &&
	    (uint64_t)request->items[0] < ky_history_n_rows(history))
		row = ky_history_row(history, (uint32_t)request->items[0]);
	if (request->element != KY_TSP_STATE) {
		put_simple_tooltip(answer);
	} else if (row && kinds & 1U << row->kind) {
		ret = ky_history_at(history, row->id, request->time_ns, &at, err);
		if (ret == KYMO_OK)
			put_tooltip(answer, history, row, &at);
	}
	ky_strbuf_adds(answer->out, "}}\n");
	return ret;
}

/* ---- the answer -------------------------------------------------------------------------- */

int ky_tsp_graph(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_history *history;
	int ret = ky_tsp_check_output(answer->request->output, "TIME_GRAPH", err);

	if (ret < 0)
		return ret;
	if (ky_tsp_is_path(answer->request->output))
		return ky_tsp_path_graph(answer, err);
	history = ky_tsp_begin_history(answer, err);
	if (!history && err->code)
		return err->code;
	if (answer->request->what == KY_TSP_GRAPH_TREE)
		ret = ky_tsp_put_tree(answer, history, err);
	else if (answer->request->what == KY_TSP_GRAPH_STATES)
		ret = tsp_graph_answer_states(answer, history, err);
	else if (answer->request->what == KY_TSP_GRAPH_ARROWS)
		ret = ky_tsp_put_arrows(answer, history, err);
	else
		ret = answer_tooltip(answer, history, err);
	if (history)
		ky_view_put_history(answer->view);
	return ret;
}
