/* SPDX-License-Identifier: MIT */
/* kymo/writer.h: definitions. Those that fail leave their error with the writer. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/writer.h"
#include "base/error.h"
#include "ctf/lttng-layout.h"

/* ---- mistakes ----------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void mistake(struct kymo_writer *writer,
							  const char *fmt, ...)
{
	char text[sizeof(writer->first.message)];
	va_list args;

	if (writer->code != KYMO_OK)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	writer->code = ky_error_set(&writer->first, KYMO_E_INVALID, "%s", text);
}

static void no_memory(struct kymo_writer *writer)
{
	if (writer->code == KYMO_OK)
		writer->code = ky_error_nomem(&writer->first);
}

/* Definitions end with the opening. */
static bool is_closed(struct kymo_writer *writer, const char *what)
{
	if (writer->tried)
		mistake(writer, "%s: definitions come before kymo_writer_open()", what);
	return writer->tried;
}

static bool is_name(const char *name)
{
	if (!name || !*name || isdigit((unsigned char)*name))
		return false;
	for (; *name; name++) {
		if (*name != '_' && (*name & 0x80 || !isalnum((unsigned char)*name)))
			return false;
	}
	return true;
}

static bool check_name(struct kymo_writer *writer, const char *what, const char *name)
{
	if (!is_name(name))
		mistake(writer, "'%s' cannot be the name of a %s: letters, digits and '_' only",
			name ? name : "NULL", what);
	return is_name(name);
}

static void *allocate(struct kymo_writer *writer, size_t size)
{
	void *p = ky_arena_alloc(&writer->trace->arena, size);

	if (!p)
		no_memory(writer);
	return p;
}

/* ---- environment, clocks, streams, events --------------------------------------------------- */

void kymo_writer_env_text(struct kymo_writer *writer, const char *name, const char *text)
{
	if (!writer || is_closed(writer, "environment") ||
	    !check_name(writer, "environment entry", name))
		return;
	if (!text)
		mistake(writer, "environment entry '%s' is NULL", name);
	else if (ky_env_add_text(writer->trace, name, text) < 0)
		no_memory(writer);
}

