/* SPDX-License-Identifier: MIT */
/*
 * The metadata of a trace: traces, data streams, event classes, fields, clocks.
 *
 *	trace ── data stream (a file)
 *	  │         └ has a stream class
 *	  ├── stream class ── event class ── structures of fields, one per scope
 *	  ├── clock
 *	  └── environment
 *
 * All objects are read only. A reader (reader.h) gives them out: kymo_reader_trace(), or
 * event->event_class. The caller borrows every returned pointer; it is valid until
 * kymo_reader_close(). Functions here never fail: for an absent item, an index out of range or a
 * NULL object they return NULL, 0 or false.
 *
 * Names of fields come without the '_' that CTF 1.8 writes before them.
 * Threads: any, also at the same time.
 */
#ifndef KYMO_MODEL_H
#define KYMO_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kymo_trace;
struct kymo_stream;	  /* a data stream: one file, usually one CPU's buffer */
struct kymo_stream_class; /* the description that similar data streams share */
struct kymo_event_class;  /* an event's type, such as sched_switch */
struct kymo_field_class;  /* a field's type */
struct kymo_clock;

/* ---- traces ---------------------------------------------------------------------------- */

/* The directory that holds the metadata. */
KYMO_API const char *kymo_trace_path(const struct kymo_trace *trace);
/* The version of CTF: 1, 8 or 2, 0. */
KYMO_API void kymo_trace_version(const struct kymo_trace *trace, unsigned int *major,
				 unsigned int *minor);
/* The trace's name, which only CTF 2 has; or NULL. */
KYMO_API const char *kymo_trace_name(const struct kymo_trace *trace);
/*
 * The attributes that the producer gave the trace in CTF 2: a JSON object by namespace,
 * {"example.com": {"build": 7}}, on one line; or NULL. Reading the events does not need them.
 * Clocks, classes and fields below have attributes, too.
 */
KYMO_API const char *kymo_trace_attributes(const struct kymo_trace *trace);
/* The byte order of numbers whose type does not set one. */
KYMO_API bool kymo_trace_is_big_endian(const struct kymo_trace *trace);
/* The trace's UUID: 16 bytes, or NULL. */
KYMO_API const uint8_t *kymo_trace_uuid(const struct kymo_trace *trace);

/* The environment: entries in which the tracer describes itself and the machine. */
KYMO_API size_t kymo_trace_n_env(const struct kymo_trace *trace);
/*
 * Entry @i of the environment. For a text, *text is set. For a number, *text is NULL and *number is
 * set. Either pointer may be NULL. Returns the entry's name.
 */
KYMO_API const char *kymo_trace_env(const struct kymo_trace *trace, size_t i, const char **text,
				    int64_t *number);
/* The text of entry @name ("hostname"). NULL when no such entry exists, or when it is a number. */
KYMO_API const char *kymo_trace_env_text(const struct kymo_trace *trace, const char *name);

KYMO_API size_t kymo_trace_n_clocks(const struct kymo_trace *trace);
KYMO_API const struct kymo_clock *kymo_trace_clock(const struct kymo_trace *trace, size_t i);
KYMO_API size_t kymo_trace_n_stream_classes(const struct kymo_trace *trace);
KYMO_API const struct kymo_stream_class *kymo_trace_stream_class(const struct kymo_trace *trace,
								 size_t i);
/* Event classes of all stream classes; @i is the number that kymo_event_class_index() returns. */
KYMO_API size_t kymo_trace_n_event_classes(const struct kymo_trace *trace);
KYMO_API const struct kymo_event_class *kymo_trace_event_class(const struct kymo_trace *trace,
							       size_t i);
/* The first event class named @name, or NULL. */
KYMO_API const struct kymo_event_class *kymo_trace_find_event_class(const struct kymo_trace *trace,
								    const char *name);

/* ---- data streams ------------------------------------------------------------------------ */

#define KYMO_NO_CPU UINT32_MAX

