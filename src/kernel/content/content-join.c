/* SPDX-License-Identifier: MIT */
/*
 * What the programs have written waits here for the events that it belongs to: by thread, in the order of time, and
 * in a queue of all, of which the oldest are let go.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/content/content-internal.h"
#include "kernel/tracefs/page.h"

/*
 * Between a program's stamp and the event's there may be an interrupt, or, on newer kernels, other
 * threads' turns.
 */
#define EXPIRE_NS 1000000000

static void unlink_age(struct ky_content *content, struct pending *p)
{
	*(p->older ? &p->older->newer : &content->oldest) = p->newer;
	*(p->newer ? &p->newer->older : &content->newest) = p->older;
	content->pending_bytes -= p->size;
}

/* Take @p out of both queues. A thread of which nothing waits has no queue. */
static void content_join_take_out(struct ky_content *content, struct thread_queue *queue,
				  struct pending *p)
{
	*(p->prev ? &p->prev->next : &queue->first) = p->next;
	*(p->next ? &p->next->prev : &queue->last) = p->prev;
	unlink_age(content, p);
	if (!queue->first)
		free(ky_map_del(&content->threads, p->record.tid));
}

/* A thread that has moved leaves records on two CPUs, of which the newer may come first. */
static void queue_by_time(struct thread_queue *queue, struct pending *p)
{
	struct pending *before = queue->last;

	while (before && before->record.time_ns > p->record.time_ns)
		before = before->prev;
	p->prev = before;
	p->next = before ? before->next : queue->first;
	*(p->prev ? &p->prev->next : &queue->first) = p;
	*(p->next ? &p->next->prev : &queue->last) = p;
}

static void content_join_push(struct ky_content *content, const struct ky_content_record *record)
{
	size_t size = sizeof(struct pending) - sizeof(*record) + record->bytes;
	struct thread_queue *queue = ky_map_get(&content->threads, record->tid);
	struct pending *p = malloc(size);

	if (!queue && p) {
		queue = calloc(1, sizeof(*queue));
		if (queue && ky_map_set(&content->threads, record->tid, queue) < 0) {
			free(queue);
			queue = NULL;
		}
	}
	if (!queue) {
		free(p);
		content->stats.lost++;
		return;
	}
	memcpy(&p->record, record, record->bytes);
	p->size = size;
	queue_by_time(queue, p);
	p->older = content->newest;
	p->newer = NULL;
	*(content->newest ? &content->newest->newer : &content->oldest) = p;
	content->newest = p;
	content->pending_bytes += size;
}

static void forget_oldest(struct ky_content *content)
{
	struct pending *p = content->oldest;

	content_join_take_out(content, ky_map_get(&content->threads, p->record.tid), p);
	free(p);
	content->stats.unclaimed++;
}

