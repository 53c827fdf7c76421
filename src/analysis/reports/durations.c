/* SPDX-License-Identifier: MIT */
/* Columns of durations, their distribution, and records: the longest or the first (aggregation.h). */
#include "analysis/reports/aggregation.h"
#include <stdio.h>
#include <string.h>
#include "analysis/reports/report.h"

/* ---- statistics ---------------------------------------------------------------------------- */

void ky_cell_sum(struct ky_cell *cell, unsigned __int128 sum)
{
	if (sum <= UINT64_MAX)
		ky_cell_u64(cell, (uint64_t)sum);
	else
		ky_cell_f64(cell, (double)sum);
}

void ky_fill_times(struct ky_cell *row, const struct ky_stats *stats)
{
	static const double percents[] = {50, 90, 99, 99.9};
	const struct ky_moments moments = ky_stats_moments(stats);
	struct ky_cell *cell = row - KY_STATS_TOTAL;
	uint64_t values[4];

	if (!moments.count)
		return;
	ky_cell_sum(&cell[KY_STATS_TOTAL], moments.sum);
	ky_cell_u64(&cell[KY_STATS_MIN], moments.min);
	ky_cell_f64(&cell[KY_STATS_AVG], ky_moments_mean(&moments));
	ky_cell_u64(&cell[KY_STATS_MAX], moments.max);
	if (moments.count > 1)
		ky_cell_f64(&cell[KY_STATS_STDEV], ky_moments_stdev(&moments));
	ky_stats_percentiles(stats, percents, 4, values);
	for (int i = 0; i < 4; i++)
		ky_cell_u64(&cell[KY_STATS_P50 + i], values[i]);
}

void ky_fill_stats(struct ky_cell *row, const struct ky_stats *stats)
{
	ky_cell_u64(&row[KY_STATS_COUNT], stats->count);
	ky_fill_times(&row[KY_STATS_TOTAL], stats);
}

/* ---- distributions --------------------------------------------------------------------------- */

#define DECADE(power) power, 2 * (power), 5 * (power)

/* Where each step begins; 64 bits do not reach the last two. */
static const uint64_t step_begins[KY_FREQ_STEPS] = {
	0,
	DECADE(UINT64_C(1)),
	DECADE(UINT64_C(10)),
	DECADE(UINT64_C(100)),
	DECADE(UINT64_C(1000)),
	DECADE(UINT64_C(10000)),
	DECADE(UINT64_C(100000)),
	DECADE(UINT64_C(1000000)),
	DECADE(UINT64_C(10000000)),
	DECADE(UINT64_C(100000000)),
	DECADE(UINT64_C(1000000000)),
	DECADE(UINT64_C(10000000000)),
	DECADE(UINT64_C(100000000000)),
	DECADE(UINT64_C(1000000000000)),
	DECADE(UINT64_C(10000000000000)),
	DECADE(UINT64_C(100000000000000)),
	DECADE(UINT64_C(1000000000000000)),
	DECADE(UINT64_C(10000000000000000)),
	DECADE(UINT64_C(100000000000000000)),
	DECADE(UINT64_C(1000000000000000000)),
	UINT64_C(10000000000000000000),
	UINT64_MAX,
	UINT64_MAX,
};

void ky_freq_add(struct ky_freq *freq, uint64_t ns)
{
	unsigned int step = 0;

	if (ns) {
		/* From the place of the highest bit: the step, or the one before. */
		step = ((63 - (unsigned int)__builtin_clzll(ns)) * 923 + 1072) >> 10;
		step += ns >= step_begins[step + 1];
	}
	freq->counts[step]++;
	freq->n++;
}

static void fill_freq_step(struct ky_table *table, const struct ky_freq *freq,
			   const struct ky_cell *what, int i)
{
	struct ky_cell *row = ky_table_row(table);

	row[KY_FREQ_WHAT] = *what;
	ky_cell_u64(&row[KY_FREQ_FROM], step_begins[i]);
	if (i + 1 < KY_FREQ_STEPS)
		ky_cell_u64(&row[KY_FREQ_TO], step_begins[i + 1]);
	ky_cell_u64(&row[KY_FREQ_COUNT], freq->counts[i]);
	ky_cell_f64(&row[KY_FREQ_SHARE], (double)freq->counts[i] / (double)freq->n);
}

