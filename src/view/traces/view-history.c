/* SPDX-License-Identifier: MIT */
/* The state history of the viewer's traces: the pass that builds it, in a thread. */
#include "base/error.h"
#include "view/traces/view-internal.h"

static int view_history_open_events(void *data, const struct ky_trace_set *set,
				    struct ky_flow **flow, struct kymo_error *err)
{
	struct ky_selection selection;

	(void)data;
	ky_selection_init(&selection);
	return ky_flow_open_selected(set, &selection, flow, err);
}

static int view_history_note_progress(void *data, uint64_t n_events)
{
	struct ky_view_history *own = data;

	if (n_events)
		atomic_store_explicit(&own->n_events, n_events, memory_order_relaxed);
	return atomic_load_explicit(&own->stop, memory_order_relaxed) ? KYMO_E_INTERRUPTED : 0;
}

/* The pictures until now come from it. */
static void view_history_take_partial(void *data, struct ky_history *history)
{
	struct ky_view_history *own = data;

	pthread_mutex_lock(&own->lock);
	ky_history_close(own->history);
	own->history = history;
	pthread_mutex_unlock(&own->lock);
}

static void *view_history_build(void *data)
{
	struct ky_view *view = data;
	struct ky_view_history *own = &view->history;
	const struct ky_history_source source = {.open = view_history_open_events,
						 .progress = view_history_note_progress,
						 .partial = view_history_take_partial,
						 .data = own,
						 .log = view->log};
	struct ky_history *history = NULL;
	struct kymo_error damage, err;
	bool built;
	int ret;

	ky_error_clear(&damage);
	ky_error_clear(&err);
	ret = ky_history_get(view->set, &source, &history, &built, &damage, &err);
	pthread_mutex_lock(&own->lock);
	own->is_over = true;
	ky_history_close(own->history);
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

/* The caller has the lock. */
static int view_history_begin(struct ky_view *view, struct kymo_error *err)
{
	int status;

	if (view->shared || view->history.is_started || view->history.error.code)
		return KYMO_OK;
	status = pthread_create(&view->history.thread, NULL, view_history_build, view);
	if (status)
		return ky_error_errno(err, status, "cannot start a thread that builds the history");
	view->history.is_started = true;
	return KYMO_OK;
}

/* A disk that damages each of them is not asked for ever. */
#define DAMAGED_MAX 8

/*
 * A history in which an answer found damage is closed, which removes it from the disk. The next one begins like the first one. The caller
 * has the lock. Returns whether there was any damage.
 */
static bool view_history_drop_damaged(struct ky_view_history *own)
{
	if (!own->history || !ky_history_is_damaged(own->history))
		return false;
	ky_history_close(own->history);
	own->history = NULL;
	if (own->is_started && !own->is_over)
		return true; /* the pass goes on, and publishes another one */
	if (own->is_started) /* else a recording goes on: its thread begins another one */
		pthread_join(own->thread, NULL);
	own->is_started = own->is_over = false;
	atomic_store_explicit(&own->n_events, 0, memory_order_relaxed);
	if (++own->n_damaged >= DAMAGED_MAX) {
		ky_error_set(&own->error, KYMO_E_IO,
			     "the state history was damaged again and again");
		ky_error_hint(&own->error, "look for faults of the disk or of the memory");
	}
	return true;
}

int ky_view_take_history(struct ky_view *view, struct ky_history **history, struct kymo_error *err)
{
	struct ky_view_history *own = ky_view_history_of(view);
	int ret;

	*history = NULL;
	pthread_mutex_lock(&own->lock);
	(void)view_history_drop_damaged(own);
	ret = view_history_begin(view, err);
	if (ret < 0)
		return ret;
	*history = own->history;
	if (own->error.code && err)
		*err = own->error;
	return own->error.code;
}

void ky_view_put_history(struct ky_view *view)
{
	pthread_mutex_unlock(&ky_view_history_of(view)->lock);
}

bool ky_view_renew_history(struct ky_view *view)
{
	struct ky_view_history *own = ky_view_history_of(view);
	bool was_damaged;

	pthread_mutex_lock(&own->lock);
	was_damaged = view_history_drop_damaged(own);
	pthread_mutex_unlock(&own->lock);
	return was_damaged;
}

bool ky_view_history_is_over(struct ky_view *view)
{
	return ky_view_history_of(view)->is_over;
}

void ky_view_put_ready(struct ky_view *view, struct ky_strbuf *out)
{
	struct ky_view_history *own = ky_view_history_of(view);
	uint64_t n = atomic_load_explicit(&own->n_events, memory_order_relaxed);

	ky_strbuf_addf(out, "\"ready\": %s, \"read\": %llu", own->is_over ? "true" : "false",
		       (unsigned long long)n);
}
