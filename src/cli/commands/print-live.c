/* SPDX-License-Identifier: MIT */
/*
 * The graph is the usual one; its streams give KYMO_E_AGAIN where they may go on. What a graph does not know (a new
 * trace, stream or event) closes it: the next graph goes on behind the last event of each stream.
 */
#include "cli/commands/print-live.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/reading/run-flow.h"
#include "cli/recording/recordings.h"
#include "store/follow.h"

/* A writer that has died says nothing: it is looked for so often. */
#define WAIT_MS 100

/* Where a stream goes on. */
struct place {
	char *trace, *stream;
	struct ky_stream_place at;
};

struct follower {
	const struct ky_print_live *live;
	struct ky_follow *follow;
	struct ky_trace_set set;
	bool is_open;	      /* the set */
	bool has_told_wait;   /* that there is nothing to print yet, and why */
	uint64_t left;	      /* events still to be printed */
	struct ky_event last; /* its times only: the next line's difference counts from them */
	bool any;
	KY_VEC(struct place) places;
	struct ky_stream_place *by_index; /* of the set that is open */
};

/* ---- places --------------------------------------------------------------------------- */

static struct place *find_place(struct follower *f, const struct ky_stream *stream)
{
	ky_vec_foreach(&f->places, place)
		if (strcmp(place->trace, stream->trace->path) == 0 &&
		    strcmp(place->stream, stream->name) == 0)
			return place;
	return NULL;
}

static int keep_place(struct follower *f, const struct ky_stream *stream)
{
	struct place *place = find_place(f, stream), fresh;

	if (!f->by_index[stream->index].is_known)
		return KYMO_OK;
	if (!place) {
		fresh = (struct place){.trace = strdup(stream->trace->path),
				       .stream = strdup(stream->name)};
		if (!fresh.trace || !fresh.stream || ky_vec_push(&f->places, fresh) < 0) {
			free(fresh.trace);
			free(fresh.stream);
			return KYMO_E_MEMORY;
		}
		place = &f->places.data[f->places.len - 1];
	}
	place->at = f->by_index[stream->index];
	return KYMO_OK;
}

static void note_places(struct follower *f, const struct ky_batch *batch)
{
	struct ky_batch rest = *batch, run;

	while (ky_batch_run(&rest, &run)) {
		const struct ky_event *last = run.events + run.n_events - 1;

		if (!run.n_events)
			continue;
		f->by_index[run.stream->index] = (struct ky_stream_place){
			.is_known = true,
			.packet_bytes = last->packet->file_offset_bytes,
			.end_bits = last->end_bits,
		};
		f->last.ns = last->ns;
		f->last.cycles = last->cycles;
		f->any = true;
	}
}

/* ---- one graph ------------------------------------------------------------------------ */

