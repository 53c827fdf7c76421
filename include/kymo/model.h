/* SPDX-License-Identifier: MIT */
/*
 * What a trace's metadata says: traces, data streams, event classes, fields, clocks.
 *
 *	trace ── data stream (a file)
 *	  │         └ has a stream class
 *	  ├── stream class ── event class ── structures of fields, one per scope
 *	  ├── clock
 *	  └── environment
 *
 * All of it is read only and comes from a reader (reader.h): kymo_reader_trace(), or
 * event->event_class. What functions return is borrowed and lives until kymo_reader_close().
 * Functions here never fail: they answer NULL, 0 or false for what is not there, also for an
 * index out of range or an object that is NULL.
 *
 * Names are as people know them: the '_' that CTF 1.8 writes before field names is left out.
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
struct kymo_stream_class; /* what the events of like data streams have in common */
struct kymo_event_class;  /* an event's type, such as sched_switch */
struct kymo_field_class;  /* a field's type */
struct kymo_clock;

/* ---- traces ---------------------------------------------------------------------------- */

/* The directory that holds the metadata. */
KYMO_API const char *kymo_trace_path(const struct kymo_trace *trace);
/* The version of CTF: 1, 8 or 2, 0. */
KYMO_API void kymo_trace_version(const struct kymo_trace *trace, unsigned int *major,
				 unsigned int *minor);
/* What CTF 2 calls it, or NULL. */
KYMO_API const char *kymo_trace_name(const struct kymo_trace *trace);
/*
 * What the producer says of the trace beyond what reading needs, in CTF 2: a JSON object by namespace,
 * {"example.com": {"build": 7}}, on one line; or NULL. Others below have attributes, too.
 */
KYMO_API const char *kymo_trace_attributes(const struct kymo_trace *trace);
/* The byte order of numbers that do not tell their own. */
KYMO_API bool kymo_trace_is_big_endian(const struct kymo_trace *trace);
/* 16 bytes, or NULL. */
KYMO_API const uint8_t *kymo_trace_uuid(const struct kymo_trace *trace);

/* The environment: what the tracer says of itself and of the machine. */
KYMO_API size_t kymo_trace_n_env(const struct kymo_trace *trace);
/*
 * Entry @i. A text: *text is set; a number: *text is NULL and *number is set. Either pointer may
 * be NULL. Returns the entry's name.
 */
KYMO_API const char *kymo_trace_env(const struct kymo_trace *trace, size_t i, const char **text,
				    int64_t *number);
/* The text of entry @name ("hostname"), or NULL: there is none, or it is a number. */
KYMO_API const char *kymo_trace_env_text(const struct kymo_trace *trace, const char *name);

KYMO_API size_t kymo_trace_n_clocks(const struct kymo_trace *trace);
KYMO_API const struct kymo_clock *kymo_trace_clock(const struct kymo_trace *trace, size_t i);
KYMO_API size_t kymo_trace_n_stream_classes(const struct kymo_trace *trace);
KYMO_API const struct kymo_stream_class *kymo_trace_stream_class(const struct kymo_trace *trace,
								 size_t i);
/* Event classes of all stream classes; @i is what kymo_event_class_index() says. */
KYMO_API size_t kymo_trace_n_event_classes(const struct kymo_trace *trace);
KYMO_API const struct kymo_event_class *kymo_trace_event_class(const struct kymo_trace *trace,
							       size_t i);
/* The first event class named @name, or NULL. */
KYMO_API const struct kymo_event_class *kymo_trace_find_event_class(const struct kymo_trace *trace,
								    const char *name);

/* ---- data streams ------------------------------------------------------------------------ */

#define KYMO_NO_CPU UINT32_MAX

