/* SPDX-License-Identifier: MIT */
#include "view/traces/counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/select.h"
#include "view/traces/view-internal.h"

/* Reading goes on over fewer buckets without events, and seeks over more. */
#define MAX_GAP (KY_COUNT_BUCKETS / 256)

struct ky_counts {
	const struct ky_trace_set *set;
	int64_t begin_ns;
	uint64_t width_ns; /* of a bucket */
	char *filter;
	struct ky_flow *flow; /* the thread's */
	bool is_started;
	bool continues; /* earlier counts: ->places says where */
	pthread_t thread;
	atomic_bool stop;     /* relaxed: nothing depends on when the thread sees it */
	pthread_mutex_t lock; /* for everything below */
	uint32_t *buckets;
	struct ky_stream_place *places; /* by stream: the last event that was counted */
	size_t n_counted;		/* the first buckets, complete as far as the set goes */
	struct ky_counts_state state;
	struct ky_broken_list broken;
};

/* ---- time and buckets -------------------------------------------------------------------- */

size_t ky_counts_bucket(const struct ky_counts *counts, int64_t ns)
{
	uint64_t at;

	if (ns <= counts->begin_ns)
		return 0;
	at = ((uint64_t)ns - (uint64_t)counts->begin_ns) / counts->width_ns;
	return at < KY_COUNT_BUCKETS ? (size_t)at : KY_COUNT_BUCKETS - 1;
}

int64_t ky_counts_time(const struct ky_counts *counts, size_t bucket)
{
	uint64_t after;

	if (__builtin_mul_overflow((uint64_t)bucket, counts->width_ns, &after) ||
	    after > (uint64_t)INT64_MAX - (uint64_t)counts->begin_ns)
		return INT64_MAX;
	return (int64_t)((uint64_t)counts->begin_ns + after);
}

/* ---- counting ---------------------------------------------------------------------------- */

static void counts_add(struct ky_counts *counts, const struct ky_batch *batch)
{
	int64_t end_ns = INT64_MIN; /* of the bucket */
	size_t bucket = 0;

	for (size_t i = 0; i < batch->n_events; i++) {
		int64_t ns = batch->events[i].ns;

		if (ns >= end_ns || i == 0) {
			bucket = ky_counts_bucket(counts, ns);
			end_ns = ky_counts_time(counts, bucket + 1);
		}
		counts->buckets[bucket] += counts->buckets[bucket] != UINT32_MAX;
	}
	counts->state.n += batch->n_events;
	/* Later events may be in the last bucket, too. */
	if (bucket > counts->state.n_exact)
		counts->state.n_exact = bucket;
	counts->n_counted = counts->state.n_exact;
}

/* Where counting continues in a later state of the recording. */
static void counts_note_places(struct ky_counts *counts, const struct ky_batch *batch)
{
	struct ky_batch rest = *batch, run;

	while (ky_batch_run(&rest, &run)) {
		const struct ky_event *last = run.events + run.n_events - 1;

		if (!run.n_events)
			continue;
		counts->places[run.stream->index] = (struct ky_stream_place){
			.is_known = true,
			.packet_bytes = last->packet->file_offset_bytes,
			.end_bits = last->end_bits,
		};
	}
}

static bool is_of(const struct ky_stream *stream, const char *path)
{
	if (stream->file.path && strcmp(stream->file.path, path) == 0)
		return true;
	ky_vec_foreach(&stream->parts, part) {
		if (part->path && strcmp(part->path, path) == 0)
			return true;
	}
	return false;
}

void ky_broken_note(struct ky_broken_list *list, const struct ky_trace_set *set,
		    struct ky_flow *flow)
{
	struct kymo_error err;
	int64_t ns;

	for (size_t i = 0; ky_flow_broken(flow, i, &ns, &err) < 0; i++) {
		ky_vec_foreach(&set->streams, stream) {
			const struct ky_broken broken = {(*stream)->index, ns};

			if (is_of(*stream, err.path))
				(void)ky_vec_push(list, broken);
		}
	}
}

bool ky_counts_broken(struct ky_counts *counts, size_t i, uint32_t *stream, int64_t *ns)
{
	bool is_there;

	pthread_mutex_lock(&counts->lock);
	is_there = i < counts->broken.len;
	if (is_there) {
		*stream = counts->broken.data[i].stream;
		*ns = counts->broken.data[i].ns;
	}
	pthread_mutex_unlock(&counts->lock);
	return is_there;
}

static bool counts_is_stopped(void *data)
{
	struct ky_counts *counts = data;

	return atomic_load_explicit(&counts->stop, memory_order_relaxed);
}

/*
 * Nobody wants what comes after the stop, or later counts have it. It may lack the events of streams that have ended for it.
 * False: it came after the stop.
 */
