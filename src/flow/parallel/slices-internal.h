/* SPDX-License-Identifier: MIT */
/* The shared part of slices.c (cutting, the owner) and slice-format.c (formatting of a slice). */
#ifndef KY_FLOW_PARALLEL_SLICES_INTERNAL_H
#define KY_FLOW_PARALLEL_SLICES_INTERNAL_H

#include <pthread.h>

#include "flow/parallel/slice-cut.h"
#include "flow/parallel/slice-write.h"
#include "flow/parallel/slices.h"

struct run;

enum slice_state {
	SLICE_FREE,
	SLICE_BUSY, /* in a task */
	SLICE_DONE, /* ready to be written; ->finished: it is complete */
	SLICE_PART, /* for the owner: its present lines are written, and it must continue */
};

/*
 * The working memory for a slice. Threads return to the one that they used last: it is in their
 * CPU's cache.
 */
struct workspace {
	struct ky_copy *copy;
	struct ky_slice_lines lines;
	const void *thread; /* the thread that used it last */
	bool taken;
};

struct slice {
	struct ky_task task; /* continues a partly written slice */
	struct run *run;
	enum slice_state state;
	struct workspace *workspace; /* from its begin until it is completely written */
	struct ky_batch rest;	     /* of the graph's last batch */
	struct ky_source_place *ends;
	uint64_t bytes;
	bool last;     /* no slice follows */
	bool finished; /* its end was reached */
	bool wrong;    /* ... at another place than the begin of the next one */
	int code;      /* the result of its graph */
	int sink_code;
	struct kymo_error err;
};

/* A task that cuts the next slice and formats it. */
struct ticket {
	struct ky_task task;
	struct run *run;
	bool out;
};

/* The next work of the owner. */
enum duty { DUTY_NONE, DUTY_STOP, DUTY_CORRECT, DUTY_PART, DUTY_TICKET };

struct run {
	const struct ky_slices *how;
	struct ky_copies *copies; /* [0] belongs to the cutter */
	struct slice *slices;
	struct workspace *workspaces;
	struct ticket *tickets;
	size_t n_slices, n_sources; /* there are as many workspaces and tickets as slices */
	struct ky_slice_writer writer;
	pthread_mutex_t cutting;
	/* Protected by it: */
	struct ky_cutter cutter;
	size_t filling;
	struct ky_pages passed;
	uint64_t given_back_bytes; /* of all streams */
	/* Protected by the pool's lock: */
	enum duty duty; /* of the owner */
	size_t n_out;	/* tickets in use */
	bool ended;	/* there is nothing left to cut */
	size_t writing; /* index of the next slice to write */
	bool has_writer;
	struct slice *wrong; /* it was written; the slices after it must be read again */
	int code;	     /* the first failure: nothing is written after it */
	int damage;	     /* of the graphs: returned at the end */
	uint64_t done_bytes, total_bytes, lines_bytes;
	struct kymo_error err, damage_err;
};

/*
 * Format @slice until it ends, or has its maximum of lines, and hand it in. A slice is written in
 * its turn, together with the finished slices after it. Any thread; the slice belongs to the task.
 */
void ky_slice_format(struct run *run, struct slice *slice);
/* @slice no longer needs its workspace. The caller holds the pool's lock. */
void ky_slice_leave_workspace(struct slice *slice);

#endif
