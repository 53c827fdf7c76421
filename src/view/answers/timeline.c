/* SPDX-License-Identifier: MIT */
/* Rows of the state history: pictures. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/answers/answer-internal.h"

/* A run: the number of its state, and whether other pixels are before it, and whether it has more than one. */
enum { RUN_HAS_GAP = 1, RUN_IS_LONG = 2, RUN_BITS = 2 };
/* More than a double of the page holds. */
#define MAX_DETAIL (((uint64_t)1 << 53) - 1)

struct picture {
	struct ky_history *history;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	size_t n;
	struct ky_history_pixel *pixels;
	struct ky_names numbers; /* of names in the answer */
	struct ky_map places;	 /* of states in the answer, from 1 on */
	struct ky_strbuf names, states, rows, runs;
	size_t n_names, n_states, n_rows, n_runs;
};

/* Seven bits in each byte, the lowest first; the eighth bit: more follow. */
static void timeline_put(struct ky_strbuf *out, uint64_t number)
{
	for (; number > 127; number >>= 7)
		ky_strbuf_addc(out, (char)(number | 128));
	ky_strbuf_addc(out, (char)number);
}

/* The number of a name in the answer, from 1 on. 0 or KYMO_E_MEMORY. */
static int timeline_number_of(struct picture *picture, const char *name, uint64_t *number)
{
	size_t len = strlen(name);

	*number = (uintptr_t)ky_names_get(&picture->numbers, name);
	if (*number)
		return KYMO_OK;
	*number = ++picture->n_names;
	timeline_put(&picture->names, len);
	ky_strbuf_add(&picture->names, name, len);
	return ky_names_set(&picture->numbers, name, (void *)(uintptr_t)*number);
}

/* What the page needs of a state beside its kind: the number of a name, or the value. */
static int timeline_detail_of(struct picture *picture, uint64_t state, uint64_t *detail)
{
	const char *name;

	*detail = ky_state_value(state);
	if (!ky_state_has_name(ky_state_kind(state)))
		return KYMO_OK;
	name = ky_history_name(picture->history, *detail);
	*detail = 0;
	return *name ? timeline_number_of(picture, name, detail) : KYMO_OK;
}

/* The place of a state in the answer, from 0 on. 0 or KYMO_E_MEMORY. */
static int timeline_place_of(struct picture *picture, uint64_t state, uint64_t *place)
{
	uintptr_t known = (uintptr_t)ky_map_get(&picture->places, state);
	uint64_t detail;

	*place = known - 1;
	if (known)
		return KYMO_OK;
	if (timeline_detail_of(picture, state, &detail) < 0)
		return KYMO_E_MEMORY;
	*place = picture->n_states++;
	ky_strbuf_addc(&picture->states, (char)ky_state_kind(state));
	timeline_put(&picture->states, detail < MAX_DETAIL ? detail : MAX_DETAIL);
	return ky_map_set(&picture->places, state, (void *)(uintptr_t)picture->n_states);
}

/* Of pixels without one main state, those with and without short states differ. */
static bool timeline_is_same(const struct ky_history_pixel *a, const struct ky_history_pixel *b)
{
	return a->state == b->state &&
	       (ky_state_kind(a->state) != KY_STATE_NONE || a->more == b->more);
}

static void timeline_put_run(struct picture *picture, uint64_t place, size_t gap, size_t length)
{
	timeline_put(&picture->runs,
		     place << RUN_BITS | (gap ? RUN_HAS_GAP : 0) | (length > 1 ? RUN_IS_LONG : 0));
	if (gap)
		timeline_put(&picture->runs, gap);
	if (length > 1)
		timeline_put(&picture->runs, length);
	picture->n_runs++;
}

/* Pixels with the same state. */
static int timeline_put_runs(struct picture *picture)
{
	size_t end = 0; /* of the last run */

	for (size_t x = 0, to; x < picture->n; x = to) {
		uint64_t state = picture->pixels[x].state, place;

		for (to = x + 1; to < picture->n &&
				 timeline_is_same(&picture->pixels[x], &picture->pixels[to]);)
			to++;
		if (ky_state_kind(state) == KY_STATE_NONE && !picture->pixels[x].more)
			continue;
		if (timeline_place_of(picture, state, &place) < 0)
			return KYMO_E_MEMORY;
		timeline_put_run(picture, place, x - end, to - x);
		end = to;
	}
	return KYMO_OK;
}

