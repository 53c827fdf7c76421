/* SPDX-License-Identifier: MIT */
/* The JSON lines sink. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "flow/json-value.h"
#include "flow/sink.h"
#include "os/file.h"

#define WRITE_BYTES ((size_t)256 << 10)

struct json_sink {
	struct ky_sink sink;
	struct ky_strbuf out;
	struct ky_values values;
	int fd;
	bool held; /* only flush writes */
};

static void put(struct json_sink *s, const char *text)
{
	ky_strbuf_adds(&s->out, text);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int put_scope(struct json_sink *s, const struct ky_event *event, enum ky_scope scope,
		     const char *name, struct kymo_error *err)
{
	int n = ky_values_decode(&s->values, event, scope, err);

	if (n <= 0)
		return n;
	put(s, ", \"");
	put(s, name);
	put(s, "\": ");
	ky_json_value(&s->out, s->values.list.data);
	return KYMO_OK;
}

/* Of the packet context only what is about the events: no sizes, times and counters. */
static int put_packet(struct json_sink *s, const struct ky_event *event, struct kymo_error *err)
{
	int n = ky_values_decode(&s->values, event, KY_SCOPE_PACKET_CONTEXT, err);
	const struct ky_value *at = s->values.list.data + 1, *end;
	bool any = false;

	if (n <= 0)
		return n;
	end = at + s->values.list.data[0].n_below;
	while (at < end) {
		if (at->cls->role != KY_ROLE_NONE && at->cls->role != KY_ROLE_CPU_ID) {
			at += 1 + at->n_below;
			continue;
		}
		put(s, any ? ", " : ", \"packet\": {");
		any = true;
		ky_json_text(&s->out, at->name, strlen(at->name));
		put(s, ": ");
		at = ky_json_value(&s->out, at);
	}
	if (any)
		put(s, "}");
	return KYMO_OK;
}

static int put_event(struct json_sink *s, const struct ky_event *event, const char *stream,
		     struct kymo_error *err)
{
	int ret;

	put(s, "{");
	if (event->ns != INT64_MIN) {
		put(s, "\"timestamp_ns\": ");
		ky_strbuf_addi(&s->out, event->ns);
		put(s, ", ");
	}
	put(s, "\"event\": ");
	ky_json_text(&s->out, event->cls->name, strlen(event->cls->name));
	put(s, ", \"stream\": ");
	ky_json_text(&s->out, stream, strlen(stream));
	if (event->cls->has_loglevel) {
		put(s, ", \"loglevel\": ");
		ky_strbuf_addi(&s->out, event->cls->loglevel);
	}
	ret = put_packet(s, event, err);
	if (ret == KYMO_OK)
		ret = put_scope(s, event, KY_SCOPE_STREAM_CONTEXT, "context", err);
	if (ret == KYMO_OK)
		ret = put_scope(s, event, KY_SCOPE_EVENT_CONTEXT, "event_context", err);
	if (ret == KYMO_OK)
		ret = put_scope(s, event, KY_SCOPE_PAYLOAD, "fields", err);
	put(s, "}\n");
	return ret;
}

static int write_out(struct json_sink *s, struct kymo_error *err)
{
	int ret;

	if (ky_strbuf_failed(&s->out))
		return ky_error_nomem(err);
	ret = ky_write_all(s->fd, s->out.data, s->out.len);
	ky_strbuf_clear(&s->out);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write the JSON") : KYMO_OK;
}

static int json_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct json_sink *s = (struct json_sink *)sink;
	const struct ky_stream *stream;
	size_t whole;
	int ret;

	for (size_t i = 0; i < batch->n_events; i++) {
		whole = s->out.len;
		stream = ky_batch_stream(batch, &batch->events[i]);
		ret = put_event(s, &batch->events[i], stream->name, err);
		if (ret < 0) {
			s->out.len = whole; /* no half lines */
			ky_sink_place(stream, err);
			return ret;
		}
		if (s->out.len >= WRITE_BYTES && !s->held) {
			ret = write_out(s, err);
			if (ret < 0)
				return ret;
		}
	}
	return KYMO_OK;
}

static int json_finish(struct ky_sink *sink, struct kymo_error *err)
{
	return write_out((struct json_sink *)sink, err);
}

static void json_hold(struct ky_sink *sink)
{
	((struct json_sink *)sink)->held = true;
}

/* A line knows nothing of the one before. */
static void json_resume(struct ky_sink *sink, const struct ky_event *before)
{
	(void)sink;
	(void)before;
}

static void json_begin(struct ky_sink *sink)
{
	ky_strbuf_clear(&((struct json_sink *)sink)->out);
}

static size_t json_held(const struct ky_sink *sink)
{
	return ((const struct json_sink *)sink)->out.len;
}

static void json_take(struct ky_sink *sink, struct ky_sink_before *before,
		      struct ky_sink_held *held)
{
	struct json_sink *s = (struct json_sink *)sink;

	(void)before;
	*held = (struct ky_sink_held){.data = ky_strbuf_text(&s->out), .len = s->out.len};
	/* The bytes stay where they are. */
	s->out.len = 0;
}

static void json_free(struct ky_sink *sink)
{
	struct json_sink *s = (struct json_sink *)sink;

	ky_strbuf_fini(&s->out);
	ky_values_fini(&s->values);
	free(s);
}

static const struct ky_sink_ops json_ops = {
	.batch = json_batch,
	.flush = json_finish,
	.finish = json_finish,
	.free = json_free,
	.hold = json_hold,
	.resume = json_resume,
	.begin = json_begin,
	.held = json_held,
	.take = json_take,
	.any_stream = true,
};

struct ky_sink *ky_json_sink_new(int fd)
{
	struct json_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sink.ops = &json_ops;
	s->fd = fd;
	ky_values_init(&s->values);
	return &s->sink;
}
