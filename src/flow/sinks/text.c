/* SPDX-License-Identifier: MIT */
/* The text sink: buffer, time stamps, lines. */
#include "flow/sinks/text-internal.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "flow/graph/sink.h"
#include "os/file.h"

#define BUFFER_BYTES	((size_t)256 << 10)
#define WRITE_BYTES	((size_t)128 << 10) /* what a write() should have at least */
#define SHRINK_BYTES	((size_t)8 << 20)
#define PREFETCH_EVENTS 4
#define LINE_HEAD_BYTES 320 /* time stamp and difference, in any form */
#define NS_PER_S	INT64_C(1000000000)

/* ---- buffer ------------------------------------------------------------------------------ */

static int sinks_text_write_out(struct ky_text *text, struct kymo_error *err)
{
	int ret = ky_write_all(text->fd, text->data, text->len);

	text->len = 0;
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write the text") : KYMO_OK;
}

char *ky_text_more(struct ky_text *text, char *at, size_t need, struct kymo_error *err)
{
	size_t used = (size_t)(at - text->data), cap;
	char *data;

	if (!text->holding && !text->held) {
		text->len = used;
		if (sinks_text_write_out(text, err) < 0)
			return NULL;
		used = 0;
	}
	if (need <= text->cap - used)
		return text->data + used;
	cap = (used + need) * 2;
	data = realloc(text->data, cap + TEXT_SLACK);
	if (!data) {
		ky_error_nomem(err);
		return NULL;
	}
	text->data = data;
	text->cap = cap;
	return data + used;
}

struct ky_text *ky_text_new(int fd, const struct ky_text_options *options)
{
	struct ky_text *text = calloc(1, sizeof(*text));

	if (!text)
		return NULL;
	text->fd = fd;
	text->options = *options;
	ky_text_style_init(&text->style, options);
	text->styled_stamp = options->clock_cycles || text->style.codes ||
			     (text->style.names & KY_TEXT_NAME_HEADER);
	text->cap = BUFFER_BYTES;
	text->data = malloc(BUFFER_BYTES + TEXT_SLACK);
	ky_arena_init(&text->arena);
	ky_map_init(&text->traces);
	ky_values_init(&text->values);
	tzset();
	if (!text->data) {
		ky_text_free(text);
		return NULL;
	}
	return text;
}

void ky_text_free(struct ky_text *text)
{
	if (!text)
		return;
	ky_vec_foreach(&text->packets, packet)
		ky_strbuf_fini(&packet->text);
	ky_vec_fini(&text->packets);
	ky_values_fini(&text->values);
	ky_map_fini(&text->traces);
	ky_vec_fini(&text->order);
	ky_arena_fini(&text->arena);
	free(text->data);
	free(text);
}

/* One huge event must not take its memory for ever. */
static void shrink(struct ky_text *text)
{
	char *data =
		text->cap > SHRINK_BYTES ? realloc(text->data, BUFFER_BYTES + TEXT_SLACK) : NULL;

	if (!data)
		return;
	text->data = data;
	text->cap = BUFFER_BYTES;
}

int ky_text_flush(struct ky_text *text, struct kymo_error *err)
{
	int ret = sinks_text_write_out(text, err);

	shrink(text);
	return ret;
}

void ky_text_hold(struct ky_text *text)
{
	text->held = true;
}

void ky_text_resume(struct ky_text *text, const struct ky_event *before)
{
	text->has_last = before != NULL;
	if (!before)
		return;
	text->last_ns = before->ns;
	text->last_cycles = before->cycles;
}

/* ---- time stamps ------------------------------------------------------------------------- */

/* "08:30:00." or what the options make of it, for the second @seconds of @seconds >= 0. */
static char *put_second(char *at, int64_t seconds, const struct ky_text_options *options)
{
	time_t time = (time_t)seconds;
	struct tm tm;

	if (!options->clock_seconds &&
	    (options->clock_gmt ? gmtime_r(&time, &tm) : localtime_r(&time, &tm)))
		return at + strftime(at, SECOND_BYTES - 1,
				     options->clock_date ? "%Y-%m-%d %H:%M:%S." : "%H:%M:%S.", &tm);
	at = ky_text_put_u64(at, (uint64_t)seconds);
	*at++ = '.';
	return at;
}

