/* SPDX-License-Identifier: MIT */
/* Lost events and damage, by stream, with the rows that lack them. */
#include <stdlib.h>

#include "base/error.h"
#include "view/answers/row-index.h"
#include "view/answers/answer-internal.h"

/* Of packets that nobody counted: more than none. */
#define UNKNOWN 1e-9

struct picture {
	const struct ky_view *view;
	struct ky_counts *counts;
	struct ky_row_index index;
	struct ky_history *history; /* or NULL */
	int64_t begin_ns, end_ns;   /* both inclusive */
	size_t n;
	double *lost;	 /* events */
	uint8_t *damage; /* whether the stream has ended there */
	struct ky_strbuf *out;
	size_t n_put;
};

static size_t losses_pixel_of(const struct picture *picture, int64_t ns)
{
	return ky_view_pixel_of(picture->begin_ns, picture->end_ns, picture->n, ns);
}

static bool losses_add_losses(struct picture *picture, uint32_t stream)
{
	bool any = false;

	ky_vec_foreach(&picture->view->losses, loss) {
		int64_t end_ns = loss->end_ns > loss->begin_ns ? loss->end_ns : loss->begin_ns;
		size_t from, to;
		double each;

		if (loss->stream != stream || end_ns < picture->begin_ns ||
		    loss->begin_ns > picture->end_ns)
			continue;
		from = losses_pixel_of(picture, loss->begin_ns);
		to = losses_pixel_of(picture, end_ns);
		each = (double)loss->events / (double)(to - from + 1);
		for (size_t x = from; x <= to; x++)
			picture->lost[x] += each > 0 ? each : UNKNOWN;
		any = true;
	}
	return any;
}

static bool add_damage(struct picture *picture, uint32_t stream)
{
	uint32_t broken;
	int64_t ns;
	bool any = false;

	for (size_t i = 0; ky_counts_broken(picture->counts, i, &broken, &ns); i++) {
		if (broken != stream || ns > picture->end_ns)
			continue;
		for (size_t x = losses_pixel_of(picture, ns); x < picture->n; x++)
			picture->damage[x] = 1;
		any = true;
	}
	return any;
}

/* The row of the stream itself, and its CPU's or its process'. */
void ky_view_put_stream_rows(struct ky_strbuf *out, const struct ky_row_index *index,
			     const struct ky_history *history, const struct ky_stream *stream)
{
	const struct ky_env *vpid = ky_env_find(stream->trace->cls, "vpid");
	uint32_t machine = ky_row_machine(history, stream->trace);
	uint32_t own = ky_row_find(index, KY_ROW_STREAM, machine, stream->index, INT64_MAX);
	uint32_t other = KY_HISTORY_NO_ROW;

	if (ky_is_kernel_trace(stream->trace) && stream->has_cpu_id)
		other = ky_row_find(index, KY_ROW_CPU, machine, stream->cpu_id, INT64_MAX);
	else if (vpid && !vpid->is_text)
		other = ky_row_find(index, KY_ROW_PROCESS, machine, vpid->number, INT64_MAX);
	if (own != KY_HISTORY_NO_ROW)
		ky_strbuf_addu(out, own);
	if (other != KY_HISTORY_NO_ROW)
		ky_strbuf_addf(out, "%s%u", own != KY_HISTORY_NO_ROW ? "," : "", other);
}

static bool losses_is_same(const struct picture *picture, size_t a, size_t b)
{
	return picture->lost[a] == picture->lost[b] && picture->damage[a] == picture->damage[b];
}

/* from, to, events (0: none), whether the stream is damaged, and so on. */
static void losses_put_runs(struct picture *picture)
{
	bool any = false;

	for (size_t x = 0, to; x < picture->n; x = to) {
		for (to = x + 1; to < picture->n && losses_is_same(picture, x, to);)
			to++;
		if (picture->lost[x] <= 0 && !picture->damage[x])
			continue;
		ky_strbuf_addf(picture->out, "%s%zu,%zu,%.6g,%d", any ? "," : "", x, to,
			       picture->lost[x], picture->damage[x]);
		any = true;
	}
}

static void losses_put_stream(struct picture *picture, const struct ky_stream *stream)
{
	bool any = false;

	for (size_t x = 0; x < picture->n; x++) {
		picture->lost[x] = 0;
		picture->damage[x] = 0;
	}
	any |= losses_add_losses(picture, stream->index);
	any |= add_damage(picture, stream->index);
	if (!any)
		return;
	ky_strbuf_addf(picture->out, "%s{\"stream\": ", picture->n_put++ ? ",\n" : "");
	ky_view_put_text(picture->out, stream->name);
	ky_strbuf_adds(picture->out, ", \"rows\": [");
	if (picture->history)
		ky_view_put_stream_rows(picture->out, &picture->index, picture->history, stream);
	ky_strbuf_adds(picture->out, "], \"runs\": [");
	losses_put_runs(picture);
	ky_strbuf_adds(picture->out, "]}");
}

static int losses_draw(struct picture *picture, struct kymo_error *err)
{
	int ret = KYMO_OK;

	picture->lost = calloc(picture->n, sizeof(*picture->lost));
	picture->damage = calloc(picture->n, sizeof(*picture->damage));
	if (!picture->lost || !picture->damage)
		ret = ky_error_nomem(err);
	if (picture->history && ret == KYMO_OK &&
	    ky_row_index_init(&picture->index, picture->history) < 0)
		ret = ky_error_nomem(err);
	ky_vec_foreach(&picture->view->set->streams, stream) {
		if (ret == KYMO_OK)
			losses_put_stream(picture, *stream);
	}
	ky_row_index_fini(&picture->index);
	free(picture->lost);
	free(picture->damage);
	return ret;
}

int ky_view_losses(struct ky_view *view, const struct ky_view_request *request,
		   struct ky_strbuf *out, struct kymo_error *err)
{
	struct picture picture = {.view = view,
				  .begin_ns = request->begin_ns,
				  .end_ns = request->end_ns,
				  .n = request->count,
				  .out = out};
	int ret = ky_view_take_counts(view, "", &picture.counts, err);

	if (ret < 0)
		return ret;
	/* Without a history there are the streams. */
	if (ky_view_take_history(view, &picture.history, NULL) < 0)
		picture.history = NULL;
	ky_strbuf_addf(out, "{\"count\": %zu, \"streams\": [", picture.n);
	ret = losses_draw(&picture, err);
	ky_strbuf_adds(out, "]}\n");
	ky_view_put_history(view);
	ky_view_put_counts(view, picture.counts);
	return ret;
}
