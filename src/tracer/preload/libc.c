/* SPDX-License-Identifier: MIT */
/*
 * Allocations. What LTTng-UST has no event for is recorded as what it is the same as: aligned_alloc(),
 * valloc() and pvalloc() as memalign. reallocarray(), strdup() and the like call these.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/preload/preload.h"

enum {
	MALLOC,
	FREE,
	CALLOC,
	REALLOC,
	MEMALIGN,
	POSIX_MEMALIGN,
	ALIGNED_ALLOC,
	VALLOC,
	PVALLOC,
	N_FUNCTIONS,
};

static const char *const names[N_FUNCTIONS] = {
	[MALLOC] = "malloc",
	[FREE] = "free",
	[CALLOC] = "calloc",
	[REALLOC] = "realloc",
	[MEMALIGN] = "memalign",
	[POSIX_MEMALIGN] = "posix_memalign",
	[ALIGNED_ALLOC] = "aligned_alloc",
	[VALLOC] = "valloc",
	[PVALLOC] = "pvalloc",
};
static void *found[N_FUNCTIONS];
static struct ky_preload next = {.n = N_FUNCTIONS, .names = names, .found = found};

/* A function of the next library, as one that is called with @... */
#define NEXT(number, result, ...) \
	((result(*)(__VA_ARGS__))__atomic_load_n(&found[number], __ATOMIC_RELAXED))

#define EVENT(...) KY_PRELOAD_EVENT(KY_PRELOAD_CALLER, KYMO_DEBUG_LINE, lttng_ust_libc, __VA_ARGS__)

/* Before main(), and before there are threads whom the loader's lock could keep waiting. */
static __attribute__((constructor(109))) void start(void)
{
	ky_preload_ready(&next);
}

/* ---- memory for the look-up of the functions itself: zeroed, and never given back ---- */

#define EARLY_ALIGN 16

static char early[65536] __attribute__((aligned(4096)));
static size_t early_used;

static bool libc_is_early(const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)early < sizeof(early);
}

/* In front of the memory stands its size. */
static void *early_alloc(size_t align, size_t bytes)
{
	size_t used = __atomic_load_n(&early_used, __ATOMIC_RELAXED), at;

	if (align < EARLY_ALIGN)
		align = EARLY_ALIGN;
	do {
		at = (used + EARLY_ALIGN + align - 1) & ~(align - 1);
		if (align > 4096 || at > sizeof(early) || bytes > sizeof(early) - at) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(&early_used, &used, at + bytes, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(early + at - sizeof(bytes), &bytes, sizeof(bytes));
	return early + at;
}

static size_t early_bytes(const void *ptr)
{
	size_t bytes;

	memcpy(&bytes, (const char *)ptr - sizeof(bytes), sizeof(bytes));
	return bytes;
}

/* What was allocated early grows, and moves. */
static void *early_realloc(void *from, size_t bytes)
{
	size_t old = early_bytes(from);
	void *to = ky_preload_ready(&next) ? NEXT(MALLOC, void *, size_t)(bytes)
					   : early_alloc(EARLY_ALIGN, bytes);

	if (to)
		memcpy(to, from, old < bytes ? old : bytes);
	return to;
}

/* ---- the functions ---- */

KY_PRELOAD_API void *malloc(size_t size)
{
	void *ptr;

	if (!ky_preload_ready(&next))
		return early_alloc(EARLY_ALIGN, size);
	ptr = NEXT(MALLOC, void *, size_t)(size);
	EVENT(malloc, size, ptr);
	return ptr;
}

/* The event comes first: afterwards the address may be another thread's already. */
KY_PRELOAD_API void free(void *ptr)
{
	if (libc_is_early(ptr) || !ky_preload_ready(&next))
		return;
	EVENT(free, ptr);
	NEXT(FREE, void, void *)(ptr);
}

KY_PRELOAD_API void *calloc(size_t nmemb, size_t size)
{
	size_t bytes;
	void *ptr;

	if (!ky_preload_ready(&next))
		return __builtin_mul_overflow(nmemb, size, &bytes)
			       ? NULL
			       : early_alloc(EARLY_ALIGN, bytes);
	ptr = NEXT(CALLOC, void *, size_t, size_t)(nmemb, size);
	EVENT(calloc, nmemb, size, ptr);
	return ptr;
}

KY_PRELOAD_API void *realloc(void *in_ptr, size_t size)
{
	void *ptr;

	if (libc_is_early(in_ptr))
		return early_realloc(in_ptr, size);
	if (!ky_preload_ready(&next))
		return in_ptr ? NULL : early_alloc(EARLY_ALIGN, size);
	ptr = NEXT(REALLOC, void *, void *, size_t)(in_ptr, size);
	EVENT(realloc, in_ptr, size, ptr);
	return ptr;
}

KY_PRELOAD_API void *memalign(size_t alignment, size_t size)
{
	void *ptr;

	if (!ky_preload_ready(&next))
		return early_alloc(alignment, size);
	ptr = NEXT(MEMALIGN, void *, size_t, size_t)(alignment, size);
	EVENT(memalign, alignment, size, ptr);
	return ptr;
}

/* out_ptr is what was allocated: NULL when nothing was. */
KY_PRELOAD_API int posix_memalign(void **memptr, size_t alignment, size_t size)
{
	void *out_ptr;
	int result;

	if (!ky_preload_ready(&next)) {
		out_ptr = early_alloc(alignment, size);
		if (out_ptr)
			*memptr = out_ptr;
		return out_ptr ? 0 : ENOMEM;
	}
	result = NEXT(POSIX_MEMALIGN, int, void **, size_t, size_t)(memptr, alignment, size);
	out_ptr = result ? NULL : *memptr;
	EVENT(posix_memalign, out_ptr, alignment, size, result);
	return result;
}

KY_PRELOAD_API void *aligned_alloc(size_t alignment, size_t size)
{
	void *ptr;

	if (!ky_preload_ready(&next))
		return early_alloc(alignment, size);
	ptr = NEXT(ALIGNED_ALLOC, void *, size_t, size_t)(alignment, size);
	EVENT(memalign, alignment, size, ptr);
	return ptr;
}

KY_PRELOAD_API void *valloc(size_t size)
{
	size_t alignment = (size_t)sysconf(_SC_PAGESIZE);
	void *ptr;

	if (!ky_preload_ready(&next))
		return early_alloc(alignment, size);
	ptr = NEXT(VALLOC, void *, size_t)(size);
	EVENT(memalign, alignment, size, ptr);
	return ptr;
}

KY_PRELOAD_API void *pvalloc(size_t size)
{
	size_t alignment = (size_t)sysconf(_SC_PAGESIZE);
	void *ptr;

	if (!ky_preload_ready(&next))
		return early_alloc(alignment, size);
	ptr = NEXT(PVALLOC, void *, size_t)(size);
	EVENT(memalign, alignment, size, ptr);
	return ptr;
}
