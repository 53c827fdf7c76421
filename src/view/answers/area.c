/* SPDX-License-Identifier: MIT */
/* What is in a range: events by name, states of threads, calls, spans, interrupts, requests, counters. */
#include "view/answers/area.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

/* Longer lists end here. */
#define MAX_NAMES   256
#define MAX_THREADS 512
#define MAX_CURVES  256
/* Intervals that are read one by one; rows beyond that are measured by pixels. */
#define MAX_STATES ((size_t)300000)
#define PIXELS	   ((size_t)1024)

/* ---- lists of names ------------------------------------------------------------------------ */

struct sum {
	const char *name;
	uint64_t n;
	double ns, wait_ns, max_ns;
};

struct sums {
	struct ky_names places; /* name -> place + 1 */
	KY_VEC(struct sum) list;
};

static struct sum *area_sum_of(struct sums *sums, const char *name)
{
	uintptr_t place = (uintptr_t)ky_names_get(&sums->places, name);

	if (place)
		return &sums->list.data[place - 1];
	if (ky_vec_push(&sums->list, (struct sum){.name = name}) < 0 ||
	    ky_names_set(&sums->places, name, (void *)(uintptr_t)sums->list.len) < 0)
		return NULL;
	return ky_vec_last(&sums->list);
}

static int by_weight(const void *a, const void *b)
{
	const struct sum *one = a, *other = b;
	double x = one->ns + one->wait_ns, y = other->ns + other->wait_ns;

	if (x != y)
		return x < y ? 1 : -1;
	if (one->n != other->n)
		return one->n < other->n ? 1 : -1;
	return strcmp(one->name, other->name);
}

static void put_sums(struct ky_strbuf *out, const char *title, struct sums *sums)
{
	size_t n = sums->list.len < MAX_NAMES ? sums->list.len : MAX_NAMES;

	if (sums->list.len)
		qsort(sums->list.data, sums->list.len, sizeof(*sums->list.data), by_weight);
	ky_strbuf_addf(out, ", \"%s\": [", title);
	for (size_t i = 0; i < n; i++) {
		const struct sum *sum = &sums->list.data[i];

		ky_strbuf_adds(out, i ? ",\n[" : "[");
		ky_view_put_text(out, sum->name);
		ky_strbuf_addf(out, ",%llu,%.0f,%.0f,%.0f]", (unsigned long long)sum->n, sum->ns,
			       sum->wait_ns, sum->max_ns);
	}
	ky_strbuf_adds(out, "]");
	ky_names_fini(&sums->places);
	ky_vec_fini(&sums->list);
}

/* ---- events -------------------------------------------------------------------------------- */

/* Event classes have their sums, so that a name is looked up once. */
static int area_count_events(struct sums *names, struct ky_map *classes,
			     const struct ky_batch *batch)
{
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct ky_event_class *cls = batch->events[i].cls;
		uintptr_t place = (uintptr_t)ky_map_get(classes, (uintptr_t)cls);

		if (!place) {
			struct sum *sum = area_sum_of(names, cls->name);

			place = sum ? (uintptr_t)(sum - names->list.data) + 1 : 0;
			if (!place || ky_map_set(classes, (uintptr_t)cls, (void *)place) < 0)
				return KYMO_E_MEMORY;
		}
		names->list.data[place - 1].n++;
	}
	return KYMO_OK;
}

static int read_events(const struct ky_view *view, const struct ky_view_request *request,
		       const struct ky_view_stop *stop, struct sums *names, uint64_t *n,
		       struct kymo_error *err)
{
	struct ky_map classes;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(view, request->filter, request->begin_ns, request->end_ns, stop,
			       &flow, err);

	if (ret < 0)
		return ret;
	ky_map_init(&classes);
	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		*n += batch.n_events;
		if (area_count_events(names, &classes, &batch) < 0) {
			ret = ky_error_nomem(err);
			break;
		}
	}
	ky_map_fini(&classes);
	ky_flow_close(flow);
	/* The state of counting tells of damage. */
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_IO ? KYMO_OK : ret;
}

/* ---- states -------------------------------------------------------------------------------- */

struct thread {
	const struct ky_history_row *row;
	double active_ns, ns[KY_STATE_KINDS];
};

struct area {
	struct ky_history *history;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	const struct ky_view_stop *stop;
	size_t n_states;
	bool is_exact;
	KY_VEC(struct thread) threads;
	struct sums calls, spans, irqs, requests;
	struct ky_history_pixel pixels[PIXELS];
	struct kymo_error *err;
};

static bool area_runs(enum ky_state_kind kind)
{
	return kind == KY_STATE_USER || kind == KY_STATE_SYSCALL || kind == KY_STATE_IRQ ||
	       kind == KY_STATE_SOFTIRQ || kind == KY_STATE_RUNNING;
}

