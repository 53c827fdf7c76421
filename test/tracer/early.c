/* SPDX-License-Identifier: MIT */
/*
 * A dlsym() that allocates and locks, as some C libraries' do: what libkymo-libc and -pthread look up with
 * it needs what they look up.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char *kept;

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void allocate(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	char *volatile zeroed = calloc(10, 10), *volatile aligned = memalign(256, 10);

	check(zeroed && !memchr(zeroed, 1, 100));
	check(aligned && (uintptr_t)aligned % 256 == 0);
	pthread_mutex_lock(&mutex);
	kept = realloc(kept, 100);
	check(kept != NULL);
	memset(kept, 1, 100);
	pthread_mutex_unlock(&mutex);
	check(malloc(SIZE_MAX / 4) == NULL);
	free(zeroed);
	free(aligned);
}

EXPORT void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real) {
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!real)
			*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	}
	allocate();
	return real(handle, name);
}

/* What was allocated then grows and is freed when all is found. */
static __attribute__((destructor)) void stop(void)
{
	kept = realloc(kept, 100000);
	check(kept && kept[0] == 1 && kept[99] == 1);
	free(kept);
}
