/* SPDX-License-Identifier: MIT */
/* Sources, losses, merge, seeking, counting: over the traces in test/data. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "flow/graph/queue.h"
#include "flow/graph/select.h"
#include "flow/graph/summary.h"

#define OK(name)  KY_TEST_DATA "/ok/traces/" name
#define BAD(name) KY_TEST_DATA "/bad/traces/" name
#define ZERO_NS	  INT64_C(1600000000000000000)

static struct kymo_error err;
static unsigned int n_warnings;

static void on_log(void *data, enum ky_log_level level, const char *text)
{
	n_warnings += level == KY_LOG_WARNING;
}

static const struct ky_log test_log = {on_log, NULL};

/* ---- real traces ------------------------------------------------------------------------- */

struct graph {
	struct ky_trace_set set;
	struct ky_flow *flow;
};

static void graph_open(struct graph *g, const char *path)
{
	ky_error_clear(&err);
	n_warnings = 0;
	if (ky_trace_set_open(&g->set, &path, 1, &test_log, &err) < 0 ||
	    ky_flow_open_set(&g->set, &g->flow, &err) < 0)
		fail_msg("%s: %s", err.path, err.message);
}

static void graph_close(struct graph *g)
{
	ky_flow_close(g->flow);
	ky_trace_set_close(&g->set);
}

static uint64_t number_of(const struct ky_event *event)
{
	struct ky_handle handle;

	ky_handle_find(&handle, event->cls, KY_SCOPE_PAYLOAD, "n");
	return ky_get_u64(event, &handle, 999);
}

/* "0 1 2 L7 3": the numbers of all events in order, losses as Levents and Ppackets; "!": error. */
static const char *all(struct ky_flow *flow)
{
	static char text[4096];
	struct ky_batch batch;
	char *at = text;
	int ret;

	*at = '\0';
	while ((ret = ky_flow_next(flow, &batch, &err)) > 0) {
		assert_true(batch.n_events || batch.loss);
		if (batch.loss && batch.loss->events)
			at += sprintf(at, "L%llu ", (unsigned long long)batch.loss->events);
		if (batch.loss && batch.loss->packets)
			at += sprintf(at, "P%llu ", (unsigned long long)batch.loss->packets);
		for (size_t i = 0; i < batch.n_events; i++)
			at += sprintf(at, "%llu ", (unsigned long long)number_of(&batch.events[i]));
	}
	if (ret < 0)
		at += sprintf(at, "! ");
	if (at > text)
		at[-1] = '\0';
	/* The end stays the end. */
	assert_int_equal(ky_flow_next(flow, &batch, &err), 0);
	return text;
}

static void check_all(const char *path, const char *expected)
{
	struct graph g;

	graph_open(&g, path);
	assert_string_equal(all(g.flow), expected);
	graph_close(&g);
}

static void equal_times(void **state)
{
	check_all(OK("equal-times"), "20 21 10 11 0 1 22 23 12 13 2 3 24 25 14 15 4 5");
}

static void losses(void **state)
{
	check_all(OK("losses"), "0 1 L7 2 3 L1 P2 4");
	check_all(OK("losses-wrap"), "0 L4 1");
}

static void time_goes_back(void **state)
{
	check_all(OK("back-in-time"), "10 11 0 1 2 3 4 5");
	assert_int_equal(n_warnings, 1);
}

static void empty_packets(void **state)
{
	check_all(OK("empty-packet"), "0 1 2");
	check_all(OK("empty-stream"), "0 1 2");
}

static void damage(void **state)
{
	check_all(BAD("truncated"), "0 1 2 3 4 !");
	assert_string_equal(err.path, BAD("truncated/c_0"));
	check_all(BAD("truncated-padding"), "0 1 2 3 4 5 !");
	check_all(BAD("zero-tail"), "0 1 2 !");
	assert_int_equal(err.offset, 114);
	check_all(BAD("unknown-event"), "0 1 !");
	assert_int_equal(err.offset, 110);
	/* The other stream is delivered to its end before the error. */
	check_all(BAD("unknown-event-beside"), "0 10 1 11 12 13 !");
	assert_string_equal(err.path, BAD("unknown-event-beside/c_0"));
}

