/* SPDX-License-Identifier: MIT */
/* The text sink: names, colours, and what stands before an event's fields. */
#include "flow/sinks/text-internal.h"

#include <stdio.h>

#include "base/foreign.h"

#define BOLD "\033[1m"

/* Colours by bold are what most terminals show as bright ones. */
static const char *const colours[TEXT_N_COLOURS] = {
	[TEXT_COLOUR_NONE] = "\033[0m",
	[TEXT_COLOUR_NAME] = BOLD,
	[TEXT_COLOUR_FIELD_NAME] = "\033[36m",
	[TEXT_COLOUR_VALUE] = BOLD,
	[TEXT_COLOUR_UNKNOWN] = BOLD BOLD "\033[31m",
	[TEXT_COLOUR_EVENT] = BOLD BOLD "\033[35m",
	[TEXT_COLOUR_STAMP] = BOLD BOLD "\033[33m",
};

static const char *const bright_colours[TEXT_N_COLOURS] = {
	[TEXT_COLOUR_NONE] = "\033[0m",		 [TEXT_COLOUR_NAME] = BOLD,
	[TEXT_COLOUR_FIELD_NAME] = "\033[36m",	 [TEXT_COLOUR_VALUE] = BOLD,
	[TEXT_COLOUR_UNKNOWN] = BOLD "\033[91m", [TEXT_COLOUR_EVENT] = BOLD "\033[95m",
	[TEXT_COLOUR_STAMP] = BOLD "\033[93m",
};

static void set_marks(struct text_style *style)
{
	const char *name = ky_text_code(style, TEXT_COLOUR_NAME);
	const char *stamp = ky_text_code(style, TEXT_COLOUR_STAMP);
	const char *end = ky_text_code(style, TEXT_COLOUR_NONE);
	bool names = style->names & KY_TEXT_NAME_HEADER;

	if (names)
		snprintf(style->before_stamp, TEXT_MARK_BYTES, "%stimestamp%s = %s", name, end,
			 stamp);
	else
		snprintf(style->before_stamp, TEXT_MARK_BYTES, "[%s", stamp);
	snprintf(style->after_stamp, TEXT_MARK_BYTES, "%s%s", end, names ? ", " : "] ");
	if (names)
		snprintf(style->before_delta, TEXT_MARK_BYTES, "%sdelta%s = ", name, end);
	else
		snprintf(style->before_delta, TEXT_MARK_BYTES, "(");
	snprintf(style->after_delta, TEXT_MARK_BYTES, "%s", names ? ", " : ") ");
}

void ky_text_style_init(struct text_style *style, const struct ky_text_options *options)
{
	style->names =
		options->names & KY_TEXT_NAMES_CHOSEN ? options->names : KY_TEXT_NAMES_DEFAULT;
	style->fields =
		options->fields & KY_TEXT_FIELDS_CHOSEN ? options->fields : KY_TEXT_FIELDS_DEFAULT;
	style->decode = options->decode;
	style->has_addresses = options->addresses != NULL;
	style->codes = NULL;
	if (options->colours == KY_TEXT_COLOURS)
		style->codes = colours;
	else if (options->colours == KY_TEXT_COLOURS_BRIGHT)
		style->codes = bright_colours;
	set_marks(style);
}

bool ky_text_names_fields(const struct text_style *style, enum ky_scope scope)
{
	return style->names &
	       (scope == KY_SCOPE_PAYLOAD ? KY_TEXT_NAME_PAYLOAD : KY_TEXT_NAME_CONTEXT);
}

void ky_text_add_name(struct ky_strbuf *out, const struct text_style *style,
		      enum text_colour colour, const char *name)
{
	ky_strbuf_adds(out, ky_text_code(style, colour));
	ky_foreign_adds(out, name);
	ky_strbuf_adds(out, ky_text_code(style, TEXT_COLOUR_NONE));
	ky_strbuf_adds(out, " = ");
}

void ky_text_add_scope_name(struct ky_strbuf *out, const struct text_style *style,
			    enum ky_scope scope)
{
	static const char *const names[] = {
		[KY_SCOPE_PACKET_CONTEXT] = "stream.packet.context",
		[KY_SCOPE_STREAM_CONTEXT] = "stream.event.context",
		[KY_SCOPE_EVENT_CONTEXT] = "event.context",
		[KY_SCOPE_PAYLOAD] = "event.fields",
	};

	if (style->names & KY_TEXT_NAME_SCOPE)
		ky_text_add_name(out, style, TEXT_COLOUR_NAME, names[scope]);
}

/* ---- the head of a line ------------------------------------------------------------------ */

/* What stands between an event's time and its first scope, piece by piece. */
struct head {
	struct ky_strbuf *out;
	const struct text_style *style;
	bool names;
	bool timed; /* there is a time before it */
	bool any;   /* something is there already */
	bool colon; /* ... that a colon parts from what follows */
};

/*
 * What precedes a piece called @name. These are babeltrace2's rules: without a time it parts the
 * named ones by nothing; and without names, the trace by nothing.
 */
