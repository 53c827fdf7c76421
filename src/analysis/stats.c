/* SPDX-License-Identifier: MIT */
#include "analysis/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

/* Two such values differ by less than DEV_LIMIT. */
#define PLAIN_LIMIT (UINT64_C(1) << 62)
/* Beyond this many deviations the squares could leave 128 bits; see add_moments(). */
#define DEV_LIMIT (INT64_C(1) << 62)

void ky_stats_init(struct ky_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
}

void ky_stats_fini(struct ky_stats *stats)
{
	if (stats->rows) {
		for (int row = 0; row < KY_STATS_ROWS; row++)
			free(stats->rows[row]);
	}
	free(stats->rows);
	free(stats->samples);
	memset(stats, 0, sizeof(*stats));
}

static void place(uint64_t value, unsigned int *row, unsigned int *cell)
{
	unsigned int top;

	if (value < KY_STATS_CELLS) {
		*row = 0;
		*cell = (unsigned int)value;
		return;
	}
	top = 63 - (unsigned int)__builtin_clzll(value); /* >= 6 */
	*row = top - 5;
	*cell = (unsigned int)(value >> (top - 6)) & (KY_STATS_CELLS - 1);
}

/* The middle of a cell. */
static uint64_t cell_value(unsigned int row, unsigned int cell)
{
	uint64_t low, width;

	if (row == 0)
		return cell;
	width = UINT64_C(1) << (row - 1);
	low = (KY_STATS_CELLS + (uint64_t)cell) << (row - 1);
	return low + (width - 1) / 2;
}

static int add_cell(struct ky_stats *stats, uint64_t value, uint64_t count)
{
	unsigned int row, cell;

	place(value, &row, &cell);
	if (!stats->rows[row]) {
		stats->rows[row] = calloc(1, sizeof(*stats->rows[row]));
		if (!stats->rows[row])
			return KYMO_E_MEMORY;
	}
	stats->rows[row]->cells[cell] += count;
	return 0;
}

/* From single samples to the histogram. */
static int spread(struct ky_stats *stats)
{
	uint64_t n = stats->count < KY_STATS_EXACT ? stats->count : KY_STATS_EXACT;

	stats->rows = calloc(KY_STATS_ROWS, sizeof(struct ky_stats_row *));
	if (!stats->rows)
		return KYMO_E_MEMORY;
	for (uint64_t i = 0; i < n; i++) {
		if (add_cell(stats, stats->samples[i], 1) < 0)
			return KYMO_E_MEMORY;
	}
	free(stats->samples);
	stats->samples = NULL;
	return 0;
}

/* Room for one more sample: 4, 8, 16, 32 of them, as most series are short. */
static int add_sample(struct ky_stats *stats, uint64_t value)
{
	uint64_t n = stats->count;

	if (n == 0 || (n >= 4 && !(n & (n - 1)))) {
		uint64_t *samples =
			realloc(stats->samples, (n ? 2 * n : 4) * sizeof(*stats->samples));

		if (!samples)
			return KYMO_E_MEMORY;
		stats->samples = samples;
	}
	stats->samples[n] = value;
	return 0;
}

static void add_moments(struct ky_stats *stats, uint64_t value)
{
	__int128 dev;

	if (!stats->count) {
		stats->first = stats->min = stats->max = value;
	} else {
		stats->min = value < stats->min ? value : stats->min;
		stats->max = value > stats->max ? value : stats->max;
	}
	stats->sum += value;
	stats->count++;
	if (__builtin_expect((value | stats->first) < PLAIN_LIMIT, 1)) {
		int64_t plain = (int64_t)(value - stats->first);

		stats->sum_dev += plain;
		stats->sum_dev2 += (unsigned __int128)((__int128)plain * plain);
		return;
	}
	dev = (__int128)value - stats->first;
	/* Only a lying clock gives durations of a century: keep the squares in range. */
	if (dev > DEV_LIMIT)
		dev = DEV_LIMIT;
	if (dev < -DEV_LIMIT)
		dev = -DEV_LIMIT;
	stats->sum_dev += dev;
	stats->sum_dev2 += (unsigned __int128)(dev * dev);
}

