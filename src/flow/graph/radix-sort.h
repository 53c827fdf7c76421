/* SPDX-License-Identifier: MIT */
/*
 * Sorting by a small key: radix sort, whose time does not depend on the keys' order; and merging of
 * two sorted runs. For more than two well-mixed runs, sorting is faster than merging.
 */
#ifndef KY_FLOW_GRAPH_RADIX_SORT_H
#define KY_FLOW_GRAPH_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

/* An entry: the key is in the upper half, its value in the lower half. */
static inline uint64_t ky_radix_sort_entry(uint32_t key, uint32_t value)
{
	return (uint64_t)key << 32 | value;
}

/*
 * Sort @n entries by their keys; entries with the same key keep their order.
 *
 * @scratch: room for @n more.
 * @max_key: an upper bound of the keys; a small one makes it faster.
 * Returns the place of the sorted entries: @entries or @scratch.
 */
uint64_t *ky_radix_sort(uint64_t *entries, uint64_t *scratch, size_t n, uint32_t max_key);

/*
 * Merge two runs, entries up to @middle and entries from there up to @n, both sorted by keys and
 * values.
 *
 * @scratch: room for @n more.
 * Returns the place of the sorted entries: @entries or @scratch.
 */
uint64_t *ky_radix_sort_two(uint64_t *entries, uint64_t *scratch, size_t middle, size_t n);

#endif
