/* SPDX-License-Identifier: MIT */
/* Rows of the state history: pictures. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/answers/answer-internal.h"
#include "view/answers/columns.h"

struct picture {
	struct ky_history *history;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	size_t n;
	struct ky_history_pixel *pixels;
	struct ky_map places; /* of states in the answer, from 1 on */
	struct ky_view_names names;
	struct ky_view_column kinds, details; /* of states */
	struct ky_view_column ids, numbers;   /* of rows, and of their runs */
	struct ky_view_runs runs;	      /* their codes are places of states, from 0 on */
};

static void timeline_init(struct picture *picture)
{
	ky_map_init(&picture->places);
	ky_view_names_init(&picture->names, "names", "name");
	picture->kinds = (struct ky_view_column)KY_VIEW_COLUMN("kind", KY_VIEW_NUMBERS);
	picture->details = (struct ky_view_column)KY_VIEW_COLUMN("detail", KY_VIEW_NUMBERS);
	picture->ids = (struct ky_view_column)KY_VIEW_COLUMN("id", KY_VIEW_STEPS);
	picture->numbers = (struct ky_view_column)KY_VIEW_COLUMN("runs", KY_VIEW_NUMBERS);
	ky_view_runs_init(&picture->runs, "code", "extent");
}

static void timeline_fini(struct picture *picture)
{
	ky_map_fini(&picture->places);
	ky_view_names_fini(&picture->names);
	ky_view_column_fini(&picture->kinds);
	ky_view_column_fini(&picture->details);
	ky_view_column_fini(&picture->ids);
	ky_view_column_fini(&picture->numbers);
	ky_view_runs_fini(&picture->runs);
}

/* What the page needs of a state beside its kind: the number of a name, or the value. */
static uint64_t timeline_detail_of(struct picture *picture, uint64_t state)
{
	uint64_t value = ky_state_value(state);
	const char *name;

	if (!ky_state_has_name(ky_state_kind(state)))
		return value;
	name = ky_history_name(picture->history, value);
	return *name ? ky_view_number_of(&picture->names, name, strlen(name)) : 0;
}

/* The place of a state in the answer, from 0 on. 0 or KYMO_E_MEMORY. */
static int timeline_place_of(struct picture *picture, uint64_t state, uint64_t *place)
{
	uintptr_t known = (uintptr_t)ky_map_get(&picture->places, state);

	*place = known - 1;
	if (known)
		return KYMO_OK;
	*place = picture->kinds.n;
	ky_view_add_number(&picture->kinds, (uint64_t)ky_state_kind(state));
	ky_view_add_number(&picture->details, timeline_detail_of(picture, state));
	return ky_map_set(&picture->places, state, (void *)(uintptr_t)picture->kinds.n);
}

/* Of pixels without one main state, those with and without short states differ. */
static bool timeline_is_same(const struct ky_history_pixel *a, const struct ky_history_pixel *b)
{
	return a->state == b->state &&
	       (ky_state_kind(a->state) != KY_STATE_NONE || a->more == b->more);
}

/* Pixels with the same state. */
static int timeline_put_runs(struct picture *picture, const struct ky_history_pixel *pixels)
{
	ky_view_runs_restart(&picture->runs);
	for (size_t x = 0, to; x < picture->n; x = to) {
		uint64_t state = pixels[x].state, place;

		for (to = x + 1; to < picture->n && timeline_is_same(&pixels[x], &pixels[to]);)
			to++;
		if (ky_state_kind(state) == KY_STATE_NONE && !pixels[x].more)
			continue;
		if (timeline_place_of(picture, state, &place) < 0)
			return KYMO_E_MEMORY;
		ky_view_add_run(&picture->runs, x, to, place);
	}
	return KYMO_OK;
}

/* Rows that are painted at a time: the client can have gone away after each. */
#define ROWS_AT_ONCE ((size_t)64)

static int timeline_put_some(struct picture *picture, const uint32_t *ids, size_t n_ids,
			     struct kymo_error *err)
{
	int ret = ky_history_picture(picture->history, ids, n_ids, picture->begin_ns,
				     picture->end_ns, picture->n, picture->pixels, err);

	for (size_t i = 0; i < n_ids && ret == KYMO_OK; i++) {
		size_t before = picture->runs.codes.n;

		if (timeline_put_runs(picture, picture->pixels + i * picture->n) < 0)
			return ky_error_nomem(err);
		ky_view_add_step(&picture->ids, ids[i]);
		ky_view_add_number(&picture->numbers, picture->runs.codes.n - before);
	}
	return ret;
}

static int timeline_put_rows(struct picture *picture, const struct ky_view_request *request,
			     const struct ky_view_stop *stop, struct kymo_error *err)
{
	size_t n_ids = request->n_ids;
	int ret = KYMO_OK;

	picture->pixels = calloc(picture->n * (n_ids < ROWS_AT_ONCE ? n_ids : ROWS_AT_ONCE),
				 sizeof(*picture->pixels));
	if (!picture->pixels && n_ids)
		return ky_error_nomem(err);
	ky_history_expect(picture->history, request->ids, n_ids, picture->begin_ns, picture->end_ns,
			  picture->n);
	for (size_t i = 0; i < n_ids && ret == KYMO_OK; i += ROWS_AT_ONCE) {
		if (i && stop->is_over(stop->data))
			ret = ky_error_set(err, KYMO_E_INTERRUPTED,
					   "the client has closed the connection");
		else
			ret = timeline_put_some(picture, request->ids + i,
						n_ids - i < ROWS_AT_ONCE ? n_ids - i : ROWS_AT_ONCE,
						err);
	}
	ky_history_expect(picture->history, NULL, 0, 0, 0, 0);
	free(picture->pixels);
	return ret;
}

int ky_view_timeline(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct picture picture = {.begin_ns = request->begin_ns};
	int ret;

	timeline_init(&picture);
	picture.n = ky_view_n_pixels(request, &picture.end_ns);
	ret = ky_view_begin_rows(view, picture.n, &picture.history, out, err);
	if (ret == KYMO_OK && picture.history && picture.end_ns > request->begin_ns)
		ret = timeline_put_rows(&picture, request, stop, err);
	ky_view_put_history(view);
	ky_view_put_column(out, &picture.names.texts);
	ky_view_put_column(out, &picture.kinds);
	ky_view_put_column(out, &picture.details);
	ky_view_put_column(out, &picture.ids);
	ky_view_put_column(out, &picture.numbers);
	ky_view_put_runs(out, &picture.runs);
	ky_view_end_columns(out);
	timeline_fini(&picture);
	return ret;
}
