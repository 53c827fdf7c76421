/* SPDX-License-Identifier: MIT */
#include "latency/layers/latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "latency/layers/latency-internal.h"
#include "latency/programs/program-cells.h"
#include "os/now.h"

/* Of the table, at a time. */
#define BATCH_CELLS 256u

/* A table that is so full loses cells in which nothing was added for so long (in slots). */
#define FULL_PART  3 / 4
#define IDLE_SLOTS 12u

static int latency_remember_calls(struct ky_latency *latency,
				  const struct ky_latency_options *options, struct kymo_error *err)
{
	for (size_t i = 0; i < options->n_syscalls; i++) {
		char *name = strdup(options->syscalls[i]);

		if (!name || ky_vec_push(&latency->chosen, name) < 0) {
			free(name);
			return ky_error_nomem(err);
		}
	}
	return KYMO_OK;
}

static int latency_prepare(struct ky_latency *latency, struct kymo_error *err)
{
	int ret = ky_bpf_values_of_key(&latency->n_cpus, err);

	if (ret < 0)
		return ret;
	latency->buffer_cells =
		latency->n_cpus > BATCH_CELLS ? latency->n_cpus : (size_t)BATCH_CELLS;
	latency->buffer = calloc(latency->buffer_cells, sizeof(*latency->buffer));
	latency->keys = calloc(BATCH_CELLS, sizeof(*latency->keys));
	return latency->buffer && latency->keys ? KYMO_OK : ky_error_nomem(err);
}

int ky_latency_open(const struct ky_latency_options *options, struct ky_latency **result,
		    struct kymo_error *err)
{
	struct ky_latency *latency = calloc(1, sizeof(*latency));
	int ret;

	*result = NULL;
	if (!latency)
		return ky_error_nomem(err);
	latency->options = *options;
	/* These need no BPF. */
	latency->has_programs = options->layers >> KY_LATENCY_PROGRAM & 1;
	latency->options.layers &= ~(1u << KY_LATENCY_PROGRAM);
	ret = latency_remember_calls(latency, options, err);
	if (ret >= 0)
		ret = latency_prepare(latency, err);
	if (ret >= 0)
		ret = ky_latency_load(latency, err);
	if (ret >= 0)
		ret = ky_latency_begin_programs(latency, err);
	if (ret < 0) {
		ky_latency_close(latency);
		return ret;
	}
	latency->options.syscalls = NULL;
	latency->options.n_syscalls = 0;
	latency->begin_ns = latency->read_ns = latency->last_ns =
		(uint64_t)ky_os_time_ns(CLOCK_MONOTONIC);
	*result = latency;
	return KYMO_OK;
}

void ky_latency_close(struct ky_latency *latency)
{
	if (!latency)
		return;
	ky_latency_unload(latency);
	for (size_t i = 0; i < latency->n_trackers; i++)
		ky_tracker_close(latency->trackers[i]);
	ky_chain_close(latency->chain);
	ky_program_files_fini(&latency->programs);
	ky_vec_foreach(&latency->series, series)
		ky_series_free(*series);
	ky_vec_fini(&latency->series);
	ky_map_fini(&latency->by_hash);
	ky_vec_foreach(&latency->chosen, name)
		free(*name);
	ky_vec_fini(&latency->chosen);
	free(latency->buffer);
	free(latency->keys);
	free(latency);
}

int ky_latency_add_tracker(struct ky_latency *latency, const struct ky_tracker_options *options,
			   struct kymo_error *err)
{
	struct ky_tracker *tracker;
	int ret;

	if (latency->n_trackers == KY_TRACKERS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "at most %d trackers run at once",
				    KY_TRACKERS_MAX);
	ret = ky_tracker_open(options, &tracker, err);
	if (ret >= 0)
		latency->trackers[latency->n_trackers++] = tracker;
	return ret;
}

struct ky_tracker *ky_latency_tracker(const struct ky_latency *latency, size_t i)
{
	return i < latency->n_trackers ? latency->trackers[i] : NULL;
}

int ky_latency_add_chain(struct ky_latency *latency, const struct ky_chain_options *options,
			 struct kymo_error *err)
{
	return ky_chain_open(options, &latency->chain, err);
}

struct ky_chain *ky_latency_chain(const struct ky_latency *latency)
{
	return latency->chain;
}

/* ---- series ----------------------------------------------------------------------------- */

static bool is_key_equal(const struct ky_latency_key *a, const struct ky_latency_key *b)
{
	return a->layer == b->layer && a->sub == b->sub && a->who == b->who;
}

struct ky_series *ky_latency_series_find(const struct ky_latency *latency,
					 const struct ky_latency_key *key)
{
	struct ky_series *series = ky_map_get(&latency->by_hash, ky_hash_bytes(key, sizeof(*key)));

	while (series && !is_key_equal(&series->key, key))
		series = series->next_of_hash;
	return series;
}

