/* SPDX-License-Identifier: MIT */
/*
 * Who ended a thread's wait. The history has the time of the wake-up: the end of the wait. The event there
 * tells on which CPU it was, and the history what that CPU did then.
 */
#include <string.h>

#include "base/error.h"
#include "view/row-index.h"
#include "view/view-internal.h"

struct waking {
	int64_t tid, ns;
	uint32_t cpu_id; /* of the event; UINT32_MAX: none was found */
};

static bool waker_is_wait(enum ky_state_kind kind)
{
	return kind >= KY_STATE_BLOCKED && kind <= KY_STATE_STOPPED;
}

/* 1: the wait around @ns ended at waking->ns; 0: the thread does not wait then, or nothing woke it. */
static int find_end(struct ky_history *history, const struct ky_history_row *row, int64_t ns,
		    struct waking *waking, struct kymo_error *err)
{
	struct ky_history_interval found;
	int ret = ky_history_at(history, row->id, ns, &found, err);

	if (ret == KYMO_OK && ky_state_kind(found.state) == KY_STATE_WAIT_CPU &&
	    found.begin_ns != INT64_MIN) {
		/* It waits for a CPU since it was woken, or taken off one. */
		waking->ns = found.begin_ns;
		ret = ky_history_at(history, row->id, found.begin_ns - 1, &found, err);
		return ret < 0 ? ret : waker_is_wait(ky_state_kind(found.state));
	}
	waking->ns = found.end_ns;
	return ret < 0 ? ret
		       : waker_is_wait(ky_state_kind(found.state)) && found.end_ns != INT64_MAX;
}

/* ---- the event ------------------------------------------------------------------------------- */

static bool waker_wakes(const struct ky_event *event, int64_t tid)
{
	static const char *const names[] = {"sched_waking", "sched_wakeup", "sched_wakeup_new"};
	struct ky_handle handle;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(event->cls->name, names[i]) == 0)
			return (ky_handle_find(&handle, event->cls, KY_SCOPE_PAYLOAD, "tid") ||
				ky_handle_find(&handle, event->cls, KY_SCOPE_PAYLOAD, "pid")) &&
			       ky_get_i64(event, &handle, -1) == tid;
	}
	return false;
}

static int find_event(const struct ky_view *view, const struct ky_view_stop *stop,
		      struct waking *waking, struct kymo_error *err)
{
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(view, "", waking->ns, waking->ns, stop, &flow, err);

	if (ret < 0)
		return ret;
	while (waking->cpu_id == UINT32_MAX && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events && waking->cpu_id == UINT32_MAX; i++) {
			if (waker_wakes(&batch.events[i], waking->tid))
				waking->cpu_id = batch.events[i].cpu_id;
		}
	}
	ky_flow_close(flow);
	return ret == KYMO_E_INTERRUPTED || ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

/* ---- the CPU --------------------------------------------------------------------------------- */

/* The handler that began last, of those that run on @cpu at @ns. */
static int find_handler(struct ky_history *history, uint32_t cpu, int64_t ns, const char **name,
			struct kymo_error *err)
{
	size_t n = ky_history_n_rows(history);
	int64_t since_ns = INT64_MIN;
	int ret = KYMO_OK;

	*name = "";
	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)i);
		struct ky_history_interval found;

		if (row->kind != KY_ROW_IRQ || row->parent != cpu)
			continue;
		ret = ky_history_at(history, row->id, ns, &found, err);
		if (ret < 0 || ky_state_kind(found.state) != KY_STATE_ACTIVE ||
		    found.begin_ns < since_ns)
			continue;
		since_ns = found.begin_ns;
		*name = row->name;
	}
	return ret;
}

static uint32_t waker_machine_of(const struct ky_history *history, const struct ky_history_row *row)
{
	for (int i = 0; i < KY_ROW_KINDS && row->parent != KY_HISTORY_NO_ROW; i++)
		row = ky_history_row(history, row->parent);
	return row->id;
}

static int waker_put_waker(struct ky_history *history, uint32_t machine,
			   const struct waking *waking, struct ky_strbuf *out,
			   struct kymo_error *err)
{
	struct ky_history_interval found = {.state = KY_STATE_NONE};
	const char *handler = "";
	struct ky_row_index index;
	uint32_t cpu;
	int ret = ky_row_index_init(&index, history) < 0 ? ky_error_nomem(err) : KYMO_OK;

	cpu = ky_row_find(&index, KY_ROW_CPU, machine, waking->cpu_id, waking->ns);
	ky_row_index_fini(&index);
	if (ret == KYMO_OK && cpu != KY_HISTORY_NO_ROW)
		ret = ky_history_at(history, cpu, waking->ns, &found, err);
	if (ret == KYMO_OK && cpu != KY_HISTORY_NO_ROW)
		ret = find_handler(history, cpu, waking->ns, &handler, err);
	ky_strbuf_addf(out, "{\"ns\": %lld, \"cpu\": %u, \"thread\": ", (long long)waking->ns,
		       waking->cpu_id);
	if (ky_state_kind(found.state) == KY_STATE_RUNS)
		ky_strbuf_addu(out, ky_state_value(found.state));
	else
		ky_strbuf_adds(out, "null");
	ky_strbuf_adds(out, ", \"handler\": ");
	ky_view_put_text(out, handler);
	ky_strbuf_adds(out, "}\n");
	return ret;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* As find_end(), for the row of a thread. */
static int waker_find_wait(struct ky_view *view, const struct ky_view_request *request,
			   struct waking *waking, struct kymo_error *err)
{
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK && (!history || request->row >= ky_history_n_rows(history)))
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such row");
	if (ret == KYMO_OK &&
	    ky_history_row(history, (uint32_t)request->row)->kind == KY_ROW_THREAD) {
		const struct ky_history_row *row = ky_history_row(history, (uint32_t)request->row);

		waking->tid = row->number;
		ret = find_end(history, row, request->ns, waking, err);
	}
	ky_view_put_history(view);
	return ret;
}

int ky_view_waker(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct waking waking = {.cpu_id = UINT32_MAX};
	struct ky_history *history;
	int ret = waker_find_wait(view, request, &waking, err);

	if (ret > 0)
		ret = find_event(view, stop, &waking, err);
	if (ret < 0)
		return ret;
	if (waking.cpu_id == UINT32_MAX) {
		ky_strbuf_adds(out, "{\"ns\": null}\n");
		return KYMO_OK;
	}
	/* Events were read without the history, which may be another one now. */
	ret = ky_view_take_history(view, &history, err);
	if (ret == KYMO_OK && (!history || request->row >= ky_history_n_rows(history)))
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such row");
	if (ret == KYMO_OK)
		ret = waker_put_waker(
			history,
			waker_machine_of(history, ky_history_row(history, (uint32_t)request->row)),
			&waking, out, err);
	ky_view_put_history(view);
	return ret;
}