static bool counts_take(struct ky_counts *counts, const struct ky_batch *batch)
{
	bool goes_on;

	pthread_mutex_lock(&counts->lock);
	goes_on = !counts_is_stopped(counts);
	if (goes_on) {
		counts_add(counts, batch);
		counts_note_places(counts, batch);
	}
	pthread_mutex_unlock(&counts->lock);
	return goes_on;
}

static void *counts_count(void *data)
{
	struct ky_counts *counts = data;
	struct ky_batch batch;
	struct kymo_error err;
	int ret;

	ky_error_clear(&err);
	do
		ret = ky_flow_next(counts->flow, &batch, &err);
	while (ret > 0 && counts_take(counts, &batch));
	pthread_mutex_lock(&counts->lock);
	if (ret <= 0 && !counts_is_stopped(counts)) {
		if (ret < 0)
			ky_broken_note(&counts->broken, counts->set, counts->flow);
		counts->state.is_over = true;
		counts->state.n_exact = KY_COUNT_BUCKETS;
		counts->state.error = err;
	}
	pthread_mutex_unlock(&counts->lock);
	ky_flow_close(counts->flow);
	return NULL;
}

static int counts_begin(struct ky_counts *counts, struct kymo_error *err)
{
	struct ky_strbuf expression = KY_STRBUF_INIT;
	struct ky_selection selection;
	int ret;

	ky_selection_init(&selection);
	selection.places = counts->continues ? counts->places : NULL;
	selection.is_over = counts_is_stopped;
	selection.over_data = counts;
	ret = ky_view_expression(counts->filter, &expression, &selection.filter, err);
	if (ret == KYMO_OK)
		ret = ky_flow_open_selected(counts->set, &selection, &counts->flow, err);
	ky_strbuf_fini(&expression);
	if (ret == KYMO_E_INVALID && err && !err->path[0])
		ky_error_input(err, "filter");
	if (ret == KYMO_OK)
		ret = ky_view_match(counts->flow, counts->filter, &counts->flow, err);
	if (ret < 0)
		return ret;
	ret = pthread_create(&counts->thread, NULL, counts_count, counts);
	counts->is_started = !ret;
	if (!ret)
		return KYMO_OK;
	ky_flow_close(counts->flow);
	return ky_error_errno(err, ret, "cannot start a thread that counts events");
}

static int counts_make(const struct ky_trace_set *set, const char *filter, struct ky_counts **made,
		       struct kymo_error *err)
{
	struct ky_counts *counts = calloc(1, sizeof(*counts));

	if (!counts)
		return ky_error_nomem(err);
	counts->set = set;
	counts->filter = strdup(filter);
	counts->buckets = calloc(KY_COUNT_BUCKETS, sizeof(*counts->buckets));
	counts->places = calloc(set->streams.len + 1, sizeof(*counts->places));
	pthread_mutex_init(&counts->lock, NULL);
	*made = counts;
	if (counts->filter && counts->buckets && counts->places)
		return KYMO_OK;
	ky_counts_free(counts);
	return ky_error_nomem(err);
}

static int counts_finish(struct ky_counts *counts, struct ky_counts **made, struct kymo_error *err)
{
	int ret = counts_begin(counts, err);

	if (ret < 0)
		ky_counts_free(counts);
	else
		*made = counts;
	return ret;
}

int ky_counts_new(const struct ky_trace_set *set, int64_t begin_ns, int64_t end_ns,
		  const char *filter, struct ky_counts **made, struct kymo_error *err)
{
	struct ky_counts *counts;
	int ret = counts_make(set, filter, &counts, err);

	if (ret < 0)
		return ret;
	counts->begin_ns = begin_ns;
	counts->width_ns = ((uint64_t)end_ns - (uint64_t)begin_ns) / KY_COUNT_BUCKETS + 1;
	return counts_finish(counts, made, err);
}

/* ---- later states of a recording --------------------------------------------------------- */

static void counts_halve(struct ky_counts *counts, uint32_t *buckets)
{
	for (size_t i = 0; i < KY_COUNT_BUCKETS / 2; i++) {
		uint64_t sum = (uint64_t)buckets[2 * i] + buckets[2 * i + 1];

		buckets[i] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	}
	memset(buckets + KY_COUNT_BUCKETS / 2, 0, KY_COUNT_BUCKETS / 2 * sizeof(*buckets));
	counts->width_ns *= 2;
	counts->state.n_exact /= 2;
}

/* Two buckets become one until the last one reaches @end_ns. */
static void counts_widen(struct ky_counts *counts, int64_t end_ns)
{
	uint64_t span = (uint64_t)end_ns - (uint64_t)counts->begin_ns;
	uint32_t *buckets = counts->buckets;

	while (end_ns > counts->begin_ns && span / KY_COUNT_BUCKETS >= counts->width_ns)
		counts_halve(counts, buckets);
}

