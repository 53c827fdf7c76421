/* SPDX-License-Identifier: MIT */
/*
 * The result of one slice (slices.h), lines and the losses between them, and its writing in order.
 * Warnings of sources come at the end.
 */
#ifndef KY_FLOW_PARALLEL_SLICE_WRITE_H
#define KY_FLOW_PARALLEL_SLICE_WRITE_H

#include "base/strbuf.h"
#include "flow/parallel/slices.h"

/* A loss to report after this many bytes of the lines. */
struct ky_slice_mark {
	size_t at;
	struct ky_loss *loss;
};

/* A warning of a source of the slice. */
struct ky_slice_warning {
	size_t source;
	unsigned int kind; /* see ky_source_warned() */
	enum ky_log_level level;
	char *text;
};

struct ky_slice_log;

struct ky_slice_lines {
	struct ky_sink *sink; /* has the lines */
	struct ky_slice_log *logs;
	KY_VEC(struct ky_slice_mark) marks;
	KY_VEC(struct ky_slice_warning) warnings;
};

/*
 * Takes @sink over; NULL: memory is out. @sources: n, whose warnings go here from now on. Returns 0
 * or KYMO_E_MEMORY.
 */
int ky_slice_lines_init(struct ky_slice_lines *lines, struct ky_sink *sink,
			struct ky_flow *const *sources, size_t n);
void ky_slice_lines_fini(struct ky_slice_lines *lines);
/* Drops everything: a new slice begins. */
void ky_slice_lines_begin(struct ky_slice_lines *lines);
/* Adds @loss after the present lines. Returns 0 or KYMO_E_MEMORY. */
int ky_slice_lines_loss(struct ky_slice_lines *lines, const struct ky_loss *loss);

static inline size_t ky_slice_lines_held(const struct ky_slice_lines *lines)
{
	return lines->sink->ops->held(lines->sink);
}

/* The warnings of a source, for the end. */
struct ky_slice_told {
	unsigned int kinds;
	struct ky_log_keep log;
};

struct ky_slice_writer {
	const struct ky_slices *how;
	const struct ky_copies *copies;
	struct ky_slice_told *told; /* by source */
	struct ky_strbuf pending;
	struct ky_sink_before before;
	uint64_t n_bytes; /* written so far */
};

/* Returns 0 or KYMO_E_MEMORY. */
int ky_slice_writer_init(struct ky_slice_writer *writer, const struct ky_slices *how,
			 const struct ky_copies *copies);
void ky_slice_writer_fini(struct ky_slice_writer *writer);
/* Writes @lines, the next ones in order. Returns 0 or an error of writing. */
int ky_slice_write(struct ky_slice_writer *writer, struct ky_slice_lines *lines,
		   struct kymo_error *err);
/*
 * The end: passes the sources' warnings on, stream by stream. @failed: nothing more can be written.
 * Returns 0 or an error of writing.
 */
int ky_slice_writer_end(struct ky_slice_writer *writer, bool failed, struct kymo_error *err);

#endif
