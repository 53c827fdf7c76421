/* SPDX-License-Identifier: MIT */
/* The state history: numbers of events, and curves, to pixels. */
#include "analysis/history/history-format.h"

#include <string.h>

/* ---- numbers of events --------------------------------------------------------------------- */

void ky_spread_begin(struct ky_spread *spread, int64_t begin_ns, int64_t end_ns, size_t n,
		     double *pixels)
{
	*spread = (struct ky_spread){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.n = n,
		.pixels = pixels,
		.per_ns = end_ns > begin_ns
				  ? (double)n / (double)((uint64_t)end_ns - (uint64_t)begin_ns)
				  : 0};
	for (size_t i = 0; i < n; i++)
		pixels[i] = 0;
}

static size_t pixel_at(const struct ky_spread *spread, double place)
{
	size_t at = place > 0 ? (size_t)place : 0;

	return at < spread->n ? at : spread->n - 1;
}

static double history_paint_place_of(const struct ky_spread *spread, int64_t ns)
{
	/* The difference first: a double has not enough digits for times since 1970. */
	return (double)(int64_t)((uint64_t)ns - (uint64_t)spread->begin_ns) * spread->per_ns;
}

void ky_spread_add(struct ky_spread *spread, int64_t begin_ns, int64_t end_ns, double count)
{
	double from, to, each;

	if (end_ns < spread->begin_ns || begin_ns >= spread->end_ns || !spread->n ||
	    (end_ns == spread->begin_ns && begin_ns < end_ns))
		return;
	from = history_paint_place_of(spread, begin_ns);
	to = history_paint_place_of(spread, end_ns);
	each = to > from ? count / (to - from) : 0;
	if (to - from < 1e-9) {
		spread->pixels[pixel_at(spread, from)] += count;
		return;
	}
	if (from < 0)
		from = 0;
	if (to > (double)spread->n)
		to = (double)spread->n;
	while (from < to) {
		size_t at = pixel_at(spread, from);
		double until = (double)(at + 1) < to ? (double)(at + 1) : to;

		spread->pixels[at] += (until - from) * each;
		from = until;
	}
}

void ky_spread_entry(struct ky_spread *spread, const struct ky_entry *entry)
{
	uint64_t total = 0;

	for (uint32_t c = 0; c < KY_CELLS; c++)
		total += entry->shares[c];
	if (!total) {
		ky_spread_add(spread, entry->begin_ns, entry->end_ns, (double)entry->count);
		return;
	}
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		if (entry->shares[c])
			ky_spread_add(spread, ky_cell_ns(entry, c), ky_cell_ns(entry, c + 1),
				      (double)entry->count * entry->shares[c] / (double)total);
	}
}

/* ---- curves ---------------------------------------------------------------------------------- */

void ky_curve_begin(struct ky_curve *curve, int64_t begin_ns, int64_t end_ns, size_t n,
		    struct ky_history_height *pixels)
{
	*curve =
		(struct ky_curve){.begin_ns = begin_ns, .end_ns = end_ns, .n = n, .pixels = pixels};
	curve->pixel_ns = (double)((uint64_t)end_ns - (uint64_t)begin_ns) / (double)n;
	memset(pixels, 0, n * sizeof(*pixels));
}

static void raise_pixel(struct ky_history_height *pixel, double ns,
			const struct ky_history_height *value)
{
	if (pixel->ns <= 0 || value->low < pixel->low)
		pixel->low = value->low;
	if (pixel->ns <= 0 || value->high > pixel->high)
		pixel->high = value->high;
	pixel->ns += ns;
	pixel->sum_ns += value->sum_ns * ns;
}

