/* SPDX-License-Identifier: MIT */
#include "flow/slices.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "flow/slice-cut.h"
#include "flow/slice-write.h"

/* How many there are: enough that threads find one while the owner formats too. */
#define SLICES_MIN 4
/* What their graphs may take, and about what a source takes. */
#define GRAPHS_BYTES ((size_t)24 << 20)
#define SOURCE_BYTES ((size_t)10 << 10)
/*
 * What all of them may take together; of one, about so much for each stream (source, events, lines),
 * and so much besides. Cutting is for one thread at a time: more than twenty would only wait for it.
 */
#define FLIGHT_BYTES	    ((size_t)32 << 20)
#define FLIGHT_STREAM_BYTES ((size_t)24 << 10)
#define FLIGHT_SLICE_BYTES  ((size_t)1536 << 10)
/* How long the lines of all slices should be at most, and those of one, as far as that can be known. */
#define HELD_BYTES	((size_t)32 << 20)
#define LINES_BYTES	((uint64_t)512 << 10)
#define LINES_PER_TRACE 4 /* lines are about so much longer than what they are made of */
/* Each stream should have some events in a slice. */
#define STREAM_BYTES ((uint64_t)3 << 10)
/* Of a small trace each job has so many slices, */
#define SLICES_PER_JOB 8
#define BYTES_MIN      64
/* and where nearly nothing is selected, slices are so much longer at most. */
#define GROWTH_MAX 64
/* So many bytes of events go into a sink at once, and after so many lines a slice looks around. */
#define SHARE_BYTES ((uint64_t)64 << 10)
#define LOOK_BYTES  ((size_t)128 << 10)
/* Memory of what was written goes back to the kernel in steps of so many bytes of all streams. */
#define PASSED_BYTES ((uint64_t)8 << 20)

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
	/* Under the crew's lock: */
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

/* ---- in any thread ----------------------------------------------------------------------- */

/* What of @rest goes into the sink at once. */
static struct ky_batch share_of(struct ky_batch *rest)
{
	struct ky_batch share = *rest;
	uint64_t bytes = 0;
	size_t n = 0;

	while (n < rest->n_events && bytes < SHARE_BYTES) {
		bytes += (rest->events[n].end_bits - rest->events[n].begin_bits) / 8;
		n++;
	}
	share.loss = rest->loss = NULL;
	share.n_events = n;
	rest->events += n;
	rest->n_events -= n;
	return share;
}

/* What the graph has at hand goes into the sink. 0 or negative. */
static int format_rest(struct slice *slice)
{
	struct ky_batch share;

	if (slice->rest.loss && ky_slice_lines_loss(&slice->desk->lines, slice->rest.loss) < 0)
		return ky_error_nomem(&slice->err);
	share = share_of(&slice->rest);
	return share.n_events ? ky_sink_batch(slice->desk->lines.sink, &share, &slice->err)
			      : KYMO_OK;
}

/* Did the sources end where the next slice begins? */
static void compare_ends(struct slice *slice)
{
	for (size_t i = 0; i < slice->run->n_sources; i++) {
		struct ky_source_place place = ky_source_place(slice->desk->copy->sources[i]);

		slice->wrong |= !ky_source_same_place(&place, &slice->ends[i]);
	}
	/* Where the selection ends, nobody goes on. */
	if (slice->last && slice->run->cutter.end_ns != INT64_MAX)
		slice->wrong = false;
}

static void fail(struct run *run, int code, const struct kymo_error *err)
{
	if (run->code == KYMO_OK) {
		run->code = code;
		run->err = *err;
	}
}

static void leave_desk(struct slice *slice)
{
	slice->desk->taken = false;
	slice->desk = NULL;
}