KYMO_API const struct kymo_trace *kymo_stream_trace(const struct kymo_stream *stream);
/* NULL for an empty file, and for a file whose first packet is damaged. */
KYMO_API const struct kymo_stream_class *kymo_stream_stream_class(const struct kymo_stream *stream);
/* The file's name ("channel0_1"), and its whole path. */
KYMO_API const char *kymo_stream_name(const struct kymo_stream *stream);
KYMO_API const char *kymo_stream_path(const struct kymo_stream *stream);
KYMO_API uint64_t kymo_stream_size_bytes(const struct kymo_stream *stream);
/* The CPU that the stream's first packet names, or KYMO_NO_CPU. */
KYMO_API uint32_t kymo_stream_cpu(const struct kymo_stream *stream);
/* The stream's number among all data streams of the reader, as in kymo_reader_stream(). */
KYMO_API size_t kymo_stream_index(const struct kymo_stream *stream);

/*
 * The times of the stream's first and last event, in ns from the clock's origin. The function reads
 * only the two ends of the stream. Of a damaged stream, the readable events count. Returns false,
 * and sets both times to INT64_MIN, when no event has a time.
 */
KYMO_API bool kymo_stream_range(const struct kymo_stream *stream, int64_t *begin_ns,
				int64_t *end_ns);

/* The value of an unknown number of a packet. Unknown times in ns are INT64_MIN. */
#define KYMO_UNKNOWN UINT64_MAX

/*
 * A packet, as its header and context describe it. The library's own struct may be larger: programs
 * use it through the pointer and never copy it.
 */
struct kymo_packet {
	/*
	 * The packet's place in the data stream. In a stream of several files, the offsets of each
	 * file continue after those of the file before it, from the next page on.
	 */
	uint64_t offset_bytes;
	uint64_t packet_bits, content_bits; /* with padding, and without */
	uint64_t begin_cycles, end_cycles;
	int64_t begin_ns, end_ns; /* from the clock's origin */
	uint64_t sequence;	  /* the packet's sequence number */
	uint64_t discarded;	  /* lost events from the stream's start to the packet's end */
};

struct kymo_packets;

/*
 * The packets of @stream, from its index file or, without one, from their headers.
 *
 * Returns 0 and *packets. The caller owns *packets, frees it with kymo_packets_free(), and must do
 * so before the reader closes. KYMO_E_FORMAT: *packets is set, too, but the packets end at damage
 * (@err has file and offset). KYMO_E_INVALID or KYMO_E_MEMORY: *packets is NULL.
 */
KYMO_API int kymo_packets_open(const struct kymo_stream *stream, struct kymo_packets **packets,
			       struct kymo_error *err);
KYMO_API void kymo_packets_free(struct kymo_packets *packets); /* NULL is allowed */
KYMO_API size_t kymo_packets_n(const struct kymo_packets *packets);
KYMO_API const struct kymo_packet *kymo_packets_get(const struct kymo_packets *packets, size_t i);

/* ---- clocks ------------------------------------------------------------------------------ */

KYMO_API const char *kymo_clock_name(const struct kymo_clock *clock);
KYMO_API const char *kymo_clock_description(const struct kymo_clock *clock); /* or NULL */
KYMO_API const char *kymo_clock_attributes(const struct kymo_clock *clock);  /* or NULL */
KYMO_API const uint8_t *kymo_clock_uuid(const struct kymo_clock *clock);     /* or NULL */
KYMO_API uint64_t kymo_clock_frequency_hz(const struct kymo_clock *clock);
KYMO_API uint64_t kymo_clock_precision_cycles(const struct kymo_clock *clock);
/* The time of cycle 0 after the clock's origin: seconds, plus cycles. */
KYMO_API int64_t kymo_clock_offset_s(const struct kymo_clock *clock);
KYMO_API int64_t kymo_clock_offset_cycles(const struct kymo_clock *clock);
/*
 * Is the origin the Unix epoch (1970-01-01, UTC)? If not, the origin is unknown; it is often the
 * boot.
 */
KYMO_API bool kymo_clock_is_unix_epoch(const struct kymo_clock *clock);
/* Converts cycles to ns from the origin. The result saturates at the ends of int64_t. */
KYMO_API int64_t kymo_clock_to_ns(const struct kymo_clock *clock, uint64_t cycles);

/* ---- stream and event classes ------------------------------------------------------------- */

/* The parts of packets and events that have fields. Most programs need the last three only. */
enum kymo_scope {
	KYMO_SCOPE_PACKET_HEADER,
	KYMO_SCOPE_PACKET_CONTEXT, /* has the field "cpu_id" */
	KYMO_SCOPE_EVENT_HEADER,
	KYMO_SCOPE_STREAM_CONTEXT, /* context fields that all events of a stream class have */
	KYMO_SCOPE_EVENT_CONTEXT,  /* context fields of one event class */
	KYMO_SCOPE_PAYLOAD,	   /* the event's own fields */
	KYMO_SCOPE_COUNT
};

