/* SPDX-License-Identifier: MIT */
#include "flow/parallel/slices-internal.h"

#include <stdlib.h>

#include "base/error.h"

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
/* How long the lines of a slice should be, as far as that can be known. */
#define LINES_BYTES	((uint64_t)512 << 10)
#define LINES_PER_TRACE 4 /* lines are about so much longer than what they are made of */
/* Each stream should have some events in a slice. */
#define STREAM_BYTES ((uint64_t)3 << 10)
/* Of a small trace each job has so many slices, */
#define SLICES_PER_JOB 8
#define BYTES_MIN      64
/* and where nearly nothing is selected, slices are so much longer at most. */
#define GROWTH_MAX 64
/* Memory of what was written goes back to the kernel in steps of so many bytes of all streams. */
#define PASSED_BYTES ((uint64_t)8 << 20)

/* ---- cutting, in any thread ----------------------------------------------------------------- */

/* How many bytes the next slice should have. */
static uint64_t bytes_wanted(struct run *run)
{
	uint64_t bytes = LINES_BYTES / LINES_PER_TRACE, most, lines, done;

	if (bytes < run->n_sources * STREAM_BYTES)
		bytes = run->n_sources * STREAM_BYTES;
	ky_thread_pool_lock(run->how->pool);
	done = run->done_bytes;
	lines = run->lines_bytes;
	ky_thread_pool_unlock(run->how->pool);
	/* What is hardly selected makes few lines. */
	if (done && lines < done) {
		most = bytes * GROWTH_MAX;
		bytes = lines ? bytes * LINES_PER_TRACE * done / lines : most;
		bytes = bytes < most ? bytes : most;
	}
	most = run->total_bytes / (ky_thread_pool_jobs(run->how->pool) * SLICES_PER_JOB);
	bytes = bytes < most ? bytes : most;
	return bytes > BYTES_MIN ? bytes : BYTES_MIN;
}

/* No slice needs what lies before the oldest slice. Of all streams at once: see pages.h. */
static void slices_give_back(struct run *run)
{
	const struct slice *before;
	uint64_t bytes = 0;
	bool known;

	ky_thread_pool_lock(run->how->pool);
	/* As long as it is free, it tells where the oldest one begins. */
	before = &run->slices[(run->writing + run->n_slices - 1) % run->n_slices];
	known = before->state == SLICE_FREE && before->bytes;
	ky_thread_pool_unlock(run->how->pool);
	for (size_t i = 0; known && i < run->n_sources; i++)
		bytes += before->ends[i].bits / 8;
	if (bytes < run->given_back_bytes + PASSED_BYTES)
		return;
	run->given_back_bytes = bytes;
	for (size_t i = 0; i < run->n_sources; i++)
		ky_source_passed(run->cutter.sources[i], before->ends[i].bits / 8, &run->passed);
	ky_pages_give_back(&run->passed);
}

/* A workspace for this thread. Under the lock. */
static struct workspace *take_workspace(struct run *run)
{
	static _Thread_local char here;
	struct workspace *workspace = NULL;

	for (size_t i = 0; i < run->n_slices; i++) {
		struct workspace *other = &run->workspaces[i];

		if (other->taken)
			continue;
		if (!workspace || other->thread == &here)
			workspace = other;
		if (workspace->thread == &here)
			break;
	}
	workspace->taken = true;
	workspace->thread = &here;
	return workspace;
}

/* The next slice; NULL: none exists. Under run->cutting. */
static struct slice *slices_cut(struct run *run)
{
	struct slice *slice = &run->slices[run->filling];
	bool wanted;

