/* SPDX-License-Identifier: MIT */
/*
 * The state of a program that its trace needs to be understood: which executables and libraries
 * are loaded, where, and which files they are. The program notes that in its ring when it joins, and when libraries with
 * events come and go; and the recorder looks in /proc. LTTng-UST's lttng_ust_statedump:* events, and lttng_ust_lib:* for
 * what changes later, in a stream of their own.
 */
#ifndef KY_RECORD_USER_USER_DUMP_H
#define KY_RECORD_USER_USER_DUMP_H

#include <sys/types.h>

#include "os/clock.h"
#include "record/user/user-ring.h"

/*
 * Write (a flight recorder: keep) what process @pid has loaded, or what has changed since the last time, if it
 * is the one that has the ring mapped. Returns 1: done; 0: it is not, or it is gone; negative: the output cannot be
 * written.
 */
int ky_user_dump(struct ky_user_ring *ring, pid_t pid, const struct ky_os_clock *clock,
		 struct kymo_error *err);

/* The same for the process that has its program's number in another PID namespace: it is looked for. */
int ky_user_dump_elsewhere(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			   struct kymo_error *err);

/*
 * The same of what the program itself has noted since the last call, with the times that it says: it may have ended since.
 * Returns 1: something was written, now or before; 0: nothing ever; negative: as above.
 */
int ky_user_dump_notes(struct ky_user_ring *ring, const struct ky_os_clock *clock,
		       struct kymo_error *err);
/* Has it noted anything since? */
bool ky_user_dump_is_behind(const struct ky_user_ring *ring);

void ky_user_dumped_free(struct ky_user_dumped *dumped);

#endif
