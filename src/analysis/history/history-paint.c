/* SPDX-License-Identifier: MIT */
/* The state history: intervals, or the cells of entries, to pixels. */
#include "analysis/history/history-format.h"

#include <string.h>

/* @part of 255 of @ns. */
static inline uint64_t history_paint_part_of(uint64_t ns, uint8_t part)
{
	if (__builtin_expect(ns < UINT64_C(1) << 56, 1))
		return ns * part / KY_SHARE_FULL;
	return part == KY_SHARE_FULL
		       ? ns
		       : ns / KY_SHARE_FULL * part + ns % KY_SHARE_FULL * part / KY_SHARE_FULL;
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
	uint64_t share = (uint64_t)((double)weight / (double)width * KY_SHARE_FULL);

	return (uint8_t)(share > KY_SHARE_FULL ? KY_SHARE_FULL : share ? share : 1);
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
		pixel->share = KY_SHARE_FULL;
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
		.share = tally->n == 1 ? KY_SHARE_FULL : part_of_pixel(most, width),
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
		uint8_t share = holds_values ? KY_SHARE_FULL : entry->shares[c];
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