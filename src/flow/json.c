/* SPDX-License-Identifier: MIT */
/* The JSON lines sink. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "flow/sink.h"
#include "flow/unicode.h"
#include "os/file.h"

#define WRITE_BYTES ((size_t)256 << 10)
#define LABELS_MAX  64

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

/* ---- values -------------------------------------------------------------------------------- */

static void put_text(struct json_sink *s, const char *data, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0;

	/* The worst case is six characters for one. */
	if (len > SIZE_MAX / 8 || !ky_strbuf_reserve(&s->out, len * 6 + 2)) {
		s->out.failed = true;
		return;
	}
	ky_strbuf_addc(&s->out, '"');
	while (at < len) {
		unsigned char c = (unsigned char)data[at];
		size_t n;

		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
			s->out.data[s->out.len++] = (char)c;
			at++;
		} else if (c < 0x80) {
			char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

			if (c == '"' || c == '\\') {
				escape[1] = (char)c;
				ky_strbuf_add(&s->out, escape, 2);
			} else {
				ky_strbuf_add(&s->out, escape, 6);
			}
			at++;
		} else {
			n = ky_utf8_length((const uint8_t *)data + at, len - at);
			ky_strbuf_add(&s->out, n ? data + at : "\xef\xbf\xbd", n ? n : 3);
			at += n ? n : 1;
		}
	}
	ky_strbuf_addc(&s->out, '"');
}

static void put_string(struct json_sink *s, const struct ky_value *v)
{
	struct ky_strbuf utf8 = KY_STRBUF_INIT;
	enum ky_encoding encoding = v->cls->text.encoding;

	if (encoding <= KY_ENCODING_ASCII) {
		put_text(s, v->str.data, v->str.len_bytes);
		return;
	}
	ky_utf8_from(&utf8, encoding, (const uint8_t *)v->str.data, v->str.len_bytes);
	put_text(s, ky_strbuf_text(&utf8), utf8.len);
	s->out.failed |= utf8.failed;
	ky_strbuf_fini(&utf8);
}

static void put_blob(struct json_sink *s, const struct ky_value *v)
{
	static const char hex[] = "0123456789abcdef";

	ky_strbuf_addc(&s->out, '"');
	for (size_t i = 0; i < v->str.len_bytes; i++) {
		uint8_t byte = (uint8_t)v->str.data[i];
		char pair[2] = {hex[byte >> 4], hex[byte & 15]};

		ky_strbuf_add(&s->out, pair, 2);
	}
	ky_strbuf_addc(&s->out, '"');
}

static void put_big(struct json_sink *s, const struct ky_value *v)
{
	unsigned int words = (v->cls->num.length_bits + 63) / 64;

	put(s, "\"0x");
	for (unsigned int i = words; i-- > 0;)
		ky_strbuf_addf(&s->out, "%016llx", (unsigned long long)ky_value_word(v, i));
	put(s, "\"");
}

/* The shortest of %.15g and %.17g that reads back equal. */
static void put_float(struct json_sink *s, double value)
{
	char text[40];

	if (!isfinite(value)) {
		put(s, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
		return;
	}
	snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) < value || strtod(text, NULL) > value)
		snprintf(text, sizeof(text), "%.17g", value);
	put(s, text);
	if (!strpbrk(text, ".e"))
		put(s, ".0");
}

static void put_integer(struct json_sink *s, const struct ky_value *v)
{
	if (v->cls->kind == KY_FIELD_SINT || v->cls->kind == KY_FIELD_VARSINT)
		ky_strbuf_addi(&s->out, v->s);
	else
		ky_strbuf_addu(&s->out, v->u);
}

static void put_labels(struct json_sink *s, const char *const *labels, size_t n)
{
	put(s, ", \"labels\": [");
	for (size_t i = 0; i < n; i++) {
		put(s, i ? ", " : "");
		put_text(s, labels[i], strlen(labels[i]));
	}
	put(s, "]}");
}

static size_t active_flags(const struct ky_value *v, const char **labels)
{
	size_t n = 0;

	for (size_t i = 0; i < v->cls->num.n_mappings && n < LABELS_MAX; i++) {
		const struct ky_mapping *flag = &v->cls->num.mappings[i];
		bool active = false;

		for (size_t j = 0; j < flag->n_ranges && !active; j++) {
			for (uint64_t bit = flag->ranges[j].begin.u;
			     bit <= flag->ranges[j].end.u && bit < 64; bit++)
				active |= v->u >> bit & 1;
		}
		if (active)
			labels[n++] = flag->label;
	}
	return n;
}

static void put_number(struct json_sink *s, const struct ky_value *v)
{
	const char *labels[LABELS_MAX];
	size_t n;

	if (ky_value_is_big(v)) {
		put_big(s, v);
	} else if (v->cls->kind == KY_FIELD_FLOAT) {
		put_float(s, v->f);
	} else if (v->cls->kind == KY_FIELD_BOOL) {
		put(s, v->u ? "true" : "false");
	} else if (v->cls->num.is_enum || v->cls->kind == KY_FIELD_BITMAP) {
		if (v->cls->kind == KY_FIELD_BITMAP)
			n = active_flags(v, labels);
		else
			n = ky_enum_labels(v->cls, v->u, labels, LABELS_MAX);
		put(s, "{\"value\": ");
		put_integer(s, v);
		put_labels(s, labels, n < LABELS_MAX ? n : LABELS_MAX);
	} else {
		put_integer(s, v);
	}
}

/* Write value @v and return the one behind it. */
static const struct ky_value *put_value(struct json_sink *s, const struct ky_value *v)
{
	const struct ky_value *end = v + 1 + v->n_below, *child = v + 1;
	bool is_struct = v->cls->kind == KY_FIELD_STRUCT;

	switch (v->cls->kind) {
	case KY_FIELD_STRUCT:
	case KY_FIELD_ARRAY:
		ky_strbuf_addc(&s->out, is_struct ? '{' : '[');
		while (child < end) {
			if (is_struct) {
				put_text(s, child->name, strlen(child->name));
				put(s, ": ");
			}
			child = put_value(s, child);
			if (child < end)
				put(s, ", ");
		}
		ky_strbuf_addc(&s->out, is_struct ? '}' : ']');
		break;
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		if (v->n_below)
			put_value(s, child);
		else
			put(s, "null");
		break;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		put_string(s, v);
		break;
	case KY_FIELD_BLOB:
		put_blob(s, v);
		break;
	default:
		put_number(s, v);
	}
	return end;
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
	put_value(s, s->values.list.data);
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
		put_text(s, at->name, strlen(at->name));
		put(s, ": ");
		at = put_value(s, at);
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
	put_text(s, event->cls->name, strlen(event->cls->name));
	put(s, ", \"stream\": ");
	put_text(s, stream, strlen(stream));
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
	size_t whole;
	int ret;

	for (size_t i = 0; i < batch->n_events; i++) {
		whole = s->out.len;
		ret = put_event(s, &batch->events[i], batch->stream->name, err);
		if (ret < 0) {
			s->out.len = whole; /* no half lines */
			if (ret == KYMO_E_FORMAT)
				ky_error_path(err, batch->stream->file.path);
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
