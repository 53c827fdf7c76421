/* SPDX-License-Identifier: MIT */
/* Records of perf.data leave their queues, in the order of time. */
#include <string.h>

#include "base/error.h"
#include "import/ftrace/foreign-kernel.h"
#include "import/perf/import-perf-internal.h"

/* What the CPU fetches from memory before it is looked at. */
#define AHEAD_RECORDS 8u

/* The map may change under its reader; other bytes do not. */
static const uint8_t *import_perf_hand_bytes(struct ky_perf_import *import,
					     const struct ky_perf_waiting *waiting)
{
	return waiting->attr & KY_PERF_IN_MAP ? memcpy(import->copy, waiting->bytes, waiting->size)
					      : waiting->bytes;
}

/* Nothing but a tracepoint's record is looked at. */
static int import_perf_hand_plain(struct ky_perf_import *import,
				  const struct ky_perf_waiting *waiting, uint32_t cpu,
				  struct kymo_error *err)
{
	const struct ky_perf_attr *attr =
		&import->perf.attrs.data[(waiting->attr & KY_PERF_PLAIN_ATTRS_MAX) - 1];
	const uint8_t *raw = import_perf_hand_bytes(import, waiting) + attr->at_raw;
	uint32_t len = ky_foreign_u32(raw, false);

	if (len > (uint32_t)waiting->size - attr->at_raw - 4) {
		import->n_short++;
		return KYMO_OK;
	}
	return ky_foreign_kernel_record(&import->trace.kernel, cpu, (uint32_t)attr->config,
					waiting->ns, raw + 4, len, NULL, err);
}

static int import_perf_hand_any(struct ky_perf_import *import,
				const struct ky_perf_waiting *waiting, struct kymo_error *err)
{
	struct ky_perf_head head = {
		.bytes = import_perf_hand_bytes(import, waiting),
		.size = waiting->size,
	};
	struct ky_perf_sample sample;

	head.type = ky_foreign_u32(head.bytes, import->perf.file.swap);
	head.misc = ky_foreign_u16(head.bytes + 4, import->perf.file.swap);
	if (!ky_perf_sample_parse(&import->perf, &head, &sample) && head.type == KY_PERF_SAMPLE) {
		import->n_short++;
		return KYMO_OK;
	}
	return ky_import_perf_record(&import->trace, &import->perf, &head, &sample, err);
}

static int import_perf_hand_queue(struct ky_perf_import *import, struct ky_perf_queue *queue,
				  uint64_t until_ns, struct kymo_error *err)
{
	uint32_t cpu = (uint32_t)(queue - import->queues.cpus.data);
	bool has_kernel = import->trace.has_kernel;
	size_t n = queue->n_done;
	int ret = KYMO_OK;

	for (; n < queue->records.len && queue->records.data[n].ns <= until_ns && !ret; n++) {
		const struct ky_perf_waiting *waiting = &queue->records.data[n];

		if (n + AHEAD_RECORDS < queue->records.len)
			__builtin_prefetch(waiting[AHEAD_RECORDS].bytes);
		ret = waiting->attr & KY_PERF_PLAIN_ATTRS_MAX && has_kernel
			      ? import_perf_hand_plain(import, waiting, cpu, err)
			      : import_perf_hand_any(import, waiting, err);
	}
	queue->n_done = n;
	return ret;
}

/*
 * All CPUs in the order of time: a sample has its thread's name at that time, which another CPU may have told, and a copy of a stack
 * is unwound with mappings that another CPU may have told.
 */
static int import_perf_hand_merged(struct ky_perf_import *import, uint64_t until_ns,
				   struct kymo_error *err)
{
	struct ky_perf_queue *queue;
	uint64_t second_ns;
	int ret = KYMO_OK;

	while (!ret && (queue = ky_perf_queue_first(&import->queues, until_ns, &second_ns)))
		ret = import_perf_hand_queue(import, queue, second_ns, err);
	return ret;
}

static bool import_perf_hand_needs_order(const struct ky_perf_file *perf)
{
	return perf->has_user_stacks || perf->has_samples;
}

/* The first time in all queues that is known; 0: no record has a time. */
static uint64_t import_perf_hand_first(struct ky_perf_import *import)
{
	uint64_t first = 0;

	ky_vec_foreach(&import->queues.cpus, queue)
		ky_vec_foreach(&queue->records, record)
			if (record->ns && (!first || record->ns < first))
				first = record->ns;
	return first;
}

/* In a directory, a queue grows over many rounds while another part is behind: it is sorted when something leaves it. */
static void import_perf_hand_sort(struct ky_perf_import *import, uint64_t until_ns)
{
	ky_vec_foreach(&import->queues.listed, cpu) {
		struct ky_perf_queue *queue = &import->queues.cpus.data[*cpu];

		if (!ky_perf_queue_is_later(queue, until_ns))
			ky_perf_queue_sort(queue);
	}
}

int ky_perf_import_flush(struct ky_perf_import *import, uint64_t until_ns, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (import->queues.newest_ns > import->last_ns)
		import->last_ns = import->queues.newest_ns;
	if (!import->trace.has_begun) {
		/* Before the first event there is nothing to write; nor is the clock known. */
		if (!import->last_ns && until_ns != UINT64_MAX)
			return KYMO_OK;
		ret = ky_import_perf_begin(&import->trace, &import->perf,
					   import_perf_hand_first(import), err);
	}
	import_perf_hand_sort(import, until_ns);
	if (!ret && import_perf_hand_needs_order(&import->perf))
		ret = import_perf_hand_merged(import, until_ns, err);
	ky_vec_foreach(&import->queues.listed, cpu)
		if (!ret)
			ret = import_perf_hand_queue(import, &import->queues.cpus.data[*cpu],
						     until_ns, err);
	ky_perf_queues_drop(&import->queues);
	import->is_early = import->trace.has_kernel && !import->waits && !import->parts.path &&
			   !import_perf_hand_needs_order(&import->perf);
	return ret;
}

int ky_perf_import_hand(struct ky_perf_import *import, struct ky_perf_queue *queue,
			struct kymo_error *err)
{
	int ret;

	ky_perf_queue_sort(queue);
	queue->handed_ns = queue->records.data[KY_PERF_EARLY_RECORDS - 1].ns;
	ret = import_perf_hand_queue(import, queue, queue->handed_ns, err);
	ky_perf_queue_drop(&import->queues, queue);
	return ret;
}
