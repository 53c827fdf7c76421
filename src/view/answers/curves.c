/* SPDX-License-Identifier: MIT */
/*
 * Rows of the state history as curves. Beside rows that hold values: how much of the time a row was active; the
 * same of all CPUs of a machine together, and of all threads of a process; events of streams.
 */
#include <stdlib.h>

#include "base/error.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

/* Of a process: more threads would take too long. */
#define MAX_MEMBERS 4096

struct picture {
	struct ky_history *history;
	const struct ky_view_stop *stop;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	size_t n;
	struct ky_history_height *heights, *sum;
	double *events;
	struct ky_view_column ids, numbers, values; /* rows, their runs, and numbers of these */
	struct ky_view_runs runs;
};

/* ---- numbers ----------------------------------------------------------------------------- */

static double mean_of(const struct ky_history_height *height)
{
	return height->ns > 0 ? height->sum_ns / height->ns : 0;
}

static bool curves_is_same(const struct ky_history_height *a, const struct ky_history_height *b)
{
	if (a->ns <= 0 || b->ns <= 0)
		return a->ns <= 0 && b->ns <= 0;
	return a->low == b->low && a->high == b->high && mean_of(a) == mean_of(b);
}

/* Pixels with the same numbers are together. Those without a value are left out. */
void ky_view_add_curve(struct ky_view_runs *runs, struct ky_view_column *values,
		       const struct ky_history_height *heights, size_t n)
{
	ky_view_runs_restart(runs);
	for (size_t x = 0, to; x < n; x = to) {
		const struct ky_history_height *height = &heights[x];

		for (to = x + 1; to < n && curves_is_same(height, &heights[to]);)
			to++;
		if (height->ns <= 0)
			continue;
		ky_view_add_run(runs, x, to, height->low < height->high);
		ky_view_add_real(values, height->low);
		if (!(height->low < height->high))
			continue;
		ky_view_add_real(values, mean_of(height));
		ky_view_add_real(values, height->high);
	}
}

/* ---- the kinds of rows ------------------------------------------------------------------- */

static void curves_find_activity_at(struct ky_history_height *height, double pixel_ns)
{
	/* What is unknown, was not active. */
	if (height->ns > 0)
		height->ns = pixel_ns;
	height->low = height->high = mean_of(height);
}

/* How much of a pixel a row was active. */
static int find_activity(struct picture *picture, uint32_t id, struct kymo_error *err)
{
	double pixel_ns = (double)((uint64_t)picture->end_ns - (uint64_t)picture->begin_ns) /
			  (double)picture->n;
	int ret = ky_history_heights(picture->history, id, picture->begin_ns, picture->end_ns,
				     picture->n, picture->heights, err);

	for (size_t x = 0; x < picture->n && ret == KYMO_OK; x++)
		curves_find_activity_at(&picture->heights[x], pixel_ns);
	return ret;
}

static int curves_find_events(struct picture *picture, uint32_t id, struct kymo_error *err)
{
	int ret = ky_history_density(picture->history, id, picture->begin_ns, picture->end_ns,
				     picture->n, picture->events, err);

	for (size_t x = 0; x < picture->n && ret == KYMO_OK; x++) {
		double n = picture->events[x];

		picture->heights[x] =
			(struct ky_history_height){.low = n, .high = n, .sum_ns = n, .ns = n > 0};
	}
	return ret;
}

static void curves_add_up(struct picture *picture)
{
	for (size_t x = 0; x < picture->n; x++) {
		picture->sum[x].ns += picture->heights[x].ns > 0;
		picture->sum[x].sum_ns += mean_of(&picture->heights[x]);
	}
}

/* @n_members: whose sum it is; a machine's is the mean. */
static void end_sum(struct picture *picture, double n_members)
{
	for (size_t x = 0; x < picture->n; x++) {
		double value = picture->sum[x].sum_ns / n_members;

		picture->heights[x] = (struct ky_history_height){
			.low = value, .high = value, .sum_ns = value, .ns = picture->sum[x].ns > 0};
	}
}

/* Queues are below CPUs. */
static bool curves_is_below(const struct picture *picture, const struct ky_history_row *member,
			    const struct ky_history_row *row)
{
	if (member->kind != KY_ROW_QUEUE || row->kind != KY_ROW_MACHINE)
		return member->parent == row->id;
	return member->parent != KY_HISTORY_NO_ROW &&
	       ky_history_row(picture->history, member->parent)->parent == row->id;
}

