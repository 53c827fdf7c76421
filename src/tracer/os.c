/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
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

/* The struct is the kernel's own on 64-bit machines. */
int ky_fstat(int fd, struct stat *to)
{
	return (int)ky_sys(SYS_fstat, fd, (long)to, 0, 0, 0, 0);
}
_Static_assert(sizeof(long) == 8, "ky_fstat(), and 64-bit arguments of system calls");

int64_t ky_clock_ns(int clock)
{
	struct timespec ts;

	/* Each page of libc that is touched while a program starts costs more than the system call. */
	ky_sys(SYS_clock_gettime, clock, (long)&ts, 0, 0, 0, 0);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

#define BLOCK_BYTES 65536
#define PAGE_BYTES  4096
#define LINE_BYTES  64 /* a cache line: what hits look at is laid out in them */

/* What small things come from. What is used of it changes by one store: a child forked beside it sees no halves. */
struct block {
	size_t used;
};
static struct block *block;

static void begin_block(void *memory)
{
	struct block *fresh = memory;

	fresh->used = LINE_BYTES;
	__atomic_store_n(&block, fresh, __ATOMIC_RELEASE);
}

/* One mapping for the page that forks wipe, for the first block, and for the scratch memory. */
bool ky_trace_begin(void)
{
	const long bytes = PAGE_BYTES + BLOCK_BYTES + KY_RECORD_BYTES_MAX;
	uint8_t *memory;
	long got;

	if (ky_trace.process)
		return true;
	got = ky_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (got < 0)
		return false;
	if (ky_sys(SYS_madvise, got, PAGE_BYTES, MADV_WIPEONFORK, 0, 0, 0) < 0) {
		ky_sys(SYS_munmap, got, bytes, 0, 0, 0, 0);
		return false;
	}
	memory = (uint8_t *)got; // NOLINT(performance-no-int-to-ptr)
	begin_block(memory + PAGE_BYTES);
	ky_trace.scratch = memory + PAGE_BYTES + BLOCK_BYTES;
	ky_trace.process = (struct ky_process *)memory;
	return true;
}

/*
 * Small things come from a block. Nothing is given back: hits beside us may still be reading
 * what was replaced, and it is little.
 */
void *ky_trace_alloc(size_t bytes)
{
	size_t map_bytes = BLOCK_BYTES, at;
	long got;

	bytes = (bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
	if (!block || bytes > BLOCK_BYTES - block->used) {
		if (bytes > map_bytes / 4)
			map_bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
		got = ky_sys(SYS_mmap, 0, (long)map_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (got < 0)
			return NULL;
		if (map_bytes != BLOCK_BYTES)
			return (void *)got; // NOLINT(performance-no-int-to-ptr)
		begin_block((void *)got);   // NOLINT(performance-no-int-to-ptr)
	}
	at = block->used;
	__atomic_store_n(&block->used, at + bytes, __ATOMIC_RELAXED);
	return (uint8_t *)block + at;
}

bool ky_trace_trylock(void)
{
	uint32_t free = 0;

	/* Acquire: partner is the release in ky_trace_unlock(). */
	return ky_trace.process &&
	       __atomic_compare_exchange_n(&ky_trace.process->lock, &free, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool ky_trace_is_locked(void)
{
	return __atomic_load_n(&ky_trace.process->lock, __ATOMIC_RELAXED);
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
	uint32_t now;

	if (__builtin_expect(pid != 0, 1))
		return pid;
	now = (uint32_t)ky_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	/* A child of vfork() has its parent's page. */
	if (kymo_ring_is_shared_thread())
		return now;
	/* A signal's handler that forks in between: its child's page would have the parent's. */
	for (; pid != now; now = (uint32_t)ky_sys(SYS_getpid, 0, 0, 0, 0, 0, 0)) {
		pid = now;
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