void kymo_writer_env_number(struct kymo_writer *writer, const char *name, int64_t number)
{
	if (!writer || is_closed(writer, "environment") ||
	    !check_name(writer, "environment entry", name))
		return;
	if (ky_env_add_number(writer->trace, name, number) < 0)
		no_memory(writer);
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

struct kymo_clock_def *kymo_writer_add_clock(struct kymo_writer *writer,
					     const struct kymo_clock_options *given)
{
	struct kymo_clock_options options = KYMO_CLOCK_OPTIONS_INIT;
	struct kymo_clock_def *clock;
	struct kymo_error err;
	int ret = KYMO_OK;

	if (!writer || is_closed(writer, "clock"))
		return NULL;
	if (given)
		ret = ky_api_options(&options, sizeof(options), sizeof(options), given, &err);
	if (ret < 0) {
		mistake(writer, "clock: %s", err.message);
		return NULL;
	}
	if (!check_name(writer, "clock", options.name))
		return NULL;
	clock = allocate(writer, sizeof(*clock));
	if (!clock)
		return NULL;
	clock->writer = writer;
	clock->cls = ky_clock_class_new(writer->trace, options.name);
	if (!clock->cls || fill_clock(writer, clock->cls, &options) < 0) {
		no_memory(writer);
		return NULL;
	}
	if (ky_clock_finish(clock->cls, &err) < 0) {
		mistake(writer, "%s", err.message);
		return NULL;
	}
	return clock;
}

struct kymo_stream_def *kymo_writer_add_stream(struct kymo_writer *writer,
					       struct kymo_clock_def *clock)
{
	struct kymo_stream_def *stream;

	if (!writer || is_closed(writer, "stream"))
		return NULL;
	if (!clock || clock->writer != writer) {
		mistake(writer, "a stream wants a clock of its writer");
		return NULL;
	}
	stream = allocate(writer, sizeof(*stream));
	if (!stream)
		return NULL;
	stream->writer = writer;
	stream->clock = clock->cls;
	stream->cls =
		ky_lttng_layout_stream(writer->trace, writer->trace->streams.len, clock->cls, true);
	if (stream->cls && ky_vec_push(&writer->streams, stream) == KYMO_OK)
		return stream;
	no_memory(writer);
	return NULL;
}

struct kymo_event_def *kymo_stream_def_add_event(struct kymo_stream_def *stream, const char *name)
{
	struct kymo_writer *writer = stream ? stream->writer : NULL;
	struct kymo_event_def *event;

	if (!writer || is_closed(writer, "event"))
		return NULL;
	if (!name) {
		mistake(writer, "the name of an event is NULL");
		return NULL;
	}
	event = allocate(writer, sizeof(*event));
	if (!event)
		return NULL;
	event->stream = stream;
	event->cls = ky_event_class_new(stream->cls, stream->cls->events.len, name);
	if (event->cls && ky_vec_push(&writer->events, event) == KYMO_OK)
		return event;
	no_memory(writer);
	return NULL;
}

void kymo_event_def_set_loglevel(struct kymo_event_def *event, int64_t loglevel)
{
	if (!event || is_closed(event->stream->writer, "log level"))
		return;
	event->cls->has_loglevel = true;
	event->cls->loglevel = loglevel;
}

/* ---- structures ---------------------------------------------------------------------------- */

static struct kymo_fields *fields_new(struct kymo_writer *writer, struct ky_field_class *cls,
				      const char *name, unsigned int depth)
{
	struct kymo_fields *fields;

	if (!cls) {
		no_memory(writer);
		return NULL;
	}
	fields = allocate(writer, sizeof(*fields));
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
	if (*fields || is_closed(writer, "fields"))
		return *fields;
	*cls = ky_struct_new(writer->trace);
	*fields = fields_new(writer, *cls, "fields", 0);
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

/* ---- fields ------------------------------------------------------------------------------ */

/* May a field named @name be added to @fields? */
static bool may_add(struct kymo_fields *fields, const char *name)
{
	struct kymo_writer *writer = fields ? fields->writer : NULL;
	const struct ky_field_class *cls = fields ? fields->cls : NULL;

	if (!writer || is_closed(writer, name ? name : "field"))
		return false;
	if (cls->kind == KY_FIELD_ARRAY) {
		if (cls->array.element)
			mistake(writer, "array '%s' has an element already", fields->name);
		return !cls->array.element;
	}
	if (!check_name(writer, "field", name))
		return false;
	for (size_t i = 0; i < cls->st.n_members; i++) {
		if (!strcmp(cls->st.members[i].display, name)) {
			mistake(writer, "there are two fields named '%s'", name);
			return false;
		}
	}
	return true;
}

/* In the metadata a '_' stands before the name, so that it is never a word of the language. */
static void add(struct kymo_fields *fields, const char *name, struct ky_field_class *cls)
{
	struct kymo_writer *writer = fields->writer;
	char *prefixed;

	if (cls && fields->cls->kind == KY_FIELD_ARRAY) {
		fields->cls->array.element = cls;
		return;
	}
	prefixed = ky_arena_printf(&writer->trace->arena, "_%s", name ? name : "");
	if (!cls || !prefixed || ky_struct_add(writer->trace, fields->cls, prefixed, cls) < 0)
		no_memory(writer);
}

static void add_number(struct kymo_fields *fields, const char *name, unsigned int bits,
		       bool is_signed, uint8_t base)
{
	if (!may_add(fields, name))
		return;
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		mistake(fields->writer, "field '%s': integers have 8, 16, 32 or 64 bits, not %u",
			name ? name : fields->name, bits);
	else
		add(fields, name, ky_int_new(fields->writer->trace, bits, is_signed, base));
}

void kymo_fields_add_uint(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	add_number(fields, name, bits, false, 10);
}

void kymo_fields_add_int(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	add_number(fields, name, bits, true, 10);
}

void kymo_fields_add_hex(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	add_number(fields, name, bits, false, 16);
}

/* A class of @kind that is aligned to bytes, or NULL. */
static struct ky_field_class *class_new(struct kymo_fields *fields, enum ky_field_kind kind)
{
	struct ky_field_class *cls = ky_field_class_new(fields->writer->trace, kind);

	if (cls)
		cls->align_bits = 8;
	return cls;
}

void kymo_fields_add_float(struct kymo_fields *fields, const char *name, unsigned int bits)
{
	struct ky_field_class *cls;

	if (!may_add(fields, name))
		return;
	if (bits != 32 && bits != 64) {
		mistake(fields->writer, "field '%s': floating point numbers have 32 or 64 bits",
			name ? name : fields->name);
		return;
	}
	cls = class_new(fields, KY_FIELD_FLOAT);
	if (cls) {
		cls->num.length_bits = bits;
		cls->num.big_endian = fields->writer->trace->big_endian;
	}
	add(fields, name, cls);
}

void kymo_fields_add_string(struct kymo_fields *fields, const char *name)
{
	struct ky_field_class *cls;

	if (!may_add(fields, name))
		return;
	cls = class_new(fields, KY_FIELD_STRING);
	if (cls)
		cls->text.encoding = KY_ENCODING_UTF8;
	add(fields, name, cls);
}

void kymo_fields_add_chars(struct kymo_fields *fields, const char *name, uint32_t size_bytes)
{
	struct ky_field_class *cls;

	if (!may_add(fields, name))
		return;
	if (!size_bytes) {
		mistake(fields->writer, "field '%s': chars want a size",
			name ? name : fields->name);
		return;
	}
	cls = class_new(fields, KY_FIELD_TEXT);
	if (cls) {
		cls->text.encoding = KY_ENCODING_UTF8;
		cls->text.length_bytes = size_bytes;
	}
	add(fields, name, cls);
}

struct kymo_enum_def *kymo_fields_add_enum(struct kymo_fields *fields, const char *name,
					   unsigned int bits, bool is_signed)
{
	struct kymo_enum_def *enumeration;
	struct ky_field_class *cls;

	if (!may_add(fields, name))
		return NULL;
	if (bits != 8 && bits != 16 && bits != 32 && bits != 64) {
		mistake(fields->writer, "field '%s': enumerations have 8, 16, 32 or 64 bits",
			name ? name : fields->name);
		return NULL;
	}
	cls = ky_int_new(fields->writer->trace, bits, is_signed, 10);
	enumeration = allocate(fields->writer, sizeof(*enumeration));
	if (cls)
		cls->num.is_enum = true;
	add(fields, name, cls);
	if (!cls || !enumeration)
		return NULL;
	enumeration->writer = fields->writer;
	enumeration->cls = cls;
	return enumeration;
}

/* Has the enumeration's integer room for @value? */
static bool in_range(const struct ky_field_class *cls, int64_t value)
{
	uint32_t bits = cls->num.length_bits;

	if (cls->kind == KY_FIELD_UINT)
		return value >= 0 && (bits >= 63 || value >> bits == 0);
	return bits == 64 || (value >> (bits - 1)) == (value < 0 ? -1 : 0);
}

void kymo_enum_def_add(struct kymo_enum_def *enumeration, const char *label, int64_t begin,
		       int64_t end)
{
	struct kymo_writer *writer = enumeration ? enumeration->writer : NULL;

	if (!writer || is_closed(writer, "label"))
		return;
	if (!label)
		mistake(writer, "a label is NULL");
	else if (begin > end || !in_range(enumeration->cls, begin) ||
		 !in_range(enumeration->cls, end))
		mistake(writer, "label '%s': no range of values for %u bits", label,
			enumeration->cls->num.length_bits);
	else if (ky_enum_add(writer->trace, enumeration->cls, label, begin, end) < 0)
		no_memory(writer);
}

/* ---- what consists of others ------------------------------------------------------------------ */

/* A new class below @fields that takes fields itself. */
static struct kymo_fields *nested(struct kymo_fields *fields, const char *name,
				  struct ky_field_class *cls)
{
	add(fields, name, cls);
	if (!cls)
		return NULL;
	return fields_new(fields->writer, cls,
			  name ? ky_arena_strdup(&fields->writer->trace->arena, name) : "element",
			  fields->depth + 1);
}

static bool may_nest(struct kymo_fields *fields, const char *name)
{
	if (!may_add(fields, name))
		return false;
	if (fields->depth + 1 >= KY_DEFINE_MAX_DEPTH)
		mistake(fields->writer, "field '%s' is nested deeper than %d", name ? name : "",
			KY_DEFINE_MAX_DEPTH);
	return fields->depth + 1 < KY_DEFINE_MAX_DEPTH;
}

struct kymo_fields *kymo_fields_add_struct(struct kymo_fields *fields, const char *name)
{
	return may_nest(fields, name) ? nested(fields, name, ky_struct_new(fields->writer->trace))
				      : NULL;
}

struct kymo_fields *kymo_fields_add_array(struct kymo_fields *fields, const char *name,
					  uint32_t length)
{
	struct ky_field_class *cls;

	if (!may_nest(fields, name))
		return NULL;
	cls = class_new(fields, KY_FIELD_ARRAY);
	if (cls)
		cls->array.length = length;
	return nested(fields, name, cls);
}

/* The field that holds the number of elements, and the reference to it. */
static struct ky_field_ref *add_length(struct kymo_fields *fields, const char *name)
{
	struct ky_arena *arena = &fields->writer->trace->arena;
	char *length_name = ky_arena_printf(arena, "_%s_length", name);
	struct ky_field_ref *ref = ky_arena_new(arena, struct ky_field_ref);

	if (!length_name || !ref) {
		no_memory(fields->writer);
		return NULL;
	}
	if (!may_add(fields, length_name))
		return NULL;
	ref->target = ky_int_new(fields->writer->trace, 32, false, 10);
	if (ref->target)
		add(fields, length_name, ref->target);
	if (!ref->target || fields->writer->code != KYMO_OK)
		return NULL;
	ref->text = fields->cls->st.members[fields->cls->st.n_members - 1].name;
	return ref;
}

struct kymo_fields *kymo_fields_add_sequence(struct kymo_fields *fields, const char *name)
{
	struct ky_field_class *cls;
	struct ky_field_ref *ref;

	if (!may_nest(fields, name))
		return NULL;
	if (fields->cls->kind == KY_FIELD_ARRAY) {
		mistake(fields->writer,
			"array '%s': its element cannot be a sequence; put it into a structure",
			fields->name);
		return NULL;
	}
	ref = add_length(fields, name);
	if (!ref)
		return NULL;
	cls = class_new(fields, KY_FIELD_ARRAY);
	if (cls)
		cls->array.length_ref = ref;
	return nested(fields, name, cls);
}
