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
#include "record/user/user-group.h"
#include "store/packets/packet-store.h"

struct ky_user_options {
	const char *output; /* traces go to OUTPUT/ust/pid/...; the directory must exist */
	struct ky_packet_store
		*store; /* traces go to ust/pid/... in it; NULL: a directory at output */
	const char *const *patterns; /* "shop:*"; each is a rule */
	size_t n_patterns;
	const char *const *exclusions; /* from all rules */
	size_t n_exclusions;
	/* Events of other recordings of the same programs: excluded from these rules and from all later ones. */
	const char *const *reserved;
	size_t n_reserved;
	/*
	 * Traces have "-GROUP" at the end of their names, and streams "GROUP_" at the beginning; NULL: without a group.
	 * KY_USER_GROUP_NAME_MAX bytes at most.
	 */
	const char *group;
	bool is_late; /* its events come long after others of the recording: streams have KY_LIVE_LATE_MARK in their names */
	uint8_t level_min, level_max; /* 0 EMERG .. 14 DEBUG, both included */
	const char *filter;	      /* NULL: none */
	const char *contexts;	      /* "vtid,procname"; NULL: none */
	uint64_t buffer_bytes;	      /* per CPU and program */
	/* A directory for the ring files; NULL: memory. See ky_user_place_check(). */
	const char *place;
	const int32_t *pids; /* only these processes, and those of the user below; none: all */
	size_t n_pids;
	const char *comm; /* only programs of this name; NULL: all */
	int64_t uid;	  /* only programs of this user; -1: all that this user may trace */
	/*
	 * Flight recorder: programs overwrite their oldest events, and the recorder reads the rings
	 * only for snapshots and at the end.
	 */
	bool overwrite;
	/*
	 * A program whose buffer is full waits for so long that the recorder reads; 0: it loses the
	 * event; UINT64_MAX: it waits as long as the recorder lives. No effect with @overwrite.
	 */
	uint64_t wait_ns;
	uint32_t period_ms; /* between two looks at the rings; 0: as the buffers' size needs it */
	/*
	 * One ring and one trace (ust/uid/UID/64-bit) for all programs of a user, instead of one per
	 * program. Each event has the context fields vpid and vtid then.
	 */
	bool shares_buffers;
	/* The number of recordings of this process that share its limit of open files; 0: 1. */
	unsigned int n_sharing;
	/* The kernel's recorder asks for live readers; ky_user_tell_readers() says more. */
	bool is_beside_kernel;
	/* Another recording asks the store for the descriptor that tells of readers, so this one looks now and then. */
	bool polls_readers;
	uint64_t keep_bytes; /* memory limit for the newest events of ended programs */
	const struct ky_os_clock *clock;
	const struct ky_log *log; /* may be NULL; must outlive the recording; any thread */
};

#define KY_USER_TEXT_MAX 1023 /* of a string; KYMO_STRING_MAX of kymo/trace.h */

/* The result of one program. */
struct ky_user_program_stats {
	char procname[16];
	uint32_t pid; /* in its own PID namespace; 0: of all programs of a user, procname says so */
	uint64_t events, bytes;
	uint64_t lost;				/* all causes */
	uint64_t lost_by[KYMO_RING_LOSSES_MAX]; /* enum kymo_ring_loss */
	uint64_t lost_joining, lost_no_id;
	uint64_t
		cut_texts; /* strings above the limit, by the program's count; they end with "..." */
	uint64_t
		lost_unread; /* of a malformed program, or one without room: number of unread events */
	uint64_t
		lost_claimed; /* not 0: the program's own, implausible count; lost is then 0, and lost_by has no meaning */
	uint64_t overwritten; /* flight recorder: events that newer ones replaced */
	const char *path;     /* of its trace; NULL: none */
	const char *group;    /* of its buffers; NULL: the main buffers */
};

struct ky_user_stats {
	const struct ky_user_program_stats *programs;
	size_t n_programs;
	size_t n_archived; /* further programs, which ended before the last rotation */
	struct ky_user_program_stats archived; /* of these together, without name, pid and path */
	uint64_t events, bytes, lost;	       /* of all programs */
	uint64_t cut_texts;
	uint64_t dump_events;
	/*
	 * Files of programs that could not be examined because no descriptor was left: dumps are
	 * incomplete.
	 */
	uint64_t dump_missing;
	size_t n_left_out; /* programs that could not join, with a warning each */
	size_t n_lacking;  /* programs whose events lack the fields of the filter */
	size_t n_refused;  /* ring files that could not be read */
	size_t n_dropped;  /* flight recorder: ended programs whose events were dropped */
	uint64_t overwritten;
};

/* The counts of a flight recorder's snapshot. */
struct ky_user_snapshot {
	size_t n_programs;
	uint64_t events, bytes;
};

/* The progress of a recording. A flight recorder counts events only at snapshots. */
struct ky_user_progress {
	uint64_t n_programs; /* number of programs with a buffer */
	uint64_t events, bytes, lost;
	uint64_t archived_dump_events; /* of the state dumps before the last rotation */
};

/* The progress of one program. */
struct ky_user_program_progress {
	char procname[16];
	uint32_t pid;	       /* in its own PID namespace */
	uint64_t events, lost; /* of events that the program wrote, and that it could not write */
	uint64_t unread;       /* number of events that are only in its buffers */
	uint64_t bytes;	       /* of its trace */
	const char *group;     /* of its buffers; NULL: the main buffers */
	bool has_ended;
};

/* What a change is about. */
enum ky_user_change_kind {
	KY_USER_RULES, /* the selected events */
	KY_USER_PAUSE, /* `enables`: nothing is recorded until the next change of this kind */
	KY_USER_PIDS,  /* selected processes: `enables` adds, else removes */
	KY_USER_UIDS,  /* the same for users; both selections add up */
};

struct ky_user_change {
	enum ky_user_change_kind kind;
	bool enables;	    /* rules: false: matching events are no longer recorded */
	const int32_t *ids; /* of processes or users */
	size_t n_ids;
	/* The rest is for rules. */
	const char *pattern; /* "shop:*" */
	/*
	 * For enabling. A pattern that was already enabled gets these conditions instead of its old
	 * ones.
	 */
	const char *filter; /* NULL: none */
	uint8_t level_min, level_max;
};

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

/* "INFO.." (at least as severe), "INFO", "DEBUG..WARNING". 0 or KYMO_E_INVALID. */
int ky_user_levels_parse(const char *text, uint8_t *min, uint8_t *max);
/* Whether user space knows the context field @name (of @len bytes). */
bool ky_user_context_known(const char *name, size_t len);

#endif
