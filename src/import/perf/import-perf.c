/* SPDX-License-Identifier: MIT */
/*
 * perf.data: tracepoints become a kernel trace, as Kymo would have recorded them; samples, and what perf says of processes
 * and mappings, a second trace, PATH/perf.
 *
 * perf copies the rings of the CPUs one after the other. In a round of these copies, a CPU's records may belong before those
 * that came earlier; so records wait until the next round has ended, as perf itself does it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "import/ftrace/foreign-kernel.h"
#include "import/common/import-internal.h"
#include "import/perf/import-perf.h"

/* A file without rounds: so much waits. */
#define WAITING_MAX_BYTES ((size_t)256 << 20)
#define CPU_NONE	  UINT32_MAX

struct perf_waiting {
	uint64_t ns;
	size_t at; /* of the record in the queue's bytes */
};

struct perf_queue {
	KY_VEC(struct perf_waiting) records;
	KY_VEC(uint8_t) bytes;
	bool is_unsorted;
};

struct perf_import {
	struct ky_perf_file perf;
	struct ky_import_perf_trace trace;
	KY_VEC(struct perf_queue) queues; /* by CPU */
	size_t waiting_bytes;
	uint64_t round_ns, newest_ns; /* the newest of the last round, and so far */
	uint64_t n_short;
	const struct ky_log *log;
};

/* ---- the queues ----------------------------------------------------------------------- */

static int perf_compare(const void *a, const void *b)
{
	const struct perf_waiting *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int import_perf_emit(struct perf_import *import, const uint8_t *bytes,
			    struct kymo_error *err)
{
	struct ky_perf_head head = {.bytes = bytes};
	struct ky_perf_sample sample;

	head.type = ky_foreign_u32(bytes, import->perf.file.swap);
	head.misc = ky_foreign_u16(bytes + 4, import->perf.file.swap);
	head.size = ky_foreign_u16(bytes + 6, import->perf.file.swap);
	if (!ky_perf_sample_parse(&import->perf, &head, &sample) && head.type == KY_PERF_SAMPLE) {
		import->n_short++;
		return KYMO_OK;
	}
	return ky_import_perf_record(&import->trace, &import->perf, &head, &sample, err);
}

/* What waited and was handed on makes room. */
static void import_perf_drop(struct perf_import *import, struct perf_queue *queue, size_t n)
{
	size_t left = queue->records.len - n, first = queue->bytes.len;

	for (size_t i = n; i < queue->records.len; i++)
		first = queue->records.data[i].at < first ? queue->records.data[i].at : first;
	import->waiting_bytes -= first;
	memmove(queue->bytes.data, queue->bytes.data + first, queue->bytes.len - first);
	queue->bytes.len -= first;
	memmove(queue->records.data, queue->records.data + n, left * sizeof(*queue->records.data));
	queue->records.len = left;
	ky_vec_foreach(&queue->records, record)
		record->at -= first;
}

static int import_perf_flush_queue(struct perf_import *import, struct perf_queue *queue,
				   uint64_t until_ns, struct kymo_error *err)
{
	size_t n = 0;
	int ret = KYMO_OK;

	if (queue->is_unsorted)
		qsort(queue->records.data, queue->records.len, sizeof(*queue->records.data),
		      perf_compare);
	queue->is_unsorted = false;
	for (; n < queue->records.len && queue->records.data[n].ns <= until_ns && !ret; n++)
		ret = import_perf_emit(import, queue->bytes.data + queue->records.data[n].at, err);
	if (n)
		import_perf_drop(import, queue, n);
	return ret;
}

/* The first time in all queues that is known; 0: no record has a time. */
static uint64_t import_perf_first(struct perf_import *import)
{
	uint64_t first = 0;

	ky_vec_foreach(&import->queues, queue)
		ky_vec_foreach(&queue->records, record)
			if (record->ns && (!first || record->ns < first))
				first = record->ns;
	return first;
}

static int import_perf_flush(struct perf_import *import, uint64_t until_ns, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!import->trace.has_begun) {
		uint64_t first = import_perf_first(import);

		/* Before the first event there is nothing to write; nor is the clock known. */
		if (!first && until_ns != UINT64_MAX)
			return KYMO_OK;
		ret = ky_import_perf_begin(&import->trace, &import->perf, first, err);
	}
	ky_vec_foreach(&import->queues, queue)
		if (!ret)
			ret = import_perf_flush_queue(import, queue, until_ns, err);
	return ret;
}

