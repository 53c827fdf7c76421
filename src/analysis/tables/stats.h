/* SPDX-License-Identifier: MIT */
/*
 * Statistics of durations (or any unsigned number) in memory that does not grow with their
 * count: exact count, minimum, maximum, mean and standard deviation; percentiles exact
 * for up to KY_STATS_EXACT samples, else within 0.8 %.
 *
 * Percentiles are nearest-rank: p50 is the smallest sample that at least half of all samples do
 * not exceed. Beyond KY_STATS_EXACT samples they come from a log-linear histogram: every
 * power of two is cut into 64 equal cells, so a cell is at most 1/64 of its value wide, and its
 * middle is off by at most 1/128. Values below 128 are exact.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_TABLES_STATS_H
#define KY_ANALYSIS_TABLES_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#define KY_STATS_EXACT 32 /* samples that are kept as they are */
#define KY_STATS_ROOM  96 /* at most so many are in no cell yet, when there are more */
#define KY_STATS_CELLS 64 /* per power of two */
#define KY_STATS_ROWS  59 /* [0, 64), [64, 128), [128, 256), ... */

struct ky_stats_cells;

/* Of some samples; all zero: of none. */
struct ky_moments {
	unsigned __int128 sum;
	/* Deviations from the first sample: small numbers, so that nothing cancels out. */
	__int128 sum_dev;
	unsigned __int128 sum_dev2;
	uint64_t first;
	uint64_t count;
	uint64_t min, max;
};

struct ky_stats {
	uint64_t count;
	uint64_t *samples; /* n_samples of them that are in no cell yet */
	uint32_t n_samples, room;
	struct ky_stats_cells *cells; /* NULL: all are among the samples */
};

/* All zero is an empty object too. */
void ky_stats_init(struct ky_stats *stats);
void ky_stats_fini(struct ky_stats *stats);

/* For ky_stats_add(): room for a sample more. 0 or KYMO_E_MEMORY. */
int ky_stats_make_room(struct ky_stats *stats);

/* Add a sample. 0 or KYMO_E_MEMORY; then it is missing. */
static inline int ky_stats_add(struct ky_stats *stats, uint64_t value)
{
	if (stats->n_samples == stats->room && ky_stats_make_room(stats) < 0)
		return KYMO_E_MEMORY;
	stats->samples[stats->n_samples++] = value;
	stats->count++;
	return 0;
}

/* Add all samples of @from. 0 or KYMO_E_MEMORY. */
int ky_stats_merge(struct ky_stats *stats, const struct ky_stats *from);

/* Of all samples. */
struct ky_moments ky_stats_moments(const struct ky_stats *stats);
/* The mean; 0 without samples. */
double ky_moments_mean(const struct ky_moments *moments);
/* The sample standard deviation (n - 1); 0 with fewer than two samples. */
double ky_moments_stdev(const struct ky_moments *moments);

/* @percent in (0, 100]; 0 without samples. See above for how exact it is. */
uint64_t ky_stats_percentile(const struct ky_stats *stats, double percent);
/* @n of them at once, from @percents, which rise, into @values. */
void ky_stats_percentiles(const struct ky_stats *stats, const double *percents, size_t n,
			  uint64_t *values);

#endif
