/* SPDX-License-Identifier: MIT */
/* The state history: intervals, or the cells of entries, to pixels. */
#include "analysis/history/history-format.h"

#include <string.h>

#define FULL 255u

/* @part of 255 of @ns. */
static inline uint64_t history_paint_part_of(uint64_t ns, uint8_t part)
{
	if (__builtin_expect(ns < UINT64_C(1) << 56, 1))
		return ns * part / FULL;
	return part == FULL ? ns : ns / FULL * part + ns % FULL * part / FULL;
}

/* Pixel i ends at begin + step * (i + 1) + rest * (i + 1) / n: the remainder of that division goes along. */
static void begin_pixel(struct ky_paint *paint)
{
	paint->from_ns = paint->to_ns;
	paint->to_ns = (int64_t)((uint64_t)paint->to_ns + paint->step_ns);
	paint->carry_ns += paint->rest_ns;
	if (paint->carry_ns >= paint->n) {
		paint->carry_ns -= paint->n;
		paint->to_ns++;
	}
	paint->covered_ns = 0;
	paint->n_states = 0;
	paint->stamp++;
	paint->more = false;
}

void ky_paint_begin(struct ky_paint *paint, int64_t begin_ns, int64_t end_ns, size_t n,
		    struct ky_history_pixel *pixels)
{
	uint64_t span = (uint64_t)end_ns - (uint64_t)begin_ns;

	paint->begin_ns = begin_ns;
	paint->n = n;
	paint->at = 0;
	paint->step_ns = n ? span / n : 0;
	paint->rest_ns = n ? span % n : 0;
	paint->pixels = pixels;
	paint->to_ns = begin_ns;
	paint->carry_ns = 0;
	paint->stamp = 0;
	memset(paint->stamps, 0, sizeof(paint->stamps));
	if (n)
		begin_pixel(paint);
}

static void weigh_instead(struct ky_paint *paint, uint64_t state, uint64_t weight);

static inline void weigh(struct ky_paint *paint, uint64_t state, uint64_t weight)
{
	uint32_t slot = (uint32_t)(state * UINT64_C(0x9e3779b97f4a7c15) >> 58);
	bool is_new;

	while (paint->stamps[slot] == paint->stamp && paint->states[slot] != state)
		slot = (slot + 1) % KY_PAINT_SLOTS;
	is_new = paint->stamps[slot] != paint->stamp;
	if (__builtin_expect(is_new && paint->n_states == KY_PAINT_STATES, 0)) {
		weigh_instead(paint, state, weight);
		return;
	}
	paint->weights[slot] = (is_new ? 0 : paint->weights[slot]) + weight;
	paint->stamps[slot] = paint->stamp;
	paint->states[slot] = state;
	paint->used[paint->n_states] = (uint8_t)slot;
	paint->n_states += is_new;
}

/* There are too many states: the one with the least weight makes room. It cannot be the largest one, most likely. */
static __attribute__((noinline)) void weigh_instead(struct ky_paint *paint, uint64_t state,
						    uint64_t weight)
{
	uint64_t states[KY_PAINT_STATES], weights[KY_PAINT_STATES];
	uint32_t n = paint->n_states, least = 0;

	for (uint32_t i = 0; i < n; i++) {
		states[i] = paint->states[paint->used[i]];
		weights[i] = paint->weights[paint->used[i]];
		least = weights[i] < weights[least] ? i : least;
	}
	states[least] = state;
	weights[least] = weight;
	paint->stamp++;
	paint->n_states = 0;
	for (uint32_t i = 0; i < n; i++)
		weigh(paint, states[i], weights[i]);
}

static uint8_t part_of_pixel(uint64_t weight, uint64_t width)
{
	uint64_t share = (uint64_t)((double)weight / (double)width * FULL);

	return (uint8_t)(share > FULL ? FULL : share ? share : 1);
}

