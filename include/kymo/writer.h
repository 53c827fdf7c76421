/* SPDX-License-Identifier: MIT */
/*
 * Writing traces: a program defines its events, then appends events.
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
 * The program need not check each definition. A failed definition returns NULL, the functions below
 * accept that NULL, and kymo_writer_open() returns the first mistake. The same holds for the values
 * of an event: kymo_output_commit() returns the first mistake and does not write the event.
 *
 * The trace is in CTF, with LTTng's packet layout and index files, so readers of LTTng's traces can
 * read it. Names of fields, clocks and environment entries consist of letters, digits and '_'.
 *
 * Threads: one thread at a time until kymo_writer_open() has returned. After that, different
 * threads may use different outputs at the same time, one thread per output. No thread may use an
 * output during kymo_writer_close().
 */
#ifndef KYMO_WRITER_H
#define KYMO_WRITER_H

#include <string.h>

#include <kymo/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The writer owns all of these objects. They live until kymo_writer_close(). */
struct kymo_writer;
struct kymo_clock_def;
struct kymo_stream_def; /* the description that similar outputs share */
struct kymo_event_def;	/* an event's type */
struct kymo_fields;	/* the fields of a structure, or the element of an array */
struct kymo_enum_def;
struct kymo_variant_def;
struct kymo_output; /* a data stream: one file */

/* ---- the writer -------------------------------------------------------------------------- */

enum kymo_format {
	KYMO_FORMAT_CTF_1_8, /* the version that every tool can read */
	KYMO_FORMAT_CTF_2
};