static bool is_wait_in_call(enum ky_state_kind kind)
{
	return kind >= KY_STATE_BLOCKED && kind <= KY_STATE_STOPPED;
}

static int area_add(struct sums *sums, const char *name, double ns, bool waits)
{
	struct sum *sum = *name ? area_sum_of(sums, name) : NULL;

	if (!sum)
		return *name ? KYMO_E_MEMORY : KYMO_OK;
	sum->n++;
	*(waits ? &sum->wait_ns : &sum->ns) += ns;
	sum->max_ns = ns > sum->max_ns ? ns : sum->max_ns;
	return KYMO_OK;
}

/* @row was in @state for @ns of the area. */
static int add_state(struct area *area, const struct ky_history_row *row, uint64_t state, double ns)
{
	enum ky_state_kind kind = ky_state_kind(state);
	const char *name = ky_state_has_name(kind)
				   ? ky_history_name(area->history, ky_state_value(state))
				   : "";
	struct thread *thread;

	if (kind == KY_STATE_NONE || kind >= KY_STATE_KINDS)
		return KYMO_OK;
	if (row->kind == KY_ROW_SPANS)
		return area_add(&area->spans, name, ns, false);
	if (row->kind == KY_ROW_IRQ)
		return area_add(&area->irqs, row->name, ns, false);
	if (row->kind == KY_ROW_REQUESTS)
		return area_add(&area->requests, ky_state_text(kind), ns, false);
	thread = ky_vec_last(&area->threads);
	thread->ns[kind] += ns;
	thread->active_ns += area_runs(kind) ? ns : 0;
	if (kind == KY_STATE_SYSCALL || is_wait_in_call(kind))
		return area_add(&area->calls, name, ns, kind != KY_STATE_SYSCALL);
	return KYMO_OK;
}

static int add_pixels(struct area *area, const struct ky_history_row *row)
{
	uint64_t span = (uint64_t)area->end_ns - (uint64_t)area->begin_ns;
	size_t n = span < PIXELS ? (size_t)span : PIXELS;
	int ret = ky_history_pixels(area->history, row->id, area->begin_ns, area->end_ns, n,
				    area->pixels, area->err);

	area->is_exact = false;
	for (size_t i = 0; i < n && ret == KYMO_OK; i++)
		ret = add_state(area, row, area->pixels[i].state,
				(double)span / (double)n * area->pixels[i].share / 255);
	return ret;
}

static int area_add_row(struct area *area, const struct ky_history_row *row)
{
	struct ky_history_interval found;
	int ret = KYMO_OK;

	if (area->n_states > MAX_STATES)
		return add_pixels(area, row);
	for (int64_t ns = area->begin_ns; ns < area->end_ns && ret == KYMO_OK; ns = found.end_ns) {
		int64_t from_ns, to_ns;

		ret = ky_history_at(area->history, row->id, ns, &found, area->err);
		if (ret < 0 || found.end_ns <= ns)
			break;
		if (area->n_states++ % 4096 == 4095 && area->stop->is_over(area->stop->data))
			return ky_error_set(area->err, KYMO_E_INTERRUPTED,
					    "the client has closed the connection");
		from_ns = found.begin_ns > ns ? found.begin_ns : ns;
		to_ns = found.end_ns < area->end_ns ? found.end_ns : area->end_ns;
		ret = add_state(area, row, found.state,
				(double)((uint64_t)to_ns - (uint64_t)from_ns));
	}
	return ret;
}

static bool area_is_there(const struct area *area, const struct ky_history_row *row)
{
	return row->begin_ns != INT64_MIN && row->end_ns > area->begin_ns &&
	       row->begin_ns < area->end_ns;
}

static int area_add_rows(struct area *area)
{
	size_t n = ky_history_n_rows(area->history);
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(area->history, (uint32_t)i);

		if (!area_is_there(area, row))
			continue;
		if (row->kind == KY_ROW_THREAD &&
		    ky_vec_push(&area->threads, (struct thread){.row = row}) < 0)
			return ky_error_nomem(area->err);
		if (row->kind == KY_ROW_THREAD || row->kind == KY_ROW_SPANS ||
		    row->kind == KY_ROW_IRQ || row->kind == KY_ROW_REQUESTS)
			ret = area_add_row(area, row);
		if (ret == KYMO_E_MEMORY)
			ky_error_nomem(area->err);
	}
	return ret;
}

/* ---- the answer ---------------------------------------------------------------------------- */

static int area_by_activity(const void *a, const void *b)
{
	const struct thread *one = a, *other = b;

	if (one->active_ns != other->active_ns)
		return one->active_ns < other->active_ns ? 1 : -1;
	return one->row->id < other->row->id ? -1 : 1;
}