static int import_perf_wait(struct perf_import *import, const struct ky_perf_head *head,
			    struct kymo_error *err)
{
	struct perf_waiting waiting;
	struct perf_queue *queue;
	uint64_t ns;
	uint32_t cpu;

	ky_perf_sample_place(&import->perf, head, &ns, &cpu);
	cpu = cpu < KY_FOREIGN_CPUS_MAX ? cpu : 0;
	while (import->queues.len <= cpu)
		if (ky_vec_push(&import->queues, (struct perf_queue){0}) < 0)
			return ky_error_nomem(err);
	queue = &import->queues.data[cpu];
	waiting = (struct perf_waiting){ns, queue->bytes.len};
	if (queue->records.len && ns < ky_vec_last(&queue->records)->ns)
		queue->is_unsorted = true;
	if (ky_vec_reserve(&queue->bytes, head->size) < 0 ||
	    ky_vec_push(&queue->records, waiting) < 0)
		return ky_error_nomem(err);
	memcpy(queue->bytes.data + queue->bytes.len, head->bytes, head->size);
	queue->bytes.len += head->size;
	import->waiting_bytes += head->size;
	import->newest_ns = ns > import->newest_ns ? ns : import->newest_ns;
	return KYMO_OK;
}

/* ---- the file ------------------------------------------------------------------------- */

static int import_perf_take(struct perf_import *import, const struct ky_perf_head *head,
			    struct kymo_error *err)
{
	int ret;

	if (head->type == KY_PERF_MMAP && !import->perf.kernel_at)
		ky_perf_take_map(&import->perf, head);
	if (head->type != KY_PERF_FINISHED_ROUND) {
		if (head->type >= KY_PERF_USER)
			return KYMO_OK;
		ret = import_perf_wait(import, head, err);
		if (ret < 0 || import->waiting_bytes < WAITING_MAX_BYTES)
			return ret;
		import->round_ns = import->newest_ns;
	}
	ret = import_perf_flush(import, import->round_ns, err);
	import->round_ns = import->newest_ns;
	return ret;
}

static void import_perf_fini(struct perf_import *import)
{
	ky_vec_foreach(&import->queues, queue) {
		ky_vec_fini(&queue->records);
		ky_vec_fini(&queue->bytes);
	}
	ky_vec_fini(&import->queues);
	ky_import_perf_fini(&import->trace);
	ky_perf_close(&import->perf);
}

/* Everything up to the break; @broken gets that. */
static int import_perf_run(struct perf_import *import, struct kymo_error *broken,
			   struct kymo_error *err)
{
	struct ky_perf_head head;
	int ret, next;

	while ((next = ky_perf_next(&import->perf, &head, broken)) > 0) {
		ret = import_perf_take(import, &head, err);
		if (ret < 0)
			return ret;
	}
	/* What was good before is read all the same; an error of reading ends it. */
	if (next < 0 && ((next != KYMO_E_FORMAT && next != KYMO_E_LIMIT) ||
			 (!import->trace.has_begun && !import->waiting_bytes))) {
		if (err)
			*err = *broken;
		return next;
	}
	ret = import_perf_flush(import, UINT64_MAX, err);
	if (!ret)
		ret = ky_import_perf_end(&import->trace, err);
	if (!ret && import->n_short)
		ky_log_warning(import->log,
			       "%s: %llu samples are shorter than their event says; "
			       "they are left out",
			       import->perf.file.path, (unsigned long long)import->n_short);
	return ret;
}

static int import_perf_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			    struct kymo_error *err)
{
	struct perf_import import = {.log = log};
	struct kymo_error broken = {0};
	int ret = ky_perf_open(&import.perf, path, imports->unpacked_fd, err);

	if (!ret)
		ret = ky_import_perf_init(&import.trace, imports, path, err);
	if (!ret)
		ret = import_perf_run(&import, &broken, err);
	if (!ret && broken.code)
		ky_import_broken(imports, &broken);
	import_perf_fini(&import);
	return ret;
}

const struct ky_import_format ky_import_perf = {
	.name = "perf.data",
	.probe = ky_perf_is,
	.open = import_perf_open,
};
