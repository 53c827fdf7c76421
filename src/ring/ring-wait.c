/* SPDX-License-Identifier: MIT */
/*
 * Writers that wait until the reader has released a sub-buffer. Nothing is held meanwhile: no lock, no sequence. So
 * a handler that interrupts the wait may write, wait for itself, jump away or fork.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "ring/ring-writer.h"

/* A part of the sleep: after each, the client is asked. */
#define PART_NS 20000000u

static uint64_t ring_wait_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_part(struct kymo_ring_file *file, const struct ky_rb_stall *stall)
{
	uint64_t left = stall->wait.limit_ns - stall->wait.waited_ns;
	struct timespec part = {.tv_nsec = left < PART_NS ? (long)left : (long)PART_NS};

	ky_rb_syscall(SYS_futex, (long)&file->releases, FUTEX_WAIT, stall->releases, (long)&part, 0,
		      0);
}

bool ky_rb_wait(struct kymo_ring_writer *writer, struct ky_rb_stall *stall)
{
	struct kymo_ring_file *file = writer->file;
	struct kymo_ring_wait *wait = &stall->wait;

	if (stall->began_ns)
		sleep_part(file, stall);
	else
		stall->began_ns = ring_wait_now_ns();
	wait->waited_ns = ring_wait_now_ns() - stall->began_ns;
	wait->limit_ns = writer->wait_ns;
	wait->attended = __atomic_load_n(&file->attended, __ATOMIC_RELAXED);
	if (wait->waited_ns >= wait->limit_ns || wait->attended == KYMO_RING_ABANDONED ||
	    (writer->goes_on && !writer->goes_on(writer->client, wait)))
		return false;
	/* Acquire, and before the next look at the buffer. Partner: ky_rb_wake_writers(). */
	stall->releases = __atomic_load_n(&file->releases, __ATOMIC_ACQUIRE);
	__atomic_store_n(&file->stalled, 1, __ATOMIC_RELAXED);
	/* Partner: the fence there. Either the caller sees the room, or the reader our request. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return true;
}

void ky_rb_wake_writers(struct kymo_ring_file *file)
{
	/* Partner: the fence in ky_rb_wait(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&file->stalled, __ATOMIC_RELAXED) == 0 ||
	    __atomic_exchange_n(&file->stalled, 0, __ATOMIC_RELAXED) == 0)
		return;
	__atomic_fetch_add(&file->releases, 1, __ATOMIC_RELEASE);
	ky_rb_syscall(SYS_futex, (long)&file->releases, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}
