/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder of programs. Programs overwrite their oldest events, and a snapshot copies the rings.
 * The newest rings of ended programs stay.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/rings/user-dump.h"
#include "record/user/user-internal.h"
#include "store/directory/directory-store.h"

/* Each takes a descriptor, a mapping, and a description of its events. */
#define ENDED_MAX 1000u
/* How long a snapshot waits for tasks: without any that ends, and at most. */
#define WAIT_MS	     2000
#define WAIT_MAX_MS  30000
#define WAIT_STEP_MS 50

/* ---- programs that ended -------------------------------------------------------------- */

/* What one user's programs that ended take. */
struct ended {
	size_t n;
	uint64_t bytes;
	struct ky_user_ring_file *oldest; /* that is not away */
};

static struct ended ended_of(const struct ky_user *user, const struct ky_user_owner *owner)
{
	struct ended ended = {0};

	ky_vec_foreach(&user->rings, it) {
		if (!(*it)->ended || (*it)->owner != owner)
			continue;
		ended.n++;
		ended.bytes += (*it)->ended_bytes;
		if (!(*it)->is_away && (!ended.oldest || (*it)->ended < ended.oldest->ended))
			ended.oldest = *it;
	}
	return ended;
}

/* The user whose programs that ended take the most: bytes, or rings. NULL: none has a ring that could go. */
static struct ky_user_owner *who_takes_most(const struct ky_user *user, bool of_bytes,
					    struct ended *most)
{
	struct ky_user_owner *owner = NULL;

	ky_vec_foreach(&user->owners, it) {
		struct ended ended = ended_of(user, *it);

		if (!ended.oldest ||
		    (owner && (of_bytes ? ended.bytes <= most->bytes : ended.n <= most->n)))
			continue;
		owner = *it;
		*most = ended;
	}
	return owner;
}

static size_t count_ended(const struct ky_user *user)
{
	size_t n = 0;

	ky_vec_foreach(&user->rings, it)
		n += (*it)->ended != 0;
	return n;
}

static void user_flight_drop(struct ky_user *user, struct ky_user_ring_file *file)
{
	user->ended_bytes -= file->ended_bytes;
	user->stats.n_dropped++;
	ky_user_forget_ring(user, file);
}

bool ky_user_flight_make_room(struct ky_user *user, struct ky_user_owner *owner)
{
	struct ended most, own = ended_of(user, owner);
	const struct ky_user_owner *other = who_takes_most(user, false, &most);

	/* A user with more open files than the other user may displace only own files. */
	if (!other || (other != owner && owner->n_open >= other->n_open))
		most = own;
	if (most.oldest)
		user_flight_drop(user, most.oldest);
	return most.oldest != NULL;
}

void ky_user_flight_keep(struct ky_user *user, struct ky_user_ring_file *file)
{
	struct ended most;
	struct stat st;

	if (file->ended)
		return;
	file->ended = ++user->n_ended;
	if (fstat(file->ring->fd, &st) == 0)
		file->ended_bytes = (uint64_t)st.st_blocks * 512;
	user->ended_bytes += file->ended_bytes;
	while (user->ended_bytes > user->options.keep_bytes && who_takes_most(user, true, &most))
		user_flight_drop(user, most.oldest);
	while (count_ended(user) > ENDED_MAX && who_takes_most(user, false, &most))
		user_flight_drop(user, most.oldest);
}

/* ---- snapshots ------------------------------------------------------------------------ */

/* Rings that are away are those of programs that take too long. @what: a snapshot, a chunk. */
static void tell_away(struct ky_user *user, const char *what)
{
	size_t n = 0;

	ky_vec_foreach(&user->rings, it)
		n += (*it)->is_away;
	if (n)
		ky_log_warning(user->options.log,
			       "%zu program%s not in this %s: looking at the files that "
			       "they have loaded takes too long",
			       n, n == 1 ? " is" : "s are", what);
}

static int user_flight_snapshot(struct ky_user *user, struct ky_user_order *order)
{
	const struct ky_user_place place = {
		.store = order->store,
		.group = user->options.group,
		.is_late = user->options.is_late,
	};
	uint64_t events, bytes;
	int ret;

	*order->made = (struct ky_user_snapshot){0};
	tell_away(user, "snapshot");
	ky_vec_foreach(&user->rings, it) {
		if ((*it)->is_away)
			continue;
		ret = ky_user_ring_snapshot((*it)->ring, &place, &order->clock, &events, &bytes,
					    &order->err);
		if (ret < 0)
			return ret;
		order->made->n_programs += events != 0;
		order->made->events += events;
		order->made->bytes += bytes;
	}
	return KYMO_OK;
}

