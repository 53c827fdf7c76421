/* SPDX-License-Identifier: MIT */
/* Slices that were cut become lines, and are written in their order (slices.h). */
#include "flow/parallel/slices-internal.h"

#include "base/error.h"

/* How long the lines of all slices should be at most. */
#define HELD_BYTES ((size_t)32 << 20)
/* So many bytes of events go into a sink at once, and after so many lines a slice looks around. */
#define SHARE_BYTES ((uint64_t)64 << 10)
#define LOOK_BYTES  ((size_t)128 << 10)

/* What of @rest goes into the sink at once. */
static struct ky_batch slice_format_share_of(struct ky_batch *rest)
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

	if (slice->rest.loss && ky_slice_lines_loss(&slice->workspace->lines, slice->rest.loss) < 0)
		return ky_error_nomem(&slice->err);
	share = slice_format_share_of(&slice->rest);
	return share.n_events ? ky_sink_batch(slice->workspace->lines.sink, &share, &slice->err)
			      : KYMO_OK;
}

/* Did the sources end where the next slice begins? */
static void compare_ends(struct slice *slice)
{
	for (size_t i = 0; i < slice->run->n_sources; i++) {
		struct ky_source_place place = ky_source_place(slice->workspace->copy->sources[i]);

		slice->wrong |= !ky_source_same_place(&place, &slice->ends[i]);
	}
	/* No thread continues after the end of the selection. */
	if (slice->last && slice->run->cutter.end_ns != INT64_MAX)
		slice->wrong = false;
}

static void slice_format_fail(struct run *run, int code, const struct kymo_error *err)
{
	if (run->code == KYMO_OK) {
		run->code = code;
		run->err = *err;
	}
}

void ky_slice_leave_workspace(struct slice *slice)
{
	slice->workspace->taken = false;
	slice->workspace = NULL;
}

/* How @slice, which was written as far as it was formatted, ended. Under the lock. */
static void slice_format_note_end(struct run *run, struct slice *slice)
{
	if (slice->sink_code < 0)
		slice_format_fail(run, slice->sink_code, &slice->err);
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
		run->wrong = slice; /* its workspace tells where to go on */
	else
		ky_slice_leave_workspace(slice);
}

/* Write what there is of the oldest slice. Under the lock, but not while it writes. */
static void slice_format_write_lines(struct run *run, struct slice *slice)
{
	struct kymo_error err = {.code = KYMO_OK};
	uint64_t done_bytes = run->done_bytes;
	int ret;

	if (run->code < 0)
		return;
	ky_thread_pool_unlock(run->how->pool);
	ret = ky_slice_write(&run->writer, &slice->workspace->lines, &err);
	if (run->how->progress)
		run->how->progress(run->how->progress_data, done_bytes, run->total_bytes);
	ky_thread_pool_lock(run->how->pool);
	run->lines_bytes = run->writer.n_bytes;
	if (ret < 0)
		slice_format_fail(run, ret, &err);
}

static void write_done_slices(struct run *run)
{
	run->has_writer = true;
	while (!run->wrong && run->slices[run->writing].state == SLICE_DONE) {
		struct slice *oldest = &run->slices[run->writing];

		slice_format_write_lines(run, oldest);
		slice_format_note_end(run, oldest);
		ky_thread_pool_tell(run->how->pool);
	}
	run->has_writer = false;
}

/* @slice was formatted as far as it could be: write it when its turn has come, and those behind it. */
static void hand_in(struct run *run, struct slice *slice)
{
	ky_thread_pool_lock(run->how->pool);
	slice->state = SLICE_DONE;
	if (!run->has_writer)
		write_done_slices(run);
	ky_thread_pool_unlock(run->how->pool);
}

/* Many lines are there: when it is the slice's turn, they are written. Returns whether to go on. */
static bool may_go_on(struct run *run, struct slice *slice)
{
	bool go_on;

	ky_thread_pool_lock(run->how->pool);
	if (run->how->stop && run->how->stop() && run->code == KYMO_OK)
		run->code = ky_error_set(&run->err, KYMO_E_INTERRUPTED, "interrupted");
	if (!run->wrong && !run->has_writer && slice == &run->slices[run->writing]) {
		run->has_writer = true;
		slice_format_write_lines(run, slice);
		run->has_writer = false;
	}
	go_on = run->code == KYMO_OK && !run->wrong &&
		ky_slice_lines_held(&slice->workspace->lines) < HELD_BYTES / run->n_slices;
	ky_thread_pool_unlock(run->how->pool);
	return go_on;
}

/* Format until the slice ends, or has as many lines as it may have. */
void ky_slice_format(struct run *run, struct slice *slice)
{
	size_t looked_at = 0;
	int ret = 1;

	while (slice->sink_code == KYMO_OK) {
		if (slice->rest.n_events || slice->rest.loss) {
			slice->sink_code = format_rest(slice);
			if (ky_slice_lines_held(&slice->workspace->lines) < looked_at + LOOK_BYTES)
				continue;
			if (!may_go_on(run, slice))
				break;
			looked_at = ky_slice_lines_held(&slice->workspace->lines);
			continue;
		}
		ret = ky_flow_next(slice->workspace->copy->flow, &slice->rest, &slice->err);
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
