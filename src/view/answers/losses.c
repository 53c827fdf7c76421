/* SPDX-License-Identifier: MIT */
/* Lost events and damage, by stream, with the rows that lack them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/answers/row-index.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

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
	struct ky_view_column streams, n_rows, rows, n_runs, events;
	struct ky_view_runs runs; /* code 1: the stream is damaged there */
};

static size_t losses_pixel_of(const struct picture *picture, int64_t ns)
{
	return ky_view_pixel_of(picture->begin_ns, picture->end_ns, picture->n, ns);
}

static bool losses_add_losses(struct picture *picture, uint32_t stream)
{
	size_t n;
	const struct ky_view_loss *all = ky_view_losses_of(picture->view, stream, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const struct ky_view_loss *loss = &all[i];
		int64_t end_ns = loss->end_ns > loss->begin_ns ? loss->end_ns : loss->begin_ns;
		size_t from, to;
		double each;

		if (end_ns < picture->begin_ns || loss->begin_ns > picture->end_ns)
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
size_t ky_view_stream_rows(const struct ky_row_index *index, const struct ky_history *history,
			   const struct ky_stream *stream, uint32_t rows[2])
{
	const struct ky_env *vpid = ky_env_find(stream->trace->cls, "vpid");
	uint32_t machine = ky_row_machine(index, history, stream->trace);
	uint32_t own = ky_row_find(index, KY_ROW_STREAM, machine, stream->index, INT64_MAX);
	uint32_t other = KY_HISTORY_NO_ROW;
	size_t n = 0;

	if (ky_is_kernel_trace(stream->trace) && stream->has_cpu_id)
		other = ky_row_find(index, KY_ROW_CPU, machine, stream->cpu_id, INT64_MAX);
	else if (vpid && !vpid->is_text)
		other = ky_row_find(index, KY_ROW_PROCESS, machine, vpid->number, INT64_MAX);
	if (own != KY_HISTORY_NO_ROW)
		rows[n++] = own;
	if (other != KY_HISTORY_NO_ROW)
		rows[n++] = other;
	return n;
}

static bool losses_is_same(const struct picture *picture, size_t a, size_t b)
{
	return picture->lost[a] == picture->lost[b] && picture->damage[a] == picture->damage[b];
}

/* Events: 0: none. */
static void losses_put_runs(struct picture *picture)
{
	ky_view_runs_restart(&picture->runs);
	for (size_t x = 0, to; x < picture->n; x = to) {
		for (to = x + 1; to < picture->n && losses_is_same(picture, x, to);)
			to++;
		if (picture->lost[x] <= 0 && !picture->damage[x])
			continue;
		ky_view_add_run(&picture->runs, x, to, picture->damage[x]);
		ky_view_add_real(&picture->events, picture->lost[x]);
	}
}

static void losses_put_rows(struct picture *picture, const struct ky_stream *stream)
{
	uint32_t rows[2];
	size_t n = picture->history
			   ? ky_view_stream_rows(&picture->index, picture->history, stream, rows)
			   : 0;

	ky_view_add_number(&picture->n_rows, n);
	for (size_t i = 0; i < n; i++)
		ky_view_add_number(&picture->rows, rows[i]);
}

static void losses_put_stream(struct picture *picture, const struct ky_stream *stream)
{
	size_t before = picture->runs.codes.n;
	bool any = false;

	for (size_t x = 0; x < picture->n; x++) {
		picture->lost[x] = 0;
		picture->damage[x] = 0;
	}
	any |= losses_add_losses(picture, stream->index);
	any |= add_damage(picture, stream->index);
	if (!any)
		return;
	ky_view_add_text(&picture->streams, stream->name, strlen(stream->name));
	losses_put_rows(picture, stream);
	losses_put_runs(picture);
	ky_view_add_number(&picture->n_runs, picture->runs.codes.n - before);
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

static void losses_put_answer(struct picture *picture, struct ky_strbuf *out)
{
	struct ky_strbuf head = KY_STRBUF_INIT;

	ky_strbuf_addf(&head, "{\"count\": %zu}", picture->n);
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	ky_view_put_column(out, &picture->streams);
	ky_view_put_column(out, &picture->n_rows);
	ky_view_put_column(out, &picture->rows);
	ky_view_put_column(out, &picture->n_runs);
	ky_view_put_runs(out, &picture->runs);
	ky_view_put_column(out, &picture->events);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
}

int ky_view_losses(struct ky_view *view, const struct ky_view_request *request,
		   struct ky_strbuf *out, struct kymo_error *err)
{
	struct picture picture = {.view = view,
				  .begin_ns = request->begin_ns,
				  .end_ns = request->end_ns,
				  .n = request->count,
				  .streams = KY_VIEW_COLUMN("stream", KY_VIEW_TEXTS),
				  .n_rows = KY_VIEW_COLUMN("rows", KY_VIEW_NUMBERS),
				  .rows = KY_VIEW_COLUMN("row", KY_VIEW_NUMBERS),
				  .n_runs = KY_VIEW_COLUMN("runs", KY_VIEW_NUMBERS),
				  .events = KY_VIEW_COLUMN("events", KY_VIEW_REALS)};
	int ret = ky_view_take_counts(view, "", &picture.counts, err);

	if (ret < 0)
		return ret;
	/* Without a history there are the streams. */
	if (ky_view_take_history(view, &picture.history, NULL) < 0)
		picture.history = NULL;
	ky_view_runs_init(&picture.runs, "code", "extent");
	ret = losses_draw(&picture, err);
	losses_put_answer(&picture, out);
	ky_view_put_history(view);
	ky_view_put_counts(view, picture.counts);
	return ret;
}
