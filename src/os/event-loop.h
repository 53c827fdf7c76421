/* SPDX-License-Identifier: MIT */
/*
 * One loop for everything that a process waits for: descriptors, times, signals, child processes.
 *
 *	ky_loop_new(&loop, err);
 *	ky_loop_add(loop, fd, take_fd, data, err);
 *	ky_loop_add_signals(loop, &set, take_signal, data, err);
 *	ret = ky_loop_run(loop, err);		until a callback ends it
 *
 * A callback returns 0 to continue, KY_LOOP_END to make ky_loop_run() return 0, or a negative
 * status, which ky_loop_run() returns with @err. A callback may add and remove sources, also its
 * own.
 *
 * Threads: one at a time per loop.
 */
#ifndef KY_OS_EVENT_LOOP_H
#define KY_OS_EVENT_LOOP_H

#include <signal.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <kymo/error.h>

#define KY_LOOP_END 1

struct ky_loop;
struct ky_loop_source;

typedef int (*ky_loop_call)(void *data, struct kymo_error *err);
typedef int (*ky_loop_signal_call)(void *data, const struct signalfd_siginfo *info,
				   struct kymo_error *err);

/* 0, KYMO_E_IO or KYMO_E_MEMORY. */
int ky_loop_new(struct ky_loop **loop, struct kymo_error *err);
/* Frees all sources; descriptors of callers stay open. NULL is allowed. */
void ky_loop_free(struct ky_loop *loop);

/*
 * Calls @call when @fd is readable (or has an error). *source may be NULL. Returns 0, KYMO_E_IO,
 * KYMO_E_MEMORY.
 */
int ky_loop_add(struct ky_loop *loop, int fd, ky_loop_call call, void *data,
		struct ky_loop_source **source, struct kymo_error *err);

/* Calls @call when the timer expires. The timer is not set yet. All timers share one descriptor. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_loop_add_timer(struct ky_loop *loop, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err);
/* Set the timer to @ns from now; 0: never. */
void ky_loop_set_timer(struct ky_loop_source *source, uint64_t ns);

/* Calls @call for each signal of @set. The caller must block these signals in all threads. */
int ky_loop_add_signals(struct ky_loop *loop, const sigset_t *set, ky_loop_signal_call call,
			void *data, struct ky_loop_source **source, struct kymo_error *err);

/*
 * Calls @call once after the end of child process @pid. The caller takes the exit status
 * (waitpid()).
 */
int ky_loop_add_child(struct ky_loop *loop, pid_t pid, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err);

/* Stops waiting for @source and frees it. NULL is allowed. */
void ky_loop_remove(struct ky_loop_source *source);

/* Waits and calls callbacks until one of them ends the loop. */
int ky_loop_run(struct ky_loop *loop, struct kymo_error *err);

#endif
