/* SPDX-License-Identifier: MIT */
/* Rows of the state history: what CPUs, threads, spans and disks did. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "view/view-internal.h"

#define MAX_THREADS   16
#define MAX_OTHERS    128 /* rows of each other kind */
#define MAX_LOOKED_AT 20000
#define COARSE_PIXELS 64

/* ---- building ---------------------------------------------------------------------------- */

static int open_events(void *data, const struct ky_trace_set *set, struct ky_flow **flow,
		       struct kymo_error *err)
{
	struct ky_selection selection;

	(void)data;
	ky_selection_init(&selection);
	return ky_flow_open_selected(set, &selection, flow, err);
}

static int note_progress(void *data, uint64_t n_events)
{
	struct ky_view_history *own = data;

	atomic_store_explicit(&own->n_events, n_events, memory_order_relaxed);
	return atomic_load_explicit(&own->stop, memory_order_relaxed) ? KYMO_E_INTERRUPTED : 0;
}

static void *build(void *data)
{
	struct ky_view *view = data;
	struct ky_view_history *own = &view->history;
	const struct ky_history_source source = {open_events, note_progress, own};
	struct ky_history *history = NULL;
	struct kymo_error damage, err;
	bool built;
	int ret;

	ky_error_clear(&damage);
	ky_error_clear(&err);
	ret = ky_history_get(view->set, &source, &history, &built, &damage, &err);
	pthread_mutex_lock(&own->lock);
	own->is_over = true;
	own->history = ret < 0 ? NULL : history;
	if (ret < 0)
		own->error = err;
	pthread_mutex_unlock(&own->lock);
	return NULL;
}

void ky_view_history_init(struct ky_view_history *own)
{
	pthread_mutex_init(&own->lock, NULL);
}

void ky_view_history_fini(struct ky_view_history *own)
{
	atomic_store_explicit(&own->stop, true, memory_order_relaxed);
	if (own->is_started)
		pthread_join(own->thread, NULL);
	ky_history_close(own->history);
	pthread_mutex_destroy(&own->lock);
}

/* The first picture with rows begins the pass. The caller has the lock. */
static int begin(struct ky_view *view, struct kymo_error *err)
{
	int status;

	if (view->shared || view->history.is_started)
		return KYMO_OK;
	status = pthread_create(&view->history.thread, NULL, build, view);
	if (status)
		return ky_error_errno(err, status, "cannot start a thread that builds the history");
	view->history.is_started = true;
	return KYMO_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

struct picture {
	struct ky_history *history;
	const struct ky_view_request *request;
	int64_t end_ns; /* exclusive */
	size_t n;
	struct ky_history_pixel *pixels;
	struct ky_strbuf *out;
	size_t n_rows;
};

struct busy {
	uint32_t row;
	double active; /* pixels */
};

static bool runs(enum ky_state_kind kind)
{
	return kind == KY_STATE_USER || kind == KY_STATE_SYSCALL || kind == KY_STATE_RUNNING ||
	       kind == KY_STATE_IRQ || kind == KY_STATE_SOFTIRQ;
}

/* The name that the value of @state stands for; "": none. */
static const char *name_of(const struct picture *picture, uint64_t state)
{
	uint64_t value = ky_state_value(state);

	if (ky_state_has_name(ky_state_kind(state)))
		return ky_history_name(picture->history, value);
	if (ky_state_kind(state) == KY_STATE_RUNS && value < ky_history_n_rows(picture->history))
		return ky_history_row(picture->history, (uint32_t)value)->name;
	return "";
}

/* Of pixels without one main state, those with and without short states differ. */
static bool is_same(const struct ky_history_pixel *a, const struct ky_history_pixel *b)
{
	return a->state == b->state &&
	       (ky_state_kind(a->state) != KY_STATE_NONE || a->more == b->more);
}

/* [from, to, kind, name, value]: pixels with the same state. */
static void put_runs(struct picture *picture)
{
	struct ky_strbuf *out = picture->out;
	bool any = false;

	for (size_t x = 0, to; x < picture->n; x = to) {
		uint64_t state = picture->pixels[x].state;

		for (to = x + 1;
		     to < picture->n && is_same(&picture->pixels[x], &picture->pixels[to]);)
			to++;
		if (ky_state_kind(state) == KY_STATE_NONE && !picture->pixels[x].more)
			continue;
		ky_strbuf_addf(out, "%s[%zu,%zu,%d,", any ? "," : "", x, to,
			       (int)ky_state_kind(state));
		ky_view_put_text(out, name_of(picture, state));
		ky_strbuf_addf(out, ",%llu]", (unsigned long long)ky_state_value(state));
		any = true;
	}
}

static int put_row(struct picture *picture, const struct ky_history_row *row,
		   struct kymo_error *err)
{
	struct ky_strbuf *out = picture->out;
	int ret = ky_history_pixels(picture->history, row->id, picture->request->begin_ns,
				    picture->end_ns, picture->n, picture->pixels, err);

	if (ret < 0)
		return ret;
	ky_strbuf_addf(out, "%s{\"id\": %u, \"kind\": \"%s\", \"number\": %lld, \"name\": ",
		       picture->n_rows ? ",\n" : "", row->id, ky_row_kind_text(row->kind),
		       (long long)row->number);
	ky_view_put_text(out, row->name);
	ky_strbuf_adds(out, ", \"runs\": [");
	put_runs(picture);
	ky_strbuf_adds(out, "]}");
	picture->n_rows++;
	return KYMO_OK;
}

static bool is_there(const struct picture *picture, const struct ky_history_row *row,
		     enum ky_row_kind kind)
{
	return row->kind == kind && row->begin_ns != INT64_MIN &&
	       row->end_ns > picture->request->begin_ns && row->begin_ns < picture->end_ns;
}

static int put_kind(struct picture *picture, enum ky_row_kind kind, struct kymo_error *err)
{
	size_t n = ky_history_n_rows(picture->history), n_put = 0;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && n_put < MAX_OTHERS && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(picture->history, (uint32_t)i);

		if (!is_there(picture, row, kind))
			continue;
		ret = put_row(picture, row, err);
		n_put++;
	}
	return ret;
}

