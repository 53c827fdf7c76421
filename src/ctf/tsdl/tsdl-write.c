/* SPDX-License-Identifier: MIT */
#include "ctf/tsdl/tsdl.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ctf/resolve/resolve.h"
#include "ctf/tsdl/tsdl-lex.h"
#include "ctf/tsdl/tsdl-write.h"

/* ---- words ------------------------------------------------------------------------------- */

static void tsdl_write_put_escaped(struct ky_strbuf *out, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		switch (*c) {
		case '\n':
			ky_strbuf_adds(out, "\\n");
			break;
		case '\t':
			ky_strbuf_adds(out, "\\t");
			break;
		case '"':
		case '\\':
			ky_strbuf_addc(out, '\\');
			ky_strbuf_addc(out, (char)*c);
			break;
		default:
			/* Octal, always three digits: a digit that follows is not taken for it. */
			if (*c < 0x20 || *c == 0x7f)
				ky_strbuf_addf(out, "\\%03o", *c);
			else
				ky_strbuf_addc(out, (char)*c);
		}
	}
}

void ky_tsdl_put_text(struct ky_strbuf *out, const char *text)
{
	ky_strbuf_addc(out, '"');
	tsdl_write_put_escaped(out, text);
	ky_strbuf_addc(out, '"');
}

static void tsdl_write_put_uuid(struct ky_strbuf *out, const uint8_t uuid[16])
{
	char text[KY_UUID_TEXT_BYTES];

	ky_strbuf_addf(out, "\"%s\"", ky_format_uuid(text, uuid));
}

/* ---- blocks ------------------------------------------------------------------------------ */

static const char common_aliases[] =
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := unsigned long;\n"
	"typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
	"typealias integer { size = 27; align = 1; signed = false; } := uint27_t;\n\n";

static int tsdl_write_put_trace(struct ky_tsdl_writer *w)
{
	const struct ky_trace_class *trace = w->trace;
	struct ky_strbuf *out = w->out;

	ky_strbuf_adds(out, "trace {\n\tmajor = 1;\n\tminor = 8;\n");
	if (trace->has_uuid) {
		ky_strbuf_adds(out, "\tuuid = ");
		tsdl_write_put_uuid(out, trace->uuid);
		ky_strbuf_adds(out, ";\n");
	}
	ky_strbuf_addf(out, "\tbyte_order = %s;\n", trace->big_endian ? "be" : "le");
	if (trace->packet_header) {
		int ret = ky_tsdl_put_scope(w, KY_SCOPE_PACKET_HEADER, trace->packet_header,
					    "packet.header");

		if (ret < 0)
			return ret;
	}
	ky_strbuf_adds(out, "};\n\n");
	return KYMO_OK;
}

static int tsdl_write_put_env(struct ky_tsdl_writer *w)
{
	const struct ky_trace_class *trace = w->trace;

	if (!trace->env.len)
		return KYMO_OK;
	ky_strbuf_adds(w->out, "env {\n");
	for (size_t i = 0; i < trace->env.len; i++) {
		const struct ky_env *env = &trace->env.data[i];

		if (!ky_tsdl_is_name(env->name))
			return ky_error_set(w->err, KYMO_E_UNSUPPORTED,
					    "\"%s\" cannot be the name of an environment entry",
					    env->name);
		ky_strbuf_addf(w->out, "\t%s = ", env->name);
		if (env->is_text)
			ky_tsdl_put_text(w->out, env->text);
		else
			ky_strbuf_addi(w->out, env->number);
		ky_strbuf_adds(w->out, ";\n");
	}
	ky_strbuf_adds(w->out, "};\n\n");
	return KYMO_OK;
}

static void put_clock_aliases(struct ky_strbuf *out, const char *name)
{
	static const int sizes[] = {27, 32, 64};

	for (size_t i = 0; i < 3; i++)
		ky_strbuf_addf(out,
			       "typealias integer {\n\tsize = %d; align = %d; signed = false;\n"
			       "\tmap = clock.%s.value;\n} := uint%d_clock_%s_t;\n\n",
			       sizes[i], sizes[i] % 8 ? 1 : 8, name, sizes[i], name);
}

void ky_tsdl_put_clock_values(struct ky_strbuf *out, const struct ky_clock_class *clock)
{
	ky_strbuf_addf(out, "\tfreq = %" PRIu64 ";\n", clock->frequency_hz);
	if (clock->precision_cycles)
		ky_strbuf_addf(out, "\tprecision = %" PRIu64 ";\n", clock->precision_cycles);
	if (clock->offset_s)
		ky_strbuf_addf(out, "\toffset_s = %" PRId64 ";\n", clock->offset_s);
	ky_strbuf_addf(out, "\toffset = %" PRId64 ";\n", clock->offset_cycles);
}

static int tsdl_write_put_clock(struct ky_tsdl_writer *w, const struct ky_clock_class *clock)
{
	struct ky_strbuf *out = w->out;

	if (!ky_tsdl_is_name(clock->name))
		return ky_error_set(w->err, KYMO_E_UNSUPPORTED, "\"%s\" cannot name a clock",
				    clock->name);
	ky_strbuf_addf(out, "clock {\n\tname = \"%s\";\n", clock->name);
	if (clock->has_uuid) {
		ky_strbuf_adds(out, "\tuuid = ");
		tsdl_write_put_uuid(out, clock->uuid);
		ky_strbuf_adds(out, ";\n");
	}
	if (clock->description) {
		ky_strbuf_adds(out, "\tdescription = ");
		ky_tsdl_put_text(out, clock->description);
		ky_strbuf_adds(out, ";\n");
	}
	ky_tsdl_put_clock_values(out, clock);
	if (clock->is_unix_epoch && !ky_clock_is_lttng_monotonic(w->trace, clock))
		ky_strbuf_adds(out, "\tabsolute = TRUE;\n");
	ky_strbuf_adds(out, "};\n\n");
	put_clock_aliases(out, clock->name);
	return KYMO_OK;
}

