/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: definitions. Those that fail leave their error with the writer. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/writer.h"
#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"

/* ---- mistakes ----------------------------------------------------------------------------- */

void ky_define_mistake(struct kymo_writer *writer, int code, const char *fmt, ...)
{
	char text[sizeof(writer->first.message)];
	va_list args;

	if (writer->code != KYMO_OK)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	writer->code = ky_error_set(&writer->first, code, "%s", text);
}

void ky_define_no_memory(struct kymo_writer *writer)
{
	if (writer->code == KYMO_OK)
		writer->code = ky_error_nomem(&writer->first);
}

bool ky_define_is_closed(struct kymo_writer *writer, const char *what)
{
	if (writer->tried)
		ky_define_mistake(writer, KYMO_E_INVALID,
				  "%s: definitions come before kymo_writer_open()", what);
	return writer->tried;
}

static bool define_is_name(const char *name)
{
	if (!name || !*name || isdigit((unsigned char)*name))
		return false;
	for (; *name; name++) {
		if (*name != '_' && (*name & 0x80 || !isalnum((unsigned char)*name)))
			return false;
	}
	return true;
}

bool ky_define_name(struct kymo_writer *writer, const char *what, const char *name)
{
	if (!define_is_name(name))
		ky_define_mistake(writer, KYMO_E_INVALID,
				  "'%s' cannot be the name of a %s: letters, digits and '_' only",
				  name ? name : "NULL", what);
	return define_is_name(name);
}

void *ky_define_allocate(struct kymo_writer *writer, size_t size)
{
	void *p = ky_arena_alloc(&writer->trace->arena, size);

	if (!p)
		ky_define_no_memory(writer);
	return p;
}

/* ---- environment, clocks, streams, events --------------------------------------------------- */

void kymo_writer_env_text(struct kymo_writer *writer, const char *name, const char *text)
{
	if (!writer || ky_define_is_closed(writer, "environment") ||
	    !ky_define_name(writer, "environment entry", name))
		return;
	if (!text)
		ky_define_mistake(writer, KYMO_E_INVALID, "environment entry '%s' is NULL", name);
	else if (ky_env_add_text(writer->trace, name, text) < 0)
		ky_define_no_memory(writer);
}

void kymo_writer_env_number(struct kymo_writer *writer, const char *name, int64_t number)
{
	if (!writer || ky_define_is_closed(writer, "environment") ||
	    !ky_define_name(writer, "environment entry", name))
		return;
	if (ky_env_add_number(writer->trace, name, number) < 0)
		ky_define_no_memory(writer);
}

static int fill_clock(struct kymo_writer *writer, struct ky_clock_class *cls,
		      const struct kymo_clock_options *options)
{
	cls->frequency_hz = options->frequency_hz;
	cls->offset_s = options->offset_s;
	cls->offset_cycles = options->offset_cycles;
	cls->precision_cycles = options->precision_cycles;
	cls->is_unix_epoch = options->is_unix_epoch;
	cls->has_uuid = options->uuid;
	if (options->uuid)
		memcpy(cls->uuid, options->uuid, sizeof(cls->uuid));
	if (!options->description)
		return KYMO_OK;
	cls->description = ky_arena_strdup(&writer->trace->arena, options->description);
	return cls->description ? KYMO_OK : KYMO_E_MEMORY;
}

static bool may_name_clock(struct kymo_writer *writer, const char *name)
{
	if (!ky_define_name(writer, "clock", name))
		return false;
	ky_vec_foreach(&writer->trace->clocks, clock) {
		if (strcmp((*clock)->name, name) != 0)
			continue;
		ky_define_mistake(writer, KYMO_E_INVALID, "there are two clocks named '%s'", name);
		return false;
	}
	return true;
}

