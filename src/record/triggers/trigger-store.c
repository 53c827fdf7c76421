/* SPDX-License-Identifier: MIT */
#include "record/triggers/trigger-store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "ctf/tsdl/tsdl.h"
#include "query/filter.h"
#include "query/program.h"

/* Packets are decoded together up to a beacon, or so many bytes. */
#define BATCH_BYTES_MAX (1u << 20)
#define EVENTS_MAX	64

enum { FIRST = 1, SECOND = 2 };

struct packet {
	uint8_t *data;
	size_t size_bytes;
	struct ky_packet head;
};

struct seen {
	struct ky_event event;
	size_t at; /* decides the order of equal times */
};

struct trace {
	struct ky_store_trace base;
	struct store *store;
	struct ky_trace_class *cls; /* NULL: no metadata yet, or it is of no use */
	uint8_t *legs;		    /* by event class index: FIRST, SECOND; NULL as cls */
	struct ky_filter *filters[2];
	struct ky_filter *keys[2][KY_TRIGGER_KEYS_MAX];
	struct ky_decoder *decoder;
	int n_streams;
	size_t batch_bytes;
	KY_VEC(struct packet) batch;
	KY_VEC(struct seen) seen;
};

struct store {
	struct ky_packet_store base;
	struct ky_trigger_store_options options;
	pthread_mutex_t lock; /* of all traces, and of what follows */
	int result;
	struct kymo_error err;
};

static struct trace *trigger_store_trace_of(struct ky_store_trace *base)
{
	return (struct trace *)base;
}

static bool has_two(const struct ky_trigger_condition *condition)
{
	return condition->second.pattern != NULL;
}

/* ---- the condition, for one trace's metadata ------------------------------------------- */

static void forget_leg(struct trace *trace, int leg)
{
	ky_filter_free(trace->filters[leg]);
	trace->filters[leg] = NULL;
	for (int i = 0; i < KY_TRIGGER_KEYS_MAX; i++) {
		ky_filter_free(trace->keys[leg][i]);
		trace->keys[leg][i] = NULL;
	}
}

static void forget_class(struct trace *trace)
{
	ky_decoder_free(trace->decoder);
	trace->decoder = NULL;
	for (int leg = 0; leg < 2; leg++)
		forget_leg(trace, leg);
	free(trace->legs);
	trace->legs = NULL;
	ky_trace_class_free(trace->cls);
	trace->cls = NULL;
}

static bool is_of_dump(const char *name)
{
	return strncmp(name, "lttng_statedump_", 16) == 0 ||
	       strncmp(name, "lttng_ust_statedump:", 20) == 0;
}

static bool is_here(const struct store *store, const struct ky_trigger_events *events)
{
	return events->pattern && events->of_programs == store->options.of_programs;
}

/* Which of the condition's events a class is. */
static uint8_t legs_of(const struct store *store, const struct ky_event_class *cls)
{
	const struct ky_trigger_condition *condition = store->options.condition;
	uint8_t legs = 0;

	if (!cls->name || is_of_dump(cls->name))
		return 0;
	/* The session selects no other events. */
	if (!has_two(condition))
		return FIRST;
	if (is_here(store, &condition->first) && ky_glob_match(condition->first.pattern, cls->name))
		legs |= FIRST;
	if (is_here(store, &condition->second) &&
	    ky_glob_match(condition->second.pattern, cls->name))
		legs |= SECOND;
	return legs;
}

static int trigger_store_compile(const struct trace *trace, const char *text,
				 struct ky_filter **filter, struct kymo_error *err)
{
	const struct ky_trace_class *const classes[] = {trace->cls};

	return ky_filter_compile(text, classes, 1, filter, err);
}

static int compile_leg(struct trace *trace, int leg, const struct ky_trigger_events *events,
		       struct kymo_error *err)
{
	const struct ky_trigger_condition *condition = trace->store->options.condition;
	int ret = KYMO_OK;

	if (!is_here(trace->store, events))
		return KYMO_OK;
	/* With one kind of events, the session has decided. */
	if (events->filter && has_two(condition)) {
		ret = trigger_store_compile(trace, events->filter, &trace->filters[leg], err);
		if (ret == KYMO_E_INVALID && err->column)
			ky_error_line(err, 1, err->column + (uint32_t)events->filter_at);
	}
	for (size_t i = 0; i < condition->n_keys && !ret; i++) {
		const struct ky_trigger_key *key = &condition->keys[i];

		ret = trigger_store_compile(trace, leg ? key->end : key->begin,
					    &trace->keys[leg][i], err);
	}
	if (ret == KYMO_E_INVALID)
		ky_error_input(err, "trigger");
	return ret;
}