/*
 * Ids of streams are for packet headers that tell them; without, packets are of but one stream, and
 * babeltrace2 refuses metadata that gives it an id. Where there are more, ids tell them apart.
 */
static bool tells_stream(const struct ky_trace_class *trace)
{
	const struct ky_field_class *header = trace->packet_header;

	for (size_t i = 0; header && i < header->st.n_members; i++)
		if (ky_has_role(header->st.members[i].cls, KY_ROLE_STREAM_CLASS_ID))
			return true;
	return trace->streams.len > 1;
}

static int tsdl_write_put_stream(struct ky_tsdl_writer *w, const struct ky_stream_class *stream)
{
	const struct {
		enum ky_scope scope;
		const struct ky_field_class *root;
		const char *name;
	} scopes[] = {
		{KY_SCOPE_EVENT_HEADER, stream->event_header, "event.header"},
		{KY_SCOPE_PACKET_CONTEXT, stream->packet_context, "packet.context"},
		{KY_SCOPE_STREAM_CONTEXT, stream->event_context, "event.context"},
	};
	bool has_id = stream->has_id && tells_stream(w->trace);
	int ret;

	ret = ky_tsdl_name_scope(w, KY_SCOPE_PACKET_CONTEXT, stream->packet_context);
	if (ret == KYMO_OK)
		ret = ky_tsdl_name_scope(w, KY_SCOPE_EVENT_HEADER, stream->event_header);
	if (ret < 0)
		return ret;
	if (!has_id && !stream->event_header && !stream->packet_context && !stream->event_context &&
	    stream->events.len)
		return KYMO_OK; /* events without a stream block imply this one */
	ky_strbuf_adds(w->out, "stream {\n");
	if (has_id)
		ky_strbuf_addf(w->out, "\tid = %" PRIu64 ";\n", stream->id);
	for (int i = 0; i < 3; i++) {
		if (!scopes[i].root)
			continue;
		ret = ky_tsdl_put_scope(w, scopes[i].scope, scopes[i].root, scopes[i].name);
		if (ret < 0)
			return ret;
	}
	ky_strbuf_adds(w->out, "};\n\n");
	return KYMO_OK;
}

static int tsdl_write_put_event(struct ky_tsdl_writer *w, const struct ky_event_class *event)
{
	struct ky_strbuf *out = w->out;
	int ret;

	ky_strbuf_adds(out, "event {\n\tname = ");
	ky_tsdl_put_text(out, event->name);
	ky_strbuf_addf(out, ";\n\tid = %" PRIu64 ";\n", event->id);
	if (event->stream->has_id && tells_stream(w->trace))
		ky_strbuf_addf(out, "\tstream_id = %" PRIu64 ";\n", event->stream->id);
	if (event->has_loglevel)
		ky_strbuf_addf(out, "\tloglevel = %" PRId64 ";\n", event->loglevel);
	if (event->emf_uri) {
		ky_strbuf_adds(out, "\tmodel.emf.uri = ");
		ky_tsdl_put_text(out, event->emf_uri);
		ky_strbuf_adds(out, ";\n");
	}
	if (event->context) {
		ret = ky_tsdl_put_scope(w, KY_SCOPE_EVENT_CONTEXT, event->context, "context");
		if (ret < 0)
			return ret;
	}
	if (event->payload) {
		ret = ky_tsdl_put_scope(w, KY_SCOPE_PAYLOAD, event->payload, "fields");
		if (ret < 0)
			return ret;
	}
	ky_strbuf_adds(out, "};\n\n");
	return KYMO_OK;
}

static int tsdl_write_put_streams(struct ky_tsdl_writer *w)
{
	const struct ky_trace_class *trace = w->trace;
	int ret = KYMO_OK;

	for (size_t i = 0; i < trace->streams.len && ret == KYMO_OK; i++) {
		w->stream = trace->streams.data[i];
		ret = tsdl_write_put_stream(w, w->stream);
	}
	for (size_t i = 0; i < trace->events.len && ret == KYMO_OK; i++) {
		w->event = trace->events.data[i];
		w->stream = w->event->stream;
		ret = tsdl_write_put_event(w, w->event);
	}
	return ret;
}

int ky_tsdl_write(const struct ky_trace_class *trace, char **text, size_t *len_bytes,
		  struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_tsdl_writer w = {.trace = trace, .out = &out, .err = err};
	int ret;

	ky_strbuf_adds(&out, "/* CTF 1.8 */\n\n");
	ky_strbuf_adds(&out, common_aliases);
	ret = tsdl_write_put_trace(&w);
	if (ret == KYMO_OK)
		ret = tsdl_write_put_env(&w);
	for (size_t i = 0; i < trace->clocks.len && ret == KYMO_OK; i++)
		ret = tsdl_write_put_clock(&w, trace->clocks.data[i]);
	if (ret == KYMO_OK)
		ret = tsdl_write_put_streams(&w);
	ky_tsdl_writer_fini(&w);
	if (ret == KYMO_E_MEMORY || (ret == KYMO_OK && ky_strbuf_failed(&out)))
		ret = ky_error_nomem(err);
	if (ret < 0) {
		ky_strbuf_fini(&out);
		return ret;
	}
	*len_bytes = out.len;
	*text = ky_strbuf_take(&out);
	return KYMO_OK;
}
