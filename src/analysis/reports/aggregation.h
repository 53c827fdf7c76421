/* SPDX-License-Identifier: MIT */
/*
 * What reports count with: entries by (thread, what), which can be added up by process, by name or
 * over everybody; how many lasted how long; and the longest, or the first, of what happened.
 *
 * Memory grows with the number of different threads and things, and with the rows that are asked
 * for, not with the length of a trace. Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_REPORTS_AGGREGATION_H
#define KY_ANALYSIS_REPORTS_AGGREGATION_H

#include "analysis/state/model.h"
#include "analysis/tables/stats.h"
#include "analysis/tables/table.h"

/* What rows of threads are added up to. */
enum ky_by {
	KY_BY_DEFAULT, /* as the report likes it best */
	KY_BY_THREAD,
	KY_BY_PROCESS,
	KY_BY_NAME,    /* all threads of the same name */
	KY_BY_CGROUP,  /* all threads that are in the same control group at the end */
	KY_BY_CPU,     /* no threads, but CPUs: for ky_report.has_cpu_groups */
	KY_BY_NOTHING, /* everybody */
};

/* 0: both are of one group of these; else an order of the groups. NULL: nobody, or everybody. */
int ky_threads_compare(const struct ky_thread *a, const struct ky_thread *b, enum ky_by by);
/* The same of what threads did (@what_a, @what_b): an order of groups, what they did, and threads. */
int ky_threads_compare_what(const struct ky_thread *a, uint64_t what_a, const struct ky_thread *b,
			    uint64_t what_b, enum ky_by by);

#define KY_ENTRY_SUMS 12

struct ky_entry {
	const struct ky_thread *thread; /* of a group: its first one; NULL: nobody, or everybody */
	uint64_t what;			/* the report's own numbering */
	uint64_t n_threads;		/* of a group: how many are in it */
	struct ky_stats stats;		/* of durations */
	uint64_t sums[KY_ENTRY_SUMS];	/* the report's own */
};

#define KY_AGGREGATION_RECENT 128

struct ky_aggregation {
	struct ky_arena arena; /* the entries */
	struct ky_map by_key;
	/* Those asked for last, by a part of the key: few threads run at a time, and do the same again. */
	struct ky_entry *recent[KY_AGGREGATION_RECENT];
	KY_VEC(struct ky_entry *) entries;
};

/* All zero is an empty aggregation. */
void ky_aggregation_fini(struct ky_aggregation *aggregation);
/* For ky_aggregation_get(): where it was not asked for lately. */
struct ky_entry *ky_aggregation_find(struct ky_aggregation *aggregation,
				     const struct ky_thread *thread, uint64_t what);

/* The entry of @thread (NULL: nobody) and @what, below 2^32; made when it is new. NULL: out of memory. */
static inline struct ky_entry *ky_aggregation_get(struct ky_aggregation *aggregation,
						  const struct ky_thread *thread, uint64_t what)
{
	uint32_t who = thread ? thread->index + 1 : 0;
	struct ky_entry *entry = aggregation->recent[(who ^ what) % KY_AGGREGATION_RECENT];

	return __builtin_expect(entry && entry->thread == thread && entry->what == what, 1)
		       ? entry
		       : ky_aggregation_find(aggregation, thread, what);
}

/* Adds @value to the sum with number @sum of the entry of @thread. KYMO_E_MEMORY: there is no room for the entry. */
static inline int ky_aggregation_add(struct ky_aggregation *aggregation,
				     const struct ky_thread *thread, int sum, uint64_t value)
{
	struct ky_entry *entry = ky_aggregation_get(aggregation, thread, 0);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[sum] += value;
	return 0;
}

/*
 * Add up @from into @to, which is empty: its threads @by, and all whats of each, unless @keep_what.
 * Sorts the entries of @from. 0 or KYMO_E_MEMORY.
 */
int ky_aggregation_group(struct ky_aggregation *to, struct ky_aggregation *from, enum ky_by by,
			 bool keep_what);

/* Entries are of pairs, what being the second thread's index: of the second threads of one group, one stands for all. */
void ky_aggregation_unite(struct ky_aggregation *aggregation, const struct ky_model *model,
			  enum ky_by by);

/* The cell of an entry's thread, or of what it was grouped @by. Empty where none exists. */
void ky_cell_who(struct ky_table *table, struct ky_cell *cell, const struct ky_model *model,
		 const struct ky_thread *thread, enum ky_by by);

/* ---- statistics of durations --------------------------------------------------------------- */

/* Columns from column @at on, KY_STATS_COLUMNS of them. @nouns: "wake-ups". */
enum {
	KY_STATS_COUNT,
	KY_STATS_TOTAL,
	KY_STATS_MIN,
	KY_STATS_AVG,
	KY_STATS_MAX,
	KY_STATS_STDEV,
	KY_STATS_P50,
	KY_STATS_P90,
	KY_STATS_P99,
	KY_STATS_P999,
	KY_STATS_COLUMNS
};