KYMO_API const struct kymo_trace *kymo_stream_trace(const struct kymo_stream *stream);
/* NULL for an empty file, and for one whose first packet is damaged. */
KYMO_API const struct kymo_stream_class *kymo_stream_stream_class(const struct kymo_stream *stream);
/* The file's name, "channel0_1", and its whole path. */
KYMO_API const char *kymo_stream_name(const struct kymo_stream *stream);
KYMO_API const char *kymo_stream_path(const struct kymo_stream *stream);
KYMO_API uint64_t kymo_stream_size_bytes(const struct kymo_stream *stream);
/* The CPU that its first packet names, or KYMO_NO_CPU. */
KYMO_API uint32_t kymo_stream_cpu(const struct kymo_stream *stream);
/* Its number among all data streams of the reader: kymo_reader_stream(). */
KYMO_API size_t kymo_stream_index(const struct kymo_stream *stream);

/*
 * The times of its first and its last event, in ns from the clock's origin; only its ends are
 * read, and what can be read counts. False, and both INT64_MIN, when no event has a time.
 */
KYMO_API bool kymo_stream_range(const struct kymo_stream *stream, int64_t *begin_ns,
				int64_t *end_ns);

/* What is not known of a packet is KYMO_UNKNOWN; times in ns are INT64_MIN then. */
#define KYMO_UNKNOWN UINT64_MAX

/* A packet, as its header and context say. The library's own may be larger: use it where it is. */
struct kymo_packet {
	/*
	 * In the data stream. One that lies in several files counts on behind each, from the next
	 * page on.
	 */
	uint64_t offset_bytes;
	uint64_t packet_bits, content_bits; /* with padding, and without */
	uint64_t begin_cycles, end_cycles;
	int64_t begin_ns, end_ns; /* from the clock's origin */
	uint64_t sequence;	  /* its number */
	uint64_t discarded;	  /* events that the tracer could not keep until its end, in all */
};

struct kymo_packets;

/*
 * The packets of @stream, from its index or by looking at their headers.
 *
 * Returns 0 and *packets, which is the caller's until kymo_packets_free() and does not outlive
 * the reader; KYMO_E_FORMAT: the same, but they end with damage (@err has file and offset);
 * KYMO_E_INVALID or KYMO_E_MEMORY: *packets is NULL.
 */
KYMO_API int kymo_packets_open(const struct kymo_stream *stream, struct kymo_packets **packets,
			       struct kymo_error *err);
KYMO_API void kymo_packets_free(struct kymo_packets *packets); /* NULL is fine */
KYMO_API size_t kymo_packets_n(const struct kymo_packets *packets);
KYMO_API const struct kymo_packet *kymo_packets_get(const struct kymo_packets *packets, size_t i);

/* ---- clocks ------------------------------------------------------------------------------ */

KYMO_API const char *kymo_clock_name(const struct kymo_clock *clock);
KYMO_API const char *kymo_clock_description(const struct kymo_clock *clock); /* or NULL */
KYMO_API const char *kymo_clock_attributes(const struct kymo_clock *clock);  /* or NULL */
KYMO_API const uint8_t *kymo_clock_uuid(const struct kymo_clock *clock);     /* or NULL */
KYMO_API uint64_t kymo_clock_frequency_hz(const struct kymo_clock *clock);
KYMO_API uint64_t kymo_clock_precision_cycles(const struct kymo_clock *clock);
/* Cycle 0 is so long after the clock's origin: seconds, and cycles on top. */
KYMO_API int64_t kymo_clock_offset_s(const struct kymo_clock *clock);
KYMO_API int64_t kymo_clock_offset_cycles(const struct kymo_clock *clock);
/* Is the origin the Unix epoch (1970-01-01, UTC)? Else it is unknown: often the boot. */
KYMO_API bool kymo_clock_is_unix_epoch(const struct kymo_clock *clock);
/* Cycles as ns from the origin; saturates at the ends of int64_t. */
KYMO_API int64_t kymo_clock_to_ns(const struct kymo_clock *clock, uint64_t cycles);

/* ---- stream and event classes ------------------------------------------------------------- */

