/* SPDX-License-Identifier: MIT */
/*
 * The state dump of a program: the loaded executables and libraries, their addresses, and their
 * files. The program notes them in its ring when it joins, and when libraries with events are
 * loaded or unloaded; the recorder also reads /proc. They become events lttng_ust_statedump:*, and
 * lttng_ust_lib:* for later changes, as with LTTng-UST, in a stream of their own.
 */
#ifndef KY_RECORD_RINGS_USER_DUMP_H
#define KY_RECORD_RINGS_USER_DUMP_H

#include <sys/types.h>

#include "os/clock.h"
#include "record/rings/user-ring.h"

/*
 * Write (a flight recorder: keep) the loaded files of process @pid, or the changes since the last
 * call, if it is the process that has the ring mapped. Returns 1: done; 0: another process, or it
 * has ended; negative: the output cannot be written.
 */
int ky_user_dump(struct ky_user_ring *ring, pid_t pid, const struct ky_os_clock *clock,
		 struct kymo_error *err);

/* The same for a program in another PID namespace, whose process this function searches. */
int ky_user_dump_elsewhere(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			   struct kymo_error *err);

/*
 * The same for the notes that the program has written since the last call, with their times. The
 * program may have ended since. Returns 1: events were written, now or before; 0: never; negative:
 * as above.
 */
int ky_user_dump_notes(struct ky_user_ring *ring, const struct ky_os_clock *clock,
		       struct kymo_error *err);
/* Whether the program has written further notes. */
bool ky_user_dump_is_behind(const struct ky_user_ring *ring);

/* The trace begins anew: the next call writes all loaded files again. */
void ky_user_dump_renew(struct ky_user_ring *ring);

void ky_user_dumped_free(struct ky_user_dumped *dumped);

#endif