/* [id, tid, name, active ns, [ns by kind of state]] */
static void put_threads(struct area *area, struct ky_strbuf *out)
{
	size_t n = area->threads.len < MAX_THREADS ? area->threads.len : MAX_THREADS;

	if (area->threads.len)
		qsort(area->threads.data, area->threads.len, sizeof(*area->threads.data),
		      area_by_activity);
	ky_strbuf_addf(out, ", \"n_threads\": %zu, \"threads\": [", area->threads.len);
	for (size_t i = 0; i < n; i++) {
		const struct thread *thread = &area->threads.data[i];

		ky_strbuf_addf(out, "%s[%u,%lld,", i ? ",\n" : "", thread->row->id,
			       (long long)thread->row->number);
		ky_view_put_text(out, thread->row->name);
		ky_strbuf_addf(out, ",%.0f,[", thread->active_ns);
		for (int kind = 0; kind < KY_STATE_KINDS; kind++)
			ky_strbuf_addf(out, kind ? ",%.0f" : "%.0f", thread->ns[kind]);
		ky_strbuf_adds(out, "]]");
	}
	ky_strbuf_adds(out, "]");
}

/* [id, kind, number, name, lowest, mean, highest] */
static int put_curves(struct area *area, struct ky_strbuf *out)
{
	size_t n_rows = ky_history_n_rows(area->history), n = 0;
	struct ky_history_height height;
	int ret = KYMO_OK;

	ky_strbuf_adds(out, ", \"counters\": [");
	for (size_t i = 0; i < n_rows && n < MAX_CURVES && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(area->history, (uint32_t)i);

		if (!ky_row_holds_values(row->kind) || !area_is_there(area, row))
			continue;
		ret = ky_history_heights(area->history, row->id, area->begin_ns, area->end_ns, 1,
					 &height, area->err);
		if (ret < 0 || height.ns <= 0)
			continue;
		ky_strbuf_addf(out, "%s[%u,\"%s\",%lld,", n++ ? ",\n" : "", row->id,
			       ky_row_kind_text(row->kind), (long long)row->number);
		ky_view_put_text(out, row->name);
		ky_strbuf_addf(out, ",%.12g,%.12g,%.12g]", height.low, height.sum_ns / height.ns,
			       height.high);
	}
	ky_strbuf_adds(out, "]");
	return ret;
}

static int area_put_states(struct area *area, struct ky_strbuf *out)
{
	int ret = area->history ? area_add_rows(area) : KYMO_OK;

	put_threads(area, out);
	put_sums(out, "calls", &area->calls);
	put_sums(out, "spans", &area->spans);
	put_sums(out, "irqs", &area->irqs);
	put_sums(out, "requests", &area->requests);
	if (ret == KYMO_OK && area->history)
		ret = put_curves(area, out);
	else
		ky_strbuf_adds(out, ", \"counters\": []");
	ky_strbuf_adds(out, area->is_exact ? ", \"exact\": true" : ", \"exact\": false");
	ky_vec_fini(&area->threads);
	return ret;
}

static int area_answer_states(struct ky_view *view, const struct ky_view_request *request,
			      const struct ky_view_stop *stop, struct ky_strbuf *out,
			      struct kymo_error *err)
{
	struct area *area = calloc(1, sizeof(*area));
	int ret;

	if (!area)
		return ky_error_nomem(err);
	area->begin_ns = request->begin_ns;
	area->end_ns = request->end_ns < INT64_MAX ? request->end_ns + 1 : INT64_MAX;
	area->stop = stop;
	area->err = err;
	area->is_exact = true;
	ret = ky_view_take_history(view, &area->history, err);
	/* Without a history, there are still events. */
	if (ret < 0)
		area->history = NULL;
	ky_view_put_ready(view, out);
	ret = area_put_states(area, out);
	ky_view_put_history(view);
	free(area);
	return ret;
}

int ky_view_area(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct sums names = {0};
	uint64_t n = 0;
	bool is_counted = ky_view_bits(view, request->begin_ns, request->end_ns) < KY_AREA_MAX_BITS;
	int ret = is_counted ? read_events(view, request, stop, &names, &n, err) : KYMO_OK;

	ky_strbuf_adds(out, "{");
	if (ret == KYMO_OK)
		ret = area_answer_states(view, request, stop, out, err);
	ky_strbuf_addf(out, ", \"counted\": %s, \"events\": %llu", is_counted ? "true" : "false",
		       (unsigned long long)n);
	put_sums(out, "names", &names);
	ky_strbuf_adds(out, "}\n");
	return ret;
}
