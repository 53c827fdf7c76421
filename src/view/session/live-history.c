/* SPDX-License-Identifier: MIT */
#include "view/session/live-history.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

static int64_t live_history_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static unsigned int live_history_n_damaged(struct ky_view_history *shared)
{
	unsigned int n;

	pthread_mutex_lock(&shared->lock);
	n = shared->n_damaged;
	pthread_mutex_unlock(&shared->lock);
	return n;
}

void ky_live_history_begin(struct ky_live_history *own, const struct ky_trace_set *set,
			   struct ky_view_history *shared)
{
	static const struct ky_history_identity none;
	const char *temp = getenv("TMPDIR");
	struct kymo_error ignored; /* all but the rows is there */

	*own = (struct ky_live_history){.n_damaged = live_history_n_damaged(shared)};
	own->fd = ky_file_open_unnamed(temp && temp[0] == '/' ? temp : "/var/tmp");
	if (own->fd >= 0 &&
	    ky_history_builder_open(set, &none, own->fd, &own->builder, &ignored) < 0) {
		own->builder = NULL;
		close(own->fd);
	}
}

static void live_history_drop(struct ky_live_history *own)
{
	ky_history_builder_free(own->builder);
	own->builder = NULL;
	close(own->fd);
}

void ky_live_history_end(struct ky_live_history *own)
{
	if (own->builder)
		live_history_drop(own);
}

void ky_live_history_feed(struct ky_live_history *own, const struct ky_batch *batch)
{
	struct kymo_error ignored;

	if (own->builder && ky_history_builder_feed(own->builder, batch, &ignored) < 0)
		live_history_drop(own);
	own->has_news = true;
}

/* May readers have it instead of what they have? */
static bool live_history_is_due(const struct ky_live_history *own, struct ky_view_history *shared,
				bool is_whole)
{
	bool is_better;

	if (!own->builder || !own->has_news || live_history_now_ns() < own->publish_ns)
		return false;
	pthread_mutex_lock(&shared->lock);
	is_better = (is_whole || !shared->history) && shared->n_damaged == own->n_damaged;
	pthread_mutex_unlock(&shared->lock);
	return is_better;
}

void ky_live_history_publish(struct ky_live_history *own, struct ky_view_history *shared,
			     bool is_whole)
{
	struct ky_history *fresh = NULL;
	struct kymo_error err;

	if (!live_history_is_due(own, shared, is_whole) ||
	    ky_history_builder_publish(own->builder, &err) < 0)
		return;
	own->has_news = false;
	own->publish_ns = live_history_now_ns() + ky_history_builder_pause_ns(own->builder);
	atomic_store_explicit(&shared->n_events, ky_history_builder_events(own->builder),
			      memory_order_relaxed);
	if (ky_history_open_fd(own->fd, NULL, true, &fresh, &err) < 0)
		return;
	pthread_mutex_lock(&shared->lock);
	ky_history_close(shared->history);
	shared->history = fresh;
	shared->is_over = true;
	pthread_mutex_unlock(&shared->lock);
}

bool ky_live_history_is_damaged(const struct ky_live_history *own, struct ky_view_history *shared)
{
	return own->builder && live_history_n_damaged(shared) != own->n_damaged;
}
