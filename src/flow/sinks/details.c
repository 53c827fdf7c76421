/* SPDX-License-Identifier: MIT */
#include "flow/sinks/details.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/foreign.h"
#include "flow/sinks/buffer.h"
#include "flow/sinks/json-value.h"
#include "flow/graph/lines.h"
#include "flow/sinks/text.h"

struct details_sink {
	struct ky_lines_sink lines;
	struct ky_values values;
	uint64_t n_events;
};

static const struct ky_text_options time_options = {.clock_date = true, .clock_gmt = true};

static void details_put_time(struct ky_strbuf *out, int64_t ns, uint64_t cycles)
{
	char text[64];

	if (ns == INT64_MIN) {
		ky_strbuf_adds(out, "no time");
		return;
	}
	ky_strbuf_addf(out, "%s (%" PRIu64 " cycles)", ky_text_time(text, ns, &time_options),
		       cycles);
}

/* ---- packets ------------------------------------------------------------------------------ */

static void details_put_packet(struct ky_strbuf *out, const struct ky_packet_entry *p,
			       size_t number)
{
	ky_strbuf_addf(out,
		       "  packet %zu: byte %" PRIu64 ", %" PRIu64 " bytes, content %" PRIu64
		       " bits\n",
		       number, p->offset_bytes, p->packet_bits / 8, p->content_bits);
	if (p->has_times) {
		ky_strbuf_adds(out, "    from ");
		details_put_time(out, p->begin_ns, p->begin_cycles);
		ky_strbuf_adds(out, "\n    to   ");
		details_put_time(out, p->end_ns, p->end_cycles);
		ky_strbuf_addc(out, '\n');
	}
	if (p->has_sequence)
		ky_strbuf_addf(out, "    sequence number %" PRIu64 "\n", p->sequence);
	if (p->has_discarded)
		ky_strbuf_addf(out, "    discarded events so far: %" PRIu64 "\n", p->discarded);
}

static int details_put_stream(struct ky_strbuf *out, const struct ky_stream *stream)
{
	struct ky_packet_list packets = KY_VEC_INIT;
	struct kymo_error err;
	int ret = ky_stream_packets(stream, &packets, &err);

	if (ret < 0 && ret != KYMO_E_FORMAT) {
		ky_vec_fini(&packets);
		return ret;
	}
	ky_strbuf_adds(out, "stream ");
	ky_foreign_adds(out, stream->file.path);
	ky_strbuf_addf(out, ": %" PRIu64 " bytes, %zu packets", stream->file.size_bytes,
		       packets.len);
	if (stream->cls)
		ky_strbuf_addf(out, ", class %" PRIu64, stream->cls->id);
	if (stream->has_id)
		ky_strbuf_addf(out, ", id %" PRIu64, stream->id);
	if (stream->has_cpu_id)
		ky_strbuf_addf(out, ", CPU %" PRIu32, stream->cpu_id);
	ky_strbuf_addc(out, '\n');
	for (size_t i = 0; i < packets.len; i++)
		details_put_packet(out, &packets.data[i], i);
	if (ret < 0) {
		ky_strbuf_adds(out, "  damaged: ");
		ky_foreign_adds(out, err.message);
		ky_strbuf_addc(out, '\n');
	}
	ky_vec_fini(&packets);
	return KYMO_OK;
}

/* ---- events ------------------------------------------------------------------------------- */

static const char *child_name(const struct ky_value *parent, const struct ky_value *child,
			      const char *index)
{
	if (parent->cls->kind == KY_FIELD_VARIANT)
		return parent->option && parent->option->display ? parent->option->display
								 : "option";
	if (parent->cls->kind == KY_FIELD_OPTIONAL)
		return "it";
	return child->name ? child->name : index;
}

/* "text", or 01 61 62 |.ab|. */
static void details_put_buffer(struct ky_strbuf *out, const struct ky_value *v)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	bool is_text = ky_buffer_bytes(&bytes, v);

	ky_strbuf_addf(out, " %zu bytes: ", bytes.len);
	if (is_text)
		ky_json_text(out, ky_strbuf_text(&bytes), bytes.len);
	else
		ky_buffer_hex(out, ky_strbuf_text(&bytes), bytes.len);
	out->failed |= ky_strbuf_failed(&bytes);
	ky_strbuf_fini(&bytes);
}

KY_DEEP5(const struct ky_value *, details_put_value, struct ky_strbuf *, const struct ky_value *,
	 const char *, int, bool)