/* Where fields lie. The first three describe packets and headers; readers want the others. */
enum kymo_scope {
	KYMO_SCOPE_PACKET_HEADER,
	KYMO_SCOPE_PACKET_CONTEXT, /* "cpu_id" is here */
	KYMO_SCOPE_EVENT_HEADER,
	KYMO_SCOPE_STREAM_CONTEXT, /* context fields that all events of a stream class have */
	KYMO_SCOPE_EVENT_CONTEXT,  /* context fields of one event class */
	KYMO_SCOPE_PAYLOAD,	   /* the event's own fields */
	KYMO_SCOPE_COUNT
};

KYMO_API uint64_t kymo_stream_class_id(const struct kymo_stream_class *cls);
KYMO_API const char *kymo_stream_class_name(const struct kymo_stream_class *cls); /* or NULL */
KYMO_API const char *kymo_stream_class_attributes(const struct kymo_stream_class *cls);
/* The clock of its events' times, or NULL. */
KYMO_API const struct kymo_clock *kymo_stream_class_clock(const struct kymo_stream_class *cls);
KYMO_API size_t kymo_stream_class_n_event_classes(const struct kymo_stream_class *cls);
KYMO_API const struct kymo_event_class *
kymo_stream_class_event_class(const struct kymo_stream_class *cls, size_t i);

/* The structure of its fields in @scope (the first four), or NULL. */
KYMO_API const struct kymo_field_class *kymo_stream_class_scope(const struct kymo_stream_class *cls,
								enum kymo_scope scope);

KYMO_API const char *kymo_event_class_name(const struct kymo_event_class *cls); /* or "" */
KYMO_API uint64_t kymo_event_class_id(const struct kymo_event_class *cls);
/* Its number in its trace, from 0: for tables of one's own. */
KYMO_API size_t kymo_event_class_index(const struct kymo_event_class *cls);
KYMO_API const struct kymo_stream_class *
kymo_event_class_stream_class(const struct kymo_event_class *cls);
/* False when the class has none; *loglevel is then left alone. */
KYMO_API bool kymo_event_class_loglevel(const struct kymo_event_class *cls, int64_t *loglevel);
/* Where its model is described (LTTng's "model.emf.uri"), or NULL. */
KYMO_API const char *kymo_event_class_emf_uri(const struct kymo_event_class *cls);
/* Log level and the model's URI are none of them. */
KYMO_API const char *kymo_event_class_attributes(const struct kymo_event_class *cls);
/* The structure (KYMO_FIELD_STRUCT) of its fields in @scope, or NULL. */
KYMO_API const struct kymo_field_class *kymo_event_class_scope(const struct kymo_event_class *cls,
							       enum kymo_scope scope);

/* ---- fields ------------------------------------------------------------------------------ */

