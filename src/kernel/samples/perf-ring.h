/* SPDX-License-Identifier: MIT */
/*
 * The ring into which the kernel writes the records of perf events, mapped.
 *
 *	ky_perf_ring_look()	how far the kernel has come
 *	ky_perf_ring_next()	the oldest record before there
 *	ky_perf_ring_advance()	it is done
 *	ky_perf_ring_release()	the kernel may overwrite what is done
 *
 * Threads: one at a time per ring; the kernel writes beside it. The kernel's store of data_head pairs with the load in
 * look(), the store of data_tail in release() with the kernel's load.
 */
#ifndef KY_KERNEL_SAMPLES_PERF_RING_H
#define KY_KERNEL_SAMPLES_PERF_RING_H

#include <stdint.h>

#include <linux/perf_event.h>

#include <kymo/error.h>

#define KY_PERF_RECORD_MAX 65536u /* bytes: the size has 16 bits */

struct ky_perf_ring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	uint8_t *data;
	uint64_t bytes; /* of data; a power of two */
	uint64_t head, tail;
	uint8_t *whole; /* a record that goes over the end of the ring */
};

/* @bytes: a power of two, at least a page. Halves it while the kernel refuses, down to a page. 0, KYMO_E_PERMISSION or KYMO_E_MEMORY. */
int ky_perf_ring_map(struct ky_perf_ring *ring, int fd, uint64_t bytes, struct kymo_error *err);
void ky_perf_ring_unmap(struct ky_perf_ring *ring);

void ky_perf_ring_look(struct ky_perf_ring *ring);
/* NULL: the kernel has written no more. Valid until advance. */
const struct perf_event_header *ky_perf_ring_next(struct ky_perf_ring *ring);
void ky_perf_ring_advance(struct ky_perf_ring *ring, const struct perf_event_header *record);
void ky_perf_ring_release(struct ky_perf_ring *ring);

#endif
