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
#include "import/perf/perf-parts.h"
#include "import/perf/perf-queue.h"

/* A file without rounds: so much waits. */
#define WAITING_MAX_BYTES ((size_t)256 << 20)
/* What the CPU fetches from memory before it is looked at. */
#define AHEAD_BYTES   1024u
#define AHEAD_RECORDS 8u

struct perf_import {
	struct ky_perf_file perf;
	struct ky_import_perf_trace trace;
	struct ky_perf_parts parts;
	bool round_is_over; /* of a part */
	struct ky_perf_queues queues;
	uint64_t round_ns; /* the newest record of the last round */
	uint64_t last_ns;  /* of all */
	uint64_t n_short;
	uint8_t copy[UINT16_MAX + 1]; /* of the record that is handed on */
	uint16_t at_id; /* where the counter's id stands in samples; 0: take all records singly */
	const struct ky_log *log;
};

/* ---- the queues ----------------------------------------------------------------------- */

/* The map may change under its reader. */
static const uint8_t *import_perf_copy(struct perf_import *import,
				       const struct ky_perf_waiting *waiting)
{
	return memcpy(import->copy, waiting->bytes, waiting->size);
}

/* Nothing but a tracepoint's record is looked at. */
static int import_perf_emit_plain(struct perf_import *import, const struct ky_perf_waiting *waiting,
				  uint32_t cpu, struct kymo_error *err)
{
	const struct ky_perf_attr *attr = &import->perf.attrs.data[waiting->attr - 1];
	const uint8_t *raw = import_perf_copy(import, waiting) + attr->at_raw;
	uint32_t len = ky_foreign_u32(raw, false);

	if (len > (uint32_t)waiting->size - attr->at_raw - 4) {
		import->n_short++;
		return KYMO_OK;
	}
	return ky_foreign_kernel_record(&import->trace.kernel, cpu, (uint32_t)attr->config,
					waiting->ns, raw + 4, len, NULL, err);
}

static int import_perf_emit(struct perf_import *import, const struct ky_perf_waiting *waiting,
			    struct kymo_error *err)
{
	struct ky_perf_head head = {
		.bytes = waiting->attr ? import_perf_copy(import, waiting) : waiting->bytes,
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

static int import_perf_flush_queue(struct perf_import *import, struct ky_perf_queue *queue,
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
		ret = waiting->attr && has_kernel
			      ? import_perf_emit_plain(import, waiting, cpu, err)
			      : import_perf_emit(import, waiting, err);
	}
	queue->n_done = n;
	return ret;
}

/* All CPUs in the order of time: a copy of a stack is unwound with mappings that another CPU may have told of. */
static int import_perf_flush_merged(struct perf_import *import, uint64_t until_ns,
				    struct kymo_error *err)
{
	struct ky_perf_queue *queue;
	uint64_t second_ns;
	int ret = KYMO_OK;

	while (!ret && (queue = ky_perf_queue_first(&import->queues, until_ns, &second_ns)))
		ret = import_perf_flush_queue(import, queue, second_ns, err);
	return ret;
}

/* The first time in all queues that is known; 0: no record has a time. */
static uint64_t import_perf_first(struct perf_import *import)
{
	uint64_t first = 0;

	ky_vec_foreach(&import->queues.cpus, queue)
		ky_vec_foreach(&queue->records, record)
			if (record->ns && (!first || record->ns < first))
				first = record->ns;
	return first;
}

static int import_perf_flush(struct perf_import *import, uint64_t until_ns, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (import->queues.newest_ns > import->last_ns)
		import->last_ns = import->queues.newest_ns;
	if (!import->trace.has_begun) {
		uint64_t first = import_perf_first(import);

		/* Before the first event there is nothing to write; nor is the clock known. */
		if (!first && until_ns != UINT64_MAX)
			return KYMO_OK;
		ret = ky_import_perf_begin(&import->trace, &import->perf, first, err);
	}
	ky_vec_foreach(&import->queues.cpus, queue)
		ky_perf_queue_sort(queue);
	if (!ret && import->perf.has_user_stacks)
		ret = import_perf_flush_merged(import, until_ns, err);
	ky_vec_foreach(&import->queues.cpus, queue) {
		if (!ret)
			ret = import_perf_flush_queue(import, queue, until_ns, err);
		ky_perf_queue_drop(&import->queues, queue);
	}
	return ret;
}

static int import_perf_wait(struct perf_import *import, const struct ky_perf_head *head,
			    struct kymo_error *err)
{
	struct ky_perf_head kept = *head;
	struct ky_perf_waiting waiting = {.size = head->size};
	uint32_t cpu;

