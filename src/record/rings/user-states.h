/* SPDX-License-Identifier: MIT */
/*
 * The state dumps of programs that share a ring (--buffers user): what their notes say (struct ky_state_note), and the
 * last state of each process, for traces that begin later (chunks) and for snapshots.
 *
 * Threads: those of the ring.
 */
#ifndef KY_RECORD_RINGS_USER_STATES_H
#define KY_RECORD_RINGS_USER_STATES_H

#include "os/clock.h"
#include "record/rings/user-ring.h"
#include "record/runtime/user-runtime.h"

/* Whether @name is that of a note. */
bool ky_user_is_state_note(const char *name);

/*
 * The note @name in @dir, which must outlive the ring, is to be read. @name is taken over. Without memory the note is
 * left out.
 */
void ky_user_states_add_note(struct ky_user_ring *ring, const struct ky_user_dir *dir, char *name);

/* Whether there are notes to be read. */
bool ky_user_states_are_behind(const struct ky_user_ring *ring);

/*
 * Write (a flight recorder: keep) what the notes say, some of them at a time; and, in a new trace, the states of all
 * processes. Returns 1 when done; negative: the output cannot be written.
 */
int ky_user_states_read(struct ky_user_ring *ring, const struct ky_os_clock *clock,
			struct kymo_error *err);

/* A trace ends: forgets processes that have ended. The caller reads all events after that. */
void ky_user_states_forget_ended(struct ky_user_ring *ring);
/* The trace begins anew: the next reading writes all states again. */
void ky_user_states_renew(struct ky_user_ring *ring);
/* Puts the states of all processes into ring->dump. */
void ky_user_states_gather(struct ky_user_ring *ring);

void ky_user_states_free(struct ky_user_states *states);

#endif
