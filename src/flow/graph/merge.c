/* SPDX-License-Identifier: MIT */
/*
 * The merge, in windows: some events of each input are read ahead (merge-inputs.h); those of them that
 * nothing still to come can precede are put in order by their times (radix-sort.h) and copied, so that
 * what is delivered lies in one piece. So an event costs the same however many streams there are.
 *
 * A window ends with the last event that is known of some input: what that one has next is not
 * earlier. Where it makes windows short, it may read further ahead the next time.
 *
 * An event's key is the latest time in its stream up to it, and so a stream whose time goes back
 * keeps its order: the events in between come right behind the one before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/merge-inputs.h"
#include "flow/graph/radix-sort.h"

/*
 * A round is delivered in windows of so many events: what reads them finds them, and what they tell of,
 * near by. While one event is copied, later ones are fetched.
 */
#define WINDOW_EVENTS	 1024
#define PREFETCH_ENTRIES 12
/* An entry of a round is named by 32 bits: of which input, and which one there. */
#define PLACE_BITS     32
#define PLACE_BITS_MIN 12
#define INPUTS_MAX     (UINT32_C(1) << (PLACE_BITS - PLACE_BITS_MIN))
_Static_assert(KY_PREFETCH_MAX + 2 <= 1u << PLACE_BITS_MIN, "entries that wait have names");
/* The span of a round: its keys have 32 bits. */
#define SPAN_MAX_NS (UINT32_MAX - UINT64_C(1))

/* A loss in the window, before events[at]. */
struct split {
	size_t at;
	const struct ky_loss *loss;
	bool has_event; /* events[at] came with it */
};

struct merge {
	struct ky_flow flow;
	struct ky_inputs in;
	struct ky_windows windows;
	uint64_t *order,
		*scratch; /* of the round's entries: key, and where they lie: see merge_entry_of() */
	size_t cap;	  /* room in these two */
	size_t n_runs;	  /* how many inputs have entries in the round */
	size_t middle;	  /* where the last one's begin */
	struct ky_event **bases; /* by input: where its entries begin, while a round lasts */
	unsigned int place_bits; /* how many tell the place in a queue */
	const uint64_t *sorted;	 /* one of the two */
	size_t n_sorted, n_gathered;
	const struct ky_stream
		*only;		     /* all events of the round are of this one; NULL: of several */
	KY_VEC(struct split) splits; /* of the window */
	size_t n_delivered, n_splits; /* of the window */
};

static struct merge *merge_of(struct ky_flow *flow)
{
	return (struct merge *)flow;
}

/* ---- a round -------------------------------------------------------------------------------- */

static int merge_make_room(struct merge *m, size_t n)
{
	if (n <= m->cap)
		return KYMO_OK;
	free(m->order);
	free(m->scratch);
	m->order = malloc(n * sizeof(*m->order));
	m->scratch = malloc(n * sizeof(*m->scratch));
	m->cap = m->order && m->scratch ? n : 0;
	return m->cap ? KYMO_OK : KYMO_E_MEMORY;
}

/* Add @input's entries up to @last_ns to the @n of the round so far. Returns how many. */
static size_t merge_collect(struct merge *m, struct ky_input *input, int64_t first_ns,
			    int64_t last_ns, size_t n)
{
	const struct ky_queue *q = &input->queue;
	const int64_t *keys = q->keys + q->first;
	uint32_t place = (uint32_t)(input->number << m->place_bits);
	uint64_t *order = m->order + n;
	size_t i, len = ky_queue_length(q);

	for (i = 0; i < len && keys[i] <= last_ns; i++)
		order[i] = ky_radix_sort_entry((uint32_t)((uint64_t)keys[i] - (uint64_t)first_ns),
					       place + (uint32_t)i);
	m->bases[input->number] = q->entries + q->first;
	input->n_collected = i;
	return i;
}

/* Collect what comes up to @limit; *max_key is the largest key. Returns how many entries. */
static size_t collect_all(struct merge *m, const struct ky_input_limit *limit, uint32_t *max_key)
{
	int64_t last_ns = INT64_MIN, newest_ns;
	size_t n = 0;

	m->n_runs = m->middle = 0;
	for (size_t i = 0; i < m->in.n_live; i++) {
		struct ky_input *input = m->in.live[i];
		bool below = input->number > limit->number;
		size_t taken;

		if (below && limit->ns == INT64_MIN)
			continue;
		taken = merge_collect(m, input, limit->first_ns, limit->ns - below, n);
		if (!taken)
			continue;
		n += taken;
		m->middle = n - taken;
		m->only = m->n_runs++ ? NULL : input->queue.stream;
		newest_ns = input->queue.keys[input->queue.first + taken - 1];
		last_ns = newest_ns > last_ns ? newest_ns : last_ns;
	}
	*max_key = (uint32_t)((uint64_t)last_ns - (uint64_t)limit->first_ns);
	return n;
}

