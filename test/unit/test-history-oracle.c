/* SPDX-License-Identifier: MIT */
/*
 * The state history of a real trace against a slow computation: at the time of every event, the state of all rows and their
 * next and previous change; and pictures of rows, each pixel added up by itself.
 *
 * The slow computation keeps all that the state model tells. For each row it has an array with the state between each two times,
 * and paints into it. An argument of the program is another trace.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/history/history.h"
#include "analysis/state/model.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "os/file.h"

#define KEY_BYTES 320
#define LANES	  64
#define RATE_NS	  INT64_C(1000000)
#define PIXELS	  400

static const struct ky_history_identity identity = {{7}, {8}};
static const char *trace_path = KY_TEST_SHARED "/traces/lttng-kernel/kernel";
static bool publishes = true;

/* A state here: as in the history, but names have the numbers of the model, + 1, and threads their ids. */
struct span {
	int64_t begin_ns, end_ns;
	uint64_t state;
	int cpu; /* of a run */
};

KY_VEC_TYPE(span_list, struct span);

KY_VEC_TYPE(time_list, int64_t);

struct oracle {
	struct ky_trace_set set;
	struct ky_model *model;
	struct ky_history *history;
	struct ky_names lists; /* what a row has -> struct span_list * */
	struct time_list times;
	uint64_t *states; /* of the row: from times[i] to times[i + 1] */
	int *cpus;	  /* on which its thread runs then; -1: none */
	uint64_t n_absent, n_wrong[2], n_rows, n_pixels[2], n_alone;
};

/* ---- what the model tells -------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static struct span_list *list_of(struct oracle *oracle,
								       const char *format, ...)
{
	struct span_list *list;
	char key[KEY_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(key, sizeof(key), format, args);
	va_end(args);
	list = ky_names_get(&oracle->lists, key);
	if (!list) {
		list = calloc(1, sizeof(*list));
		assert_non_null(list);
		/* The table borrows its keys. */
		assert_int_equal(ky_names_set(&oracle->lists, strdup(key), list), 0);
	}
	return list;
}

static int put(struct span_list *list, int64_t begin_ns, int64_t end_ns, uint64_t state, int cpu)
{
	return ky_vec_push(list, ((struct span){begin_ns, end_ns, state, cpu}));
}

static int on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
		  struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct span_list *list = list_of(data, "cpu %u", cpu->id);
	bool knows;

	if (state == KY_CPU_IDLE)
		return put(list, begin_ns, end_ns, KY_STATE_IDLE, -1);
	if (state != KY_CPU_BUSY)
		return 0;
	put(list, begin_ns, end_ns, ky_state(KY_STATE_RUNS, (uint64_t)thread->tid), -1);
	/* Threads of the kernel have no user space; others may be in a call that began before the trace. */
	knows = thread->tid != 2 && thread->ppid != 2 && thread->returned;
	return put(list_of(data, "ran %d", thread->tid), begin_ns, end_ns,
		   knows ? KY_STATE_USER : KY_STATE_RUNNING, (int)cpu->id);
}

static uint64_t wait_in(const struct ky_model *model, const struct ky_time_off *off)
{
	uint32_t syscall = off->thread->syscall.id;
	enum ky_state_kind kind = KY_STATE_BLOCKED;
	const char *name = "";

	if (off->kind == KY_OFF_READY)
		return KY_STATE_WAIT_CPU;
	if (syscall != KY_NO_SYSCALL)
		name = ky_model_syscall_name(model, syscall);
	if (off->kind == KY_OFF_DISK)
		kind = KY_STATE_DISK;
	else if (off->kind == KY_OFF_OTHER)
		kind = KY_STATE_STOPPED;
	else if (strncmp(name, "futex", 5) == 0)
		kind = KY_STATE_LOCK;
	else if (strstr(name, "nanosleep"))
		kind = KY_STATE_TIMER;
	else if (strncmp(name, "accept", 6) == 0 || strcmp(name, "connect") == 0 ||
		 strncmp(name, "recv", 4) == 0 || strncmp(name, "send", 4) == 0)
		kind = strcmp(name, "sendfile64") == 0 || strcmp(name, "sendfile") == 0
			       ? KY_STATE_BLOCKED
			       : KY_STATE_NETWORK;
	return ky_state(kind, syscall == KY_NO_SYSCALL ? 0 : syscall + 1);
}

