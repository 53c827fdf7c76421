/* SPDX-License-Identifier: MIT */
/*
 * Trackers: the time from one event, of the kernel or of a probe in programs, to another one with the same key, by
 * definition:
 *
 *	NAME: BEGIN-EVENT [if EXPR] -> END-EVENT [if EXPR] [by KEY[,KEY]]
 *
 * as conditions of triggers (docs/triggers.md) are written. Without a key, both are in one thread. The kernel keeps a
 * histogram of all, and tells of those that take too long.
 *
 * Threads: one at a time per tracker.
 */
#ifndef KY_LATENCY_TRACKER_H
#define KY_LATENCY_TRACKER_H

#include <stdbool.h>
#include <stddef.h>

#include <kymo/error.h>

#include "latency/series/histogram.h"
#include "latency/bpf/tracker-layout.h"

#define KY_TRACKER_NAME_BYTES 64
#define KY_TRACKERS_MAX	      16

struct ky_log;
struct ky_tracker;

struct ky_tracker_options {
	const char *text;	  /* the definition, borrowed for the call */
	uint64_t over_ns;	  /* tell of what takes longer */
	bool over_worst;	  /* instead: of what takes longer than all before */
	uint64_t timeout_ns;	  /* tell of what is open for longer; 0: never */
	bool stacks;		  /* with the call stacks of both events */
	uint32_t max_open;	  /* 0: 10240 */
	const struct ky_log *log; /* what a probe does not see; NULL: nobody wants to know */
};

enum ky_tracker_news_kind {
	KY_TRACKER_OVER,       /* it took long */
	KY_TRACKER_STILL_OPEN, /* it takes longer than the time-out, and goes on */
	KY_TRACKER_ENDED,      /* one of those has ended */
};

struct ky_tracker_frames {
	uint64_t addresses[KY_TRACKER_FRAMES];
	size_t n;
};

struct ky_tracker_news {
	enum ky_tracker_news_kind kind;
	const struct ky_tracker_report *report; /* STILL_OPEN: nothing of the end */
	uint64_t duration_ns;			/* until now, if it is open */
	struct ky_tracker_frames begin_kernel, begin_user, end_kernel, end_user;
};

typedef void (*ky_tracker_tell)(void *data, const struct ky_tracker *tracker,
				const struct ky_tracker_news *news);

struct ky_tracker_state {
	uint64_t open;	 /* begun and not ended, now */
	uint64_t full;	 /* begins that found no room: they are in no histogram */
	uint64_t again;	 /* begins whose key was open; the earlier begin is forgotten */
	uint64_t lost;	 /* what took long, but found no room to be told */
	uint64_t missed; /* runs that the kernel skipped */
	uint64_t unread; /* events of probes with an argument that could not be read */
	uint64_t worst_ns;
};

/*
 * Load and start it. KYMO_E_INVALID: the definition, err->column is the place in it; KYMO_E_NOT_FOUND: an event;
 * KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED, KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_tracker_open(const struct ky_tracker_options *options, struct ky_tracker **tracker,
		    struct kymo_error *err);
void ky_tracker_close(struct ky_tracker *tracker); /* NULL is allowed */

const char *ky_tracker_name(const struct ky_tracker *tracker);
/* What names values of keys: "tid", "dev"; NULL: there are not so many. */
const char *ky_tracker_key_name(const struct ky_tracker *tracker, size_t i);
/* Values of that key have a sign. */
bool ky_tracker_key_is_signed(const struct ky_tracker *tracker, size_t i);

/* Take what has come since the last call, for a moment, and tell of it. 1: there is more; 0; KYMO_E_MEMORY, KYMO_E_IO. */
int ky_tracker_step(struct ky_tracker *tracker, ky_tracker_tell tell, void *data,
		    struct kymo_error *err);
/* A period ends: @cells: of each possible CPU. @period: the number that it had. 0 or KYMO_E_IO. */
int ky_tracker_read(struct ky_tracker *tracker, struct ky_latency_cell *cells, uint64_t *period,
		    struct kymo_error *err);
void ky_tracker_state(const struct ky_tracker *tracker, struct ky_tracker_state *state);

#endif
