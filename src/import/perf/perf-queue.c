/* SPDX-License-Identifier: MIT */
#include "import/perf/perf-queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/ftrace/foreign-kernel.h"

/* A block begins at a multiple of its size, so that its head is found by any byte in it. No record is longer than 64 KiB. */
#define BLOCK_BYTES ((size_t)256 << 10)
#define ROOM_BYTES  (BLOCK_BYTES - sizeof(struct ky_perf_block))

struct ky_perf_block {
	struct ky_perf_block *next; /* in the list of unused ones */
	uint32_t n_waiting;	    /* records in it */
	uint32_t used;
	uint8_t bytes[] __attribute__((aligned(64)));
};

static struct ky_perf_block *perf_queue_block(struct ky_perf_queues *queues)
{
	struct ky_perf_block *block = queues->unused;

	if (block)
		queues->unused = block->next;
	else
		block = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
	if (block)
		block->n_waiting = block->used = 0;
	return block;
}

static void perf_queue_give_back(struct ky_perf_queues *queues, struct ky_perf_block *block)
{
	block->next = queues->unused;
	queues->unused = block;
}

/* Nothing is added to @block any more. */
static void perf_queue_leave(struct ky_perf_queues *queues, struct ky_perf_block **block)
{
	if (*block && !(*block)->n_waiting)
		perf_queue_give_back(queues, *block);
	*block = NULL;
}

static struct ky_perf_block *perf_queue_block_of(const uint8_t *bytes)
{
	return (struct ky_perf_block *)((uintptr_t)bytes & ~(BLOCK_BYTES - 1));
}

static inline void perf_queue_done(struct ky_perf_queues *queues, const uint8_t *bytes)
{
	struct ky_perf_block *block = perf_queue_block_of(bytes);

	if (!--block->n_waiting && block != queues->copies)
		perf_queue_give_back(queues, block);
}

void ky_perf_queues_fini(struct ky_perf_queues *queues)
{
	ky_vec_foreach(&queues->cpus, queue) {
		queue->n_done = queue->records.len;
		ky_perf_queue_drop(queues, queue);
		ky_vec_fini(&queue->records);
	}
	ky_vec_fini(&queues->cpus);
	ky_vec_fini(&queues->listed);
	perf_queue_leave(queues, &queues->copies);
	while (queues->unused) {
		struct ky_perf_block *next = queues->unused->next;

		free(queues->unused);
		queues->unused = next;
	}
}

/* ---- bytes ---------------------------------------------------------------------------- */

const uint8_t *ky_perf_queue_copy(struct ky_perf_queues *queues, const uint8_t *bytes,
				  uint16_t size)
{
	uint8_t *copy;

	if (!queues->copies || size > ROOM_BYTES - queues->copies->used) {
		perf_queue_leave(queues, &queues->copies);
		queues->copies = perf_queue_block(queues);
		if (!queues->copies)
			return NULL;
	}
	copy = queues->copies->bytes + queues->copies->used;
	memcpy(copy, bytes, size);
	queues->copies->used += (size + 7u) & ~7u;
	if (queues->copies->used > ROOM_BYTES)
		queues->copies->used = ROOM_BYTES;
	return copy;
}

/* ---- records -------------------------------------------------------------------------- */

struct ky_perf_queue *ky_perf_queue_new(struct ky_perf_queues *queues, uint32_t cpu)
{
	cpu = cpu < KY_FOREIGN_CPUS_MAX ? cpu : 0;
	while (queues->cpus.len <= cpu)
		if (ky_vec_push(&queues->cpus, (struct ky_perf_queue){0}) < 0)
			return NULL;
	return &queues->cpus.data[cpu];
}

/* A file may have thousands of CPUs and millions of rounds, most of them without a record of most CPUs. */
int ky_perf_queue_list(struct ky_perf_queues *queues, struct ky_perf_queue *queue)
{
	uint32_t cpu = (uint32_t)(queue - queues->cpus.data);
	size_t at;

	if (ky_vec_push(&queues->listed, cpu) < 0)
		return KYMO_E_MEMORY;
	for (at = queues->listed.len - 1; at && queues->listed.data[at - 1] > cpu; at--)
		queues->listed.data[at] = queues->listed.data[at - 1];
	queues->listed.data[at] = cpu;
	queue->is_listed = true;
	return KYMO_OK;
}

/* The bytes of @waiting are in a block. */
static void perf_queue_keeps(struct ky_perf_queues *queues, struct ky_perf_queue *queue,
			     struct ky_perf_waiting *waiting)
{
	waiting->attr |= KY_PERF_IN_BLOCK;
	perf_queue_block_of(waiting->bytes)->n_waiting++;
	queue->n_copies++;
	queues->waiting_bytes += waiting->size;
}

