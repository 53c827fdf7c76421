/* SPDX-License-Identifier: MIT */
/*
 * OpenTelemetry's spans as OTLP/JSON: a line is an ExportTraceServiceRequest with spans of one process, as collectors read them from
 * files (otlpjsonfile) and from HTTP. A span is on a thread; the one around it is its parent, and other events in it are its events.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/export/otlp.h"
#include "base/error.h"
#include "flow/sinks/json-value.h"

#define DEPTH_MAX      256
#define EVENTS_MAX     128
#define SPANS_OF_LINE  256
#define ATTRIBUTES_MAX 64

/* A span that goes on. */
struct otlp_span {
	const char *name;
	uint64_t id, parent, trace_id[2];
	int64_t begin_ns;
	uint32_t n_events, n_dropped;
	struct ky_strbuf attributes, events;
};

/* A thread. */
struct otlp_thread {
	KY_VEC(struct otlp_span) open;
	uint32_t n_deeper; /* spans beyond DEPTH_MAX, which are left out */
	struct otlp_process *process;
};

/* A process: spans that wait for a line. */
struct otlp_process {
	struct ky_strbuf spans;
	uint32_t n_spans;
	const struct ky_track *track; /* of one of its threads */
};

struct otlp_own {
	const struct ky_otlp_options *options;
	struct ky_map processes; /* machine << 32 | pid -> struct otlp_process * */
	KY_VEC(struct otlp_process *) list;
	KY_VEC(struct otlp_thread *) threads;
	int64_t last_ns;
	uint64_t n_spans;
};

/* ---- attributes --------------------------------------------------------------------------- */

static void otlp_text(struct ky_strbuf *out, const char *text)
{
	ky_json_text(out, text, strlen(text));
}

static void otlp_value(struct ky_strbuf *out, const struct ky_value *v)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	switch (v->cls->kind) {
	case KY_FIELD_BOOL:
		ky_strbuf_addf(out, "{\"boolValue\":%s}", v->u ? "true" : "false");
		return;
	case KY_FIELD_UINT:
	case KY_FIELD_VARUINT:
		if (ky_value_is_big(v) || v->cls->num.is_enum || v->u > INT64_MAX)
			break;
		ky_strbuf_addf(out, "{\"intValue\":\"%" PRIu64 "\"}", v->u);
		return;
	case KY_FIELD_SINT:
	case KY_FIELD_VARSINT:
		if (ky_value_is_big(v) || v->cls->num.is_enum)
			break;
		ky_strbuf_addf(out, "{\"intValue\":\"%" PRId64 "\"}", v->s);
		return;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		ky_strbuf_adds(out, "{\"stringValue\":");
		ky_json_value(out, v);
		ky_strbuf_addc(out, '}');
		return;
	case KY_FIELD_FLOAT:
		ky_strbuf_adds(out, "{\"doubleValue\":");
		ky_json_value(out, v);
		ky_strbuf_addc(out, '}');
		return;
	default:
		break;
	}
	/* Everything else is a text of JSON. */
	ky_json_value(&text, v);
	ky_strbuf_adds(out, "{\"stringValue\":");
	ky_json_text(out, text.data ? text.data : "", text.len);
	ky_strbuf_addc(out, '}');
	out->failed |= text.failed;
	ky_strbuf_fini(&text);
}

static void otlp_attribute_text(struct ky_strbuf *out, const char *key, const char *value)
{
	ky_strbuf_addf(out, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":", out->len ? "," : "",
		       key);
	otlp_text(out, value);
	ky_strbuf_adds(out, "}}");
}

static void otlp_attribute(struct ky_strbuf *out, const struct ky_value *at)
{
	ky_strbuf_addf(out, "%s{\"key\":", out->len ? "," : "");
	otlp_text(out, at->name);
	ky_strbuf_adds(out, ",\"value\":");
	otlp_value(out, at);
	ky_strbuf_addc(out, '}');
}

static void otlp_attributes(struct ky_strbuf *out, const struct ky_value *fields)
{
	const struct ky_value *at = fields ? fields + 1 : NULL;
	const struct ky_value *end = at ? at + fields->n_below : NULL;

	for (int i = 0; at < end && i < ATTRIBUTES_MAX; i++, at += 1 + at->n_below)
		otlp_attribute(out, at);
}

/* ---- ids ---------------------------------------------------------------------------------- */

