/* SPDX-License-Identifier: MIT */
/*
 * Reading traces during their recording.
 *
 *	ky_follow_open()	watches the directories; writers learn that there is a reader
 *	ky_trace_set_open_with() with `follow`: streams end after their last whole packet
 *	... read; a stream that may continue returns KYMO_E_AGAIN at its end ...
 *	ky_follow_wait()	waits for a change, or for the timeout
 *	ky_follow_update()	makes the set's streams longer, or reports that it must be reopened
 *
 * Threads: one at a time per follower and its set.
 */
#ifndef KY_STORE_FOLLOW_H
#define KY_STORE_FOLLOW_H

#include "store/read/trace.h"

struct ky_follow;

/*
 * Watch everything at and below @paths (borrowed), and tell the writers that a reader wants events
 * @delay_ms after they happen, at most. The caller must call this before it opens the
 * set, so that no change is missed in between. KYMO_E_NOT_FOUND, KYMO_E_PERMISSION, KYMO_E_IO,
 * KYMO_E_MEMORY; KYMO_E_LIMIT: the user watches too many directories.
 */
int ky_follow_open(const char *const *paths, size_t n_paths, uint32_t delay_ms,
		   struct ky_follow **follow, struct kymo_error *err);
/* Follow @feed, too, which must outlive the follower; its address is not among the paths. KYMO_E_MEMORY. */
int ky_follow_add_feed(struct ky_follow *follow, struct ky_feed *feed, struct kymo_error *err);
void ky_follow_close(struct ky_follow *follow); /* NULL is allowed */

/* Waits for a change, @timeout_ms at most. A signal ends the wait. */
void ky_follow_wait(struct ky_follow *follow, int timeout_ms);
/* Whether a recorder writes to one of the paths, as far as its lock says that. */
bool ky_follow_is_claimed(const struct ky_follow *follow);

/*
 * Bring @set up to date: streams get longer, time bounds move, traces end. *changed: there is
 * something new that the set does not have (a trace, a stream, other metadata): the caller must
 * close and reopen it, with a new follower. Returns 0, KYMO_E_FORMAT (a writer's data is
 * malformed), KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_follow_update(struct ky_follow *follow, struct ky_trace_set *set, bool *changed,
		     struct kymo_error *err);

/*
 * Whether something new has appeared in the directories since the last call, for callers without a
 * set, or with a complete one: they then open a new follower.
 */
bool ky_follow_has_news(struct ky_follow *follow);

/* Whether a writer is still writing any trace of @set. */
bool ky_follow_is_live(const struct ky_trace_set *set);

/* All events of @trace, which is open with `follow`, before this time are there, as its writer said at the opening. INT64_MIN: it did not say. */
int64_t ky_follow_told_ns(const struct ky_trace *trace);

/* For trace.c: finds out how much of @trace, whose path is set, can be read now. */
int ky_follow_begin(struct ky_trace *trace, struct kymo_error *err);

#endif