static bool over_at_second(void *data)
{
	return ++*(int *)data >= 2;
}

/* Sources ask before each packet, so that a filter does not read to the end for an event that there is not. */
static void stop(void **state)
{
	static const char *const filters[] = {"n == 12345", "$event == \"none\""};
	const char *path = OK("losses");
	struct ky_selection selection;
	struct ky_trace_set set;
	struct ky_batch batch;
	struct ky_flow *flow;
	int ret;

	assert_int_equal(ky_trace_set_open(&set, &path, 1, &test_log, &err), 0);
	for (int i = 0; i < 2; i++) {
		int asked = 0;

		ky_selection_init(&selection);
		selection.filter = filters[i];
		selection.is_over = over_at_second;
		selection.over_data = &asked;
		assert_int_equal(ky_flow_open_selected(&set, &selection, &flow, &err), 0);
		while ((ret = ky_flow_next(flow, &batch, &err)) > 0)
			assert_int_equal(batch.n_events, 0);
		assert_int_equal(ret, KYMO_E_INTERRUPTED);
		assert_int_equal(asked, 2);
		ky_flow_close(flow);
	}
	ky_trace_set_close(&set);
}

static void seek(void **state)
{
	struct graph g;

	graph_open(&g, OK("index"));
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 2100, &err), 0);
	assert_string_equal(all(g.flow), "4 5");
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 1101, &err), 0);
	assert_string_equal(all(g.flow), "2 3 4 5");
	assert_int_equal(ky_flow_seek(g.flow, INT64_MIN, &err), 0);
	assert_string_equal(all(g.flow), "0 1 2 3 4 5");
	assert_int_equal(ky_flow_seek(g.flow, INT64_MAX, &err), 0);
	assert_string_equal(all(g.flow), "");
	graph_close(&g);
	graph_open(&g, OK("equal-times"));
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 1200, &err), 0);
	assert_string_equal(all(g.flow), "24 25 14 15 4 5");
	graph_close(&g);
	/* Damage before or behind does not hinder. */
	graph_open(&g, BAD("truncated"));
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 2000, &err), 0);
	assert_string_equal(all(g.flow), "3 4 !");
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 1200, &err), 0);
	assert_string_equal(all(g.flow), "2 3 4 !");
	graph_close(&g);
	/* A wrong index is found out, and costs a scan. */
	graph_open(&g, OK("wrong-index"));
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 2100, &err), 0);
	assert_string_equal(all(g.flow), "4 5");
	assert_int_equal(n_warnings, 1);
	graph_close(&g);
	/* The loss before the packet that a seek leads to is known from its neighbour. */
	graph_open(&g, OK("losses"));
	assert_int_equal(ky_flow_seek(g.flow, ZERO_NS + 2000, &err), 0);
	assert_string_equal(all(g.flow), "L7 2 3 L1 P2 4");
	graph_close(&g);
}

static void counts(void **state)
{
	struct ky_stream_summary summary;
	uint64_t n[8] = {0};
	struct graph g;

	graph_open(&g, OK("losses"));
	assert_int_equal(ky_stream_summarize(g.set.streams.data[0], &summary, n, NULL, &err), 0);
	assert_int_equal(summary.packets, 4);
	assert_int_equal(summary.events, 5);
	assert_int_equal(n[0], 5);
	assert_int_equal(summary.lost_events, 8);
	assert_int_equal(summary.lost_packets, 2);
	assert_int_equal(summary.begin_ns, ZERO_NS + 1000);
	assert_int_equal(summary.end_ns, ZERO_NS + 4000);
	assert_int_equal(summary.losses.len, 3);
	ky_stream_summary_fini(&summary);
	graph_close(&g);
	graph_open(&g, BAD("truncated"));
	assert_int_equal(ky_stream_summarize(g.set.streams.data[0], &summary, n, NULL, &err),
			 KYMO_E_FORMAT);
	assert_int_equal(summary.events, 5);
	graph_close(&g);
}

/* ---- merge: against sorting -------------------------------------------------------------- */

#define N_INPUTS 37
#define N_PACKET 50 /* events of a packet */
#define N_EVENTS 1000

