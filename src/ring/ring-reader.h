/* SPDX-License-Identifier: MIT */
/*
 * The shared part of the reader. All code reads shared memory through ky_rb_get() and similar
 * functions, each word once, and checks the result before use: writers are not trusted.
 */
#ifndef KY_RING_RING_READER_H
#define KY_RING_RING_READER_H

#include <kymo/ring.h>

#include "ring/ring-guard.h"

/* A consistent reading of a buffer's state. */
struct ky_rb_view {
	uint64_t position;
	struct kymo_ring_point point;
	uint64_t lost;
};

struct ky_rb_buffer {
	uint64_t
		start; /* of the sub-buffer in reading: position below which everything is released */
	uint64_t taken; /* position up to which the reader released chunks */
	struct kymo_ring_point taken_point;
	uint64_t taken_lost;
	bool is_broken; /* the buffer's head was malformed: the reader reads nothing more */
	uint64_t seen;	/* sub-buffer at the last kymo_ring_reader_wait() */
	uint64_t snapshot_at;
	struct ky_rb_view snapshot_end;
	struct ky_rb_view forgotten; /* snapshots begin here; position 0: at the oldest record */
};

struct kymo_ring_reader {
	struct kymo_ring_info info;
	struct kymo_ring_reader_options options;
	struct kymo_ring_file head; /* a copy from the ring's opening, in our byte order */
	uint64_t buffer_bytes;
	uint32_t n_buffers; /* including the spare buffer */
	int fd;
	struct ky_rb_guard guard;
	struct kymo_ring_file *file; /* the mapping */
	uint8_t *copy;		     /* a sub-buffer, for snapshots */
	uint32_t n_requests;	     /* calls of kymo_ring_reader_arm() */
	uint64_t header[KYMO_RING_SUBBUF_HEADER_MAX_BYTES / 8];
	struct ky_rb_buffer buffers[];
};

/* Reads a word of the shared memory, in our byte order. */
uint64_t ky_rb_get(const struct kymo_ring_reader *reader, const uint64_t *word);

struct kymo_ring_control *ky_rb_reader_control(const struct kymo_ring_reader *reader,
					       uint32_t buffer);

/*
 * After a snapshot of all buffers: future snapshots leave out its records. Unlike
 * kymo_ring_snapshot_forget(), which leaves out later ones, too.
 */
void ky_rb_forget_snapshot(struct kymo_ring_reader *reader);

/* The slot of the sub-buffer that starts at @start; a copy in our byte order. */
void ky_rb_reader_slot(const struct kymo_ring_reader *reader, uint32_t buffer, uint64_t start,
		       struct kymo_ring_slot *slot);

/* The sub-buffer that starts at @start, in the mapping. */
const uint8_t *ky_rb_reader_data(const struct kymo_ring_reader *reader, uint32_t buffer,
				 uint64_t start);

/* Looks at a buffer that is being written. Each takes about as long as a writer's record. */
#define KY_RB_LOOKS_MAX 4096

/* Reads a buffer's state. Returns false when writers changed it in every try. */
bool ky_rb_look(const struct kymo_ring_reader *reader, uint32_t buffer, struct ky_rb_view *view);

/*
 * Whether the slot of a sub-buffer is plausible; @closed: with the members of a closed sub-buffer.
 */
bool ky_rb_slot_ok(const struct kymo_ring_reader *reader, const struct kymo_ring_slot *slot,
		   uint64_t start, bool closed);

/*
 * Fill @chunk with the records of the sub-buffer at slot->start from position @from up to @end.
 * @data: the sub-buffer, in the mapping or copied.
 */
void ky_rb_fill_chunk(struct kymo_ring_reader *reader, uint32_t buffer,
		      const struct kymo_ring_slot *slot, const uint8_t *data,
		      const struct ky_rb_view *from, const struct ky_rb_view *end, bool is_closed,
		      struct kymo_ring_chunk *chunk);

/* Returns KYMO_OK, or KYMO_E_IO: the file was truncated while it was mapped. */
int ky_rb_check_cut(const struct kymo_ring_reader *reader, struct kymo_error *err);

#endif
