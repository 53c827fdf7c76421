/* SPDX-License-Identifier: MIT */
/*
 * The clocks of several machines, from what was seen on two of them: packets of TCP, and marks.
 *
 *	ky_sync_run(&set, &options, &run, err);
 *	run->machines, run->pairs		what was found
 *	ky_sync_of_trace(run, trace, &sync)	for sync-file.h
 *	ky_sync_run_free(run);
 *
 * Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_SYNC_SYNC_H
#define KY_ANALYSIS_SYNC_SYNC_H

#include "analysis/sync/sync-facts.h"
#include "analysis/sync/sync-hull.h"
#include "analysis/sync/sync-ptp.h"
#include "base/hash.h"
#include "store/read/sync-file.h"
#include "store/read/trace.h"

#define KY_SYNC_MACHINES_MAX 10000

/* Mark: events with the same value of the field happen at the same time, but for the error. */
struct ky_sync_mark {
	const char *event, *field;
};

struct ky_sync_options {
	const char *const *paths; /* as they were opened: each is at least one machine */
	size_t n_paths;
	const char *reference; /* a machine's name or path; NULL: the first one */
	const struct ky_sync_mark *marks;
	size_t n_marks;
	uint64_t mark_error_ns;
	int64_t drift_max; /* 10^-18 */
	void (*progress)(void *data, uint64_t n_events);
	void *data;
	bool (*stop)(void);
};

/* One machine: traces below one path with the same host name. */
struct ky_sync_machine {
	const char *name; /* unique: the host name, or with the path */
	const char *host, *path;
	/* To the reference: as in struct ky_sync. */
	bool is_reached;
	enum ky_sync_quality quality; /* the worst on the way to the reference */
	size_t by_pair;		      /* the pair that leads to the reference */
	int64_t at_ns, shift_ns, drift;
	int64_t begin_ns, end_ns;
	uint64_t begin_bound_ns, end_bound_ns, drift_bound;
	uint64_t n_packets, n_marks; /* seen */
};

/* Messages whose direction only their addresses tell: which machine has the lower one is found out by what is possible. */
struct ky_sync_flow {
	uint64_t addresses; /* 0: the events tell who sent */
	/* Sent by machine a, by b; or by the lower address, by the higher one. */
	struct ky_hull from[2];
};

/* Where what is known of a pair comes from: the best of it. */
enum ky_sync_source {
	KY_SYNC_MESSAGES, /* packets, marks */
	KY_SYNC_COUNTER,  /* the counter that host and guest share */
	KY_SYNC_PTP,	  /* what linuxptp says in the logs of both machines */
	KY_SYNC_UTC,	  /* what NTP says on both machines */
	KY_SYNC_SOURCES,
};

/* "messages", "tsc", "ptp", "utc" */
const char *ky_sync_source_name(enum ky_sync_source source);

struct ky_sync_pair {
	uint32_t a, b; /* machines, a < b */
	KY_VEC(struct ky_sync_flow *) flows;
	struct ky_hull least, most; /* of a - b, at times of b */
	enum ky_sync_quality quality;
	struct ky_hull_line line; /* a - b */
	uint64_t n_ab, n_ba, bound_ns;
	bool is_chosen;
	enum ky_sync_source source;
	/* COUNTER: events of the guest, in a sample, and how many of them are between an entry and an exit of the host. */
	uint64_t n_checked, n_inside;
};

/* Something that another machine may have seen, too. */
struct ky_sync_seen {
	uint64_t key;
	int64_t ns;
	uint32_t machine; /* plus 1; 0: the slot is free */
	uint8_t way;	  /* enum ky_sync_way */
	bool is_over;
};

enum ky_sync_way {
	KY_SYNC_SENT,
	KY_SYNC_RECEIVED,
	KY_SYNC_BY_LOWER, /* sent by the lower of two addresses */
	KY_SYNC_BY_HIGHER,
	KY_SYNC_MARK,
};

struct ky_sync_table {
	struct ky_sync_seen *slots[2]; /* the current generation, the one before */
	size_t n;		       /* in the current one */
};

struct ky_sync_run {
	struct ky_arena arena;
	const struct ky_trace_set *set;
	const struct ky_sync_options *options;
	KY_VEC(struct ky_sync_machine) machines;
	uint32_t *of_trace;	     /* by number in the set: the machine */
	struct ky_sync_facts *facts; /* by machine */
	struct ky_sync_ptp *ptps;    /* by machine */
	KY_VEC(struct ky_sync_pair *) pairs;
	struct ky_map by_pair; /* a << 32 | b -> number plus 1 */
	struct ky_sync_table table;
	size_t reference;
	uint64_t group;
	uint64_t n_forgotten; /* packets that were dropped from a full table */
};

/* KYMO_E_INVALID: there is no such reference, or no second machine; errors of reading. The caller frees *run. */
int ky_sync_run(const struct ky_trace_set *set, const struct ky_sync_options *options,
		struct ky_sync_run **run, struct kymo_error *err);
void ky_sync_run_free(struct ky_sync_run *run); /* NULL is allowed */

/* What is to be saved for trace number @trace. The caller frees *sync. KYMO_E_MEMORY. */
int ky_sync_of_trace(const struct ky_sync_run *run, size_t trace, struct ky_sync **sync);

/* ---- for the files of this folder ------------------------------------------------------ */

/* sync-machines.c. */
int ky_sync_find_machines(struct ky_sync_run *run, struct kymo_error *err);
/* sync-read.c: all events. */
int ky_sync_read(struct ky_sync_run *run, struct kymo_error *err);
/* sync-pairs.c: @machine saw @key. @addresses: of the flow. 0 or KYMO_E_MEMORY. */
int ky_sync_see(struct ky_sync_run *run, uint32_t machine, uint64_t key, enum ky_sync_way way,
		uint64_t addresses, int64_t ns);
/* A message of machine @from reached @to. 0 or KYMO_E_MEMORY. */
int ky_sync_message(struct ky_sync_run *run, uint32_t from, int64_t from_ns, uint32_t to,
		    int64_t to_ns);
/* The pair of two machines, which may be new. NULL: memory is out. */
struct ky_sync_pair *ky_sync_pair_of(struct ky_sync_run *run, uint32_t a, uint32_t b);
/* Both times are the same moment, within +- @error_ns. 0 or KYMO_E_MEMORY. */
int ky_sync_same(struct ky_sync_run *run, uint32_t one, int64_t one_ns, uint32_t other,
		 int64_t other_ns, int64_t error_ns);
int ky_sync_solve_pairs(struct ky_sync_run *run);
void ky_sync_pair_free(struct ky_sync_pair *pair);
/* sync-tree.c. */
int ky_sync_choose_tree(struct ky_sync_run *run);

#endif