static int on_off(void *data, const struct ky_time_off *off)
{
	struct oracle *oracle = data;

	return put(list_of(oracle, "off %d", off->thread->tid), off->begin_ns, off->end_ns,
		   wait_in(oracle->model, off), -1);
}

static int on_call(void *data, const struct ky_call *call)
{
	const struct span_list *ran = list_of(data, "ran %d", call->thread->tid);
	int64_t end_ns = call->outcome == KY_CALL_UNENDED ? INT64_MAX : call->end_ns;
	int64_t begin_ns = call->begin_ns;

	/* Of one that began before the trace only its end tells: what ran until then did it somewhere. */
	if (begin_ns == INT64_MIN && ran->len)
		begin_ns = ran->data[ran->len - 1].end_ns;
	if (call->outcome == KY_CALL_TORN || call->outcome == KY_CALL_NO_RETURN)
		return 0;
	return put(list_of(data, "calls %d", call->thread->tid), begin_ns, end_ns,
		   ky_state(KY_STATE_SYSCALL, call->syscall + 1), -1);
}

static int on_irq(void *data, const struct ky_irq *irq)
{
	const struct ky_irq_line *line = irq->line;
	uint64_t thread = irq->thread ? (uint64_t)irq->thread->tid : 0;
	struct span_list *list = list_of(data, "irq %u %d %d %s", irq->cpu->id, line->nr,
					 line->kind == KY_IRQ_SOFT, line->name);

	if (irq->begin_ns == INT64_MIN || irq->begin_ns >= irq->end_ns)
		return 0;
	put(list, irq->begin_ns, irq->end_ns, ky_state(KY_STATE_ACTIVE, thread), -1);
	return put(list_of(data, "irqs %u", irq->cpu->id), irq->begin_ns, irq->end_ns,
		   ky_state(line->kind == KY_IRQ_SOFT ? KY_STATE_SOFTIRQ : KY_STATE_IRQ,
			    line->index + 1),
		   -1);
}

/* From @ns on it has this value, up to the next one. */
static int becomes(struct span_list *list, int64_t ns, uint64_t value)
{
	if (list->len)
		list->data[list->len - 1].end_ns = ns;
	return put(list, ns, INT64_MAX, ky_state(KY_STATE_VALUE, value), -1);
}

static int on_queued(void *data, const struct ky_cpu *cpu, int64_t ns)
{
	return becomes(list_of(data, "queue %u", cpu->id), ns, cpu->n_waiting);
}

static int on_issued(void *data, const struct ky_disk *disk, int64_t ns)
{
	return becomes(list_of(data, "disk %u", disk->dev), ns, disk->n_issued);
}

/* A rate: the state has the sum of each millisecond. */
static int brought(struct span_list *list, int64_t ns, uint64_t amount)
{
	int64_t slot_ns = ns / RATE_NS * RATE_NS;

	if (list->len && list->data[list->len - 1].begin_ns == slot_ns) {
		list->data[list->len - 1].state += amount << 8;
		return 0;
	}
	return put(list, slot_ns, slot_ns + RATE_NS, ky_state(KY_STATE_VALUE, amount), -1);
}

static int on_request(void *data, const struct ky_request *request)
{
	bool writes = request->rwbs & KY_RWBS_WRITE, reads = request->rwbs & KY_RWBS_READ;
	enum ky_state_kind kind = writes ? KY_STATE_WRITE : reads ? KY_STATE_READ : KY_STATE_OTHER;
	struct span_list *list = NULL;

	if (writes || reads)
		brought(list_of(data, "counter %d disk %u",
				writes ? KY_COUNTER_WRITTEN : KY_COUNTER_READ, request->disk->dev),
			request->end_ns, request->n_sectors * 512);
	/* The first lane that is free. */
	for (int lane = 0; lane < LANES && request->issue_ns != INT64_MIN; lane++) {
		list = list_of(data, "lane %d %u", lane, request->disk->dev);
		if (list->len && list->data[list->len - 1].end_ns > request->issue_ns)
			continue;
		return put(list, request->issue_ns, request->end_ns,
			   ky_state(kind, request->n_sectors), -1);
	}
	/* More at the same time: the last lane has what is left of it. */
	if (request->issue_ns != INT64_MIN && request->end_ns > list->data[list->len - 1].end_ns)
		return put(list, list->data[list->len - 1].end_ns, request->end_ns,
			   ky_state(kind, request->n_sectors), -1);
	return 0;
}

