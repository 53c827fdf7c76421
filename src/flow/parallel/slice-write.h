/* SPDX-License-Identifier: MIT */
/*
 * What becomes of one slice (slices.h): lines, and what is to be told between them; and writing that
 * in order. What sources warn of is told in the end.
 */
#ifndef KY_FLOW_PARALLEL_SLICE_WRITE_H
#define KY_FLOW_PARALLEL_SLICE_WRITE_H

#include "base/strbuf.h"
#include "flow/parallel/slices.h"

/* To be told when so many bytes of the lines are written. */
struct ky_slice_mark {
	size_t at;
	struct ky_loss *loss;
};

/* What a source of the slice warned of. */
struct ky_slice_warning {
	size_t source;
	unsigned int kind; /* see ky_source_warned() */
	enum ky_log_level level;
	char *text;
};

struct ky_slice_log;

struct ky_slice_lines {
	struct ky_sink *sink; /* holds them */
	struct ky_slice_log *logs;
	KY_VEC(struct ky_slice_mark) marks;
	KY_VEC(struct ky_slice_warning) warnings;
};

/* @sink is taken over; NULL: out of memory. @sources: n, warn here from now on. 0 or KYMO_E_MEMORY. */
int ky_slice_lines_init(struct ky_slice_lines *lines, struct ky_sink *sink,
			struct ky_flow *const *sources, size_t n);
void ky_slice_lines_fini(struct ky_slice_lines *lines);
/* Forget everything: a new slice begins. */
void ky_slice_lines_begin(struct ky_slice_lines *lines);
/* @loss is to be told behind the lines that there are. 0 or KYMO_E_MEMORY. */
int ky_slice_lines_loss(struct ky_slice_lines *lines, const struct ky_loss *loss);

static inline size_t ky_slice_lines_held(const struct ky_slice_lines *lines)
{
	return lines->sink->ops->held(lines->sink);
}

/* What is to be told of a source in the end. */
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
	uint64_t n_bytes; /* so far */
};

/* 0 or KYMO_E_MEMORY. */
int ky_slice_writer_init(struct ky_slice_writer *writer, const struct ky_slices *how,
			 const struct ky_copies *copies);
void ky_slice_writer_fini(struct ky_slice_writer *writer);
/* Write what @lines have, which come next. 0 or what writing gives. */
int ky_slice_write(struct ky_slice_writer *writer, struct ky_slice_lines *lines,
		   struct kymo_error *err);
/*
 * That was all: sources' warnings are told, stream by stream. @failed: nothing more can be written. 0 or what
 * writing gives.
 */
int ky_slice_writer_end(struct ky_slice_writer *writer, bool failed, struct kymo_error *err);

#endif
