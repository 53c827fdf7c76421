/* SPDX-License-Identifier: MIT */
/* The traces of a viewer, the estimates from their packets, and the counts of filters. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/range.h"
#include "flow/graph/summary.h"
#include "view/traces/view-internal.h"

/* More losses than a picture can show. */
#define MAX_LOSSES ((size_t)1 << 20)
/* Packets over more buckets of the estimates are noted by their borders: others may be as long. */
#define LONG_BUCKETS 64
/* Before any event was counted. */
#define USUAL_EVENT_BITS 300.0

/* ---- estimates --------------------------------------------------------------------------- */

static double view_place_of(const struct ky_view *view, int64_t ns)
{
	double span = (double)((uint64_t)view->end_ns - (uint64_t)view->begin_ns) + 1;

	if (ns <= view->begin_ns)
		return 0;
	if (ns >= view->end_ns)
		return (double)KY_ESTIMATE_BUCKETS;
	return (double)((uint64_t)ns - (uint64_t)view->begin_ns) / span *
	       (double)KY_ESTIMATE_BUCKETS;
}

/* @each bits for each bucket from @from to @to. @steps: where long packets begin and end. */
static void view_add_long(struct ky_view *view, double *steps, double from, double to, double each)
{
	size_t first = (size_t)from, last = (size_t)to;

	view->bits[first] += each * ((double)(first + 1) - from);
	if (last < KY_ESTIMATE_BUCKETS)
		view->bits[last] += each * (to - (double)last);
	steps[first + 1] += each;
	steps[last] -= each;
}

static void view_add_steps(struct ky_view *view, const double *steps)
{
	double sum = 0;

	for (size_t i = 0; i < KY_ESTIMATE_BUCKETS; i++) {
		sum += steps[i];
		view->bits[i] += sum > 0 ? sum : 0; /* sums of doubles are not exact */
	}
}

/* Spread the bits of one packet evenly over its time. */
static void view_add_packet(struct ky_view *view, double *steps,
			    const struct ky_packet_entry *packet)
{
	double from, to, each, covered;

	if (!packet->has_times || packet->end_ns < packet->begin_ns)
		return;
	from = view_place_of(view, packet->begin_ns);
	to = view_place_of(view, packet->end_ns);
	if (to - from < 0.5) {
		from = from < (double)KY_ESTIMATE_BUCKETS ? from : (double)KY_ESTIMATE_BUCKETS - 1;
		view->bits[(size_t)from] += (double)packet->content_bits;
		return;
	}
	each = (double)packet->content_bits / (to - from);
	if (to - from > LONG_BUCKETS) {
		view_add_long(view, steps, from, to, each);
		return;
	}
	for (size_t i = (size_t)from; i < KY_ESTIMATE_BUCKETS && (double)i < to; i++) {
		covered = (to < (double)(i + 1) ? to : (double)(i + 1)) -
			  (from > (double)i ? from : (double)i);
		view->bits[i] += each * covered;
	}
}