static int on_packet(void *data, const struct ky_packet_seen *packet)
{
	if (packet->failed)
		return 0;
	return brought(list_of(data, "netif %s %s", packet->netif->name,
			       packet->received ? "received" : "sent"),
		       packet->ns, packet->bytes);
}

static const struct ky_listener listener = {
	.ran = on_ran,
	.off = on_off,
	.call = on_call,
	.irq = on_irq,
	.queued = on_queued,
	.issued = on_issued,
	.request = on_request,
	.packet = on_packet,
};

/* ---- times ------------------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void add_time(struct oracle *oracle, int64_t ns)
{
	if (ns != INT64_MIN && ns != INT64_MAX)
		assert_int_equal(ky_vec_push(&oracle->times, ns), 0);
}

/* Those of all events, and where else a row changes; each once. */
static void collect_times(struct oracle *oracle)
{
	struct time_list *times = &oracle->times;
	size_t pos = 0, n = 0;
	const char *key;
	void *value;

	while (ky_names_next(&oracle->lists, &pos, &key, &value)) {
		const struct span_list *list = value;

		ky_vec_foreach(list, span) {
			add_time(oracle, span->begin_ns);
			add_time(oracle, span->end_ns);
		}
	}
	qsort(times->data, times->len, sizeof(*times->data), compare_times);
	for (size_t i = 0; i < times->len; i++) {
		if (!n || times->data[i] != times->data[n - 1])
			times->data[n++] = times->data[i];
	}
	times->len = n;
	oracle->states = calloc(n + 1, sizeof(*oracle->states));
	oracle->cpus = calloc(n + 1, sizeof(*oracle->cpus));
	assert_true(oracle->states && oracle->cpus);
}