/* Ids are not zero. */
static uint64_t otlp_id(uint64_t a, uint64_t b)
{
	uint64_t id = ky_hash_u64(ky_hash_u64(a) ^ b);

	return id ? id : 1;
}

/* Digits of a hexadecimal number of 128 bits, with or without hyphens. */
static bool otlp_hex(const char *text, size_t len, uint64_t id[2])
{
	unsigned int digits = 0;

	id[0] = id[1] = 0;
	for (size_t i = 0; i < len; i++) {
		char c = (char)(text[i] | 32);
		unsigned int digit = c >= '0' && c <= '9'   ? (unsigned int)(c - '0')
				     : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
							    : 16;

		if (text[i] == '-')
			continue;
		if (digit > 15 || ++digits > 32)
			return false;
		id[0] = id[0] << 4 | id[1] >> 60;
		id[1] = id[1] << 4 | digit;
	}
	return digits == 32 && (id[0] | id[1]);
}

/* What the field that the user names says. False: the event has no such field. */
static bool otlp_told_id(const struct otlp_own *own, const struct ky_value *fields, uint64_t id[2])
{
	const char *name = own->options->trace_id;
	const struct ky_value *at = fields ? fields + 1 : NULL;
	const struct ky_value *end = at ? at + fields->n_below : NULL;

	for (; name && at < end; at += 1 + at->n_below) {
		if (strcmp(at->name, name) != 0)
			continue;
		if (at->cls->kind == KY_FIELD_STRING || at->cls->kind == KY_FIELD_TEXT) {
			if (!at->str.len_bytes)
				return false;
			if (otlp_hex(at->str.data, at->str.len_bytes, id))
				return true;
			id[0] = ky_hash_bytes(at->str.data, at->str.len_bytes);
			id[1] = otlp_id(id[0], at->str.len_bytes);
			return true;
		}
		if (at->n_below || ky_value_is_big(at) || at->cls->kind == KY_FIELD_FLOAT)
			return false;
		id[0] = 0;
		id[1] = at->u;
		return at->u != 0;
	}
	return false;
}

/* ---- lines -------------------------------------------------------------------------------- */

