/* SPDX-License-Identifier: MIT */
/* The rows of kymo latency for people: tables and screen. */
#include <stdlib.h>

#include "cli/latency/latency-output.h"

/* ---- the distribution in a line ---------------------------------------------------------- */

/* From 512 ns (and below) to 1 s (and above). */
#define SHAPE_FIRST 9u
#define SHAPE_CHARS 22u

static uint32_t shape_place(uint32_t bucket)
{
	uint32_t octave = bucket / KY_LATENCY_SUBS + KY_LATENCY_FIRST_LOG2 - 1;

	if (octave < SHAPE_FIRST)
		return 0;
	octave -= SHAPE_FIRST;
	return octave < SHAPE_CHARS ? octave : SHAPE_CHARS - 1;
}

void ky_latency_put_shape(struct ky_strbuf *out, const struct ky_histogram *histogram, bool utf8)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const signs[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
	uint64_t sums[SHAPE_CHARS] = {0}, most = 1;

	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		sums[shape_place(i)] += histogram->buckets[i];
	for (uint32_t i = 0; i < SHAPE_CHARS; i++)
		most = sums[i] > most ? sums[i] : most;
	for (uint32_t i = 0; i < SHAPE_CHARS; i++) {
		uint32_t level = (uint32_t)(8.0 * (double)sums[i] / (double)most);

		level += sums[i] && !level;
		ky_strbuf_adds(out, utf8 ? blocks[level] : signs[level]);
	}
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Is it a system call that --syscalls names? */
static bool latency_rows_is_named(const struct ky_latency_row *row)
{
	return row->series->key.layer == KY_LATENCY_SYSCALL &&
	       row->series->key.sub >= KY_LATENCY_CALL_KINDS;
}

/* Layers in their order; in a layer, calls that were named first, then what took most time. */
static int latency_rows_compare(const void *a, const void *b)
{
	const struct ky_latency_row *x = a, *y = b;

	if (x->series->key.layer != y->series->key.layer)
		return x->series->key.layer < y->series->key.layer ? -1 : 1;
	if (x->series->key.layer == KY_LATENCY_CHAIN) /* its parts follow one another */
		return x->series->key.sub < y->series->key.sub ? -1 : 1;
	if (latency_rows_is_named(x) != latency_rows_is_named(y))
		return latency_rows_is_named(x) ? -1 : 1;
	if (x->histogram.sum_ns != y->histogram.sum_ns)
		return x->histogram.sum_ns > y->histogram.sum_ns ? -1 : 1;
	return 0;
}

bool ky_latency_rows_is_key(const struct ky_latency_key *a, const struct ky_latency_key *b)
{
	return a->layer == b->layer && a->sub == b->sub && a->who == b->who;
}

int ky_latency_rows_find(const struct ky_latency_view *view, struct ky_latency_rows *rows)
{
	size_t n;
	struct ky_series *const *series = ky_latency_series(view->latency, &n);

	rows->len = 0;
	rows->data = calloc(n + 1, sizeof(*rows->data));
	if (!rows->data)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct ky_latency_row *row = &rows->data[rows->len];

		row->series = series[i];
		ky_series_past(series[i], view->window, ky_latency_slot(view->latency),
			       &row->histogram);
		rows->len += row->histogram.count != 0 ||
			     (view->kept && ky_latency_rows_is_key(&series[i]->key, view->kept));
	}
	qsort(rows->data, rows->len, sizeof(*rows->data), latency_rows_compare);
	return KYMO_OK;
}

void ky_latency_rows_fini(struct ky_latency_rows *rows)
{
	free(rows->data);
	*rows = (struct ky_latency_rows){0};
}
