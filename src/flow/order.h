/* SPDX-License-Identifier: MIT */
/*
 * Sorting by a small key: radix sort, in time that does not depend on how the keys lie; and merging, for few
 * runs that are sorted already.
 */
#ifndef KY_FLOW_ORDER_H
#define KY_FLOW_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* An entry: what to sort by is above, what belongs to it below. */
static inline uint64_t ky_order_entry(uint32_t key, uint32_t value)
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
uint64_t *ky_order(uint64_t *entries, uint64_t *scratch, size_t n, uint32_t max_key);

/* Merging more runs than these takes longer than sorting. */
#define KY_ORDER_RUNS_MAX 8

/*
 * Merge @n_runs of entries, one behind the other, each of which is sorted by keys and values; so will all be.
 *
 * @scratch: room for as many.
 * @ends: where each run ends; changed.
 * Returns where the sorted entries are: @entries or @scratch.
 */
uint64_t *ky_order_runs(uint64_t *entries, uint64_t *scratch, size_t *ends, size_t n_runs);

#endif