/* "NAME: VALUE", members and elements below. Returns the value behind it. */
static const struct ky_value *details_put_value(struct ky_strbuf *out, const struct ky_value *v,
						const char *name, int depth, bool has_buffers)
{
	const struct ky_value *end = v + 1 + v->n_below, *child = v + 1;
	char index[24];

	ky_details_indent(out, depth);
	ky_foreign_adds(out, name);
	ky_strbuf_addc(out, ':');
	if (has_buffers && ky_buffer_is(v)) {
		details_put_buffer(out, v);
		child = end;
	} else if (v->cls->kind == KY_FIELD_ARRAY) {
		ky_strbuf_addf(out, " %" PRIu32 " elements", v->n_children);
	} else if (v->cls->kind == KY_FIELD_OPTIONAL) {
		ky_strbuf_adds(out, v->n_below ? " there" : " absent");
	} else if (v->cls->kind != KY_FIELD_STRUCT && v->cls->kind != KY_FIELD_VARIANT) {
		ky_strbuf_addc(out, ' ');
		ky_json_value(out, v);
	}
	ky_strbuf_addc(out, '\n');
	for (unsigned long i = 0; child && child < end; i++) {
		snprintf(index, sizeof(index), "[%lu]", i);
		child = details_put_value_deep(NULL, out, child, child_name(v, child, index),
					       depth + 1, has_buffers);
	}
	if (!child)
		out->failed = true;
	return end;
}

static int details_put_event(struct details_sink *s, const struct ky_event *event,
			     const struct ky_stream *stream, struct kymo_error *err)
{
	static const char *const names[] = {
		[KY_SCOPE_PACKET_CONTEXT] = "packet context",
		[KY_SCOPE_EVENT_HEADER] = "header",
		[KY_SCOPE_STREAM_CONTEXT] = "stream context",
		[KY_SCOPE_EVENT_CONTEXT] = "context",
		[KY_SCOPE_PAYLOAD] = "payload",
	};
	uint64_t at_bits = event->packet->file_offset_bytes * 8 + event->begin_bits;
	int n = 0;

	ky_strbuf_addf(&s->lines.out, "event %" PRIu64 " ", s->n_events++);
	ky_json_text(&s->lines.out, event->cls->name, strlen(event->cls->name));
	ky_strbuf_addf(&s->lines.out, " (class %" PRIu64 ") in ", event->cls->id);
	ky_foreign_adds(&s->lines.out, stream->name);
	ky_strbuf_addf(&s->lines.out, " at byte %" PRIu64, at_bits / 8);
	if (at_bits % 8)
		ky_strbuf_addf(&s->lines.out, " bit %" PRIu64, at_bits % 8);
	ky_strbuf_addf(&s->lines.out, ", %" PRIu64 " bits\n  ",
		       event->end_bits - event->begin_bits);
	details_put_time(&s->lines.out, event->ns, event->cycles);
	ky_strbuf_addc(&s->lines.out, '\n');
	for (int scope = KY_SCOPE_PACKET_CONTEXT; scope < KY_SCOPE_COUNT && n >= 0; scope++) {
		n = ky_values_decode(&s->values, event, (enum ky_scope)scope, err);
		if (n > 0)
			details_put_value(&s->lines.out, s->values.list.data, names[scope], 1,
					  ky_buffer_scope(s->values.list.data));
	}
	return n < 0 ? n : KYMO_OK;
}

static void put_loss(struct details_sink *s, const struct ky_loss *loss)
{
	ky_strbuf_adds(&s->lines.out, "lost in ");
	ky_foreign_adds(&s->lines.out, loss->stream->name);
	ky_strbuf_addf(&s->lines.out,
		       ": %" PRIu64 " events discarded, %" PRIu64 " packets missing\n",
		       loss->events, loss->packets);
}

static int details_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct details_sink *s = (struct details_sink *)sink;
	int ret = KYMO_OK;

	if (batch->loss)
		put_loss(s, batch->loss);
	for (size_t i = 0; i < batch->n_events && ret == KYMO_OK; i++) {
		ret = details_put_event(s, &batch->events[i], batch->stream, err);
		/* Of a damaged event, what could be read is shown. */
		ret = ky_lines_put(&s->lines, s->lines.out.len, ret, batch->stream, err);
	}
	return ret;
}

static void details_free(struct ky_sink *sink)
{
	struct details_sink *s = (struct details_sink *)sink;

	ky_strbuf_fini(&s->lines.out);
	ky_values_fini(&s->values);
	free(s);
}

static const struct ky_sink_ops details_ops = {
	.batch = details_batch,
	.flush = ky_lines_flush,
	.finish = ky_lines_flush,
	.free = details_free,
};

struct ky_sink *ky_details_sink_new(const struct ky_trace_set *set, int fd)
{
	struct details_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lines.sink.ops = &details_ops;
	s->lines.fd = fd;
	s->lines.what = "the details";
	ky_values_init(&s->values);
	ky_vec_foreach(&set->traces, trace) {
		ky_details_trace(&s->lines.out, *trace);
		ky_vec_foreach(&(*trace)->streams, stream) {
			if (details_put_stream(&s->lines.out, *stream) < 0)
				s->lines.out.failed = true;
		}
	}
	return &s->lines.sink;
}
