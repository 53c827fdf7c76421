/* SPDX-License-Identifier: MIT */
/* A session of programs: its start, and its end. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-internal.h"

/* What another user has taken away is missing for that user only. */
static int user_session_publish(struct ky_user *user, struct ky_user_owner *owner,
				struct kymo_error *err)
{
	struct kymo_error local;
	int ret = ky_user_dir_publish(&owner->dir, &local);

	if (ret == KYMO_OK)
		return ret;
	if (owner->dir.uid == geteuid()) {
		if (err)
			*err = local;
		return ret;
	}
	ky_log_warning(user->options.log, "programs of user %u are left out: %s: %s",
		       owner->dir.uid, local.path, local.message);
	return KYMO_OK;
}

int ky_user_start(struct ky_user *user, struct kymo_error *err)
{
	int ret;

	user->started = true;
	ret = ky_user_work_begin(&user->work, err);
	if (!ret)
		ret = ky_user_beat_begin(user, err);
	if (!ret)
		ky_user_sentry_begin(&user->sentry);
	for (size_t i = 0; i < user->owners.len && !ret; i++)
		ret = user_session_publish(user, user->owners.data[i], err);
	/* After that: who starts from now on finds the session; who ran before is found here. */
	if (!ret)
		ret = ky_user_scan(user, false, err);
	if (ret < 0)
		return ret;
	ky_user_free_left(user);
	ky_vec_foreach(&user->programs.list, program) {
		if (ky_programs_read_table(&user->programs, *program, err) < 0)
			return KYMO_E_MEMORY;
		if ((*program)->is_seen)
			ky_user_ask_program(user, *program);
	}
	ret = pthread_create(&user->thread, NULL, ky_user_consume, user);
	if (ret)
		return ky_error_errno(err, ret, "cannot start the thread that reads");
	user->is_running = true;
	pthread_mutex_lock(&user->lock);
	while (!user->tid)
		pthread_cond_wait(&user->answered, &user->lock);
	pthread_mutex_unlock(&user->lock);
	return KYMO_OK;
}

_Static_assert(3 + KY_USER_WORK_THREADS == KY_USER_THREADS_MAX, "there is room for all threads");

size_t ky_user_threads(const struct ky_user *user, int32_t tids[KY_USER_THREADS_MAX])
{
	size_t n = 0;

	tids[n++] = user->tid;
	for (unsigned int i = 0; i < user->work.n_threads; i++)
		tids[n++] = user->work.tids[i];
	if (user->beat.is_running)
		tids[n++] = user->beat.tid;
	if (user->sentry.is_running)
		tids[n++] = user->sentry.tid;
	return n;
}

int ky_user_failed_fd(const struct ky_user *user)
{
	return user->failed_fd;
}

int ky_user_active_fd(const struct ky_user *user)
{
	return user->active_fd;
}

/* ---- the end -------------------------------------------------------------------------- */

/* What programs say that they could not do. */
static void report_state(struct ky_user *user, const struct ky_program *program)
{
	struct ky_program_state state;

	ky_program_state(program, user->request.cookie, &state);
	if (!state.has_joined || state.reason == KY_OFF_NOT || state.reason == KY_OFF_NO_EVENT ||
	    state.reason == KY_OFF_FIELD)
		return;
	ky_user_tell_left_out(user, program->procname, program->own_pid, state.reason,
			      state.os_error);
}

static void user_session_tell_program(struct ky_user *user, struct ky_program *program)
{
	/* Of those that ended since, too: their memory is still ours. */
	report_state(user, program);
	ky_program_leave(program, user->request.cookie);
	for (size_t i = 0; i < user->old_cookies.len; i++)
		ky_program_leave(program, user->old_cookies.data[i]);
}

static void user_session_tell_programs(struct ky_user *user, bool all)
{
	pthread_mutex_lock(&user->lock);
	user->is_ending = true;
	ky_vec_foreach(&user->owners, owner)
		ky_user_dir_unpublish(&(*owner)->dir);
	/* Programs that came by themselves are known only now. */
	(void)ky_user_scan(user, all, NULL);
	ky_vec_foreach(&user->programs.list, program)
		user_session_tell_program(user, *program);
	pthread_mutex_unlock(&user->lock);
}