static void otlp_flush(struct ky_tracks *tracks, struct otlp_process *process)
{
	struct ky_strbuf resource = KY_STRBUF_INIT;
	const struct ky_track *track = process->track;
	const char *name = track->process[0] ? track->process : track->name;

	if (!process->n_spans)
		return;
	otlp_attribute_text(&resource, "service.name", name[0] ? name : "unknown_service");
	if (track->hostname[0])
		otlp_attribute_text(&resource, "host.name", track->hostname);
	if (track->kind == KY_TRACK_THREAD)
		ky_strbuf_addf(&resource,
			       ",{\"key\":\"process.pid\",\"value\":{\"intValue\":\"%d\"}}",
			       track->pid);
	ky_strbuf_adds(&tracks->out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
	ky_strbuf_add(&tracks->out, resource.data, resource.len);
	ky_strbuf_adds(&tracks->out,
		       "]},\"scopeSpans\":[{\"scope\":{\"name\":\"kymo\"},\"spans\":[");
	ky_strbuf_add(&tracks->out, process->spans.data, process->spans.len);
	ky_strbuf_adds(&tracks->out, "]}]}]}\n");
	tracks->out.failed |= resource.failed | process->spans.failed;
	ky_strbuf_fini(&resource);
	ky_strbuf_clear(&process->spans);
	process->n_spans = 0;
}

static struct otlp_process *otlp_process(struct ky_tracks *tracks, const struct ky_track *track)
{
	struct otlp_own *own = tracks->own;
	uint64_t key = (uint64_t)track->machine << 32 |
		       (track->kind == KY_TRACK_THREAD ? (uint32_t)track->pid
						       : UINT32_C(0x80000000) | track->index);
	struct otlp_process *process = ky_map_get(&own->processes, key);

	if (process)
		return process;
	process = ky_arena_new(&tracks->arena, struct otlp_process);
	if (!process || ky_map_set(&own->processes, key, process) < 0 ||
	    ky_vec_push(&own->list, process) < 0)
		return NULL;
	ky_strbuf_init(&process->spans);
	process->track = track;
	return process;
}

static struct otlp_thread *otlp_thread(struct ky_tracks *tracks, struct ky_track *track)
{
	struct otlp_own *own = tracks->own;
	struct otlp_thread *thread = track->own;

	if (thread)
		return thread;
	thread = ky_arena_new(&tracks->arena, struct otlp_thread);
	if (!thread || ky_vec_push(&own->threads, thread) < 0)
		return NULL;
	thread->process = otlp_process(tracks, track);
	if (!thread->process)
		return NULL;
	track->own = thread;
	return thread;
}

/* ---- spans -------------------------------------------------------------------------------- */

static int otlp_begin_span(struct ky_tracks *tracks, struct otlp_thread *thread,
			   const struct ky_track_item *item)
{
	struct otlp_own *own = tracks->own;
	const struct otlp_span *parent =
		thread->open.len ? &thread->open.data[thread->open.len - 1] : NULL;
	struct otlp_span span = {
		.name = item->name,
		.begin_ns = item->ns,
		.parent = parent ? parent->id : 0,
	};

	if (thread->open.len >= DEPTH_MAX) {
		thread->n_deeper++;
		return 0;
	}
	own->n_spans++;
	span.id = otlp_id((uint64_t)item->ns, (uint64_t)item->track->index << 32 ^ own->n_spans);
	if (!otlp_told_id(own, item->fields, span.trace_id)) {
		span.trace_id[0] = parent ? parent->trace_id[0] : otlp_id(span.id, 1);
		span.trace_id[1] = parent ? parent->trace_id[1] : otlp_id(span.id, 2);
	} else if (parent && (parent->trace_id[0] != span.trace_id[0] ||
			      parent->trace_id[1] != span.trace_id[1])) {
		/* A request of its own within another one. */
		span.parent = 0;
	}
	ky_strbuf_init(&span.attributes);
	ky_strbuf_init(&span.events);
	otlp_attributes(&span.attributes, item->fields);
	return ky_vec_push(&thread->open, span);
}

static void otlp_put_span(struct ky_tracks *tracks, struct otlp_thread *thread,
			  struct otlp_span *span, const struct ky_track_item *item, int64_t end_ns)
{
	struct ky_strbuf *out = &thread->process->spans;

	ky_strbuf_addf(out,
		       "%s{\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"spanId\":\"%016" PRIx64
		       "\",",
		       thread->process->n_spans ? "," : "", span->trace_id[0], span->trace_id[1],
		       span->id);
	if (span->parent)
		ky_strbuf_addf(out, "\"parentSpanId\":\"%016" PRIx64 "\",", span->parent);
	ky_strbuf_adds(out, "\"name\":");
	otlp_text(out, span->name);
	ky_strbuf_addf(out,
		       ",\"kind\":1,\"startTimeUnixNano\":\"%" PRId64
		       "\",\"endTimeUnixNano\":\"%" PRId64 "\",\"attributes\":[",
		       span->begin_ns, end_ns);
	ky_strbuf_add(out, span->attributes.data, span->attributes.len);
	ky_strbuf_adds(out, "],\"events\":[");
	ky_strbuf_add(out, span->events.data, span->events.len);
	ky_strbuf_addf(out, "],\"droppedEventsCount\":%u,\"status\":{", span->n_dropped);
	if (item && item->error) {
		ky_strbuf_adds(out, "\"code\":2,\"message\":");
		otlp_text(out, item->error);
	}
	ky_strbuf_adds(out, "}}");
	out->failed |= span->attributes.failed | span->events.failed;
	ky_strbuf_fini(&span->attributes);
	ky_strbuf_fini(&span->events);
	if (++thread->process->n_spans >= SPANS_OF_LINE)
		otlp_flush(tracks, thread->process);
}

/* The innermost span of the name ends; those within it have lost their ends, and end, too. */
static void otlp_end_span(struct ky_tracks *tracks, struct otlp_thread *thread,
			  const struct ky_track_item *item)
{
	size_t at = thread->open.len;

	if (thread->n_deeper) {
		thread->n_deeper--;
		return;
	}
	while (at > 0 && strcmp(thread->open.data[at - 1].name, item->name) != 0)
		at--;
	if (!at)
		return;
	while (thread->open.len >= at) {
		struct otlp_span *span = &thread->open.data[--thread->open.len];
		bool is_it = thread->open.len + 1 == at;

		if (is_it)
			otlp_attributes(&span->attributes, item->fields);
		else
			otlp_attribute_text(&span->attributes, "kymo.end", "unknown");
		otlp_put_span(tracks, thread, span, is_it ? item : NULL, item->ns);
	}
}

static void otlp_instant(struct otlp_thread *thread, const struct ky_track_item *item)
{
	struct otlp_span *span = thread->open.len ? &thread->open.data[thread->open.len - 1] : NULL;
	struct ky_strbuf attributes = KY_STRBUF_INIT;

	if (!span)
		return;
	if (span->n_events >= EVENTS_MAX) {
		span->n_dropped++;
		return;
	}
	otlp_attributes(&attributes, item->fields);
	ky_strbuf_addf(&span->events,
		       "%s{\"timeUnixNano\":\"%" PRId64 "\",\"name\":", span->n_events++ ? "," : "",
		       item->ns);
	otlp_text(&span->events, item->name);
	ky_strbuf_adds(&span->events, ",\"attributes\":[");
	ky_strbuf_add(&span->events, attributes.data, attributes.len);
	ky_strbuf_adds(&span->events, "]}");
	span->events.failed |= attributes.failed;
	ky_strbuf_fini(&attributes);
}

static int otlp_item(struct ky_tracks *tracks, const struct ky_track_item *item,
		     struct kymo_error *err)
{
	struct otlp_own *own = tracks->own;
	struct otlp_thread *thread = otlp_thread(tracks, item->track);

	if (!thread)
		return ky_error_nomem(err);
	if (item->ns < 0) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "spans have no times before 1970");
		ky_error_hint(err, "an offset of the clock shifts the times");
		return KYMO_E_UNSUPPORTED;
	}
	own->last_ns = item->ns;
	if (item->what == KY_TRACK_BEGIN)
		return otlp_begin_span(tracks, thread, item) < 0 ? ky_error_nomem(err) : 0;
	if (item->what == KY_TRACK_END)
		otlp_end_span(tracks, thread, item);
	else if (item->what == KY_TRACK_INSTANT)
		otlp_instant(thread, item);
	return 0;
}