static void begin_piece(struct head *h, const char *name)
{
	if (h->names) {
		if (h->any && h->timed)
			ky_strbuf_adds(h->out, ", ");
		ky_text_add_name(h->out, h->style, TEXT_COLOUR_NAME, name);
	} else if (h->colon) {
		ky_strbuf_addc(h->out, ':');
	}
	h->any = true;
}

/* CTF 1.8 has no names of traces: the host's, and where it lies (@place). */
static void text_style_add_trace(struct head *h, const struct ky_trace_class *trace,
				 const char *place)
{
	const struct ky_env *host;

	if (!(h->style->fields & KY_TEXT_FIELD_TRACE))
		return;
	host = ky_env_find(trace, "hostname");
	begin_piece(h, "trace");
	if (trace->name) {
		ky_foreign_adds(h->out, trace->name);
	} else {
		if (host && host->is_text) {
			ky_foreign_adds(h->out, host->text);
			ky_strbuf_adds(h->out, place[0] ? "/" : "");
		}
		ky_foreign_adds(h->out, place);
	}
	if (h->names)
		ky_strbuf_adds(h->out, ", ");
}

static void add_env(struct head *h, const struct ky_trace_class *trace, unsigned int field,
		    const char *variable)
{
	const struct ky_env *env = h->style->fields & field ? ky_env_find(trace, variable) : NULL;
	bool brackets = field == KY_TEXT_FIELD_VPID;
	char name[32];

	if (!env)
		return;
	snprintf(name, sizeof(name), "trace:%s", variable);
	begin_piece(h, name);
	h->colon = true;
	if (!env->is_text) {
		ky_strbuf_addf(h->out, "(%lld)", (long long)env->number);
		return;
	}
	ky_strbuf_adds(h->out, brackets ? "(" : "");
	ky_foreign_adds(h->out, env->text);
	ky_strbuf_adds(h->out, brackets ? ")" : "");
}

/* The levels of LTTng; others are not shown. */
static void add_loglevel(struct head *h, const struct ky_event_class *cls)
{
	static const char *const levels[] = {
		"EMERG",	"ALERT",      "CRIT",		"ERR",		 "WARNING",
		"NOTICE",	"INFO",	      "DEBUG_SYSTEM",	"DEBUG_PROGRAM", "DEBUG_PROCESS",
		"DEBUG_MODULE", "DEBUG_UNIT", "DEBUG_FUNCTION", "DEBUG_LINE",	 "DEBUG",
	};

	if (!(h->style->fields & KY_TEXT_FIELD_LOGLEVEL) || !cls->has_loglevel ||
	    cls->loglevel < 0 || cls->loglevel >= (int64_t)(sizeof(levels) / sizeof(levels[0])))
		return;
	begin_piece(h, "loglevel");
	h->colon = true;
	ky_strbuf_addf(h->out, "TRACE_%s (%d)", levels[cls->loglevel], (int)cls->loglevel);
}

static void add_emf(struct head *h, const struct ky_event_class *cls)
{
	if (!(h->style->fields & KY_TEXT_FIELD_EMF) || !cls->emf_uri || !cls->emf_uri[0])
		return;
	begin_piece(h, "model.emf.uri");
	h->colon = true;
	ky_foreign_adds(h->out, cls->emf_uri);
}

static void add_event_name(struct head *h, const struct ky_event_class *cls)
{
	bool known = cls->name[0];

	if (!h->names && h->colon)
		ky_strbuf_addc(h->out, ' ');
	h->colon = false;
	if (h->names)
		begin_piece(h, "name");
	ky_strbuf_adds(h->out,
		       ky_text_code(h->style, known ? TEXT_COLOUR_EVENT : TEXT_COLOUR_UNKNOWN));
	ky_foreign_adds(h->out, known ? cls->name : "<unknown>");
	ky_strbuf_adds(h->out, ky_text_code(h->style, TEXT_COLOUR_NONE));
	ky_strbuf_adds(h->out, h->names ? ", " : ": ");
}

void ky_text_add_head(struct ky_strbuf *out, const struct text_style *style,
		      const struct ky_event_class *cls, const char *trace_name)
{
	const struct ky_trace_class *trace = cls->stream->trace;
	struct head h = {
		.out = out,
		.style = style,
		.names = style->names & KY_TEXT_NAME_HEADER,
		.timed = cls->stream->clock != NULL,
	};

	text_style_add_trace(&h, trace, trace_name);
	add_env(&h, trace, KY_TEXT_FIELD_HOSTNAME, "hostname");
	add_env(&h, trace, KY_TEXT_FIELD_DOMAIN, "domain");
	add_env(&h, trace, KY_TEXT_FIELD_PROCNAME, "procname");
	add_env(&h, trace, KY_TEXT_FIELD_VPID, "vpid");
	add_loglevel(&h, cls);
	add_emf(&h, cls);
	add_event_name(&h, cls);
}
