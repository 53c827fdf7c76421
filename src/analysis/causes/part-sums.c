/* SPDX-License-Identifier: MIT */
#include "analysis/causes/part-sums.h"

#include <stdlib.h>

static const struct ky_thread *part_sums_group(const struct ky_part_sums *sums,
					       const struct ky_thread *thread)
{
	return thread && sums->groups ? sums->groups[thread->index] : thread;
}

static struct ky_part part_sums_like(const struct ky_part_sums *sums, const struct ky_part *part)
{
	struct ky_part like = {
		.cause = part->cause, .syscall = UINT32_MAX, .cpu = KY_UNKNOWN, .idle = part->idle};

	if (sums->details & KY_PART_WHOSE)
		like.thread = part_sums_group(sums, part->thread);
	if (sums->details & KY_PART_WHO) {
		like.who = part_sums_group(sums, part->who);
		like.line = part->line;
		like.disk = part->disk;
		like.address = part->address;
		like.shared = part->shared;
	} else
		like.idle = false;
	if (sums->details & KY_PART_CALL) {
		like.syscall = part->syscall;
		like.file = part->file;
		like.in_fault = part->in_fault;
	}
	return like;
}

static bool part_sums_equal(const struct ky_part *a, const struct ky_part *b)
{
	return a->cause == b->cause && a->thread == b->thread && a->who == b->who &&
	       a->line == b->line && a->disk == b->disk && a->file == b->file &&
	       a->address == b->address && a->syscall == b->syscall && a->idle == b->idle &&
	       a->in_fault == b->in_fault && a->shared == b->shared;
}

static uint64_t part_sums_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t part_sums_hash(const struct ky_part *like)
{
	uint64_t hash = part_sums_mix(like->cause + 1, like->syscall);

	hash = part_sums_mix(hash, like->thread ? like->thread->index + UINT64_C(1) : 0);
	hash = part_sums_mix(hash, like->who ? like->who->index + UINT64_C(1) : 0);
	hash = part_sums_mix(hash, like->line ? like->line->index + UINT64_C(1) : 0);
	hash = part_sums_mix(hash, like->disk ? like->disk->index + UINT64_C(1) : 0);
	hash = part_sums_mix(hash, like->file ? like->file->index + UINT64_C(1) : 0);
	return part_sums_mix(hash, like->address + like->idle + 2 * like->in_fault);
}

static struct ky_part_sum *part_sums_find(struct ky_part_sums *sums, const struct ky_part *like)
{
	uint64_t hash = part_sums_hash(like);
	uintptr_t first = (uintptr_t)ky_map_get(&sums->by_hash, hash);
	struct ky_part_sum sum = {.like = *like, .next = (uint32_t)first};

	for (size_t i = first; i; i = sums->list.data[i - 1].next) {
		if (part_sums_equal(&sums->list.data[i - 1].like, like))
			return &sums->list.data[i - 1];
	}
	if (sums->list.len == UINT32_MAX || ky_vec_push(&sums->list, sum) < 0 ||
	    ky_map_set(&sums->by_hash, hash, (void *)(uintptr_t)sums->list.len) < 0)
		return NULL;
	return ky_vec_last(&sums->list);
}

int ky_part_sums_add(struct ky_part_sums *sums, const struct ky_part *part, uint64_t member,
		     bool slow)
{
	const struct ky_part like = part_sums_like(sums, part);
	uint64_t ns = (uint64_t)part->end_ns - (uint64_t)part->begin_ns;
	struct ky_part_sum *sum = part_sums_find(sums, &like);

	if (!sum)
		return KYMO_E_MEMORY;
	sums->total_ns += ns;
	sum->total_ns += ns;
	sum->slow_ns += slow ? ns : 0;
	sum->doubtful_ns += part->doubtful ? ns : 0;
	sum->count++;
	sum->longest_ns = sum->longest_ns < ns ? ns : sum->longest_ns;
	sum->n_members += sum->last_member != member + 1;
	sum->last_member = member + 1;
	return 0;
}

static int part_sums_compare(const void *a, const void *b)
{
	const struct ky_part_sum *left = a, *right = b;

	if (left->total_ns != right->total_ns)
		return left->total_ns < right->total_ns ? 1 : -1;
	/* A total order: the same input gives the same output. */
	if (left->like.cause != right->like.cause)
		return left->like.cause < right->like.cause ? -1 : 1;
	return part_sums_hash(&left->like) < part_sums_hash(&right->like) ? -1 : 1;
}

void ky_part_sums_sort(struct ky_part_sums *sums)
{
	if (sums->list.len)
		qsort(sums->list.data, sums->list.len, sizeof(*sums->list.data), part_sums_compare);
	ky_map_fini(&sums->by_hash); /* its numbers are wrong now */
}

void ky_part_sums_fini(struct ky_part_sums *sums)
{
	ky_map_fini(&sums->by_hash);
	ky_vec_fini(&sums->list);
}