/* Of all rows of @kind below @row. */
static int find_sum(struct picture *picture, const struct ky_history_row *row,
		    enum ky_row_kind kind, struct kymo_error *err)
{
	size_t n_rows = ky_history_n_rows(picture->history), n = 0;
	int ret = KYMO_OK;

	for (size_t x = 0; x < picture->n; x++)
		picture->sum[x] = (struct ky_history_height){0};
	for (size_t i = 0; i < n_rows && n < MAX_MEMBERS && ret == KYMO_OK; i++) {
		const struct ky_history_row *member = ky_history_row(picture->history, (uint32_t)i);

		if (member->kind != kind || !curves_is_below(picture, member, row))
			continue;
		n++;
		if (n % 64 == 0 && picture->stop->is_over(picture->stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		if (member->begin_ns == INT64_MIN || member->end_ns <= picture->begin_ns ||
		    member->begin_ns >= picture->end_ns)
			continue;
		ret = find_activity(picture, member->id, err);
		if (ret == KYMO_OK)
			curves_add_up(picture);
	}
	end_sum(picture, kind == KY_ROW_CPU && n ? (double)n : 1);
	return ret;
}

/* @queues: of a machine, how many threads wait. */
static int curves_find(struct picture *picture, uint32_t id, bool queues, struct kymo_error *err)
{
	const struct ky_history_row *row;

	if (id >= ky_history_n_rows(picture->history))
		return ky_error_set(err, KYMO_E_INVALID, "the state history has no row %u", id);
	row = ky_history_row(picture->history, id);
	if (row->kind == KY_ROW_MACHINE)
		return find_sum(picture, row, queues ? KY_ROW_QUEUE : KY_ROW_CPU, err);
	if (row->kind == KY_ROW_PROCESS)
		return find_sum(picture, row, KY_ROW_THREAD, err);
	if (row->kind == KY_ROW_STREAM)
		return curves_find_events(picture, id, err);
	if (!ky_row_holds_values(row->kind))
		return find_activity(picture, id, err);
	return ky_history_heights(picture->history, id, picture->begin_ns, picture->end_ns,
				  picture->n, picture->heights, err);
}

/* ---- the answer -------------------------------------------------------------------------- */

static int curves_draw(struct picture *picture, const struct ky_view_request *request,
		       struct kymo_error *err)
{
	int ret = KYMO_OK;

	picture->heights = calloc(picture->n, sizeof(*picture->heights));
	picture->sum = calloc(picture->n, sizeof(*picture->sum));
	picture->events = calloc(picture->n, sizeof(*picture->events));
	if (!picture->heights || !picture->sum || !picture->events)
		ret = ky_error_nomem(err);
	ky_history_expect(picture->history, request->ids, request->n_ids, picture->begin_ns,
			  picture->end_ns, picture->n);
	for (size_t i = 0; i < request->n_ids && ret == KYMO_OK; i++) {
		size_t before = picture->runs.codes.n;

		ret = curves_find(picture, request->ids[i], request->name[0] != '\0', err);
		if (ret < 0)
			break;
		ky_view_add_curve(&picture->runs, &picture->values, picture->heights, picture->n);
		ky_view_add_step(&picture->ids, request->ids[i]);
		ky_view_add_number(&picture->numbers, picture->runs.codes.n - before);
	}
	ky_history_expect(picture->history, NULL, 0, 0, 0, 0);
	free(picture->heights);
	free(picture->sum);
	free(picture->events);
	return ret;
}

int ky_view_curves(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct picture picture = {.stop = stop,
				  .begin_ns = request->begin_ns,
				  .ids = KY_VIEW_COLUMN("id", KY_VIEW_STEPS),
				  .numbers = KY_VIEW_COLUMN("runs", KY_VIEW_NUMBERS),
				  .values = KY_VIEW_COLUMN("value", KY_VIEW_REALS)};
	int ret;

	if (request->name[0] && strcmp(request->name, "queues") != 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there are no curves of that name");
	ky_view_runs_init(&picture.runs, "code", "extent");
	picture.n = ky_view_n_pixels(request, &picture.end_ns);
	ret = ky_view_begin_rows(view, picture.n, &picture.history, out, err);
	if (ret == KYMO_OK && picture.history && picture.end_ns > request->begin_ns)
		ret = curves_draw(&picture, request, err);
	ky_view_put_history(view);
	ky_view_put_column(out, &picture.ids);
	ky_view_put_column(out, &picture.numbers);
	ky_view_put_runs(out, &picture.runs);
	ky_view_put_column(out, &picture.values);
	ky_view_end_columns(out);
	return ret;
}