/* An input of its own: events with given times, in batches of varying length. */
struct fake {
	struct ky_flow flow;
	struct ky_stream stream;
	struct ky_packet packets[N_EVENTS / N_PACKET + 1];
	struct ky_event events[N_EVENTS];
	size_t n, at, n_most; /* events; of a batch at most */
	int64_t until_ns;     /* INT64_MAX: what it is asked for does not concern it */
	bool fails;
};

static size_t n_stopped; /* so many batches ended because no later event was wanted yet */

static int fake_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *e)
{
	struct fake *fake = (struct fake *)flow;
	size_t n = 1 + (fake->at * 7 + fake->stream.index) % fake->n_most;

	if (fake->at == fake->n)
		return fake->fails ? ky_error_set(e, KYMO_E_FORMAT, "input %u", fake->stream.index)
				   : 0;
	if (n > fake->n - fake->at)
		n = fake->n - fake->at;
	if (n > N_PACKET - fake->at % N_PACKET)
		n = N_PACKET - fake->at % N_PACKET;
	*batch = (struct ky_batch){
		.stream = &fake->stream, .events = fake->events + fake->at, .n_events = 1};
	while (batch->n_events < n && batch->events[batch->n_events].ns < fake->until_ns)
		batch->n_events++;
	batch->has_next = batch->n_events < n;
	batch->next_ns = batch->has_next ? batch->events[batch->n_events].ns : INT64_MIN;
	fake->at += batch->n_events;
	n_stopped += batch->has_next;
	return 1;
}

/* It does not put events anywhere, but ends where it shall. */
static void fake_room(struct ky_flow *flow, struct ky_event *room, size_t n, int64_t until_ns)
{
	((struct fake *)flow)->until_ns = until_ns;
}

static void fake_close(struct ky_flow *flow)
{
	free(flow);
}

static const struct ky_flow_ops fake_ops = {.next = fake_next, .close = fake_close};
static const struct ky_flow_ops fake_ops_room = {
	.next = fake_next, .close = fake_close, .room = fake_room};

static const struct ky_event_class fake_class;

static uint64_t random_state = 1;

static unsigned int dice(unsigned int sides)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(random_state >> 33) % sides;
}

struct key {
	int64_t ns;
	uint32_t stream;
	uint64_t position;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->position < y->position ? -1 : 1;
}

static struct ky_flow *fake_open(uint32_t index, struct key *keys, size_t *n_keys)
{
	struct fake *fake = calloc(1, sizeof(*fake));
	int64_t ns = index % 9 == 0 ? INT64_MIN : 0;

	assert_non_null(fake);
	fake->flow.ops = index % 7 == 5 ? &fake_ops : &fake_ops_room;
	fake->n_most = index % 16 == 4 ? 5 : N_PACKET;
	fake->until_ns = INT64_MAX;
	fake->stream.index = index;
	fake->n = index % 11 == 3 ? 0 : N_EVENTS - dice(N_EVENTS / 2);
	for (size_t i = 0; i < N_EVENTS / N_PACKET + 1; i++)
		fake->packets[i] = (struct ky_packet){.stream = &fake->stream,
						      .data = (const uint8_t *)&fake->packets[i]};
	for (size_t i = 0; i < fake->n; i++) {
		/* Some stand still for long, others leap: runs of all lengths, many ties. */
		ns += dice(4) ? 0 : dice(index % 3 == 0 ? 100 : 3);
		fake->events[i].ns = ns;
		fake->events[i].cycles = i;
		fake->events[i].cls = &fake_class;
		fake->events[i].packet = &fake->packets[i / N_PACKET];
		keys[(*n_keys)++] = (struct key){ns, index, i};
	}
	return &fake->flow;
}

/* The merge of @inputs yields @keys, sorted. */
static void check_merge(struct ky_flow **inputs, size_t n_inputs, struct key *keys, size_t n_keys,
			struct ky_flow **flow)
{
	struct ky_batch batch;
	size_t at = 0;

