/* SPDX-License-Identifier: MIT */
/*
 * Rotation: the traces of all programs so far become complete ones in an archive, and the programs
 * continue in new traces.
 *
 * A task rotates each ring, and no thread reads the ring meanwhile. So only a few rings are away at
 * a time, and the others are read as ever.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/now.h"
#include "record/user/user-internal.h"

#define TASKS_MAX KY_USER_WORK_THREADS
/* The caller waits this long for programs that take too long. Their traces move later. */
#define PATIENCE_NS UINT64_C(5000000000)

void ky_user_rotate_begin(struct ky_user *user, const struct ky_user_order *order)
{
	struct ky_user_rotation *rotation = &user->rotation;
	char *archive = strdup(order->archive);

	if (!archive) {
		ky_error_nomem(&user->order->err);
		ky_user_answer(user, KYMO_E_MEMORY);
		return;
	}
	free(rotation->archive);
	rotation->archive = archive;
	rotation->ended = order->clock;
	rotation->next = order->next;
	user->clock_record = order->next;
	rotation->number++;
	rotation->began_ns = ky_os_now_ns();
	rotation->n_left = 1;
	rotation->n_opening = user->n_opening;
}

/* *n_left: number of rings that are not rotated yet. */
static int give_tasks(struct ky_user *user, size_t *n_left, struct kymo_error *err)
{
	struct ky_user_rotation *rotation = &user->rotation;
	int ret = KYMO_OK;

	*n_left = rotation->n_opening;
	ky_vec_foreach(&user->rings, it) {
		struct ky_user_ring_file *file = *it;

		if (file->rotation == rotation->number)
			continue;
		++*n_left;
		if (ret < 0 || file->is_away || rotation->n_tasks >= TASKS_MAX)
			continue;
		ret = ky_user_file_rotate(file, rotation, err);
		rotation->n_tasks += ret == 0;
	}
	return ret;
}

int ky_user_rotate_step(struct ky_user *user, struct kymo_error *err)
{
	struct ky_user_rotation *rotation = &user->rotation;
	int ret;

	if (!rotation->n_left)
		return KYMO_OK;
	ret = give_tasks(user, &rotation->n_left, err);
	if (ret < 0)
		return ret;
	if (rotation->began_ns &&
	    (!rotation->n_left || ky_os_now_ns() - rotation->began_ns > PATIENCE_NS)) {
		rotation->began_ns = 0;
		ky_user_answer(user, KYMO_OK);
	}
	return KYMO_OK;
}

int ky_user_rotate(struct ky_user *user, const char *archive, const struct ky_os_clock *ended,
		   const struct ky_os_clock *next, const struct ky_user_pause *pause,
		   struct kymo_error *err)
{
	struct ky_user_order order = {.archive = archive};

	if (!user->is_running)
		return ky_error_set(err, KYMO_E_STATE, "the recording is over");
	ky_user_clock_record(ended, &order.clock);
	ky_user_clock_record(next, &order.next);
	return ky_user_give_order(user, &order, pause, err);
}
