/* SPDX-License-Identifier: MIT */
/*
 * Writing traces: say what events look like, then append events.
 *
 *	struct kymo_clock_options clock_options = kymo_clock_options_init();	ns since 1970
 *
 *	kymo_writer_new(NULL, &writer, &err);
 *	clock = kymo_writer_add_clock(writer, &clock_options);
 *	stream = kymo_writer_add_stream(writer, clock);
 *	request = kymo_stream_def_add_event(stream, "request");
 *	fields = kymo_event_def_fields(request);
 *	kymo_fields_add_uint(fields, "size", 32);
 *	kymo_fields_add_string(fields, "path");
 *	ret = kymo_writer_open(writer, "my-trace", &err);	all mistakes until here
 *
 *	ret = kymo_output_open(writer, stream, "worker_0", 0, &output, &err);
 *	kymo_output_begin(output, request, now_ns);
 *	kymo_output_u64(output, 4096);				values in the fields' order
 *	kymo_output_text(output, "/etc/passwd");
 *	ret = kymo_output_commit(output, &err);			mistakes with this event
 *	...
 *	ret = kymo_writer_close(writer, &err);
 *
 * Definitions need no checking one by one: one that fails returns NULL, NULL is a fine argument
 * for those below it, and kymo_writer_open() returns the first mistake. The same goes for the
 * values of an event: kymo_output_commit() says what is wrong, and the event is not written.
 *
 * The trace is in CTF, with LTTng's packet layout and index files: what reads LTTng's traces
 * reads it. Names of fields, clocks and the environment consist of letters, digits and '_'.
 *
 * Threads: one at a time until kymo_writer_open() has returned. Then each output is for one
 * thread at a time, different outputs may be used at the same time. kymo_writer_close() wants
 * all of them to be at rest.
 */
#ifndef KYMO_WRITER_H
#define KYMO_WRITER_H

#include <string.h>

#include <kymo/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All of these belong to their writer and live until kymo_writer_close(). */
struct kymo_writer;
struct kymo_clock_def;
struct kymo_stream_def; /* what the events of like outputs have in common */
struct kymo_event_def;	/* an event's type */
struct kymo_fields;	/* a structure, or what an array consists of, being defined */
struct kymo_enum_def;
struct kymo_variant_def;
struct kymo_output; /* a data stream: one file */

/* ---- the writer -------------------------------------------------------------------------- */

enum kymo_format {
	KYMO_FORMAT_CTF_1_8, /* what every tool reads */
	KYMO_FORMAT_CTF_2
};

struct kymo_writer_options {
	size_t size; /* of this struct, as the program was compiled */
	enum kymo_format format;
	/* Room of a packet: 4096 to 2^30, a multiple of 8. No event may be larger. */
	size_t packet_bytes;
	const uint8_t *uuid; /* 16 bytes of the trace's own; NULL: random ones */
	/*
	 * All or nothing: the trace is written beside its place, under a name that begins with
	 * '.', and kymo_writer_close() moves it there when it is whole. Otherwise it is written
	 * where it belongs, packet by packet, and can be read even when the program dies.
	 */
	bool atomic;
};

/* The defaults. Threads: any. */
static inline struct kymo_writer_options kymo_writer_options_init(void)
{
	struct kymo_writer_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.format = KYMO_FORMAT_CTF_1_8;
	options.packet_bytes = 262144;
	return options;
}

/*
 * A writer that writes nowhere yet. @options: NULL for the defaults. Nothing is kept of it.
 * Returns 0 and *writer; or KYMO_E_INVALID, KYMO_E_UNSUPPORTED (options of a later version),
 * KYMO_E_MEMORY, KYMO_E_IO (no random numbers).
 */
KYMO_API int kymo_writer_new(const struct kymo_writer_options *options, struct kymo_writer **writer,
			     struct kymo_error *err);

/*
 * End the definitions, create trace directory @path (its parent must exist; it must not exist
 * or be empty) and write the metadata.
 *
 * Returns 0, or the first mistake of a definition (KYMO_E_INVALID or KYMO_E_UNSUPPORTED: @err
 * names it), KYMO_E_STATE (it is open already), or what creating files gives. After a failure a writer
 * is good for kymo_writer_close() only.
 */
KYMO_API int kymo_writer_open(struct kymo_writer *writer, const char *path, struct kymo_error *err);

/*
 * Write out what is not yet, finish the files and free the writer and all that belongs to it,
 * on failure too. NULL is fine.
 *
 * Returns 0 or the first failure. With options.atomic a failure leaves nothing behind; it is
 * KYMO_E_INVALID when in the meantime something came to be where the trace belongs.
 */
