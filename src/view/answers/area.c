/* SPDX-License-Identifier: MIT */
/* What is in a range: events by name, states of threads, calls, spans, interrupts, requests, counters. */
#include "view/answers/area.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "view/answers/columns.h"

/* Longer lists end here. */
#define MAX_NAMES   256
#define MAX_THREADS 512
#define MAX_CURVES  256
/* Intervals that are read one by one; what is beyond that is measured by pixels. */
#define MAX_STATES ((size_t)300000)
#define PIXELS	   ((size_t)1024)
/* Of questions to the history, in intervals, between two questions to the client. */
#define ASK_COST ((size_t)4096)

static uint64_t area_rounded(double ns)
{
	return (uint64_t)(ns + 0.5);
}

/* ---- lists of names ------------------------------------------------------------------------ */

#define TITLES(NAME)                                                                 \
	((const char *const[]){NAME ".name", NAME ".n", NAME ".ns", NAME ".waiting", \
			       NAME ".longest"})

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

/* @titles: names of the columns: names, numbers, times, times of waits, longest times. */
static void area_put_sums(struct ky_strbuf *out, const char *const titles[5], struct sums *sums)
{
	size_t n = sums->list.len < MAX_NAMES ? sums->list.len : MAX_NAMES;
	struct ky_view_column names = KY_VIEW_COLUMN(titles[0], KY_VIEW_TEXTS);
	struct ky_view_column columns[4];

	if (sums->list.len)
		qsort(sums->list.data, sums->list.len, sizeof(*sums->list.data), by_weight);
	for (size_t i = 0; i < 4; i++)
		columns[i] = (struct ky_view_column)KY_VIEW_COLUMN(titles[i + 1], KY_VIEW_NUMBERS);
	for (size_t i = 0; i < n; i++) {
		const struct sum *sum = &sums->list.data[i];

		ky_view_add_text(&names, sum->name, strlen(sum->name));
		ky_view_add_number(&columns[0], sum->n);
		ky_view_add_number(&columns[1], area_rounded(sum->ns));
		ky_view_add_number(&columns[2], area_rounded(sum->wait_ns));
		ky_view_add_number(&columns[3], area_rounded(sum->max_ns));
	}
	ky_view_put_column(out, &names);
	for (size_t i = 0; i < 4; i++)
		ky_view_put_column(out, &columns[i]);
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
	size_t n_states, cost; /* of questions to the history, since the last one to ->stop */
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

/* Before each question to the history, with what it costs. */
static int area_go_on(struct area *area, size_t cost)
{
	area->cost += cost;
	if (area->cost < ASK_COST)
		return KYMO_OK;
	area->cost = 0;
	if (!area->stop->is_over(area->stop->data))
		return KYMO_OK;
	return ky_error_set(area->err, KYMO_E_INTERRUPTED, "the client has closed the connection");
}

/* What is after @from_ns. */
static int add_pixels(struct area *area, const struct ky_history_row *row, int64_t from_ns)
{
	uint64_t span = (uint64_t)area->end_ns - (uint64_t)from_ns;
	size_t n = span < PIXELS ? (size_t)span : PIXELS;
	int ret = area_go_on(area, PIXELS);

	if (ret == KYMO_OK)
		ret = ky_history_pixels(area->history, row->id, from_ns, area->end_ns, n,
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

	for (int64_t ns = area->begin_ns; ns < area->end_ns && ret == KYMO_OK; ns = found.end_ns) {
		int64_t from_ns, to_ns;

		if (area->n_states > MAX_STATES)
			return add_pixels(area, row, ns);
		ret = area_go_on(area, 1);
		if (ret == KYMO_OK)
			ret = ky_history_at(area->history, row->id, ns, &found, area->err);
		if (ret < 0 || found.end_ns <= ns)
			break;
		area->n_states++;
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

/* Of each thread, "states" has its times by kind of state. */
static void put_threads(struct area *area, struct ky_strbuf *out)
{
	size_t n = area->threads.len < MAX_THREADS ? area->threads.len : MAX_THREADS;
	struct ky_view_column ids = KY_VIEW_COLUMN("threads.id", KY_VIEW_STEPS);
	struct ky_view_column tids = KY_VIEW_COLUMN("threads.tid", KY_VIEW_STEPS);
	struct ky_view_column names = KY_VIEW_COLUMN("threads.name", KY_VIEW_TEXTS);
	struct ky_view_column active = KY_VIEW_COLUMN("threads.active", KY_VIEW_NUMBERS);
	struct ky_view_column states = KY_VIEW_COLUMN("threads.states", KY_VIEW_NUMBERS);

	if (area->threads.len)
		qsort(area->threads.data, area->threads.len, sizeof(*area->threads.data),
		      area_by_activity);
	for (size_t i = 0; i < n; i++) {
		const struct thread *thread = &area->threads.data[i];

		ky_view_add_step(&ids, thread->row->id);
		ky_view_add_step(&tids, thread->row->number);
		ky_view_add_text(&names, thread->row->name, strlen(thread->row->name));
		ky_view_add_number(&active, area_rounded(thread->active_ns));
		for (int kind = 0; kind < KY_STATE_KINDS; kind++)
			ky_view_add_number(&states, area_rounded(thread->ns[kind]));
	}
	ky_view_put_column(out, &ids);
	ky_view_put_column(out, &tids);
	ky_view_put_column(out, &names);
	ky_view_put_column(out, &active);
	ky_view_put_column(out, &states);
}

struct counters {
	struct ky_view_column ids, numbers, texts, low, mean, high;
	struct ky_view_names kinds;
};

static void area_add_counter(struct counters *counters, const struct ky_history_row *row,
			     const struct ky_history_height *height)
{
	ky_view_add_step(&counters->ids, row->id);
	ky_view_add_name(&counters->kinds, ky_row_kind_text(row->kind));
	ky_view_add_step(&counters->numbers, row->number);
	ky_view_add_text(&counters->texts, row->name, strlen(row->name));
	ky_view_add_real(&counters->low, height->low);
	ky_view_add_real(&counters->mean, height->sum_ns / height->ns);
	ky_view_add_real(&counters->high, height->high);
}

static void area_put_counters(struct counters *counters, struct ky_strbuf *out)
{
	ky_view_put_column(out, &counters->ids);
	ky_view_put_names(out, &counters->kinds);
	ky_view_put_column(out, &counters->numbers);
	ky_view_put_column(out, &counters->texts);
	ky_view_put_column(out, &counters->low);
	ky_view_put_column(out, &counters->mean);
	ky_view_put_column(out, &counters->high);
}

static int area_add_counters(struct area *area, struct counters *counters)
{
	size_t n_rows = ky_history_n_rows(area->history);
	struct ky_history_height height;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n_rows && counters->ids.n < MAX_CURVES && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(area->history, (uint32_t)i);

		if (!ky_row_holds_values(row->kind) || !area_is_there(area, row))
			continue;
		ret = area_go_on(area, 64);
		if (ret == KYMO_OK)
			ret = ky_history_heights(area->history, row->id, area->begin_ns,
						 area->end_ns, 1, &height, area->err);
		if (ret < 0 || height.ns <= 0)
			continue;
		area_add_counter(counters, row, &height);
	}
	return ret;
}

static int put_curves(struct area *area, struct ky_strbuf *out)
{
	struct counters counters = {.ids = KY_VIEW_COLUMN("counters.id", KY_VIEW_STEPS),
				    .numbers = KY_VIEW_COLUMN("counters.number", KY_VIEW_STEPS),
				    .texts = KY_VIEW_COLUMN("counters.name", KY_VIEW_TEXTS),
				    .low = KY_VIEW_COLUMN("counters.low", KY_VIEW_DOUBLES),
				    .mean = KY_VIEW_COLUMN("counters.mean", KY_VIEW_DOUBLES),
				    .high = KY_VIEW_COLUMN("counters.high", KY_VIEW_DOUBLES)};
	int ret;

	ky_view_names_init(&counters.kinds, "counters.kinds", "counters.kind");
	ret = area->history ? area_add_counters(area, &counters) : KYMO_OK;
	area_put_counters(&counters, out);
	return ret;
}

static int area_put_states(struct area *area, struct ky_strbuf *head, struct ky_strbuf *out)
{
	int ret = area->history ? area_add_rows(area) : KYMO_OK;

	put_threads(area, out);
	area_put_sums(out, TITLES("calls"), &area->calls);
	area_put_sums(out, TITLES("spans"), &area->spans);
	area_put_sums(out, TITLES("irqs"), &area->irqs);
	area_put_sums(out, TITLES("requests"), &area->requests);
	if (ret == KYMO_OK)
		ret = put_curves(area, out);
	ky_strbuf_addf(head, ", \"exact\": %s, \"n_threads\": %zu",
		       area->is_exact ? "true" : "false", area->threads.len);
	ky_vec_fini(&area->threads);
	return ret;
}

static int area_answer_states(struct ky_view *view, const struct ky_view_request *request,
			      const struct ky_view_stop *stop, struct ky_strbuf *head,
			      struct ky_strbuf *out, struct kymo_error *err)
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
	ky_view_put_ready(view, head);
	ret = area_put_states(area, head, out);
	ky_view_put_history(view);
	free(area);
	return ret;
}

int ky_view_area(struct ky_view *view, const struct ky_view_request *request,
		 const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_strbuf head = KY_STRBUF_INIT;
	struct sums names = {0};
	uint64_t n = 0;
	bool is_counted = ky_view_bits(view, request->begin_ns, request->end_ns) < KY_AREA_MAX_BITS;
	int ret = is_counted ? read_events(view, request, stop, &names, &n, err) : KYMO_OK;

	ky_view_begin_columns(out);
	ky_strbuf_adds(&head, "{");
	if (ret == KYMO_OK)
		ret = area_answer_states(view, request, stop, &head, out, err);
	ky_strbuf_addf(&head, ", \"counted\": %s, \"events\": %llu}", is_counted ? "true" : "false",
		       (unsigned long long)n);
	area_put_sums(out, TITLES("names"), &names);
	ky_view_put_head(out, &head);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
	return ret;
}