	kept.bytes = waiting.bytes = ky_perf_queue_copy(&import->queues, head->bytes, head->size);
	if (!kept.bytes)
		return ky_error_nomem(err);
	if (head->type == KY_PERF_MMAP && !import->perf.kernel_at)
		ky_perf_take_map(&import->perf, &kept);
	ky_perf_sample_place(&import->perf, &kept, &waiting.ns, &cpu);
	if (ky_perf_queue_add_copy(&import->queues, cpu, &waiting) < 0)
		return ky_error_nomem(err);
	return KYMO_OK;
}

/* ---- the file ------------------------------------------------------------------------- */

static int import_perf_take(struct perf_import *import, const struct ky_perf_head *head,
			    struct kymo_error *err)
{
	int ret;

	if (head->type != KY_PERF_FINISHED_ROUND) {
		if (head->type >= KY_PERF_USER)
			return KYMO_OK;
		ret = import_perf_wait(import, head, err);
		if (ret < 0 || import->queues.waiting_bytes < WAITING_MAX_BYTES)
			return ret;
		import->round_ns = import->queues.newest_ns;
	} else if (import->parts.path) {
		import->round_is_over = true;
		return KYMO_OK;
	}
	ret = import_perf_flush(import, import->round_ns, err);
	import->round_ns = import->queues.newest_ns;
	return ret;
}

/* A sample of @size bytes with a tracepoint's record in a fixed place. NULL: it is another one. */
static inline const struct ky_perf_attr *import_perf_plain(const struct perf_import *import,
							   const uint8_t *bytes, uint32_t size)
{
	const struct ky_perf_file *perf = &import->perf;
	const struct ky_perf_attr *attr;
	uintptr_t number;

	if (size < import->at_id + 8u)
		return NULL;
	number = ky_perf_known_id(perf, ky_foreign_u64(bytes + import->at_id, false));
	if (!number || number > perf->attrs.len || number > UINT16_MAX)
		return NULL;
	attr = &perf->attrs.data[number - 1];
	return attr->at_raw && attr->at_id == import->at_id && size >= attr->at_raw + 4u ? attr
											 : NULL;
}

static inline int import_perf_wait_plain(struct perf_import *import,
					 const struct ky_perf_attr *attr, const uint8_t *bytes,
					 uint16_t size)
{
	uint32_t cpu = attr->at_cpu ? ky_foreign_u32(bytes + attr->at_cpu, false) : 0;
	struct ky_perf_queue *queue = ky_perf_queue_of(&import->queues, cpu);
	struct ky_perf_waiting *waiting;

	if (!queue)
		return KYMO_E_MEMORY;
	waiting = ky_perf_queue_add(&import->queues, queue,
				    ky_foreign_u64(bytes + attr->at_time, false));
	if (!waiting)
		return KYMO_E_MEMORY;
	waiting->bytes = bytes;
	waiting->size = size;
	waiting->attr = (uint16_t)(attr - import->perf.attrs.data + 1);
	return KYMO_OK;
}

/* The record at @bytes, of @have, if it is one of the kernel, or ends a round. 1: it is taken; 0: it is not. */
static inline int import_perf_take_next(struct perf_import *import, const uint8_t *bytes,
					uint64_t have, struct kymo_error *err)
{
	uint32_t type = ky_foreign_u32(bytes, false);
	uint16_t size = ky_foreign_u16(bytes + 6, false);
	const struct ky_perf_attr *attr;
	struct ky_perf_head head;
	int ret;

	/* Both are read once: the map may change. */
	__asm__ volatile("" : "+r"(type), "+r"(size));
	if (size < KY_PERF_HEAD_BYTES || size > have ||
	    (type >= KY_PERF_USER && type != KY_PERF_FINISHED_ROUND))
		return 0;
	import->perf.at += size;
	attr = type == KY_PERF_SAMPLE ? import_perf_plain(import, bytes, size) : NULL;
	if (__builtin_expect(attr != NULL, 1))
		return import_perf_wait_plain(import, attr, bytes, size) < 0 ? ky_error_nomem(err)
									     : 1;
	head = (struct ky_perf_head){type, ky_foreign_u16(bytes + 4, false), size, bytes};
	ret = import_perf_take(import, &head, err);
	return ret < 0 ? ret : 1;
}

/*
 * Records in a row, of a file in this machine's byte order, without compressed ones: most of all records. Those that are not taken
 * here, and errors, are found in the usual way.
 */
static int import_perf_take_row(struct perf_import *import, struct kymo_error *err)
{
	struct ky_perf_file *perf = &import->perf;
	int taken = 1;

	import->at_id = perf->attrs.len ? perf->attrs.data[0].at_id : 0;
	if (perf->file.swap || perf->unpack || !import->at_id || !ky_foreign_map(&perf->file))
		return KYMO_OK;
	while (taken > 0 && perf->at < perf->end && !import->round_is_over &&
	       import->queues.waiting_bytes < WAITING_MAX_BYTES) {
		uint64_t left = perf->end - perf->at;

		if (left < KY_PERF_HEAD_BYTES)
			return KYMO_OK;
		if (left > AHEAD_BYTES)
			__builtin_prefetch(perf->file.map + perf->at + AHEAD_BYTES);
		taken = import_perf_take_next(import, perf->file.map + perf->at, left, err);
	}
	return taken < 0 ? taken : KYMO_OK;
}

static void import_perf_fini(struct perf_import *import)
{
	ky_perf_queues_fini(&import->queues);
	ky_perf_parts_fini(&import->parts);
	ky_import_perf_fini(&import->trace);
	ky_perf_close(&import->perf);
}

/* All records of a file, up to the break: @broken gets that; of a part, those of a round. 1: there are more; 0; negative. */
static int import_perf_read(struct perf_import *import, bool is_part, struct kymo_error *broken,
			    struct kymo_error *err)
{
	struct kymo_error why;
	struct ky_perf_head head;
	int ret, next;

