/* SPDX-License-Identifier: MIT */
/*
 * A thread that sleeps until a writer of any of many rings wakes it, and then makes a descriptor readable.
 * Programs have nothing but memory in common with a recorder, so they wake it by a futex; the recorder's other
 * events come from descriptors. It needs Linux 5.16 (futex_waitv).
 *
 * Threads: one, the owner, calls all functions.
 */
#ifndef KY_RECORD_RUNTIME_USER_SENTRY_H
#define KY_RECORD_RUNTIME_USER_SENTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>
#include <kymo/ring.h>

/* The kernel takes 128 words at a time; one is the owner's. */
#define KY_USER_SENTRY_RINGS_MAX 127

struct ky_user_sentry {
	pthread_mutex_t lock; /* protects the members up to is_ending */
	pthread_cond_t changed;
	struct kymo_ring_futex rings[KY_USER_SENTRY_RINGS_MAX];
	unsigned int n;
	uint32_t orders; /* futex word: counts changes of the list */
	int32_t tid;	 /* 0: the thread has not begun */
	bool is_watching, is_ending;
	bool is_running;
	pthread_t thread;
	int fired_fd; /* an eventfd: readable after a wake-up; -1: there is no thread */
};

/*
 * Starts the thread. Where the kernel or the machine's limits do not allow it, fired_fd is -1, and rings can only be
 * polled.
 */
void ky_user_sentry_begin(struct ky_user_sentry *sentry);
/* NULL members: after a struct of zeros, too. */
void ky_user_sentry_end(struct ky_user_sentry *sentry);

/*
 * Sleep at these @n rings from now on, KY_USER_SENTRY_RINGS_MAX at most, instead of others. 0: at none. The
 * thread does not read their memory itself, so a ring may be closed at any time. A wake-up ends the
 * watch. So does an error of the kernel, which a program can cause: the caller should read its rings then, too.
 */
void ky_user_sentry_watch(struct ky_user_sentry *sentry, const struct kymo_ring_futex *rings,
			  unsigned int n);

#endif
