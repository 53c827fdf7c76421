/* SPDX-License-Identifier: MIT */
/*
 * Mutexes: asked for, got (or not: status), tried, given back. With a time limit they are asked for
 * and got like without. Waiting for a condition gives the mutex back and takes it again unseen.
 */
#include <pthread.h>
#include <time.h>

#include "tracer/preload/preload.h"

enum { LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, UNLOCK, N_FUNCTIONS };

static const char *const names[N_FUNCTIONS] = {
	[LOCK] = "pthread_mutex_lock",		 [TRYLOCK] = "pthread_mutex_trylock",
	[TIMEDLOCK] = "pthread_mutex_timedlock", [CLOCKLOCK] = "pthread_mutex_clocklock",
	[UNLOCK] = "pthread_mutex_unlock",
};
static void *found[N_FUNCTIONS];
static struct ky_preload next = {.n = N_FUNCTIONS, .names = names, .found = found};

#define NEXT(number, ...) ((int (*)(__VA_ARGS__))__atomic_load_n(&found[number], __ATOMIC_RELAXED))

#define EVENT(...) \
	KY_PRELOAD_EVENT(KY_PRELOAD_CALLER, KYMO_DEBUG_LINE, lttng_ust_pthread, __VA_ARGS__)

/* glibc's other names for its functions: for the look-up, should it take a lock. */
int __pthread_mutex_lock(pthread_mutex_t *mutex) __attribute__((weak));	   // NOLINT: glibc's
int __pthread_mutex_trylock(pthread_mutex_t *mutex) __attribute__((weak)); // NOLINT
int __pthread_mutex_unlock(pthread_mutex_t *mutex) __attribute__((weak));  // NOLINT

/* Before main(), and before there are threads whom the loader's lock could keep waiting. */
static __attribute__((constructor(109))) void start(void)
{
	ky_preload_ready(&next);
}

KY_PRELOAD_API int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int status;

	if (!ky_preload_ready(&next))
		return __pthread_mutex_lock ? __pthread_mutex_lock(mutex) : 0;
	EVENT(pthread_mutex_lock_req, mutex);
	status = NEXT(LOCK, pthread_mutex_t *)(mutex);
	EVENT(pthread_mutex_lock_acq, mutex, status);
	return status;
}

KY_PRELOAD_API int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	int status;

	if (!ky_preload_ready(&next))
		return __pthread_mutex_lock ? __pthread_mutex_lock(mutex) : 0;
	EVENT(pthread_mutex_lock_req, mutex);
	status = NEXT(TIMEDLOCK, pthread_mutex_t *, const struct timespec *)(mutex, until);
	EVENT(pthread_mutex_lock_acq, mutex, status);
	return status;
}

/* glibc has it since 2.30: a program that calls it has one that has it. */
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until);
KY_PRELOAD_API int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
					   const struct timespec *until)
{
	int status;

	if (!ky_preload_ready(&next))
		return __pthread_mutex_lock ? __pthread_mutex_lock(mutex) : 0;
	EVENT(pthread_mutex_lock_req, mutex);
	status = NEXT(CLOCKLOCK, pthread_mutex_t *, clockid_t,
		      const struct timespec *)(mutex, clock, until);
	EVENT(pthread_mutex_lock_acq, mutex, status);
	return status;
}

KY_PRELOAD_API int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int status;

	if (!ky_preload_ready(&next))
		return __pthread_mutex_trylock ? __pthread_mutex_trylock(mutex) : 0;
	status = NEXT(TRYLOCK, pthread_mutex_t *)(mutex);
	EVENT(pthread_mutex_trylock, mutex, status);
	return status;
}

KY_PRELOAD_API int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int status;

	if (!ky_preload_ready(&next))
		return __pthread_mutex_unlock ? __pthread_mutex_unlock(mutex) : 0;
	status = NEXT(UNLOCK, pthread_mutex_t *)(mutex);
	EVENT(pthread_mutex_unlock, mutex, status);
	return status;
}
