/* SPDX-License-Identifier: MIT */
/*
 * The end of a recording of programs, of all users at the same time: tasks end, the rings' rest is read, and traces
 * are finished. Programs have stopped, and no other thread reads.
 */
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"
#include "record/user/user-internal.h"

/* So long we wait for other users' programs when there is nothing else to wait for. */
#define PATIENCE_S 20
#define STEP_MS	   100
#define ROUNDS	   4

enum waits_for {
	WAITS_FOR_NOTHING, /* all is done but what was given up */
	WAITS_FOR_OTHERS,  /* and so is all of the recorder's own user */
	WAITS_FOR_OWN,
};

static enum waits_for waits_for(struct ky_user *user)
{
	enum waits_for waits = user->newcomers.is_away ? WAITS_FOR_OTHERS : WAITS_FOR_NOTHING;

	pthread_mutex_lock(&user->work.lock);
	for (size_t i = 0; i < user->owners.len; i++) {
		const struct ky_user_owner *owner = user->owners.data[i];

		if (!owner->queue.n || owner->is_given_up)
			continue;
		if (owner->dir.uid == geteuid())
			waits = WAITS_FOR_OWN;
		else if (waits == WAITS_FOR_NOTHING)
			waits = WAITS_FOR_OTHERS;
	}
	/* What is done is taken in any case. */
	if (user->work.done_first)
		waits = WAITS_FOR_OWN;
	pthread_mutex_unlock(&user->work.lock);
	return waits;
}

/* Cancel tasks that no thread has begun. Returns the number of their rings. */
static size_t drop_tasks(struct ky_user *user, struct ky_user_owner *owner)
{
	struct ky_user_task *task;
	size_t n = 0;

	for (; (task = ky_user_work_take_back(&user->work, &owner->queue)); n++)
		ky_user_file_drop(task);
	return n;
}

static void user_settle_give_up(struct ky_user *user)
{
	for (size_t i = 0; i < user->owners.len; i++) {
		struct ky_user_owner *owner = user->owners.data[i];
		unsigned int n;
		size_t dropped;

		pthread_mutex_lock(&user->work.lock);
		n = owner->queue.n;
		pthread_mutex_unlock(&user->work.lock);
		if (!n || owner->is_given_up)
			continue;
		owner->is_given_up = true;
		dropped = drop_tasks(user, owner);
		ky_log_warning(
			user->options.log,
			"programs of user %u take too long: the unread events of %zu of them are "
			"missing",
			owner->dir.uid, dropped + 1);
	}
}

/* Until all tasks are done that are worth the wait. */
static int user_settle_drain(struct ky_user *user, struct kymo_error *err)
{
	enum waits_for waits = WAITS_FOR_OWN;
	uint64_t since_s = 0;
	int ret = KYMO_OK;

	while (!ret && waits && ky_user_work_wait(&user->work, STEP_MS)) {
		ret = ky_user_take_tasks(user, err);
		waits = waits_for(user);
		if (waits != WAITS_FOR_OTHERS) {
			since_s = 0;
			continue;
		}
		since_s = since_s ? since_s : (uint64_t)ky_os_now_s();
		if (ky_os_now_s() - since_s < PATIENCE_S)
			continue;
		user_settle_give_up(user);
		break;
	}
	return ret;
}

/* Returns whether there is anything to be finished. */
static bool finish_all(struct ky_user *user)
{
	bool any = false;

	for (size_t i = 0; i < user->owners.len; i++) {
		struct ky_user_owner *owner = user->owners.data[i];

		for (; owner->reading.len && !owner->is_given_up; any = true)
			ky_user_file_finish(owner->reading.data[owner->reading.len - 1]);
	}
	return any;
}

int ky_user_settle(struct ky_user *user, struct kymo_error *err)
{
	int ret = user_settle_drain(user, err);

	if (!ret)
		ret = ky_user_find_rings(user, err);
	if (!ret)
		ret = user_settle_drain(user, err);
	/* Programs that were about to begin anew may have made other rings of the same names. */
	for (int round = 0; round < ROUNDS && !ret && finish_all(user); round++)
		ret = user_settle_drain(user, err);
	return ret;
}

void ky_user_calm(struct ky_user *user)
{
	for (size_t i = 0; i < user->owners.len; i++)
		(void)drop_tasks(user, user->owners.data[i]);
	for (int ms = 0; ms < PATIENCE_S * 1000 && ky_user_work_wait(&user->work, STEP_MS);
	     ms += STEP_MS)
		(void)ky_user_take_tasks(user, NULL);
}