	qsort(keys, n_keys, sizeof(keys[0]), compare_keys);
	assert_int_equal(ky_merge_open(inputs, n_inputs, flow, &err), 0);
	while (ky_flow_next(*flow, &batch, &err) > 0) {
		for (size_t i = 0; i < batch.n_events; i++, at++) {
			assert_int_equal(batch.events[i].ns, keys[at].ns);
			assert_int_equal(ky_batch_stream(&batch, &batch.events[i])->index,
					 keys[at].stream);
			assert_int_equal(batch.events[i].cycles, keys[at].position);
		}
	}
	assert_int_equal(at, n_keys);
}

static void merge_is_a_sort(void **state)
{
	static struct key keys[N_INPUTS * N_EVENTS];

	for (unsigned int round = 0; round < 20; round++) {
		struct ky_flow *inputs[N_INPUTS], *flow;
		size_t n_keys = 0, n_inputs = round % N_INPUTS + 1;

		for (size_t i = 0; i < n_inputs; i++)
			inputs[i] = fake_open((uint32_t)i, keys, &n_keys);
		check_merge(inputs, n_inputs, keys, n_keys, &flow);
		assert_int_equal(ky_flow_seek(flow, 0, &err), KYMO_E_UNSUPPORTED);
		ky_flow_close(flow);
	}
}

/* Inputs that run side by side are read up to the same time; one of them knows nothing of that. */
static void rounds_end_at_one_time(void **state)
{
	static struct key keys[N_INPUTS * N_EVENTS];
	struct ky_flow *inputs[N_INPUTS], *flow;
	size_t n_keys = 0, n_ends;

	for (uint32_t i = 0; i < N_INPUTS; i++) {
		struct fake *fake = (struct fake *)fake_open(i, keys, &n_keys);
		int64_t ns = 0;

		n_keys -= fake->n;
		fake->flow.ops = i == 7 ? &fake_ops : &fake_ops_room;
		fake->n_most = N_PACKET;
		for (size_t e = 0; e < fake->n; e++) {
			ns += dice(4) * 10;
			fake->events[e].ns = ns;
			keys[n_keys++] = (struct key){ns, i, e};
		}
		inputs[i] = &fake->flow;
	}
	n_ends = n_stopped;
	check_merge(inputs, N_INPUTS, keys, n_keys, &flow);
	assert_true(n_stopped - n_ends > N_INPUTS);
	ky_flow_close(flow);
}

/* The last moment of all is one like any other: clocks that run over stop there. */
static void the_last_moment(void **state)
{
	static struct key keys[N_INPUTS * N_EVENTS];

	for (int prefilled = 0; prefilled < 2; prefilled++) {
		struct ky_flow *inputs[N_INPUTS], *flow;
		size_t n_keys = 0;

		for (uint32_t i = 0; i < N_INPUTS; i++) {
			struct fake *fake = (struct fake *)fake_open(i, keys, &n_keys);

			n_keys -= fake->n;
			for (size_t e = 0; e < fake->n; e++) {
				if (e >= fake->n / 2)
					fake->events[e].ns = INT64_MAX;
				keys[n_keys++] = (struct key){fake->events[e].ns, i, e};
			}
			inputs[i] = &fake->flow;
		}
		if (prefilled) {
			assert_int_equal(ky_merge_open(inputs, N_INPUTS, &flow, &err), 0);
			assert_int_equal(ky_merge_prefill(flow, n_keys), n_keys);
		} else {
			check_merge(inputs, N_INPUTS, keys, n_keys, &flow);
		}
		ky_flow_close(flow);
	}
}

/* Room that was needed once is given back, with what waits in its place. */
static void queues_get_narrow(void **state)
{
	static struct key keys[N_EVENTS];
	struct ky_windows windows = {0};
	struct ky_queue q;
	size_t n_keys = 0, n;

	ky_queue_init(&q, fake_open(1, keys, &n_keys));
	while (!q.ended)
		assert_int_equal(ky_queue_fill(&q, &windows, N_EVENTS + 1, INT64_MAX), 0);
	n = ky_queue_length(&q);
	assert_int_equal(n, n_keys);
	assert_int_equal(q.cap, N_EVENTS + 1);
	assert_int_equal(ky_queue_narrow(&q, 8), 0);
	assert_int_equal(q.cap, N_EVENTS + 1);
	assert_int_equal(ky_windows_next(&windows, n), 0);
	ky_queue_take(&q, &windows, n - 3);
	assert_int_equal(ky_queue_narrow(&q, 8), 0);
	assert_int_equal(q.cap, 8);
	assert_int_equal(ky_queue_length(&q), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(q.entries[q.first + i].ns, keys[n - 3 + i].ns);
		assert_int_equal(q.keys[q.first + i], keys[n - 3 + i].ns);
	}
	ky_queue_fini(&q, &windows);
	ky_windows_fini(&windows);
}