KYMO_API int kymo_writer_close(struct kymo_writer *writer, struct kymo_error *err);

/*
 * Give up: remove the files that were written, with the directory if nothing else is in it, and free
 * the writer and all that belongs to it. NULL is fine.
 */
KYMO_API void kymo_writer_abort(struct kymo_writer *writer);

/* Entries of the environment, which says where a trace comes from: "hostname", "tracer_name". */
KYMO_API void kymo_writer_env_text(struct kymo_writer *writer, const char *name, const char *text);
KYMO_API void kymo_writer_env_number(struct kymo_writer *writer, const char *name, int64_t number);

/* ---- definitions: clocks, streams, events --------------------------------------------------- */

struct kymo_clock_options {
	size_t size;
	const char *name;
	const char *description; /* or NULL */
	uint64_t frequency_hz;
	/* Cycle 0 is so long after the clock's origin: seconds, and cycles on top. */
	int64_t offset_s;
	int64_t offset_cycles;
	uint64_t precision_cycles;
	bool is_unix_epoch;  /* the origin is 1970-01-01, UTC */
	const uint8_t *uuid; /* 16 bytes, or NULL */
};

/* Time in ns since the Unix epoch: CLOCK_REALTIME. */
/* The defaults: ns since 1970. Threads: any. */
static inline struct kymo_clock_options kymo_clock_options_init(void)
{
	struct kymo_clock_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.name = "realtime";
	options.frequency_hz = 1000000000;
	options.is_unix_epoch = true;
	return options;
}

KYMO_API struct kymo_clock_def *kymo_writer_add_clock(struct kymo_writer *writer,
						      const struct kymo_clock_options *options);
KYMO_API struct kymo_stream_def *kymo_writer_add_stream(struct kymo_writer *writer,
							struct kymo_clock_def *clock);
KYMO_API struct kymo_event_def *kymo_stream_def_add_event(struct kymo_stream_def *stream,
							  const char *name);
KYMO_API void kymo_event_def_set_loglevel(struct kymo_event_def *event, int64_t loglevel);

/*
 * Where fields are added: an event's own; context fields of one event; context fields of all
 * events of a stream definition.
 */
KYMO_API struct kymo_fields *kymo_event_def_fields(struct kymo_event_def *event);
KYMO_API struct kymo_fields *kymo_event_def_context(struct kymo_event_def *event);
KYMO_API struct kymo_fields *kymo_stream_def_context(struct kymo_stream_def *stream);

/*
 * Attributes, of CTF 2 only: @json is an object by namespace, {"example.com": {"build": 7}}. Nobody needs
 * them to read the trace; kymo_trace_attributes() and the like find them again. Given twice, the last
 * counts. An event's log level may be set so, too (log-level of "lttng.org,2009").
 */
KYMO_API void kymo_writer_set_attributes(struct kymo_writer *writer, const char *json);
KYMO_API void kymo_clock_def_set_attributes(struct kymo_clock_def *clock, const char *json);
KYMO_API void kymo_stream_def_set_attributes(struct kymo_stream_def *stream, const char *json);
KYMO_API void kymo_event_def_set_attributes(struct kymo_event_def *event, const char *json);
/*
 * The same for the type of field @name, which was added to @fields; NULL: of what they make up, a structure,
 * or of the one field of an array, option or optional field.
 */
KYMO_API void kymo_fields_set_attributes(struct kymo_fields *fields, const char *name,
					 const char *json);

/* ---- definitions: fields -------------------------------------------------------------------- */

/*
 * The functions of this part define one field each and return what it consists of, or nothing. A
 * mistake is one of the writer (see above): a name that is none or is taken, sizes that are not
 * possible, and what CTF 1.8 cannot say when that is the format: KYMO_E_UNSUPPORTED.
 */

/* Integers of 1 to 64 bits, in the machine's byte order. Hexadecimal ones are only shown so. */
KYMO_API void kymo_fields_add_uint(struct kymo_fields *fields, const char *name, unsigned int bits);
KYMO_API void kymo_fields_add_int(struct kymo_fields *fields, const char *name, unsigned int bits);
KYMO_API void kymo_fields_add_hex(struct kymo_fields *fields, const char *name, unsigned int bits);
/* Of 32 or 64 bits; in CTF 2 also of 16 or 128. */
KYMO_API void kymo_fields_add_float(struct kymo_fields *fields, const char *name,
				    unsigned int bits);