/* The first of the times that is not before @ns. */
static size_t at_time(const struct oracle *oracle, int64_t ns)
{
	size_t low = 0, high = oracle->times.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (oracle->times.data[middle] < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- a row ------------------------------------------------------------------------------------- */

/* @cpu: only where the thread runs on it; -1: where it runs; -2: everywhere. */
static void paint(struct oracle *oracle, const struct span_list *list, int cpu)
{
	int64_t end_ns = ky_history_end_ns(oracle->history);

	ky_vec_foreach(list, span) {
		int64_t until_ns = span->end_ns < end_ns ? span->end_ns : end_ns;
		size_t to = at_time(oracle, until_ns);

		for (size_t i = at_time(oracle, span->begin_ns); i < to; i++) {
			if (cpu == -1 ? oracle->cpus[i] < 0 : cpu >= 0 && oracle->cpus[i] != cpu)
				continue;
			oracle->states[i] = span->state;
			if (cpu == -2)
				oracle->cpus[i] = span->cpu;
		}
	}
}

/* The one that began last is the one that one sees. */
static int compare_begins(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int order = compare_times(&x->begin_ns, &y->begin_ns);

	return order ? order : compare_times(&y->end_ns, &x->end_ns);
}

static void paint_thread(struct oracle *oracle, int tid)
{
	paint(oracle, list_of(oracle, "off %d", tid), -2);
	paint(oracle, list_of(oracle, "ran %d", tid), -2);
	paint(oracle, list_of(oracle, "calls %d", tid), -1);
	for (size_t i = 0; i < ky_model_n_cpus(oracle->model); i++) {
		int cpu = (int)ky_model_cpu(oracle->model, i)->id;
		struct span_list *list = list_of(oracle, "irqs %d", cpu);

		qsort(list->data, list->len, sizeof(*list->data), compare_begins);
		paint(oracle, list, cpu);
	}
}

/* What the history has of a rate: from the begin of the trace to its end. */
static void paint_rate(struct oracle *oracle, struct span_list *list)
{
	int64_t begin_ns = ky_history_begin_ns(oracle->history);
	struct span all = {begin_ns, INT64_MAX, ky_state(KY_STATE_VALUE, 0), -1};

	paint(oracle, &(struct span_list){.data = &all, .len = 1}, -2);
	if (list->len && list->data[0].begin_ns < begin_ns)
		list->data[0].begin_ns = begin_ns;
	paint(oracle, list, -2);
}

/* false: this row is not computed here. */
static bool paint_row(struct oracle *oracle, const struct ky_history_row *row)
{
	const struct ky_history_row *parent =
		row->parent == KY_HISTORY_NO_ROW ? NULL
						 : ky_history_row(oracle->history, row->parent);
	unsigned int number = (unsigned int)row->number;

	memset(oracle->states, 0, oracle->times.len * sizeof(*oracle->states));
	for (size_t i = 0; i < oracle->times.len; i++)
		oracle->cpus[i] = -1;
	if (row->kind == KY_ROW_CPU) {
		paint(oracle, list_of(oracle, "cpu %u", number), -2);
	} else if (row->kind == KY_ROW_QUEUE) {
		paint(oracle, list_of(oracle, "queue %u", number), -2);
	} else if (row->kind == KY_ROW_DISK) {
		paint(oracle, list_of(oracle, "disk %u", number), -2);
	} else if (row->kind == KY_ROW_REQUESTS) {
		paint(oracle, list_of(oracle, "lane %u %u", number, (unsigned int)parent->number),
		      -2);
	} else if (row->kind == KY_ROW_IRQ) {
		bool soft = strncmp(row->name, "softirq ", 8) == 0;
		const char *name = row->name;

		if (soft || strncmp(name, "irq ", 4) == 0) {
			name = strchr(strchr(name, ' ') + 1, ' ');
			name = name ? name + 1 : "";
		}
		paint(oracle,
		      list_of(oracle, "irq %u %d %d %s", (unsigned int)parent->number, (int)number,
			      soft, name),
		      -2);
	} else if (row->kind == KY_ROW_THREAD) {
		paint_thread(oracle, (int)number);
	} else if (row->kind == KY_ROW_COUNTER && parent->kind == KY_ROW_DISK) {
		paint_rate(oracle, list_of(oracle, "counter %u disk %u", number,
					   (unsigned int)parent->number));
	} else if (row->kind == KY_ROW_COUNTER && parent->kind == KY_ROW_MACHINE) {
		paint_rate(oracle, list_of(oracle, "netif %s", row->name));
	} else {
		return false;
	}
	return true;
}

/* ---- comparisons ------------------------------------------------------------------------------- */

static bool is_same(struct oracle *oracle, uint64_t found, uint64_t expected)
{
	enum ky_state_kind kind = ky_state_kind(found);
	uint64_t value = ky_state_value(found), right = ky_state_value(expected);
	struct ky_history *history = oracle->history;
	char text[128];

	if (kind != ky_state_kind(expected))
		return false;
	if (kind == KY_STATE_RUNS)
		return ky_history_row(history, (uint32_t)value)->number == (int64_t)right;
	if (kind == KY_STATE_ACTIVE)
		return value ? ky_history_row(history, (uint32_t)value - 1)->number ==
				       (int64_t)right
			     : !right;
	if (kind == KY_STATE_IRQ || kind == KY_STATE_SOFTIRQ) {
		const struct ky_irq_line *line = ky_model_irq_line(oracle->model, right - 1);

		snprintf(text, sizeof(text), "%s", ky_history_name(history, value));
		return strstr(text, line->name) != NULL;
	}
	if (!ky_state_has_name(kind))
		return value == right;
	return strcmp(ky_history_name(history, value),
		      right ? ky_model_syscall_name(oracle->model, (uint32_t)right - 1) : "") == 0;
}

static void fail_at(struct oracle *oracle, uint32_t row, size_t i,
		    const struct ky_history_interval *found, int64_t begin_ns, int64_t end_ns)
{
	const struct ky_history_row *facts = ky_history_row(oracle->history, row);

	fail_msg("row %u (kind %d, number %lld, %s) at %lld: %s %s from %lld to %lld instead of %s "
		 "(%llu) from %lld to %lld",
		 row, (int)facts->kind, (long long)facts->number, facts->name,
		 (long long)oracle->times.data[i], ky_state_text(ky_state_kind(found->state)),
		 ky_history_name(oracle->history, ky_state_value(found->state)),
		 (long long)found->begin_ns, (long long)found->end_ns,
		 ky_state_text(ky_state_kind(oracle->states[i])),
		 (unsigned long long)ky_state_value(oracle->states[i]), (long long)begin_ns,
		 (long long)end_ns);
}

/* At each time: the state, and since when and until when the row has it. */
static void check_moments(struct oracle *oracle, uint32_t row)
{
	const struct time_list *times = &oracle->times;
	struct ky_history_interval found;
	struct kymo_error err;

	for (size_t from = 0, to; from < times->len; from = to) {
		uint64_t state = oracle->states[from];
		int64_t begin_ns = !from && !state ? INT64_MIN : times->data[from], end_ns;

		for (to = from + 1; to < times->len && oracle->states[to] == state; to++)
			;
		end_ns = to == times->len ? INT64_MAX : times->data[to];
		for (size_t i = from; i < to; i++) {
			assert_int_equal(
				ky_history_at(oracle->history, row, times->data[i], &found, &err),
				0);
			if (!is_same(oracle, found.state, state) || found.begin_ns != begin_ns ||
			    found.end_ns != end_ns)
				fail_at(oracle, row, i, &found, begin_ns, end_ns);
		}
	}
}

struct share {
	uint64_t state;
	int64_t ns;
};

/* The states of [@begin_ns, @end_ns) with their times; returns how many. */
static size_t add_up(const struct oracle *oracle, int64_t begin_ns, int64_t end_ns,
		     struct share *shares, size_t *n_parts)
{
	const struct time_list *times = &oracle->times;
	size_t n = 0, i = at_time(oracle, begin_ns);

	i -= i && (i == times->len || times->data[i] > begin_ns);
	for (*n_parts = 0; i < times->len && times->data[i] < end_ns; i++) {
		int64_t from = times->data[i] > begin_ns ? times->data[i] : begin_ns;
		int64_t to = i + 1 < times->len && times->data[i + 1] < end_ns ? times->data[i + 1]
									       : end_ns;
		size_t s = 0;

		while (s < n && shares[s].state != oracle->states[i])
			s++;
		if (s == n)
			shares[n++] = (struct share){oracle->states[i], 0};
		shares[s].ns += to - from;
		*n_parts += from == begin_ns || oracle->states[i] != oracle->states[i - 1];
	}
	return n;
}

static void check_pixel(struct oracle *oracle, const struct ky_history_pixel *pixel,
			int64_t begin_ns, int64_t end_ns, struct share *shares)
{
	size_t n_parts, n = add_up(oracle, begin_ns, end_ns, shares, &n_parts);
	int64_t most_ns = 0, ns = 0;

	for (size_t i = 0; i < n; i++) {
		most_ns = shares[i].ns > most_ns ? shares[i].ns : most_ns;
		if (is_same(oracle, pixel->state, shares[i].state))
			ns = shares[i].ns;
	}
	oracle->n_absent += !ns;
	assert_true(pixel->more || n == 1);
	oracle->n_alone += pixel->more && n == 1;
	oracle->n_wrong[n_parts >= 8] += ns != most_ns;
	oracle->n_pixels[n_parts >= 8]++;
}

/* All of the trace, and parts of it, down to some events. */
static void check_pictures(struct oracle *oracle, uint32_t row, struct share *shares)
{
	static struct ky_history_pixel pixels[PIXELS];
	const struct time_list *times = &oracle->times;
	int64_t first_ns = times->data[0], span_ns = times->data[times->len - 1] - first_ns;
	struct kymo_error err;

	for (int64_t part = 1; part <= 4096; part *= 8) {
		int64_t step_ns = span_ns / part / PIXELS,
			begin_ns = first_ns + (span_ns - span_ns / part) / 7 * (row % 8);

		assert_int_equal(ky_history_pixels(oracle->history, row, begin_ns,
						   begin_ns + step_ns * PIXELS, PIXELS, pixels,
						   &err),
				 0);
		for (int64_t x = 0; x < PIXELS; x++)
			check_pixel(oracle, &pixels[x], begin_ns + x * step_ns,
				    begin_ns + (x + 1) * step_ns, shares);
	}
}

static void check_same(const struct ky_history_pixel *all, const struct ky_history_pixel *one)
{
	for (size_t x = 0; x < PIXELS; x++) {
		assert_true(all[x].state == one[x].state);
		assert_int_equal(all[x].share, one[x].share);
		assert_int_equal(all[x].more, one[x].more);
	}
}

/* All rows of one picture, which several threads paint, are what each of them is alone. */
static void check_at_once(struct oracle *oracle, uint32_t n, const uint32_t *ids, bool is_expected)
{
	struct ky_history_pixel *all = calloc((size_t)n * PIXELS, sizeof(*all)), one[PIXELS];
	int64_t begin_ns = oracle->times.data[0], end_ns = ky_history_end_ns(oracle->history);
	struct kymo_error err;

	assert_non_null(all);
	ky_history_expect(oracle->history, ids, is_expected ? n : 0, begin_ns, end_ns, PIXELS);
	assert_int_equal(
		ky_history_picture(oracle->history, ids, n, begin_ns, end_ns, PIXELS, all, &err),
		0);
	ky_history_expect(oracle->history, NULL, 0, 0, 0, 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(ky_history_pixels(oracle->history, ids[i], begin_ns, end_ns,
						   PIXELS, one, &err),
				 0);
		check_same(all + i * PIXELS, one);
	}
	free(all);
}

static int refuse_the_last(void *data, struct ky_history *reader, size_t i, struct kymo_error *err)
{
	assert_non_null(reader);
	return i + 1 < *(uint32_t *)data ? 0 : ky_error_set(err, KYMO_E_LIMIT, "piece %zu", i);
}

static void check_all_at_once(struct oracle *oracle)
{
	uint32_t n = (uint32_t)ky_history_n_rows(oracle->history), *ids = calloc(n, sizeof(*ids));
	struct kymo_error err;

	assert_non_null(ids);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = n - 1 - i;
	check_at_once(oracle, n, ids, false);
	check_at_once(oracle, n, ids, true);
	assert_int_equal(ky_history_share(oracle->history, n, refuse_the_last, &n, &err),
			 KYMO_E_LIMIT);
	assert_non_null(strstr(err.message, "piece"));
	assert_false(ky_history_is_damaged(oracle->history));
	free(ids);
}

/* A row of a stream: up to each pixel it has as many events as there are, to an interval of KY_HISTORY_EVENTS. */
static void check_density(struct oracle *oracle, const struct ky_history_row *row)
{
	const struct span_list *list = list_of(oracle, "stream %u", (unsigned int)row->number);
	int64_t begin_ns = oracle->times.data[0], step_ns;
	static double events[PIXELS];
	struct kymo_error err;
	double sum = 0;
	size_t n = 0;

	step_ns = (oracle->times.data[oracle->times.len - 1] - begin_ns) / PIXELS + 1;
	assert_int_equal(ky_history_density(oracle->history, row->id, begin_ns,
					    begin_ns + step_ns * PIXELS, PIXELS, events, &err),
			 0);
	for (int64_t x = 0; x < PIXELS; x++) {
		while (n < list->len && list->data[n].begin_ns < begin_ns + step_ns * (x + 1))
			n++;
		sum += events[x];
		if (sum > (double)n + 2 * KY_HISTORY_EVENTS ||
		    sum < (double)n - 2 * KY_HISTORY_EVENTS)
			fail_msg("row %u up to pixel %d: %.0f of %zu events", row->id, (int)x, sum,
				 n);
	}
	assert_int_equal(n, list->len);
}

/* ---- the test ---------------------------------------------------------------------------------- */

static void add_events(struct oracle *oracle, const struct ky_batch *batch)
{
	struct ky_batch rest = *batch, run;

	rest.loss = NULL;
	while (ky_batch_run(&rest, &run)) {
		struct span_list *list = list_of(oracle, "stream %u", run.stream->index);

		for (size_t i = 0; i < run.n_events; i++) {
			add_time(oracle, run.events[i].ns);
			put(list, run.events[i].ns, run.events[i].ns, 0, -1);
		}
	}
}

static void build(struct oracle *oracle)
{
	const struct ky_trace_set *set = &oracle->set;
	int fd = ky_file_open_unnamed("/tmp");
	struct ky_history_builder *builder;
	struct kymo_error err;
	struct ky_batch batch;
	struct ky_flow *flow;

	assert_int_equal(ky_history_builder_open(set, &identity, fd, &builder, &err), 0);
	assert_int_equal(ky_flow_open_set(set, &flow, &err), 0);
	for (int n = 1; ky_flow_next(flow, &batch, &err) > 0; n++) {
		add_events(oracle, &batch);
		assert_int_equal(ky_history_builder_feed(builder, &batch, &err), 0);
		/* Published in between, it is the same; but calls that began before the trace are then known later. */
		if (n % 16 == 0 && publishes)
			assert_int_equal(ky_history_builder_publish(builder, &err), 0);
	}
	assert_int_equal(ky_history_builder_end(builder, &err), 0);
	ky_flow_close(flow);
	ky_history_builder_free(builder);
	assert_int_equal(ky_history_open_fd(fd, &identity, false, &oracle->history, &err), 0);
	close(fd);
}

static void run_model(struct oracle *oracle)
{
	struct ky_listener own = listener;
	struct kymo_error err;
	struct ky_flow *flow;

	own.data = oracle;
	oracle->model = ky_model_new(&oracle->set, &err);
	assert_non_null(oracle->model);
	assert_int_equal(ky_model_listen(oracle->model, &own), 0);
	assert_int_equal(ky_flow_open_set(&oracle->set, &flow, &err), 0);
	assert_int_equal(ky_model_run(oracle->model, flow, &err), 0);
	ky_flow_close(flow);
}

static void free_oracle(struct oracle *oracle)
{
	size_t pos = 0;
	const char *key;
	void *value;

	while (ky_names_next(&oracle->lists, &pos, &key, &value)) {
		struct span_list *list = value;

		ky_vec_fini(list);
		free(list);
		free((char *)(uintptr_t)key);
	}
	ky_names_fini(&oracle->lists);
	ky_vec_fini(&oracle->times);
	free(oracle->states);
	free(oracle->cpus);
	ky_history_close(oracle->history);
	ky_model_free(oracle->model);
	ky_trace_set_close(&oracle->set);
}

/* A thread id that was used again has several rows; the lists here have one for both. */
static bool is_unique(const struct oracle *oracle, const struct ky_history_row *row)
{
	for (uint32_t i = 0; i < ky_history_n_rows(oracle->history); i++) {
		const struct ky_history_row *other = ky_history_row(oracle->history, i);

		if (i != row->id && row->kind == KY_ROW_THREAD && other->kind == KY_ROW_THREAD &&
		    other->number == row->number)
			return false;
	}
	return true;
}

static void all_rows_agree_at_every_event(void **unused)
{
	struct oracle oracle = {0};
	struct share *shares;
	struct kymo_error err;

	(void)unused;
	if (access(trace_path, R_OK) < 0)
		skip();
	assert_int_equal(ky_trace_set_open(&oracle.set, &trace_path, 1, NULL, &err), 0);
	ky_names_init(&oracle.lists);
	build(&oracle);
	run_model(&oracle);
	collect_times(&oracle);
	shares = calloc(oracle.times.len, sizeof(*shares));
	assert_non_null(shares);
	for (uint32_t row = 0; row < ky_history_n_rows(oracle.history); row++) {
		const struct ky_history_row *facts = ky_history_row(oracle.history, row);

		if (facts->kind == KY_ROW_STREAM)
			check_density(&oracle, facts);
		if (!is_unique(&oracle, facts) || !paint_row(&oracle, facts))
			continue;
		oracle.n_rows++;
		check_moments(&oracle, row);
		check_pictures(&oracle, row, shares);
	}
	check_all_at_once(&oracle);
	print_message(
		"%llu rows at %zu times; not the longest state: %llu of %llu pixels with up to 7 "
		"parts, %llu of %llu others; %llu do not have it, %llu no second one\n",
		(unsigned long long)oracle.n_rows, oracle.times.len,
		(unsigned long long)oracle.n_wrong[0], (unsigned long long)oracle.n_pixels[0],
		(unsigned long long)oracle.n_wrong[1], (unsigned long long)oracle.n_pixels[1],
		(unsigned long long)oracle.n_absent, (unsigned long long)oracle.n_alone);
	assert_true(oracle.n_rows > 5);
	/* A cell that lies in two pixels is painted in both. */
	assert_true(oracle.n_wrong[0] * 1000 <= oracle.n_pixels[0]);
	assert_true(oracle.n_wrong[1] * 3 <= oracle.n_pixels[1] + 30);
	assert_true((oracle.n_absent + oracle.n_alone) * 100 <= oracle.n_pixels[0]);
	free(shares);
	free_oracle(&oracle);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rows_agree_at_every_event),
	};

	if (argc > 1) {
		trace_path = argv[1];
		publishes = false;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
