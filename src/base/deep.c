/* SPDX-License-Identifier: MIT */
#include "base/deep.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include <kymo/error.h>

/* Reserved per stack; what is not touched costs nothing. TSan counts calls: 65,536 to a thread. */
#ifdef __SANITIZE_THREAD__
#define STACK_BYTES (UINT64_C(8) << 20)
#else
#define STACK_BYTES (UINT64_C(64) << 20)
#endif
/* What functions that do not recurse, of ours and of the C library, may still need. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARE_BYTES (UINT64_C(512) << 10)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPARE_BYTES (UINT64_C(512) << 10)
#endif
#endif
#ifndef SPARE_BYTES
#define SPARE_BYTES (UINT64_C(64) << 10)
#endif

__thread uintptr_t ky_stack_limit __attribute__((tls_model("initial-exec")));
static __thread uintptr_t stack_top;

static void deep_measure(void)
{
	pthread_attr_t attr;
	void *lowest;
	size_t size;

	/* Unknown: every frame is below the limit, and a new stack will tell. */
	ky_stack_limit = UINTPTR_MAX;
	stack_top = UINTPTR_MAX;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &lowest, &size) == 0) {
		/* A small stack is no reason to do all work on another one. */
		ky_stack_limit =
			(uintptr_t)lowest + (size / 4 < SPARE_BYTES ? size / 4 : SPARE_BYTES);
		stack_top = (uintptr_t)lowest + size;
	}
	pthread_attr_destroy(&attr);
}

bool ky_stack_measure(uintptr_t frame)
{
	if (!ky_stack_limit)
		deep_measure();
	/* Programs may bring stacks of their own, of which nothing is known. */
	return frame < ky_stack_limit || frame > stack_top;
}

struct job {
	void (*run)(void *data);
	void *data;
};

static void *deep_thread_main(void *data)
{
	struct job *job = data;

	job->run(job->data);
	return NULL;
}

static int deep_start(pthread_t *thread, struct job *job)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int ret;

	if (pthread_attr_init(&attr) != 0)
		return KYMO_E_MEMORY;
	ret = pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signals are for the thread that waits, as they were before. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (ret == 0)
		ret = pthread_create(thread, &attr, deep_thread_main, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return ret == 0 ? KYMO_OK : KYMO_E_MEMORY;
}

int ky_stack_run(void (*run)(void *data), void *data)
{
	struct job job = {run, data};
	pthread_t thread;
	int ret = deep_start(&thread, &job);

	if (ret == KYMO_OK)
		pthread_join(thread, NULL);
	return ret;
}
