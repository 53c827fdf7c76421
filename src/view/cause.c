/* SPDX-License-Identifier: MIT */
/* Why a thread ran at a time: what it waited for before, and who woke it. */
#include <string.h>

#include "base/error.h"
#include "view/view-internal.h"

/* Calls and interrupts of a thread since its last wait. */
#define MAX_STEPS 20000

struct cause {
	struct ky_view *view;
	struct ky_history *history;
	const struct ky_history_row *row;
	int64_t ns;
	struct ky_history_interval ready, waited; /* begin_ns INT64_MIN: none */
	bool is_ready, has_waited;
	/* Of the waking. */
	bool is_woken;
	uint32_t cpu;
	const char *event;
};

static bool cause_is_wait(enum ky_state_kind kind)
{
	return kind >= KY_STATE_BLOCKED && kind <= KY_STATE_STOPPED;
}

/* Back in time to the last wait. */
static int cause_find_wait(struct cause *cause, struct kymo_error *err)
{
	struct ky_history_interval found;
	int64_t ns = cause->ns;

	for (int i = 0; i < MAX_STEPS && !cause->has_waited; i++) {
		int ret = ky_history_at(cause->history, cause->row->id, ns, &found, err);

		if (ret < 0)
			return ret;
		if (cause_is_wait(ky_state_kind(found.state))) {
			cause->waited = found;
			cause->has_waited = true;
		} else if (ky_state_kind(found.state) == KY_STATE_WAIT_CPU && !cause->is_ready) {
			cause->ready = found;
			cause->is_ready = true;
		}
		if (found.begin_ns == INT64_MIN || found.begin_ns > ns)
			break;
		ns = found.begin_ns - 1;
	}
	return KYMO_OK;
}

/* Is @event the waking of the thread? */
static bool is_waking(const struct cause *cause, const struct ky_event *event)
{
	struct ky_handle tid = {0};
	uint64_t number;

	if (strncmp(event->cls->name, "sched_wak", 9) != 0)
		return false;
	if (!ky_handle_find(&tid, event->cls, KY_SCOPE_PAYLOAD, "tid") &&
	    !ky_handle_find(&tid, event->cls, KY_SCOPE_PAYLOAD, "pid"))
		return false;
	return ky_get_number(event, &tid, &number) &&
	       (int64_t)(int32_t)number == cause->row->number;
}

/* The event at the end of the wait. */
static int find_waking(struct cause *cause, const struct ky_view_stop *stop, struct kymo_error *err)
{
	int64_t ns = cause->waited.end_ns;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(cause->view, "", ns, ns, stop, &flow, err);

	if (ret < 0)
		return ret;
	while (!cause->is_woken && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events && !cause->is_woken; i++) {
			if (!is_waking(cause, &batch.events[i]))
				continue;
			cause->is_woken = true;
			cause->cpu = batch.events[i].cpu_id;
			cause->event = batch.events[i].cls->name;
		}
	}
	ky_flow_close(flow);
	return ret == KYMO_E_INTERRUPTED || ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void put_interval(const struct cause *cause, const char *title,
			 const struct ky_history_interval *interval, bool is_there,
			 struct ky_strbuf *out)
{
	enum ky_state_kind kind = ky_state_kind(interval->state);

	ky_strbuf_addf(out, "\"%s\": ", title);
	if (!is_there) {
		ky_strbuf_adds(out, "null, ");
		return;
	}
	ky_strbuf_adds(out, "{\"begin\": ");
	if (interval->begin_ns == INT64_MIN)
		ky_strbuf_adds(out, "null");
	else
		ky_strbuf_addi(out, interval->begin_ns);
	ky_strbuf_addf(out,
		       ", \"end\": %lld, \"kind\": %d, \"name\": ", (long long)interval->end_ns,
		       (int)kind);
	ky_view_put_text(out,
			 ky_state_has_name(kind)
				 ? ky_history_name(cause->history, ky_state_value(interval->state))
				 : "");
	ky_strbuf_adds(out, "}, ");
}

