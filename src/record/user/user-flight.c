/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder: programs overwrite their oldest events, and the rings are copied when somebody
 * wants that. Rings of programs that ended stay, the newest of them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-internal.h"
#include "store/directory-store.h"

/* Each takes a descriptor, a mapping, and a description of its events. */
#define ENDED_MAX 1000u
/* How long a snapshot waits for what is under way. */
#define WAIT_MS	     2000
#define WAIT_STEP_MS 50

/* ---- programs that ended -------------------------------------------------------------- */

static struct ky_user_ring_file *oldest_ended(const struct ky_user *user)
{
	struct ky_user_ring_file *oldest = NULL;

	ky_vec_foreach(&user->rings, it) {
		if ((*it)->ended && (!oldest || (*it)->ended < oldest->ended))
			oldest = *it;
	}
	return oldest;
}

static size_t count_ended(const struct ky_user *user)
{
	size_t n = 0;

	ky_vec_foreach(&user->rings, it)
		n += (*it)->ended != 0;
	return n;
}

static void drop(struct ky_user *user, struct ky_user_ring_file *file)
{
	user->ended_bytes -= file->ended_bytes;
	user->stats.n_dropped++;
	ky_user_forget_ring(user, file);
}

bool ky_user_flight_make_room(struct ky_user *user)
{
	struct ky_user_ring_file *oldest = oldest_ended(user);

	if (oldest)
		drop(user, oldest);
	return oldest != NULL;
}

void ky_user_flight_keep(struct ky_user *user, struct ky_user_ring_file *file)
{
	struct stat st;

	if (file->ended)
		return;
	file->ended = ++user->n_ended;
	if (fstat(file->ring->fd, &st) == 0)
		file->ended_bytes = (uint64_t)st.st_blocks * 512;
	user->ended_bytes += file->ended_bytes;
	while ((user->ended_bytes > user->options.keep_bytes || count_ended(user) > ENDED_MAX) &&
	       ky_user_flight_make_room(user))
		;
}

/* ---- snapshots ------------------------------------------------------------------------ */

static int snapshot(struct ky_user *user, struct ky_user_order *order)
{
	uint64_t events, bytes;
	int ret = KYMO_OK;

	*order->made = (struct ky_user_snapshot){0};
	ky_vec_foreach(&user->rings, it) {
		struct ky_user_ring *ring = (*it)->ring;

		if ((*it)->is_away)
			continue;
		/* Libraries that were loaded meanwhile. */
		ret = (*it)->ended ? ky_user_dump_noted(user, ring, &order->err)
				   : ky_user_dump_ring(user, ring, &order->err);
		ret = ky_user_ring_excuse(ring, ret, &order->err);
		if (!ret)
			ret = ky_user_ring_snapshot(ring, order->store, &order->clock, &events,
						    &bytes, &order->err);
		if (ret < 0)
			return ret;
		order->made->n_programs += events != 0;
		order->made->events += events;
		order->made->bytes += bytes;
	}
	return KYMO_OK;
}

/* Programs that have just come are to be in it, if they do not take too long. */
static int wait_for_tasks(struct ky_user *user, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (int ms = 0; !ret && ms < WAIT_MS && ky_user_work_wait(&user->work, WAIT_STEP_MS);
	     ms += WAIT_STEP_MS)
		ret = ky_user_take_tasks(user, err);
	return ret;
}

int ky_user_flight_obey(struct ky_user *user, struct kymo_error *err)
{
	uint64_t count;
	int ret;

	if (read(user->order_fd, &count, sizeof(count)) < 0)
		return KYMO_OK;
	ret = wait_for_tasks(user, err);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&user->lock);
	if (user->order) {
		user->order->ret = snapshot(user, user->order);
		user->order = NULL;
		pthread_cond_broadcast(&user->answered);
	}
	pthread_mutex_unlock(&user->lock);
	return KYMO_OK;
}

int ky_user_snapshot(struct ky_user *user, const char *output, const struct ky_os_clock *clock,
		     struct ky_user_snapshot *made, struct kymo_error *err)
{
	struct ky_user_order order = {.made = made, .ret = KYMO_E_STATE};
	uint64_t one = 1;
	int ret;

	*made = (struct ky_user_snapshot){0};
	if (!user->is_running || !user->options.overwrite)
		return ky_error_set(err, KYMO_E_STATE, "this recording is no flight recorder");
	ret = ky_directory_store_open(output, &order.store, err);
	if (ret < 0)
		return ret;
	ky_user_clock_record(clock, &order.clock);
	ky_error_set(&order.err, KYMO_E_STATE, "the recording is over");
	pthread_mutex_lock(&user->lock);
	user->order = &order;
	if (write(user->order_fd, &one, sizeof(one)) < 0)
		user->order = NULL;
	while (user->order && !user->is_over)
		pthread_cond_wait(&user->answered, &user->lock);
	user->order = NULL;
	pthread_mutex_unlock(&user->lock);
	ky_store_free(order.store);
	if (order.ret < 0 && err)
		*err = order.err;
	return order.ret;
}
