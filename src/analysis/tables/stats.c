/* SPDX-License-Identifier: MIT */
#include "analysis/tables/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

/* The squares of KY_STATS_ROOM deviations of such values add up to less than 2^64. */
#define NARROW_LIMIT (UINT64_C(1) << 28)
_Static_assert(KY_STATS_ROOM <= 1 << 8, "sums of narrow samples fit");
/* Two such values differ by less than DEV_LIMIT. */
#define PLAIN_LIMIT (UINT64_C(1) << 62)
/* Beyond this many deviations the squares could leave 128 bits; see add_wild(). */
#define DEV_LIMIT (INT64_C(1) << 62)

void ky_stats_init(struct ky_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
}

void ky_stats_fini(struct ky_stats *stats)
{
	free(stats->cells);
	free(stats->samples);
	memset(stats, 0, sizeof(*stats));
}

/* ---- moments --------------------------------------------------------------------------- */

static void add_wild(struct ky_moments *moments, uint64_t value)
{
	__int128 dev = (__int128)value - moments->first;

	/* Only a lying clock gives durations of a century: keep the squares in range. */
	if (dev > DEV_LIMIT)
		dev = DEV_LIMIT;
	if (dev < -DEV_LIMIT)
		dev = -DEV_LIMIT;
	moments->sum_dev += dev;
	moments->sum_dev2 += (unsigned __int128)(dev * dev);
}

static inline void add_plain(struct ky_moments *moments, uint64_t value)
{
	int64_t dev = (int64_t)(value - moments->first);

	moments->sum_dev += dev;
	moments->sum_dev2 += (unsigned __int128)((__int128)dev * dev);
}

/*
 * @n samples of less than NARROW_LIMIT: their sums, and those of squares, fit in 64 bits. So do the sums about the first
 * sample, which come from these modulo 2^64.
 */
static void add_narrow(struct ky_moments *moments, const uint64_t *samples, uint32_t n)
{
	uint64_t sum = 0, squares = 0, min = moments->min, max = moments->max;
	uint64_t first = moments->first;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = samples[i];

		min = value < min ? value : min;
		max = value > max ? value : max;
		sum += value;
		squares += value * value;
	}
	moments->min = min;
	moments->max = max;
	moments->sum += sum;
	moments->sum_dev += (int64_t)(sum - n * first);
	moments->sum_dev2 += squares - 2 * first * sum + n * first * first;
}

static void add_wide(struct ky_moments *moments, const uint64_t *samples, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = samples[i];

		moments->min = value < moments->min ? value : moments->min;
		moments->max = value > moments->max ? value : moments->max;
		moments->sum += value;
		if ((value | moments->first) < PLAIN_LIMIT)
			add_plain(moments, value);
		else
			add_wild(moments, value);
	}
}

/* @n: KY_STATS_ROOM at most. */
static void add_moments(struct ky_moments *moments, const uint64_t *samples, uint32_t n)
{
	uint64_t bits;

	if (n && !moments->count)
		moments->first = moments->min = moments->max = samples[0];
	bits = moments->first;
	for (uint32_t i = 0; i < n; i++)
		bits |= samples[i];
	if (bits < NARROW_LIMIT)
		add_narrow(moments, samples, n);
	else
		add_wide(moments, samples, n);
	moments->count += n;
}

static void merge_moments(struct ky_moments *into, const struct ky_moments *from)
{
	unsigned __int128 shift, n = from->count, sum_dev = (unsigned __int128)from->sum_dev;

	if (!into->count) {
		*into = *from;
		return;
	}
	/* Sum of (x - a)^2 from sums about b, with x - a = (x - b) + (b - a); modulo 2^128. */
	shift = (unsigned __int128)((__int128)from->first - into->first);
	into->sum_dev2 += from->sum_dev2 + 2 * shift * sum_dev + shift * shift * n;
	into->sum_dev = (__int128)((unsigned __int128)into->sum_dev + sum_dev + shift * n);
	into->sum += from->sum;
	into->count += from->count;
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
}

double ky_moments_mean(const struct ky_moments *moments)
{
	return moments->count ? (double)((long double)moments->sum / (long double)moments->count)
			      : 0;
}

double ky_moments_stdev(const struct ky_moments *moments)
{
	long double n = (long double)moments->count, dev, square;

	if (moments->count < 2)
		return 0;
	dev = (long double)moments->sum_dev;
	square = (long double)moments->sum_dev2 - dev * dev / n;
	return square > 0 ? (double)sqrtl(square / (n - 1)) : 0;
}

/* ---- cells ----------------------------------------------------------------------------- */

/*
 * How many samples are in each cell: a hash table, as a distribution has some dozens of different ones,
 * and what is looked up in one place is missed in one place. A slot has a count above the cell's key, its
 * number + 1; an empty slot is 0.
 */
struct ky_stats_cells {
	struct ky_moments moments; /* of the samples that are in cells */
	uint32_t used, mask;	   /* the number of slots less one, a power of two */
	uint64_t slots[];
};

struct ky_moments ky_stats_moments(const struct ky_stats *stats)
{
	struct ky_moments moments = stats->cells ? stats->cells->moments : (struct ky_moments){0};