int ky_stats_add(struct ky_stats *stats, uint64_t value)
{
	int status = 0;

	if (!stats->rows && stats->count == KY_STATS_EXACT)
		status = spread(stats);
	if (stats->rows)
		status = add_cell(stats, value, 1);
	else if (!status)
		status = add_sample(stats, value);
	if (status < 0)
		return status;
	add_moments(stats, value);
	return 0;
}

static void merge_moments(struct ky_stats *stats, const struct ky_stats *from)
{
	unsigned __int128 shift = (unsigned __int128)((__int128)from->first - stats->first);
	unsigned __int128 n = from->count, sum_dev = (unsigned __int128)from->sum_dev;

	/* Sum of (x - a)^2 from sums about b, with x - a = (x - b) + (b - a); modulo 2^128. */
	stats->sum_dev2 += from->sum_dev2 + 2 * shift * sum_dev + shift * shift * n;
	stats->sum_dev = (__int128)((unsigned __int128)stats->sum_dev + sum_dev + shift * n);
	stats->sum += from->sum;
	stats->count += from->count;
	stats->min = from->min < stats->min ? from->min : stats->min;
	stats->max = from->max > stats->max ? from->max : stats->max;
}

static int merge_rows(struct ky_stats *stats, const struct ky_stats *from)
{
	int status = 0;

	if (!stats->rows)
		status = spread(stats);
	for (unsigned int row = 0; !status && row < KY_STATS_ROWS; row++) {
		for (unsigned int cell = 0; from->rows[row] && cell < KY_STATS_CELLS; cell++) {
			uint64_t count = from->rows[row]->cells[cell];

			if (count && !status)
				status = add_cell(stats, cell_value(row, cell), count);
		}
	}
	return status;
}

int ky_stats_merge(struct ky_stats *stats, const struct ky_stats *from)
{
	int status = 0;

	if (!from->count)
		return 0;
	if (!from->rows) {
		for (uint64_t i = 0; !status && i < from->count; i++)
			status = ky_stats_add(stats, from->samples[i]);
		return status;
	}
	if (!stats->count) {
		stats->first = from->first;
		stats->min = from->min;
		stats->max = from->max;
	}
	status = merge_rows(stats, from);
	merge_moments(stats, from);
	return status;
}

double ky_stats_mean(const struct ky_stats *stats)
{
	return stats->count ? (double)((long double)stats->sum / (long double)stats->count) : 0;
}

double ky_stats_stdev(const struct ky_stats *stats)
{
	long double n = (long double)stats->count, dev, square;

	if (stats->count < 2)
		return 0;
	dev = (long double)stats->sum_dev;
	square = (long double)stats->sum_dev2 - dev * dev / n;
	return square > 0 ? (double)sqrtl(square / (n - 1)) : 0;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static uint64_t rank_in_rows(const struct ky_stats *stats, uint64_t rank)
{
	uint64_t seen = 0, value;

	for (unsigned int row = 0; row < KY_STATS_ROWS; row++) {
		for (unsigned int cell = 0; stats->rows[row] && cell < KY_STATS_CELLS; cell++) {
			seen += stats->rows[row]->cells[cell];
			if (seen < rank)
				continue;
			value = cell_value(row, cell);
			if (value < stats->min)
				return stats->min;
			return value > stats->max ? stats->max : value;
		}
	}
	return stats->max;
}

uint64_t ky_stats_percentile(const struct ky_stats *stats, double percent)
{
	uint64_t sorted[KY_STATS_EXACT], rank;

	if (!stats->count)
		return 0;
	/* The small term keeps 29 of 100 samples at 29, whatever binary fractions make of it. */
	rank = (uint64_t)ceill((long double)percent * (long double)stats->count / 100 - 1e-9L);
	if (rank < 1)
		rank = 1;
	if (rank >= stats->count)
		return stats->max;
	if (rank == 1)
		return stats->min;
	if (stats->rows)
		return rank_in_rows(stats, rank);
	memcpy(sorted, stats->samples, stats->count * sizeof(*sorted));
	qsort(sorted, stats->count, sizeof(*sorted), compare_u64);
	return sorted[rank - 1];
}