static int use_class(struct trace *trace, struct kymo_error *err)
{
	const struct ky_trigger_condition *condition = trace->store->options.condition;
	bool any = false;
	int ret;

	trace->legs = calloc(trace->cls->events.len + 1, 1);
	trace->decoder = ky_decoder_new(trace->cls);
	if (!trace->legs || !trace->decoder)
		return ky_error_nomem(err);
	for (size_t i = 0; i < trace->cls->events.len; i++) {
		trace->legs[i] = legs_of(trace->store, trace->cls->events.data[i]);
		any |= trace->legs[i] != 0;
	}
	/* What it describes so far is something else. */
	if (!any)
		return KYMO_OK;
	ret = compile_leg(trace, 0, &condition->first, err);
	return ret < 0 ? ret : compile_leg(trace, 1, &condition->second, err);
}

/* A program's events may lack a field: then the others' count. */
static void keep_error(struct store *store, int ret, const struct kymo_error *err)
{
	if (store->result)
		return;
	store->result = ret;
	store->err = *err;
	if (store->options.of_programs)
		ky_log_warning(store->options.log,
			       "trigger '%s': a program's events are left out: %s",
			       store->options.condition->text, err->message);
}

/* ---- events ---------------------------------------------------------------------------- */

static uint64_t hash_operand(uint64_t hash, const struct ky_operand *value)
{
	uint64_t part;

	if (value->type == KY_TYPE_TEXT)
		part = ky_hash_bytes(value->text.data, value->text.len);
	else if (value->type == KY_TYPE_REAL)
		part = ky_hash_bytes(&value->real, sizeof(value->real));
	else if (value->type == KY_TYPE_BOOL)
		part = value->truth;
	else if (value->type == KY_TYPE_NONE)
		part = 0;
	else
		part = ky_hash_u64((uint64_t)value->number);
	return ky_hash_u64(hash ^ part) + 1;
}

static uint64_t trigger_store_key_of(const struct trace *trace, int leg,
				     const struct ky_event *event)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < trace->store->options.condition->n_keys; i++) {
		struct ky_operand value = ky_filter_value(trace->keys[leg][i], 0, event);

		hash = hash_operand(hash, &value);
	}
	return hash;
}

static void trigger_store_hand_on(const struct trace *trace, const struct ky_event *event, int leg)
{
	const struct ky_trigger_store_options *options = &trace->store->options;

	if (trace->filters[leg] && !ky_filter_match(trace->filters[leg], 0, event))
		return;
	options->take(options->data, event, leg == 1, trigger_store_key_of(trace, leg, event));
}

static int trigger_store_by_time(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->event.cycles != y->event.cycles)
		return x->event.cycles < y->event.cycles ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The events of a packet that the condition is about. A damaged packet ends early. */
static void trigger_store_decode(struct trace *trace, struct packet *packet)
{
	struct ky_event events[EVENTS_MAX];
	const struct ky_packet *head;
	struct kymo_error err;
	int n;

	if (ky_decoder_packet(trace->decoder, packet->data, packet->size_bytes, 0, &head, &err) < 0)
		return;
	packet->head = *head;
	ky_decoder_want(trace->decoder, trace->legs);
	while ((n = ky_decoder_next(trace->decoder, events, EVENTS_MAX, &err)) > 0) {
		for (int i = 0; i < n; i++) {
			struct seen seen = {events[i], trace->seen.len};

			seen.event.packet = &packet->head;
			if (ky_vec_push(&trace->seen, seen) < 0)
				return;
		}
	}
}

static void process(struct trace *trace)
{
	for (size_t i = 0; i < trace->batch.len && trace->legs; i++)
		trigger_store_decode(trace, &trace->batch.data[i]);
	if (trace->batch.len > 1 && trace->seen.len > 1)
		qsort(trace->seen.data, trace->seen.len, sizeof(*trace->seen.data),
		      trigger_store_by_time);
	ky_vec_foreach(&trace->seen, seen) {
		uint8_t legs = trace->legs[seen->event.cls->index];

		/* An event that is both ends a wait before it begins the next one. */
		if (legs & SECOND)
			trigger_store_hand_on(trace, &seen->event, 1);
		if (legs & FIRST)
			trigger_store_hand_on(trace, &seen->event, 0);
	}
	ky_vec_clear(&trace->seen);
	ky_vec_foreach(&trace->batch, packet)
		free(packet->data);
	ky_vec_clear(&trace->batch);
	trace->batch_bytes = 0;
}

/* ---- the store -------------------------------------------------------------------------- */

static int store_stream(struct ky_store_trace *base, const char *name, struct kymo_error *err)
{
	struct trace *trace = trigger_store_trace_of(base);
	int number;

	(void)name;
	(void)err;
	pthread_mutex_lock(&trace->store->lock);
	number = trace->n_streams++;
	pthread_mutex_unlock(&trace->store->lock);
	return number;
}

static int trigger_store_add_packet(struct trace *trace, const struct ky_packet_out *out,
				    struct kymo_error *err)
{
	struct packet packet = {.size_bytes = out->size_bytes};
	size_t head_bytes = out->head ? out->head_bytes : 0;