struct kymo_writer_options {
	size_t size; /* of this struct in the compiled program */
	enum kymo_format format;
	/* The size of a packet in bytes: 4096 to 2^30, a multiple of 8. No event may be larger. */
	size_t packet_bytes;
	const uint8_t *uuid; /* the trace's UUID, 16 bytes; NULL: random bytes */
	/*
	 * True: the writer puts the trace beside its place, under a name that begins with '.', and
	 * kymo_writer_close() moves the complete trace to its place. False: the writer puts each
	 * packet into its place at once, so the trace is readable even when the program dies.
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
 * Make a writer without a trace directory. @options: NULL for the defaults. The writer copies them.
 *
 * Returns 0 and *writer; or KYMO_E_INVALID, KYMO_E_UNSUPPORTED (options of a later version),
 * KYMO_E_MEMORY, KYMO_E_IO (no random numbers).
 */
KYMO_API int kymo_writer_new(const struct kymo_writer_options *options, struct kymo_writer **writer,
			     struct kymo_error *err);

/*
 * End the definitions, create trace directory @path and write the metadata. The parent of @path
 * must exist; @path must not exist, or be an empty directory.
 *
 * Returns 0, or the first mistake of a definition (KYMO_E_INVALID or KYMO_E_UNSUPPORTED: @err names
 * it), KYMO_E_STATE (the writer is open already), or a status of creating files. After a failure
 * the program may only close the writer.
 */
KYMO_API int kymo_writer_open(struct kymo_writer *writer, const char *path, struct kymo_error *err);

/*
 * Write the remaining events, finish the files, and free the writer with all its objects, on
 * failure too. NULL is allowed.
 *
 * Returns 0 or the first failure. With options.atomic, a failure leaves no files behind.
 * KYMO_E_INVALID: with options.atomic, another process put something in the trace's place in the
 * meantime.
 */
KYMO_API int kymo_writer_close(struct kymo_writer *writer, struct kymo_error *err);

/*
 * Remove the files that the writer created, and the directory if it is empty then. Free the writer
 * with all its objects. NULL is allowed.
 */
KYMO_API void kymo_writer_abort(struct kymo_writer *writer);

/* Add entries to the environment, which describes the trace's origin: "hostname", "tracer_name". */
KYMO_API void kymo_writer_env_text(struct kymo_writer *writer, const char *name, const char *text);
KYMO_API void kymo_writer_env_number(struct kymo_writer *writer, const char *name, int64_t number);

/* ---- definitions: clocks, streams, events --------------------------------------------------- */

struct kymo_clock_options {
	size_t size;
	const char *name;
	const char *description; /* or NULL */
	uint64_t frequency_hz;
	/* The time of cycle 0 after the clock's origin: seconds, plus cycles. */
	int64_t offset_s;
	int64_t offset_cycles;
	uint64_t precision_cycles;
	bool is_unix_epoch;  /* the origin is 1970-01-01, UTC */
	const uint8_t *uuid; /* 16 bytes, or NULL */
};

/* The defaults: a clock with ns since the Unix epoch, as CLOCK_REALTIME. Threads: any. */
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
 * The places for fields: the event's payload; context fields of one event class; context fields of
 * all events of a stream definition.
 */
KYMO_API struct kymo_fields *kymo_event_def_fields(struct kymo_event_def *event);
KYMO_API struct kymo_fields *kymo_event_def_context(struct kymo_event_def *event);
KYMO_API struct kymo_fields *kymo_stream_def_context(struct kymo_stream_def *stream);

/*
 * Set attributes, which only CTF 2 has. @json is an object by namespace, {"example.com": {"build":
 * 7}}. Readers do not need attributes to read the events; kymo_trace_attributes() and similar
 * functions return them. A second call replaces the attributes of the first. Attributes can also
 * set an event's log level (log-level of "lttng.org,2009").
 */
KYMO_API void kymo_writer_set_attributes(struct kymo_writer *writer, const char *json);
KYMO_API void kymo_clock_def_set_attributes(struct kymo_clock_def *clock, const char *json);
KYMO_API void kymo_stream_def_set_attributes(struct kymo_stream_def *stream, const char *json);
KYMO_API void kymo_event_def_set_attributes(struct kymo_event_def *event, const char *json);
/*
 * Set attributes of the type of field @name in @fields. @name NULL: attributes of the structure
 * that @fields make up, or of the only field of an array, option or optional field.
 */
KYMO_API void kymo_fields_set_attributes(struct kymo_fields *fields, const char *name,
					 const char *json);

/* ---- definitions: fields -------------------------------------------------------------------- */

/*
 * Each function in this part defines one field. It returns the object that takes the field's
 * children, or nothing. The writer reports mistakes at its opening (see above): a malformed or
 * duplicate name, an impossible size, and a field that CTF 1.8 does not have when the format is CTF
 * 1.8 (KYMO_E_UNSUPPORTED).
 */

/*
 * Add an integer of 1 to 64 bits, in the machine's byte order. Readers show a hex integer in base
 * 16.
 */
KYMO_API void kymo_fields_add_uint(struct kymo_fields *fields, const char *name, unsigned int bits);
KYMO_API void kymo_fields_add_int(struct kymo_fields *fields, const char *name, unsigned int bits);
KYMO_API void kymo_fields_add_hex(struct kymo_fields *fields, const char *name, unsigned int bits);
/* Add a floating point number of 32 or 64 bits; in CTF 2 also of 16 or 128. */
KYMO_API void kymo_fields_add_float(struct kymo_fields *fields, const char *name,
				    unsigned int bits);
/* Add UTF-8 text of any length. */
KYMO_API void kymo_fields_add_string(struct kymo_fields *fields, const char *name);
/* Add UTF-8 text that always has @size_bytes. The writer cuts longer text. */
KYMO_API void kymo_fields_add_chars(struct kymo_fields *fields, const char *name,
				    size_t size_bytes);
/* Add an integer of 1 to 64 bits whose values have labels. */
KYMO_API struct kymo_enum_def *kymo_fields_add_enum(struct kymo_fields *fields, const char *name,
						    unsigned int bits, bool is_signed);
/*
 * Give the values from @begin to @end, both included, the label @label. For a bit map, the numbers
 * are bits; 0 is the least significant bit. Several calls can give a label several ranges.
 */
KYMO_API void kymo_enum_def_add(struct kymo_enum_def *enumeration, const char *label, int64_t begin,
				int64_t end);
/* The same for unsigned values above INT64_MAX. */
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
	unsigned int bits; /* not for the last two kinds */
	/*
	 * The alignment in bits: a power of two up to 4096. 0: 8 for sizes of 8, 16, 32 ... bits,
	 * else 1.
	 */
	unsigned int align_bits;
	unsigned int base; /* in which readers show the number: 2, 8, 10 or 16 */
	/* All numbers with bits in the same byte must have the same byte order. */
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
 * Add a number of any kind. The program may add labels to the returned object (of an integer) or
 * flags (of a bit map).
 */
KYMO_API struct kymo_enum_def *kymo_fields_add_number(struct kymo_fields *fields, const char *name,
						      const struct kymo_number_options *options);

struct kymo_text_options {
	size_t size;
	/*
	 * KYMO_FIELD_STRING: text that ends with a NUL. KYMO_FIELD_TEXT: text of size_bytes. In CTF
	 * 2 also KYMO_FIELD_BLOB: bytes that are not text.
	 */
	enum kymo_field_kind kind;
	enum kymo_encoding encoding; /* in CTF 1.8 UTF-8 or ASCII */
	size_t size_bytes;	     /* 0: each event has its own size */
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
 * Add text of any kind, or bytes. The program gives values in UTF-8 for every encoding. When each
 * event has its own size, the writer adds a field "_NAME_length" before this one, as for a
 * sequence.
 */
KYMO_API void kymo_fields_add_text(struct kymo_fields *fields, const char *name,
				   const struct kymo_text_options *options);

/*
 * Add an array of @length elements (up to UINT32_MAX), or a sequence, whose length each event gives.
 * The program must add exactly one field to the returned object: the element. Its name may be NULL.
 *
 *	kymo_fields_add_uint(kymo_fields_add_sequence(fields, "sizes"), NULL, 32);
 *
 * The writer adds a field "_NAME_length" before a sequence. So a sequence cannot be the direct
 * element of an array, or an option, but it can be a member of a structure there.
 */
KYMO_API struct kymo_fields *kymo_fields_add_array(struct kymo_fields *fields, const char *name,
						   size_t length);
KYMO_API struct kymo_fields *kymo_fields_add_sequence(struct kymo_fields *fields, const char *name);

/*
 * Add a field that has one of several options in each event. The writer adds a field "_NAME_tag"
 * before it. The program must add one field to each option, as to an array.
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
 * Add a field that an event has or has not. The writer adds a field "_NAME_present" before it. Only
 * CTF 2 has such fields; in CTF 1.8 a sequence of at most one element serves the purpose. The
 * program must add one field to the returned object, as to an array.
 */
KYMO_API struct kymo_fields *kymo_fields_add_optional(struct kymo_fields *fields, const char *name);

/* ---- outputs ------------------------------------------------------------------------------- */

/*
 * Add a data stream to the open @writer: file @name in its directory.
 *
 * @cpu: the CPU of the events. When CPUs have no meaning, any number.
 * Returns 0 and *output; or KYMO_E_STATE (the writer is not open), KYMO_E_INVALID, KYMO_E_IO,
 * KYMO_E_MEMORY, KYMO_E_LIMIT.
 */
KYMO_API int kymo_output_open(struct kymo_writer *writer, struct kymo_stream_def *stream,
			      const char *name, uint32_t cpu, struct kymo_output **output,
			      struct kymo_error *err);

/*
 * Begin an event at @cycles of the clock, which must not be before the last event of this output.
 * The output drops an earlier event that was begun and not committed.
 */
KYMO_API void kymo_output_begin(struct kymo_output *output, const struct kymo_event_def *event,
				uint64_t cycles);

/*
 * Give the value of the next field, in the order of definition: stream context, event context,
 * payload; within them each member and each element.
 *
 * u64, i64: integers, enumerations, booleans, bit arrays and maps. The value must fit into the
 * field.
 * f64: floating point numbers, rounded to the nearest value of the field's size.
 * text: strings and chars, in UTF-8, up to a NUL. The output copies the text. In fields of another
 * encoding, U+FFFD replaces malformed characters. The output cuts text that is too long for a field
 * of fixed size, between two characters.
 * bytes: a BLOB. The output copies the bytes.
 * length: the number of elements of a sequence. The values of the elements follow.
 * option: the number of a variant's option. The option's value follows.
 * present: whether the event has an optional field. If so, its value follows.
 */
KYMO_API void kymo_output_u64(struct kymo_output *output, uint64_t value);
KYMO_API void kymo_output_i64(struct kymo_output *output, int64_t value);
KYMO_API void kymo_output_f64(struct kymo_output *output, double value);
KYMO_API void kymo_output_text(struct kymo_output *output, const char *text);
KYMO_API void kymo_output_text_n(struct kymo_output *output, const char *text, size_t len_bytes);
KYMO_API void kymo_output_bytes(struct kymo_output *output, const void *data, size_t len_bytes);
KYMO_API void kymo_output_length(struct kymo_output *output, size_t length);
KYMO_API void kymo_output_option(struct kymo_output *output, uint32_t option);
KYMO_API void kymo_output_present(struct kymo_output *output, bool is_present);

/*
 * Append the event. This may write a packet to the file.
 *
 * Returns 0; or KYMO_E_INVALID (a value does not match its field, there are too few or too many
 * values, or time goes back: @err has the details), KYMO_E_LIMIT (the event is larger than a
 * packet) or KYMO_E_STATE (no event was begun): the output drops the event and is otherwise
 * unchanged; or KYMO_E_IO: the output could not write the packet before this event. The events of
 * that packet and this event are lost. When writing succeeds again, the output records the loss of
 * the packet's events.
 */
KYMO_API int kymo_output_commit(struct kymo_output *output, struct kymo_error *err);

/*
 * Record a loss of @n_events between the last event and the next one. Readers report the loss with
 * its time.
 *
 * Returns 0, KYMO_E_INVALID or KYMO_E_IO.
 */
KYMO_API int kymo_output_lost(struct kymo_output *output, uint64_t n_events,
			      struct kymo_error *err);

/*
 * Write the events so far as a packet, so that readers have them even when the program dies.
 * Without new events the call has no effect.
 *
 * Returns 0, KYMO_E_INVALID or KYMO_E_IO.
 */
KYMO_API int kymo_output_close_packet(struct kymo_output *output, struct kymo_error *err);

#ifdef __cplusplus
}
#endif

#endif