int ky_perf_queue_add_copy(struct ky_perf_queues *queues, uint32_t cpu,
			   const struct ky_perf_waiting *waiting)
{
	struct ky_perf_queue *queue = ky_perf_queue_of(queues, cpu);
	struct ky_perf_waiting *added =
		queue ? ky_perf_queue_add(queues, queue, waiting->ns) : NULL;

	if (!added)
		return KYMO_E_MEMORY;
	added->bytes = waiting->bytes;
	added->size = waiting->size;
	added->attr = 0;
	perf_queue_keeps(queues, queue, added);
	return KYMO_OK;
}

int ky_perf_queues_keep(struct ky_perf_queues *queues)
{
	ky_vec_foreach(&queues->cpus, queue) {
		if (!queue->has_row)
			continue;
		for (size_t i = queue->n_done; i < queue->records.len; i++) {
			struct ky_perf_waiting *waiting = &queue->records.data[i];

			if (waiting->attr & (KY_PERF_IN_BLOCK | KY_PERF_IN_MAP))
				continue;
			waiting->bytes = ky_perf_queue_copy(queues, waiting->bytes, waiting->size);
			if (!waiting->bytes)
				return KYMO_E_MEMORY;
			perf_queue_keeps(queues, queue, waiting);
		}
		queue->has_row = false;
	}
	return KYMO_OK;
}

static int perf_queue_compare(const void *a, const void *b)
{
	const struct ky_perf_waiting *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void perf_queue_sort_from(struct ky_perf_queue *queue, size_t from)
{
	for (size_t i = from; i < queue->records.len; i++)
		queue->records.data[i].order = (uint32_t)i;
	qsort(queue->records.data + from, queue->records.len - from, sizeof(*queue->records.data),
	      perf_queue_compare);
}

/* Both parts are in order; @rest is a copy of the second. Those of one time keep their order. */
static void perf_queue_merge(struct ky_perf_queue *queue, const struct ky_perf_waiting *rest)
{
	struct ky_perf_waiting *records = queue->records.data;
	size_t to = queue->records.len, first = queue->n_sorted, second = to - first;

	while (second) {
		if (first && records[first - 1].ns > rest[second - 1].ns)
			records[--to] = records[--first];
		else
			records[--to] = rest[--second];
	}
}

/* Those that have waited for longer are in order, and come first: only the rest is sorted. */
void ky_perf_queue_sort(struct ky_perf_queue *queue)
{
	size_t n_rest = queue->records.len - queue->n_sorted;
	struct ky_perf_waiting *rest;

	if (!queue->is_unsorted)
		return;
	queue->is_unsorted = false;
	rest = malloc(n_rest * sizeof(*rest));
	if (!rest) {
		perf_queue_sort_from(queue, 0);
		return;
	}
	perf_queue_sort_from(queue, queue->n_sorted);
	memcpy(rest, queue->records.data + queue->n_sorted, n_rest * sizeof(*rest));
	perf_queue_merge(queue, rest);
	free(rest);
}

void ky_perf_queue_drop(struct ky_perf_queues *queues, struct ky_perf_queue *queue)
{
	size_t n = queue->n_done, left = queue->records.len - n;

	if (!n)
		return;
	queues->waiting_bytes -= n * sizeof(*queue->records.data);
	for (size_t i = 0; i < n && queue->n_copies; i++) {
		const struct ky_perf_waiting *done = &queue->records.data[i];

		if (!(done->attr & KY_PERF_IN_BLOCK))
			continue;
		queues->waiting_bytes -= done->size;
		queue->n_copies--;
		perf_queue_done(queues, done->bytes);
	}
	memmove(queue->records.data, queue->records.data + n, left * sizeof(*queue->records.data));
	queue->records.len = left;
	queue->n_done = 0;
}

void ky_perf_queues_drop(struct ky_perf_queues *queues)
{
	size_t left = 0;

	ky_vec_foreach(&queues->listed, cpu) {
		struct ky_perf_queue *queue = &queues->cpus.data[*cpu];

		ky_perf_queue_drop(queues, queue);
		queue->is_listed = queue->records.len;
		if (queue->is_listed)
			queues->listed.data[left++] = *cpu;
	}
	queues->listed.len = left;
}

struct ky_perf_queue *ky_perf_queue_first(struct ky_perf_queues *queues, uint64_t until_ns,
					  uint64_t *second_ns)
{
	struct ky_perf_queue *first = NULL;
	uint64_t first_ns = until_ns;

	*second_ns = until_ns;
	ky_vec_foreach(&queues->listed, cpu) {
		struct ky_perf_queue *queue = &queues->cpus.data[*cpu];
		uint64_t ns;

		if (queue->n_done == queue->records.len)
			continue;
		ns = queue->records.data[queue->n_done].ns;
		if (ns <= first_ns && (!first || ns < first_ns)) {
			*second_ns = first ? first_ns : until_ns;
			first = queue;
			first_ns = ns;
		} else if (ns < *second_ns) {
			*second_ns = ns;
		}
	}
	return first;
}
