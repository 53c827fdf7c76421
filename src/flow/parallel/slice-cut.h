/* SPDX-License-Identifier: MIT */
/*
 * Where slices (slices.h) are cut. A cut at time T leaves in each stream everything before its
 * first entry at or after T. Where that is, is found by decoding the slice, which must be done once anyway;
 * or, where hardly anything is selected, by going over the streams without decoding, and over whole
 * packets by what they say of their times.
 */
#ifndef KY_FLOW_PARALLEL_SLICE_CUT_H
#define KY_FLOW_PARALLEL_SLICE_CUT_H

#include "flow/graph/select.h"
#include "flow/graph/source.h"

struct ky_cutter {
	struct ky_flow **sources; /* its own */
	struct ky_flow **at; /* they stand at the begin of the next slice: its own, or a copy's */
	size_t n;
	bool decode;	  /* slices are decoded here */
	int64_t end_ns;	  /* no slice goes beyond; INT64_MAX: to the streams' ends */
	int64_t from_ns;  /* the earliest entry of the next slice */
	uint64_t step_ns; /* how far the last one went from there */
	bool careful;	  /* the packets' own times were wrong before */
	bool first;	  /* from_ns is not known yet */
	bool ended;
};

/* @copy: its sources are the cutter's from now on. @selection: what the copies are of. */
int ky_cutter_init(struct ky_cutter *cutter, const struct ky_copy *copy,
		   const struct ky_selection *selection, struct kymo_error *err);

/*
 * Cut off the next slice, of about @bytes of all streams together: the graph of @copy yields it. Until
 * the next call its sources may be where the cutter stands; what that call does with them is none of the
 * graph's business, if it was decoded here. @ends: n places, where that should be. cutter->ended: it is the last.
 * Returns how many bytes it has.
 */
uint64_t ky_cutter_next(struct ky_cutter *cutter, const struct ky_copy *copy, uint64_t bytes,
			struct ky_source_place *ends);

/* The slice that @copy has read to its end did not end where it should: go on from there. */
void ky_cutter_correct(struct ky_cutter *cutter, const struct ky_copy *copy);

#endif