	ky_thread_pool_lock(run->how->pool);
	wanted = !run->ended && !run->wrong && run->code == KYMO_OK;
	if (wanted) {
		slice->state = SLICE_BUSY;
		slice->workspace = take_workspace(run);
	}
	ky_thread_pool_unlock(run->how->pool);
	if (!wanted)
		return NULL;
	ky_slice_lines_begin(&slice->workspace->lines);
	slice->bytes = ky_cutter_next(&run->cutter, slice->workspace->copy, bytes_wanted(run),
				      slice->ends);
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
	slices_give_back(run);
	slice = slices_cut(run);
	if (slice && slice->last) {
		ky_thread_pool_lock(run->how->pool);
		run->ended = true;
		ky_thread_pool_unlock(run->how->pool);
	}
	pthread_mutex_unlock(&run->cutting);
	/* The last step without a slice: the owner frees everything when no thread has a slice. */
	ky_thread_pool_lock(run->how->pool);
	ticket->out = false;
	run->n_out--;
	ky_thread_pool_tell(run->how->pool);
	ky_thread_pool_unlock(run->how->pool);
	if (slice)
		ky_slice_format(run, slice);
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
static bool slices_is_idle(void *data)
{
	const struct run *run = data;

	return !run->n_out && !count_slices_in(run, SLICE_BUSY) && !run->has_writer;
}

/* Whether a free slice exists that no thread has a ticket for. */
static bool slices_has_room(const struct run *run)
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
	if (slices_has_room(run))
		return DUTY_TICKET;
	return run->ended && slices_is_idle((void *)(uintptr_t)run) &&
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

static void correct_slice(struct slice *slice)
{
	if (slice->workspace)
		ky_slice_leave_workspace(slice);
	slice->state = SLICE_FREE;
	slice->bytes = 0;
}

/* A slice ended somewhere else: what was read behind it counts for nothing. */
static void correct(struct run *run)
{
	ky_thread_pool_wait(run->how->pool, slices_is_idle, run);
	ky_cutter_correct(&run->cutter, run->wrong->workspace->copy);
	for (size_t i = 0; i < run->n_slices; i++)
		correct_slice(&run->slices[i]);
	run->filling = run->writing;
	run->ended = run->cutter.ended;
	run->wrong = NULL;
}

/* The oldest slice has more lines to come. */
static void start_part(struct run *run)
{
	struct slice *slice = &run->slices[run->writing];

	ky_thread_pool_lock(run->how->pool);
	slice->state = SLICE_BUSY;
	ky_thread_pool_unlock(run->how->pool);
	ky_thread_pool_add(run->how->pool, &slice->task);
}

static void give_ticket(struct run *run)
{
	struct ticket *ticket = run->tickets;

	ky_thread_pool_lock(run->how->pool);
	while (ticket->out)
		ticket++;
	ticket->out = true;
	run->n_out++;
	ky_thread_pool_unlock(run->how->pool);
	ky_thread_pool_add(run->how->pool, &ticket->task);
}

static int slices_result(struct run *run, struct kymo_error *err)
{
	int ret;

	ky_thread_pool_wait(run->how->pool, slices_is_idle, run);
	ret = ky_slice_writer_end(&run->writer, run->code < 0, &run->err);
	if (run->code == KYMO_OK)
		run->code = ret;
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
		ky_thread_pool_wait(run->how->pool, has_duty, run);
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
			return slices_result(run, err);
		}
	}
}

/* ---- putting together -------------------------------------------------------------------- */

/* Memory bounds them, not the number of jobs. 0: even the fewest would take too much. */
static size_t count_slices(const struct ky_thread_pool *pool, size_t n_streams)
{
	size_t n = ky_thread_pool_jobs(pool) + 2;
	size_t most = FLIGHT_BYTES / (FLIGHT_SLICE_BYTES + FLIGHT_STREAM_BYTES * n_streams);

	if (GRAPHS_BYTES / (SOURCE_BYTES * (n_streams + 1)) < SLICES_MIN)
		return 0;
	n = n < most ? n : most;
	return n > SLICES_MIN ? n : SLICES_MIN;
}

bool ky_slices_fit(const struct ky_thread_pool *pool, const struct ky_trace_set *set,
		   const struct ky_selection *selection)
{
	if (ky_thread_pool_jobs(pool) < 2 || selection->head != UINT64_MAX || selection->skip ||
	    !count_slices(pool, set->streams.len))
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

/* A slice that had many lines goes on. */
static void slices_go_on(struct ky_task *task)
{
	struct slice *slice = (struct slice *)task;

	ky_slice_format(slice->run, slice);
}

static int init_slice(struct run *run, size_t i, struct kymo_error *err)
{
	struct slice *slice = &run->slices[i];
	struct workspace *workspace = &run->workspaces[i];

	slice->task.run = slices_go_on;
	slice->run = run;
	slice->ends = calloc(run->n_sources + 1, sizeof(*slice->ends));
	run->tickets[i] = (struct ticket){.task.run = use_ticket, .run = run};
	workspace->copy = &run->copies->copies[i + 1];
	if (!slice->ends || ky_slice_lines_init(&workspace->lines, run->how->make(run->how->data),
						workspace->copy->sources, run->n_sources) < 0)
		return ky_error_nomem(err);
	return KYMO_OK;
}

static int run_init(struct run *run, const struct ky_trace_set *set,
		    const struct ky_selection *selection, struct kymo_error *err)
{
	int ret;

	run->n_slices = count_slices(run->how->pool, set->streams.len);
	ret = ky_copies_open(set, selection, run->n_slices + 1, &run->copies, err);
	if (ret < 0)
		return ret;
	run->n_sources = run->copies->n_streams;
	run->slices = calloc(run->n_slices, sizeof(*run->slices));
	run->workspaces = calloc(run->n_slices, sizeof(*run->workspaces));
	run->tickets = calloc(run->n_slices, sizeof(*run->tickets));
	if (!run->slices || !run->workspaces || !run->tickets ||
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
	for (size_t i = 0; run->workspaces && i < run->n_slices; i++)
		ky_slice_lines_fini(&run->workspaces[i].lines);
	for (size_t i = 0; run->slices && i < run->n_slices; i++)
		free(run->slices[i].ends);
	free(run->slices);
	free(run->workspaces);
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
