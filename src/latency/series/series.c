/* SPDX-License-Identifier: MIT */
#include "latency/series/series.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

struct ky_series_slot {
	uint64_t number, sum_ns, max_ns;
	uint32_t n;
	struct {
		uint32_t bucket;
		uint64_t count;
	} used[];
};

uint32_t ky_past_slots(enum ky_past window)
{
	static const uint32_t slots[KY_PASTS] = {0, 12, 60, KY_SERIES_SLOTS};

	return slots[window];
}

const char *ky_past_name(enum ky_past window)
{
	static const char *const names[KY_PASTS] = {"now", "1m", "5m", "15m"};

	return names[window];
}

struct ky_series *ky_series_new(const struct ky_latency_key *key)
{
	struct ky_series *series = calloc(1, sizeof(*series));

	if (series)
		series->key = *key;
	return series;
}

void ky_series_free(struct ky_series *series)
{
	if (!series)
		return;
	ky_vec_foreach(&series->slots, slot)
		free(*slot);
	ky_vec_fini(&series->slots);
	free(series->name);
	free(series->owner);
	free(series);
}

void ky_series_take(struct ky_series *series, const struct ky_latency_cell *cell, uint64_t max_ns,
		    uint64_t slot)
{
	struct ky_histogram *now = &series->now;

	memset(now, 0, sizeof(*now));
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		now->buckets[i] = cell->buckets[i] - series->last.buckets[i];
	now->sum_ns = cell->sum_ns - series->last.sum_ns;
	now->max_ns = max_ns;
	ky_histogram_settle(now);
	series->last = *cell;
	if (!now->count)
		return;
	ky_histogram_add(&series->present, now);
	ky_histogram_add(&series->total, now);
	series->changed_slot = slot;
}

void ky_series_add(struct ky_series *series, const struct ky_histogram *added, uint64_t slot)
{
	ky_histogram_add(&series->now, added);
	ky_histogram_add(&series->present, added);
	ky_histogram_add(&series->total, added);
	series->changed_slot = slot;
}

static struct ky_series_slot *pack(const struct ky_histogram *histogram, uint64_t number)
{
	struct ky_series_slot *slot;
	uint32_t n = 0;

	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		n += histogram->buckets[i] != 0;
	slot = malloc(sizeof(*slot) + n * sizeof(slot->used[0]));
	if (!slot)
		return NULL;
	*slot = (struct ky_series_slot){
		.number = number, .sum_ns = histogram->sum_ns, .max_ns = histogram->max_ns};
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		if (!histogram->buckets[i])
			continue;
		slot->used[slot->n].bucket = i;
		slot->used[slot->n++].count = histogram->buckets[i];
	}
	return slot;
}

static void series_forget(struct ky_series *series, uint64_t slot)
{
	size_t n = 0;

	while (n < series->slots.len && series->slots.data[n]->number + KY_SERIES_SLOTS < slot)
		free(series->slots.data[n++]);
	if (!n)
		return;
	series->slots.len -= n;
	memmove(series->slots.data, series->slots.data + n,
		series->slots.len * sizeof(*series->slots.data));
}

int ky_series_turn(struct ky_series *series, uint64_t slot)
{
	struct ky_series_slot *packed;

	series_forget(series, slot);
	if (!series->present.count)
		return KYMO_OK;
	packed = pack(&series->present, series->changed_slot);
	if (!packed || ky_vec_push(&series->slots, packed) < 0) {
		free(packed);
		return KYMO_E_MEMORY;
	}
	memset(&series->present, 0, sizeof(series->present));
	return KYMO_OK;
}

static void series_unpack(const struct ky_series_slot *slot, struct ky_histogram *to)
{
	to->sum_ns += slot->sum_ns;
	to->max_ns = slot->max_ns > to->max_ns ? slot->max_ns : to->max_ns;
	for (uint32_t i = 0; i < slot->n; i++) {
		to->buckets[slot->used[i].bucket] += slot->used[i].count;
		to->count += slot->used[i].count;
	}
}

void ky_series_past(const struct ky_series *series, enum ky_past window, uint64_t slot,
		    struct ky_histogram *histogram)
{
	if (window == KY_PAST_NOW) {
		*histogram = series->now;
		return;
	}
	*histogram = series->present;
	ky_vec_foreach(&series->slots, old) {
		if ((*old)->number + ky_past_slots(window) >= slot)
			series_unpack(*old, histogram);
	}
}