static int timeline_put_row(struct picture *picture, uint32_t id, struct kymo_error *err)
{
	int ret = ky_history_pixels(picture->history, id, picture->begin_ns, picture->end_ns,
				    picture->n, picture->pixels, err);

	if (ret < 0)
		return ret;
	ky_strbuf_clear(&picture->runs);
	picture->n_runs = 0;
	ret = timeline_put_runs(picture);
	timeline_put(&picture->rows, id);
	timeline_put(&picture->rows, picture->n_runs);
	ky_strbuf_add(&picture->rows, ky_strbuf_text(&picture->runs), picture->runs.len);
	picture->n_rows++;
	if (ret < 0 || ky_strbuf_failed(&picture->rows) || ky_strbuf_failed(&picture->runs))
		return ky_error_nomem(err);
	return KYMO_OK;
}

static int timeline_put_rows(struct picture *picture, const struct ky_view_request *request,
			     const struct ky_view_stop *stop, struct kymo_error *err)
{
	int ret = KYMO_OK;

	picture->pixels = calloc(picture->n, sizeof(*picture->pixels));
	if (!picture->pixels)
		return ky_error_nomem(err);
	for (size_t i = 0; i < request->n_ids && ret == KYMO_OK; i++) {
		if (i % 32 == 31 && stop->is_over(stop->data))
			ret = ky_error_set(err, KYMO_E_INTERRUPTED,
					   "the client has closed the connection");
		else
			ret = timeline_put_row(picture, request->ids[i], err);
	}
	free(picture->pixels);
	return ret;
}

/* A number of things, and the things. */
static void timeline_put_list(struct ky_strbuf *out, size_t n, const struct ky_strbuf *list)
{
	timeline_put(out, n);
	ky_strbuf_add(out, ky_strbuf_text(list), list->len);
	out->failed |= list->failed;
}

static void timeline_put_picture(const struct picture *picture, struct ky_view *view,
				 struct ky_strbuf *out)
{
	const struct ky_view_history *own = ky_view_history_of(view);

	ky_strbuf_add(out, "KT\1", 3); /* the last one is the version */
	ky_strbuf_addc(out, own->is_over ? 1 : 0);
	timeline_put(out, atomic_load_explicit(&own->n_events, memory_order_relaxed));
	timeline_put(out, picture->n);
	timeline_put_list(out, picture->n_names, &picture->names);
	timeline_put_list(out, picture->n_states, &picture->states);
	timeline_put_list(out, picture->n_rows, &picture->rows);
}

int ky_view_timeline(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct picture picture = {.begin_ns = request->begin_ns,
				  .names = KY_STRBUF_INIT,
				  .states = KY_STRBUF_INIT,
				  .rows = KY_STRBUF_INIT,
				  .runs = KY_STRBUF_INIT};
	int ret;

	picture.n = ky_view_n_pixels(request, &picture.end_ns);
	ky_names_init(&picture.numbers);
	ky_map_init(&picture.places);
	ret = ky_view_take_history(view, &picture.history, err);
	if (ret == KYMO_OK && picture.history && picture.end_ns > request->begin_ns)
		ret = timeline_put_rows(&picture, request, stop, err);
	if (ret == KYMO_OK)
		timeline_put_picture(&picture, view, out);
	ky_view_put_history(view);
	if (ret == KYMO_OK && ky_strbuf_failed(out))
		ret = ky_error_nomem(err);
	ky_map_fini(&picture.places);
	ky_names_fini(&picture.numbers);
	ky_strbuf_fini(&picture.names);
	ky_strbuf_fini(&picture.states);
	ky_strbuf_fini(&picture.rows);
	ky_strbuf_fini(&picture.runs);
	return ret;
}
