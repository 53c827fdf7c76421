/* SPDX-License-Identifier: MIT */
/*
 * Reading the ring buffer of one CPU, page (sub-buffer) by page, in one of three ways. They can be
 * changed at any time: what was handed out in one way is not handed out again in another, and nothing
 * is left out, since where the reader is stands in the kernel.
 *
 *	splice	Whole pages are moved out: the kernel swaps each for an empty one and looks at none
 *		of its events. It leaves the page that is being written; read() copies that one,
 *		event by event, when it is asked for.
 *	mmap	The ring is mapped (cpu-ring-map.h) and nothing is copied; but the ioctl that moves the
 *		reader on walks over the events of a page, whole or not.
 *	read	read() for all: swapped pages and copied ones, as they come.
 *
 * On the reference machine, events of 24 bytes and pages of 64 KiB: a whole page costs 2 ns per event
 * by splice or read, and 18 by mmap; a page that is being written 18 by any of them, and 2.7 us more
 * by read, which fetches and clears a page for it. Mapping and unmapping 4 MiB costs 61 us. So AUTO
 * reads by splice, and maps a ring once it has given nothing but pages that were being written for a
 * while, until whole pages come again.
 *
 * Threads: one at a time per ring.
 */
#ifndef KY_KERNEL_TRACEFS_CPU_RING_H
#define KY_KERNEL_TRACEFS_CPU_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/tracefs/page.h"
#include "kernel/tracefs/cpu-ring-map.h"
#include "kernel/tracefs/tracefs.h"

enum ky_cpu_ring_way {
	KY_CPU_RING_AUTO,
	KY_CPU_RING_MMAP,
	KY_CPU_RING_SPLICE,
	KY_CPU_RING_READ,
};

/* For AUTO: so many rounds in a row without a whole page, and the ring is mapped... */
#define KY_CPU_RING_LIGHT_ROUNDS 32
/* ...so many whole pages in one round, and it is unmapped. */
#define KY_CPU_RING_HEAVY_PAGES 2

/*
 * What one splice() moves, at most; but a whole sub-buffer. The kernel fills the place of each with a page that it
 * has to clear first, except one: that which was given back last. So few large sub-buffers go one by one.
 */
#define KY_CPU_RING_SPLICE_BYTES 65536

struct ky_cpu_ring {
	int fd; /* per_cpu/cpuN/trace_pipe_raw; readable when the ring is filled to buffer_percent */
	int pipe[2];
	uint32_t cpu;
	uint32_t page_bytes;
	struct ky_page_layout layout;
	enum ky_cpu_ring_way asked; /* the argument of ky_cpu_ring_open() */
	enum ky_cpu_ring_way way;   /* never AUTO */
	struct ky_cpu_ring_map map;
	bool no_map;	     /* AUTO tried, and the kernel refused */
	size_t splice_bytes; /* in one call */
	uint32_t pages_in_pipe;
	bool is_partial; /* what was handed out last was being written: all that there was then */
	uint32_t whole_pages, light_rounds; /* for AUTO; a round ends when there is no whole page */
	uint8_t *page;			    /* what was copied last */
	char path[192];
	bool is_file;	    /* pages of a raw recording */
	uint32_t bad_pages; /* in a file: those that contradict themselves, and are left out */
};

/*
 * @page_bytes: the size of a sub-buffer, header included.
 * 0, KYMO_E_IO, KYMO_E_MEMORY; KYMO_E_UNSUPPORTED: this kernel cannot be read in this way.
 */
int ky_cpu_ring_open(struct ky_cpu_ring *ring, const struct ky_instance *instance, uint32_t cpu,
		     uint32_t page_bytes, const struct ky_page_layout *layout,
		     enum ky_cpu_ring_way way, struct kymo_error *err);
/*
 * Read pages from file @path, one after the other; no file is an empty one. What is cut at its end is
 * left out. 0, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_cpu_ring_open_file(struct ky_cpu_ring *ring, const char *path, uint32_t cpu,
			  uint32_t page_bytes, const struct ky_page_layout *layout,
			  struct kymo_error *err);
void ky_cpu_ring_close(struct ky_cpu_ring *ring);

/*
 * The next page, or the part of one that was not handed out yet; its bytes are valid until the
 * next call.
 *
 * @partial: the page that is being written too. (mmap and read may hand it out unasked.)
 * Returns 1, 0 when there is nothing, KYMO_E_IO, KYMO_E_FORMAT, KYMO_E_UNSUPPORTED.
 */
int ky_cpu_ring_next(struct ky_cpu_ring *ring, bool partial, struct ky_page *page,
		     struct kymo_error *err);

/*
 * The same for callers that do not parse pages: copies the page to @to, page_bytes long, by splice, else by read.
 */
int ky_cpu_ring_copy(struct ky_cpu_ring *ring, bool partial, uint8_t *to, struct kymo_error *err);

/*
 * The same without a copy: moves a whole page into @pipe_fd, which is empty. KYMO_E_UNSUPPORTED: use
 * ky_cpu_ring_copy().
 */
int ky_cpu_ring_move(struct ky_cpu_ring *ring, int pipe_fd, struct kymo_error *err);

/*
 * Read it in another way from now on, not AUTO. What was handed out is no longer valid.
 * 0; KYMO_E_UNSUPPORTED, KYMO_E_FORMAT: it cannot be mapped, and is read as before.
 */
int ky_cpu_ring_switch(struct ky_cpu_ring *ring, enum ky_cpu_ring_way way, struct kymo_error *err);

/* Does this errno of read() or splice() say that there is nothing in the ring, now or at all? */
bool ky_cpu_ring_is_empty(int error);

/* What the kernel counted, from per_cpu/cpuN/stats. */
struct ky_cpu_ring_stats {
	uint64_t entries;	 /* still in the ring */
	uint64_t overrun;	 /* overwritten before they were read */
	uint64_t commit_overrun; /* lost to nested writers */
	uint64_t dropped;
	uint64_t read;
	uint64_t bytes; /* in the ring, not read yet */
};
int ky_cpu_ring_stats(const struct ky_instance *instance, uint32_t cpu,
		      struct ky_cpu_ring_stats *stats, struct kymo_error *err);

#endif
