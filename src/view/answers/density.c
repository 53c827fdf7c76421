/* SPDX-License-Identifier: MIT */
/* Events and losses per pixel. */
#include <stdlib.h>

#include "base/error.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

/* A range with packets of fewer bits is read for its picture: some tenths of a second. */
#define MAX_READ_BITS 4e8
/* For each pixel. */
#define MIN_BUCKETS 16

struct picture {
	int64_t begin_ns, end_ns;
	size_t n;
	double *events;
	double *lost;	/* events; at least one where a loss is */
	size_t n_exact; /* the first pixels */
};

static size_t density_pixel_of(const struct picture *picture, int64_t ns)
{
	return ky_view_pixel_of(picture->begin_ns, picture->end_ns, picture->n, ns);
}

/* The first time of a pixel. */
static int64_t density_time_of(const struct picture *picture, size_t pixel)
{
	double span = (double)((uint64_t)picture->end_ns - (uint64_t)picture->begin_ns) + 1;
	double after = (double)pixel / (double)picture->n * span;

	return pixel < picture->n ? (int64_t)((uint64_t)picture->begin_ns + (uint64_t)after)
				  : picture->end_ns;
}

/* ---- the ways to a picture --------------------------------------------------------------- */

/* Read the range. */
static int read_picture(const struct ky_view *view, const char *filter, struct picture *picture,
			const struct ky_view_stop *stop, struct kymo_error *err)
{
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(view, filter, picture->begin_ns, picture->end_ns, stop, &flow, err);

	if (ret < 0)
		return ret;
	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events; i++)
			picture->events[density_pixel_of(picture, batch.events[i].ns)]++;
	}
	ky_flow_close(flow);
	picture->n_exact = picture->n;
	/* The state of counting tells of damage. */
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_IO ? KYMO_OK : ret;
}

/* What was not counted yet is estimated. */
static void count_picture(const struct ky_view *view, struct ky_counts *counts,
			  const struct ky_counts_state *state, struct picture *picture)
{
	double rate = ky_view_rate(view, counts, state);

	picture->n_exact = ky_counts_pixels(counts, picture->begin_ns, picture->end_ns, picture->n,
					    picture->events);
	for (size_t i = picture->n_exact; i < picture->n; i++)
		picture->events[i] = ky_view_bits(view, density_time_of(picture, i),
						  density_time_of(picture, i + 1)) *
				     rate;
}

static void density_add_losses(const struct ky_view *view, struct picture *picture)
{
	ky_vec_foreach(&view->losses, loss) {
		int64_t end_ns = loss->end_ns > loss->begin_ns ? loss->end_ns : loss->begin_ns;
		size_t from, to;
		double each;

		if (end_ns < picture->begin_ns || loss->begin_ns > picture->end_ns)
			continue;
		from = density_pixel_of(picture, loss->begin_ns);
		to = density_pixel_of(picture, end_ns);
		each = (double)loss->events / (double)(to - from + 1);
		for (size_t i = from; i <= to; i++)
			picture->lost[i] += each > 1 ? each : 1;
	}
}

/* Events at the borders of few buckets would be in the wrong pixel: then better read, if that is quick. */
static int density_draw(const struct ky_view *view, const char *filter, struct ky_counts *counts,
			const struct ky_counts_state *state, struct picture *picture,
			const struct ky_view_stop *stop, struct kymo_error *err)
{
	uint64_t width_ns = ((uint64_t)picture->end_ns - (uint64_t)picture->begin_ns) / picture->n;
	uint64_t bucket_ns =
		(uint64_t)ky_counts_time(counts, 1) - (uint64_t)ky_counts_time(counts, 0);

	if (width_ns < bucket_ns * MIN_BUCKETS &&
	    ky_view_bits(view, picture->begin_ns, picture->end_ns) < MAX_READ_BITS)
		return read_picture(view, filter, picture, stop, err);
	count_picture(view, counts, state, picture);
	return KYMO_OK;
}

/* ---- the answer -------------------------------------------------------------------------- */

static uint64_t density_rounded(double number)
{
	return (uint64_t)(number + 0.5);
}

static void density_put_events(const struct picture *picture, struct ky_strbuf *out)
{
	struct ky_view_column events = KY_VIEW_COLUMN("events", KY_VIEW_NUMBERS);

	for (size_t i = 0; i < picture->n; i++)
		ky_view_add_number(&events, density_rounded(picture->events[i]));
	ky_view_put_column(out, &events);
}

/* Most pixels lack none. */
static void density_put_losses(const struct picture *picture, struct ky_strbuf *out)
{
	struct ky_view_column lost = KY_VIEW_COLUMN("lost", KY_VIEW_NUMBERS);
	struct ky_view_runs runs;

	ky_view_runs_init(&runs, "code", "extent");
	for (size_t x = 0, to; x < picture->n; x = to) {
		uint64_t n = density_rounded(picture->lost[x]);

		for (to = x + 1; to < picture->n && density_rounded(picture->lost[to]) == n;)
			to++;
		if (!n)
			continue;
		ky_view_add_run(&runs, x, to, 0);
		ky_view_add_number(&lost, n);
	}
	ky_view_put_runs(out, &runs);
	ky_view_put_column(out, &lost);
}

static void put_picture(const struct picture *picture, const struct ky_view *view,
			struct ky_counts *counts, const struct ky_counts_state *state,
			struct ky_strbuf *out)
{
	struct ky_strbuf head = KY_STRBUF_INIT;

	ky_strbuf_addf(&head, "{\"begin\": %lld, \"end\": %lld, \"exact\": %zu, ",
		       (long long)picture->begin_ns, (long long)picture->end_ns, picture->n_exact);
	ky_view_put_state(view, counts, state, &head);
	ky_strbuf_adds(&head, "}");
	ky_view_begin_columns(out);
	ky_view_put_head(out, &head);
	density_put_events(picture, out);
	density_put_losses(picture, out);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
}

int ky_view_density(struct ky_view *view, const struct ky_view_request *request,
		    const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct picture picture = {
		request->begin_ns, request->end_ns, request->count, NULL, NULL, 0};
	struct ky_counts_state state;
	struct ky_counts *counts;
	int ret = ky_view_take_counts(view, request->filter, &counts, err);

	if (ret < 0)
		return ret;
	ky_counts_state(counts, &state);
	picture.events = calloc(picture.n, sizeof(*picture.events));
	picture.lost = calloc(picture.n, sizeof(*picture.lost));
	if (picture.events && picture.lost)
		ret = density_draw(view, request->filter, counts, &state, &picture, stop, err);
	else
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK) {
		density_add_losses(view, &picture);
		put_picture(&picture, view, counts, &state, out);
	}
	ky_view_put_counts(view, counts);
	free(picture.events);
	free(picture.lost);
	return ret;
}
