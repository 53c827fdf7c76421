/* SPDX-License-Identifier: MIT */
/*
 * A recording of user space: programs that link libkymo-trace, those that run already and those
 * that start while it lasts. docs/design/record-path.md has the why.
 *
 *	ky_user_open()	 everything is checked and set up; nothing is recorded yet
 *	ky_user_start()	 programs are told; a thread of its own reads their rings and writes traces
 *	ky_user_stop()	 programs are told to stop, the rest is read
 *	ky_user_finish() the traces are finished, with the clock as it is known by then
 *	ky_user_close()	 the session's directories are gone; after any of the above, failed or not
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
#include "store/packet-store.h"

struct ky_user_options {
	const char *output; /* traces go to OUTPUT/ust/pid/...; the directory exists */
	struct ky_packet_store
		*store; /* traces go to ust/pid/... in it; NULL: a directory at output */
	const char *const *patterns; /* "shop:*"; each is a rule of its own */
	size_t n_patterns;
	const char *const *exclusions; /* of all rules */
	size_t n_exclusions;
	uint8_t level_min, level_max; /* 0 EMERG .. 14 DEBUG, inclusive */
	const char *filter;	      /* NULL: none */
	const char *contexts;	      /* "vtid,procname"; NULL: none */
	uint64_t buffer_bytes;	      /* per CPU and program */
	/* The rings are in files below this directory; NULL: in memory. See ky_user_place_check(). */
	const char *place;
	uint32_t pid;	  /* only this process; 0: all */
	const char *comm; /* only programs of this name; NULL: all */
	int64_t uid;	  /* only programs of this user; -1: all that we may */
	/*
	 * Flight recorder: programs overwrite their oldest events, and nothing is read until somebody
	 * wants a snapshot, or the end.
	 */
	bool overwrite;
	uint64_t
		keep_bytes; /* so much memory is kept of programs that ended meanwhile; the newest */
	const struct ky_os_clock *clock;
	const struct ky_log *log; /* may be NULL; must outlive the recording; any thread */
};

#define KY_USER_TEXT_MAX 1023 /* of a string; KYMO_STRING_MAX of kymo/trace.h */

/* What became of one program. */
struct ky_user_program_stats {
	char procname[16];
	uint32_t pid; /* as it sees itself */
	uint64_t events, bytes;
	uint64_t lost;				/* all causes */
	uint64_t lost_by[KYMO_RING_LOSSES_MAX]; /* enum kymo_ring_loss */
	uint64_t lost_joining, lost_no_id;
	uint64_t
		cut_texts; /* strings that were too long, as the program says; they end with "..." */
	uint64_t
		lost_unread; /* of a program that makes no sense any more, or has no room: what was not read */
	uint64_t
		lost_claimed; /* not 0: it says so, which cannot be; then lost is 0, and lost_by means nothing */
	uint64_t overwritten; /* flight recorder: events that newer ones replaced */
	const char *path;     /* of its trace; NULL: it has none */
};

struct ky_user_stats {
	const struct ky_user_program_stats *programs;
	size_t n_programs;
	uint64_t events, bytes, lost; /* of all */
	uint64_t cut_texts;
	uint64_t dump_events;
	/* Files of programs that could not be looked at for want of descriptors: dumps lack something. */
	uint64_t dump_missing;
	size_t n_left_out; /* programs that could not take part, and said why: each was a warning */
	size_t n_lacking;  /* programs whose events lack what the filter is about */
	size_t n_refused;  /* ring files that could not be read */
	size_t n_dropped;  /* flight recorder: programs that ended, and were not kept */
	uint64_t overwritten;
};

/* What a snapshot of a flight recorder has. */
struct ky_user_snapshot {
	size_t n_programs;
	uint64_t events, bytes;
};

/* How far a recording is; a flight recorder's events are counted at its snapshots only. */
struct ky_user_progress {
	uint64_t n_programs; /* that had a buffer */
	uint64_t events, bytes, lost;
};

/* A change of what is recorded. */
struct ky_user_change {
	bool enables;	     /* else events that match are recorded no more */
	const char *pattern; /* "shop:*" */
	/* Of enabling. Who enables a pattern again says anew under which conditions. */
	const char *filter; /* NULL: none */
	uint8_t level_min, level_max;
};

struct ky_user;

/*
 * Errors: KYMO_E_INVALID (filter: with its column; patterns; contexts), KYMO_E_NOT_FOUND (no such
 * process), KYMO_E_PERMISSION (another user's), KYMO_E_IO, KYMO_E_MEMORY. On failure nothing is left
 * behind, and *user is NULL.
 */
int ky_user_open(const struct ky_user_options *options, struct ky_user **user,
		 struct kymo_error *err);
int ky_user_start(struct ky_user *user, struct kymo_error *err);
/* Once it has started: the ids of its threads. Returns how many there are. */
#define KY_USER_THREADS_MAX 5
size_t ky_user_threads(const struct ky_user *user, int32_t tids[KY_USER_THREADS_MAX]);
/* Becomes readable when the recording cannot go on (disk full): then stop says why. */
int ky_user_failed_fd(const struct ky_user *user);
/*
 * Change what is recorded, between start and stop. Errors: as those of open; then nothing is changed
 * (KYMO_E_IO: maybe for some users' programs).
 */
int ky_user_change(struct ky_user *user, const struct ky_user_change *change,
		   struct kymo_error *err);
/* The rules by which events are recorded now; NULL: there are not so many. Valid until the next change. */
struct ky_user_rule;
const struct ky_user_rule *ky_user_rule_at(const struct ky_user *user, size_t i);

/*
 * Flight recorder: make traces of what programs have in their buffers now, in @output/ust/pid, with
 * @clock; any number of times. Between start and stop.
 */
int ky_user_snapshot(struct ky_user *user, const char *output, const struct ky_os_clock *clock,
		     struct ky_user_snapshot *made, struct kymo_error *err);
/* Between start and stop. */
void ky_user_progress(const struct ky_user *user, struct ky_user_progress *progress);
int ky_user_stop(struct ky_user *user, struct kymo_error *err);
/* @clock: the one of the options, refined since. */
int ky_user_finish(struct ky_user *user, const struct ky_os_clock *clock, struct kymo_error *err);
/* Valid after finish, until close. */
const struct ky_user_stats *ky_user_stats(const struct ky_user *user);
/* NULL is fine. */
void ky_user_close(struct ky_user *user);

/* "INFO.." (at least as severe), "INFO", "DEBUG..WARNING". 0 or KYMO_E_INVALID. */
int ky_user_levels_parse(const char *text, uint8_t *min, uint8_t *max);
/* Whether user space knows the context field @name (of @len bytes). */
bool ky_user_context_known(const char *name, size_t len);

#endif
