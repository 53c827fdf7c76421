/* SPDX-License-Identifier: MIT */
#include "view/answers/wakings.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/decode/decode.h"
#include "view/answers/row-index.h"

#define MAX_STATES    8	  /* of the woken thread, until it runs */
#define MAX_READ_BITS 4e8 /* of the range: reading takes some tenths of a second */

struct wakings {
	const struct ky_wakings_query *query;
	struct ky_history *history;
	struct ky_row_index index;
	uint32_t *machines; /* of streams: their machines' rows */
	void (*put)(void *data, const struct ky_waking *waking);
	void *data;
	struct ky_waking last;
	size_t n;
	const struct ky_event_class *cls; /* that the handle is for */
	struct ky_handle tid;
};

static bool wakings_runs(enum ky_state_kind kind)
{
	return kind == KY_STATE_USER || kind == KY_STATE_SYSCALL || kind == KY_STATE_RUNNING ||
	       kind == KY_STATE_IRQ || kind == KY_STATE_SOFTIRQ;
}

/* When @row runs after @ns; INT64_MIN: it did already, or it is not known. */
static int wakings_find_run(struct wakings *wakings, uint32_t row, int64_t ns, int64_t *run_ns,
			    struct kymo_error *err)
{
	struct ky_history_interval at = {.end_ns = ns};
	int ret = KYMO_OK;

	*run_ns = INT64_MIN;
	for (size_t i = 0; i < MAX_STATES && at.end_ns < INT64_MAX; i++) {
		ret = ky_history_at(wakings->history, row, at.end_ns, &at, err);
		if (ret < 0 || (!i && wakings_runs(ky_state_kind(at.state))))
			return ret;
		if (wakings_runs(ky_state_kind(at.state))) {
			*run_ns = at.begin_ns;
			return KYMO_OK;
		}
	}
	return KYMO_OK;
}

/* One in each sample is enough: of all, or of the same two threads. */
static bool wakings_is_dense(const struct wakings *wakings, const struct ky_waking *waking)
{
	const struct ky_waking *last = &wakings->last;

	if (!wakings->n ||
	    (uint64_t)waking->begin_ns - (uint64_t)last->begin_ns >= wakings->query->width_ns)
		return false;
	return wakings->query->row == KY_HISTORY_NO_ROW ||
	       (waking->from == last->from && waking->to == last->to);
}

static bool wakings_has_tid(struct wakings *wakings, const struct ky_event *event, uint64_t *tid)
{
	if (event->cls != wakings->cls) {
		wakings->cls = event->cls;
		if (!ky_handle_find(&wakings->tid, event->cls, KY_SCOPE_PAYLOAD, "tid"))
			ky_handle_find(&wakings->tid, event->cls, KY_SCOPE_PAYLOAD, "pid");
	}
	return wakings->tid.cls && ky_get_number(event, &wakings->tid, tid);
}

static int wakings_add(struct wakings *wakings, const struct ky_stream *stream,
		       const struct ky_event *event, struct kymo_error *err)
{
	struct ky_waking waking = {.begin_ns = event->ns};
	uint32_t machine = wakings->machines[stream->index], cpu, only = wakings->query->row;
	struct ky_history_interval waker;
	uint64_t tid;
	int ret;

	if (event->ns == INT64_MIN || !wakings_has_tid(wakings, event, &tid))
		return KYMO_OK;
	cpu = ky_row_find(&wakings->index, KY_ROW_CPU, machine, event->cpu_id, event->ns);
	waking.to = ky_row_find(&wakings->index, KY_ROW_THREAD, machine, (int32_t)tid, event->ns);
	if (cpu == KY_HISTORY_NO_ROW || waking.to == KY_HISTORY_NO_ROW)
		return KYMO_OK;
	ret = ky_history_at(wakings->history, cpu, event->ns, &waker, err);
	if (ret < 0 || ky_state_kind(waker.state) != KY_STATE_RUNS)
		return ret; /* an interrupt of the idle CPU */
	waking.from = (uint32_t)ky_state_value(waker.state);
	if ((only != KY_HISTORY_NO_ROW && waking.from != only && waking.to != only) ||
	    wakings_is_dense(wakings, &waking))
		return KYMO_OK;
	ret = wakings_find_run(wakings, waking.to, event->ns, &waking.end_ns, err);
	if (ret < 0 || waking.end_ns == INT64_MIN)
		return ret;
	wakings->put(wakings->data, &waking);
	wakings->last = waking;
	wakings->n++;
	return KYMO_OK;
}

/* The first event of a waking that the traces have. */
static const char *wakings_filter(const struct ky_view *view)
{
	bool has_waking = false, has_wakeup = false;

	ky_vec_foreach(&view->set->traces, trace) {
		ky_vec_foreach(&(*trace)->cls->events, event) {
			has_waking |= strcmp((*event)->name, "sched_waking") == 0;
			has_wakeup |= strcmp((*event)->name, "sched_wakeup") == 0;
		}
	}
	return has_waking   ? "$event == \"sched_waking\""
	       : has_wakeup ? "$event == \"sched_wakeup\""
			    : NULL;
}

static int wakings_read(struct wakings *wakings, struct ky_flow *flow, struct kymo_error *err)
{
	size_t max = wakings->query->max;
	struct ky_batch batch;
	int ret = KYMO_OK;

	while (wakings->n < max && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events && ret > 0 && wakings->n < max; i++) {
			const struct ky_event *event = &batch.events[i];
			int status =
				wakings_add(wakings, ky_batch_stream(&batch, event), event, err);

			ret = status < 0 ? status : 1;
		}
		if (ret < 0)
			break;
	}
	/* Of a damaged trace: what could be read. */
	return ret > 0 || ret == KYMO_E_FORMAT || ret == KYMO_E_IO || ret == KYMO_E_LIMIT ? KYMO_OK
											  : ret;
}

int ky_view_wakings(const struct ky_view *view, struct ky_history *history,
		    const struct ky_wakings_query *query, const struct ky_view_stop *stop,
		    void (*put)(void *data, const struct ky_waking *waking), void *data,
		    struct kymo_error *err)
{
	struct wakings wakings = {.query = query, .history = history, .put = put, .data = data};
	const char *filter = wakings_filter(view);
	struct ky_flow *flow;
	int ret;

	if (!filter || ky_view_bits(view, query->begin_ns, query->end_ns) > MAX_READ_BITS)
		return filter ? 1 : KYMO_OK;
	wakings.machines = calloc(view->set->streams.len + 1, sizeof(*wakings.machines));
	if (!wakings.machines || ky_row_index_init(&wakings.index, history) < 0) {
		ret = ky_error_nomem(err);
	} else {
		ky_vec_foreach(&view->set->streams, stream)
			wakings.machines[(*stream)->index] =
				ky_row_machine(&wakings.index, history, (*stream)->trace);
		ret = ky_view_flow(view, filter, query->begin_ns, query->end_ns, stop, &flow, err);
		if (ret == KYMO_OK) {
			ret = wakings_read(&wakings, flow, err);
			ky_flow_close(flow);
		}
	}
	ky_row_index_fini(&wakings.index);
	free(wakings.machines);
	return ret;
}
