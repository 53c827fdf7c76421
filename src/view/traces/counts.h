/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace set that a filter selects, counted by time in a thread.
 *
 * The trace's range has KY_COUNT_BUCKETS buckets of equal length. A bucket's number of events makes
 * pictures of density, and leads from the number of a row to its place in the streams. Counting goes
 * in the order of time, so all buckets before one time are exact, and later ones are empty.
 *
 * Threads: any; a lock protects the counts.
 */
#ifndef KY_VIEW_COUNTS_H
#define KY_VIEW_COUNTS_H

#include <stdatomic.h>

#include "store/read/trace.h"

#define KY_COUNT_BUCKETS ((size_t)1 << 20)

struct ky_counts;

/* How far counting is. */
struct ky_counts_state {
	bool is_over;		 /* everything was counted, or @error tells what hindered it */
	uint64_t n;		 /* counted events */
	size_t n_exact;		 /* the first buckets, which are complete */
	struct kymo_error error; /* code KYMO_OK: none */
};

/*
 * Begin to count. @set is borrowed; @begin_ns and @end_ns are its range; events outside of it count
 * to the first or the last bucket. @filter is copied; "": none.
 * Returns 0; KYMO_E_INVALID for a malformed filter; KYMO_E_MEMORY; KYMO_E_IO without a thread.
 */
int ky_counts_new(const struct ky_trace_set *set, int64_t begin_ns, int64_t end_ns,
		  const char *filter, struct ky_counts **counts, struct kymo_error *err);
/*
 * The same for a later state of a recording: what @before, whose set is an earlier state, has counted is taken over, and
 * @before counts no more. @end_ns: of the range, whose begin stays. The clocks of both sets are the same.
 */
int ky_counts_continue(struct ky_counts *before, const struct ky_trace_set *set, int64_t end_ns,
		       struct ky_counts **counts, struct kymo_error *err);
/* Ends the counting. NULL is allowed. */
void ky_counts_free(struct ky_counts *counts);

/* A stream that damage ended, and the time of its last event (INT64_MIN: none). */
struct ky_broken {
	uint32_t stream;
	int64_t ns;
};
KY_VEC_TYPE(ky_broken_list, struct ky_broken);
struct ky_flow;
/* Add the streams of @set that damage ended, as far as @flow has read. Without memory some are left out. */
void ky_broken_note(struct ky_broken_list *list, const struct ky_trace_set *set,
		    struct ky_flow *flow);

/*
 * The stream of number @i that damage ended, and the time of its last event (INT64_MIN: none). False: there are no more, as far
 * as counting has come.
 */
bool ky_counts_broken(struct ky_counts *counts, size_t i, uint32_t *stream, int64_t *ns);

const char *ky_counts_filter(const struct ky_counts *counts);
void ky_counts_state(struct ky_counts *counts, struct ky_counts_state *state);

/* The bucket of time @ns. */
size_t ky_counts_bucket(const struct ky_counts *counts, int64_t ns);
/* The first time of bucket @bucket; of KY_COUNT_BUCKETS, a time after the range. */
int64_t ky_counts_time(const struct ky_counts *counts, size_t bucket);

/* The number of events in the buckets from @from on, before @to. */
uint64_t ky_counts_sum(struct ky_counts *counts, size_t from, size_t to);
/*
 * Find the bucket with event number @row (from 0). Returns false when it was not counted yet; else
 * *bucket, and the number of events before that bucket in *before.
 */
bool ky_counts_find(struct ky_counts *counts, uint64_t row, size_t *bucket, uint64_t *before);
/*
 * Find the buckets to read for the next @n events from bucket @at on: from *@from on, before *@to.
 * They have fewer events when a long time without events follows. Returns false when nothing was
 * counted from @at on.
 */
bool ky_counts_window(struct ky_counts *counts, size_t at, uint64_t n, size_t *from, size_t *to);
/*
 * Sum the buckets for @n pixels of the range from @begin_ns to @end_ns, into @pixels. A bucket's
 * events go to the pixel of its begin. Returns the number of exact pixels from the left.
 */
size_t ky_counts_pixels(struct ky_counts *counts, int64_t begin_ns, int64_t end_ns, size_t n,
			double *pixels);

#endif