/* UTF-8 text of any length. */
KYMO_API void kymo_fields_add_string(struct kymo_fields *fields, const char *name);
/* UTF-8 text that always takes @size_bytes: what is longer is cut. */
KYMO_API void kymo_fields_add_chars(struct kymo_fields *fields, const char *name,
				    uint32_t size_bytes);
/* An integer of 1 to 64 bits whose values have labels. */
KYMO_API struct kymo_enum_def *kymo_fields_add_enum(struct kymo_fields *fields, const char *name,
						    unsigned int bits, bool is_signed);
/*
 * Values @begin to @end, both included, are called @label. Of a bit map: the bits from @begin to @end,
 * 0 being the least significant. A label may be given several ranges, one after the other.
 */
KYMO_API void kymo_enum_def_add(struct kymo_enum_def *enumeration, const char *label, int64_t begin,
				int64_t end);
/* The same for unsigned values beyond INT64_MAX. */
KYMO_API void kymo_enum_def_add_unsigned(struct kymo_enum_def *enumeration, const char *label,
					 uint64_t begin, uint64_t end);
KYMO_API struct kymo_fields *kymo_fields_add_struct(struct kymo_fields *fields, const char *name);

enum kymo_byte_order { KYMO_BYTE_ORDER_NATIVE, KYMO_BYTE_ORDER_LITTLE, KYMO_BYTE_ORDER_BIG };

struct kymo_number_options {
	size_t size;
	/*
	 * KYMO_FIELD_UINT, KYMO_FIELD_SINT, KYMO_FIELD_FLOAT; in CTF 2 also KYMO_FIELD_BITS,
	 * KYMO_FIELD_BITMAP, KYMO_FIELD_BOOL, KYMO_FIELD_VARUINT, KYMO_FIELD_VARSINT.
	 */
	enum kymo_field_kind kind;
	unsigned int bits; /* not of the last two */
	/* Where it may begin: a power of two up to 4096; 0: 8 for 8, 16, 32 ... bits, 1 for others. */
	unsigned int align_bits;
	unsigned int base; /* to show it in: 2, 8, 10 or 16 */
	/* The same for all numbers that have bits of the same byte. */
	enum kymo_byte_order byte_order;
};

/* The defaults: an unsigned integer of 64 bits. Threads: any. */
static inline struct kymo_number_options kymo_number_options_init(void)
{
	struct kymo_number_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.kind = KYMO_FIELD_UINT;
	options.bits = 64;
	options.base = 10;
	options.byte_order = KYMO_BYTE_ORDER_NATIVE;
	return options;
}

/*
 * A number of any kind. To what it returns labels may be added (of integers), or flags (of bit
 * maps), or nothing.
 */
KYMO_API struct kymo_enum_def *kymo_fields_add_number(struct kymo_fields *fields, const char *name,
						      const struct kymo_number_options *options);

struct kymo_text_options {
	size_t size;
	/*
	 * KYMO_FIELD_STRING: ends with a NUL; KYMO_FIELD_TEXT: takes size_bytes; in CTF 2 also
	 * KYMO_FIELD_BLOB: bytes that are no text.
	 */
	enum kymo_field_kind kind;
	enum kymo_encoding encoding; /* in CTF 1.8 UTF-8 or ASCII */
	size_t size_bytes;	     /* 0: as many as each event has */
	const char *media_type;	     /* of a BLOB, or NULL: "image/png" */
};

/* The defaults: a string in UTF-8. Threads: any. */
static inline struct kymo_text_options kymo_text_options_init(void)
{
	struct kymo_text_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.kind = KYMO_FIELD_STRING;
	options.encoding = KYMO_ENCODING_UTF8;
	return options;
}

/*
 * Text of any kind, or bytes. Values are given in UTF-8 whatever the encoding is. With a size that
 * each event has it comes with a field "_NAME_length" before it, as a sequence does.
 */
KYMO_API void kymo_fields_add_text(struct kymo_fields *fields, const char *name,
				   const struct kymo_text_options *options);

/*
 * An array of @length elements, or of as many as each event has. Add exactly one field to what
 * they return: the element; its name is ignored and may be NULL.
 *
 *	kymo_fields_add_uint(kymo_fields_add_sequence(fields, "sizes"), NULL, 32);
 *
 * A sequence comes with a field "_NAME_length" before it. So it cannot be the element of an array or
 * an option itself, but a member of a structure that is.
 */
KYMO_API struct kymo_fields *kymo_fields_add_array(struct kymo_fields *fields, const char *name,
						   uint32_t length);
KYMO_API struct kymo_fields *kymo_fields_add_sequence(struct kymo_fields *fields, const char *name);

