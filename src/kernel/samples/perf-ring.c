/* SPDX-License-Identifier: MIT */
#include "kernel/samples/perf-ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

int ky_perf_ring_map(struct ky_perf_ring *ring, int fd, uint64_t bytes, struct kymo_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	void *at;

	ring->whole = malloc(KY_PERF_RECORD_MAX);
	if (!ring->whole)
		return ky_error_nomem(err);
	do {
		at = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED)
			break;
		bytes /= 2;
	} while (bytes >= page && (errno == ENOMEM || errno == EPERM));
	if (at == MAP_FAILED)
		return ky_error_errno(err, errno, "cannot map the ring buffer of samples");
	ring->page = at;
	ring->data = (uint8_t *)at + page;
	ring->bytes = bytes;
	return KYMO_OK;
}

void ky_perf_ring_unmap(struct ky_perf_ring *ring)
{
	if (ring->page)
		(void)munmap(ring->page, ring->bytes + (uint64_t)sysconf(_SC_PAGESIZE));
	ring->page = NULL;
	free(ring->whole);
	ring->whole = NULL;
}

void ky_perf_ring_look(struct ky_perf_ring *ring)
{
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

const struct perf_event_header *ky_perf_ring_next(struct ky_perf_ring *ring)
{
	uint64_t at = ring->tail & (ring->bytes - 1);
	const struct perf_event_header *record = (const void *)(ring->data + at);
	uint64_t first = ring->bytes - at;

	/* Records are multiples of 8 bytes, and so is the ring: the header is whole. */
	if (ring->head - ring->tail < sizeof(*record))
		return NULL;
	if (record->size < sizeof(*record) || record->size > ring->head - ring->tail) {
		ring->tail = ring->head;
		return NULL;
	}
	if (record->size <= first)
		return record;
	memcpy(ring->whole, ring->data + at, first);
	memcpy(ring->whole + first, ring->data, record->size - first);
	return (const void *)ring->whole;
}

void ky_perf_ring_advance(struct ky_perf_ring *ring, const struct perf_event_header *record)
{
	ring->tail += record->size;
}

void ky_perf_ring_release(struct ky_perf_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}
