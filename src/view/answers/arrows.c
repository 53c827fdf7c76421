/* SPDX-License-Identifier: MIT */
/* Wake-ups of one thread, as arrows between rows. */
#include "base/error.h"
#include "view/answers/wakings.h"

#define MAX_ARROWS 2000

struct arrows {
	const struct ky_view_request *request;
	double pixel_ns;
	struct ky_strbuf *out;
	size_t n;
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

	ky_strbuf_addf(arrows->out, "%s%u,%u,%.7g,%.7g", arrows->n++ ? "," : "", waking->from,
		       waking->to, arrows_place(arrows, waking->begin_ns),
		       arrows_place(arrows, waking->end_ns));
}

int ky_view_arrows(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct arrows arrows = {.request = request, .out = out};
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
	ky_strbuf_addf(out, "{\"count\": %zu, \"arrows\": [", n);
	if (ret == KYMO_OK && history && request->row < ky_history_n_rows(history))
		ret = ky_view_wakings(view, history, &query, stop, arrows_put, &arrows, err);
	ky_strbuf_addf(out, "], \"more\": %s}\n",
		       ret > 0 || arrows.n == MAX_ARROWS ? "true" : "false");
	ky_view_put_history(view);
	return ret > 0 ? KYMO_OK : ret;
}