/* Before the epoch there is no time of day that people would recognise: seconds. */
static char *put_negative(char *at, int64_t ns)
{
	uint64_t before = 0 - (uint64_t)ns;

	*at++ = '-';
	at = ky_text_put_u64(at, before / (uint64_t)NS_PER_S);
	*at++ = '.';
	return ky_text_put_nanos(at, (uint32_t)(before % (uint64_t)NS_PER_S));
}

char *ky_text_time(char *out, int64_t ns, const struct ky_text_options *options)
{
	char *at;

	if (ns < 0) {
		at = put_negative(out, ns);
	} else {
		at = put_second(out, ns / NS_PER_S, options);
		at = ky_text_put_nanos(at, (uint32_t)(ns % NS_PER_S));
	}
	*at = '\0';
	return out;
}

/* The part of the stamp that is the same while the second lasts. */
static void new_second(struct ky_text *text, int64_t ns)
{
	int64_t seconds = ns / NS_PER_S;
	char *at = text->second;

	text->has_second = true;
	text->second_ns = seconds * NS_PER_S;
	if (!text->styled_stamp)
		*at++ = '[';
	text->second_len = (uint32_t)(put_second(at, seconds, &text->options) - text->second);
}

/* "[08:30:00.123456789"; styled stamps have their own bracket, or none. */
static inline char *sinks_text_put_time(struct ky_text *text, char *at, int64_t ns)
{
	uint64_t nanos = (uint64_t)ns - (uint64_t)text->second_ns;

	if (__builtin_expect(ns < 0, 0)) {
		if (!text->styled_stamp)
			*at++ = '[';
		return put_negative(at, ns);
	}
	if (__builtin_expect(nanos >= (uint64_t)NS_PER_S || !text->has_second, 0)) {
		new_second(text, ns);
		nanos = (uint64_t)ns - (uint64_t)text->second_ns;
	}
	memcpy(at, text->second, SECOND_BYTES);
	return ky_text_put_nanos(at + text->second_len, (uint32_t)nanos);
}

/* "+0.000001234" */
static inline char *put_delta(char *at, int64_t now, int64_t last)
{
	uint64_t delta = (uint64_t)now - (uint64_t)last;

	*at++ = '+';
	if (__builtin_expect(now < last, 0)) {
		at[-1] = '-';
		delta = 0 - delta;
	}
	if (__builtin_expect(delta >= (uint64_t)NS_PER_S, 0)) {
		at = ky_text_put_u64(at, delta / (uint64_t)NS_PER_S);
		delta %= (uint64_t)NS_PER_S;
	} else {
		*at++ = '0';
	}
	*at++ = '.';
	return ky_text_put_nanos(at, (uint32_t)delta);
}

/* "+000000000007" */
static char *put_cycles_delta(char *at, uint64_t now, uint64_t last)
{
	uint64_t delta = now < last ? last - now : now - last;

	*at++ = now < last ? '-' : '+';
	return delta < 1000000000000u ? ky_put_digits(at, delta, 12) : ky_text_put_u64(at, delta);
}

static char *sinks_text_put_string(char *at, const char *s)
{
	return ky_text_put(at, s, strlen(s));
}

/* The time since the last event; nothing when the last event is unknown. */
static char *put_any_delta(struct ky_text *text, char *at, int64_t ns, uint64_t cycles)
{
	if (text->last_unknown) {
		text->has_joint = true;
		text->joint_at = (size_t)(at - text->data);
		text->joint_ns = ns;
		text->joint_cycles = cycles;
		return at;
	}
	if (!text->has_last)
		return sinks_text_put_string(at, text->options.clock_cycles
							 ? "+\?\?\?\?\?\?\?\?\?\?\?\?"
							 : "+?.\?\?\?\?\?\?\?\?\?");
	return text->options.clock_cycles ? put_cycles_delta(at, cycles, text->last_cycles)
					  : put_delta(at, ns, text->last_ns);
}

/*
 * Cycles, names or colours: "[00000000000000000042] (+000000000007) ",
 * "timestamp = 08:30:00.123456789, delta = +0.000001234, ".
 */
static char *put_styled_stamp(struct ky_text *text, char *at, const struct ky_event *event)
{
	const struct text_style *style = &text->style;
	bool cycles = text->options.clock_cycles;

	at = sinks_text_put_string(at, style->before_stamp);
	at = cycles ? ky_put_digits(at, event->cycles, 20)
		    : sinks_text_put_time(text, at, event->ns);
	at = sinks_text_put_string(at, style->after_stamp);
	if (text->options.no_delta)
		return at;
	at = sinks_text_put_string(at, style->before_delta);
	at = put_any_delta(text, at, event->ns, event->cycles);
	return sinks_text_put_string(at, style->after_delta);
}