/* clang-format off */
#define KY_STATS_COLUMN_DEFS(at, nouns)                                                            \
	[(at) + KY_STATS_COUNT] = {"count", "Count", KY_CELL_COUNT,                                \
		"How many " nouns " were measured."},                                              \
	[(at) + KY_STATS_TOTAL] = {"total", "Time", KY_CELL_DURATION,                              \
		"The sum of their durations.", .bar = KY_BAR_ROOM, .spare = 1},                  \
	[(at) + KY_STATS_MIN] = {"min", "Min", KY_CELL_DURATION, "The shortest.", .spare = 6},     \
	[(at) + KY_STATS_AVG] = {"avg", "Mean", KY_CELL_DURATION, "The mean duration."},           \
	[(at) + KY_STATS_MAX] = {"max", "Max", KY_CELL_DURATION, "The longest."},                  \
	[(at) + KY_STATS_STDEV] = {"stdev", "Stdev", KY_CELL_DURATION,                             \
		"The sample standard deviation (n - 1); needs two durations.", .spare = 7},        \
	[(at) + KY_STATS_P50] = {"p50", "p50", KY_CELL_DURATION,                                   \
		"The median: half of the durations are not longer. Percentiles are nearest-rank; " \
		"exact up to 32 values, else within 0.8 %.", .spare = 3},                            \
	[(at) + KY_STATS_P90] = {"p90", "p90", KY_CELL_DURATION,                                   \
		"90 % of the durations are not longer.", .spare = 5},                                        \
	[(at) + KY_STATS_P99] = {"p99", "p99", KY_CELL_DURATION,                                   \
		"99 % of the durations are not longer.", .spare = 2},                                          \
	[(at) + KY_STATS_P999] = {"p999", "p99.9", KY_CELL_DURATION,                               \
		"99.9 % of the durations are not longer.", .spare = 8}
/* clang-format on */

/* The columns from KY_STATS_TOTAL on, into @row and what follows it. */
void ky_fill_times(struct ky_cell *row, const struct ky_stats *stats);
/* @row: the cell of KY_STATS_COUNT. Without samples, all but the count stay empty. */
void ky_fill_stats(struct ky_cell *row, const struct ky_stats *stats);
/* A sum that may be beyond 64 bits. */
void ky_cell_sum(struct ky_cell *cell, unsigned __int128 sum);

/* ---- distributions ------------------------------------------------------------------------- */

#define KY_FREQ_STEPS 61 /* below 1, then 1, 2 and 5 times each power of ten */

struct ky_freq {
	uint64_t counts[KY_FREQ_STEPS];
	uint64_t n;
};

void ky_freq_add(struct ky_freq *freq, uint64_t ns);

/* Columns from column 0 on: what is distributed (class @cls, a group), and how. */
enum { KY_FREQ_WHAT, KY_FREQ_FROM, KY_FREQ_TO, KY_FREQ_COUNT, KY_FREQ_SHARE, KY_FREQ_COLUMNS };

/* clang-format off */
#define KY_FREQ_COLUMN_DEFS(key, title, cls, help)                                                 \
	[KY_FREQ_WHAT] = {key, title, cls, help, .group = true},                                   \
	[KY_FREQ_FROM] = {"from", "From", KY_CELL_DURATION,                                        \
		"The smallest duration of the step; the steps are 1, 2 and 5 times powers of ten."},          \
	[KY_FREQ_TO] = {"to", "Below", KY_CELL_DURATION, "The end of the step, not included."},               \
	[KY_FREQ_COUNT] = {"count", "Count", KY_CELL_COUNT, "How many durations are in the step."},           \
	[KY_FREQ_SHARE] = {"share", "Share", KY_CELL_RATIO,                                        \
		"Their share of all. The longest bar is the largest value.", .bar = KY_BAR_MOST}
/* clang-format on */

/* Rows from the first to the last step that is not empty. @what is their KY_FREQ_WHAT. */
void ky_fill_freq(struct ky_table *table, const struct ky_freq *freq, const struct ky_cell *what);

/* ---- the longest, or the first ------------------------------------------------------------- */

/* Copies of the caller's structs. */
struct ky_records {
	size_t size;	/* of one */
	uint64_t limit; /* keep so many; 0: all */
	bool longest;	/* those with the largest keys; else the first ones */
	uint64_t seen;	/* how many there were */
	bool full;
	uint64_t least; /* when full: what has no larger key is not kept */
	size_t len, cap;
	char *data;
};

void ky_records_init(struct ky_records *records, size_t size, uint64_t limit, bool longest);
void ky_records_fini(struct ky_records *records);
/* For ky_records_add(): what may be kept. */
int ky_records_keep(struct ky_records *records, uint64_t key, const void *record);

/* 0 or KYMO_E_MEMORY. */
static inline int ky_records_add(struct ky_records *records, uint64_t key, const void *record)
{
	if (__builtin_expect(!records->full || key > records->least, 0))
		return ky_records_keep(records, key, record);
	records->seen++;
	return 0;
}

/* Into their order: the largest keys first, or as they came. Nothing may be added after it. */
void ky_records_sort(struct ky_records *records);
const void *ky_records_at(const struct ky_records *records, size_t i);

#endif
