/* SPDX-License-Identifier: MIT */
/*
 * Trace model -> CTF 2 metadata. The bytes of data streams stay what they are: a trace that was
 * CTF 1.8 is described so that its packets read the same.
 *
 * Differences that matter: CTF 2 shows names as they are, so the leading '_' of CTF 1.8 goes
 * unless that makes two members equal; a UUID is a BLOB; a label stands once with all its ranges.
 */
#include <stdio.h>
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ctf/ctf2/attributes.h"
#include "ctf/ctf2/ctf2-write.h"
#include "ctf/ctf2/ctf2-writer.h"
#include "ctf/json/json.h"
#include "ctf/model/unicode.h"
#include "ctf/model/walk.h"

/* ---- JSON --------------------------------------------------------------------------------- */

/* Beyond that, text would grow with the square of its depth. */
#define INDENT_MAX 100

void ky_ctf2_put_line(struct ky_ctf2_writer *w)
{
	ky_strbuf_addc(&w->out, '\n');
	for (int i = 0; i < w->indent && i < INDENT_MAX; i++)
		ky_strbuf_adds(&w->out, "  ");
}

/* Texts of CTF 1.8 may be no UTF-8, which JSON must be. */
void ky_ctf2_put_string(struct ky_ctf2_writer *w, const char *text)
{
	struct ky_strbuf whole = KY_STRBUF_INIT;

	ky_utf8_repair(&whole, text);
	if (ky_strbuf_failed(&whole))
		w->out.failed = true;
	else
		ky_json_put_text(&w->out, ky_strbuf_text(&whole), whole.len);
	ky_strbuf_fini(&whole);
}

void ky_ctf2_open_with(struct ky_ctf2_writer *w, char bracket)
{
	ky_strbuf_addc(&w->out, bracket);
	w->indent++;
}

void ky_ctf2_close_with(struct ky_ctf2_writer *w, char bracket)
{
	w->indent--;
	ky_ctf2_put_line(w);
	ky_strbuf_addc(&w->out, bracket);
}

/* Begin the property @key; the first of its object when the text ends with '{'. */
void ky_ctf2_put_key(struct ky_ctf2_writer *w, const char *name)
{
	if (w->out.len && w->out.data[w->out.len - 1] != '{')
		ky_strbuf_addc(&w->out, ',');
	ky_ctf2_put_line(w);
	ky_ctf2_put_string(w, name);
	ky_strbuf_adds(&w->out, ": ");
}

/* Begin an element of an array. */
void ky_ctf2_put_element(struct ky_ctf2_writer *w)
{
	if (w->out.len && w->out.data[w->out.len - 1] != '[')
		ky_strbuf_addc(&w->out, ',');
	ky_ctf2_put_line(w);
}

void ky_ctf2_put_text(struct ky_ctf2_writer *w, const char *name, const char *text)
{
	ky_ctf2_put_key(w, name);
	ky_ctf2_put_string(w, text);
}

void ky_ctf2_put_uint(struct ky_ctf2_writer *w, const char *name, uint64_t value)
{
	ky_ctf2_put_key(w, name);
	ky_strbuf_addu(&w->out, value);
}

void ky_ctf2_put_attributes(struct ky_ctf2_writer *w, const char *attributes)
{
	if (!attributes)
		return;
	ky_ctf2_put_key(w, "attributes");
	ky_strbuf_adds(&w->out, attributes);
}

/* ---- fragments ----------------------------------------------------------------------------------- */

static void begin_fragment(struct ky_ctf2_writer *w, const char *type)
{
	ky_strbuf_addc(&w->out, 0x1e);
	ky_ctf2_open_with(w, '{');
	ky_ctf2_put_text(w, "type", type);
}

static void end_fragment(struct ky_ctf2_writer *w)
{
	ky_ctf2_close_with(w, '}');
	ky_strbuf_addc(&w->out, '\n');
}

