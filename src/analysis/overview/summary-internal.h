/* SPDX-License-Identifier: MIT */
/*
 * What report summary adds up in its pass, and the sentences that say it.
 *
 * Threads: one thread per run.
 */
#ifndef KY_SUMMARY_INTERNAL_H
#define KY_SUMMARY_INTERNAL_H

#include "analysis/reports/report-list.h"

/* Columns of the table. */
enum { FACT_SUBJECT, FACT_MORE, FACT_TEXT };

/* Sums of the aggregations. */
enum { SUM_CPU, SUM_CALLS, SUM_BYTES, SUM_MOVES, SUM_PREEMPTED, SUM_DELAY, SUM_SIGNALS };

struct ky_summary_longest {
	uint64_t ns;
	int64_t end_ns;
	const struct ky_thread *thread, *by;
	uint32_t syscall;
	const struct ky_irq_line *line;
	const char *file;
};

/* What is known of a system call beforehand, and where it is counted. */
struct ky_summary_call {
	struct ky_entry *entry; /* NULL: none was made yet */
	uint64_t n;		/* calls; in the end, they are the entry's */
	bool waits;		/* for work, an input or a time: durations say nothing */
};

struct ky_summary {
	struct ky_model *model;
	uint64_t busy_ns, idle_ns;
	struct ky_aggregation threads;
	struct ky_aggregation calls; /* what: the system call */
	struct ky_stats waits, device;
	uint64_t preemptions, preempted_ns;
	struct ky_summary_longest wait, irq, request, futex, preemption;
	struct ky_summary_longest
		files[KY_IO_KINDS]; /* the longest calls on files on disks, by their kind */
	uint64_t file_ns[KY_IO_KINDS], file_calls[KY_IO_KINDS];
	uint64_t failed, calls_done, bytes_read, bytes_written;
	uint64_t sent, received, futex_ns, futexes;
	uint64_t device_read, device_written, flushes, flush_ns, flush_most_ns;
	uint64_t migrations, signals;
	KY_VEC(struct ky_summary_call) by_call; /* by system call; known up to its length */
};

/* Add the rows for which @run has something. */
void ky_summary_say(const struct ky_summary *run, struct ky_table *table);

#endif
