/* SPDX-License-Identifier: MIT */
/* Marks over the graphs: lost events, and marks of triggers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

#define LOST	      "Lost events"
#define MARKS	      "Marks"
#define MARK_EVENT    "kymo:mark"
#define MAX_ENTRIES   10000
#define MAX_READ      100000 /* marks: of more, the first ones */
#define USUAL_SAMPLES 1000

struct marks {
	struct ky_tsp_answer *answer;
	uint64_t width_ns; /* of a sample: one mark in each is enough */
	int64_t last_ns;
	size_t n;
	bool is_running;
};

static bool tsp_annotations_is_wanted(const struct ky_tsp_request *request, const char *category)
{
	for (size_t i = 0; i < request->categories.len; i++) {
		if (strcmp(request->categories.data[i], category) == 0)
			return true;
	}
	return !request->has_categories;
}

static bool has_marks(const struct ky_view *view)
{
	ky_vec_foreach(&view->set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, event) {
			if (strcmp((*event)->name, MARK_EVENT) == 0)
				return true;
		}
	}
	return false;
}

static void put_mark(struct marks *marks, int64_t ns, int64_t duration_ns, const char *label,
		     const char *colour)
{
	struct ky_strbuf *out = marks->answer->out;

	ky_strbuf_addf(out,
		       "%s{\"entryId\": -1, \"type\": \"CHART\", \"time\": %lld, "
		       "\"duration\": %lld, \"label\": ",
		       marks->n++ ? ",\n" : "", (long long)ns, (long long)duration_ns);
	ky_view_put_text(out, label);
	ky_strbuf_addf(out, ", \"style\": {\"values\": {\"color\": \"%s\", \"opacity\": 0.4}}}",
		       colour);
	marks->last_ns = ns;
}

static bool is_due(const struct marks *marks, int64_t ns)
{
	return marks->n < MAX_ENTRIES &&
	       (!marks->n || (uint64_t)ns - (uint64_t)marks->last_ns >= marks->width_ns);
}

static void tsp_annotations_put_losses(struct marks *marks)
{
	const struct ky_tsp_request *request = marks->answer->request;
	char label[64];

	ky_vec_foreach(&marks->answer->view->losses, loss) {
		int64_t end_ns = loss->end_ns > loss->begin_ns ? loss->end_ns : loss->begin_ns;

		if (end_ns < request->begin_ns || loss->begin_ns > request->end_ns ||
		    !is_due(marks, loss->begin_ns))
			continue;
		if (loss->events)
			snprintf(label, sizeof(label), "%llu lost events",
				 (unsigned long long)loss->events);
		else
			snprintf(label, sizeof(label), "lost packets");
		put_mark(marks, loss->begin_ns, end_ns - loss->begin_ns, label, "#e69f00");
	}
}

/* False: it lies after the range. */
static bool tsp_annotations_put_row(struct marks *marks, int64_t ns, const char *text)
{
	const struct ky_tsp_request *request = marks->answer->request;

	if (ns != INT64_MIN && ns >= request->begin_ns && ns <= request->end_ns &&
	    is_due(marks, ns))
		put_mark(marks, ns, 0, text, "#cc79a7");
	return ns <= request->end_ns;
}

/* The next rows of @ask. 1: there may be more in the range; 0: there are none; or a negative status. */
static int tsp_annotations_put_rows(struct marks *marks, struct ky_view_request *ask,
				    struct kymo_error *err)
{
	struct ky_tsp_rows rows;
	struct ky_arena arena;
	int ret;

	ky_arena_init(&arena);
	ret = ky_tsp_ask_rows(marks->answer, ask, &arena, &rows, err);
	marks->is_running = ret == KYMO_OK && !ky_tsp_is_counted(&rows.columns);
	ask->row += KY_VIEW_MAX_ROWS;
	if (ret == KYMO_OK)
		ret = rows.n > 0;
	for (size_t i = 0; ret > 0 && i < rows.n; i++)
		ret = tsp_annotations_put_row(marks, rows.times[i], rows.texts[i].data);
	ky_arena_fini(&arena);
	return ret;
}

/* The engine counts marks once for all answers. */
static int tsp_annotations_put_events(struct marks *marks, struct kymo_error *err)
{
	struct ky_view_request *ask = calloc(1, sizeof(*ask));
	uint64_t row, last;
	bool is_exact;
	int ret;

	if (!ask)
		return ky_error_nomem(err);
	snprintf(ask->filter, sizeof(ask->filter), "$event == \"" MARK_EVENT "\"");
	ret = ky_tsp_ask_rank(marks->answer, ask, marks->answer->request->begin_ns, &row, &is_exact,
			      err);
	ask->count = KY_VIEW_MAX_ROWS;
	ask->row = row;
	last = row + MAX_READ;
	if (ret == KYMO_OK)
		ret = 1;
	while (ret > 0 && marks->n < MAX_ENTRIES && ask->row < last)
		ret = tsp_annotations_put_rows(marks, ask, err);
	marks->is_running |= !is_exact;
	free(ask);
	return ret < 0 ? ret : KYMO_OK;
}

static int put_annotations(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const struct ky_tsp_request *request = answer->request;
	size_t n = request->n_times ? request->n_times : USUAL_SAMPLES, head = answer->out->len;
	struct marks marks = {
		.answer = answer,
		.width_ns = ((uint64_t)request->end_ns - (uint64_t)request->begin_ns) / n};
	bool with_losses = tsp_annotations_is_wanted(request, LOST);
	int ret = KYMO_OK;

	ky_tsp_put_head(answer->out, false);
	ky_strbuf_adds(answer->out, "{\"annotations\": {");
	if (with_losses) {
		ky_strbuf_adds(answer->out, "\"" LOST "\": [");
		tsp_annotations_put_losses(&marks);
		ky_strbuf_adds(answer->out, "]");
	}
	marks.n = 0;
	if (tsp_annotations_is_wanted(request, MARKS) && has_marks(answer->view)) {
		ky_strbuf_adds(answer->out,
			       with_losses ? ", \"" MARKS "\": [" : "\"" MARKS "\": [");
		ret = tsp_annotations_put_events(&marks, err);
		ky_strbuf_adds(answer->out, "]");
	}
	ky_strbuf_adds(answer->out, "}}}\n");
	if (ret == KYMO_OK && marks.is_running) {
		/* Counting is not over: the client asks again. */
		answer->out->len = head;
		ky_tsp_put_head(answer->out, true);
		ky_strbuf_adds(answer->out, "{\"annotations\": {}}}\n");
	}
	return ret;
}

int ky_tsp_annotations(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (answer->request->what == KY_TSP_MARKER_SETS) {
		ky_tsp_put_head(answer->out, false);
		ky_strbuf_adds(answer->out, "[]}\n");
		return KYMO_OK;
	}
	ret = ky_tsp_check_output(answer->request->output, NULL, err);
	if (ret < 0)
		return ret;
	if (answer->request->what == KY_TSP_ANNOTATIONS)
		return put_annotations(answer, err);
	ky_tsp_put_head(answer->out, false);
	ky_strbuf_adds(answer->out, "{\"annotationCategories\": [\"" LOST "\"");
	ky_strbuf_adds(answer->out, has_marks(answer->view) ? ", \"" MARKS "\"]}}\n" : "]}}\n");
	return KYMO_OK;
}
