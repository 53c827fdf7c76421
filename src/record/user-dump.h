/* SPDX-License-Identifier: MIT */
/*
 * The state of a program that its trace needs to be understood: which executables and libraries
 * are loaded, where, and which files they are. Looked up from outside, in /proc: the program does
 * nothing for it. LTTng-UST's lttng_ust_statedump:* events, in a stream of their own.
 */
#ifndef KY_RECORD_USER_DUMP_H
#define KY_RECORD_USER_DUMP_H

#include <sys/types.h>

#include "os/clock.h"
#include "record/user-ring.h"

/*
 * Write (a flight recorder: keep) what process @pid has loaded, but for what was there before, if it
 * is the one that has the ring mapped. Returns 1: done; 0: it is not, or it is gone; negative: the output cannot be
 * written.
 */
int ky_user_dump(struct ky_user_ring *ring, pid_t pid, const struct ky_os_clock *clock,
		 struct kymo_error *err);

/* The same for the process that has its program's number in another PID namespace: it is looked for. */
int ky_user_dump_elsewhere(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			   struct kymo_error *err);

#endif
