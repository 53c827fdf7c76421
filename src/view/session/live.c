/* SPDX-License-Identifier: MIT */
#include "view/session/live.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "store/read/feed.h"
#include "view/answers/answer-internal.h"
#include "view/session/live-history.h"

/* A recorder has this time from an event to its packet. */
#define DELAY_MS 250
/* A writer that has died is found after this time; so is the end of the viewer. */
#define WAIT_MS 250
/* Opening takes at most one of so many parts of the time. */
#define OPEN_PART   10
#define OPEN_MIN_NS INT64_C(400000000)
/* Where traces come all the time, reading all of it for the history again is half of the time. */
#define PAUSE_MAX_NS INT64_C(10000000000)
#define PAUSE_MS     50
/* Traces that are removed or incomplete for a moment. */
#define TROUBLE_MAX 40
/* Between two looks at the clock. */
#define LOOK_EVENTS 65536

/* One state of the recording. */
struct generation {
	struct ky_trace_set set;
	struct ky_view *view;
	struct ky_view_recording recording;
	unsigned int n_users;
	bool is_old;
	struct generation *next;
};

/* The set that grows, and the history that its events go to. */
struct following {
	struct ky_follow *follow;
	struct ky_trace_set set;
	bool is_open, has_ended, has_caught_up;
	struct ky_flow *flow;
	struct ky_live_history history;
	int64_t begin_ns, catch_up_ns;
};

struct ky_view_live {
	const struct ky_view_live_source *source;
	pthread_t thread;
	bool is_started;
	atomic_bool stop; /* relaxed: only for the thread's end */
	struct ky_view_history history;
	struct ky_follow
		*reader; /* tells recorders all the time that a reader is there; NULL: not yet */
	unsigned int n_trouble;
	uint64_t n_bytes; /* of the streams of the latest view */
	size_t n_streams;
	int64_t open_ns; /* no new view before this time */
	uint64_t number;
	struct kymo_error failure;
	pthread_mutex_t lock;		/* for what follows */
	struct generation *generations; /* the latest one first, which only the thread changes */
};

static int64_t live_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static bool live_is_stopped(const struct ky_view_live *live)
{
	return atomic_load_explicit(&live->stop, memory_order_relaxed);
}

/* ---- generations --------------------------------------------------------------------------- */

static void free_generation(struct generation *generation)
{
	ky_view_free(generation->view);
	ky_trace_set_close(&generation->set);
	free(generation);
}

/* The old ones that nobody uses, out of the list. The caller has the lock. */
static struct generation *take_unused(struct ky_view_live *live)
{
	struct generation **at = &live->generations, *unused = NULL;

	while (*at) {
		struct generation *one = *at;

		if (!one->is_old || one->n_users) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		one->next = unused;
		unused = one;
	}
	return unused;
}

static void free_unused(struct generation *unused)
{
	while (unused) {
		struct generation *next = unused->next;

		free_generation(unused);
		unused = next;
	}
}

struct ky_view *ky_view_live_take(struct ky_view_live *live)
{
	struct ky_view *view;

	pthread_mutex_lock(&live->lock);
	live->generations->n_users++;
	view = live->generations->view;
	pthread_mutex_unlock(&live->lock);
	return view;
}

void ky_view_live_put(struct ky_view_live *live, struct ky_view *view)
{
	struct generation *unused;

	pthread_mutex_lock(&live->lock);
	for (struct generation *one = live->generations; one; one = one->next)
		one->n_users -= one->view == view;
	unused = take_unused(live);
	pthread_mutex_unlock(&live->lock);
	free_unused(unused);
}

/* It stays as it is now, also for its readers' threads. */
static void live_settle(struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace)
		(*trace)->live.is_written = false;
	ky_vec_foreach(&set->streams, stream)
		(*stream)->passed_bytes = NULL;
}

static void live_measure(struct ky_view_live *live, const struct ky_trace_set *set)
{
	live->n_bytes = 0;
	live->n_streams = set->streams.len;
	ky_vec_foreach(&set->streams, stream)
		live->n_bytes += (*stream)->file.size_bytes;
}

static int open_generation(struct ky_view_live *live, enum ky_view_live_how how,
			   struct generation *fresh, struct kymo_error *err)
{
	const struct ky_view_live_source *source = live->source;
	struct generation *before = live->generations;
	int ret = source->open(source->data, how, &fresh->set, err);

	if (ret == KYMO_E_NOT_FOUND && !before && source->is_recorded(source->data))
		memset(&fresh->set, 0, sizeof(fresh->set)); /* no trace yet */
	else if (ret < 0)
		return ret;
	live_settle(&fresh->set);
	if (before && how == KY_VIEW_LIVE_NOW)
		ret = ky_view_new_after(&fresh->set, before->view, &fresh->view, err);
	else
		ret = ky_view_new(&fresh->set, &fresh->view, err);
	if (ret < 0)
		ky_trace_set_close(&fresh->set);
	return ret;
}

