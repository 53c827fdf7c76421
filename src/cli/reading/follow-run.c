/* SPDX-License-Identifier: MIT */
/*
 * The graph is the usual one; its streams give KYMO_E_AGAIN where they may continue. A new trace, stream or event closes
 * the graph. The next graph continues behind the last event of each stream.
 */
#include "cli/reading/follow-run.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/reading/run-flow.h"
#include "store/read/feed.h"
#include "store/read/follow.h"

/* A writer that has died is found after this time. */
#define WAIT_MS 500
/* So often a set is opened again when a trace of it is removed meanwhile, after this time. */
#define GONE_MAX     20
#define GONE_MS	     50
#define DELAY_MIN_NS UINT64_C(10000000)
#define DELAY_MAX_NS UINT64_C(60000000000)

/* Where a stream continues. A file keeps its identity when a rotation moves it. */
struct place {
	dev_t device;
	ino_t inode;
	int64_t born_ns;       /* another file may get the inode of a removed one */
	unsigned int n_missed; /* sets since the last one that had the file */
	struct ky_stream_place at;
};

/* A rotation moves the files of many traces, one after the other: a set may lack some. */
#define MISSED_MAX 16u

struct opened {
	struct ky_follow *follow;
	struct ky_trace_set set;
	bool is_open;			  /* the set */
	struct ky_stream_place *by_index; /* of the streams of the set */
};

struct follower {
	const struct ky_follow_run *run;
	struct opened *now; /* the consumer and the graph read from it; NULL: none */
	struct ky_cli_remotes remotes;
	unsigned int n_gone; /* attempts to open traces that were removed meanwhile */
	bool has_told_wait;
	bool is_claimed; /* a recorder's lock said at the end of the last wait that traces may come */
	bool leaves_out_late; /* the events of buffers that overwrite: they come late */
	uint64_t left;	      /* events still wanted */
	KY_VEC(struct place) places;
};

/* ---- options -------------------------------------------------------------------------- */

int ky_cli_check_live(const struct ky_command *command, const struct ky_live_options *live)
{
	if (!live->delay_ns)
		return KY_EXIT_OK;
	if (!live->on)
		return ky_cli_usage(command, "--delay needs --live");
	if (live->delay_ns < DELAY_MIN_NS || live->delay_ns > DELAY_MAX_NS)
		return ky_cli_usage(command, "--delay: the time is not from 10ms to 1min");
	return KY_EXIT_OK;
}

const char *ky_cli_unfit_for_live(const struct ky_select_options *select)
{
	if (select->tail != UINT64_MAX)
		return "--tail";
	if (select->begin || select->timerange)
		return "--begin";
	if (select->end)
		return "--end";
	return select->intersection ? "--stream-intersection" : NULL;
}

/* ---- places --------------------------------------------------------------------------- */

static bool follow_run_is_of(const struct place *place, const struct ky_stream *stream)
{
	const struct ky_stream_part *part = &stream->parts.data[0];

	return place->device == part->device && place->inode == part->inode &&
	       place->born_ns == part->born_ns;
}

static const struct place *follow_run_find_place(const struct follower *f,
						 const struct ky_stream *stream)
{
	ky_vec_foreach(&f->places, place)
		if (follow_run_is_of(place, stream))
			return place;
	return NULL;
}

static bool has_stream_of(const struct ky_trace_set *set, const struct place *place)
{
	ky_vec_foreach(&set->streams, stream)
		if (follow_run_is_of(place, *stream))
			return true;
	return false;
}

/* The places of files that the set that is open lacks come first, the others are forgotten. */
static void keep_missed(struct follower *f)
{
	size_t n = 0;

	ky_vec_foreach(&f->places, place) {
		if (has_stream_of(&f->now->set, place) || place->n_missed >= MISSED_MAX)
			continue;
		f->places.data[n] = *place;
		f->places.data[n++].n_missed++;
	}
	f->places.len = n;
}