/* Without index and times of packets the picture is empty until events were counted. */
static int add_estimates(struct ky_view *view, double *steps, const struct ky_stream *stream)
{
	struct ky_packet_list packets = KY_VEC_INIT;
	int ret = ky_stream_packets(stream, &packets, NULL);

	ky_vec_foreach(&packets, packet)
		view_add_packet(view, steps, packet);
	ky_vec_fini(&packets);
	return ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

static int view_add_losses(struct ky_view *view, const struct ky_stream *stream)
{
	struct ky_stream_summary summary = {0};
	int ret = ky_stream_survey(stream, &summary, NULL);

	ret = ret == KYMO_E_MEMORY ? ret : KYMO_OK;
	ky_vec_foreach(&summary.losses, loss) {
		const struct ky_view_loss one = {loss->begin_ns, loss->end_ns, loss->events,
						 stream->index};

		if (loss->begin_ns == INT64_MIN || view->losses.len >= MAX_LOSSES || ret < 0)
			continue;
		ret = ky_vec_push(&view->losses, one);
	}
	ky_stream_summary_fini(&summary);
	return ret;
}

/* The first one of stream @stream or a later one: streams were surveyed in their order. */
static size_t view_first_loss(const struct ky_view *view, uint64_t stream)
{
	size_t low = 0, high = view->losses.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (view->losses.data[middle].stream < stream)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct ky_view_loss *ky_view_losses_of(const struct ky_view *view, uint32_t stream, size_t *n)
{
	size_t first = view_first_loss(view, stream);

	*n = view_first_loss(view, (uint64_t)stream + 1) - first;
	return *n ? &view->losses.data[first] : NULL;
}

double ky_view_bits(const struct ky_view *view, int64_t begin_ns, int64_t end_ns)
{
	double from = view_place_of(view, begin_ns), to = view_place_of(view, end_ns), sum = 0,
	       covered;

	if (!view->bits)
		return 0;
	for (size_t i = (size_t)from; i < KY_ESTIMATE_BUCKETS && (double)i < to; i++) {
		covered = (to < (double)(i + 1) ? to : (double)(i + 1)) -
			  (from > (double)i ? from : (double)i);
		sum += view->bits[i] * covered;
	}
	return sum;
}

int64_t ky_view_time_after(const struct ky_view *view, int64_t from_ns, double bits)
{
	double span = (double)((uint64_t)view->end_ns - (uint64_t)view->begin_ns) + 1;
	size_t i = (size_t)view_place_of(view, from_ns);
	uint64_t after;

	if (!view->bits)
		return view->end_ns;
	while (i < KY_ESTIMATE_BUCKETS && bits > view->bits[i])
		bits -= view->bits[i++];
	after = (uint64_t)((double)i / (double)KY_ESTIMATE_BUCKETS * span);
	return i < KY_ESTIMATE_BUCKETS ? (int64_t)((uint64_t)view->begin_ns + after) : view->end_ns;
}

double ky_view_rate(const struct ky_view *view, struct ky_counts *counts,
		    const struct ky_counts_state *state)
{
	double bits = ky_view_bits(view, view->begin_ns, ky_counts_time(counts, state->n_exact));

	return bits > 0 && state->n_exact ? (double)state->n / bits : 1 / USUAL_EVENT_BITS;
}

uint64_t ky_view_total(const struct ky_view *view, struct ky_counts *counts,
		       const struct ky_counts_state *state)
{
	int64_t from_ns = ky_counts_time(counts, state->n_exact);

	if (state->is_over)
		return state->n;
	return state->n + (uint64_t)(ky_view_bits(view, from_ns, view->end_ns) *
				     ky_view_rate(view, counts, state));
}

/* ---- opening ----------------------------------------------------------------------------- */

static int survey(struct ky_view *view, struct kymo_error *err)
{
	double *steps;
	int ret = ky_set_range(view->set, &view->begin_ns, &view->end_ns, err);

	if (ret < 0 || view->begin_ns == INT64_MIN)
		return ret;
	view->bits = calloc(KY_ESTIMATE_BUCKETS, sizeof(*view->bits));
	steps = calloc(KY_ESTIMATE_BUCKETS + 1, sizeof(*steps));
	ret = view->bits && steps ? KYMO_OK : KYMO_E_MEMORY;
	ky_vec_foreach(&view->set->streams, stream) {
		if (!ret && (*stream)->file.data)
			ret = add_estimates(view, steps, *stream);
		if (!ret && (*stream)->file.data)
			ret = view_add_losses(view, *stream);
	}
	if (!ret)
		view_add_steps(view, steps);
	free(steps);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

int ky_view_new(struct ky_trace_set *set, struct ky_view **made, struct kymo_error *err)
{
	struct ky_view *view = calloc(1, sizeof(*view));
	int ret;

	if (!view)
		return ky_error_nomem(err);
	pthread_mutex_init(&view->lock, NULL);
	ky_view_history_init(&view->history);
	view->set = set;
	view->log = set->traces.len ? set->traces.data[0]->log : NULL;
	ky_vec_foreach(&set->traces, trace)
		(*trace)->log = NULL;
	ret = survey(view, err);
	if (ret < 0)
		ky_view_free(view);
	else
		*made = view;
	return ret;
}

/* ---- later states of a recording --------------------------------------------------------- */

static const struct ky_trace *view_same_trace(const struct ky_trace_set *set,
					      const struct ky_trace *trace)
{
	ky_vec_foreach(&set->traces, other)
		if (strcmp((*other)->path, trace->path) == 0)
			return *other;
	return NULL;
}

/* A time of the one is the same time of the other. */
static bool are_clocks_same(const struct ky_trace_class *a, const struct ky_trace_class *b)
{
	if (a->clocks.len != b->clocks.len)
		return false;
	for (size_t i = 0; i < a->clocks.len; i++) {
		const struct ky_clock_class *one = a->clocks.data[i], *other = b->clocks.data[i];

		if (ky_clock_to_ns(one, 0) != ky_clock_to_ns(other, 0) ||
		    one->frequency_hz != other->frequency_hz ||
		    one->line.drift != other->line.drift)
			return false;
	}
	return true;
}

static bool is_later_state(const struct ky_trace_set *set, const struct ky_trace_set *before)
{
	ky_vec_foreach(&before->traces, trace) {
		const struct ky_trace *now = view_same_trace(set, *trace);

		if (!now || !are_clocks_same((*trace)->cls, now->cls))
			return false;
	}
	return true;
}

static int continue_counts(struct ky_view *view, struct ky_view *before, struct kymo_error *err)
{
	int ret = KYMO_OK;

	pthread_mutex_lock(&before->lock);
	for (size_t i = 0; i < KY_VIEW_COUNTS && !ret; i++) {
		struct ky_view_counting *own = &view->counting[i];

		if (!before->counting[i].counts)
			continue;
		ret = ky_counts_continue(before->counting[i].counts, view->set, view->end_ns,
					 &own->counts, err);
		/* The filter's field may be gone. */
		ret = ret == KYMO_E_INVALID ? KYMO_OK : ret;
		own->used = before->counting[i].used;
	}
	view->clock = before->clock;
	pthread_mutex_unlock(&before->lock);
	return ret;
}

int ky_view_new_after(struct ky_trace_set *set, struct ky_view *before, struct ky_view **made,
		      struct kymo_error *err)
{
	struct ky_view *view;
	int ret = ky_view_new(set, &view, err);

	if (ret < 0)
		return ret;
	if (before->begin_ns != INT64_MIN && is_later_state(set, before->set))
		ret = continue_counts(view, before, err);
	if (ret < 0)
		ky_view_free(view);
	else
		*made = view;
	return ret;
}

void ky_view_free(struct ky_view *view)
{
	if (!view)
		return;
	for (size_t i = 0; i < KY_VIEW_COUNTS; i++)
		ky_counts_free(view->counting[i].counts);
	ky_view_history_fini(&view->history);
	pthread_mutex_destroy(&view->lock);
	ky_vec_fini(&view->losses);
	free(view->bits);
	free(view);
}

/* ---- counts ------------------------------------------------------------------------------ */

/* The place of @filter; else the one to replace; NULL: all are in use. */
static struct ky_view_counting *place_for(struct ky_view *view, const char *filter)
{
	struct ky_view_counting *best = NULL;

	for (size_t i = 0; i < KY_VIEW_COUNTS; i++) {
		struct ky_view_counting *one = &view->counting[i];

		if (one->counts && strcmp(ky_counts_filter(one->counts), filter) == 0)
			return one;
		if (!one->n_users && (!best || one->used < best->used))
			best = one;
	}
	return best;
}

static int begin_counts(struct ky_view *view, const char *filter, struct ky_view_counting *place,
			struct kymo_error *err)
{
	struct ky_counts *counts;
	int ret;

	if (place->counts && strcmp(ky_counts_filter(place->counts), filter) == 0)
		return KYMO_OK;
	ret = ky_counts_new(view->set, view->begin_ns, view->end_ns, filter, &counts, err);
	if (ret < 0)
		return ret;
	ky_counts_free(place->counts);
	place->counts = counts;
	return KYMO_OK;
}

int ky_view_take_counts(struct ky_view *view, const char *filter, struct ky_counts **counts,
			struct kymo_error *err)
{
	struct ky_view_counting *place;
	int ret = KYMO_E_LIMIT;

	pthread_mutex_lock(&view->lock);
	place = place_for(view, filter);
	if (place)
		ret = begin_counts(view, filter, place, err);
	else
		ky_error_set(err, KYMO_E_LIMIT, "too many filters at the same time");
	if (ret == KYMO_OK) {
		place->n_users++;
		place->used = ++view->clock;
		*counts = place->counts;
	}
	pthread_mutex_unlock(&view->lock);
	return ret;
}

void ky_view_put_counts(struct ky_view *view, const struct ky_counts *counts)
{
	pthread_mutex_lock(&view->lock);
	for (size_t i = 0; i < KY_VIEW_COUNTS; i++)
		view->counting[i].n_users -= view->counting[i].counts == counts;
	pthread_mutex_unlock(&view->lock);
}