	add_moments(&moments, stats->samples, stats->n_samples);
	return moments;
}

#define SLOTS_MIN 64u
#define KEY_BITS  12
#define CELLS	  (KY_STATS_ROWS * KY_STATS_CELLS)
_Static_assert(CELLS < 1 << KEY_BITS, "the key of each cell fits");

static inline unsigned int cell_of(uint64_t value)
{
	unsigned int shift;

	if (value < KY_STATS_CELLS)
		return (unsigned int)value;
	/* The first set bit and the six that follow it. */
	shift = 63 - 6 - (unsigned int)__builtin_clzll(value);
	return shift * KY_STATS_CELLS + (unsigned int)(value >> shift);
}

/* The middle of a cell. */
static uint64_t cell_value(unsigned int cell)
{
	unsigned int row = cell / KY_STATS_CELLS;
	uint64_t low, width;

	if (row == 0)
		return cell;
	width = UINT64_C(1) << (row - 1);
	low = (KY_STATS_CELLS + (uint64_t)(cell % KY_STATS_CELLS)) << (row - 1);
	return low + (width - 1) / 2;
}

static inline unsigned int slot_key(uint64_t slot)
{
	return (unsigned int)slot & ((1u << KEY_BITS) - 1);
}

/* Where the search for @key begins. */
static inline uint32_t stats_home_of(unsigned int key, uint32_t mask)
{
	return (key * 0x9e3779b1u >> 16) & mask;
}

/* The slot with @key, or the empty one where it belongs. */
static inline uint64_t *find_slot(struct ky_stats_cells *cells, unsigned int key)
{
	uint32_t i = stats_home_of(key, cells->mask);

	while (cells->slots[i] && slot_key(cells->slots[i]) != key)
		i = (i + 1) & cells->mask;
	return &cells->slots[i];
}

static struct ky_stats_cells *cells_new(uint32_t n)
{
	struct ky_stats_cells *cells = calloc(1, sizeof(*cells) + n * sizeof(cells->slots[0]));

	if (cells)
		cells->mask = n - 1;
	return cells;
}

/* At most half of the slots are used. */
static int grow_cells(struct ky_stats *stats)
{
	struct ky_stats_cells *old = stats->cells, *cells;

	if (old && old->used < (old->mask + 1) / 2)
		return 0;
	cells = cells_new(old ? 2 * (old->mask + 1) : SLOTS_MIN);
	if (!cells)
		return KYMO_E_MEMORY;
	for (uint32_t i = 0; old && i <= old->mask; i++) {
		if (old->slots[i])
			*find_slot(cells, slot_key(old->slots[i])) = old->slots[i];
	}
	if (old) {
		cells->used = old->used;
		cells->moments = old->moments;
	}
	free(old);
	stats->cells = cells;
	return 0;
}

static int stats_add_key(struct ky_stats *stats, unsigned int key, uint64_t count)
{
	uint64_t *slot = find_slot(stats->cells, key);

	if (!*slot) {
		if (grow_cells(stats) < 0)
			return KYMO_E_MEMORY;
		slot = find_slot(stats->cells, key);
		*slot = key;
		stats->cells->used++;
	}
	*slot += count << KEY_BITS;
	return 0;
}

/* ---- adding ---------------------------------------------------------------------------- */

/* The keys of all samples. Their slots' memory, which nobody has used for long, is fetched for all of them together. */
static void stats_fetch(const struct ky_stats *stats, uint16_t *keys)
{
	const uint64_t *slots = stats->cells->slots;
	uint32_t mask = stats->cells->mask;

	for (uint32_t i = 0; i < stats->n_samples; i++) {
		keys[i] = (uint16_t)(cell_of(stats->samples[i]) + 1);
		__builtin_prefetch(&slots[stats_home_of(keys[i], mask)]);
	}
}

/* Samples go into their cells, many at once: slots come from memory while the moments are added up. */
static int spread(struct ky_stats *stats)
{
	uint16_t keys[KY_STATS_ROOM];

	if (!stats->cells && grow_cells(stats) < 0)
		return KYMO_E_MEMORY;
	stats_fetch(stats, keys);
	add_moments(&stats->cells->moments, stats->samples, stats->n_samples);
	for (uint32_t n = stats->n_samples; n; n--) {
		struct ky_stats_cells *cells = stats->cells;
		unsigned int key = keys[n - 1];
		uint64_t *slot = &cells->slots[stats_home_of(key, cells->mask)];

		if (__builtin_expect(slot_key(*slot) == key, 1)) {
			*slot += UINT64_C(1) << KEY_BITS;
		} else if (stats_add_key(stats, key, 1) < 0) {
			stats->n_samples = n - 1;
			return KYMO_E_MEMORY;
		}
	}
	stats->n_samples = 0;
	return 0;
}

static int grow_samples(struct ky_stats *stats, uint32_t n)
{
	uint64_t *samples = realloc(stats->samples, n * sizeof(*samples));

	if (!samples)
		return KYMO_E_MEMORY;
	stats->samples = samples;
	stats->room = n;
	return 0;
}