/* The places of the set that is open replace the earlier ones of the same files. */
static int keep_places(struct follower *f, struct kymo_error *err)
{
	const struct opened *now = f->now;

	if (!now)
		return KYMO_OK;
	keep_missed(f);
	ky_vec_foreach(&now->set.streams, stream) {
		const struct ky_stream_part *part = &(*stream)->parts.data[0];
		struct place place = {.device = part->device,
				      .inode = part->inode,
				      .born_ns = part->born_ns,
				      .at = now->by_index[(*stream)->index]};

		if (place.at.is_known && ky_vec_push(&f->places, place) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static void follow_run_note_places(struct opened *now, const struct ky_batch *batch)
{
	struct ky_batch rest = *batch, run;

	while (ky_batch_run(&rest, &run)) {
		const struct ky_event *last = run.events + run.n_events - 1;

		if (!run.n_events)
			continue;
		now->by_index[run.stream->index] = (struct ky_stream_place){
			.is_known = true,
			.packet_bytes = last->packet->file_offset_bytes,
			.end_bits = last->end_bits,
		};
	}
}

/* ---- one set -------------------------------------------------------------------------- */

static void close_opened(struct opened *opened)
{
	if (!opened)
		return;
	if (opened->is_open)
		ky_trace_set_close(&opened->set);
	ky_follow_close(opened->follow);
	free(opened->by_index);
	free(opened);
}

static uint32_t delay_ms(const struct ky_follow_run *run)
{
	return (uint32_t)((run->live->delay_ns ?: KY_LIVE_DELAY_NS) / 1000000);
}

/* May traces still come? */
static bool follow_run_is_recorded(const struct follower *f)
{
	ky_vec_foreach(&f->remotes.feeds, at)
		if (!at->feed->has_ended)
			return true;
	return f->is_claimed || (f->run->is_recorded && f->remotes.local.len &&
				 f->run->is_recorded((char **)(uintptr_t)f->remotes.local.data,
						     (int)f->remotes.local.len));
}

/* 0: the set is open; KYMO_E_NOT_FOUND: there is no trace yet; or another error. */
static int follow_run_open_set(struct follower *f, struct opened *fresh, struct kymo_error *err)
{
	const struct ky_follow_run *run = f->run;
	struct ky_input_options input = *run->input;
	int ret = ky_follow_open(f->remotes.local.data, f->remotes.local.len, delay_ms(run),
				 &fresh->follow, err);

	input.follow = true;
	/* Of a recording that goes on; of one that is complete, all events are there. */
	f->leaves_out_late = f->leaves_out_late || follow_run_is_recorded(f);
	input.leaves_out_late = f->leaves_out_late;
	input.remotes = &f->remotes;
	for (size_t i = 0; i < f->remotes.feeds.len && !ret; i++)
		ret = ky_follow_add_feed(fresh->follow, f->remotes.feeds.data[i].feed, err);
	if (!ret)
		ret = ky_cli_open(&fresh->set, run->paths, run->n_paths, &input, true, err);
	if (ret < 0)
		return ret;
	fresh->is_open = true;
	fresh->by_index = calloc(fresh->set.streams.len + 1, sizeof(*fresh->by_index));
	if (!fresh->by_index)
		return ky_error_nomem(err);
	ky_vec_foreach(&fresh->set.streams, stream) {
		const struct place *place = follow_run_find_place(f, *stream);

		if (place)
			fresh->by_index[(*stream)->index] = place->at;
	}
	return KYMO_OK;
}

static int open_graph(struct follower *f, struct opened *fresh, struct ky_flow **flow,
		      struct kymo_error *err)
{
	struct ky_selection selection;
	int ret = ky_cli_select_resolve(&fresh->set, f->run->select, f->run->times->clock_gmt, NULL,
					&selection, err);

	if (ret < 0)
		return ky_cli_in_filter(ret, err);
	selection.head = UINT64_MAX;
	selection.places = fresh->by_index;
	return ky_cli_in_filter(ky_flow_open_selected(&fresh->set, &selection, flow, err), err);
}

static int follow_run_take_batch(struct follower *f, struct ky_batch *batch, struct kymo_error *err)
{
	const struct ky_follow_run *run = f->run;

	if (batch->n_events > f->left)
		batch->n_events = (size_t)f->left;
	if (batch->loss) {
		int ret = run->flush(run->data, INT64_MIN, err);

		if (ret < 0)
			return ret;
		ky_cli_warn_loss(batch->loss, run->times);
	}
	if (f->left != UINT64_MAX)
		f->left -= batch->n_events;
	follow_run_note_places(f->now, batch);
	return run->batch(run->data, batch, err);
}

/* Everything before this time has come; INT64_MIN: unknown. */
static int64_t follow_run_known_until(const struct ky_trace_set *set)
{
	int64_t until_ns = INT64_MAX;

	ky_vec_foreach(&set->traces, trace)
		if ((*trace)->live.is_written && ky_trace_live_until(*trace) < until_ns)
			until_ns = ky_trace_live_until(*trace);
	return until_ns == INT64_MAX ? INT64_MIN : until_ns;
}

static int follow_run_wait_for_more(struct follower *f, bool *again, struct kymo_error *err)
{
	int ret = f->run->flush(f->run->data, follow_run_known_until(&f->now->set), err);

	if (ret < 0)
		return ret;
	ky_follow_wait(f->now->follow, WAIT_MS);
	return ky_follow_update(f->now->follow, &f->now->set, again, err);
}

/* Until the graph is not the right one any more (*again), or all events have come. */
static int follow_run_drain(struct follower *f, struct ky_flow *flow, bool *again,
			    struct kymo_error *err)
{
	struct ky_batch batch;
	int ret = KYMO_OK;

	while (f->left && !*again && !ky_cli_interrupted()) {
		ret = ky_flow_next(flow, &batch, err);
		if (ret > 0)
			ret = follow_run_take_batch(f, &batch, err);
		else if (ret == KYMO_E_AGAIN)
			ret = follow_run_wait_for_more(f, again, err);
		else
			break;
		if (ret < 0)
			break;
	}
	return ret;
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Nothing can come yet because of @err. */
static void tell_wait(struct follower *f, const struct kymo_error *err)
{
	if (!f->has_told_wait)
		ky_log_info(&ky_cli_log, "waiting: %s", err->message);
	f->has_told_wait = true;
}

/* Opens *fresh, which becomes the set of @f, with *flow. On failure it stays @fresh's. */
static int change_set(struct follower *f, struct opened **fresh, struct ky_flow **flow,
		      struct kymo_error *err)
{
	int ret;

	*fresh = calloc(1, sizeof(**fresh));
	if (!*fresh)
		return ky_error_nomem(err);
	ret = follow_run_open_set(f, *fresh, err);
	if (!ret)
		ret = open_graph(f, *fresh, flow, err);
	if (!ret)
		ret = f->run->open(f->run->data, &(*fresh)->set, err);
	if (ret < 0)
		return ret;
	close_opened(f->now);
	f->now = *fresh;
	*fresh = NULL;
	return KYMO_OK;
}

/* Does @ret, of opening @fresh, mean that there is no trace, or no event of that name, yet? */
static bool follow_run_is_early(int ret, const struct opened *fresh)
{
	return fresh &&
	       ((ret == KYMO_E_NOT_FOUND && !fresh->is_open) ||
		(ret == KYMO_E_INVALID && fresh->is_open && ky_follow_is_live(&fresh->set)));
}

/* What has broken a feed comes after the events that it has brought. */
static int feed_status(const struct follower *f, struct kymo_error *err)
{
	ky_vec_foreach(&f->remotes.feeds, at) {
		if (at->feed->failed >= 0 || ky_cli_interrupted())
			continue;
		*err = at->feed->err;
		if (!err->path[0])
			ky_error_path(err, at->path);
		return at->feed->failed;
	}
	return KYMO_OK;
}

/*
 * All traces are complete, but the recording is not: programs may come. To open directories, or to ask the recorder, would
 * wake it.
 */
static void wait_for_programs(struct follower *f, const struct opened *opened)
{
	struct ky_follow *follow = opened ? opened->follow : NULL;

	if (!follow) {
		(void)poll(NULL, 0, WAIT_MS);
		return;
	}
	do {
		ky_follow_wait(follow, WAIT_MS);
		f->is_claimed = ky_follow_is_claimed(follow);
	} while (f->is_claimed && !f->remotes.feeds.len && !ky_follow_has_news(follow) &&
		 !ky_cli_interrupted());
}

/*
 * Does @ret, of opening @fresh, mean that a trace was removed meanwhile? A recording that is cleared has others soon. The
 * set that is open stays until then.
 */
static bool is_passing(struct follower *f, int ret, const struct opened *fresh)
{
	if (!ret)
		f->n_gone = 0;
	return ret == KYMO_E_NOT_FOUND && fresh && !fresh->is_open && f->now &&
	       f->n_gone++ < GONE_MAX;
}

/* One set of traces. *again: there is, or may be, more. */
static int follow_run_follow_once(struct follower *f, bool *again, struct kymo_error *err)
{
	bool was_recorded = follow_run_is_recorded(f), early;
	struct opened *fresh;
	struct ky_flow *flow = NULL;
	int ret = change_set(f, &fresh, &flow, err);

	*again = false;
	/* A relay says in this way that a recorder is connected, before its first trace is there. */
	was_recorded = was_recorded ||
		       (ret < 0 && fresh && fresh->follow && ky_follow_is_claimed(fresh->follow));
	early = ret < 0 && was_recorded && follow_run_is_early(ret, fresh);
	if (is_passing(f, ret, fresh)) {
		close_opened(fresh);
		(void)poll(NULL, 0, GONE_MS);
		*again = true;
		return KYMO_OK;
	}
	if (!ret)
		ret = follow_run_drain(f, flow, again, err);
	if (!ret)
		ret = keep_places(f, err);
	ky_flow_close(flow);
	if (early) {
		tell_wait(f, err);
		ret = KYMO_OK;
	}
	if (!ret && !*again && f->left && was_recorded && !ky_cli_interrupted()) {
		wait_for_programs(f, early ? fresh : f->now);
		*again = true;
	}
	close_opened(fresh);
	return ret;
}

int ky_cli_follow(const struct ky_follow_run *run, struct kymo_error *err)
{
	struct follower f = {.run = run, .left = run->select->head};
	bool again = true;
	int ret;

	ky_cli_catch_signals();
	ret = ky_cli_remotes_open(
		&f.remotes, run->paths, run->n_paths,
		&(struct ky_cli_remote_options){.key_path = run->input->relay_key,
						.delay_ms = delay_ms(run),
						.space_bytes = run->input->relay_space},
		err);
	while (!ret && again && f.left && !ky_cli_interrupted())
		ret = follow_run_follow_once(&f, &again, err);
	/* The consumer may still use the set. */
	if (run->close)
		ret = run->close(run->data, ret, err);
	if (!ret)
		ret = feed_status(&f, err);
	close_opened(f.now);
	ky_cli_remotes_fini(&f.remotes);
	ky_vec_fini(&f.places);
	return ret;
}
