/* SPDX-License-Identifier: MIT */
/* What all pictures of a range have in common. */
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

size_t ky_view_n_pixels(const struct ky_view_request *request, int64_t *end_ns)
{
	uint64_t span = (uint64_t)request->end_ns - (uint64_t)request->begin_ns + 1;

	*end_ns = request->end_ns < INT64_MAX ? request->end_ns + 1 : INT64_MAX;
	return span && span < request->count ? (size_t)span : request->count;
}

size_t ky_view_pixel_of(int64_t begin_ns, int64_t end_ns, size_t n, int64_t ns)
{
	double span = (double)((uint64_t)end_ns - (uint64_t)begin_ns) + 1;
	size_t pixel;

	if (ns <= begin_ns)
		return 0;
	pixel = (size_t)((double)((uint64_t)ns - (uint64_t)begin_ns) / span * (double)n);
	return pixel < n ? pixel : n - 1;
}

int ky_view_begin_rows(struct ky_view *view, size_t n, struct ky_history **history,
		       struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_strbuf head = KY_STRBUF_INIT;
	int ret = ky_view_take_history(view, history, err);

	if (ret < 0)
		return ret;
	ky_strbuf_adds(&head, "{");
	ky_view_put_ready(view, &head);
	ky_strbuf_addf(&head, ", \"count\": %zu}", n);
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	ky_strbuf_fini(&head);
	return KYMO_OK;
}