static void show_generation(struct ky_view_live *live, struct generation *fresh)
{
	struct generation *unused;

	fresh->view->recording = &fresh->recording;
	fresh->recording.generation = ++live->number;
	if (fresh->recording.is_running)
		fresh->view->shared = &live->history;
	pthread_mutex_lock(&live->lock);
	if (live->generations)
		live->generations->is_old = true;
	fresh->next = live->generations;
	live->generations = fresh;
	unused = take_unused(live);
	pthread_mutex_unlock(&live->lock);
	free_unused(unused);
}

/* A view of the traces as they are now. */
static int renew(struct ky_view_live *live, enum ky_view_live_how how, struct kymo_error *err)
{
	int64_t begin_ns = live_now_ns(), took_ns;
	struct generation *fresh = calloc(1, sizeof(*fresh));
	int ret = fresh ? open_generation(live, how, fresh, err) : ky_error_nomem(err);

	if (ret < 0) {
		free(fresh);
		return ret;
	}
	fresh->recording.is_running = how != KY_VIEW_LIVE_COMPLETE;
	live_measure(live, &fresh->set);
	show_generation(live, fresh);
	took_ns = live_now_ns() - begin_ns;
	live->open_ns = live_now_ns() +
			(took_ns * OPEN_PART > OPEN_MIN_NS ? took_ns * OPEN_PART : OPEN_MIN_NS);
	return KYMO_OK;
}

/* The traces cannot be followed any more: the last view stays, with the reason. */
static void live_give_up(struct ky_view_live *live, const struct kymo_error *err)
{
	live->failure = *err;
	atomic_store_explicit(&live->generations->recording.error, &live->failure,
			      memory_order_release);
}

/* ---- following ------------------------------------------------------------------------------ */

static void close_following(struct following *own)
{
	ky_flow_close(own->flow);
	ky_live_history_end(&own->history);
	if (own->is_open)
		ky_trace_set_close(&own->set);
	ky_follow_close(own->follow);
	memset(own, 0, sizeof(*own));
}

static int open_following(struct ky_view_live *live, struct following *own, struct kymo_error *err)
{
	const struct ky_view_live_source *source = live->source;
	struct ky_selection selection;
	int ret = KYMO_OK;

	/* Between two sets, a recorder would see no reader, and wait for one to come. */
	if (!live->reader)
		ret = ky_follow_open(source->paths, source->n_paths, DELAY_MS, &live->reader, err);
	else
		(void)ky_follow_has_news(live->reader);
	if (!ret)
		ret = ky_follow_open(source->paths, source->n_paths, DELAY_MS, &own->follow, err);
	for (size_t i = 0; i < source->n_feeds && !ret; i++)
		ret = ky_follow_add_feed(own->follow, source->feeds[i], err);
	if (!ret)
		ret = source->open(source->data, KY_VIEW_LIVE_FOLLOWED, &own->set, err);
	if (ret < 0)
		return ret;
	own->is_open = true;
	ky_live_history_begin(&own->history, &own->set, &live->history);
	ky_selection_init(&selection);
	return ky_flow_open_selected(&own->set, &selection, &own->flow, err);
}

static bool has_grown(const struct ky_view_live *live, const struct ky_trace_set *set)
{
	uint64_t n_bytes = 0;

	ky_vec_foreach(&set->streams, stream)
		n_bytes += (*stream)->file.size_bytes;
	return n_bytes != live->n_bytes || set->streams.len != live->n_streams;
}

/* A newer view, if it is time for one. */
static int live_refresh(struct ky_view_live *live, const struct following *own,
			struct kymo_error *err)
{
	int ret;

	if (live_now_ns() < live->open_ns || (own->has_caught_up && !has_grown(live, &own->set)))
		return KYMO_OK;
	ret = renew(live, KY_VIEW_LIVE_NOW, err);
	if (ret >= 0) {
		live->n_trouble = 0;
		return KYMO_OK;
	}
	live->open_ns = live_now_ns() + OPEN_MIN_NS;
	if (ret == KYMO_E_NOT_FOUND && !live->generations->set.traces.len)
		return KYMO_OK; /* still no trace */
	/* What has gone or is incomplete is another matter in a moment. */
	return ret == KYMO_E_MEMORY || ++live->n_trouble > TROUBLE_MAX ? ret : KYMO_OK;
}

/* The events that are there go to the history. 1: there may be more later; 0: the traces are complete. */
static int live_drain(struct ky_view_live *live, struct following *own, struct kymo_error *err)
{
	struct ky_batch batch;
	uint64_t n = 0;
	int ret;

	while ((ret = ky_flow_next(own->flow, &batch, err)) > 0 && !live_is_stopped(live)) {
		ky_live_history_feed(&own->history, &batch);
		n += batch.n_events;
		if (n < LOOK_EVENTS)
			continue;
		n = 0;
		ky_live_history_publish(&own->history, &live->history, own->has_caught_up);
		if (live_refresh(live, own, err) < 0)
			return KYMO_E_IO;
	}
	if (!own->has_caught_up)
		own->catch_up_ns = live_now_ns() - own->begin_ns;
	own->has_caught_up = true;
	ky_live_history_publish(&own->history, &live->history, own->has_caught_up);
	return ret == KYMO_E_AGAIN || ret > 0 ? 1 : ret;
}