static const struct ky_history_row *cpu_row(const struct cause *cause)
{
	size_t n = ky_history_n_rows(cause->history);

	for (size_t i = 0; i < n; i++) {
		const struct ky_history_row *row = ky_history_row(cause->history, (uint32_t)i);

		if (row->kind == KY_ROW_CPU && row->number == (int64_t)cause->cpu)
			return row;
	}
	return NULL;
}

/* Who ran there, and whether an interrupt had interrupted it. */
static int cause_put_waker(const struct cause *cause, struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_history_row *cpu = cause->is_woken ? cpu_row(cause) : NULL, *waker = NULL;
	struct ky_history_interval found;
	const char *irq = "";
	int64_t ns = cause->waited.end_ns;
	int ret = KYMO_OK;

	if (!cause->is_woken) {
		ky_strbuf_adds(out, "\"waker\": null");
		return KYMO_OK;
	}
	if (cpu)
		ret = ky_history_at(cause->history, cpu->id, ns, &found, err);
	if (cpu && ret == KYMO_OK && ky_state_kind(found.state) == KY_STATE_RUNS &&
	    ky_state_value(found.state) < ky_history_n_rows(cause->history)) {
		waker = ky_history_row(cause->history, (uint32_t)ky_state_value(found.state));
		ret = ky_history_at(cause->history, waker->id, ns, &found, err);
		if (ret == KYMO_OK && (ky_state_kind(found.state) == KY_STATE_IRQ ||
				       ky_state_kind(found.state) == KY_STATE_SOFTIRQ))
			irq = ky_history_name(cause->history, ky_state_value(found.state));
	}
	ky_strbuf_addf(out, "\"waker\": {\"ns\": %lld, \"cpu\": %u, \"event\": ", (long long)ns,
		       cause->cpu);
	ky_view_put_text(out, cause->event);
	ky_strbuf_adds(out, ", \"irq\": ");
	ky_view_put_text(out, irq);
	ky_strbuf_addf(out, ", \"row\": %lld, \"tid\": %lld, \"name\": ",
		       waker ? (long long)waker->id : -1LL,
		       waker ? (long long)waker->number : -1LL);
	ky_view_put_text(out, waker ? waker->name : "");
	ky_strbuf_adds(out, "}");
	return ret;
}

static int cause_find_and_put(struct cause *cause, const struct ky_view_stop *stop,
			      struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_history_interval now;
	int ret = ky_history_at(cause->history, cause->row->id, cause->ns, &now, err);

	if (ret == KYMO_OK)
		ret = cause_find_wait(cause, err);
	if (ret == KYMO_OK && cause->has_waited && cause->waited.end_ns <= cause->ns)
		ret = find_waking(cause, stop, err);
	if (ret < 0)
		return ret;
	ky_strbuf_addf(out, "{\"row\": %u, \"tid\": %lld, \"name\": ", cause->row->id,
		       (long long)cause->row->number);
	ky_view_put_text(out, cause->row->name);
	ky_strbuf_adds(out, ", ");
	put_interval(cause, "state", &now, ky_state_kind(now.state) != KY_STATE_NONE, out);
	put_interval(cause, "waited", &cause->waited, cause->has_waited, out);
	put_interval(cause, "ready", &cause->ready, cause->is_ready, out);
	ret = cause_put_waker(cause, out, err);
	ky_strbuf_adds(out, "}\n");
	return ret;
}

int ky_view_cause(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct cause cause = {.view = view, .ns = request->ns};
	int ret = ky_view_take_history(view, &cause.history, err);

	if (ret == KYMO_OK && (!cause.history || request->row >= ky_history_n_rows(cause.history)))
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such row");
	if (ret == KYMO_OK) {
		cause.row = ky_history_row(cause.history, (uint32_t)request->row);
		ret = cause_find_and_put(&cause, stop, out, err);
	}
	ky_view_put_history(view);
	return ret;
}
