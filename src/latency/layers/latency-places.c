/* SPDX-License-Identifier: MIT */
/* Cells at places: of each CPU, in an array. */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "latency/layers/latency-internal.h"

uint64_t ky_latency_peak(const struct ky_latency_cell *cell, uint64_t period)
{
	const struct ky_latency_peak *peak = &cell->peaks[period & 1];

	return peak->period == period ? peak->ns : 0;
}

static struct ky_latency_key latency_places_key(uint32_t place)
{
	if (place < KY_LATENCY_AT_WAKEUP)
		return (struct ky_latency_key){.layer = KY_LATENCY_SYSCALL, .sub = place};
	if (place < KY_LATENCY_AT_OFFCPU)
		return (struct ky_latency_key){.layer = KY_LATENCY_WAKEUP};
	if (place < KY_LATENCY_AT_SOFTIRQ)
		return (struct ky_latency_key){.layer = KY_LATENCY_OFFCPU,
					       .sub = place - KY_LATENCY_AT_OFFCPU};
	if (place < KY_LATENCY_AT_LOCK)
		return (struct ky_latency_key){.layer = KY_LATENCY_SOFTIRQ,
					       .sub = place - KY_LATENCY_AT_SOFTIRQ};
	if (place < KY_LATENCY_AT_FILE)
		return (struct ky_latency_key){.layer = KY_LATENCY_LOCK,
					       .sub = place - KY_LATENCY_AT_LOCK};
	return (struct ky_latency_key){.layer = KY_LATENCY_FILE, .sub = place - KY_LATENCY_AT_FILE};
}

/* *key: the key that owns shared place @place. False: the place is free. */
static bool latency_places_owner(const struct ky_latency *latency, uint32_t place,
				 struct ky_latency_key *key)
{
	uint64_t owner = latency->owners[place - KY_LATENCY_AT_OWNED];

	*key = (struct ky_latency_key){.layer = owner >> 60, .sub = owner & ((1ull << 60) - 1)};
	return owner;
}

bool ky_latency_has_place(const struct ky_latency *latency, const struct ky_latency_key *key)
{
	uint64_t owner = KY_LATENCY_OWNER(key->layer, key->sub);
	struct ky_latency_key at;

	return !latency->options.by &&
	       latency_places_owner(latency, KY_LATENCY_AT_OWNED + KY_LATENCY_OWNED_PLACE(owner),
				    &at) &&
	       at.layer == key->layer && at.sub == key->sub;
}

bool ky_latency_sum_place(const struct ky_latency *latency, uint64_t period,
			  struct ky_latency_cell *sum, uint64_t *max_ns)
{
	uint64_t any = 0;

	memset(sum, 0, sizeof(*sum));
	*max_ns = 0;
	for (uint32_t cpu = 0; cpu < latency->n_cpus; cpu++) {
		const struct ky_latency_cell *cell = &latency->buffer[cpu];
		uint64_t peak = ky_latency_peak(cell, period);

		*max_ns = peak > *max_ns ? peak : *max_ns;
		sum->sum_ns += cell->sum_ns;
		for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
			sum->buckets[i] += cell->buckets[i];
			any |= cell->buckets[i];
		}
	}
	return any;
}

/* What the table has of a key that has a place: durations from before it had one. */
static bool latency_places_table(const struct ky_latency *latency, const struct ky_latency_key *key,
				 uint64_t period, struct ky_latency_cell *sum, uint64_t *max_ns)
{
	struct ky_latency_cell cell;
	uint64_t peak;

	if (bpf_map_lookup_elem(ky_latency_cells_fd(latency), key, &cell))
		return false;
	peak = ky_latency_peak(&cell, period);
	*max_ns = peak > *max_ns ? peak : *max_ns;
	sum->sum_ns += cell.sum_ns;
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
		sum->buckets[i] += cell.buckets[i];
	return true;
}

/* A place gets its owner once; all of a reading sees the same owners. */
static void latency_places_look(struct ky_latency *latency)
{
	const struct ky_latency_shared *shared = ky_latency_shared(latency);

	for (uint32_t i = 0; i < KY_LATENCY_OWNED; i++)
		latency->owners[i] = __atomic_load_n(&shared->owners[i], __ATOMIC_RELAXED);
}

int ky_latency_read_places(struct ky_latency *latency, uint64_t period, struct kymo_error *err)
{
	struct ky_latency_cell sum;
	uint64_t max_ns;
	bool any;
	int ret = KYMO_OK;

	if (latency->options.by || !latency->skeleton)
		return KYMO_OK;
	latency_places_look(latency);
	for (uint32_t place = 0; place < KY_LATENCY_PLACES && ret >= 0; place++) {
		struct ky_latency_key key = {0};

		if (place < KY_LATENCY_AT_OWNED)
			key = latency_places_key(place);
		else if (!latency_places_owner(latency, place, &key))
			continue;
		if (!(latency->options.layers >> key.layer & 1))
			continue;
		if (bpf_map_lookup_elem(ky_latency_places_fd(latency), &place, latency->buffer))
			return ky_error_errno(err, errno, "cannot read a BPF map");
		any = ky_latency_sum_place(latency, period, &sum, &max_ns);
		if (place >= KY_LATENCY_AT_OWNED)
			any |= latency_places_table(latency, &key, period, &sum, &max_ns);
		if (any)
			ret = ky_latency_take(latency, &key, &sum, max_ns, false, err);
	}
	return ret;
}