KYMO_API uint64_t kymo_stream_class_id(const struct kymo_stream_class *cls);
KYMO_API const char *kymo_stream_class_name(const struct kymo_stream_class *cls); /* or NULL */
KYMO_API const char *kymo_stream_class_attributes(const struct kymo_stream_class *cls);
/* The clock of the events' times, or NULL. */
KYMO_API const struct kymo_clock *kymo_stream_class_clock(const struct kymo_stream_class *cls);
KYMO_API size_t kymo_stream_class_n_event_classes(const struct kymo_stream_class *cls);
KYMO_API const struct kymo_event_class *
kymo_stream_class_event_class(const struct kymo_stream_class *cls, size_t i);

/* The structure of the class's fields in @scope (one of the first four), or NULL. */
KYMO_API const struct kymo_field_class *kymo_stream_class_scope(const struct kymo_stream_class *cls,
								enum kymo_scope scope);

KYMO_API const char *kymo_event_class_name(const struct kymo_event_class *cls); /* or "" */
KYMO_API uint64_t kymo_event_class_id(const struct kymo_event_class *cls);
/* The class's number in its trace, from 0. Programs can index their own tables with it. */
KYMO_API size_t kymo_event_class_index(const struct kymo_event_class *cls);
KYMO_API const struct kymo_stream_class *
kymo_event_class_stream_class(const struct kymo_event_class *cls);
/* Returns false, and leaves *loglevel alone, when the class has no log level. */
KYMO_API bool kymo_event_class_loglevel(const struct kymo_event_class *cls, int64_t *loglevel);
/* The URI of the event's model (LTTng's "model.emf.uri"), or NULL. */
KYMO_API const char *kymo_event_class_emf_uri(const struct kymo_event_class *cls);
/* The attributes do not include log level and model URI. */
KYMO_API const char *kymo_event_class_attributes(const struct kymo_event_class *cls);
/* The structure (KYMO_FIELD_STRUCT) of the class's fields in @scope, or NULL. */
KYMO_API const struct kymo_field_class *kymo_event_class_scope(const struct kymo_event_class *cls,
							       enum kymo_scope scope);

/* ---- fields ------------------------------------------------------------------------------ */

enum kymo_field_kind {
	KYMO_FIELD_BITS,    /* bits without a meaning as a number */
	KYMO_FIELD_BITMAP,  /* flags with names: kymo_field_class_label() */
	KYMO_FIELD_BOOL,    /* a number that is 0 (false) or not (true) */
	KYMO_FIELD_UINT,    /* unsigned integer; with labels: an enumeration */
	KYMO_FIELD_SINT,    /* signed integer; with labels: an enumeration */
	KYMO_FIELD_FLOAT,   /* floating point number */
	KYMO_FIELD_VARUINT, /* integers whose size varies (LEB128) */
	KYMO_FIELD_VARSINT,
	KYMO_FIELD_STRING, /* text that ends with a NUL */
	KYMO_FIELD_TEXT,   /* text with a length; bytes after a NUL are not part of it */
	KYMO_FIELD_BLOB,   /* bytes with a length */
	KYMO_FIELD_ARRAY,  /* elements of one class, with a fixed or varying length */
	KYMO_FIELD_STRUCT,
	KYMO_FIELD_OPTIONAL, /* one member, which an event has or has not */
	KYMO_FIELD_VARIANT   /* several options, of which each event has one */
};

enum kymo_encoding {
	KYMO_ENCODING_NONE,
	KYMO_ENCODING_UTF8,
	KYMO_ENCODING_ASCII,
	KYMO_ENCODING_UTF16BE,
	KYMO_ENCODING_UTF16LE,
	KYMO_ENCODING_UTF32BE,
	KYMO_ENCODING_UTF32LE
};

#define KYMO_VARIES UINT64_MAX