/* How @slice, which was written as far as it was formatted, ended. Under the lock. */
static void note_end(struct run *run, struct slice *slice)
{
	if (slice->sink_code < 0)
		fail(run, slice->sink_code, &slice->err);
	if (!slice->finished) {
		slice->state = SLICE_PART;
		return;
	}
	if (slice->code < 0 && run->damage == KYMO_OK) {
		run->damage = slice->code;
		run->damage_err = slice->err;
	}
	run->done_bytes += slice->bytes;
	run->writing = (run->writing + 1) % run->n_slices;
	slice->state = SLICE_FREE;
	if (slice->wrong)
		run->wrong = slice; /* its desk tells where to go on */
	else
		leave_desk(slice);
}

/* Write what there is of the oldest slice. Under the lock, but not while it writes. */
static void write_lines(struct run *run, struct slice *slice)
{
	struct kymo_error err = {.code = KYMO_OK};
	uint64_t done_bytes = run->done_bytes;
	int ret;

	if (run->code < 0)
		return;
	ky_crew_unlock(run->how->crew);
	ret = ky_slice_write(&run->writer, &slice->desk->lines, &err);
	if (run->how->progress)
		run->how->progress(run->how->progress_data, done_bytes, run->total_bytes);
	ky_crew_lock(run->how->crew);
	run->lines_bytes = run->writer.n_bytes;
	if (ret < 0)
		fail(run, ret, &err);
}

/* @slice was formatted as far as it could be: write it when its turn has come, and those behind it. */
static void hand_in(struct run *run, struct slice *slice)
{
	ky_crew_lock(run->how->crew);
	slice->state = SLICE_DONE;
	if (!run->has_writer) {
		run->has_writer = true;
		while (!run->wrong && run->slices[run->writing].state == SLICE_DONE) {
			struct slice *oldest = &run->slices[run->writing];

			write_lines(run, oldest);
			note_end(run, oldest);
			ky_crew_tell(run->how->crew);
		}
		run->has_writer = false;
	}
	ky_crew_unlock(run->how->crew);
}

/* Many lines are there: when it is the slice's turn, they are written. Returns whether to go on. */
static bool may_go_on(struct run *run, struct slice *slice)
{
	bool go_on;

	ky_crew_lock(run->how->crew);
	if (run->how->stop && run->how->stop() && run->code == KYMO_OK)
		run->code = ky_error_set(&run->err, KYMO_E_INTERRUPTED, "interrupted");
	if (!run->wrong && !run->has_writer && slice == &run->slices[run->writing]) {
		run->has_writer = true;
		write_lines(run, slice);
		run->has_writer = false;
	}
	go_on = run->code == KYMO_OK && !run->wrong &&
		ky_slice_lines_held(&slice->desk->lines) < HELD_BYTES / run->n_slices;
	ky_crew_unlock(run->how->crew);
	return go_on;
}

/* Format until the slice ends, or has as many lines as it may have. */
static void format_slice(struct run *run, struct slice *slice)
{
	size_t looked_at = 0;
	int ret = 1;

	while (slice->sink_code == KYMO_OK) {
		if (slice->rest.n_events || slice->rest.loss) {
			slice->sink_code = format_rest(slice);
			if (ky_slice_lines_held(&slice->desk->lines) < looked_at + LOOK_BYTES)
				continue;
			if (!may_go_on(run, slice))
				break;
			looked_at = ky_slice_lines_held(&slice->desk->lines);
			continue;
		}
		ret = ky_flow_next(slice->desk->copy->flow, &slice->rest, &slice->err);
		if (ret > 0)
			continue;
		slice->rest = (struct ky_batch){.n_events = 0};
		slice->code = ret;
		slice->finished = true;
		compare_ends(slice);
		break;
	}
	hand_in(run, slice);
}

static void go_on(struct ky_task *task)
{
	struct slice *slice = (struct slice *)task;

	format_slice(slice->run, slice);
}

/* ---- cutting, in any thread ----------------------------------------------------------------- */

