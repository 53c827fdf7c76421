/* SPDX-License-Identifier: MIT */
/* Arrows of threads: from the waker, at the waking, to the woken thread when it runs. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "ctf/decode/decode.h"
#include "view/tsp-internal.h"

#define THREADS	      "kymo.threads"
#define MAX_ARROWS    5000
#define MAX_STATES    8	  /* of the woken thread, until it runs */
#define MAX_READ_BITS 4e8 /* of the range: reading takes some tenths of a second */
#define USUAL_SAMPLES 1000

struct arrows {
	struct ky_tsp_answer *answer;
	struct ky_history *history;
	struct ky_map threads; /* by id: the row + 1 with the latest begin */
	struct ky_map cpus;    /* by number: the row + 1 */
	int64_t last_ns;       /* begin of the last arrow */
	uint64_t width_ns;     /* of a sample: one arrow in each is enough */
	size_t n;
	const struct ky_event_class *cls; /* that the handle is for */
	struct ky_handle tid;
};

static int map_rows(struct arrows *arrows, struct kymo_error *err)
{
	size_t n = ky_history_n_rows(arrows->history);

	for (size_t i = 0; i < n; i++) {
		const struct ky_history_row *row = ky_history_row(arrows->history, (uint32_t)i);
		struct ky_map *map = row->kind == KY_ROW_THREAD ? &arrows->threads
				     : row->kind == KY_ROW_CPU	? &arrows->cpus
								: NULL;
		void *value = (void *)(uintptr_t)(i + 1);

		if (map && row->begin_ns != INT64_MIN &&
		    ky_map_set(map, (uint64_t)row->number, value) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static uint32_t tsp_arrows_row_of(const struct ky_map *map, uint64_t number)
{
	uintptr_t value = (uintptr_t)ky_map_get(map, number);

	return value ? (uint32_t)(value - 1) : KY_HISTORY_NO_ROW;
}

static bool tsp_arrows_runs(enum ky_state_kind kind)
{
	return kind == KY_STATE_USER || kind == KY_STATE_SYSCALL || kind == KY_STATE_RUNNING ||
	       kind == KY_STATE_IRQ || kind == KY_STATE_SOFTIRQ;
}

/* When @row runs after @ns; INT64_MIN: it did already, or it is not known. */
static int time_of_run(struct arrows *arrows, uint32_t row, int64_t ns, int64_t *run_ns,
		       struct kymo_error *err)
{
	struct ky_history_interval at = {.end_ns = ns};
	int ret = KYMO_OK;

	*run_ns = INT64_MIN;
	for (size_t i = 0; i < MAX_STATES && at.end_ns < INT64_MAX; i++) {
		ret = ky_history_at(arrows->history, row, at.end_ns, &at, err);
		if (ret < 0 || (!i && tsp_arrows_runs(ky_state_kind(at.state))))
			return ret;
		if (tsp_arrows_runs(ky_state_kind(at.state))) {
			*run_ns = at.begin_ns;
			return KYMO_OK;
		}
	}
	return KYMO_OK;
}

static void put_arrow(struct arrows *arrows, uint32_t from, uint32_t to, int64_t begin_ns,
		      int64_t end_ns)
{
	ky_strbuf_addf(arrows->answer->out,
		       "%s{\"sourceId\": %u, \"targetId\": %u, \"start\": %lld, \"end\": %lld}",
		       arrows->n++ ? ",\n" : "", from, to, (long long)begin_ns, (long long)end_ns);
	arrows->last_ns = begin_ns;
}

static int add_waking(struct arrows *arrows, const struct ky_event *event, struct kymo_error *err)
{
	uint32_t cpu = tsp_arrows_row_of(&arrows->cpus, event->cpu_id), target;
	struct ky_history_interval waker;
	int64_t run_ns;
	uint64_t tid;
	int ret;

	if (event->cls != arrows->cls) {
		arrows->cls = event->cls;
		if (!ky_handle_find(&arrows->tid, event->cls, KY_SCOPE_PAYLOAD, "tid"))
			ky_handle_find(&arrows->tid, event->cls, KY_SCOPE_PAYLOAD, "pid");
	}
	if (cpu == KY_HISTORY_NO_ROW || !ky_get_number(event, &arrows->tid, &tid) ||
	    (arrows->n && (uint64_t)event->ns - (uint64_t)arrows->last_ns < arrows->width_ns))
		return KYMO_OK;
	target = tsp_arrows_row_of(&arrows->threads, (uint64_t)(int32_t)tid);
	if (target == KY_HISTORY_NO_ROW)
		return KYMO_OK;
	ret = ky_history_at(arrows->history, cpu, event->ns, &waker, err);
	if (ret < 0 || ky_state_kind(waker.state) != KY_STATE_RUNS)
		return ret; /* an interrupt of the idle CPU */
	ret = time_of_run(arrows, target, event->ns, &run_ns, err);
	if (ret == KYMO_OK && run_ns != INT64_MIN)
		put_arrow(arrows, (uint32_t)ky_state_value(waker.state), target, event->ns, run_ns);
	return ret;
}

/* The first event of a waking that the traces have. */
static const char *waking_filter(const struct ky_view *view)
{
	bool has_waking = false, has_wakeup = false;

	ky_vec_foreach(&view->set->traces, trace) {
		const struct ky_trace_class *cls = (*trace)->cls;

		for (size_t i = 0; i < cls->events.len; i++) {
			const char *name = cls->events.data[i]->name;

			has_waking |= strcmp(name, "sched_waking") == 0;
			has_wakeup |= strcmp(name, "sched_wakeup") == 0;
		}
	}
	return has_waking   ? "$event == \"sched_waking\""
	       : has_wakeup ? "$event == \"sched_wakeup\""
			    : NULL;
}

static int read_wakings(struct arrows *arrows, const char *filter, struct kymo_error *err)
{
	const struct ky_tsp_request *request = arrows->answer->request;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(arrows->answer->view, filter, request->begin_ns, request->end_ns,
			       arrows->answer->stop, &flow, err);

	if (ret < 0)
		return ret;
	while (arrows->n < MAX_ARROWS && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events && ret > 0 && arrows->n < MAX_ARROWS; i++) {
			int status = add_waking(arrows, &batch.events[i], err);

			ret = status < 0 ? status : 1;
		}
		if (ret < 0)
			break;
	}
	ky_flow_close(flow);
	/* Of a damaged trace: what could be read. */
	return ret > 0 || ret == KYMO_E_FORMAT || ret == KYMO_E_IO || ret == KYMO_E_LIMIT ? KYMO_OK
											  : ret;
}

static int put_arrows(struct arrows *arrows, struct kymo_error *err)
{
	const struct ky_tsp_request *request = arrows->answer->request;
	const struct ky_view *view = arrows->answer->view;
	const char *filter = waking_filter(view);
	size_t n = request->n_times ? request->n_times : USUAL_SAMPLES;
	int ret;

	if (!filter || ky_view_bits(view, request->begin_ns, request->end_ns) > MAX_READ_BITS)
		return KYMO_OK;
	arrows->width_ns = ((uint64_t)request->end_ns - (uint64_t)request->begin_ns) / n;
	ky_map_init(&arrows->threads);
	ky_map_init(&arrows->cpus);
	ret = map_rows(arrows, err);
	if (ret == KYMO_OK)
		ret = read_wakings(arrows, filter, err);
	ky_map_fini(&arrows->threads);
	ky_map_fini(&arrows->cpus);
	return ret;
}

int ky_tsp_arrows(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct arrows arrows = {.answer = answer};
	int ret = ky_tsp_check_output(answer->request->output, "TIME_GRAPH", err);

	if (ret < 0)
		return ret;
	arrows.history = ky_tsp_begin_history(answer, err);
	if (!arrows.history && err->code)
		return err->code;
	ky_tsp_put_head(answer->out, !arrows.history);
	ky_strbuf_adds(answer->out, "[");
	if (arrows.history && strcmp(answer->request->output, THREADS) == 0)
		ret = put_arrows(&arrows, err);
	ky_strbuf_adds(answer->out, "]}\n");
	if (arrows.history)
		ky_view_put_history(answer->view);
	return ret;
}
