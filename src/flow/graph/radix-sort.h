/* SPDX-License-Identifier: MIT */
/*
 * Sorting by a small key: radix sort, in time that does not depend on how the keys lie; and merging, for two
 * runs that are sorted already: more of them would take longer than sorting, where they are mixed well.
 */
#ifndef KY_FLOW_GRAPH_RADIX_SORT_H
#define KY_FLOW_GRAPH_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

/* An entry: what to sort by is above, what belongs to it below. */
static inline uint64_t ky_radix_sort_entry(uint32_t key, uint32_t value)
{
	return (uint64_t)key << 32 | value;
}

/*
 * Sort @n entries by their keys; entries with the same key keep their order.
 *
 * @scratch: room for @n more.
 * @max_key: no key is above it; the smaller, the faster.
 * Returns where the sorted entries are: @entries or @scratch.
 */
uint64_t *ky_radix_sort(uint64_t *entries, uint64_t *scratch, size_t n, uint32_t max_key);

/*
 * Merge two runs, entries up to @middle and those behind it up to @n, that are sorted by keys and values.
 *
 * @scratch: room for @n more.
 * Returns where the sorted entries are: @entries or @scratch.
 */
uint64_t *ky_radix_sort_two(uint64_t *entries, uint64_t *scratch, size_t middle, size_t n);

#endif