/* A file keeps its identity when a rotation moves it. */
static void take_place(struct ky_counts *counts, const struct ky_counts *before,
		       const struct ky_stream *stream)
{
	const struct ky_stream_part *part = &stream->parts.data[0];

	ky_vec_foreach(&before->set->streams, it) {
		const struct ky_stream_part *other = &(*it)->parts.data[0];

		if (other->device == part->device && other->inode == part->inode)
			counts->places[stream->index] = before->places[(*it)->index];
	}
}

int ky_counts_continue(struct ky_counts *before, const struct ky_trace_set *set, int64_t end_ns,
		       struct ky_counts **made, struct kymo_error *err)
{
	struct ky_counts *counts;
	int ret = counts_make(set, before->filter, &counts, err);

	if (ret < 0)
		return ret;
	atomic_store_explicit(&before->stop, true, memory_order_relaxed);
	counts->continues = true;
	counts->begin_ns = before->begin_ns;
	counts->width_ns = before->width_ns;
	pthread_mutex_lock(&before->lock);
	memcpy(counts->buckets, before->buckets, KY_COUNT_BUCKETS * sizeof(*counts->buckets));
	counts->state.n = before->state.n;
	counts->state.n_exact = before->n_counted;
	ky_vec_foreach(&set->streams, stream)
		take_place(counts, before, *stream);
	pthread_mutex_unlock(&before->lock);
	counts_widen(counts, end_ns);
	counts->n_counted = counts->state.n_exact;
	return counts_finish(counts, made, err);
}

void ky_counts_free(struct ky_counts *counts)
{
	if (!counts)
		return;
	if (counts->is_started) {
		atomic_store_explicit(&counts->stop, true, memory_order_relaxed);
		pthread_join(counts->thread, NULL);
	}
	pthread_mutex_destroy(&counts->lock);
	free(counts->buckets);
	free(counts->places);
	ky_vec_fini(&counts->broken);
	free(counts->filter);
	free(counts);
}

/* ---- asking ------------------------------------------------------------------------------ */

const char *ky_counts_filter(const struct ky_counts *counts)
{
	return counts->filter;
}

void ky_counts_state(struct ky_counts *counts, struct ky_counts_state *state)
{
	pthread_mutex_lock(&counts->lock);
	*state = counts->state;
	pthread_mutex_unlock(&counts->lock);
}

uint64_t ky_counts_sum(struct ky_counts *counts, size_t from, size_t to)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&counts->lock);
	for (size_t i = from; i < to; i++)
		sum += counts->buckets[i];
	pthread_mutex_unlock(&counts->lock);
	return sum;
}

bool ky_counts_find(struct ky_counts *counts, uint64_t row, size_t *bucket, uint64_t *before)
{
	uint64_t sum = 0;
	size_t i = 0;

	pthread_mutex_lock(&counts->lock);
	for (; i < KY_COUNT_BUCKETS && sum + counts->buckets[i] <= row; i++)
		sum += counts->buckets[i];
	pthread_mutex_unlock(&counts->lock);
	*bucket = i;
	*before = sum;
	return i < KY_COUNT_BUCKETS;
}

bool ky_counts_window(struct ky_counts *counts, size_t at, uint64_t n, size_t *from, size_t *to)
{
	uint64_t sum = 0;
	size_t i = at, last;

	pthread_mutex_lock(&counts->lock);
	while (i < KY_COUNT_BUCKETS && !counts->buckets[i])
		i++;
	*from = last = i;
	for (; i < KY_COUNT_BUCKETS && sum < n && i - last <= MAX_GAP; i++) {
		sum += counts->buckets[i];
		last = counts->buckets[i] ? i : last;
	}
	pthread_mutex_unlock(&counts->lock);
	*to = last + 1;
	return *from < KY_COUNT_BUCKETS;
}

size_t ky_counts_pixels(struct ky_counts *counts, int64_t begin_ns, int64_t end_ns, size_t n,
			double *pixels)
{
	double span = (double)((uint64_t)end_ns - (uint64_t)begin_ns) + 1;
	size_t from = ky_counts_bucket(counts, begin_ns), to = ky_counts_bucket(counts, end_ns);
	size_t n_exact = n;

	pthread_mutex_lock(&counts->lock);
	for (size_t i = from; i <= to; i++) {
		int64_t at_ns = ky_counts_time(counts, i);
		double after =
			(double)(at_ns < begin_ns ? 0 : (uint64_t)at_ns - (uint64_t)begin_ns);
		size_t pixel = (size_t)(after / span * (double)n);

		pixel = pixel < n ? pixel : n - 1;
		if (i >= counts->state.n_exact && pixel < n_exact)
			n_exact = pixel;
		pixels[pixel] += counts->buckets[i];
	}
	pthread_mutex_unlock(&counts->lock);
	return n_exact;
}
