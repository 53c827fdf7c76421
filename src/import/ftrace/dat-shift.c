/* SPDX-License-Identifier: MIT */
#include "import/ftrace/dat-shift.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

#include "import/common/foreign-file.h"

#define HEAD_BYTES   16u /* {u64 the host's trace, u32 flags, u32 number of CPUs} */
#define INTERPOLATES 1u
#define VALUES	     3u /* arrays of each CPU: times, offsets, scalings */
#define CPUS_MAX     65536u
#define FRACTION_MAX 63u

static int dat_shift_compare(const void *a, const void *b)
{
	const struct ky_dat_sample *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static uint64_t dat_shift_value(const uint8_t *bytes, uint32_t n, uint32_t array, uint32_t i,
				bool swap)
{
	return ky_foreign_u64(bytes + 8 * ((uint64_t)array * n + i), swap);
}

static int dat_shift_cpu(struct ky_dat_shift_cpu *cpu, struct ky_arena *arena, const uint8_t *bytes,
			 uint32_t n, bool swap)
{
	cpu->samples = ky_arena_alloc(arena, (n ? n : 1) * sizeof(*cpu->samples));
	cpu->n = n;
	if (!cpu->samples)
		return KYMO_E_MEMORY;
	for (uint32_t i = 0; i < n; i++)
		cpu->samples[i] = (struct ky_dat_sample){
			.time = dat_shift_value(bytes, n, 0, i, swap),
			.offset = (int64_t)dat_shift_value(bytes, n, 1, i, swap),
			.scaling = dat_shift_value(bytes, n, 2, i, swap),
		};
	return KYMO_OK;
}

/* What newer files have behind all CPUs: in how many bits of the scaling the fraction is. */
static void dat_shift_fractions(struct ky_dat_shift *shift, const uint8_t *at, const uint8_t *end,
				bool swap)
{
	for (uint32_t i = 0; i < shift->n_cpus; i++) {
		struct ky_dat_shift_cpu *cpu = &shift->cpus[i];

		for (uint32_t k = 0; k < cpu->n && end - at >= 8; k++, at += 8)
			cpu->samples[k].fraction = ky_foreign_u64(at, swap) & FRACTION_MAX;
	}
}

static void dat_shift_sort(struct ky_dat_shift_cpu *cpu)
{
	uint32_t kept = 0;

	qsort(cpu->samples, cpu->n, sizeof(*cpu->samples), dat_shift_compare);
	for (uint32_t i = 0; i < cpu->n; i++)
		if (!i || cpu->samples[i].time != cpu->samples[i - 1].time)
			cpu->samples[kept++] = cpu->samples[i];
	cpu->n = kept;
}

int ky_dat_shift_parse(struct ky_dat_shift *shift, struct ky_arena *arena, const uint8_t *bytes,
		       uint64_t len, bool swap)
{
	const uint8_t *at = bytes + HEAD_BYTES, *end = bytes + len;
	uint32_t n_cpus = len < HEAD_BYTES ? UINT32_MAX : ky_foreign_u32(bytes + 12, swap);
	int ret = KYMO_OK;

	if (n_cpus > CPUS_MAX || n_cpus > len / 4)
		return KYMO_E_FORMAT;
	shift->interpolates = ky_foreign_u32(bytes + 8, swap) & INTERPOLATES;
	shift->cpus = ky_arena_alloc(arena, (n_cpus + 1) * sizeof(*shift->cpus));
	if (!shift->cpus)
		return KYMO_E_MEMORY;
	for (uint32_t i = 0; i < n_cpus && !ret; i++) {
		uint32_t n = end - at < 4 ? UINT32_MAX : ky_foreign_u32(at, swap);

		at += end - at < 4 ? 0 : 4;
		if (n > (uint64_t)(end - at) / (8 * VALUES))
			return KYMO_E_FORMAT;
		ret = dat_shift_cpu(&shift->cpus[i], arena, at, n, swap);
		at += 8ull * VALUES * n;
	}
	if (ret < 0)
		return ret;
	shift->n_cpus = n_cpus;
	dat_shift_fractions(shift, at, end, swap);
	for (uint32_t i = 0; i < n_cpus; i++)
		dat_shift_sort(&shift->cpus[i]);
	return KYMO_OK;
}

static uint64_t dat_shift_between(const struct ky_dat_sample *first,
				  const struct ky_dat_sample *second, bool interpolates,
				  uint64_t time)
{
	__int128 delta = (__int128)second->time - first->time, more = 0;
	unsigned __int128 scaled = (unsigned __int128)time * first->scaling >> first->fraction;

	if (interpolates &&
	    !__builtin_mul_overflow((__int128)time - first->time,
				    (__int128)second->offset - first->offset, &more) &&
	    !__builtin_add_overflow(more, delta / 2, &more)) /* rounded */
		more = more / delta;
	else
		more = 0;
	return (uint64_t)scaled + (uint64_t)first->offset + (uint64_t)more;
}

uint64_t ky_dat_shift_time(const struct ky_dat_shift *shift, uint32_t cpu, uint64_t time)
{
	const struct ky_dat_shift_cpu *of = cpu < shift->n_cpus ? &shift->cpus[cpu] : NULL;
	uint32_t low = 0, high;

	if (!of || !of->n)
		return time;
	if (of->n == 1)
		return time + (uint64_t)of->samples[0].offset;
	/* The last sample before it, but neither the last nor before the first. */
	high = of->n - 2;
	while (low < high) {
		uint32_t middle = (low + high + 1) / 2;

		if (of->samples[middle].time <= time)
			low = middle;
		else
			high = middle - 1;
	}
	return dat_shift_between(&of->samples[low], &of->samples[low + 1], shift->interpolates,
				 time);
}
