/* SPDX-License-Identifier: MIT */
/*
 * Why a thread ran or waits at a time: its last wait until then, and who ended it. The history has the time of the wake-up: the
 * end of the wait. The event there tells on which CPU it was, and the history what that CPU did then.
 */
#include <string.h>

#include "base/error.h"
#include "view/answers/row-index.h"
#include "view/answers/answer-internal.h"

/* Calls and interrupts of a thread since its last wait. */
#define MAX_STEPS 20000

struct cause {
	struct ky_history *history;
	const struct ky_history_row *row;
	int64_t ns, tid;
	struct ky_history_interval ready, waited; /* begin_ns INT64_MIN: none */
	bool is_ready, has_waited;
	/* Of the wake-up. */
	const char *event; /* NULL: none was found */
	uint32_t cpu_id;
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

/* ---- the event ----------------------------------------------------------------------------- */

static bool cause_is_waking(const struct cause *cause, const struct ky_event *event)
{
	struct ky_handle tid;

	return strncmp(event->cls->name, "sched_wak", 9) == 0 &&
	       (ky_handle_find(&tid, event->cls, KY_SCOPE_PAYLOAD, "tid") ||
		ky_handle_find(&tid, event->cls, KY_SCOPE_PAYLOAD, "pid")) &&
	       ky_get_i64(event, &tid, -1) == cause->tid;
}

/* The wake-up at the end of the wait. */
static int cause_find_waking(struct cause *cause, const struct ky_view *view,
			     const struct ky_view_stop *stop, struct kymo_error *err)
{
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret = ky_view_flow(view, "", cause->waited.end_ns, cause->waited.end_ns, stop, &flow,
			       err);

	if (ret < 0)
		return ret;
	while (!cause->event && (ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events && !cause->event; i++) {
			if (!cause_is_waking(cause, &batch.events[i]))
				continue;
			cause->event = batch.events[i].cls->name;
			cause->cpu_id = batch.events[i].cpu_id;
		}
	}
	ky_flow_close(flow);
	return ret == KYMO_E_INTERRUPTED || ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

/* ---- the CPU --------------------------------------------------------------------------------- */

/* The handler that began last, of those that run on @cpu at @ns. */
static int cause_find_handler(struct ky_history *history, uint32_t cpu, int64_t ns,
			      const char **name, struct kymo_error *err)
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

static uint32_t cause_machine_of(const struct ky_history *history, const struct ky_history_row *row)
{
	for (int i = 0; i < KY_ROW_KINDS && row->parent != KY_HISTORY_NO_ROW; i++)
		row = ky_history_row(history, row->parent);
	return row->id;
}

/* What the CPU of the wake-up did: *thread, NULL without one, and the handler of an interrupt. */
static int cause_find_waker(const struct cause *cause, const struct ky_history_row **thread,
			    const char **handler, struct kymo_error *err)
{
	struct ky_history *history = cause->history;
	struct ky_history_interval found;
	struct ky_row_index index;
	uint32_t cpu = KY_HISTORY_NO_ROW;
	int ret = ky_row_index_init(&index, history) < 0 ? ky_error_nomem(err) : KYMO_OK;

	*thread = NULL;
	*handler = "";
	if (ret == KYMO_OK)
		cpu = ky_row_find(&index, KY_ROW_CPU, cause_machine_of(history, cause->row),
				  cause->cpu_id, cause->waited.end_ns);
	ky_row_index_fini(&index);
	if (cpu == KY_HISTORY_NO_ROW)
		return ret;
	ret = ky_history_at(history, cpu, cause->waited.end_ns, &found, err);
	if (ret < 0)
		return ret;
	if (ky_state_kind(found.state) == KY_STATE_RUNS &&
	    ky_state_value(found.state) < ky_history_n_rows(history))
		*thread = ky_history_row(history, (uint32_t)ky_state_value(found.state));
	return cause_find_handler(history, cpu, cause->waited.end_ns, handler, err);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void cause_put_interval(const struct cause *cause, const char *title,
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

static int cause_put_waker(const struct cause *cause, struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_history_row *thread;
	const char *handler;
	int ret = cause_find_waker(cause, &thread, &handler, err);

	if (ret < 0)
		return ret;
	ky_strbuf_addf(out, "\"waker\": {\"ns\": %lld, \"cpu\": %u, \"event\": ",
		       (long long)cause->waited.end_ns, cause->cpu_id);
	ky_view_put_text(out, cause->event);
	ky_strbuf_adds(out, ", \"handler\": ");
	ky_view_put_text(out, handler);
	ky_strbuf_addf(out, ", \"row\": %lld, \"tid\": %lld, \"name\": ",
		       thread ? (long long)thread->id : -1LL,
		       thread ? (long long)thread->number : -1LL);
	ky_view_put_text(out, thread ? thread->name : "");
	ky_strbuf_adds(out, "}");
	return KYMO_OK;
}

static int cause_take_row(struct ky_view *view, const struct ky_view_request *request,
			  struct cause *cause, struct kymo_error *err)
{
	int ret = ky_view_take_history(view, &cause->history, err);

	if (ret < 0)
		return ret;
	if (!cause->history || request->row >= ky_history_n_rows(cause->history))
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such row");
	cause->row = ky_history_row(cause->history, (uint32_t)request->row);
	return KYMO_OK;
}

/* What the history tells of the thread. */
static int cause_find_and_put(struct cause *cause, struct ky_strbuf *out, struct kymo_error *err)
{
	struct ky_history_interval now;
	int ret = ky_history_at(cause->history, cause->row->id, cause->ns, &now, err);

	if (ret == KYMO_OK)
		ret = cause_find_wait(cause, err);
	if (ret < 0)
		return ret;
	cause->tid = cause->row->number;
	ky_strbuf_addf(out, "{\"row\": %u, \"tid\": %lld, \"name\": ", cause->row->id,
		       (long long)cause->tid);
	ky_view_put_text(out, cause->row->name);
	ky_strbuf_adds(out, ", ");
	cause_put_interval(cause, "state", &now, ky_state_kind(now.state) != KY_STATE_NONE, out);
	cause_put_interval(cause, "waited", &cause->waited, cause->has_waited, out);
	cause_put_interval(cause, "ready", &cause->ready, cause->is_ready, out);
	return KYMO_OK;
}

int ky_view_cause(struct ky_view *view, const struct ky_view_request *request,
		  const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct cause cause = {.ns = request->ns};
	int ret = cause_take_row(view, request, &cause, err);

	if (ret == KYMO_OK)
		ret = cause_find_and_put(&cause, out, err);
	ky_view_put_history(view);
	if (ret == KYMO_OK && cause.has_waited && cause.waited.end_ns != INT64_MAX)
		ret = cause_find_waking(&cause, view, stop, err);
	if (ret == KYMO_OK && cause.event) {
		/* Events were read without the history, which may be another one now. */
		ret = cause_take_row(view, request, &cause, err);
		if (ret == KYMO_OK)
			ret = cause_put_waker(&cause, out, err);
		ky_view_put_history(view);
	} else {
		ky_strbuf_adds(out, "\"waker\": null");
	}
	ky_strbuf_adds(out, "}\n");
	return ret;
}
