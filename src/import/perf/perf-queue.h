/* SPDX-License-Identifier: MIT */
/*
 * Records of perf.data that wait for their turn: a queue for each CPU, and the bytes of the records in blocks, where they stay until
 * the record is handed on. A block is free again when no record in it waits.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_IMPORT_PERF_QUEUE_H
#define KY_IMPORT_PERF_QUEUE_H

#include <stdint.h>

#include "base/vec.h"
#include "import/perf/perf-file.h"

struct ky_perf_block;

struct ky_perf_waiting {
	uint64_t ns;
	const uint8_t *bytes; /* in a block */
	uint32_t order;	      /* of its arrival */
	uint16_t size;
	uint16_t attr; /* of a plain tracepoint, plus 1; 0: something else */
};

struct ky_perf_queue {
	KY_VEC(struct ky_perf_waiting) records;
	size_t n_done;	/* of the first records */
	uint32_t order; /* of the next record */
	bool is_unsorted;
};

struct ky_perf_queues {
	KY_VEC(struct ky_perf_queue) cpus; /* by number */
	uint64_t waiting_bytes, newest_ns;
	struct ky_perf_block *copies, *unused; /* where the next copy goes; a list */
	/* A part of the file. */
	struct ky_perf_block *part;
	uint64_t part_at;
	uint32_t part_bytes;
};

/* All zeros are allowed. */
void ky_perf_queues_fini(struct ky_perf_queues *queues);

/*
 * The file's bytes from perf->at on, at least @len of them, in a block; *have: how many there are. NULL: the file ends before, or
 * cannot be read, or memory is out.
 */
const uint8_t *ky_perf_queue_read(struct ky_perf_queues *queues, const struct ky_perf_file *perf,
				  uint32_t len, uint64_t *have);
/* Another file is read from here on. */
void ky_perf_queue_leave(struct ky_perf_queues *queues);
/* A copy of @bytes in a block; NULL: memory is out. */
const uint8_t *ky_perf_queue_copy(struct ky_perf_queues *queues, const uint8_t *bytes,
				  uint16_t size);

/* Adds a record of @cpu whose bytes are in a block. 0 or KYMO_E_MEMORY. */
int ky_perf_queue_add(struct ky_perf_queues *queues, uint32_t cpu, struct ky_perf_waiting *waiting);
/* Puts the records of a queue into the order of time; those of one time stay in the order of their arrival. */
void ky_perf_queue_sort(struct ky_perf_queue *queue);
/* Frees the records of a queue that are done. */
void ky_perf_queue_drop(struct ky_perf_queues *queues, struct ky_perf_queue *queue);
/*
 * The queue whose next record is the first of all, up to @until_ns; *second_ns: the time of the next queue's, or @until_ns. NULL: there is
 * none.
 */
struct ky_perf_queue *ky_perf_queue_first(struct ky_perf_queues *queues, uint64_t until_ns,
					  uint64_t *second_ns);

#endif