void ky_fill_freq(struct ky_table *table, const struct ky_freq *freq, const struct ky_cell *what)
{
	int first = 0, last = KY_FREQ_STEPS - 1;

	while (first < KY_FREQ_STEPS && !freq->counts[first])
		first++;
	while (last > first && !freq->counts[last])
		last--;
	for (int i = first; i <= last && i < KY_FREQ_STEPS; i++)
		fill_freq_step(table, freq, what, i);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Stands before each record. */
struct head {
	uint64_t key, order;
};

static size_t stride(const struct ky_records *records)
{
	return sizeof(struct head) + ((records->size + 15) & ~(size_t)15);
}

static struct head *head_at(const struct ky_records *records, size_t i)
{
	return (struct head *)(void *)(records->data + i * stride(records));
}

void ky_records_init(struct ky_records *records, size_t size, uint64_t limit, bool longest)
{
	*records = (struct ky_records){.size = size, .limit = limit, .longest = longest};
}

void ky_records_fini(struct ky_records *records)
{
	free(records->data);
	records->data = NULL;
}

/* Is @a to be kept rather than @b? Of equal keys the earlier. */
static bool is_better(const struct head *a, const struct head *b)
{
	return a->key != b->key ? a->key > b->key : a->order < b->order;
}

static void swap(struct ky_records *records, size_t a, size_t b)
{
	char *left = records->data + a * stride(records),
	     *right = records->data + b * stride(records);

	for (size_t i = 0; i < stride(records); i++) {
		char c = left[i];

		left[i] = right[i];
		right[i] = c;
	}
}

/* A heap whose root is the worst. */
static void sink(struct ky_records *records, size_t i)
{
	for (;;) {
		size_t worst = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < records->len;
		     child++) {
			if (is_better(head_at(records, worst), head_at(records, child)))
				worst = child;
		}
		if (worst == i)
			return;
		swap(records, i, worst);
		i = worst;
	}
}

static void rise(struct ky_records *records, size_t i)
{
	while (i && is_better(head_at(records, (i - 1) / 2), head_at(records, i))) {
		swap(records, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static int durations_make_room(struct ky_records *records)
{
	size_t cap = records->cap ? 2 * records->cap : 16;
	char *data;

	if (records->len < records->cap)
		return 0;
	data = reallocarray(records->data, cap, stride(records));
	if (!data)
		return KYMO_E_MEMORY;
	records->data = data;
	records->cap = cap;
	return 0;
}

static void durations_put(struct ky_records *records, size_t i, const struct head *head,
			  const void *record)
{
	*head_at(records, i) = *head;
	memcpy(head_at(records, i) + 1, record, records->size);
}

int ky_records_keep(struct ky_records *records, uint64_t key, const void *record)
{
	struct head head = {key, records->seen++};

	if (!records->limit || records->len < records->limit) {
		if (durations_make_room(records) < 0)
			return KYMO_E_MEMORY;
		durations_put(records, records->len++, &head, record);
		if (records->longest)
			rise(records, records->len - 1);
	} else if (records->longest && is_better(&head, head_at(records, 0))) {
		durations_put(records, 0, &head, record);
		sink(records, 0);
	}
	records->full = records->limit && records->len == records->limit;
	records->least = records->full && records->longest ? head_at(records, 0)->key : UINT64_MAX;
	return 0;
}

static int compare_heads(const void *a, const void *b)
{
	return is_better(a, b) ? -1 : 1;
}

void ky_records_sort(struct ky_records *records)
{
	if (records->longest && records->len)
		qsort(records->data, records->len, stride(records), compare_heads);
}

const void *ky_records_at(const struct ky_records *records, size_t i)
{
	return head_at(records, i) + 1;
}