static void end_pixel(struct ky_paint *paint)
{
	struct ky_history_pixel *pixel = &paint->pixels[paint->at];
	uint64_t width = (uint64_t)paint->to_ns - (uint64_t)paint->from_ns;
	uint64_t most = 0;
	uint32_t top = 0;

	if (paint->covered_ns < width)
		weigh(paint, KY_STATE_NONE, width - paint->covered_ns);
	for (uint32_t i = 0; i < paint->n_states; i++) {
		uint64_t weight = paint->weights[paint->used[i]];

		top = !i || weight > most ? paint->used[i] : top;
		most = weight > most ? weight : most;
	}
	*pixel = (struct ky_history_pixel){.more = paint->more || paint->n_states > 1};
	if (paint->n_states == 1 && most == width && width) {
		pixel->state = paint->states[top];
		pixel->share = FULL;
	} else if (paint->n_states && width) {
		pixel->state = paint->states[top];
		pixel->share = part_of_pixel(most, width);
	}
	paint->at++;
	if (paint->at < paint->n)
		begin_pixel(paint);
}

void ky_paint_add(struct ky_paint *paint, int64_t begin_ns, int64_t end_ns, uint64_t state,
		  uint8_t share, bool more)
{
	if (begin_ns < paint->begin_ns)
		begin_ns = paint->begin_ns;
	while (paint->at < paint->n && begin_ns < end_ns) {
		int64_t until = end_ns < paint->to_ns ? end_ns : paint->to_ns;

		if (begin_ns < until) {
			uint64_t ns = (uint64_t)until - (uint64_t)begin_ns;

			weigh(paint, state, history_paint_part_of(ns, share));
			paint->covered_ns += ns;
			paint->more |= more;
			begin_ns = until;
		}
		if (begin_ns >= paint->to_ns)
			end_pixel(paint);
	}
}

/* ---- leaves ------------------------------------------------------------------------------------ */

/* Times of the states of a leaf in the pixel, by their codes. */
struct tally {
	const struct ky_leaf *leaf;
	uint32_t n;			      /* of codes in the pixel */
	uint8_t codes[KY_LEAF_INTERVALS + 1]; /* by their first interval */
	uint64_t weights[256];
};

static inline void tally_add(struct tally *tally, uint8_t code, uint64_t ns)
{
	tally->codes[tally->n] = code;
	tally->n += !tally->weights[code] & (ns != 0);
	tally->weights[code] += ns;
}

/* The pixel goes on outside of the leaf. */
static void tally_flush(struct tally *tally, struct ky_paint *paint)
{
	for (uint32_t i = 0; i < tally->n; i++) {
		uint64_t *weight = &tally->weights[tally->codes[i]];

		weigh(paint, tally->leaf->states[tally->codes[i]], *weight);
		paint->covered_ns += *weight;
		*weight = 0;
	}
	tally->n = 0;
}

/* Nothing but the leaf is in the pixel. */
static inline void tally_end_pixel(struct tally *tally, struct ky_paint *paint)
{
	uint64_t width = (uint64_t)paint->to_ns - (uint64_t)paint->from_ns, most = 0;
	uint8_t top = tally->codes[0];

	for (uint32_t i = 0; i < tally->n; i++) {
		uint64_t *weight = &tally->weights[tally->codes[i]];

		top = *weight > most ? tally->codes[i] : top;
		most = *weight > most ? *weight : most;
		*weight = 0;
	}
	paint->pixels[paint->at] = (struct ky_history_pixel){
		.state = tally->leaf->states[top],
		.share = tally->n == 1 ? FULL : part_of_pixel(most, width),
		.more = tally->n > 1};
	tally->n = 0;
	paint->at++;
	if (paint->at < paint->n)
		begin_pixel(paint);
}

/* An interval that reaches the end of the pixel. */
static void tally_cross(struct tally *tally, struct ky_paint *paint, int64_t begin_ns,
			int64_t end_ns, uint8_t code, bool *whole)
{
	while (paint->at < paint->n && end_ns >= paint->to_ns) {
		tally_add(tally, code, (uint64_t)paint->to_ns - (uint64_t)begin_ns);
		begin_ns = paint->to_ns;
		if (*whole) {
			tally_end_pixel(tally, paint);
		} else {
			tally_flush(tally, paint);
			end_pixel(paint);
		}
		*whole = true;
	}
	tally_add(tally, code, (uint64_t)end_ns - (uint64_t)begin_ns);
}

