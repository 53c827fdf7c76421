/* SPDX-License-Identifier: MIT */
/* What slices.c (cutting, the owner) and slice-format.c (what becomes of a slice that was cut) share. */
#ifndef KY_FLOW_PARALLEL_SLICES_INTERNAL_H
#define KY_FLOW_PARALLEL_SLICES_INTERNAL_H

#include <pthread.h>

#include "flow/parallel/slice-cut.h"
#include "flow/parallel/slice-write.h"
#include "flow/parallel/slices.h"

struct run;

enum slice_state {
	SLICE_FREE,
	SLICE_BUSY, /* a task's */
	SLICE_DONE, /* to be written; ->finished tells whether that is all of it */
	SLICE_PART, /* the owner's: what was there is written, and it goes on */
};

/* Where a slice is worked on. Threads go back to their own: it is in their CPU's cache. */
struct desk {
	struct ky_copy *copy;
	struct ky_slice_lines lines;
	const void *thread; /* who worked there last */
	bool taken;
};

struct slice {
	struct ky_task task; /* going on with a part */
	struct run *run;
	enum slice_state state;
	struct desk *desk;    /* from its begin until all of it is written */
	struct ky_batch rest; /* of what the graph gave last */
	struct ky_source_place *ends;
	uint64_t bytes;
	bool last;     /* no other comes behind it */
	bool finished; /* its end was reached */
	bool wrong;    /* ... but that is not where the next one begins */
	int code;      /* how its graph ended */
	int sink_code;
	struct kymo_error err;
};

/* A task that cuts the next slice and formats it. */
struct ticket {
	struct ky_task task;
	struct run *run;
	bool out;
};

/* What the owner has to do. */
enum duty { DUTY_NONE, DUTY_STOP, DUTY_CORRECT, DUTY_PART, DUTY_TICKET };

struct run {
	const struct ky_slices *how;
	struct ky_copies *copies; /* [0] is the cutter's */
	struct slice *slices;
	struct desk *desks;
	struct ticket *tickets;
	size_t n_slices, n_sources; /* there are as many desks and tickets as slices */
	struct ky_slice_writer writer;
	pthread_mutex_t cutting;
	/* Under it: */
	struct ky_cutter cutter;
	size_t filling;
	struct ky_pages passed;
	uint64_t given_back_bytes; /* of all streams */
	/* Under the pool's lock: */
	enum duty duty; /* the owner's */
	size_t n_out;	/* tickets */
	bool ended;	/* nothing is left to be cut */
	size_t writing; /* the next to be written */
	bool has_writer;
	struct slice *wrong; /* it was written; those behind it must be read anew */
	int code;	     /* the first failure: nothing is written after it */
	int damage;	     /* of the graphs: told in the end */
	uint64_t done_bytes, total_bytes, lines_bytes;
	struct kymo_error err, damage_err;
};

/*
 * Format @slice until it ends, or has as many lines as it may have, and hand it in: it is written when its turn
 * has come, with those behind it that are done. In any thread; the slice is a task's.
 */
void ky_slice_format(struct run *run, struct slice *slice);
/* @slice needs its desk no more. Under the pool's lock. */
void ky_slice_leave_desk(struct slice *slice);

#endif