static void write_uuid(struct ky_ctf2_writer *w)
{
	ky_ctf2_put_key(w, "uuid");
	for (int i = 0; i < 16; i++)
		ky_strbuf_addf(&w->out, "%s%u", i ? ", " : "[", w->trace->uuid[i]);
	ky_strbuf_addc(&w->out, ']');
}

static void write_preamble(struct ky_ctf2_writer *w)
{
	begin_fragment(w, "preamble");
	ky_ctf2_put_uint(w, "version", 2);
	if (w->trace->has_uuid)
		write_uuid(w);
	ky_ctf2_put_attributes(w, w->trace->preamble_attributes);
	end_fragment(w);
}

static int write_trace_class(struct ky_ctf2_writer *w)
{
	int ret;

	begin_fragment(w, "trace-class");
	if (w->trace->name)
		ky_ctf2_put_text(w, "name", w->trace->name);
	ky_ctf2_put_attributes(w, w->trace->attributes);
	if (w->trace->env.len) {
		ky_ctf2_put_key(w, "environment");
		ky_ctf2_open_with(w, '{');
		ky_vec_foreach(&w->trace->env, env) {
			ky_ctf2_put_key(w, env->name);
			if (env->is_text)
				ky_ctf2_put_string(w, env->text);
			else
				ky_strbuf_addi(&w->out, env->number);
		}
		ky_ctf2_close_with(w, '}');
	}
	ret = ky_ctf2_put_scope(w, "packet-header-field-class", w->trace->packet_header);
	end_fragment(w);
	return ret;
}

void ky_ctf2_offset(const struct ky_clock_class *clock, int64_t *seconds, uint64_t *cycles)
{
	__int128 all = (__int128)clock->offset_s * clock->frequency_hz + clock->offset_cycles;
	__int128 whole = all / clock->frequency_hz, rest = all % clock->frequency_hz;

	if (rest < 0) {
		whole--;
		rest += clock->frequency_hz;
	}
	*seconds = (int64_t)whole;
	*cycles = (uint64_t)rest;
}

static void put_offset(struct ky_ctf2_writer *w, const struct ky_clock_class *clock)
{
	uint64_t cycles;
	int64_t seconds;

	ky_ctf2_offset(clock, &seconds, &cycles);
	ky_ctf2_put_key(w, "offset-from-origin");
	ky_ctf2_open_with(w, '{');
	ky_ctf2_put_key(w, "seconds");
	ky_strbuf_addi(&w->out, seconds);
	ky_ctf2_put_uint(w, "cycles", cycles);
	ky_ctf2_close_with(w, '}');
}

static void put_identity(struct ky_ctf2_writer *w, const struct ky_identity *identity)
{
	if (identity->space)
		ky_ctf2_put_text(w, "namespace", identity->space);
	if (identity->name)
		ky_ctf2_put_text(w, "name", identity->name);
	if (identity->uid)
		ky_ctf2_put_text(w, "uid", identity->uid);
}

/* The UUID of a clock of CTF 1.8 is what tells it from others of its name. */
static void put_self(struct ky_ctf2_writer *w, const struct ky_clock_class *clock)
{
	char uid[KY_UUID_TEXT_BYTES];
	struct ky_identity self = clock->self;

	if (clock->has_uuid && !self.uid) {
		self.uid = ky_format_uuid(uid, clock->uuid);
		if (!self.name)
			self.name = clock->name;
	}
	put_identity(w, &self);
}

static void put_origin(struct ky_ctf2_writer *w, const struct ky_clock_class *clock)
{
	if (clock->is_unix_epoch) {
		ky_ctf2_put_text(w, "origin", "unix-epoch");
	} else if (clock->origin.uid) {
		ky_ctf2_put_key(w, "origin");
		ky_ctf2_open_with(w, '{');
		put_identity(w, &clock->origin);
		ky_ctf2_close_with(w, '}');
	}
}