/*
 * A field that is one of several, event by event; comes with a field "_NAME_tag" before it. Add one
 * field to each option, as to an array.
 *
 *	value = kymo_fields_add_variant(fields, "value");
 *	kymo_fields_add_int(kymo_variant_def_add(value, "number"), NULL, 64);	option 0
 *	kymo_fields_add_string(kymo_variant_def_add(value, "word"), NULL);	option 1
 */
KYMO_API struct kymo_variant_def *kymo_fields_add_variant(struct kymo_fields *fields,
							  const char *name);
KYMO_API struct kymo_fields *kymo_variant_def_add(struct kymo_variant_def *variant,
						  const char *name);

/*
 * A field that an event has or has not; comes with a field "_NAME_present" before it. CTF 2 only: in
 * CTF 1.8 a sequence of at most one element says the same. Add one field, as to an array.
 */
KYMO_API struct kymo_fields *kymo_fields_add_optional(struct kymo_fields *fields, const char *name);

/* ---- outputs ------------------------------------------------------------------------------- */

/*
 * Add a data stream to the open @writer: file @name below its directory.
 *
 * @cpu: whose events these are. Where CPUs mean nothing, any number.
 * Returns 0 and *output; or KYMO_E_STATE (the writer is not open), KYMO_E_INVALID, KYMO_E_IO,
 * KYMO_E_MEMORY, KYMO_E_LIMIT.
 */
KYMO_API int kymo_output_open(struct kymo_writer *writer, struct kymo_stream_def *stream,
			      const char *name, uint32_t cpu, struct kymo_output **output,
			      struct kymo_error *err);

/*
 * Begin an event at @cycles of the clock: not before the last one of this output. One that was
 * begun and not committed is dropped.
 */
KYMO_API void kymo_output_begin(struct kymo_output *output, const struct kymo_event_def *event,
				uint64_t cycles);

/*
 * The value of the next field, in the order of definition: stream context, event context, the
 * event's own; members one by one, elements one by one.
 *
 * u64, i64: integers, enumerations, booleans, bit arrays and maps, and values that fit.
 * f64: floating point numbers, rounded to the nearest that the field knows.
 * text: strings and chars, in UTF-8; up to a NUL. Copied. What is malformed becomes U+FFFD in fields
 *	of another encoding. What a field of fixed size has no room for is cut, between characters.
 * bytes: a BLOB. Copied.
 * length: the number of elements of a sequence, whose values then follow.
 * option: which option of a variant, by its number; its value then follows.
 * present: whether an optional field is there; if so, its value follows.
 */
KYMO_API void kymo_output_u64(struct kymo_output *output, uint64_t value);
KYMO_API void kymo_output_i64(struct kymo_output *output, int64_t value);
KYMO_API void kymo_output_f64(struct kymo_output *output, double value);
KYMO_API void kymo_output_text(struct kymo_output *output, const char *text);
KYMO_API void kymo_output_text_n(struct kymo_output *output, const char *text, size_t len_bytes);
KYMO_API void kymo_output_bytes(struct kymo_output *output, const void *data, size_t len_bytes);
KYMO_API void kymo_output_length(struct kymo_output *output, uint32_t length);
KYMO_API void kymo_output_option(struct kymo_output *output, uint32_t option);
KYMO_API void kymo_output_present(struct kymo_output *output, bool is_present);

/*
 * Append the event. Now and then this writes a packet.
 *
 * Returns 0; or KYMO_E_INVALID (a value that does not belong to its field, too few or too
 * many of them, time that goes back: @err says which), KYMO_E_LIMIT (larger than a packet),
 * KYMO_E_STATE (no event was begun): the event is not there, the output is as before;
 * or KYMO_E_IO: the packet before the event could not be written. Its events are lost, and
 * this one; readers are told of the former when writing is possible again.
 */
KYMO_API int kymo_output_commit(struct kymo_output *output, struct kymo_error *err);

/*
 * @n_events could not be recorded between the last event and the next one. Readers are told
 * so, with the time. Returns 0, KYMO_E_INVALID or KYMO_E_IO.
 */
KYMO_API int kymo_output_lost(struct kymo_output *output, uint64_t n_events,
			      struct kymo_error *err);

/*
 * Write the events until now as a packet, so that they can be read even when the program dies.
 * Does nothing when there are none. Returns 0, KYMO_E_INVALID or KYMO_E_IO.
 */
KYMO_API int kymo_output_close_packet(struct kymo_output *output, struct kymo_error *err);

#ifdef __cplusplus
}
#endif

#endif