struct kymo_clock_def *kymo_writer_add_clock(struct kymo_writer *writer,
					     const struct kymo_clock_options *given)
{
	struct kymo_clock_options options = kymo_clock_options_init();
	struct kymo_clock_def *clock;
	struct kymo_error err;
	int ret = KYMO_OK;

	if (!writer || ky_define_is_closed(writer, "clock"))
		return NULL;
	if (given)
		ret = ky_api_options(&options, sizeof(options), sizeof(options), given, &err);
	if (ret < 0) {
		ky_define_mistake(writer, KYMO_E_INVALID, "clock: %s", err.message);
		return NULL;
	}
	if (!may_name_clock(writer, options.name))
		return NULL;
	clock = ky_define_allocate(writer, sizeof(*clock));
	if (!clock)
		return NULL;
	clock->writer = writer;
	clock->cls = ky_clock_class_new(writer->trace, options.name);
	if (!clock->cls || fill_clock(writer, clock->cls, &options) < 0) {
		ky_define_no_memory(writer);
		return NULL;
	}
	if (ky_clock_finish(clock->cls, &err) < 0) {
		ky_define_mistake(writer, KYMO_E_INVALID, "%s", err.message);
		return NULL;
	}
	if (clock->cls->origin_wraps) {
		ky_define_mistake(writer, KYMO_E_INVALID,
				  "clock \"%s\": its origin is out of the range of 64-bit "
				  "nanoseconds",
				  options.name);
		return NULL;
	}
	return clock;
}

struct kymo_stream_def *kymo_writer_add_stream(struct kymo_writer *writer,
					       struct kymo_clock_def *clock)
{
	struct kymo_stream_def *stream;

	if (!writer || ky_define_is_closed(writer, "stream"))
		return NULL;
	if (!clock || clock->writer != writer) {
		ky_define_mistake(writer, KYMO_E_INVALID, "a stream wants a clock of its writer");
		return NULL;
	}
	stream = ky_define_allocate(writer, sizeof(*stream));
	if (!stream)
		return NULL;
	stream->writer = writer;
	stream->clock = clock->cls;
	stream->cls =
		ky_lttng_layout_stream(writer->trace, writer->trace->streams.len, clock->cls, true);
	if (stream->cls && ky_vec_push(&writer->streams, stream) == KYMO_OK)
		return stream;
	ky_define_no_memory(writer);
	return NULL;
}

struct kymo_event_def *kymo_stream_def_add_event(struct kymo_stream_def *stream, const char *name)
{
	struct kymo_writer *writer = stream ? stream->writer : NULL;
	struct kymo_event_def *event;

	if (!writer || ky_define_is_closed(writer, "event"))
		return NULL;
	if (!name) {
		ky_define_mistake(writer, KYMO_E_INVALID, "the name of an event is NULL");
		return NULL;
	}
	event = ky_define_allocate(writer, sizeof(*event));
	if (!event)
		return NULL;
	event->stream = stream;
	event->cls = ky_event_class_new(stream->cls, stream->cls->events.len, name);
	if (event->cls && ky_vec_push(&writer->events, event) == KYMO_OK)
		return event;
	ky_define_no_memory(writer);
	return NULL;
}

void kymo_event_def_set_loglevel(struct kymo_event_def *event, int64_t loglevel)
{
	if (!event || ky_define_is_closed(event->stream->writer, "log level"))
		return;
	event->cls->has_loglevel = true;
	event->cls->loglevel = loglevel;
}

/* ---- structures ---------------------------------------------------------------------------- */

struct kymo_fields *ky_define_fields(struct kymo_writer *writer, struct ky_field_class *cls,
				     const char *name, unsigned int depth)
{
	struct kymo_fields *fields;

	if (!cls) {
		ky_define_no_memory(writer);
		return NULL;
	}
	fields = ky_define_allocate(writer, sizeof(*fields));
	if (!fields)
		return NULL;
	fields->writer = writer;
	fields->cls = cls;
	fields->depth = depth;
	fields->name = name;
	return fields;
}

/* The structure at the root of a scope; made when it is asked for first. */
static struct kymo_fields *root(struct kymo_writer *writer, struct kymo_fields **fields,
				struct ky_field_class **cls)
{
	if (*fields || ky_define_is_closed(writer, "fields"))
		return *fields;
	*cls = ky_struct_new(writer->trace);
	*fields = ky_define_fields(writer, *cls, "fields", 0);
	return *fields;
}

struct kymo_fields *kymo_event_def_fields(struct kymo_event_def *event)
{
	return event ? root(event->stream->writer, &event->fields, &event->cls->payload) : NULL;
}

struct kymo_fields *kymo_event_def_context(struct kymo_event_def *event)
{
	return event ? root(event->stream->writer, &event->context, &event->cls->context) : NULL;
}

struct kymo_fields *kymo_stream_def_context(struct kymo_stream_def *stream)
{
	return stream ? root(stream->writer, &stream->context, &stream->cls->event_context) : NULL;
}