/* How many bytes the next slice should have. */
static uint64_t bytes_wanted(struct run *run)
{
	uint64_t bytes = LINES_BYTES / LINES_PER_TRACE, most, lines, done;

	if (bytes < run->n_sources * STREAM_BYTES)
		bytes = run->n_sources * STREAM_BYTES;
	ky_crew_lock(run->how->crew);
	done = run->done_bytes;
	lines = run->lines_bytes;
	ky_crew_unlock(run->how->crew);
	/* What is hardly selected makes few lines. */
	if (done && lines < done) {
		most = bytes * GROWTH_MAX;
		bytes = lines ? bytes * LINES_PER_TRACE * done / lines : most;
		bytes = bytes < most ? bytes : most;
	}
	most = run->total_bytes / (ky_crew_jobs(run->how->crew) * SLICES_PER_JOB);
	bytes = bytes < most ? bytes : most;
	return bytes > BYTES_MIN ? bytes : BYTES_MIN;
}

/* What lies before the oldest slice is not needed any more. Of all streams at once: see pages.h. */
static void give_back(struct run *run)
{
	const struct slice *before;
	uint64_t bytes = 0;
	bool known;

	ky_crew_lock(run->how->crew);
	/* As long as it is free, it tells where the oldest one begins. */
	before = &run->slices[(run->writing + run->n_slices - 1) % run->n_slices];
	known = before->state == SLICE_FREE && before->bytes;
	ky_crew_unlock(run->how->crew);
	for (size_t i = 0; known && i < run->n_sources; i++)
		bytes += before->ends[i].bits / 8;
	if (bytes < run->given_back_bytes + PASSED_BYTES)
		return;
	run->given_back_bytes = bytes;
	for (size_t i = 0; i < run->n_sources; i++)
		ky_source_passed(run->cutter.sources[i], before->ends[i].bits / 8, &run->passed);
	ky_pages_give_back(&run->passed);
}

/* A desk for this thread. Under the lock. */
static struct desk *take_desk(struct run *run)
{
	static _Thread_local char here;
	struct desk *desk = NULL;

	for (size_t i = 0; i < run->n_slices; i++) {
		struct desk *other = &run->desks[i];

		if (other->taken)
			continue;
		if (!desk || other->thread == &here)
			desk = other;
		if (desk->thread == &here)
			break;
	}
	desk->taken = true;
	desk->thread = &here;
	return desk;
}

/* The next slice; NULL: there is none. Under run->cutting. */
static struct slice *cut(struct run *run)
{
	struct slice *slice = &run->slices[run->filling];
	bool wanted;

	ky_crew_lock(run->how->crew);
	wanted = !run->ended && !run->wrong && run->code == KYMO_OK;
	if (wanted) {
		slice->state = SLICE_BUSY;
		slice->desk = take_desk(run);
	}
	ky_crew_unlock(run->how->crew);
	if (!wanted)
		return NULL;
	ky_slice_lines_begin(&slice->desk->lines);
	slice->bytes =
		ky_cutter_next(&run->cutter, slice->desk->copy, bytes_wanted(run), slice->ends);
	slice->rest = (struct ky_batch){.n_events = 0};
	slice->last = run->cutter.ended;
	slice->finished = slice->wrong = false;
	slice->code = slice->sink_code = KYMO_OK;
	run->filling = (run->filling + 1) % run->n_slices;
	return slice;
}

static void use_ticket(struct ky_task *task)
{
	struct ticket *ticket = (struct ticket *)task;
	struct run *run = ticket->run;
	struct slice *slice;

	pthread_mutex_lock(&run->cutting);
	give_back(run);
	slice = cut(run);
	if (slice && slice->last) {
		ky_crew_lock(run->how->crew);
		run->ended = true;
		ky_crew_unlock(run->how->crew);
	}
	pthread_mutex_unlock(&run->cutting);
	/* The last thing without a slice: the owner frees everything when nobody is out. */
	ky_crew_lock(run->how->crew);
	ticket->out = false;
	run->n_out--;
	ky_crew_tell(run->how->crew);
	ky_crew_unlock(run->how->crew);
	if (slice)
		format_slice(run, slice);
}