enum kymo_field_kind {
	KYMO_FIELD_BITS,    /* bits without a meaning as a number */
	KYMO_FIELD_BITMAP,  /* flags with names: kymo_field_class_label() */
	KYMO_FIELD_BOOL,    /* a number, 0 or not */
	KYMO_FIELD_UINT,    /* unsigned integer; with labels: an enumeration */
	KYMO_FIELD_SINT,    /* signed integer, likewise */
	KYMO_FIELD_FLOAT,   /* floating point number */
	KYMO_FIELD_VARUINT, /* integers whose size varies (LEB128) */
	KYMO_FIELD_VARSINT,
	KYMO_FIELD_STRING, /* text that ends with a NUL */
	KYMO_FIELD_TEXT,   /* text of a length; what follows a NUL does not belong to it */
	KYMO_FIELD_BLOB,   /* bytes of a length */
	KYMO_FIELD_ARRAY,  /* of a fixed length or not */
	KYMO_FIELD_STRUCT,
	KYMO_FIELD_OPTIONAL, /* its one member is there or not */
	KYMO_FIELD_VARIANT   /* one of its members is there */
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
/* A word for a kind: "unsigned integer", "structure". Never NULL. */
KYMO_API const char *kymo_field_kind_text(enum kymo_field_kind kind);
/* Its size in bits; KYMO_VARIES when that is not always the same. */
KYMO_API uint64_t kymo_field_class_size_bits(const struct kymo_field_class *cls);
/* In the packet it begins at a multiple of so many bits. */
KYMO_API uint32_t kymo_field_class_align_bits(const struct kymo_field_class *cls);
/* The name of its type where it has one (CTF 1.8's enumerations and structures), or NULL. */
KYMO_API const char *kymo_field_class_type_name(const struct kymo_field_class *cls);
/* The clock whose time a number is, or NULL. */
KYMO_API const struct kymo_clock *kymo_field_class_clock(const struct kymo_field_class *cls);
/* As kymo_trace_attributes(): of a field's type; of a member or option, which may have its own. */
KYMO_API const char *kymo_field_class_attributes(const struct kymo_field_class *cls);
KYMO_API const char *kymo_field_class_member_attributes(const struct kymo_field_class *cls,
							size_t i);
/* What the tracer wants a number to be shown in: 2, 8, 10 or 16. */
KYMO_API unsigned int kymo_field_class_base(const struct kymo_field_class *cls);
KYMO_API bool kymo_field_class_is_big_endian(const struct kymo_field_class *cls);
/* Of STRING and TEXT. */
KYMO_API enum kymo_encoding kymo_field_class_encoding(const struct kymo_field_class *cls);

/* Enumerations (integers with labels) and the flags of bit maps. */
KYMO_API bool kymo_field_class_is_enum(const struct kymo_field_class *cls);
KYMO_API size_t kymo_field_class_n_labels(const struct kymo_field_class *cls);
/*
 * Label @i and how many ranges of values it stands for. Range @range of it, inclusive, as
 * 64 bits that are signed when the class is. False: no such range.
 */
KYMO_API const char *kymo_field_class_label(const struct kymo_field_class *cls, size_t i,
					    size_t *n_ranges);
KYMO_API bool kymo_field_class_label_range(const struct kymo_field_class *cls, size_t i,
					   size_t range, uint64_t *begin, uint64_t *end);
/* The first label that covers @value, or NULL. */
KYMO_API const char *kymo_field_class_label_of(const struct kymo_field_class *cls, uint64_t value);

/* Members of a STRUCT, options of a VARIANT, the one member of an OPTIONAL. */
KYMO_API size_t kymo_field_class_n_members(const struct kymo_field_class *cls);
KYMO_API const struct kymo_field_class *kymo_field_class_member(const struct kymo_field_class *cls,
								size_t i);
KYMO_API const char *kymo_field_class_member_name(const struct kymo_field_class *cls, size_t i);
KYMO_API const struct kymo_field_class *
kymo_field_class_find_member(const struct kymo_field_class *cls, const char *name);

/* What an ARRAY consists of. */
KYMO_API const struct kymo_field_class *
kymo_field_class_element(const struct kymo_field_class *cls);
/* Elements of an ARRAY, bytes of a TEXT or BLOB; KYMO_VARIES when each event says. */
KYMO_API uint64_t kymo_field_class_length(const struct kymo_field_class *cls);
/* What the bytes of a BLOB are ("image/png"), or NULL. */
KYMO_API const char *kymo_field_class_media_type(const struct kymo_field_class *cls);

/*
 * The field that says how long an ARRAY, TEXT or BLOB is, which option a VARIANT has, or whether an
 * OPTIONAL is there: its class, which is one of @scope; or NULL. @scope may be NULL.
 */
KYMO_API const struct kymo_field_class *
kymo_field_class_length_or_selector(const struct kymo_field_class *cls, enum kymo_scope *scope);
/*
 * Range @range of the values of that field for which a VARIANT has option @i, or an OPTIONAL (@i
 * is 0) is there; as kymo_field_class_label_range(). An OPTIONAL without any is there for all but 0.
 */
KYMO_API bool kymo_field_class_option_range(const struct kymo_field_class *cls, size_t i,
					    size_t range, uint64_t *begin, uint64_t *end);

#ifdef __cplusplus
}
#endif

#endif
