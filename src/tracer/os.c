/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/tracer.h"

long ky_sys(long number, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result < 0)
		result = -errno;
	errno = saved;
	return result;
}

/*
 * Small things come from a block. Nothing is given back: hits beside us may still be reading
 * what was replaced, and it is little.
 */
void *ky_trace_alloc(size_t bytes)
{
	static uint8_t *block;
	static size_t left;
	size_t map_bytes = 65536;
	void *memory;
	long got;

	/* Cache lines: what hits look at is laid out in them. */
	bytes = (bytes + 63) & ~(size_t)63;
	if (bytes > left) {
		if (bytes > map_bytes / 4)
			map_bytes = (bytes + 4095) & ~(size_t)4095;
		got = ky_sys(SYS_mmap, 0, (long)map_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (got < 0)
			return NULL;
		if (map_bytes != 65536)
			return (void *)got; // NOLINT(performance-no-int-to-ptr)
		block = (uint8_t *)got;	    // NOLINT(performance-no-int-to-ptr)
		left = map_bytes;
	}
	memory = block;
	block += bytes;
	left -= bytes;
	return memory;
}

bool ky_trace_trylock(void)
{
	uint32_t free = 0;

	/* Acquire: partner is the release in ky_trace_unlock(). */
	return ky_trace.process &&
	       __atomic_compare_exchange_n(&ky_trace.process->lock, &free, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void ky_trace_lock(void)
{
	while (ky_trace.process && !ky_trace_trylock())
		sched_yield();
}

void ky_trace_unlock(void)
{
	if (ky_trace.process)
		__atomic_store_n(&ky_trace.process->lock, 0, __ATOMIC_RELEASE);
}

uint32_t ky_trace_pid(void)
{
	uint32_t pid = __atomic_load_n(&ky_trace.process->pid, __ATOMIC_RELAXED);

	if (!pid) {
		pid = (uint32_t)ky_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
		__atomic_store_n(&ky_trace.process->pid, pid, __ATOMIC_RELAXED);
	}
	return pid;
}

bool ky_trace_glob(const char *pattern, size_t pattern_bytes, const char *text, size_t text_bytes,
		   bool any)
{
	const char *pattern_end = pattern + pattern_bytes, *text_end = text + text_bytes;
	const char *star = NULL, *star_text = NULL;

	for (;;) {
		if (pattern < pattern_end && *pattern == '*') {
			star = ++pattern;
			star_text = text;
			continue;
		}
		if (text == text_end && pattern == pattern_end)
			return true;
		if (text < text_end && pattern < pattern_end) {
			bool is_plain = *pattern == '\\' && pattern + 1 < pattern_end;

			if (pattern[is_plain] == *text || (any && !is_plain && *pattern == '?')) {
				pattern += 1 + is_plain;
				text++;
				continue;
			}
		}
		if (!star || star_text == text_end)
			return false;
		/* Let the last star take one byte more. */
		pattern = star;
		text = ++star_text;
	}
}