/* ---- in the owner's thread ---------------------------------------------------------------- */

static size_t count_slices_in(const struct run *run, enum slice_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < run->n_slices; i++)
		n += run->slices[i].state == state;
	return n;
}

/* No task runs, or will. */
static bool is_idle(void *data)
{
	const struct run *run = data;

	return !run->n_out && !count_slices_in(run, SLICE_BUSY) && !run->has_writer;
}

/* There is a free slice that nobody has a ticket for. */
static bool has_room(const struct run *run)
{
	return !run->ended && count_slices_in(run, SLICE_FREE) > run->n_out;
}

/* What the owner has to do. Under the lock. */
static enum duty find_duty(const struct run *run)
{
	if (run->code < 0)
		return DUTY_STOP;
	if (run->wrong)
		return DUTY_CORRECT;
	if (run->slices[run->writing].state == SLICE_PART)
		return DUTY_PART;
	if (has_room(run))
		return DUTY_TICKET;
	return run->ended && is_idle((void *)(uintptr_t)run) &&
			       count_slices_in(run, SLICE_FREE) == run->n_slices
		       ? DUTY_STOP
		       : DUTY_NONE;
}

static bool has_duty(void *data)
{
	struct run *run = data;

	/* What it is may change as soon as the lock is given up. */
	run->duty = find_duty(run);
	return run->duty != DUTY_NONE;
}

/* A slice ended somewhere else: what was read behind it counts for nothing. */
static void correct(struct run *run)
{
	ky_crew_wait(run->how->crew, is_idle, run);
	ky_cutter_correct(&run->cutter, run->wrong->desk->copy);
	for (size_t i = 0; i < run->n_slices; i++) {
		struct slice *slice = &run->slices[i];

		if (slice->desk)
			leave_desk(slice);
		slice->state = SLICE_FREE;
		slice->bytes = 0;
	}
	run->filling = run->writing;
	run->ended = run->cutter.ended;
	run->wrong = NULL;
}

/* The oldest slice has more lines to come. */
static void start_part(struct run *run)
{
	struct slice *slice = &run->slices[run->writing];

	ky_crew_lock(run->how->crew);
	slice->state = SLICE_BUSY;
	ky_crew_unlock(run->how->crew);
	ky_crew_add(run->how->crew, &slice->task);
}

static void give_ticket(struct run *run)
{
	struct ticket *ticket = run->tickets;

	ky_crew_lock(run->how->crew);
	while (ticket->out)
		ticket++;
	ticket->out = true;
	run->n_out++;
	ky_crew_unlock(run->how->crew);
	ky_crew_add(run->how->crew, &ticket->task);
}

static int result(struct run *run, struct kymo_error *err)
{
	int ret;

	ky_crew_wait(run->how->crew, is_idle, run);
	if (run->code == KYMO_OK)
		run->code = ky_slice_writer_end(&run->writer, &run->err);
	ret = run->code;
	if (ret == KYMO_OK)
		ret = run->damage;
	if (ret < 0 && err)
		*err = run->code < 0 ? run->err : run->damage_err;
	return ret;
}

static int run_all(struct run *run, struct kymo_error *err)
{
	for (;;) {
		ky_crew_wait(run->how->crew, has_duty, run);
		switch (run->duty) {
		case DUTY_CORRECT:
			correct(run);
			break;
		case DUTY_PART:
			start_part(run);
			break;
		case DUTY_TICKET:
			give_ticket(run);
			break;
		default:
			return result(run, err);
		}
	}
}

/* ---- putting together -------------------------------------------------------------------- */

/* Memory bounds them, not the number of jobs. 0: even the fewest would take too much. */
static size_t count_slices(const struct ky_crew *crew, size_t n_streams)
{
	size_t n = ky_crew_jobs(crew) + 2;
	size_t most = FLIGHT_BYTES / (FLIGHT_SLICE_BYTES + FLIGHT_STREAM_BYTES * n_streams);

	if (GRAPHS_BYTES / (SOURCE_BYTES * (n_streams + 1)) < SLICES_MIN)
		return 0;
	n = n < most ? n : most;
	return n > SLICES_MIN ? n : SLICES_MIN;
}