	/* It only tells the time, or there is nothing to decode it with. */
	if (!trace->legs)
		return KYMO_OK;
	packet.data = malloc(out->size_bytes ? out->size_bytes : 1);
	if (!packet.data || ky_vec_push(&trace->batch, packet) < 0) {
		free(packet.data);
		return ky_error_nomem(err);
	}
	if (head_bytes)
		memcpy(packet.data, out->head, head_bytes);
	memcpy(packet.data + head_bytes, out->data, out->size_bytes - head_bytes);
	trace->batch_bytes += out->size_bytes;
	if (trace->batch_bytes > BATCH_BYTES_MAX)
		process(trace);
	return KYMO_OK;
}

static int store_packet(struct ky_store_trace *base, int stream, const struct ky_packet_out *out,
			struct kymo_error *err)
{
	struct trace *trace = trigger_store_trace_of(base);
	int ret;

	(void)stream;
	pthread_mutex_lock(&trace->store->lock);
	ret = trigger_store_add_packet(trace, out, err);
	trace->base.bytes_written += out->size_bytes;
	pthread_mutex_unlock(&trace->store->lock);
	return ret;
}

static int store_metadata(struct ky_store_trace *base, const char *text, size_t len_bytes,
			  struct kymo_error *err)
{
	struct trace *trace = trigger_store_trace_of(base);
	struct kymo_error why;
	int ret;

	pthread_mutex_lock(&trace->store->lock);
	process(trace);
	forget_class(trace);
	ret = ky_metadata_read(text, len_bytes, &trace->cls, &why);
	if (!ret)
		ret = use_class(trace, &why);
	if (ret < 0) {
		forget_class(trace);
		keep_error(trace->store, ret, &why);
	}
	pthread_mutex_unlock(&trace->store->lock);
	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	return KYMO_OK;
}

static int store_beacon(struct ky_store_trace *base, int stream, uint64_t until_cycles,
			struct kymo_error *err)
{
	struct trace *trace = trigger_store_trace_of(base);

	(void)stream;
	(void)until_cycles;
	(void)err;
	pthread_mutex_lock(&trace->store->lock);
	process(trace);
	pthread_mutex_unlock(&trace->store->lock);
	return KYMO_OK;
}

static int store_end_streams(struct ky_store_trace *base, struct kymo_error *err)
{
	return store_beacon(base, -1, 0, err);
}

static int store_close_trace(struct ky_store_trace *base, struct kymo_error *err)
{
	struct trace *trace = trigger_store_trace_of(base);

	(void)store_beacon(base, -1, 0, err);
	forget_class(trace);
	ky_vec_fini(&trace->batch);
	ky_vec_fini(&trace->seen);
	free(trace->base.path);
	free(trace);
	return KYMO_OK;
}

static const struct ky_store_trace_ops trace_ops = {
	.stream = store_stream,
	.packet = store_packet,
	.metadata = store_metadata,
	.beacon = store_beacon,
	.end_streams = store_end_streams,
	.close = store_close_trace,
};

static int store_open_trace(struct ky_packet_store *base, const struct ky_store_place *place,
			    struct ky_store_trace **out, struct kymo_error *err)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	*out = NULL;
	if (trace)
		trace->base.path = strdup(place->path);
	if (!trace || !trace->base.path) {
		free(trace);
		return ky_error_nomem(err);
	}
	trace->base.ops = &trace_ops;
	trace->store = (struct store *)base;
	*out = &trace->base;
	return KYMO_OK;
}

/* Of a reader that says nothing else. */
#define DELAY_MS 250

static uint32_t store_readers_delay_ms(struct ky_packet_store *base)
{
	(void)base;
	return DELAY_MS;
}

static void store_free(struct ky_packet_store *base)
{
	struct store *store = (struct store *)base;

	pthread_mutex_destroy(&store->lock);
	free(base->name);
	free(store);
}

static const struct ky_packet_store_ops store_ops = {
	.readers_delay_ms = store_readers_delay_ms,
	.open = store_open_trace,
	.free = store_free,
};

int ky_trigger_store_open(const struct ky_trigger_store_options *options,
			  struct ky_packet_store **out, struct kymo_error *err)
{
	struct store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store)
		store->base.name = strdup("trigger");
	if (!store || !store->base.name) {
		free(store);
		return ky_error_nomem(err);
	}
	store->base.ops = &store_ops;
	store->options = *options;
	pthread_mutex_init(&store->lock, NULL);
	*out = &store->base;
	return KYMO_OK;
}

int ky_trigger_store_check(struct ky_packet_store *base, struct kymo_error *err)
{
	struct store *store = (struct store *)base;
	int ret;

	pthread_mutex_lock(&store->lock);
	ret = store->result;
	if (ret < 0 && err)
		*err = store->err;
	pthread_mutex_unlock(&store->lock);
	return ret;
}
