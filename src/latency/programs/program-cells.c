/* SPDX-License-Identifier: MIT */
#include "latency/programs/program-cells.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* More in a bucket than a program counts in years: no sum of what is believed runs over. */
#define COUNT_MAX (UINT64_C(1) << 44)
#define NS_MAX	  (UINT64_C(1) << 56)

/* @name ends and has no other characters than the library would let through. */
static bool is_plain(const char name[KY_LATENCY_NAME_BYTES])
{
	size_t len = strnlen(name, KY_LATENCY_NAME_BYTES);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	return len && len < KY_LATENCY_NAME_BYTES;
}

/* The sum of its stripes. */
static void program_cells_gather(const struct ky_latency_tracker *tracker,
				 struct ky_program_last *now, uint64_t *max_ns)
{
	memset(now, 0, sizeof(*now));
	*max_ns = 0;
	for (uint32_t s = 0; s < KY_LATENCY_STRIPES; s++) {
		const struct ky_latency_stripe *stripe = &tracker->stripes[s];

		now->sum_ns += stripe->sum_ns;
		*max_ns = stripe->max_ns > *max_ns ? stripe->max_ns : *max_ns;
		for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++)
			now->buckets[i] += stripe->buckets[i];
	}
}

/* What was added to the buckets. False: they have less than before, or more than there can be. */
static bool subtract(const struct ky_program_last *now, const struct ky_program_last *last,
		     struct ky_histogram *added)
{
	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		if (now->buckets[i] < last->buckets[i] ||
		    now->buckets[i] - last->buckets[i] > COUNT_MAX)
			return false;
		added->buckets[i] = now->buckets[i] - last->buckets[i];
	}
	return true;
}

/*
 * The sum is one that durations in these buckets can have. A pair whose end is half-way is in the sum and in no bucket, or the
 * reverse: what is left over counts next time.
 */
static uint64_t bound_sum(const struct ky_histogram *added, uint64_t sum_ns)
{
	unsigned __int128 least = 0, most = 0, bounded = sum_ns;

	for (uint32_t i = 0; i < KY_LATENCY_BUCKETS; i++) {
		uint64_t end_ns = ky_bucket_end_ns(i);

		least += (unsigned __int128)added->buckets[i] * ky_bucket_begin_ns(i);
		most += (unsigned __int128)added->buckets[i] * (end_ns < NS_MAX ? end_ns : NS_MAX);
	}
	bounded = bounded < least ? least : bounded > most ? most : bounded;
	return bounded > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)bounded;
}

/* What was added to tracker @i; the count is 0 if nothing was. */
static int read_tracker(struct ky_program_file *file, const struct ky_latency_tracker *tracker,
			uint32_t i, struct ky_histogram *added)
{
	struct ky_program_last now, *last = file->last[i];
	uint64_t max_ns;

	memset(added, 0, sizeof(*added));
	if (!last)
		last = file->last[i] = calloc(1, sizeof(*last));
	if (!last)
		return KYMO_E_MEMORY;
	program_cells_gather(tracker, &now, &max_ns);
	if ((!file->is_read && !file->is_fresh) || !subtract(&now, last, added)) {
		memset(added, 0, sizeof(*added));
		*last = now;
		return KYMO_OK;
	}
	added->max_ns = max_ns < NS_MAX ? max_ns : NS_MAX;
	ky_histogram_settle(added);
	added->sum_ns = bound_sum(added, now.sum_ns - last->sum_ns);
	now.sum_ns = last->sum_ns + added->sum_ns;
	*last = now;
	return KYMO_OK;
}

/* What was lost only grows. */
static void read_lost(struct ky_program_file *file, const struct ky_latency_head *head)
{
	uint64_t n = (head->n_full < COUNT_MAX ? head->n_full : COUNT_MAX) + head->n_refused;

	file->n_lost = n > file->n_lost ? n : file->n_lost;
	if (!file->is_read && !file->is_fresh)
		file->n_lost_before = n;
}

static int program_cells_read_file(struct ky_program_file *file, struct ky_latency_file *copy,
				   ky_program_take take, void *data)
{
	struct ky_histogram added;
	uint32_t n;
	int ret = KYMO_OK;

	if (pread(file->fd, &copy->head, sizeof(copy->head), 0) != sizeof(copy->head))
		return KYMO_OK;
	read_lost(file, &copy->head);
	n = copy->head.n_trackers < KY_LATENCY_TRACKERS_MAX ? copy->head.n_trackers
							    : KY_LATENCY_TRACKERS_MAX;
	for (uint32_t i = 0; i < n && !ret; i++) {
		struct ky_latency_tracker *tracker = &copy->trackers[i];
		off_t at =
			(off_t)(offsetof(struct ky_latency_file, trackers) + i * sizeof(*tracker));

		if (pread(file->fd, tracker, sizeof(*tracker), at) != sizeof(*tracker) ||
		    !is_plain(tracker->name))
			continue;
		ret = read_tracker(file, tracker, i, &added);
		if (!ret && added.count)
			ret = take(data, file, tracker->name, &added);
	}
	file->is_read = true;
	return ret;
}

int ky_program_cells_read(struct ky_program_files *files, ky_program_take take, void *data,
			  struct kymo_error *err)
{
	struct ky_latency_file *copy;
	int ret = KYMO_OK;

	if (!files->list.len)
		return KYMO_OK;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return ky_error_nomem(err);
	for (size_t i = 0; i < files->list.len && !ret; i++)
		ret = program_cells_read_file(files->list.data[i], copy, take, data);
	free(copy);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

uint64_t ky_program_cells_lost(const struct ky_program_files *files)
{
	uint64_t n = files->n_lost;

	ky_vec_foreach(&files->list, file)
		n += (*file)->n_lost - (*file)->n_lost_before;
	return n;
}