static void content_join_drain_cpu(struct ky_content *content, uint32_t cpu)
{
	struct ky_content_ring *ring = ky_content_ring_of(content, cpu);
	/* Pairs with the program's store, which the kernel's own code cannot be seen doing. */
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
	uint64_t mask = content->programs.regions.data_bytes - 1;
	uint32_t max = content->programs.record_max;
	const uint8_t *data = (const uint8_t *)ring + KY_CONTENT_DATA_OFFSET;

	while (tail != head) {
		const struct ky_content_record *record = (const void *)(data + (tail & mask));

		/* Cannot be: but then nothing more is to be had of this region. */
		if (record->bytes < sizeof(*record) || record->bytes > max || record->bytes % 8) {
			content->stats.lost++;
			tail = head;
			break;
		}
		if (record->flags & (KY_CONTENT_COMPAT | KY_CONTENT_UNKNOWN))
			ky_content_push_call(content, cpu, record);
		else
			content_join_push(content, record);
		tail += record->bytes;
	}
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

void ky_content_drain(struct ky_content *content)
{
	for (uint32_t cpu = 0; cpu < content->programs.regions.n; cpu++)
		content_join_drain_cpu(content, cpu);
	while (content->pending_bytes > KY_CONTENT_PENDING_BYTES)
		forget_oldest(content);
}

void ky_content_expire(struct ky_content *content, uint64_t time_ns)
{
	while (content->oldest && content->oldest->record.time_ns < time_ns &&
	       time_ns - content->oldest->record.time_ns > EXPIRE_NS)
		forget_oldest(content);
}

/* Is this record of the same call? The ring has the number at 8, arguments or result from 16 on. */
static bool belongs(const struct ky_content_plan *plan, const struct ky_content_record *record,
		    const uint8_t *event)
{
	if (record->number != plan->call->number ||
	    ((record->flags & KY_CONTENT_EXIT) != 0) != plan->is_exit)
		return false;
	if (plan->is_exit)
		return (int64_t)ky_record_long(event + 16) == record->ret;
	for (uint16_t i = 0; i < plan->n_args; i++)
		if (ky_record_long(event + 16 + i * 8u) != record->args[i])
			return false;
	return true;
}

/* A call that should have left something. At exit, what is read late is there only then. */
static bool is_expected(const struct ky_content_plan *plan)
{
	if (!plan->is_exit)
		return true;
	for (unsigned int i = KY_CONTENT_IN_PLACES; i < KY_CONTENT_PLACES; i++)
		if (plan->places & (1u << i))
			return true;
	return false;
}

/* The part of @place in @record, which is one of ours, or NULL. */
static struct ky_content_part *content_join_part_of(struct ky_content_record *record,
						    unsigned int place)
{
	uint8_t *at = (uint8_t *)(record + 1), *end = (uint8_t *)record + record->bytes;

	while ((size_t)(end - at) >= sizeof(struct ky_content_part)) {
		struct ky_content_part *part = (void *)at;

		if (part->place == place)
			return part;
		at += sizeof(*part) + ((part->len + 7) & ~7u);
	}
	return NULL;
}

struct pending *ky_content_add_late(struct pending *p, struct ky_content_record *exit_record,
				    unsigned int place)
{
	struct ky_content_part *part = content_join_part_of(&p->record, place), *late = NULL;
	struct pending *longer;
	uint32_t bytes;

	if ((exit_record->flags & KY_CONTENT_EXIT) && exit_record->number == p->record.number)
		late = content_join_part_of(exit_record, place);
	if (!part || part->status != KY_CONTENT_UNREADABLE || !late ||
	    late->status != KY_CONTENT_OK)
		return p;
	bytes = (uint32_t)sizeof(*late) + ((late->len + 7) & ~7u);
	longer = realloc(p, p->size + bytes);
	if (!longer)
		return p;
	content_join_part_of(&longer->record, place)->place = UINT8_MAX; /* of no event */
	part = (void *)((uint8_t *)&longer->record + longer->record.bytes);
	memcpy(part, late, bytes);
	part->status = KY_CONTENT_LATE;
	longer->record.bytes += bytes;
	longer->size += bytes;
	return longer;
}

/*
 * What could not be read when the call was entered may have been when it was left, and mostly that is known
 * by now: then it goes to the entry, too. Returns @p, or what replaces it.
 */
static struct pending *content_join_add_late(struct ky_content *content, struct pending *p,
					     unsigned int place)
{
	struct thread_queue *queue = ky_map_get(&content->threads, p->record.tid);

	return queue ? ky_content_add_late(p, &queue->first->record, place) : p;
}

const struct ky_content_record *ky_content_take(struct ky_content *content,
						const struct ky_content_plan *plan,
						const uint8_t *event, uint32_t tid,
						uint64_t time_ns)
{
	struct thread_queue *queue = ky_map_get(&content->threads, tid);
	struct pending *p = NULL;

	/* The last one before the event; what is older belongs to calls that were not recorded. */
	while (queue && queue->first && queue->first->record.time_ns <= time_ns) {
		bool is_last = !queue->first->next;

		content->stats.unclaimed += p != NULL;
		free(p);
		p = queue->first;
		content_join_take_out(content, queue, p);
		if (is_last)
			break;
	}
	free(content->held);
	content->held = p;
	if (p && belongs(plan, &p->record, event)) {
		for (unsigned int i = 0; i < KY_CONTENT_IN_PLACES && !plan->is_exit; i++)
			if ((plan->in_texts | plan->places) & (1u << i))
				p = content->held = content_join_add_late(content, p, i);
		content->stats.found++;
		return &p->record;
	}
	content->stats.unclaimed += p != NULL;
	content->stats.missing += is_expected(plan);
	return NULL;
}
