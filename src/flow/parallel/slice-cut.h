/* SPDX-License-Identifier: MIT */
/*
 * The cuts between slices (slices.h). A cut at time T leaves in each stream everything before its
 * first entry at or after T. The cutter finds that place by decoding the slice, which must happen
 * once anyway. When the selection has hardly any events, it goes over the streams without decoding,
 * and skips whole packets by their times.
 */
#ifndef KY_FLOW_PARALLEL_SLICE_CUT_H
#define KY_FLOW_PARALLEL_SLICE_CUT_H

#include "flow/graph/select.h"
#include "flow/graph/source.h"

struct ky_cutter {
	struct ky_flow **sources; /* its own */
	struct ky_flow **at; /* at the begin of the next slice: the cutter's own, or a copy's */
	size_t n;
	bool decode;	  /* the cutter decodes slices */
	int64_t end_ns;	  /* upper bound of slices; INT64_MAX: the streams' ends */
	int64_t from_ns;  /* the earliest entry of the next slice */
	uint64_t step_ns; /* length of the last slice */
	bool careful;	  /* the packets' own times were wrong before */
	bool first;	  /* from_ns is unknown yet */
	bool ended;
};

/* @copy: the cutter takes its sources. @selection: the selection of the copies. */
int ky_cutter_init(struct ky_cutter *cutter, const struct ky_copy *copy,
		   const struct ky_selection *selection, struct kymo_error *err);

/*
 * Cut off the next slice, of about @bytes of all streams together; the graph of @copy delivers it.
 * Until the next call, its sources may be at the cutter's place; the graph is not affected when the
 * cutter decoded the slice. @ends: n places, the expected ends. cutter->ended: the slice is the
 * last one. Returns its size in bytes.
 */
uint64_t ky_cutter_next(struct ky_cutter *cutter, const struct ky_copy *copy, uint64_t bytes,
			struct ky_source_place *ends);

/* The slice of @copy did not end at the expected place: continues from there. */
void ky_cutter_correct(struct ky_cutter *cutter, const struct ky_copy *copy);

#endif