static int close_set(struct follower *f, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (f->is_open) {
		for (size_t i = 0; i < f->set.streams.len && !ret; i++)
			ret = keep_place(f, f->set.streams.data[i]);
		ky_trace_set_close(&f->set);
	}
	ky_follow_close(f->follow);
	free(f->by_index);
	f->by_index = NULL;
	f->follow = NULL;
	f->is_open = false;
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* 0: the set is open; KYMO_E_NOT_FOUND: there is no trace yet; or another error. */
static int open_set(struct follower *f, struct kymo_error *err)
{
	struct ky_input_options input = *f->live->input;
	int ret = ky_follow_open((const char *const *)f->live->paths, (size_t)f->live->n_paths,
				 &f->follow, err);

	input.follow = true;
	if (!ret)
		ret = ky_cli_open(&f->set, f->live->paths, f->live->n_paths, &input, true, err);
	if (ret < 0)
		return ret;
	f->is_open = true;
	f->by_index = calloc(f->set.streams.len + 1, sizeof(*f->by_index));
	if (!f->by_index)
		return ky_error_nomem(err);
	ky_vec_foreach(&f->set.streams, stream) {
		const struct place *place = find_place(f, *stream);

		if (place)
			f->by_index[(*stream)->index] = place->at;
	}
	return KYMO_OK;
}

static int print_batch(struct follower *f, struct ky_sink *sink, struct ky_batch *batch,
		       struct kymo_error *err)
{
	if (batch->n_events > f->left)
		batch->n_events = (size_t)f->left;
	if (batch->loss) {
		int ret = ky_sink_flush(sink, err);

		if (ret < 0)
			return ret;
		ky_cli_warn_loss(batch->loss, f->live->text);
	}
	if (f->left != UINT64_MAX)
		f->left -= batch->n_events;
	note_places(f, batch);
	return ky_sink_batch(sink, batch, err);
}

/* Until the graph is not the right one any more (*again), or all has been printed. */
static int drain(struct follower *f, struct ky_flow *flow, struct ky_sink *sink, bool *again,
		 struct kymo_error *err)
{
	struct ky_batch batch;
	int ret = KYMO_OK;

	while (f->left && !*again && !ky_cli_interrupted()) {
		ret = ky_flow_next(flow, &batch, err);
		if (ret > 0) {
			ret = print_batch(f, sink, &batch, err);
		} else if (ret == KYMO_E_AGAIN) {
			ret = ky_sink_flush(sink, err);
			if (!ret)
				ky_follow_wait(f->follow, WAIT_MS);
			if (!ret)
				ret = ky_follow_update(f->follow, &f->set, again, err);
		} else {
			break;
		}
		if (ret < 0)
			break;
	}
	return ret;
}

static int run_graph(struct follower *f, bool *again, struct kymo_error *err)
{
	struct ky_selection selection;
	struct ky_flow *flow;
	struct ky_sink *sink;
	int ret = ky_cli_select_resolve(&f->set, f->live->select, f->live->text->clock_gmt, NULL,
					&selection, err);

	if (ret < 0)
		return ky_cli_in_filter(ret, err);
	selection.head = UINT64_MAX;
	selection.places = f->by_index;
	ret = ky_flow_open_selected(&f->set, &selection, &flow, err);
	if (ret < 0)
		return ky_cli_in_filter(ret, err);
	sink = ky_text_sink_new(STDOUT_FILENO, f->live->text);
	if (!sink) {
		ky_flow_close(flow);
		return ky_error_nomem(err);
	}
	if (f->any)
		sink->ops->resume(sink, &f->last);
	ret = drain(f, flow, sink, again, err);
	ret = ky_cli_finish_flow(sink, ret, err);
	ky_sink_free(sink);
	ky_flow_close(flow);
	return ret;
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Does a recorder of this user write to one of the paths, so that traces may still come? */
static bool is_recorded(const struct ky_print_live *live)
{
	for (int i = 0; i < live->n_paths; i++) {
		struct ky_control_socket_place place;
		char *real = realpath(live->paths[i], NULL);
		bool found = real && ky_recordings_find(real, false, &place, NULL) == KYMO_OK;

		free(real);
		if (found)
			return true;
	}
	return false;
}

/* Nothing can be printed yet because of @err: say so once. */
static void tell_wait(struct follower *f, const struct kymo_error *err)
{
	if (!f->has_told_wait)
		ky_log_info(&ky_cli_log, "waiting: %s", err->message);
	f->has_told_wait = true;
}

/* One set of traces. *again: there is, or may be, more. */
static int follow_once(struct follower *f, bool *again, struct kymo_error *err)
{
	bool was_recorded = is_recorded(f->live), is_early;
	int ret = open_set(f, err), closed;

	*again = false;
	if (!ret)
		ret = run_graph(f, again, err);
	/* No trace, no events of that name: not yet. */
	is_early = (ret == KYMO_E_NOT_FOUND && !f->is_open) ||
		   (ret == KYMO_E_INVALID && f->is_open && ky_follow_is_live(&f->set));
	if (is_early && was_recorded) {
		tell_wait(f, err);
		ret = KYMO_OK;
	}
	if (!ret && !*again && f->left && was_recorded && !ky_cli_interrupted()) {
		/* All traces are complete, but the recording is not: programs may come. */
		if (f->follow)
			ky_follow_wait(f->follow, WAIT_MS);
		*again = true;
	}
	closed = close_set(f, ret < 0 ? NULL : err);
	return ret < 0 ? ret : closed;
}

int ky_print_live(const struct ky_print_live *live, struct kymo_error *err)
{
	struct follower f = {.live = live, .left = live->select->head};
	bool again = true;
	int ret = KYMO_OK;

	ky_cli_catch_signals();
	while (!ret && again && f.left && !ky_cli_interrupted())
		ret = follow_once(&f, &again, err);
	(void)close_set(&f, NULL);
	ky_vec_foreach(&f.places, place) {
		free(place->trace);
		free(place->stream);
	}
	ky_vec_fini(&f.places);
	return ret;
}