struct ky_series *ky_latency_series_of(struct ky_latency *latency, const struct ky_latency_key *key)
{
	uint64_t hash = ky_hash_bytes(key, sizeof(*key));
	struct ky_series *first = ky_map_get(&latency->by_hash, hash);
	struct ky_series *series = ky_latency_series_find(latency, key);

	if (series)
		return series;
	series = ky_series_new(key);
	if (!series)
		return NULL;
	series->next_of_hash = first;
	if (ky_latency_name(latency, series) < 0 || ky_vec_push(&latency->series, series) < 0) {
		ky_series_free(series);
		return NULL;
	}
	if (ky_map_set(&latency->by_hash, hash, series) == 0)
		return series;
	latency->series.len--;
	ky_series_free(series);
	return NULL;
}

static void unchain(struct ky_latency *latency, struct ky_series *series)
{
	uint64_t hash = ky_hash_bytes(&series->key, sizeof(series->key));
	struct ky_series *at = ky_map_get(&latency->by_hash, hash);

	if (at == series && series->next_of_hash) {
		(void)ky_map_set(&latency->by_hash, hash, series->next_of_hash);
	} else if (at == series) {
		ky_map_del(&latency->by_hash, hash);
	} else {
		while (at && at->next_of_hash != series)
			at = at->next_of_hash;
		if (at)
			at->next_of_hash = series->next_of_hash;
	}
}

/* A cell that the kernel no longer has begins anew, if it comes back. */
static bool is_crowded(const struct ky_latency *latency)
{
	return latency->skeleton && latency->n_cells > ky_latency_cells_max(latency) * FULL_PART;
}

static void evict(struct ky_latency *latency, struct ky_series *series)
{
	if (series->key.layer == KY_LATENCY_PROGRAM)
		return;
	bpf_map_delete_elem(ky_latency_cells_fd(latency), &series->key);
	memset(series->last.buckets, 0, sizeof(series->last.buckets));
	series->last.sum_ns = 0;
}

/* Nothing was added for so long that no window shows it. */
static bool is_over(const struct ky_series *series, uint64_t slot)
{
	return series->changed_slot + KY_SERIES_SLOTS < slot;
}

/* A new slot has begun. */
static int latency_turn(struct ky_latency *latency, struct kymo_error *err)
{
	bool crowded = is_crowded(latency);
	size_t n = 0;

	for (size_t i = 0; i < latency->series.len; i++) {
		struct ky_series *series = latency->series.data[i];

		/* A process may have another name by now. */
		if (ky_series_turn(series, latency->slot) < 0 ||
		    (latency->options.by == KY_LATENCY_BY_PROCESS &&
		     series->changed_slot + 1 >= latency->slot &&
		     ky_latency_name(latency, series) < 0))
			return ky_error_nomem(err);
		if (crowded && series->is_keyed &&
		    series->changed_slot + IDLE_SLOTS < latency->slot)
			evict(latency, series);
		if (!series->is_keyed || !is_over(series, latency->slot)) {
			latency->series.data[n++] = series;
			continue;
		}
		evict(latency, series);
		latency->n_program_series -= series->key.layer == KY_LATENCY_PROGRAM;
		unchain(latency, series);
		ky_series_free(series);
	}
	latency->series.len = n;
	return KYMO_OK;
}

/* ---- reading ---------------------------------------------------------------------------- */

int ky_latency_take(struct ky_latency *latency, const struct ky_latency_key *key,
		    const struct ky_latency_cell *cell, uint64_t max_ns, bool is_keyed,
		    struct kymo_error *err)
{
	struct ky_series *series = ky_latency_series_of(latency, key);

	if (!series)
		return ky_error_nomem(err);
	series->is_keyed = is_keyed;
	ky_series_take(series, cell, max_ns, latency->slot);
	return KYMO_OK;
}

static int take_batch(struct ky_latency *latency, uint32_t n, uint64_t period,
		      struct kymo_error *err)
{
	int ret = KYMO_OK;

	latency->n_cells += n;
	for (uint32_t i = 0; i < n && ret >= 0; i++)
		if (!ky_latency_has_place(latency, &latency->keys[i]))
			ret = ky_latency_take(latency, &latency->keys[i], &latency->buffer[i],
					      ky_latency_peak(&latency->buffer[i], period), true,
					      err);
	return ret;
}