static int activity(struct picture *picture, uint32_t row, double *active, struct kymo_error *err)
{
	size_t n = picture->n < COARSE_PIXELS ? picture->n : COARSE_PIXELS;
	int ret = ky_history_pixels(picture->history, row, picture->request->begin_ns,
				    picture->end_ns, n, picture->pixels, err);

	*active = 0;
	for (size_t x = 0; x < n && ret == KYMO_OK; x++) {
		if (runs(ky_state_kind(picture->pixels[x].state)))
			*active += picture->pixels[x].share / 255.0;
		else if (picture->pixels[x].more)
			*active += 1e-3;
	}
	return ret;
}

static void keep_busiest(struct busy *busy, size_t *n, struct busy one)
{
	size_t at = *n;

	while (at && busy[at - 1].active < one.active)
		at--;
	if (one.active <= 0 || at >= MAX_THREADS)
		return;
	*n += *n < MAX_THREADS;
	memmove(&busy[at + 1], &busy[at], (*n - at - 1) * sizeof(*busy));
	busy[at] = one;
}

/* The threads that run most in the range. */
static int put_threads(struct picture *picture, const struct ky_view_stop *stop,
		       struct kymo_error *err)
{
	size_t n_rows = ky_history_n_rows(picture->history), n = 0, n_looked = 0;
	struct busy busy[MAX_THREADS], one;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_rows && n_looked < MAX_LOOKED_AT && ret == KYMO_OK; i++) {
		one.row = (uint32_t)i;
		if (!is_there(picture, ky_history_row(picture->history, one.row), KY_ROW_THREAD))
			continue;
		if (n_looked++ % 256 == 255 && stop->is_over(stop->data))
			return ky_error_set(err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		ret = activity(picture, one.row, &one.active, err);
		keep_busiest(busy, &n, one);
	}
	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = put_row(picture, ky_history_row(picture->history, busy[i].row), err);
	return ret;
}

static int draw(struct picture *picture, const struct ky_view_stop *stop, struct kymo_error *err)
{
	static const enum ky_row_kind after[] = {KY_ROW_SPANS, KY_ROW_DISK};
	int ret;

	picture->pixels = calloc(picture->n, sizeof(*picture->pixels));
	if (!picture->pixels)
		return ky_error_nomem(err);
	ret = put_kind(picture, KY_ROW_CPU, err);
	if (ret == KYMO_OK)
		ret = put_threads(picture, stop, err);
	for (size_t i = 0; i < sizeof(after) / sizeof(*after) && ret == KYMO_OK; i++)
		ret = put_kind(picture, after[i], err);
	free(picture->pixels);
	return ret;
}

int ky_view_timeline(struct ky_view *view, const struct ky_view_request *request,
		     const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_view_history *own = ky_view_history_of(view);
	struct picture picture = {.request = request, .n = request->count, .out = out};
	uint64_t span = (uint64_t)request->end_ns - (uint64_t)request->begin_ns + 1;
	int ret;

	picture.end_ns = request->end_ns < INT64_MAX ? request->end_ns + 1 : INT64_MAX;
	if (span && span < picture.n)
		picture.n = (size_t)span;
	pthread_mutex_lock(&own->lock);
	ret = begin(view, err);
	if (ret == KYMO_OK && own->error.code) {
		if (err)
			*err = own->error;
		ret = own->error.code;
	}
	if (ret == KYMO_OK) {
		ky_strbuf_addf(out, "{\"ready\": %s, \"read\": %llu, \"count\": %zu, \"rows\": [",
			       own->is_over ? "true" : "false",
			       (unsigned long long)atomic_load_explicit(&own->n_events,
									memory_order_relaxed),
			       picture.n);
		picture.history = own->history;
		if (picture.history && picture.end_ns > request->begin_ns)
			ret = draw(&picture, stop, err);
		ky_strbuf_adds(out, "]}\n");
	}
	pthread_mutex_unlock(&own->lock);
	return ret;
}
