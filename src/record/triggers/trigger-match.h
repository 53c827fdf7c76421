/* SPDX-License-Identifier: MIT */
/*
 * When a condition is true: counters, pairs, deadlines and limits. Its input is what a source of
 * events (trigger-store.h) or the recording reports; it does no I/O.
 *
 * Threads: one at a time per match.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGER_MATCH_H
#define KY_RECORD_TRIGGERS_TRIGGER_MATCH_H

#include "base/hash.h"
#include "record/triggers/trigger-rule.h"

/* Begins that wait for their ends. When there are more, the oldest one is dropped. */
#define KY_TRIGGER_OPEN_MAX 16384

/* A begin: of a period that has not ended, or of a time in which an event must come. */
struct ky_trigger_open {
	struct ky_trigger_open *older, *newer;
	uint64_t key;
	int64_t ns;
};

struct ky_trigger_match {
	const struct ky_trigger_condition *condition;
	struct ky_map open; /* key -> struct ky_trigger_open */
	struct ky_trigger_open *oldest, *newest;
	uint64_t n_dropped;
	int64_t *times; /* EVENT: of the last `count` events, a circle */
	uint64_t n_times;
	uint64_t base;		  /* LOSS, SIZE: the amount from which on the next one counts */
	int64_t due_ns;		  /* AT, EVERY: CLOCK_REALTIME of the next time */
	int64_t fired_ns;	  /* the last time */
	uint64_t n_fired, n_held; /* held: not fired because of the limits */
};

/* An event that meets a condition. Times are CLOCK_REALTIME, in ns. */
struct ky_trigger_hit {
	int64_t ns;
	bool has_duration;
	uint64_t duration_ns; /* of the pair */
};

/* @condition must outlive @match. 0 or KYMO_E_MEMORY; the caller must call fini in any case. */
int ky_trigger_match_init(struct ky_trigger_match *match,
			  const struct ky_trigger_condition *condition, int64_t now_ns);
void ky_trigger_match_fini(struct ky_trigger_match *match);

/*
 * A `first` or a `second` event at @ns. @key: a hash of the keys' values. Returns whether the
 * trigger fires; *hit says why. Events of one key should come in the order of time. When memory is
 * out, a begin is dropped and counted.
 */
bool ky_trigger_match_event(struct ky_trigger_match *match, bool is_second, uint64_t key,
			    int64_t ns, struct ky_trigger_hit *hit);

/*
 * The amount so far: lost events, written bytes (both since the beginning), or the fill in per cent.
 * Returns whether the trigger fires.
 */
bool ky_trigger_match_amount(struct ky_trigger_match *match, uint64_t amount, int64_t now_ns);

/* The time at which ky_trigger_match_expire() has something to do; INT64_MAX: never. */
int64_t ky_trigger_match_due(const struct ky_trigger_match *match);
/*
 * All events up to @now_ns are known. Returns whether the trigger fires, at most once; the caller
 * calls again until it does not.
 */
bool ky_trigger_match_expire(struct ky_trigger_match *match, int64_t now_ns,
			     struct ky_trigger_hit *hit);

#endif
