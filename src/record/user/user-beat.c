/* SPDX-License-Identifier: MIT */
/*
 * Signs of life for programs that wait until the recorder has read their rings. A thread of its own gives them: the
 * thread that reads may wait for a disk for longer than programs believe that there is a recorder. While the recorder is
 * idle, no ring is full, no program waits, and the thread rests.
 */
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-internal.h"

/* A file that cannot be written is as of a dead recorder: its programs wait no longer. */
static void beat_once(struct ky_user *user)
{
	user->beat.count++;
	for (size_t i = 0; i < user->owners.len; i++) {
		int fd = user->owners.data[i]->dir.session_fd;

		if (fd >= 0 && pwrite(fd, &user->beat.count, sizeof(user->beat.count),
				      offsetof(struct ky_session_file, beat)) < 0)
			continue;
	}
}

static void *user_beat_run(void *data)
{
	struct ky_user *user = data;
	struct timespec due;

	pthread_mutex_lock(&user->beat.lock);
	user->beat.tid = gettid();
	pthread_cond_broadcast(&user->beat.changed);
	clock_gettime(CLOCK_MONOTONIC, &due);
	while (!user->beat.is_ending) {
		if (user->beat.is_resting) {
			pthread_cond_wait(&user->beat.changed, &user->beat.lock);
			clock_gettime(CLOCK_MONOTONIC, &due);
			continue;
		}
		beat_once(user);
		due.tv_nsec += KY_BEAT_MS * 1000000;
		if (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		while (!user->beat.is_ending &&
		       !pthread_cond_timedwait(&user->beat.changed, &user->beat.lock, &due))
			;
	}
	pthread_mutex_unlock(&user->beat.lock);
	return NULL;
}

void ky_user_beat_rest(struct ky_user *user, bool rests)
{
	if (!user->beat.is_running)
		return;
	pthread_mutex_lock(&user->beat.lock);
	user->beat.is_resting = rests;
	if (!rests)
		pthread_cond_broadcast(&user->beat.changed);
	pthread_mutex_unlock(&user->beat.lock);
}

int ky_user_beat_init(struct ky_user *user, struct kymo_error *err)
{
	pthread_condattr_t attributes;
	int ret = pthread_condattr_init(&attributes);

	pthread_mutex_init(&user->beat.lock, NULL);
	if (!ret)
		ret = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&user->beat.changed, ret ? NULL : &attributes);
	pthread_condattr_destroy(&attributes);
	return ret ? ky_error_errno(err, ret, "cannot set up the recorder's threads") : KYMO_OK;
}

int ky_user_beat_begin(struct ky_user *user, struct kymo_error *err)
{
	int ret;

	if (!user->options.wait_ns)
		return KYMO_OK;
	ret = pthread_create(&user->beat.thread, NULL, user_beat_run, user);
	if (ret)
		return ky_error_errno(err, ret, "cannot start the recorder's threads");
	user->beat.is_running = true;
	pthread_mutex_lock(&user->beat.lock);
	while (!user->beat.tid)
		pthread_cond_wait(&user->beat.changed, &user->beat.lock);
	pthread_mutex_unlock(&user->beat.lock);
	return KYMO_OK;
}

void ky_user_beat_end(struct ky_user *user)
{
	if (user->beat.is_running) {
		pthread_mutex_lock(&user->beat.lock);
		user->beat.is_ending = true;
		pthread_cond_broadcast(&user->beat.changed);
		pthread_mutex_unlock(&user->beat.lock);
		pthread_join(user->beat.thread, NULL);
	}
	user->beat.is_running = false;
}