/* The loss of @entry becomes the window's. */
static int add_split(struct merge *m, struct ky_window *window, struct ky_event *entry)
{
	struct ky_loss *loss = ky_entry_loss(entry);
	struct split split = {
		.at = window->n_events, .loss = loss, .has_event = ky_entry_has_event(entry)};

	entry->begin_bits = 0;
	if (ky_vec_push(&window->losses, loss) < 0) {
		ky_loss_drop(loss);
		free(loss);
		return KYMO_E_MEMORY;
	}
	return ky_vec_push(&m->splits, split);
}

/* What of the round an entry of the order stands for. */
static inline struct ky_event *merge_entry_of(const struct merge *m, uint64_t order)
{
	uint32_t place = (uint32_t)order;

	return m->bases[place >> m->place_bits] + (place & ((UINT32_C(1) << m->place_bits) - 1));
}

/* Copy the next @n events of the round in their order. */
static int gather(struct merge *m, size_t n)
{
	struct ky_window *window = m->windows.current;
	const uint64_t *order = m->sorted + m->n_gathered;
	size_t rest = m->n_sorted - m->n_gathered;
	struct ky_event *to = window->events;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n; i++) {
		struct ky_event *from = merge_entry_of(m, order[i]);

		if (i + PREFETCH_ENTRIES < rest)
			__builtin_prefetch(merge_entry_of(m, order[i + PREFETCH_ENTRIES]));
		if (ky_entry_is_bare(from)) {
			window->n_events = (size_t)(to - window->events);
			if (ky_entry_loss(from) && add_split(m, window, from) < 0)
				ret = KYMO_E_MEMORY;
		} else {
			/* The next stage reads the window's fields soon. */
			__builtin_prefetch(from->packet->data + from->begin_bits / 8);
			*to++ = *from;
		}
	}
	window->n_events = (size_t)(to - window->events);
	m->n_gathered += n;
	return ret;
}

/* What was collected has been gathered, all of it. */
static void end_round(struct merge *m)
{
	for (size_t i = 0; i < m->in.n_live; i++) {
		struct ky_input *input = m->in.live[i];

		if (input->n_collected)
			ky_queue_take(&input->queue, &m->windows, input->n_collected);
		input->n_collected = 0;
	}
}

/* Put in order what comes next. 1, 0 at the end, KYMO_E_AGAIN or KYMO_E_MEMORY. */
static int next_round(struct merge *m)
{
	uint32_t max_key;
	struct ky_input_limit limit;
	size_t n = 0;

	if (ky_inputs_fill(&m->in, &m->windows) < 0)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < m->in.n_live; i++)
		n += ky_queue_length(&m->in.live[i]->queue);
	if (!n)
		return m->in.n_live ? KYMO_E_AGAIN : 0;
	if (merge_make_room(m, n) < 0)
		return KYMO_E_MEMORY;
	limit = ky_inputs_limit(&m->in, SPAN_MAX_NS);
	if (limit.ns < limit.first_ns)
		return KYMO_E_AGAIN;
	n = collect_all(m, &limit, &max_key);
	if (!n)
		return KYMO_E_AGAIN;
	ky_inputs_plan(&m->in, n, &limit, SPAN_MAX_NS);
	m->sorted = m->n_runs > 2 ? ky_radix_sort(m->order, m->scratch, n, max_key)
				  : ky_radix_sort_two(m->order, m->scratch, m->middle, n);
	m->n_sorted = n;
	m->n_gathered = 0;
	return 1;
}

/* The next window: 1, 0 at the end, KYMO_E_AGAIN or KYMO_E_MEMORY. */
static int next_window(struct merge *m)
{
	size_t n;
	int ret = 1;

	if (m->n_gathered == m->n_sorted)
		ret = next_round(m);
	if (ret <= 0)
		return ret;
	n = m->n_sorted - m->n_gathered;
	n = n < WINDOW_EVENTS ? n : WINDOW_EVENTS;
	if (ky_windows_next(&m->windows, n) < 0)
		return KYMO_E_MEMORY;
	ky_vec_clear(&m->splits);
	m->n_delivered = m->n_splits = 0;
	ret = gather(m, n);
	/* Its packets are borrowed by this window, too: not before. */
	if (m->n_gathered == m->n_sorted)
		end_round(m);
	return ret < 0 ? ret : 1;
}

