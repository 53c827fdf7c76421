/* SPDX-License-Identifier: MIT */
/*
 * Programs that close all descriptors, as daemons do, would close the control file's, by which recorders
 * find them. So close() treats it as not open (EBADF), the functions that close several descriptors skip
 * it, and dup2() to its number moves it. The tracer itself makes system calls, and does not call these.
 */
#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/preload/preload.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum { CLOSE, CLOSE_RANGE, CLOSEFROM, DUP2, DUP3, N_FUNCTIONS };

static const char *const names[N_FUNCTIONS] = {
	[CLOSE] = "close",	   [CLOSE_RANGE] = "close_range",
	[CLOSEFROM] = "closefrom", [DUP2] = "dup2",
	[DUP3] = "dup3",
};
static void *found[N_FUNCTIONS];
static struct ky_preload next = {.n = N_FUNCTIONS, .names = names, .found = found};

#define NEXT(number, result, ...) \
	((result(*)(__VA_ARGS__))__atomic_load_n(&found[number], __ATOMIC_RELAXED))

/* Since glibc 2.34: a program that calls them has one that has them. */
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

/* Before main(): programs call these where the loader must not be called, between fork() and exec(). */
static __attribute__((constructor(109))) void start(void)
{
	ky_preload_ready(&next);
}

static int next_close(int fd)
{
	if (!ky_preload_ready(&next))
		return (int)syscall(SYS_close, fd);
	return NEXT(CLOSE, int, int)(fd);
}

KY_PRELOAD_API int close(int fd)
{
	if (fd >= 0 && fd == kymo_control_fd()) {
		errno = EBADF;
		return -1;
	}
	return next_close(fd);
}

static int next_close_range(unsigned int first, unsigned int last, int flags)
{
	if (!ky_preload_ready(&next))
		return (int)syscall(SYS_close_range, first, last, flags);
	return NEXT(CLOSE_RANGE, int, unsigned int, unsigned int, int)(first, last, flags);
}

KY_PRELOAD_API int close_range(unsigned int first, unsigned int last, int flags)
{
	int fd = kymo_control_fd();
	unsigned int ours = (unsigned int)fd;

	/* Close-on-exec it is anyway. */
	if (fd < 0 || ours < first || ours > last || ((unsigned int)flags & CLOSE_RANGE_CLOEXEC))
		return next_close_range(first, last, flags);
	if (first < ours && next_close_range(first, ours - 1, flags))
		return -1;
	return ours < last ? next_close_range(ours + 1, last, flags) : 0;
}

KY_PRELOAD_API void closefrom(int first)
{
	int fd = kymo_control_fd();

	if (first < 0)
		first = 0;
	for (; first <= fd; first++) {
		if (first != fd)
			next_close(first);
	}
	if (ky_preload_ready(&next))
		NEXT(CLOSEFROM, void, int)(first);
	else
		syscall(SYS_close_range, first, UINT_MAX, 0);
}

/* Takes the number: @moved is what to close when it was not taken after all. */
static int fd_make_way(int to)
{
	if (to < 0 || to != kymo_control_fd())
		return -1;
	kymo_control_fd_move();
	return to != kymo_control_fd() ? to : -1;
}

static int after_dup(int result, int moved)
{
	int saved = errno;

	if (result < 0 && moved >= 0)
		next_close(moved);
	errno = saved;
	return result;
}

KY_PRELOAD_API int dup2(int from, int to)
{
	int moved = from == to ? -1 : fd_make_way(to);

	if (!ky_preload_ready(&next))
		return (int)syscall(SYS_dup3, from, to, 0);
	return after_dup(NEXT(DUP2, int, int, int)(from, to), moved);
}

KY_PRELOAD_API int dup3(int from, int to, int flags)
{
	int moved = from == to ? -1 : fd_make_way(to);

	if (!ky_preload_ready(&next))
		return (int)syscall(SYS_dup3, from, to, flags);
	return after_dup(NEXT(DUP3, int, int, int, int)(from, to, flags), moved);
}