KYMO_API enum kymo_field_kind kymo_field_class_kind(const struct kymo_field_class *cls);
/* The name of a kind: "unsigned integer", "structure". Never NULL. */
KYMO_API const char *kymo_field_kind_text(enum kymo_field_kind kind);
/* The field's size in bits; KYMO_VARIES when events differ in it. */
KYMO_API uint64_t kymo_field_class_size_bits(const struct kymo_field_class *cls);
/* The field's alignment in its packet, in bits. */
KYMO_API uint32_t kymo_field_class_align_bits(const struct kymo_field_class *cls);
/* The name of the field's type (CTF 1.8 names enumerations and structures), or NULL. */
KYMO_API const char *kymo_field_class_type_name(const struct kymo_field_class *cls);
/* The clock of a number that is a time, or NULL. */
KYMO_API const struct kymo_clock *kymo_field_class_clock(const struct kymo_field_class *cls);
/*
 * Attributes as in kymo_trace_attributes(): of a field's type; of member or option @i, which can
 * have its own.
 */
KYMO_API const char *kymo_field_class_attributes(const struct kymo_field_class *cls);
KYMO_API const char *kymo_field_class_member_attributes(const struct kymo_field_class *cls,
							size_t i);
/* The base in which the tracer wants a number to be shown: 2, 8, 10 or 16. */
KYMO_API unsigned int kymo_field_class_base(const struct kymo_field_class *cls);
KYMO_API bool kymo_field_class_is_big_endian(const struct kymo_field_class *cls);
/* The encoding of a STRING or TEXT. */
KYMO_API enum kymo_encoding kymo_field_class_encoding(const struct kymo_field_class *cls);

/* Enumerations (integers with labels) and the flags of bit maps. */
KYMO_API bool kymo_field_class_is_enum(const struct kymo_field_class *cls);
KYMO_API size_t kymo_field_class_n_labels(const struct kymo_field_class *cls);
/*
 * Label @i, and the number of value ranges that it names. The second function returns range @range
 * of that label: both ends are included, as 64 bits, signed when the class is signed. False: no
 * such range exists.
 */
KYMO_API const char *kymo_field_class_label(const struct kymo_field_class *cls, size_t i,
					    size_t *n_ranges);
KYMO_API bool kymo_field_class_label_range(const struct kymo_field_class *cls, size_t i,
					   size_t range, uint64_t *begin, uint64_t *end);
/* The first label that covers @value, or NULL. */
KYMO_API const char *kymo_field_class_label_of(const struct kymo_field_class *cls, uint64_t value);

/* The members of a STRUCT, the options of a VARIANT, or the one member of an OPTIONAL. */
KYMO_API size_t kymo_field_class_n_members(const struct kymo_field_class *cls);
KYMO_API const struct kymo_field_class *kymo_field_class_member(const struct kymo_field_class *cls,
								size_t i);
KYMO_API const char *kymo_field_class_member_name(const struct kymo_field_class *cls, size_t i);
KYMO_API const struct kymo_field_class *
kymo_field_class_find_member(const struct kymo_field_class *cls, const char *name);

/* The class of an ARRAY's elements. */
KYMO_API const struct kymo_field_class *
kymo_field_class_element(const struct kymo_field_class *cls);
/*
 * The number of elements of an ARRAY, or of bytes of a TEXT or BLOB; KYMO_VARIES when events differ
 * in it.
 */
KYMO_API uint64_t kymo_field_class_length(const struct kymo_field_class *cls);
/* The media type of a BLOB's bytes ("image/png"), or NULL. */
KYMO_API const char *kymo_field_class_media_type(const struct kymo_field_class *cls);

/*
 * The class of the field that holds the length of an ARRAY, TEXT or BLOB, the selector of a
 * VARIANT, or the presence of an OPTIONAL; or NULL. *scope is set to the scope of that field.
 * @scope may be NULL.
 */
KYMO_API const struct kymo_field_class *
kymo_field_class_length_or_selector(const struct kymo_field_class *cls, enum kymo_scope *scope);
/*
 * Range @range of the selector values for which a VARIANT has option @i, or for which an OPTIONAL
 * (@i is 0) is present. Format: see kymo_field_class_label_range(). An OPTIONAL without ranges is
 * present for every value except 0.
 */
KYMO_API bool kymo_field_class_option_range(const struct kymo_field_class *cls, size_t i,
					    size_t range, uint64_t *begin, uint64_t *end);

#ifdef __cplusplus
}
#endif

#endif
