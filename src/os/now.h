/* SPDX-License-Identifier: MIT */
/*
 * The system's clocks as numbers: for deadlines, intervals and waits. The clock of a recording is os/clock.h.
 *
 * Threads: any.
 */
#ifndef KY_OS_NOW_H
#define KY_OS_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t ky_os_time_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* CLOCK_MONOTONIC, which no one sets. */
static inline int64_t ky_os_now_ns(void)
{
	return ky_os_time_ns(CLOCK_MONOTONIC);
}

static inline int64_t ky_os_now_ms(void)
{
	return ky_os_now_ns() / 1000000;
}

static inline int64_t ky_os_now_s(void)
{
	return ky_os_now_ns() / 1000000000;
}

#endif