/* The first interval that ends behind the begin of the pixel. */
static uint32_t first_in_pixel(const struct ky_paint *paint, const struct ky_leaf *leaf,
			       int64_t *begin_ns)
{
	int64_t ns = leaf->begin_ns;
	uint32_t i;

	for (i = 0; i < leaf->n; i++) {
		*begin_ns = ns;
		ns = (int64_t)((uint64_t)ns + leaf->durations[i]);
		if (ns > paint->from_ns)
			break;
	}
	return i;
}

void ky_paint_leaf(struct ky_paint *paint, const struct ky_leaf *leaf)
{
	struct tally tally;
	int64_t ns, end_ns;
	uint32_t i = first_in_pixel(paint, leaf, &ns);
	bool whole; /* the leaf has all of the pixel so far */

	if (i == leaf->n || paint->at >= paint->n)
		return;
	while (paint->at < paint->n && ns >= paint->to_ns)
		end_pixel(paint);
	tally.leaf = leaf;
	tally.n = 0;
	memset(tally.weights, 0, sizeof(tally.weights));
	end_ns = (int64_t)((uint64_t)ns + leaf->durations[i]);
	whole = ns <= paint->from_ns;
	if (ns < paint->from_ns)
		ns = paint->from_ns;
	for (;;) {
		if (end_ns < paint->to_ns)
			tally_add(&tally, leaf->codes[i], (uint64_t)end_ns - (uint64_t)ns);
		else
			tally_cross(&tally, paint, ns, end_ns, leaf->codes[i], &whole);
		if (++i == leaf->n || paint->at >= paint->n)
			break;
		ns = end_ns;
		end_ns = (int64_t)((uint64_t)ns + leaf->durations[i]);
	}
	tally_flush(&tally, paint);
}

/* A part within the pixel, and not at its end: most cells of a picture that shows many. */
static inline bool add_inner(struct ky_paint *paint, int64_t begin_ns, int64_t end_ns,
			     uint64_t state, uint8_t share, bool more)
{
	uint64_t ns = (uint64_t)end_ns - (uint64_t)begin_ns;

	if (begin_ns < paint->from_ns || end_ns >= paint->to_ns || !ns)
		return false;
	paint->covered_ns += ns;
	paint->more |= more;
	weigh(paint, state, history_paint_part_of(ns, share));
	return true;
}

void ky_paint_entry(struct ky_paint *paint, const struct ky_entry *entry, bool holds_values)
{
	int64_t begin_ns = entry->begin_ns;

	for (uint32_t c = 0; c < KY_CELLS && paint->at < paint->n; c++) {
		int64_t end_ns = ky_cell_ns(entry, c + 1);
		uint8_t share = holds_values ? FULL : entry->shares[c];
		bool more = entry->more >> c & 1;

		if (!add_inner(paint, begin_ns, end_ns, entry->states[c], share, more))
			ky_paint_add(paint, begin_ns, end_ns, entry->states[c], share, more);
		begin_ns = end_ns;
	}
}

void ky_paint_end(struct ky_paint *paint)
{
	while (paint->at < paint->n)
		end_pixel(paint);
}

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

	return kind == KY_STATE_VALUE || is_active(kind) ? FULL : 0;
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
		double high = 1, mean = (double)entry->curve[c] / FULL, low = mean;

		if (holds_values) {
			if (ky_state_kind(entry->states[c]) != KY_STATE_VALUE)
				continue;
			high = (double)ky_state_value(entry->states[c]);
			mean = high * entry->shares[c] / FULL;
			low *= high;
		}
		history_paint_add_value(
			curve, ky_cell_ns(entry, c), ky_cell_ns(entry, c + 1),
			&(struct ky_history_height){.low = low, .high = high, .sum_ns = mean});
	}
}

static uint8_t part_of_full(double part)
{
	return (uint8_t)(part > 0 ? part < 1 ? part * FULL + 0.5 : FULL : 0);
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
