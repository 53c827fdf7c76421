/* SPDX-License-Identifier: MIT */
/*
 * The events of a tracker whose begin and end are events of programs (libkymo-trace): the kernel does not see them, so a small
 * recording that keeps nothing brings them, as for conditions of triggers, and pairs are made here. Up to 0.2 s after the
 * event.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_LATENCY_TRACKER_USER_H
#define KY_LATENCY_TRACKER_USER_H

#include "latency/tracker/tracker-internal.h"

struct ky_tracker_user;

/*
 * Start it. @definition: has the condition; it must outlive the object. Errors as of ky_user_open(), and of a wrong filter with its
 * column in the condition.
 */
int ky_tracker_user_open(const struct ky_tracker_definition *definition,
			 const struct ky_tracker_options *options, struct ky_tracker_user **user,
			 struct kymo_error *err);
void ky_tracker_user_close(struct ky_tracker_user *user); /* NULL is allowed */

/* Both return 0 to go on. */
typedef int (*ky_tracker_user_open_pair)(void *data, const struct ky_tracker_key *key,
					 const struct ky_tracker_open *open);
typedef int (*ky_tracker_user_report)(void *data, const struct ky_tracker_report *report);

/* All pairs that are open now. */
int ky_tracker_user_each(struct ky_tracker_user *user, ky_tracker_user_open_pair each, void *data);
/* The pairs that have ended since the last call, those that are too short left out. */
void ky_tracker_user_take(struct ky_tracker_user *user, ky_tracker_user_report take, void *data);
/* As ky_tracker_read(), of all CPUs in one cell. */
void ky_tracker_user_read(struct ky_tracker_user *user, struct ky_latency_cell *cell,
			  uint64_t *period);
/* n_full, n_again, n_lost, worst_ns. */
void ky_tracker_user_shared(struct ky_tracker_user *user, struct ky_tracker_shared *shared);

#endif