/* The next event where streams' times may go back: the least of what each has next. */
static struct key least(struct fake *const *fakes, size_t *at, size_t n)
{
	struct key best = {.position = UINT64_MAX};

	for (size_t i = 0; i < n; i++) {
		struct key key = {fakes[i]->events[at[i]].ns, (uint32_t)i, at[i]};

		if (at[i] < fakes[i]->n &&
		    (best.position == UINT64_MAX || compare_keys(&key, &best) < 0))
			best = key;
	}
	at[best.stream]++;
	return best;
}

static void streams_keep_their_order(void **state)
{
	static struct key keys[N_INPUTS * N_EVENTS];

	for (unsigned int round = 0; round < 20; round++) {
		struct ky_flow *inputs[N_INPUTS], *flow;
		struct fake *fakes[N_INPUTS];
		size_t at[N_INPUTS] = {0}, n_keys = 0, n = round + 1;
		struct ky_batch batch;

		for (size_t i = 0; i < n; i++) {
			inputs[i] = fake_open((uint32_t)i, keys, &n_keys);
			fakes[i] = (struct fake *)inputs[i];
			for (size_t e = 0; e < fakes[i]->n; e++)
				fakes[i]->events[e].ns =
					(int64_t)e * 3 - dice(4) * dice(4) * dice(4);
		}
		assert_int_equal(ky_merge_open(inputs, n, &flow, &err), 0);
		while (ky_flow_next(flow, &batch, &err) > 0) {
			for (size_t i = 0; i < batch.n_events; i++, n_keys--) {
				struct key key = least(fakes, at, n);

				assert_int_equal(batch.events[i].packet->stream->index, key.stream);
				assert_int_equal(batch.events[i].cycles, key.position);
			}
		}
		assert_int_equal(n_keys, 0);
		ky_flow_close(flow);
	}
}

static void first_error_comes_last(void **state)
{
	struct key keys[3 * N_EVENTS];
	struct ky_flow *inputs[3], *flow;
	size_t n_keys = 0, n = 0;
	struct ky_batch batch;
	int ret;

	for (uint32_t i = 0; i < 3; i++)
		inputs[i] = fake_open(i, keys, &n_keys);
	/* Input 0 has no times, so it ends first. */
	((struct fake *)inputs[0])->fails = true;
	((struct fake *)inputs[2])->fails = true;
	assert_int_equal(ky_merge_open(inputs, 3, &flow, &err), 0);
	while ((ret = ky_flow_next(flow, &batch, &err)) > 0)
		n += batch.n_events;
	assert_int_equal(n, n_keys);
	assert_int_equal(ret, KYMO_E_FORMAT);
	assert_string_equal(err.message, "input 0");
	assert_int_equal(ky_flow_next(flow, &batch, &err), 0);
	ky_flow_close(flow);
}

static void nothing_to_merge(void **state)
{
	struct ky_batch batch;
	struct ky_flow *flow;

	assert_int_equal(ky_merge_open(NULL, 0, &flow, &err), 0);
	assert_int_equal(ky_flow_next(flow, &batch, &err), 0);
	ky_flow_close(flow);
	ky_flow_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_times),
		cmocka_unit_test(losses),
		cmocka_unit_test(time_goes_back),
		cmocka_unit_test(empty_packets),
		cmocka_unit_test(damage),
		cmocka_unit_test(seek),
		cmocka_unit_test(stop),
		cmocka_unit_test(counts),
		cmocka_unit_test(merge_is_a_sort),
		cmocka_unit_test(rounds_end_at_one_time),
		cmocka_unit_test(the_last_moment),
		cmocka_unit_test(queues_get_narrow),
		cmocka_unit_test(nothing_to_merge),
		cmocka_unit_test(first_error_comes_last),
		cmocka_unit_test(streams_keep_their_order),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