/* "] (+0.000001234) ", as most lines have it: less than 10 microseconds after the one before. */
static inline char *put_short_delta(char *at, uint32_t ns)
{
	memcpy(at, "] (+0.00000    ", 16);
	memcpy(at + 11, ky_text_pairs + ns / 100 * 2, 2);
	memcpy(at + 13, ky_text_pairs + ns % 100 * 2, 2);
	return ky_text_put(at + 15, ") ", 2);
}

/* "[08:30:00.123456789] (+0.000001234) " */
static inline char *put_plain_stamp(struct ky_text *text, char *at, const struct ky_event *event)
{
	uint64_t delta = (uint64_t)event->ns - (uint64_t)text->last_ns;

	at = sinks_text_put_time(text, at, event->ns);
	if (__builtin_expect(delta < 10000 && text->has_last && !text->options.no_delta, 1))
		return put_short_delta(at, (uint32_t)delta);
	at = ky_text_put(at, "] ", 2);
	if (text->options.no_delta)
		return at;
	*at++ = '(';
	if (__builtin_expect(!text->has_last, 0))
		at = put_any_delta(text, at, event->ns, event->cycles);
	else
		at = put_delta(at, event->ns, text->last_ns);
	return ky_text_put(at, ") ", 2);
}

static inline char *sinks_text_put_stamp(struct ky_text *text, char *at,
					 const struct ky_event *event)
{
	/* A stream without a clock has no time at all. */
	if (__builtin_expect(event->ns == INT64_MIN, 0))
		return at;
	if (__builtin_expect(text->styled_stamp, 0))
		at = put_styled_stamp(text, at, event);
	else
		at = put_plain_stamp(text, at, event);
	text->has_last = true;
	text->last_unknown = false;
	text->last_ns = event->ns;
	text->last_cycles = event->cycles;
	return at;
}

/* ---- out of turn ------------------------------------------------------------------------- */

void ky_text_begin(struct ky_text *text)
{
	text->len = 0;
	shrink(text);
	text->has_last = text->has_joint = false;
	text->last_unknown = true;
}

size_t ky_text_held(const struct ky_text *text)
{
	return text->len;
}

/* The event before the next one was @before. */
static void set_before(struct ky_text *text, const struct ky_sink_before *before)
{
	text->has_last = before->any;
	text->last_ns = before->ns;
	text->last_cycles = before->cycles;
	text->last_unknown = false;
}

void ky_text_take(struct ky_text *text, struct ky_sink_before *before, struct ky_sink_held *held)
{
	struct ky_sink_before last = {text->has_last, text->last_ns, text->last_cycles};

	held->data = text->data;
	held->len = text->len;
	held->joint_at = text->joint_at;
	held->joint_len = 0;
	if (text->has_joint) {
		set_before(text, before);
		held->joint_len = (size_t)(put_any_delta(text, held->joint, text->joint_ns,
							 text->joint_cycles) -
					   held->joint);
	}
	if (last.any)
		*before = last;
	set_before(text, before);
	text->has_joint = false;
	text->len = 0;
}

/* ---- lines ------------------------------------------------------------------------------- */

static struct text_trace *sinks_text_trace_of(struct ky_text *text, const struct ky_stream *stream)
{
	const struct ky_trace_class *cls = stream->trace->cls;
	struct text_trace *trace = text->trace;

	if (__builtin_expect(trace && trace->cls == cls, 1))
		return trace;
	trace = ky_map_get(&text->traces, (uint64_t)(uintptr_t)cls);
	if (!trace) {
		trace = ky_arena_new(&text->arena, struct text_trace);
		if (!trace)
			return NULL;
		trace->cls = cls;
		trace->name = ky_trace_name(stream->trace);
		trace->n_plans = cls->events.len;
		trace->plans = ky_arena_array(&text->arena, cls->events.len + 1,
					      sizeof(struct text_plan *));
		if (!trace->plans || ky_map_set(&text->traces, (uint64_t)(uintptr_t)cls, trace) < 0)
			return NULL;
	}
	text->trace = trace;
	return trace;
}