/* @value->sum_ns is the mean. */
static void history_paint_add_value(struct ky_curve *curve, int64_t begin_ns, int64_t end_ns,
				    const struct ky_history_height *value)
{
	double from, to;

	if (begin_ns < curve->begin_ns)
		begin_ns = curve->begin_ns;
	if (end_ns > curve->end_ns)
		end_ns = curve->end_ns;
	if (begin_ns >= end_ns)
		return;
	from = (double)((uint64_t)begin_ns - (uint64_t)curve->begin_ns) / curve->pixel_ns;
	to = (double)((uint64_t)end_ns - (uint64_t)curve->begin_ns) / curve->pixel_ns;
	for (size_t at = (size_t)from; at < curve->n && (double)at < to; at++) {
		double begin = (double)at > from ? (double)at : from;
		double end = (double)(at + 1) < to ? (double)(at + 1) : to;

		if (end > begin)
			raise_pixel(&curve->pixels[at], (end - begin) * curve->pixel_ns, value);
	}
}

static bool is_active(enum ky_state_kind kind)
{
	switch (kind) {
	case KY_STATE_RUNS:
	case KY_STATE_USER:
	case KY_STATE_SYSCALL:
	case KY_STATE_IRQ:
	case KY_STATE_SOFTIRQ:
	case KY_STATE_ACTIVE:
	case KY_STATE_SPAN:
	case KY_STATE_READ:
	case KY_STATE_WRITE:
	case KY_STATE_OTHER:
	case KY_STATE_RUNNING:
		return true;
	default:
		return false;
	}
}

uint8_t ky_whole_curve(uint64_t state)
{
	enum ky_state_kind kind = ky_state_kind(state);

	return kind == KY_STATE_VALUE || is_active(kind) ? KY_SHARE_FULL : 0;
}

void ky_curve_add(struct ky_curve *curve, int64_t begin_ns, int64_t end_ns, uint64_t state)
{
	enum ky_state_kind kind = ky_state_kind(state);
	double value =
		kind == KY_STATE_VALUE ? (double)ky_state_value(state) : (double)is_active(kind);
	struct ky_history_height height = {.low = value, .high = value, .sum_ns = value};

	if (kind != KY_STATE_NONE)
		history_paint_add_value(curve, begin_ns, end_ns, &height);
}

void ky_curve_entry(struct ky_curve *curve, const struct ky_entry *entry, bool holds_values)
{
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		double high = 1, mean = (double)entry->curve[c] / KY_SHARE_FULL, low = mean;

		if (holds_values) {
			if (ky_state_kind(entry->states[c]) != KY_STATE_VALUE)
				continue;
			high = (double)ky_state_value(entry->states[c]);
			mean = high * entry->shares[c] / KY_SHARE_FULL;
			low *= high;
		}
		history_paint_add_value(
			curve, ky_cell_ns(entry, c), ky_cell_ns(entry, c + 1),
			&(struct ky_history_height){.low = low, .high = high, .sum_ns = mean});
	}
}

static uint8_t part_of_full(double part)
{
	return (uint8_t)(part > 0 ? part < 1 ? part * KY_SHARE_FULL + 0.5 : KY_SHARE_FULL : 0);
}

void ky_curve_cells(const struct ky_curve *curve, struct ky_entry *entry, bool holds_values)
{
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		const struct ky_history_height *pixel = &curve->pixels[c];
		double high = pixel->high > 0 ? pixel->high : 1;

		if (!holds_values) {
			entry->curve[c] = part_of_full(pixel->sum_ns / curve->pixel_ns);
			/* A little is more than nothing. */
			if (!entry->curve[c] && pixel->sum_ns > 0)
				entry->curve[c] = 1;
			continue;
		}
		entry->states[c] = pixel->ns > 0 ? ky_state(KY_STATE_VALUE, (uint64_t)pixel->high)
						 : KY_STATE_NONE;
		entry->shares[c] =
			part_of_full(pixel->ns > 0 ? pixel->sum_ns / pixel->ns / high : 0);
		entry->curve[c] = part_of_full(pixel->ns > 0 ? pixel->low / high : 0);
		entry->more |= (uint64_t)(pixel->ns > 0 && pixel->low < pixel->high) << c;
	}
}
