/* SPDX-License-Identifier: MIT */
/* What a recording of programs is asked for, the changes of it, and the counts that it gives. */
#ifndef KY_RECORD_REQUEST_USER_OPTIONS_H
#define KY_RECORD_REQUEST_USER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/ring.h>

#include "base/log.h"
#include "os/clock.h"
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

/* "INFO.." (at least as severe), "INFO", "DEBUG..WARNING". 0 or KYMO_E_INVALID. */
int ky_user_levels_parse(const char *text, uint8_t *min, uint8_t *max);
/* Whether user space knows the context field @name (of @len bytes). */
bool ky_user_context_known(const char *name, size_t len);

#endif
