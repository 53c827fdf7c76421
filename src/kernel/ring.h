/* SPDX-License-Identifier: MIT */
/*
 * Reading the ring buffer of one CPU: whole pages (sub-buffers), as the kernel filled them.
 *
 * Full pages are moved out of the ring with splice(): the kernel swaps the page for an empty
 * one, without looking at its events. (The mmap()ed ring of Linux 6.10 was measured too: its
 * ioctl walks the events of each page under the buffer's lock, 50 ns per event on the reference
 * machine against 5 ns this way.) splice() leaves the page that is being written where it
 * is; read() takes what is in it, event by event, and is used for that page alone.
 *
 * Threads: one at a time per ring.
 */
#ifndef KY_KERNEL_RING_H
#define KY_KERNEL_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/tracefs.h"

struct ky_ring {
	int fd; /* per_cpu/cpuN/trace_pipe_raw; readable when the ring is filled to buffer_percent */
	int pipe[2];
	uint32_t cpu;
	uint32_t page_bytes;
	uint32_t pages_in_pipe;
	bool no_splice;	 /* this kernel cannot: read() everything */
	bool is_partial; /* the page handed out last was being written: what there was of it */
	uint8_t *page;	 /* the page handed out last */
	char path[192];
};

/* @page_bytes: the size of a sub-buffer, header included. 0, KYMO_E_IO, KYMO_E_MEMORY. */
int ky_ring_open(struct ky_ring *ring, const struct ky_instance *instance, uint32_t cpu,
		 uint32_t page_bytes, struct kymo_error *err);
void ky_ring_close(struct ky_ring *ring);

/*
 * The next page; *page is valid until the next call.
 *
 * @partial: take the page that is being written too.
 * Returns its length in bytes, 0 when there is none, KYMO_E_IO.
 */
int ky_ring_next(struct ky_ring *ring, bool partial, const uint8_t **page, struct kymo_error *err);

/* What the kernel counted, from per_cpu/cpuN/stats. */
struct ky_ring_stats {
	uint64_t entries;	 /* still in the ring */
	uint64_t overrun;	 /* overwritten before they were read */
	uint64_t commit_overrun; /* lost to nested writers */
	uint64_t dropped;
	uint64_t read;
};
int ky_ring_stats(const struct ky_instance *instance, uint32_t cpu, struct ky_ring_stats *stats,
		  struct kymo_error *err);

#endif