bool ky_slices_fit(const struct ky_crew *crew, const struct ky_trace_set *set,
		   const struct ky_selection *selection)
{
	if (ky_crew_jobs(crew) < 2 || selection->head != UINT64_MAX || selection->skip ||
	    !count_slices(crew, set->streams.len))
		return false;
	/* What has no time cannot be cut by it. */
	ky_vec_foreach(&set->streams, stream) {
		const struct ky_trace_class *cls = (*stream)->trace->cls;

		for (size_t i = 0; i < cls->streams.len; i++) {
			if (!cls->streams.data[i]->clock)
				return false;
		}
	}
	return true;
}

static int init_slice(struct run *run, size_t i, struct kymo_error *err)
{
	struct slice *slice = &run->slices[i];
	struct desk *desk = &run->desks[i];

	slice->task.run = go_on;
	slice->run = run;
	slice->ends = calloc(run->n_sources + 1, sizeof(*slice->ends));
	run->tickets[i] = (struct ticket){.task.run = use_ticket, .run = run};
	desk->copy = &run->copies->copies[i + 1];
	if (!slice->ends || ky_slice_lines_init(&desk->lines, run->how->make(run->how->data),
						desk->copy->sources, run->n_sources) < 0)
		return ky_error_nomem(err);
	return KYMO_OK;
}

static int run_init(struct run *run, const struct ky_trace_set *set,
		    const struct ky_selection *selection, struct kymo_error *err)
{
	int ret;

	run->n_slices = count_slices(run->how->crew, set->streams.len);
	ret = ky_copies_open(set, selection, run->n_slices + 1, &run->copies, err);
	if (ret < 0)
		return ret;
	run->n_sources = run->copies->n_streams;
	run->slices = calloc(run->n_slices, sizeof(*run->slices));
	run->desks = calloc(run->n_slices, sizeof(*run->desks));
	run->tickets = calloc(run->n_slices, sizeof(*run->tickets));
	if (!run->slices || !run->desks || !run->tickets ||
	    ky_slice_writer_init(&run->writer, run->how, run->copies) < 0)
		return ky_error_nomem(err);
	for (size_t i = 0; i < run->n_slices && ret == KYMO_OK; i++)
		ret = init_slice(run, i, err);
	for (size_t i = 0; i < run->n_sources; i++)
		run->total_bytes += run->copies->streams[i]->file.size_bytes;
	if (ret == KYMO_OK)
		ret = ky_cutter_init(&run->cutter, &run->copies->copies[0], selection, err);
	return ret;
}

static void run_fini(struct run *run)
{
	for (size_t i = 0; run->desks && i < run->n_slices; i++)
		ky_slice_lines_fini(&run->desks[i].lines);
	for (size_t i = 0; run->slices && i < run->n_slices; i++)
		free(run->slices[i].ends);
	free(run->slices);
	free(run->desks);
	free(run->tickets);
	ky_slice_writer_fini(&run->writer);
	ky_copies_close(run->copies);
}

int ky_slices_run(const struct ky_slices *how, const struct ky_trace_set *set,
		  const struct ky_selection *selection, struct kymo_error *err)
{
	struct run *run = calloc(1, sizeof(*run));
	int ret;

	if (!run)
		return ky_error_nomem(err);
	run->how = how;
	pthread_mutex_init(&run->cutting, NULL);
	ky_pages_init(&run->passed);
	ret = run_init(run, set, selection, err);
	if (ret == KYMO_OK)
		ret = run_all(run, err);
	run_fini(run);
	ky_pages_fini(&run->passed);
	pthread_mutex_destroy(&run->cutting);
	free(run);
	return ret;
}