	import->round_is_over = false;
	while ((next = ky_perf_next(&import->perf, &head, &why)) > 0) {
		ret = import_perf_take(import, &head, err);
		if (!ret)
			ret = import_perf_take_row(import, err);
		if (ret < 0)
			return ret;
		if (import->round_is_over && is_part)
			return 1;
		import->round_is_over = false;
	}
	if (next < 0 && !broken->code)
		*broken = why;
	else if (!broken->code && ky_foreign_is_cut(&import->perf.file))
		ky_foreign_bad(&import->perf.file, import->perf.at,
			       "the file became shorter while it was read", broken);
	/* What was good before is read all the same; an error of reading ends it. */
	if (next < 0 && ((next != KYMO_E_FORMAT && next != KYMO_E_LIMIT) ||
			 (!import->trace.has_begun && !import->queues.waiting_bytes))) {
		if (err)
			*err = *broken;
		return next;
	}
	return KYMO_OK;
}

static int import_perf_read_part(struct perf_import *import, struct ky_perf_part *part,
				 struct kymo_error *broken, struct kymo_error *err)
{
	int ret;

	ky_perf_part_swap(part, &import->perf);
	import->queues.newest_ns = 0;
	ret = import_perf_read(import, true, broken, err);
	ky_perf_part_swap(part, &import->perf);
	part->is_done = ret != 1;
	part->round_ns = part->newest_ns;
	if (import->queues.newest_ns > part->newest_ns)
		part->newest_ns = import->queues.newest_ns;
	return ret < 0 ? ret : KYMO_OK;
}

/* A round of each, again and again: what is older than all their rounds is in order. */
static int import_perf_read_parts(struct perf_import *import, struct kymo_error *broken,
				  struct kymo_error *err)
{
	uint64_t until = 0;
	int ret = KYMO_OK;

	import->perf.is_cut = false;
	while (until != UINT64_MAX && !ret) {
		ky_vec_foreach(&import->parts.parts, part)
			if (!part->is_done && !ret)
				ret = import_perf_read_part(import, part, broken, err);
		until = ky_perf_parts_until(&import->parts);
		if (!ret && until && until != UINT64_MAX)
			ret = import_perf_flush(import, until, err);
	}
	return ret;
}

static void import_perf_say(const struct perf_import *import)
{
	const char *path = import->perf.path;

	if (import->n_short)
		ky_log_warning(import->log,
			       "%s: %llu samples are shorter than their event says; "
			       "they are left out",
			       path, (unsigned long long)import->n_short);
	if (import->trace.stacks.n_left_out)
		ky_log_warning(import->log,
			       "%s: %llu copies of stacks are not unwound: the file is of another "
			       "kind of machine, or says nothing of the processes, or libdw is not "
			       "installed",
			       path, (unsigned long long)import->trace.stacks.n_left_out);
	if (import->perf.n_aux_left_out)
		ky_log_warning(import->log,
			       "%s: %llu pieces of AUX data are left out: perf recorded them with "
			       "several threads",
			       path, (unsigned long long)import->perf.n_aux_left_out);
}

static int import_perf_run(struct perf_import *import, struct kymo_error *broken,
			   struct kymo_error *err)
{
	int ret = import_perf_read(import, false, broken, err);

	if (!ret && import->parts.path)
		ret = import_perf_read_parts(import, broken, err);
	if (!ret)
		ret = import_perf_flush(import, UINT64_MAX, err);
	if (!ret)
		ret = ky_import_perf_aux(&import->trace, &import->perf, import->last_ns, err);
	if (!ret)
		ret = ky_import_perf_end(&import->trace, err);
	if (!ret)
		import_perf_say(import);
	return ret;
}

static int import_perf_open(struct ky_import *imports, const char *path, const struct ky_log *log,
			    struct kymo_error *err)
{
	struct perf_import import = {.log = log};
	struct kymo_error broken = {0};
	bool is_directory =
		imports->unpacked_fd < 0 && ky_perf_parts_find(path, &import.parts.path);
	int ret = ky_perf_open(&import.perf, is_directory ? import.parts.path : path,
			       imports->unpacked_fd, err);

	import.perf.path = path;
	if (!ret && is_directory)
		ret = ky_perf_parts_open(&import.parts, path, &import.perf, err);
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
