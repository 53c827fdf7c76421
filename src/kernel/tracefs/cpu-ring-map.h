/* SPDX-License-Identifier: MIT */
/*
 * The ring buffer of one CPU, mapped into memory (Linux 6.10 and later).
 *
 * The first page of the mapping, the meta page, says how the sub-buffers behind it lie, and which
 * of them is the reader's. An ioctl moves the reader on: to what was added to its sub-buffer, or, once
 * that is used up, to the next one. The writer never overwrites the reader's sub-buffer, but may
 * still add to it; so what is to be read ends where the ioctl said, not where the sub-buffer's header
 * says. Nothing is copied.
 *
 * Whatever the ioctl has passed counts as read, in every way of reading this ring: so this mapping
 * can begin where read() or splice() left off, in the middle of a page too, and the other way round.
 * While it is mapped, splice() copies, and the ring cannot be resized.
 *
 * Threads: one at a time per ring.
 */
#ifndef KY_KERNEL_TRACEFS_CPU_RING_MAP_H
#define KY_KERNEL_TRACEFS_CPU_RING_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "kernel/tracefs/page.h"

/* The meta page: struct trace_buffer_meta of linux/trace_mmap.h, which older headers lack. */
struct ky_cpu_ring_meta {
	uint32_t meta_page_bytes;
	uint32_t meta_struct_bytes;
	uint32_t subbuf_bytes; /* header included */
	uint32_t n_subbufs;    /* the reader's included */
	struct {
		uint64_t lost_events; /* not used: the pages say it, and `stats` at the end */
		uint32_t id;	      /* which sub-buffer is the reader's */
		uint32_t read;	      /* bytes behind its header that were handed out */
	} reader;
	uint64_t flags;
	uint64_t entries, overrun, read;
};

/* A larger ring is not mapped: the kernel would need much contiguous memory for a list of its pages. */
#define KY_CPU_RING_MAP_MAX_BYTES (UINT64_C(1) << 30)

struct ky_cpu_ring_map {
	int fd; /* trace_pipe_raw, not owned */
	struct ky_page_layout layout;
	const struct ky_cpu_ring_meta *meta; /* NULL: not mapped */
	const uint8_t *data;
	size_t meta_bytes, data_bytes;
	uint32_t subbuf_bytes, n_subbufs;
	uint32_t id, read;   /* what was handed out last ends here */
	struct ky_page page; /* of sub-buffer `id`, where `read` is not 0; at or before `read` */
	bool finished;	     /* nothing will be added to sub-buffer `id` */
};

/*
 * Does @meta describe a ring that can be used? @system_page_bytes: sysconf(_SC_PAGESIZE);
 * @subbuf_bytes: what a sub-buffer is known to have. 0, KYMO_E_FORMAT; @err says what is wrong.
 */
int ky_cpu_ring_meta_check(const struct ky_cpu_ring_meta *meta, uint32_t system_page_bytes,
			   uint32_t subbuf_bytes, const struct ky_page_layout *layout,
			   struct kymo_error *err);

/*
 * Map the ring that @fd reads. @subbuf_bytes: as above.
 * 0; KYMO_E_UNSUPPORTED: the kernel refuses (too old, out of memory, ring too large);
 * KYMO_E_FORMAT: it offers what cannot be used. On failure nothing is mapped.
 */
int ky_cpu_ring_map_open(struct ky_cpu_ring_map *map, int fd, uint32_t subbuf_bytes,
			 const struct ky_page_layout *layout, struct kymo_error *err);
/* Also of one that is not mapped, but zero. Pages that were handed out are gone. */
void ky_cpu_ring_map_close(struct ky_cpu_ring_map *map);

/*
 * What comes next; its bytes are valid until the next call. *partial: it was being written,
 * and all that was complete has been handed out now.
 * 1; 0: there is nothing more; KYMO_E_IO; KYMO_E_FORMAT.
 */
int ky_cpu_ring_map_next(struct ky_cpu_ring_map *map, struct ky_page *page, bool *partial,
			 struct kymo_error *err);

#endif