static int otlp_begin(struct ky_tracks *tracks, struct kymo_error *err)
{
	struct otlp_own *own = tracks->own;

	(void)err;
	own->options = tracks->options;
	return 0;
}

static int otlp_end(struct ky_tracks *tracks, struct kymo_error *err)
{
	struct otlp_own *own = tracks->own;

	if (!own->n_spans) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "the trace has no span of a program");
		ky_error_hint(err, "a program records them with KYMO_SPAN; system calls can "
				   "be spans, too");
		return KYMO_E_UNSUPPORTED;
	}
	ky_vec_foreach(&own->threads, thread) {
		while ((*thread)->open.len) {
			struct otlp_span *span = &(*thread)->open.data[--(*thread)->open.len];

			otlp_attribute_text(&span->attributes, "kymo.end", "after the trace");
			otlp_put_span(tracks, *thread, span, NULL, own->last_ns);
		}
	}
	ky_vec_foreach(&own->list, process)
		otlp_flush(tracks, *process);
	return 0;
}

static void otlp_free_thread(struct otlp_thread *thread)
{
	ky_vec_foreach(&thread->open, span) {
		ky_strbuf_fini(&span->attributes);
		ky_strbuf_fini(&span->events);
	}
	ky_vec_fini(&thread->open);
}

static void otlp_free(struct ky_tracks *tracks)
{
	struct otlp_own *own = tracks->own;

	ky_vec_foreach(&own->threads, thread)
		otlp_free_thread(*thread);
	ky_vec_foreach(&own->list, process)
		ky_strbuf_fini(&(*process)->spans);
	ky_vec_fini(&own->threads);
	ky_vec_fini(&own->list);
	ky_map_fini(&own->processes);
}

/* Spans of programs; with the second one, their system calls, too. */
#define OTLP_FORM(calls)                                                                           \
	{                                                                                          \
		.what = "the spans", .wants_calls = (calls), .own_bytes = sizeof(struct otlp_own), \
		.begin = otlp_begin, .item = otlp_item, .end = otlp_end, .free = otlp_free,        \
	}

static const struct ky_tracks_form otlp_form = OTLP_FORM(false);
static const struct ky_tracks_form otlp_form_with_calls = OTLP_FORM(true);

int ky_otlp_open(const struct ky_trace_set *set, int fd, const struct ky_otlp_options *options,
		 struct ky_sink **sink, struct kymo_error *err)
{
	return ky_tracks_open(set, fd, options->calls ? &otlp_form_with_calls : &otlp_form, options,
			      sink, err);
}