/* Until all tasks are done; or none of them ends for long. */
static int wait_for_tasks(struct ky_user *user, struct kymo_error *err)
{
	unsigned int n = user->work.n_tasks;
	int ret = KYMO_OK;

	for (int ms = 0, all_ms = 0; !ret && ms < WAIT_MS && all_ms < WAIT_MAX_MS &&
				     ky_user_work_wait(&user->work, WAIT_STEP_MS);
	     ms += WAIT_STEP_MS, all_ms += WAIT_STEP_MS) {
		ret = ky_user_take_tasks(user, err);
		ms = user->work.n_tasks < n ? 0 : ms;
		n = user->work.n_tasks;
	}
	return ret;
}

/* Libraries that were loaded meanwhile, which may take long: that is for tasks. Then programs that have just come are here, too. */
static int user_flight_prepare(struct ky_user *user, struct kymo_error *err)
{
	int ret = wait_for_tasks(user, err);

	ky_vec_foreach(&user->rings, it) {
		if (!ret && !(*it)->is_away &&
		    (!(*it)->ended || ky_user_dump_is_behind((*it)->ring)))
			ky_user_file_dump(*it);
	}
	return ret ? ret : wait_for_tasks(user, err);
}

/* Programs that have ended go, and of the others all events until now. */
static void user_flight_forget(struct ky_user *user)
{
	for (size_t i = user->rings.len; i-- > 0;) {
		struct ky_user_ring_file *file = user->rings.data[i];

		if (file->is_away || !file->ring)
			continue;
		if (file->ended) {
			user->ended_bytes -= file->ended_bytes;
			ky_user_forget_ring(user, file);
		} else {
			ky_user_ring_forget(file->ring);
		}
	}
}

/* All events until now move to an archive; programs that have ended go. */
static int user_flight_take_all(struct ky_user *user, const struct ky_user_order *order,
				struct kymo_error *err)
{
	const struct ky_user_place place = {user->options.store, user->options.group,
					    order->archive, user->options.is_late};
	int ret = KYMO_OK;

	tell_away(user, "chunk");
	user->clock_record = order->next;
	for (size_t i = user->rings.len; i-- > 0 && !ret;) {
		struct ky_user_ring_file *file = user->rings.data[i];

		if (file->is_away || !file->ring)
			continue;
		ret = ky_user_ring_take(file->ring, &place, &order->clock, &order->next, err);
		if (ret < 0 || !file->ended)
			continue;
		user->ended_bytes -= file->ended_bytes;
		ky_user_count_archived(user, file->ring);
		ky_user_forget_ring(user, file);
	}
	return ret;
}

/* After an error, the order's owner must stop the recording. */
static int obey_rotation(struct ky_user *user, struct ky_user_order *order)
{
	int ret = user_flight_prepare(user, &order->err);

	if (!ret)
		ret = user_flight_take_all(user, order, &order->err);
	ky_user_answer(user, ret);
	return KYMO_OK;
}

static int obey_clearing(struct ky_user *user, struct kymo_error *err)
{
	int ret = wait_for_tasks(user, err);

	if (ret < 0)
		return ret;
	user_flight_forget(user);
	ky_user_answer(user, KYMO_OK);
	return KYMO_OK;
}

int ky_user_flight_obey(struct ky_user *user, struct ky_user_order *order, struct kymo_error *err)
{
	int ret;

	if (order->clears)
		return obey_clearing(user, err);
	if (order->archive)
		return obey_rotation(user, order);
	ret = user_flight_prepare(user, err);
	if (!ret)
		ky_user_answer(user, user_flight_snapshot(user, order));
	return ret;
}

int ky_user_snapshot(struct ky_user *user, const char *output, const struct ky_os_clock *clock,
		     struct ky_user_snapshot *made, struct kymo_error *err)
{
	struct ky_user_order order = {.made = made};
	int ret;

	*made = (struct ky_user_snapshot){0};
	if (!user->is_running || !user->options.overwrite)
		return ky_error_set(err, KYMO_E_STATE, "this recording is not a flight recorder");
	ret = ky_directory_store_open(output, &order.store, err);
	if (ret < 0)
		return ret;
	ky_user_clock_record(clock, &order.clock);
	ret = ky_user_give_order(user, &order, NULL, err);
	ky_store_free(order.store);
	return ret;
}

int ky_user_clear(struct ky_user *user, struct kymo_error *err)
{
	struct ky_user_order order = {.clears = true};

	if (!user->is_running || !user->options.overwrite)
		return ky_error_set(err, KYMO_E_STATE, "this recording is not a flight recorder");
	return ky_user_give_order(user, &order, NULL, err);
}