/* Until the set is not the right one any more, its history is damaged, or its traces are complete. */
static int pump(struct ky_view_live *live, struct following *own, struct kymo_error *err)
{
	bool changed = false;
	int ret = 1;

	while (ret > 0 && !changed && !live_is_stopped(live) &&
	       !ky_live_history_is_damaged(&own->history, &live->history)) {
		ret = live_drain(live, own, err);
		if (ret <= 0)
			break;
		if (live_refresh(live, own, err) < 0)
			return KYMO_E_IO;
		ky_follow_wait(own->follow, WAIT_MS);
		if (ky_follow_update(own->follow, &own->set, &changed, err) < 0)
			return KYMO_OK; /* opening it again tells what is wrong */
	}
	own->has_ended = ret == 0 && !changed;
	return ret < 0 ? ret : KYMO_OK;
}

static bool is_feed_over(const struct ky_view_live_source *source, struct kymo_error *err)
{
	for (size_t i = 0; i < source->n_feeds; i++) {
		if (!source->feeds[i]->has_ended)
			return false;
		if (source->feeds[i]->failed < 0)
			*err = source->feeds[i]->err;
	}
	return true;
}

/* All traces are complete, or no trace exists. Returns false: others may come, after some time. */
static bool live_is_over(struct ky_view_live *live, struct following *own, struct kymo_error *err)
{
	const struct ky_view_live_source *source = live->source;

	if (!is_feed_over(source, err) || (own->follow && ky_follow_is_claimed(own->follow)) ||
	    source->is_recorded(source->data)) {
		if (own->follow)
			ky_follow_wait(own->follow, WAIT_MS);
		else
			(void)poll(NULL, 0, WAIT_MS);
		return false;
	}
	return true;
}

/* Returns 1: once again; 0: the recording has ended; a negative status. */
static int live_follow_once(struct ky_view_live *live, struct kymo_error *err)
{
	struct following own = {.begin_ns = live_now_ns()};
	int64_t pause_ns;
	int ret = open_following(live, &own, err);
	bool was_empty = ret == KYMO_E_NOT_FOUND;

	if (!ret)
		ret = pump(live, &own, err);
	else if (!was_empty && ret != KYMO_E_MEMORY && ++live->n_trouble <= TROUBLE_MAX)
		ret = KYMO_OK;
	if (was_empty || own.has_ended) {
		ky_error_clear(err);
		ret = !live_is_over(live, &own, err);
		ret = err->code ? err->code : ret;
	} else if (!ret) {
		ret = 1;
	}
	pause_ns = own.catch_up_ns < PAUSE_MAX_NS ? own.catch_up_ns : PAUSE_MAX_NS;
	own.has_caught_up = false;
	for (int64_t until_ns = live_now_ns() + pause_ns; ret > 0 && !live_is_stopped(live);) {
		(void)poll(NULL, 0, PAUSE_MS);
		if (live_refresh(live, &own, err) < 0)
			ret = KYMO_E_IO;
		if (live_now_ns() >= until_ns)
			break;
	}
	close_following(&own);
	return ret;
}

static void *live_follow(void *data)
{
	struct ky_view_live *live = data;
	struct kymo_error err, end;
	int ret = 1;

	while (ret > 0 && !live_is_stopped(live)) {
		ky_error_clear(&err);
		ret = live_follow_once(live, &err);
	}
	if (live_is_stopped(live))
		return NULL;
	ky_error_clear(&end);
	if (renew(live, ret < 0 ? KY_VIEW_LIVE_NOW : KY_VIEW_LIVE_COMPLETE, &end) < 0 && ret >= 0)
		err = end;
	if (ret < 0 || end.code)
		live_give_up(live, &err);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------- */

int ky_view_live_open(const struct ky_view_live_source *source, struct ky_view_live **made,
		      struct kymo_error *err)
{
	struct ky_view_live *live = calloc(1, sizeof(*live));
	int ret, status;

	if (!live)
		return ky_error_nomem(err);
	live->source = source;
	pthread_mutex_init(&live->lock, NULL);
	ky_view_history_init(&live->history);
	ret = renew(live, KY_VIEW_LIVE_NOW, err);
	status = ret < 0 ? 0 : pthread_create(&live->thread, NULL, live_follow, live);
	live->is_started = ret >= 0 && !status;
	if (status)
		ret = ky_error_errno(err, status,
				     "cannot start a thread that follows the recording");
	if (ret < 0)
		ky_view_live_close(live);
	else
		*made = live;
	return ret;
}

void ky_view_live_close(struct ky_view_live *live)
{
	if (!live)
		return;
	atomic_store_explicit(&live->stop, true, memory_order_relaxed);
	if (live->is_started)
		pthread_join(live->thread, NULL);
	free_unused(live->generations);
	ky_follow_close(live->reader);
	ky_view_history_fini(&live->history);
	pthread_mutex_destroy(&live->lock);
	free(live);
}
