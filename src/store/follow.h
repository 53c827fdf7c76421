/* SPDX-License-Identifier: MIT */
/*
 * Reading traces while they are written.
 *
 *	ky_follow_open()	watch the directories; their writers learn that there is a reader
 *	ky_trace_set_open_with() with `follow`: streams end where they are whole
 *	... read; a stream that may go on gives KYMO_E_AGAIN at its end ...
 *	ky_follow_wait()	until something has changed, or the time is over
 *	ky_follow_update()	the streams of the set are longer now; or the set is to be opened again
 *
 * Threads: one at a time per follower and its set.
 */
#ifndef KY_STORE_FOLLOW_H
#define KY_STORE_FOLLOW_H

#include "store/trace.h"

struct ky_follow;

/*
 * Watch everything at and below @paths (borrowed). To be opened before the set, so that nothing is missed in between.
 * KYMO_E_NOT_FOUND, KYMO_E_PERMISSION, KYMO_E_IO, KYMO_E_MEMORY; KYMO_E_LIMIT: the user watches too many directories.
 */
int ky_follow_open(const char *const *paths, size_t n_paths, struct ky_follow **follow,
		   struct kymo_error *err);
void ky_follow_close(struct ky_follow *follow); /* NULL is fine */

/* Wait until something has changed, @timeout_ms at most. A signal ends the wait. */
void ky_follow_wait(struct ky_follow *follow, int timeout_ms);

/*
 * Bring @set up to date: streams get longer, bounds move, traces end. *changed: there is something that the set does not
 * know, a trace, a stream, other metadata: it is to be closed and opened again, with a new follower.
 * 0, KYMO_E_FORMAT (what a writer says makes no sense), KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_follow_update(struct ky_follow *follow, struct ky_trace_set *set, bool *changed,
		     struct kymo_error *err);

/* Is any trace of @set still being written? */
bool ky_follow_is_live(const struct ky_trace_set *set);

/* For trace.c: how far @trace, whose path is set, can be read now. */
int ky_follow_begin(struct ky_trace *trace, struct kymo_error *err);

#endif
