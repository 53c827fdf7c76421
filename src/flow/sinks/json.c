/* SPDX-License-Identifier: MIT */
/* The JSON lines sink. */
#include <stdio.h>
#include <stdlib.h>

#include "flow/sinks/address-names.h"
#include "flow/sinks/json-value.h"
#include "flow/graph/lines.h"

struct json_sink {
	struct ky_lines_sink lines;
	struct ky_values values;
	const struct ky_address_names *names; /* NULL: none are wanted */
};

static void sinks_json_put(struct json_sink *s, const char *text)
{
	ky_strbuf_adds(&s->lines.out, text);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int sinks_json_put_scope(struct json_sink *s, const struct ky_event *event,
				enum ky_scope scope, const char *name, struct kymo_error *err)
{
	int n = ky_values_decode(&s->values, event, scope, err);

	if (n <= 0)
		return n;
	sinks_json_put(s, ", \"");
	sinks_json_put(s, name);
	sinks_json_put(s, "\": ");
	ky_json_value(&s->lines.out, s->values.list.data);
	return KYMO_OK;
}

/* Of the packet context only what is about the events: no sizes, times and counters. */
static int sinks_json_put_packet(struct json_sink *s, const struct ky_event *event,
				 struct kymo_error *err)
{
	int n = ky_values_decode(&s->values, event, KY_SCOPE_PACKET_CONTEXT, err);
	const struct ky_value *at = s->values.list.data + 1, *end;
	bool any = false;

	if (n <= 0)
		return n;
	end = at + s->values.list.data[0].n_below;
	while (at && at < end) {
		if (at->cls->role != KY_ROLE_NONE && at->cls->role != KY_ROLE_CPU_ID) {
			at += 1 + at->n_below;
			continue;
		}
		sinks_json_put(s, any ? ", " : ", \"packet\": {");
		any = true;
		ky_json_text(&s->lines.out, at->name, strlen(at->name));
		sinks_json_put(s, ": ");
		at = ky_json_value(&s->lines.out, at);
	}
	if (any)
		sinks_json_put(s, "}");
	return KYMO_OK;
}

/* The name of an address as a text, or null. */
static void json_put_name(struct json_sink *s, const struct ky_event *event,
			  const struct ky_value *value, uint32_t i)
{
	struct ky_strbuf name = KY_STRBUF_INIT;

	s->names->put(s->names->data, event, value->u, i > 0, &name);
	if (name.len)
		ky_json_text(&s->lines.out, name.data, name.len);
	else
		sinks_json_put(s, "null");
	s->lines.out.failed |= name.failed;
	ky_strbuf_fini(&name);
}

static void json_put_names(struct json_sink *s, const struct ky_event *event,
			   const struct ky_value *value)
{
	const struct ky_value *child = value + 1, *end = child + value->n_below;

	ky_json_text(&s->lines.out, value->name, strlen(value->name));
	sinks_json_put(s, ": ");
	if (value->cls->kind != KY_FIELD_ARRAY) {
		json_put_name(s, event, value, 0);
		return;
	}
	sinks_json_put(s, "[");
	for (uint32_t i = 0; child < end; i++, child++) {
		sinks_json_put(s, i ? ", " : "");
		json_put_name(s, event, child, i);
	}
	sinks_json_put(s, "]");
}

/* Of one scope; *any: there were some before. */
static int json_put_symbols(struct json_sink *s, const struct ky_event *event, enum ky_scope scope,
			    bool *any, struct kymo_error *err)
{
	int n = ky_address_in_scope(event->cls, scope)
			? ky_values_decode(&s->values, event, scope, err)
			: 0;
	const struct ky_value *at = s->values.list.data + 1, *end;

	if (n <= 0)
		return n;
	end = at + at[-1].n_below;
	for (; at < end; at += 1 + at->n_below) {
		if (!ky_address_is_field(event->cls, scope, at->name, at->cls))
			continue;
		sinks_json_put(s, *any ? ", " : ", \"symbols\": {");
		*any = true;
		json_put_names(s, event, at);
	}
	return KYMO_OK;
}

static int json_put_all_symbols(struct json_sink *s, const struct ky_event *event,
				struct kymo_error *err)
{
	static const enum ky_scope scopes[] = {KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_EVENT_CONTEXT,
					       KY_SCOPE_PAYLOAD};
	bool any = false;
	int ret = KYMO_OK;

	for (size_t i = 0; ret == KYMO_OK && i < sizeof(scopes) / sizeof(scopes[0]); i++)
		ret = json_put_symbols(s, event, scopes[i], &any, err);
	if (any)
		sinks_json_put(s, "}");
	return ret;
}

static int sinks_json_put_event(struct json_sink *s, const struct ky_event *event,
				const char *stream, struct kymo_error *err)
{
	int ret;

	sinks_json_put(s, "{");
	if (event->ns != INT64_MIN) {
		sinks_json_put(s, "\"timestamp_ns\": ");
		ky_strbuf_addi(&s->lines.out, event->ns);
		sinks_json_put(s, ", ");
	}
	sinks_json_put(s, "\"event\": ");
	ky_json_text(&s->lines.out, event->cls->name, strlen(event->cls->name));
	sinks_json_put(s, ", \"stream\": ");
	ky_json_text(&s->lines.out, stream, strlen(stream));
	if (event->cls->has_loglevel) {
		sinks_json_put(s, ", \"loglevel\": ");
		ky_strbuf_addi(&s->lines.out, event->cls->loglevel);
	}
	ret = sinks_json_put_packet(s, event, err);
	if (ret == KYMO_OK)
		ret = sinks_json_put_scope(s, event, KY_SCOPE_STREAM_CONTEXT, "context", err);
	if (ret == KYMO_OK)
		ret = sinks_json_put_scope(s, event, KY_SCOPE_EVENT_CONTEXT, "event_context", err);
	if (ret == KYMO_OK)
		ret = sinks_json_put_scope(s, event, KY_SCOPE_PAYLOAD, "fields", err);
	if (ret == KYMO_OK && s->names)
		ret = json_put_all_symbols(s, event, err);
	sinks_json_put(s, "}\n");
	return ret;
}

static int json_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct json_sink *s = (struct json_sink *)sink;
	const struct ky_stream *stream;
	size_t whole;
	int ret;

	for (size_t i = 0; i < batch->n_events; i++) {
		whole = s->lines.out.len;
		stream = ky_batch_stream(batch, &batch->events[i]);
		ret = sinks_json_put_event(s, &batch->events[i], stream->name, err);
		ret = ky_lines_put(&s->lines, whole, ret, stream, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static void json_free(struct ky_sink *sink)
{
	struct json_sink *s = (struct json_sink *)sink;

	ky_strbuf_fini(&s->lines.out);
	ky_values_fini(&s->values);
	free(s);
}

static const struct ky_sink_ops json_ops = {
	.batch = json_batch,
	.flush = ky_lines_flush,
	.finish = ky_lines_flush,
	.free = json_free,
	.hold = ky_lines_hold,
	.resume = ky_lines_resume,
	.begin = ky_lines_begin,
	.held = ky_lines_held,
	.take = ky_lines_take,
	.any_stream = true,
};

struct ky_sink *ky_json_sink_new(int fd, const struct ky_address_names *names)
{
	struct json_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lines.sink.ops = &json_ops;
	s->lines.fd = fd;
	s->names = names;
	s->lines.what = "the JSON";
	ky_values_init(&s->values);
	return &s->lines.sink;
}
