/* SPDX-License-Identifier: MIT */
/* Orders to the consumer: a snapshot, a rotation, a list. Who gives one waits for its answer. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-internal.h"

int ky_user_obey(struct ky_user *user, struct kymo_error *err)
{
	struct ky_user_order *order;
	eventfd_t count;
	int ret;

	if (eventfd_read(user->order_fd, &count) < 0)
		return KYMO_OK;
	/* The caller waits, so the order stays; and no other thread waits for the lock. */
	pthread_mutex_lock(&user->lock);
	order = user->order;
	pthread_mutex_unlock(&user->lock);
	if (!order)
		return KYMO_OK;
	if (order->list) {
		ky_user_fill_list(user, order);
		ky_user_answer(user, KYMO_OK);
		return KYMO_OK;
	}
	/* Programs that began before the order are part of it. */
	ret = ky_user_take_files(user, err);
	if (ret < 0)
		return ret;
	if (order->store || order->clears || user->options.overwrite)
		return ky_user_flight_obey(user, order, err);
	ky_user_rotate_begin(user, order);
	return KYMO_OK;
}

void ky_user_answer(struct ky_user *user, int ret)
{
	pthread_mutex_lock(&user->lock);
	if (user->order)
		user->order->ret = ret;
	user->order = NULL;
	pthread_cond_broadcast(&user->answered);
	pthread_mutex_unlock(&user->lock);
	(void)eventfd_write(user->answered_fd, 1);
}

static bool is_pending(struct ky_user *user)
{
	bool pending;

	pthread_mutex_lock(&user->lock);
	pending = user->order && !user->is_over;
	pthread_mutex_unlock(&user->lock);
	return pending;
}

int ky_user_give_order(struct ky_user *user, struct ky_user_order *order,
		       const struct ky_user_pause *pause, struct kymo_error *err)
{
	int ret = KYMO_OK;
	eventfd_t count;

	order->ret = KYMO_E_STATE;
	ky_error_set(&order->err, KYMO_E_STATE, "the recording is over");
	(void)eventfd_read(user->answered_fd, &count);
	pthread_mutex_lock(&user->lock);
	user->order = order;
	if (eventfd_write(user->order_fd, 1) < 0)
		user->order = NULL;
	pthread_mutex_unlock(&user->lock);
	while (pause && !ret && is_pending(user))
		ret = pause->run(pause->data, user->answered_fd, err);
	pthread_mutex_lock(&user->lock);
	while (user->order && !user->is_over)
		pthread_cond_wait(&user->answered, &user->lock);
	user->order = NULL;
	pthread_mutex_unlock(&user->lock);
	if (ret < 0)
		return ret;
	if (order->ret < 0 && err)
		*err = order->err;
	return order->ret;
}