static void stop_thread(struct ky_user *user)
{
	uint64_t one = 1;

	if (!user->is_running)
		return;
	if (write(user->stop_fd, &one, sizeof(one)) < 0)
		ky_log_warning(user->options.log, "cannot stop the thread that reads");
	pthread_join(user->thread, NULL);
	user->is_running = false;
}

int ky_user_stop(struct ky_user *user, struct kymo_error *err)
{
	int ret;

	if (user->is_stopped)
		return KYMO_OK;
	user->is_stopped = true;
	/* The thread still reads what programs write before they get the end. */
	user_session_tell_programs(user, false);
	stop_thread(user);
	if (ky_user_has_strangers(user))
		user_session_tell_programs(user, true);
	ret = user->result;
	if (ret < 0 && err)
		*err = user->err;
	if (!user->work.n_threads)
		return ret;
	if (!ret)
		ret = ky_user_settle(user, err);
	/* Now all programs are known that could have it. */
	ky_user_tell_filter(user);
	/* All events until then are in the traces. */
	if (ret < 0)
		ky_user_calm(user);
	for (size_t i = 0; i < user->rings.len && ret < 0; i++) {
		if (!user->rings.data[i]->is_away)
			ky_user_ring_abandon(user->rings.data[i]->ring);
	}
	return ret;
}

int ky_user_finish(struct ky_user *user, const struct ky_os_clock *clock, struct kymo_error *err)
{
	struct ky_clock_record record;
	int ret = KYMO_OK, counted;

	ky_user_clock_record(clock, &record);
	for (size_t i = 0; i < user->rings.len; i++) {
		const struct ky_user_ring_file *file = user->rings.data[i];
		int one = file->is_away ? KYMO_OK
					: ky_user_ring_set_clock(file->ring, &record,
								 ret < 0 ? NULL : err);

		ret = ret < 0 ? ret : one;
	}
	counted = ky_user_count_rings(user, ret < 0 ? NULL : err);
	return ret < 0 ? ret : counted;
}

static void remove_directories(struct ky_user *user)
{
	for (size_t i = 0; i < user->owners.len; i++)
		ky_user_dir_remove(&user->owners.data[i]->dir);
}

void ky_user_close(struct ky_user *user)
{
	const int fds[] = {user ? user->inotify_fd : -1,  user ? user->stop_fd : -1,
			   user ? user->failed_fd : -1,	  user ? user->order_fd : -1,
			   user ? user->answered_fd : -1, user ? user->active_fd : -1};

	if (!user)
		return;
	if (user->started && !user->is_stopped)
		user_session_tell_programs(user, false);
	stop_thread(user);
	ky_user_beat_end(user);
	ky_user_sentry_end(&user->sentry);
	ky_uid_events_close(user->newcomers.events_fd);
	if (user->work.is_begun)
		ky_user_calm(user);
	/* Some program keeps a thread busy for ever: what both have in common stays. */
	if (!ky_user_work_end(&user->work, 1000)) {
		remove_directories(user);
		return;
	}
	/* Owners look at them for what was not opened. */
	ky_vec_foreach(&user->owners, owner)
		ky_user_owner_free(*owner);
	ky_vec_foreach(&user->newcomers.fresh, owner)
		ky_user_owner_free(*owner);
	ky_vec_foreach(&user->rings, it)
		ky_user_file_free(*it);
	ky_vec_fini(&user->owners);
	ky_vec_fini(&user->newcomers.fresh);
	ky_vec_fini(&user->newcomers.uids);
	ky_vec_fini(&user->rings);
	ky_programs_fini(&user->programs);
	ky_vec_fini(&user->old_cookies);
	ky_vec_fini(&user->left);
	ky_vec_fini(&user->left_out);
	ky_user_names_fini(&user->seen_names);
	ky_user_request_fini(&user->request);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	pthread_cond_destroy(&user->answered);
	pthread_mutex_destroy(&user->lock);
	pthread_mutex_destroy(&user->notes_lock);
	pthread_mutex_destroy(&user->turn);
	pthread_cond_destroy(&user->beat.changed);
	pthread_mutex_destroy(&user->beat.lock);
	ky_store_free(user->own_store);
	free(user->program_stats);
	free(user->rotation.archive);
	free(user);
}