/* 4, 8, 16, 32 of them, as most series are short; more for those that are not. */
int ky_stats_make_room(struct ky_stats *stats)
{
	if (stats->room < KY_STATS_EXACT)
		return grow_samples(stats, stats->room ? 2 * stats->room : 4);
	if (spread(stats) < 0)
		return KYMO_E_MEMORY;
	return stats->room < KY_STATS_ROOM ? grow_samples(stats, KY_STATS_ROOM) : 0;
}

static int merge_cells(struct ky_stats *stats, const struct ky_stats *from)
{
	const struct ky_stats_cells *cells = from->cells;
	int status = 0;

	for (uint32_t i = 0; !status && i <= cells->mask; i++) {
		if (cells->slots[i])
			status = stats_add_key(stats, slot_key(cells->slots[i]),
					       cells->slots[i] >> KEY_BITS);
	}
	stats->count += cells->moments.count;
	merge_moments(&stats->cells->moments, &cells->moments);
	return status;
}

/* @stats is empty. */
static int stats_copy(struct ky_stats *stats, const struct ky_stats *from)
{
	size_t size;

	if (stats->room < from->room && grow_samples(stats, from->room) < 0)
		return KYMO_E_MEMORY;
	if (from->cells) {
		size = sizeof(*from->cells) +
		       ((size_t)from->cells->mask + 1) * sizeof(from->cells->slots[0]);
		stats->cells = malloc(size);
		if (!stats->cells)
			return KYMO_E_MEMORY;
		memcpy(stats->cells, from->cells, size);
	}
	if (from->n_samples)
		memcpy(stats->samples, from->samples, from->n_samples * sizeof(*from->samples));
	stats->n_samples = from->n_samples;
	stats->count = from->count;
	return 0;
}

int ky_stats_merge(struct ky_stats *stats, const struct ky_stats *from)
{
	int status = 0;

	if (!stats->count)
		return stats_copy(stats, from);
	if (from->cells) {
		/* There are cells from 32 samples on only, so that there is room for all of them. */
		if (stats->room < KY_STATS_EXACT)
			status = grow_samples(stats, KY_STATS_EXACT);
		if (!status && !stats->cells)
			status = spread(stats);
		if (!status)
			status = merge_cells(stats, from);
	}
	for (uint32_t i = 0; !status && i < from->n_samples; i++)
		status = ky_stats_add(stats, from->samples[i]);
	return status;
}

/* ---- percentiles ------------------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Nearest rank. The small term keeps 29 of 100 samples at 29, whatever binary fractions make of it. */
static uint64_t stats_rank_of(const struct ky_stats *stats, double percent)
{
	uint64_t rank =
		(uint64_t)ceil((long double)percent * (long double)stats->count / 100 - 1e-9L);

	return rank < 1 ? 1 : rank;
}

/* The ends are known exactly. */
static uint64_t clip(const struct ky_moments *all, uint64_t rank, uint64_t value)
{
	if (rank == 1 || value < all->min)
		return all->min;
	return rank >= all->count || value > all->max ? all->max : value;
}

static void ranks_in_cells(const struct ky_stats *stats, const double *percents, size_t n,
			   uint64_t *values)
{
	const struct ky_moments all = ky_stats_moments(stats);
	unsigned int low = cell_of(all.min), high = cell_of(all.max), cell = low;
	uint64_t counts[CELLS], seen;

	memset(counts + low, 0, (high - low + 1) * sizeof(counts[0]));
	for (uint32_t i = 0; i <= stats->cells->mask; i++) {
		if (stats->cells->slots[i])
			counts[slot_key(stats->cells->slots[i]) - 1] +=
				stats->cells->slots[i] >> KEY_BITS;
	}
	for (uint32_t i = 0; i < stats->n_samples; i++)
		counts[cell_of(stats->samples[i])]++;
	seen = counts[cell];
	for (size_t i = 0; i < n; i++) {
		uint64_t rank = stats_rank_of(stats, percents[i]);

		while (seen < rank && cell < high)
			seen += counts[++cell];
		values[i] = clip(&all, rank, cell_value(cell));
	}
}

void ky_stats_percentiles(const struct ky_stats *stats, const double *percents, size_t n,
			  uint64_t *values)
{
	uint64_t sorted[KY_STATS_EXACT];

	memset(values, 0, n * sizeof(*values));
	if (!stats->count)
		return;
	if (stats->cells) {
		ranks_in_cells(stats, percents, n, values);
		return;
	}
	memcpy(sorted, stats->samples, stats->n_samples * sizeof(*sorted));
	qsort(sorted, stats->n_samples, sizeof(*sorted), compare_u64);
	for (size_t i = 0; i < n; i++) {
		uint64_t rank = stats_rank_of(stats, percents[i]);

		values[i] = sorted[(rank < stats->count ? rank : stats->count) - 1];
	}
}

uint64_t ky_stats_percentile(const struct ky_stats *stats, double percent)
{
	uint64_t value;

	ky_stats_percentiles(stats, &percent, 1, &value);
	return value;
}