static inline struct text_plan *sinks_text_plan_of(struct ky_text *text, struct text_trace *trace,
						   const struct ky_event *event)
{
	uint32_t index = event->cls->index;

	if (__builtin_expect(!trace->plans[index], 0))
		trace->plans[index] =
			ky_text_plan_new(&text->arena, event->cls, &text->style, trace->name);
	return trace->plans[index];
}

/* "~ " or "  " before the line. NULL: memory is out. */
static char *put_order(struct ky_text *text, char *at, const struct ky_event *event,
		       const struct ky_stream *stream)
{
	int is_uncertain = ky_text_is_uncertain(text, event, stream->trace);

	if (is_uncertain < 0)
		return NULL;
	*at++ = is_uncertain ? '~' : ' ';
	*at++ = ' ';
	return at;
}

/* The context of the event's packet, if an event before has made it; else NULL. */
static inline const struct text_packet *
sinks_text_known_context(const struct ky_text *text, const struct ky_event *event, uint32_t index)
{
	const struct text_packet *packet =
		index < text->packets.len ? &text->packets.data[index] : NULL;

	return packet && packet->data == event->packet->data ? packet : NULL;
}

static char *sinks_text_put_event(struct ky_text *text, char *at, struct text_trace *trace,
				  const struct ky_event *event, const struct ky_stream *stream,
				  struct kymo_error *err)
{
	struct text_plan *plan = sinks_text_plan_of(text, trace, event);
	const struct text_packet *context;
	struct text_joint *joint;

	if (__builtin_expect(!plan, 0)) {
		ky_error_nomem(err);
		return NULL;
	}
	at = ky_text_room(text, at, LINE_HEAD_BYTES + plan->head_len, err);
	if (!at)
		return NULL;
	if (__builtin_expect(text->options.uncertain, 0)) {
		at = put_order(text, at, event, stream);
		if (!at) {
			ky_error_nomem(err);
			return NULL;
		}
	}
	at = sinks_text_put_stamp(text, at, event);
	joint = &plan->joints[stream->index % TEXT_JOINTS];
	if (__builtin_expect(joint->stream == stream && joint->data == event->packet->data, 1)) {
		memcpy(at, joint->piece, sizeof(joint->piece));
		return ky_text_plan_run(text, at + joint->len, plan, event, true, err);
	}
	at = ky_text_put_padded(at, plan->head, plan->head_len);
	if (plan->packet_context) {
		context = sinks_text_known_context(text, event, stream->index);
		if (__builtin_expect(!context, 0))
			context = ky_text_packet_context(text, event, stream->index, &at, err);
		if (context)
			at = ky_text_room(text, at, context->len, err);
		if (!context || !at)
			return NULL;
		at = ky_text_put_padded(at,
					context->len <= sizeof(context->piece)
						? context->piece
						: ky_strbuf_text(&context->text),
					context->len);
		/* Of many streams that take turns, each would throw out the one before: none would use what it has kept. */
		if (joint->last == stream)
			ky_text_keep_joint(plan, event, stream, context);
		joint->last = stream;
	}
	return ky_text_plan_run(text, at, plan, event, false, err);
}

/* Of many streams, each event's bytes lie somewhere else. */
static inline void prefetch(const struct ky_event *event)
{
	const struct ky_packet *packet = event->packet;

	__builtin_prefetch(packet->stream);
	__builtin_prefetch(packet->data + event->begin_bits / 8);
	__builtin_prefetch(packet->data + (event->end_bits - 1) / 8);
}

int ky_text_batch(struct ky_text *text, const struct ky_batch *batch, struct kymo_error *err)
{
	const struct ky_stream *stream;
	struct text_trace *trace;
	struct kymo_error own;
	char *at;

	if (!err)
		err = &own;
	for (size_t i = 0; i < batch->n_events; i++) {
		if (i + PREFETCH_EVENTS < batch->n_events)
			prefetch(&batch->events[i + PREFETCH_EVENTS]);
		stream = ky_batch_stream(batch, &batch->events[i]);
		trace = sinks_text_trace_of(text, stream);
		if (__builtin_expect(!trace, 0))
			return ky_error_nomem(err);
		at = sinks_text_put_event(text, text->data + text->len, trace, &batch->events[i],
					  stream, err);
		if (__builtin_expect(!at, 0)) {
			ky_sink_place(stream, err);
			return err->code;
		}
		text->len = (size_t)(at - text->data);
		if (text->len >= WRITE_BYTES && !text->held && sinks_text_write_out(text, err) < 0)
			return err->code;
	}
	return KYMO_OK;
}
