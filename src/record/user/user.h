/* SPDX-License-Identifier: MIT */
/*
 * A recording of user space: programs that link libkymo-trace, those that run already and those
 * that start during the recording. docs/design/record-path.md has the reasons.
 *
 *	ky_user_open()	 checks and sets up everything; records nothing yet
 *	ky_user_start()	 asks programs to join; a thread reads their rings and writes traces
 *	ky_user_stop()	 makes programs leave, and reads the rest
 *	ky_user_finish() finishes the traces, with the refined clock
 *	ky_user_close()	 removes the session's directories; after any of the above, failed or not
 *
 * Threads: one at a time per recording.
 */
#ifndef KY_RECORD_USER_USER_H
#define KY_RECORD_USER_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kymo/error.h>
#include <kymo/ring.h>

#include "base/log.h"
#include "os/clock.h"
#include "record/request/user-group.h"
#include "record/request/user-options.h"
#include "store/packets/packet-store.h"

struct ky_user;

/*
 * Errors: KYMO_E_INVALID (filter: with its column; patterns; contexts), KYMO_E_NOT_FOUND (no such
 * process), KYMO_E_PERMISSION (another user's), KYMO_E_IO, KYMO_E_MEMORY. On failure no files are
 * left behind, and *user is NULL.
 */
int ky_user_open(const struct ky_user_options *options, struct ky_user **user,
		 struct kymo_error *err);
int ky_user_start(struct ky_user *user, struct kymo_error *err);
/* After start: the ids of the recording's threads. Returns their number. */
#define KY_USER_THREADS_MAX 7
size_t ky_user_threads(const struct ky_user *user, int32_t tids[KY_USER_THREADS_MAX]);
/* Becomes readable when the recording cannot continue (disk full). Stop then returns the error. */
int ky_user_failed_fd(const struct ky_user *user);
/*
 * Between start and stop, with is_beside_kernel, for the thread that runs the kernel's recorder. Readable when
 * programs write again after an idle time, while there are live readers; the caller reads the eventfd.
 */
int ky_user_active_fd(const struct ky_user *user);
/* Whether no program has written for a while. */
bool ky_user_is_idle(const struct ky_user *user);
/* The live readers have changed. */
void ky_user_look_for_readers(struct ky_user *user);
/*
 * The kernel's beacon was set: set those of the programs, too, if they are idle; otherwise the programs' own thread does.
 * Errors: those of the output.
 */
int ky_user_tell_readers(struct ky_user *user, struct kymo_error *err);
/*
 * Change the selected events, processes or users, or pause, between start and stop. The first selection
 * of processes or users limits a recording of all programs to it. Programs that are no longer selected
 * keep their traces. Errors: those of open; KYMO_E_STATE: the last selected process or user would be removed.
 * After an error nothing has changed (KYMO_E_IO: maybe for some users' programs).
 */
int ky_user_change(struct ky_user *user, const struct ky_user_change *change,
		   struct kymo_error *err);
/* The present rules; NULL after the last one. Valid until the next change. */
struct ky_user_rule;
const struct ky_user_rule *ky_user_rule_at(const struct ky_user *user, size_t i);

/*
 * Flight recorder: make traces of the present contents of programs' buffers, in @output/ust/pid,
 * with @clock; any number of times, between start and stop.
 */
int ky_user_snapshot(struct ky_user *user, const char *output, const struct ky_os_clock *clock,
		     struct ky_user_snapshot *made, struct kymo_error *err);

/* Flight recorder, between start and stop: forget all events so far, and the programs that have ended. */
int ky_user_clear(struct ky_user *user, struct kymo_error *err);

/* The caller's work while it waits: run() returns when @fd is readable, or earlier, or an error. */
struct ky_user_pause {
	int (*run)(void *data, int fd, struct kymo_error *err);
	void *data;
};

/*
 * Between start and stop: everything up to now, of a flight recorder what its buffers have, becomes
 * complete traces in OUTPUT/@archive/ust/pid, with the clock @ended, and programs continue in new traces
 * in OUTPUT/ust/pid, with the clock @next. Traces of programs that take too long move later. @pause may
 * be NULL. Errors: those of writing.
 */
int ky_user_rotate(struct ky_user *user, const char *archive, const struct ky_os_clock *ended,
		   const struct ky_os_clock *next, const struct ky_user_pause *pause,
		   struct kymo_error *err);
/* Between start and stop. */
void ky_user_progress(const struct ky_user *user, struct ky_user_progress *progress);
/*
 * The programs of the recording, in the order in which they came: the first @max of them. *n: the
 * number in @list; *n_all: of all. A program whose ring is with a task is missing. Between start and stop.
 */
int ky_user_list(struct ky_user *user, struct ky_user_program_progress *list, size_t max, size_t *n,
		 size_t *n_all, struct kymo_error *err);
int ky_user_stop(struct ky_user *user, struct kymo_error *err);
/* @clock: the clock of the options, refined since. */
int ky_user_finish(struct ky_user *user, const struct ky_os_clock *clock, struct kymo_error *err);
/* Valid after finish, until close. */
const struct ky_user_stats *ky_user_stats(const struct ky_user *user);
/* NULL is allowed. */
void ky_user_close(struct ky_user *user);

#endif
