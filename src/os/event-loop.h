/* SPDX-License-Identifier: MIT */
/*
 * One loop for everything that a process waits for: descriptors, times, signals, child processes.
 *
 *	ky_loop_new(&loop, err);
 *	ky_loop_add(loop, fd, take_fd, data, err);
 *	ky_loop_add_signals(loop, &set, take_signal, data, err);
 *	ret = ky_loop_run(loop, err);		until a call says that it is enough
 *
 * A call returns 0: go on; KY_LOOP_END: ky_loop_run() returns 0; negative: ky_loop_run() returns that, with @err.
 * A call may add and remove what the loop waits for, itself included.
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
/* Frees all sources; descriptors of callers stay open. NULL is fine. */
void ky_loop_free(struct ky_loop *loop);

/* Call when @fd is readable (or has an error). *source may be NULL. 0, KYMO_E_IO, KYMO_E_MEMORY. */
int ky_loop_add(struct ky_loop *loop, int fd, ky_loop_call call, void *data,
		struct ky_loop_source **source, struct kymo_error *err);

/* Call when the timer's time has come. The timer is not set yet. */
int ky_loop_add_timer(struct ky_loop *loop, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err);
/* Set the timer to @ns from now; 0: never. */
void ky_loop_set_timer(struct ky_loop_source *source, uint64_t ns);

/* Call for each signal of @set. The caller blocks these signals in all threads. */
int ky_loop_add_signals(struct ky_loop *loop, const sigset_t *set, ky_loop_signal_call call,
			void *data, struct ky_loop_source **source, struct kymo_error *err);

/*
 * Call once when child process @pid has ended; its exit status is the caller's to take (waitpid()).
 */
int ky_loop_add_child(struct ky_loop *loop, pid_t pid, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err);

/* Stop waiting for @source, and free it. NULL is fine. */
void ky_loop_remove(struct ky_loop_source *source);

/* Wait and call until a call ends it. */
int ky_loop_run(struct ky_loop *loop, struct kymo_error *err);

#endif