/* ---- the stage ------------------------------------------------------------------------------- */

/* What is left of the window up to the next loss. False: nothing. */
static bool deliver(struct merge *m, struct ky_batch *batch)
{
	struct ky_window *window = m->windows.current;
	const struct split *split = NULL;
	size_t end;

	if (m->n_splits < m->splits.len && m->splits.data[m->n_splits].at == m->n_delivered)
		split = &m->splits.data[m->n_splits++];
	else if (!window || m->n_delivered == window->n_events)
		return false;
	end = m->n_splits < m->splits.len ? m->splits.data[m->n_splits].at : window->n_events;
	if (split && !split->has_event)
		end = m->n_delivered;
	*batch = (struct ky_batch){
		.stream = split && !split->has_event ? split->loss->stream : m->only,
		.events = window->events + m->n_delivered,
		.n_events = end - m->n_delivered,
		.loss = split ? split->loss : NULL,
		.window = window,
	};
	m->n_delivered = end;
	return true;
}

static int merge_end(struct merge *m, struct kymo_error *err)
{
	int ret = m->in.code;

	m->in.code = KYMO_OK;
	if (ret < 0 && err)
		*err = m->in.first;
	return ret;
}

static int merge_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct merge *m = merge_of(flow);
	int ret;

	while (!deliver(m, batch)) {
		ret = next_window(m);
		if (ret == KYMO_E_AGAIN)
			return ret;
		if (ret < 0)
			return ky_error_nomem(err);
		if (!ret)
			return merge_end(m, err);
	}
	return 1;
}

void ky_merge_restart(struct ky_flow *flow)
{
	struct merge *m = merge_of(flow);

	ky_inputs_restart(&m->in, &m->windows);
	if (m->windows.current)
		m->n_delivered = m->windows.current->n_events;
	m->n_sorted = m->n_gathered = 0;
	ky_vec_clear(&m->splits);
	m->n_splits = 0;
}

ssize_t ky_merge_prefill(struct ky_flow *flow, size_t max)
{
	struct merge *m = merge_of(flow);
	size_t nameable = (size_t)1 << m->place_bits;

	/* A queue has up to twice as many, and some. */
	if (max > nameable / 2 - 2)
		max = nameable / 2 - 2;
	return ky_inputs_prefill(&m->in, &m->windows, max);
}

static int merge_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct merge *m = merge_of(flow);

	ky_merge_restart(flow);
	return ky_inputs_seek(&m->in, ns, err);
}

static int merge_broken(struct ky_flow *flow, size_t i, int64_t *ns, struct kymo_error *err)
{
	return ky_inputs_broken(&merge_of(flow)->in, i, ns, err);
}

static void merge_close(struct ky_flow *flow)
{
	struct merge *m = merge_of(flow);

	ky_inputs_fini(&m->in, &m->windows);
	ky_windows_fini(&m->windows);
	ky_vec_fini(&m->splits);
	free(m->order);
	free(m->scratch);
	free((void *)m->bases);
	free(m);
}

static const struct ky_flow_ops merge_ops = {
	.next = merge_next,
	.seek = merge_seek,
	.broken = merge_broken,
	.close = merge_close,
};

/* What the number of the input leaves of an entry's name. */
static unsigned int place_bits(size_t n_inputs)
{
	unsigned int bits = PLACE_BITS - 1;

	while (n_inputs > (size_t)1 << (PLACE_BITS - bits))
		bits--;
	return bits;
}

static int fail_open(struct merge *m, struct ky_flow **inputs, size_t n_inputs,
		     struct kymo_error *err)
{
	for (size_t i = 0; i < n_inputs; i++)
		ky_flow_close(inputs[i]);
	if (m)
		merge_close(&m->flow);
	return n_inputs > INPUTS_MAX ? ky_error_set(err, KYMO_E_UNSUPPORTED, "more than %u streams",
						    (unsigned int)INPUTS_MAX)
				     : ky_error_nomem(err);
}

int ky_merge_open(struct ky_flow **inputs, size_t n_inputs, struct ky_flow **flow,
		  struct kymo_error *err)
{
	struct merge *m = n_inputs > INPUTS_MAX ? NULL : calloc(1, sizeof(*m));

	if (m)
		m->bases = calloc(n_inputs + 1, sizeof(*m->bases));
	if (!m || !m->bases || ky_inputs_init(&m->in, inputs, n_inputs) < 0)
		return fail_open(m, inputs, n_inputs, err);
	m->flow.ops = &merge_ops;
	m->place_bits = place_bits(n_inputs);
	ky_merge_restart(&m->flow);
	*flow = &m->flow;
	return KYMO_OK;
}