static int read_cells(struct ky_latency *latency, uint64_t period, struct kymo_error *err)
{
	uint32_t position = 0, n;
	bool is_first = true, is_last = false;
	int ret;

	latency->n_cells = 0;
	while (!is_last && latency->skeleton) {
		n = BATCH_CELLS;
		ret = bpf_map_lookup_batch(ky_latency_cells_fd(latency),
					   is_first ? NULL : &position, &position, latency->keys,
					   latency->buffer, &n, NULL);
		if (ret < 0 && ret != -ENOENT)
			return ky_error_errno(err, -ret, "cannot read a BPF map");
		is_first = false;
		is_last = ret == -ENOENT;
		ret = take_batch(latency, n, period, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static int read_trackers(struct ky_latency *latency, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < latency->n_trackers && ret >= 0; i++) {
		struct ky_latency_key key = {.layer = KY_LATENCY_TRACK, .sub = i};
		struct ky_latency_cell sum;
		uint64_t period, max_ns;

		ret = ky_tracker_read(latency->trackers[i], latency->buffer, &period, err);
		if (ret >= 0 && ky_latency_sum_place(latency, period, &sum, &max_ns))
			ret = ky_latency_take(latency, &key, &sum, max_ns, false, err);
	}
	return ret;
}

static int read_chain(struct ky_latency *latency, struct kymo_error *err)
{
	uint64_t period, max_ns;
	int ret = KYMO_OK;

	ky_chain_turn(latency->chain, &period);
	for (uint32_t part = 0; part < KY_CHAIN_PARTS && ret >= 0; part++) {
		struct ky_latency_key key = {.layer = KY_LATENCY_CHAIN, .sub = part};
		struct ky_latency_cell sum;

		ret = ky_chain_read(latency->chain, part, latency->buffer, err);
		if (ret >= 0 && ky_latency_sum_place(latency, period, &sum, &max_ns))
			ret = ky_latency_take(latency, &key, &sum, max_ns, false, err);
	}
	return ret;
}

int ky_latency_read(struct ky_latency *latency, struct kymo_error *err)
{
	struct ky_latency_shared *shared = ky_latency_shared(latency);
	uint64_t now_ns = (uint64_t)ky_os_time_ns(CLOCK_MONOTONIC);
	uint64_t period = shared ? shared->period : 0;
	uint64_t slot = (now_ns - latency->begin_ns) / KY_SERIES_SLOT_NS;
	int ret = KYMO_OK;

	if (shared)
		__atomic_store_n(&shared->period, period + 1, __ATOMIC_RELEASE);
	latency->last_ns = latency->read_ns;
	latency->read_ns = now_ns;
	if (slot != latency->slot) {
		latency->slot = slot;
		ret = latency_turn(latency, err);
	}
	ky_vec_foreach(&latency->series, series)
		memset(&(*series)->now, 0, sizeof((*series)->now));
	if (ret >= 0)
		ret = ky_latency_read_places(latency, period, err);
	if (ret >= 0)
		ret = read_cells(latency, period, err);
	if (ret >= 0)
		ret = read_trackers(latency, err);
	if (ret >= 0)
		ret = ky_latency_read_programs(latency, err);
	return ret < 0 || !latency->chain ? ret : read_chain(latency, err);
}

/* ---- what was found --------------------------------------------------------------------- */

static int latency_compare(const void *a, const void *b)
{
	const struct ky_series *x = *(struct ky_series *const *)a;
	const struct ky_series *y = *(struct ky_series *const *)b;
	int order;

	if (x->key.layer != y->key.layer)
		return x->key.layer < y->key.layer ? -1 : 1;
	order = strcmp(x->name, y->name);
	if (order || !x->owner || !y->owner)
		return order;
	return strcmp(x->owner, y->owner);
}

struct ky_series *const *ky_latency_series(struct ky_latency *latency, size_t *n)
{
	*n = latency->series.len;
	if (*n)
		qsort(latency->series.data, *n, sizeof(*latency->series.data), latency_compare);
	return latency->series.data;
}

uint64_t ky_latency_slot(const struct ky_latency *latency)
{
	return latency->slot;
}

uint64_t ky_latency_window_ns(const struct ky_latency *latency, enum ky_past window)
{
	uint32_t slots = ky_past_slots(window);
	uint64_t begin_ns = latency->begin_ns;

	if (window == KY_PAST_NOW)
		return latency->read_ns - latency->last_ns;
	if (latency->slot > slots)
		begin_ns += (latency->slot - slots) * KY_SERIES_SLOT_NS;
	return latency->read_ns - begin_ns;
}

void ky_latency_losses(struct ky_latency *latency, struct ky_latency_losses *losses)
{
	const struct ky_latency_shared *shared = ky_latency_shared(latency);

	*losses = (struct ky_latency_losses){
		.cells = shared ? __atomic_load_n(&shared->n_lost_cells, __ATOMIC_RELAXED) : 0,
		.requests =
			shared ? __atomic_load_n(&shared->n_lost_requests, __ATOMIC_RELAXED) : 0,
		.members = shared ? __atomic_load_n(&shared->n_lost_members, __ATOMIC_RELAXED) : 0,
		.programs = latency->n_lost_programs + ky_program_cells_lost(&latency->programs),
		.misses = ky_latency_misses(latency),
		.absent_layers = latency->absent_layers};
}
