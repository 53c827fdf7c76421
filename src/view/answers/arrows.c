/* SPDX-License-Identifier: MIT */
/* Wake-ups of one thread, as arrows between rows. */
#include "base/error.h"
#include "view/answers/columns.h"
#include "view/answers/wakings.h"

#define MAX_ARROWS 2000

struct arrows {
	const struct ky_view_request *request;
	double pixel_ns;
	struct ky_view_column from, to, begin, end; /* rows, and pixels */
};

static double arrows_place(const struct arrows *arrows, int64_t ns)
{
	int64_t begin_ns = arrows->request->begin_ns;

	return ns < begin_ns ? -(double)((uint64_t)begin_ns - (uint64_t)ns) / arrows->pixel_ns
			     : (double)((uint64_t)ns - (uint64_t)begin_ns) / arrows->pixel_ns;
}

static void arrows_put(void *data, const struct ky_waking *waking)
{
	struct arrows *arrows = data;

	ky_view_add_step(&arrows->from, waking->from);
	ky_view_add_step(&arrows->to, waking->to);
	ky_view_add_real(&arrows->begin, arrows_place(arrows, waking->begin_ns));
	ky_view_add_real(&arrows->end, arrows_place(arrows, waking->end_ns));
}

/* @more: not everything was read. */
static void arrows_put_answer(struct arrows *arrows, size_t n_pixels, bool more,
			      struct ky_strbuf *out)
{
	struct ky_strbuf head = KY_STRBUF_INIT;

	ky_strbuf_addf(&head, "{\"count\": %zu, \"more\": %s}", n_pixels,
		       more || arrows->from.n == MAX_ARROWS ? "true" : "false");
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	ky_view_put_column(out, &arrows->from);
	ky_view_put_column(out, &arrows->to);
	ky_view_put_column(out, &arrows->begin);
	ky_view_put_column(out, &arrows->end);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
}

int ky_view_arrows(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct arrows arrows = {.request = request,
				.from = KY_VIEW_COLUMN("from", KY_VIEW_STEPS),
				.to = KY_VIEW_COLUMN("to", KY_VIEW_STEPS),
				.begin = KY_VIEW_COLUMN("begin", KY_VIEW_REALS),
				.end = KY_VIEW_COLUMN("end", KY_VIEW_REALS)};
	struct ky_history *history;
	int64_t end_ns;
	size_t n = ky_view_n_pixels(request, &end_ns);
	uint64_t span = (uint64_t)request->end_ns - (uint64_t)request->begin_ns;
	const struct ky_wakings_query query = {.begin_ns = request->begin_ns,
					       .end_ns = request->end_ns,
					       .width_ns = span / n,
					       .row = (uint32_t)request->row,
					       .max = MAX_ARROWS};
	int ret = ky_view_take_history(view, &history, err);

	arrows.pixel_ns = ((double)span + 1) / (double)n;
	if (ret == KYMO_OK && history && request->row < ky_history_n_rows(history))
		ret = ky_view_wakings(view, history, &query, stop, arrows_put, &arrows, err);
	ky_view_put_history(view);
	arrows_put_answer(&arrows, n, ret > 0, out);
	return ret > 0 ? KYMO_OK : ret;
}
