/* SPDX-License-Identifier: MIT */
/*
 * Records of perf.data that wait for their turn: a queue for each CPU. The bytes of plain tracepoints stay where they were read, in the
 * file's map or in a row of the file, as long as that is there; those of other records are copied into blocks, where they stay until the
 * record is handed on. A block is free again when no record in it waits.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_IMPORT_PERF_QUEUE_H
#define KY_IMPORT_PERF_QUEUE_H

#include <stdint.h>

#include "base/vec.h"
#include "import/ftrace/foreign-kernel.h"
#include "import/perf/perf-file.h"

struct ky_perf_block;

#define KY_PERF_PLAIN_ATTRS_MAX 0x3fffu /* of the attribute's number; the rest are flags */
#define KY_PERF_IN_MAP		0x4000u /* of the file */
#define KY_PERF_IN_BLOCK	0x8000u /* neither: in the row that is read */
/* Of records that need not wait for the end of a round, this many wait at most, and the first of them are handed on. */
#define KY_PERF_EARLY_MAX     1024u
#define KY_PERF_EARLY_RECORDS 512u

struct ky_perf_waiting {
	uint64_t ns;
	const uint8_t *bytes;
	uint32_t order; /* of its arrival */
	uint16_t size;
	uint16_t
		attr; /* of a plain tracepoint, plus 1; 0: something else; and where the bytes are */
};

struct ky_perf_queue {
	KY_VEC(struct ky_perf_waiting) records;
	size_t n_done;		   /* of the first records */
	size_t n_copies;	   /* records in blocks */
	uint32_t order;		   /* of the next record */
	bool is_unsorted, has_row; /* records whose bytes are in the row */
	bool is_listed;		   /* among the queues with records */
	size_t n_sorted;  /* is_unsorted: so many are in order, and the first of the rest is not */
	uint64_t rest_ns; /* the first time in the rest */
	uint64_t handed_ns; /* the last that was handed on before the end of a round */
};

/* A sample of such a CPU is left out, with an error. UINT32_MAX: the record is of no CPU. */
static inline bool ky_perf_queue_is_beyond(uint32_t cpu)
{
	return __builtin_expect(cpu >= KY_FOREIGN_CPUS_MAX, 0) && cpu != UINT32_MAX;
}

struct ky_perf_queues {
	KY_VEC(struct ky_perf_queue) cpus; /* by number */
	KY_VEC(uint32_t) listed;	   /* those that may have records; sorted */
	uint64_t waiting_bytes, newest_ns;
	struct ky_perf_block *copies, *unused; /* where the next copy goes; a list */
};

/* All zeros are allowed. */
void ky_perf_queues_fini(struct ky_perf_queues *queues);

/* A copy of @bytes in a block; NULL: memory is out. */
const uint8_t *ky_perf_queue_copy(struct ky_perf_queues *queues, const uint8_t *bytes,
				  uint16_t size);

/* The queue of @cpu, or of CPU 0 for a number that no CPU has; NULL: memory is out. */
struct ky_perf_queue *ky_perf_queue_new(struct ky_perf_queues *queues, uint32_t cpu);
static inline struct ky_perf_queue *ky_perf_queue_of(struct ky_perf_queues *queues, uint32_t cpu)
{
	return __builtin_expect(cpu < queues->cpus.len, 1) ? &queues->cpus.data[cpu]
							   : ky_perf_queue_new(queues, cpu);
}

/* Puts @queue among those with records. 0 or KYMO_E_MEMORY. */
int ky_perf_queue_list(struct ky_perf_queues *queues, struct ky_perf_queue *queue);

/* The record that is added at @ns belongs before the last one. */
static inline void ky_perf_queue_turn(struct ky_perf_queue *queue, uint64_t ns)
{
	if (!queue->is_unsorted) {
		queue->n_sorted = queue->records.len;
		queue->rest_ns = ns;
	}
	queue->is_unsorted = true;
	queue->rest_ns = ns < queue->rest_ns ? ns : queue->rest_ns;
}

/*
 * Adds a record at @ns; the caller fills in bytes, size and attribute. NULL: memory is out. Fields are stored one by one: a copy of a
 * struct that was just written waits for the stores.
 */
static inline struct ky_perf_waiting *ky_perf_queue_add(struct ky_perf_queues *queues,
							struct ky_perf_queue *queue, uint64_t ns)
{
	struct ky_perf_waiting *added;

	if (ky_vec_reserve(&queue->records, 1) < 0 ||
	    (__builtin_expect(!queue->is_listed, 0) && ky_perf_queue_list(queues, queue) < 0))
		return NULL;
	added = &queue->records.data[queue->records.len];
	if (queue->records.len && __builtin_expect(ns < added[-1].ns, 0))
		ky_perf_queue_turn(queue, ns);
	queue->records.len++;
	added->ns = ns;
	queues->waiting_bytes += sizeof(*added);
	queues->newest_ns = ns > queues->newest_ns ? ns : queues->newest_ns;
	return added;
}
/* The row ends: copies the bytes in it into blocks. 0 or KYMO_E_MEMORY. */
int ky_perf_queues_keep(struct ky_perf_queues *queues);
/* Adds a record of @cpu whose bytes are in a block. 0 or KYMO_E_MEMORY. */
int ky_perf_queue_add_copy(struct ky_perf_queues *queues, uint32_t cpu,
			   const struct ky_perf_waiting *waiting);
/* Puts the records of a queue into the order of time; those of one time stay in the order of their arrival. */
void ky_perf_queue_sort(struct ky_perf_queue *queue);
/* Is none of its records up to @until_ns? */
static inline bool ky_perf_queue_is_later(const struct ky_perf_queue *queue, uint64_t until_ns)
{
	return queue->n_done == queue->records.len ||
	       (queue->records.data[queue->n_done].ns > until_ns &&
		(!queue->is_unsorted || queue->rest_ns > until_ns));
}
/* Frees the records of a queue that are done. */
void ky_perf_queue_drop(struct ky_perf_queues *queues, struct ky_perf_queue *queue);
/* Of all queues; those that are empty then are no longer listed. */
void ky_perf_queues_drop(struct ky_perf_queues *queues);
/*
 * The queue whose next record is the first of all, up to @until_ns; *second_ns: the time of the next queue's, or @until_ns. NULL: there is
 * none.
 */
struct ky_perf_queue *ky_perf_queue_first(struct ky_perf_queues *queues, uint64_t until_ns,
					  uint64_t *second_ns);

#endif
