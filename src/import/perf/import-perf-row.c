/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "import/perf/import-perf-internal.h"

/* What the CPU fetches from memory before it is looked at. */
#define AHEAD_BYTES 1024u
/* So much is read at once: it stays in the processor's cache until it is handed on. */
#define ROW_BYTES ((size_t)256 << 10)

/* A sample of @size bytes with a tracepoint's record in a fixed place. NULL: it is another one. */
static inline const struct ky_perf_attr *import_perf_row_plain(const struct ky_perf_import *import,
							       const uint8_t *bytes, uint32_t size)
{
	const struct ky_perf_file *perf = &import->perf;
	const struct ky_perf_attr *attr;
	uintptr_t number;

	if (size < import->at_id + 8u)
		return NULL;
	number = ky_perf_known_id(perf, ky_foreign_u64(bytes + import->at_id, false));
	if (!number || number > perf->attrs.len || number > KY_PERF_PLAIN_ATTRS_MAX)
		return NULL;
	attr = &perf->attrs.data[number - 1];
	return attr->at_raw && attr->at_id == import->at_id && size >= attr->at_raw + 4u ? attr
											 : NULL;
}

__attribute__((always_inline)) static inline int
import_perf_row_wait(struct ky_perf_import *import, const struct ky_perf_attr *attr,
		     const uint8_t *bytes, uint16_t size, struct kymo_error *err)
{
	uint32_t cpu = attr->at_cpu ? ky_foreign_u32(bytes + attr->at_cpu, false) : 0;
	uint64_t ns = ky_foreign_u64(bytes + attr->at_time, false);
	struct ky_perf_waiting *waiting;
	struct ky_perf_queue *queue;

	if (ky_perf_queue_is_beyond(cpu)) {
		ky_perf_import_beyond(import, cpu, import->perf.at - size);
		return 1;
	}
	queue = ky_perf_queue_of(&import->queues, cpu);
	waiting = queue ? ky_perf_queue_add(&import->queues, queue, ns) : NULL;
	if (!waiting)
		return ky_error_nomem(err);
	waiting->bytes = bytes;
	waiting->size = size;
	waiting->attr = (uint16_t)(attr - import->perf.attrs.data + 1);
	if (!import->is_early) {
		waiting->attr |= KY_PERF_IN_MAP;
		return 1;
	}
	queue->has_row = true;
	if (__builtin_expect(ns < queue->handed_ns, 0))
		return ky_perf_import_late(import, err);
	if (__builtin_expect(queue->records.len < KY_PERF_EARLY_MAX, 1))
		return 1;
	return ky_perf_import_hand(import, queue, err) < 0 ? KYMO_E_IO : 1;
}

/* The record at @bytes, of @have, if it is one of the kernel, or ends a round. 1: it is taken; 0: it is not. */
__attribute__((always_inline)) static inline int import_perf_row_next(struct ky_perf_import *import,
								      const uint8_t *bytes,
								      uint64_t have,
								      struct kymo_error *err)
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
	attr = type == KY_PERF_SAMPLE ? import_perf_row_plain(import, bytes, size) : NULL;
	if (__builtin_expect(attr != NULL, 1))
		return import_perf_row_wait(import, attr, bytes, size, err);
	head = (struct ky_perf_head){type, ky_foreign_u16(bytes + 4, false), size, bytes};
	import->perf.record_at = import->perf.at - size;
	ret = ky_perf_import_take(import, &head, err);
	return ret < 0 ? ret : 1;
}

/* ---- the map -------------------------------------------------------------------------- */

/* Records that wait for the ends of rounds stay in the file's map, until the first round is over. */
static int import_perf_row_mapped(struct ky_perf_import *import, struct kymo_error *err)
{
	struct ky_perf_file *perf = &import->perf;
	int taken = 1;

	if (!ky_foreign_map(&perf->file))
		return KYMO_OK;
	while (taken > 0 && perf->at < perf->end && !import->round_is_over && !import->is_early &&
	       import->queues.waiting_bytes < KY_PERF_WAITING_MAX_BYTES) {
		uint64_t left = perf->end - perf->at;

		if (left < KY_PERF_HEAD_BYTES)
			return KYMO_OK;
		if (left > AHEAD_BYTES)
			__builtin_prefetch(perf->file.map + perf->at + AHEAD_BYTES);
		taken = import_perf_row_next(import, perf->file.map + perf->at, left, err);
	}
	return taken < 0 ? taken : KYMO_OK;
}

/* ---- early records -------------------------------------------------------------------- */

/* Reads on from perf->at. What waits in the row is copied. False: there is no more, or it cannot be read. */
static int import_perf_row_fill(struct ky_perf_import *import, struct kymo_error *err)
{
	const struct ky_perf_file *perf = &import->perf;
	struct ky_perf_row *row = &import->row;
	uint64_t left = perf->end - perf->at;
	ssize_t got;

	if (!row->bytes)
		row->bytes = malloc(ROW_BYTES);
	if (!row->bytes || ky_perf_queues_keep(&import->queues) < 0)
		return ky_error_nomem(err);
	if (import->queues.waiting_bytes >= KY_PERF_WAITING_MAX_BYTES &&
	    ky_perf_import_flush(import, import->queues.newest_ns, err) < 0)
		return KYMO_E_IO;
	row->at = perf->at;
	row->len = 0;
	do {
		got = pread(perf->file.fd, row->bytes, left < ROW_BYTES ? left : ROW_BYTES,
			    (off_t)perf->at);
	} while (got < 0 && errno == EINTR);
	row->len = got > 0 ? (size_t)got : 0;
	return row->len >= KY_PERF_HEAD_BYTES;
}

static int import_perf_row_early(struct ky_perf_import *import, struct kymo_error *err)
{
	const struct ky_perf_file *perf = &import->perf;
	const struct ky_perf_row *row = &import->row;
	int taken = import_perf_row_fill(import, err);

	while (taken > 0) {
		uint64_t left = row->len - (perf->at - row->at);

		if (perf->at >= perf->end)
			return KYMO_OK;
		taken = left < KY_PERF_HEAD_BYTES
				? 0
				: import_perf_row_next(import, row->bytes + (perf->at - row->at),
						       left, err);
		/* The rest of this record is not in the row. */
		if (!taken && row->at != perf->at && left <= UINT16_MAX)
			taken = import_perf_row_fill(import, err);
	}
	return taken < 0 ? taken : KYMO_OK;
}

int ky_perf_import_row(struct ky_perf_import *import, struct kymo_error *err)
{
	const struct ky_perf_file *perf = &import->perf;
	int ret = KYMO_OK;

	import->at_id = perf->attrs.len ? perf->attrs.data[0].at_id : 0;
	if (perf->file.swap || perf->unpack || !import->at_id)
		return KYMO_OK;
	if (!import->is_early)
		ret = import_perf_row_mapped(import, err);
	if (!ret && import->is_early)
		ret = import_perf_row_early(import, err);
	return ret;
}
