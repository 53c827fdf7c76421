/* SPDX-License-Identifier: MIT */
#include "record/runtime/user-sentry.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_futex_waitv

/* Until a word has another value than the list says. Returns the word's index, or a negative errno. */
static int sleep_at(const struct futex_waitv *words, unsigned int n)
{
	int got = (int)syscall(SYS_futex_waitv, words, n, 0, NULL, 0);

	return got < 0 ? -errno : got;
}

static struct futex_waitv word_of(const uint32_t *word, uint32_t value, unsigned int flags)
{
	return (struct futex_waitv){
		.val = value, .uaddr = (uintptr_t)word, .flags = FUTEX_32 | flags};
}

/* The owner's word is the first. */
static unsigned int list_words(const struct ky_user_sentry *sentry, struct futex_waitv *words)
{
	words[0] = word_of(&sentry->orders, sentry->orders, FUTEX_PRIVATE_FLAG);
	for (unsigned int i = 0; i < sentry->n; i++)
		words[1 + i] = word_of(sentry->rings[i].word, sentry->rings[i].value, 0);
	return 1 + sentry->n;
}

/* With the lock, which the call gives up meanwhile. */
static void watch_once(struct ky_user_sentry *sentry)
{
	struct futex_waitv words[1 + KY_USER_SENTRY_RINGS_MAX];
	unsigned int n = list_words(sentry, words);
	uint32_t orders = sentry->orders;
	int got;

	pthread_mutex_unlock(&sentry->lock);
	do {
		got = sleep_at(words, n);
	} while (got == -EINTR);
	pthread_mutex_lock(&sentry->lock);
	if (sentry->orders != orders)
		return;
	sentry->is_watching = false;
	(void)eventfd_write(sentry->fired_fd, 1);
}

static void *user_sentry_run(void *data)
{
	const struct sched_param param = {.sched_priority = 1};
	struct ky_user_sentry *sentry = data;

	/* Where we may: it calls the thread that reads, which goes before others for the same reason. */
	(void)pthread_setschedparam(pthread_self(), SCHED_RR, &param);
	pthread_mutex_lock(&sentry->lock);
	sentry->tid = gettid();
	pthread_cond_broadcast(&sentry->changed);
	while (!sentry->is_ending) {
		if (sentry->is_watching)
			watch_once(sentry);
		else
			pthread_cond_wait(&sentry->changed, &sentry->lock);
	}
	pthread_mutex_unlock(&sentry->lock);
	return NULL;
}

/* A word that has another value already: the kernel says so, if it knows the call. */
static bool kernel_can(void)
{
	uint32_t word = 1;
	struct futex_waitv words = word_of(&word, 0, FUTEX_PRIVATE_FLAG);

	return sleep_at(&words, 1) == -EAGAIN;
}

void ky_user_sentry_begin(struct ky_user_sentry *sentry)
{
	pthread_mutex_init(&sentry->lock, NULL);
	pthread_cond_init(&sentry->changed, NULL);
	sentry->fired_fd = kernel_can() ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (sentry->fired_fd < 0)
		return;
	sentry->is_running = pthread_create(&sentry->thread, NULL, user_sentry_run, sentry) == 0;
	if (!sentry->is_running) {
		close(sentry->fired_fd);
		sentry->fired_fd = -1;
		return;
	}
	pthread_mutex_lock(&sentry->lock);
	while (!sentry->tid)
		pthread_cond_wait(&sentry->changed, &sentry->lock);
	pthread_mutex_unlock(&sentry->lock);
}

/* With the lock. The thread sees the new list, wherever it is. */
static void user_sentry_give_order(struct ky_user_sentry *sentry)
{
	bool sleeps_at_words = sentry->is_watching;

	__atomic_fetch_add(&sentry->orders, 1, __ATOMIC_RELAXED);
	sentry->is_watching = sentry->n != 0;
	if (sleeps_at_words)
		(void)syscall(SYS_futex, &sentry->orders, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX,
			      NULL, NULL, 0);
	else
		pthread_cond_signal(&sentry->changed);
}

void ky_user_sentry_watch(struct ky_user_sentry *sentry, const struct kymo_ring_futex *rings,
			  unsigned int n)
{
	eventfd_t count;

	if (!sentry->is_running)
		return;
	pthread_mutex_lock(&sentry->lock);
	if (n)
		memcpy(sentry->rings, rings, n * sizeof(*rings));
	sentry->n = n;
	if (n || sentry->is_watching)
		user_sentry_give_order(sentry);
	/* What the last watch has seen is over. */
	(void)eventfd_read(sentry->fired_fd, &count);
	pthread_mutex_unlock(&sentry->lock);
}

void ky_user_sentry_end(struct ky_user_sentry *sentry)
{
	if (!sentry->is_running)
		return;
	pthread_mutex_lock(&sentry->lock);
	sentry->n = 0;
	sentry->is_ending = true;
	user_sentry_give_order(sentry);
	pthread_cond_signal(&sentry->changed);
	pthread_mutex_unlock(&sentry->lock);
	pthread_join(sentry->thread, NULL);
	close(sentry->fired_fd);
	sentry->is_running = false;
	sentry->fired_fd = -1;
}

#else

void ky_user_sentry_begin(struct ky_user_sentry *sentry)
{
	sentry->fired_fd = -1;
}

void ky_user_sentry_watch(struct ky_user_sentry *sentry, const struct kymo_ring_futex *rings,
			  unsigned int n)
{
	(void)sentry;
	(void)rings;
	(void)n;
}

void ky_user_sentry_end(struct ky_user_sentry *sentry)
{
	(void)sentry;
}

#endif