static void write_clock(struct ky_ctf2_writer *w, const struct ky_clock_class *clock)
{
	begin_fragment(w, "clock-class");
	ky_ctf2_put_text(w, "id", clock->name);
	put_self(w, clock);
	ky_ctf2_put_uint(w, "frequency", clock->frequency_hz);
	put_origin(w, clock);
	put_offset(w, clock);
	if (clock->precision_cycles)
		ky_ctf2_put_uint(w, "precision", clock->precision_cycles);
	if (clock->has_accuracy)
		ky_ctf2_put_uint(w, "accuracy", clock->accuracy_cycles);
	if (clock->description)
		ky_ctf2_put_text(w, "description", clock->description);
	ky_ctf2_put_attributes(w, clock->attributes);
	end_fragment(w);
}

static int write_stream(struct ky_ctf2_writer *w, const struct ky_stream_class *stream)
{
	int ret;

	w->stream = stream;
	begin_fragment(w, "data-stream-class");
	ky_ctf2_put_uint(w, "id", ky_stream_class_id_told(stream));
	if (stream->name)
		ky_ctf2_put_text(w, "name", stream->name);
	if (stream->clock)
		ky_ctf2_put_text(w, "default-clock-class-id", stream->clock->name);
	ky_ctf2_put_attributes(w, stream->attributes);
	ret = ky_ctf2_put_scope(w, "packet-context-field-class", stream->packet_context);
	if (ret == KYMO_OK)
		ret = ky_ctf2_put_scope(w, "event-record-header-field-class", stream->event_header);
	if (ret == KYMO_OK)
		ret = ky_ctf2_put_scope(w, "event-record-common-context-field-class",
					stream->event_context);
	end_fragment(w);
	return ret;
}

static int ctf2_write_event(struct ky_ctf2_writer *w, const struct ky_event_class *event)
{
	int ret;

	w->event = event;
	begin_fragment(w, "event-record-class");
	ky_ctf2_put_uint(w, "id", ky_event_class_id_told(event));
	ky_ctf2_put_uint(w, "data-stream-class-id", ky_stream_class_id_told(event->stream));
	if (event->name[0])
		ky_ctf2_put_text(w, "name", event->name);
	if (event->has_loglevel || event->emf_uri || event->attributes) {
		ky_ctf2_put_key(w, "attributes");
		ky_attributes_of_event(&w->out, event);
	}
	ret = ky_ctf2_put_scope(w, "specific-context-field-class", event->context);
	if (ret == KYMO_OK)
		ret = ky_ctf2_put_scope(w, "payload-field-class", event->payload);
	end_fragment(w);
	return ret;
}

static int ctf2_write_all(struct ky_ctf2_writer *w)
{
	int ret;

	write_preamble(w);
	if (w->trace->aliases)
		ky_strbuf_adds(&w->out, w->trace->aliases);
	ret = write_trace_class(w);
	ky_vec_foreach(&w->trace->clocks, clock)
		write_clock(w, *clock);
	for (size_t i = 0; i < w->trace->streams.len && ret == KYMO_OK; i++) {
		const struct ky_stream_class *stream = w->trace->streams.data[i];

		ret = write_stream(w, stream);
		for (size_t j = 0; j < stream->events.len && ret == KYMO_OK; j++)
			ret = ctf2_write_event(w, stream->events.data[j]);
	}
	return ret;
}

int ky_ctf2_write(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
		  struct kymo_error *err)
{
	struct ky_ctf2_writer w = {.trace = trace, .err = err};
	int ret;

	*text = NULL;
	ky_child_tables_init(&w.tables);
	ret = ctf2_write_all(&w);
	ky_child_tables_fini(&w.tables);
	if (ret == KYMO_E_MEMORY || (ret == KYMO_OK && ky_strbuf_failed(&w.out)))
		ret = ky_error_nomem(err);
	if (ret < 0) {
		ky_strbuf_fini(&w.out);
		return ret;
	}
	*len_bytes = w.out.len;
	*text = ky_strbuf_take(&w.out);
	return *text ? KYMO_OK : ky_error_nomem(err);
}
