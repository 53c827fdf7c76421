/* SPDX-License-Identifier: MIT */
/* What processes have mapped, for the samples of a recording. */
#include "kernel/samples/sample-processes.h"

#include <stdlib.h>
#include <string.h>

/* Takes over the path, on failure too. */
static int sample_maps_insert(struct ky_sample_maps *maps, size_t at,
			      const struct ky_sample_map *map)
{
	if (ky_vec_reserve(&maps->maps, 1) < 0) {
		free(map->path);
		return KYMO_E_MEMORY;
	}
	memmove(&maps->maps.data[at + 1], &maps->maps.data[at],
		(maps->maps.len - at) * sizeof(*map));
	maps->maps.data[at] = *map;
	maps->maps.len++;
	return KYMO_OK;
}

static void sample_maps_remove(struct ky_sample_maps *maps, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		free(maps->maps.data[i].path);
	memmove(&maps->maps.data[from], &maps->maps.data[to],
		(maps->maps.len - to) * sizeof(*maps->maps.data));
	maps->maps.len -= to - from;
}

/* The first that ends behind @address. */
static size_t sample_maps_find(const struct ky_sample_maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->maps.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps->maps.data[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Nothing lies from @begin to @end afterwards. The first index behind that goes to @at. */
static int sample_maps_cut(struct ky_sample_maps *maps, uint64_t begin, uint64_t end, size_t *at)
{
	struct ky_sample_map *first, rest;
	size_t from = sample_maps_find(maps, begin), to = from;

	*at = from;
	if (from == maps->maps.len)
		return KYMO_OK;
	first = &maps->maps.data[from];
	if (first->begin < begin && first->end > end) {
		rest = *first;
		first->end = begin;
		rest.offset += end - rest.begin;
		rest.begin = end;
		rest.path = strdup(rest.path);
		*at = from + 1;
		return rest.path ? sample_maps_insert(maps, from + 1, &rest) : KYMO_E_MEMORY;
	}
	if (first->begin < begin) {
		first->end = begin;
		to = ++from;
	}
	while (to < maps->maps.len && maps->maps.data[to].end <= end)
		to++;
	if (to < maps->maps.len && maps->maps.data[to].begin < end) {
		maps->maps.data[to].offset += end - maps->maps.data[to].begin;
		maps->maps.data[to].begin = end;
	}
	sample_maps_remove(maps, from, to);
	*at = from;
	return KYMO_OK;
}

int ky_sample_maps_add(struct ky_sample_maps *maps, const struct ky_sample_map *map)
{
	struct ky_sample_map copy = *map;
	size_t at;

	if (map->begin >= map->end)
		return KYMO_OK;
	if (maps->maps.len >= KY_SAMPLE_MAPS_MAX)
		sample_maps_remove(maps, maps->maps.len - 1, maps->maps.len);
	if (sample_maps_cut(maps, map->begin, map->end, &at) < 0)
		return KYMO_E_MEMORY;
	copy.path = strdup(map->path);
	return copy.path ? sample_maps_insert(maps, at, &copy) : KYMO_E_MEMORY;
}
