/* SPDX-License-Identifier: MIT */
#include "ctf/model/model.h"

#include "base/error.h"

#define NS_PER_S 1000000000

/* floor(@a / @b) for positive @b; C rounds towards zero. */
static __int128 floor_div(__int128 a, __int128 b)
{
	__int128 q = a / b;

	return q * b > a ? q - 1 : q;
}

int ky_clock_finish(struct ky_clock_class *clock, struct kymo_error *err)
{
	uint64_t freq = clock->frequency_hz;
	__int128 base;

	if (!freq)
		return ky_error_set(err, KYMO_E_FORMAT, "clock \"%s\": the frequency is 0",
				    clock->name);
	base = (__int128)clock->offset_s * NS_PER_S +
	       floor_div((__int128)clock->offset_cycles * NS_PER_S, freq);
	/* Who gave nanoseconds for seconds still has differences that are right. */
	clock->origin_wraps = base < INT64_MIN || base > INT64_MAX;
	clock->base_ns = (int64_t)(uint64_t)base;
	clock->mult = freq > NS_PER_S ? (uint64_t)(((unsigned __int128)NS_PER_S << 64) / freq) : 0;
	return KYMO_OK;
}

/*
 * floor(cycles * 1e9 / freq) for freq > 1e9 without a 128-bit division: the multiplier is
 * short of the true factor by less than 2^-64, so the estimate is short by at most one.
 */
static uint64_t scale_down(uint64_t cycles, uint64_t mult, uint64_t freq)
{
	uint64_t ns = (uint64_t)(((unsigned __int128)cycles * mult) >> 64);
	unsigned __int128 rest =
		(unsigned __int128)cycles * NS_PER_S - (unsigned __int128)ns * freq;

	return rest >= freq ? ns + 1 : ns;
}

/* The same for freq < 1e9; saturates. */
static uint64_t scale_up(uint64_t cycles, uint64_t freq)
{
	uint64_t seconds = cycles / freq, rest = cycles % freq, ns;

	/* rest < freq < 1e9: the product fits. */
	if (__builtin_mul_overflow(seconds, (uint64_t)NS_PER_S, &ns) ||
	    __builtin_add_overflow(ns, rest * NS_PER_S / freq, &ns))
		return UINT64_MAX;
	return ns;
}

int64_t ky_clock_to_ns_exactly(const struct ky_clock_class *clock, uint64_t cycles)
{
	uint64_t ns;
	int64_t sum;

	if (clock->frequency_hz == NS_PER_S)
		ns = cycles;
	else if (clock->mult)
		ns = scale_down(cycles, clock->mult, clock->frequency_hz);
	else
		ns = scale_up(cycles, clock->frequency_hz);
	/* Mixed signs are fine for the builtin: it computes with infinite precision. */
	if (__builtin_add_overflow(clock->base_ns, ns, &sum))
		sum = INT64_MAX;
	return clock->line.is_set ? ky_clock_line_apply(&clock->line, sum) : sum;
}

int64_t ky_clock_line_apply(const struct ky_clock_line *line, int64_t ns)
{
	__int128 moved = ((__int128)ns - line->at_ns) * line->drift >> 62;

	moved += (__int128)ns + line->shift_ns;
	return moved < INT64_MIN ? INT64_MIN : moved > INT64_MAX ? INT64_MAX : (int64_t)moved;
}

/* The first time that the line corrects to @ns or later. */
static int64_t undo_line(const struct ky_clock_line *line, int64_t ns)
{
	__int128 near = (__int128)ns - line->shift_ns;
	int64_t first;

	/* Drift moves it on from there, by 1 % at most. */
	near = near < INT64_MIN ? INT64_MIN : near > INT64_MAX ? INT64_MAX : near;
	first = (int64_t)near;
	for (int64_t step = INT64_C(1) << 57; step; step /= 2) {
		while (first < INT64_MAX - step && ky_clock_line_apply(line, first + step) < ns)
			first += step;
		while (first > INT64_MIN + step && ky_clock_line_apply(line, first - step) >= ns)
			first -= step;
	}
	return ky_clock_line_apply(line, first) < ns && first < INT64_MAX ? first + 1 : first;
}

uint64_t ky_clock_from_ns(const struct ky_clock_class *clock, int64_t ns)
{
	unsigned __int128 cycles;

	if (clock->line.is_set)
		ns = undo_line(&clock->line, ns);
	if (ns <= clock->base_ns)
		return 0;
	cycles = (uint64_t)ns - (uint64_t)clock->base_ns;
	if (clock->frequency_hz != NS_PER_S)
		cycles = (cycles * clock->frequency_hz + NS_PER_S - 1) / NS_PER_S;
	return cycles < UINT64_MAX ? (uint64_t)cycles : UINT64_MAX;
}
