/* SPDX-License-Identifier: MIT */
/*
 * Reading traces: open, go through the events of all data streams in the order of time, look at
 * fields.
 *
 *	const char *paths[] = {"my-trace"};
 *	struct kymo_reader *reader;
 *	struct kymo_batch batch;
 *	struct kymo_error err;
 *	int ret;
 *
 *	ret = kymo_reader_open(paths, 1, NULL, &reader, &err);
 *	if (ret < 0)
 *		...					err.message, err.path
 *	while ((ret = kymo_reader_next(reader, &batch, &err)) > 0) {
 *		kymo_batch_foreach(&batch, event)
 *			puts(kymo_event_class_name(event->event_class));
 *	}
 *	kymo_reader_close(reader);
 *
 * Events come in batches, because one call per event would cost more than the event. A batch's
 * events belong to one data stream and are in order; those of later batches are not earlier.
 * Equal times have a fixed order too (by data stream), so reading again gives the same again.
 *
 * Events and what is read from them are borrowed: valid until the next kymo_reader_next(),
 * kymo_reader_seek() or kymo_reader_close() of their reader.
 *
 * A damaged trace gives everything that comes before the damage, and all of its other data
 * streams; then kymo_reader_next() returns the error once, with file and offset, and 0 after it.
 *
 * Threads: one at a time per reader; readers are independent. Between two calls on the reader,
 * any number of threads may look at its events, each with a struct kymo_values of its own.
 *
 * NULL for an argument that needs something is KYMO_E_INVALID, never a crash.
 */
#ifndef KYMO_READER_H
#define KYMO_READER_H

#include <kymo/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kymo_reader;

/* ---- opening ---------------------------------------------------------------------------- */

enum kymo_log_level { KYMO_LOG_INFO, KYMO_LOG_WARNING };

/* Begin with: struct kymo_reader_options options = KYMO_READER_OPTIONS_INIT; */
struct kymo_reader_options {
	size_t size; /* of this struct, as the program was compiled: later versions grow */
	/* Only events that match this expression (docs/filter.md), or NULL. */
	const char *filter;
	/* Only events whose name matches one of these wildcards ("sched_*"); none: all. */
	const char *const *events;
	size_t n_events;
	/* Only data streams whose name matches one of these; none: all. */
	const char *const *streams;
	size_t n_streams;
	/* Only events in this range, inclusive; ns from the clock's origin. */
	int64_t begin_ns, end_ns;
	/*
	 * Called with what is worth telling but no error: an index that is wrong and was
	 * ignored, time that goes back. @text is one line, valid during the call; NULL: nowhere.
	 */
	void (*log)(void *data, enum kymo_log_level level, const char *text);
	void *log_data;
};

#define KYMO_READER_OPTIONS_INIT                                                                  \
	{                                                                                         \
		sizeof(struct kymo_reader_options), NULL, NULL, 0, NULL, 0, INT64_MIN, INT64_MAX, \
			NULL, NULL                                                                \
	}

/*
 * Open every trace at or below each of @paths: each directory that holds a file `metadata`.
 *
 * @options: NULL for everything. Copied; the texts too.
 * Returns 0 and *reader, or (*reader is then NULL)
 *   KYMO_E_NOT_FOUND    a path that does not exist, or holds no trace
 *   KYMO_E_FORMAT       metadata that cannot be understood: @err has file, line and column
 *   KYMO_E_INVALID      a filter with a mistake (@err has the column), a wildcard that matches
 *                       no event or stream, options or paths that are NULL or of no size
 *   KYMO_E_UNSUPPORTED  options of a later version of the library, or what metadata asks for
 *   KYMO_E_IO, KYMO_E_PERMISSION, KYMO_E_MEMORY
 */
KYMO_API int kymo_reader_open(const char *const *paths, size_t n_paths,
			      const struct kymo_reader_options *options,
			      struct kymo_reader **reader, struct kymo_error *err);

/* Ends everything that was borrowed from @reader. NULL is fine. */
KYMO_API void kymo_reader_close(struct kymo_reader *reader);

KYMO_API size_t kymo_reader_n_traces(const struct kymo_reader *reader);
KYMO_API const struct kymo_trace *kymo_reader_trace(const struct kymo_reader *reader, size_t i);
/* Data streams of all traces. */
KYMO_API size_t kymo_reader_n_streams(const struct kymo_reader *reader);
KYMO_API const struct kymo_stream *kymo_reader_stream(const struct kymo_reader *reader, size_t i);

/*
 * The times of the first and the last event, whatever the options select; reads the ends of each
 * data stream only. Both INT64_MIN when no event has a time. 0, KYMO_E_INVALID, KYMO_E_MEMORY.
 */
KYMO_API int kymo_reader_range(const struct kymo_reader *reader, int64_t *begin_ns, int64_t *end_ns,
			       struct kymo_error *err);

/* ---- events ----------------------------------------------------------------------------- */

/*
 * An event. The library's own is larger and keeps more behind these: use it where it is, never
 * copy it, never count on its size.
 */
struct kymo_event {
	const struct kymo_event_class *event_class;
	int64_t time_ns; /* from the clock's origin; INT64_MIN when it has no time */
	uint64_t cycles; /* the same in the clock's own cycles */
	uint32_t cpu;	 /* or KYMO_NO_CPU */
};

/* What the tracer could not keep. */
struct kymo_loss {
	uint64_t events;	  /* event records; 0: only packets are missing */
	uint64_t packets;	  /* packets that the trace should have but has not */
	int64_t begin_ns, end_ns; /* they were lost in between; INT64_MIN: not known */
};

/* Events of one data stream, and what was lost right before them. */
struct kymo_batch {
	const struct kymo_stream *stream;
	const struct kymo_loss *loss; /* usually NULL */
	size_t n_events;	      /* may be 0 when there is a loss */
	/* Use kymo_batch_event() or kymo_batch_foreach(). */
	const void *first_event;
	size_t event_bytes;
};

/*
 * Get the next events.
 *
 * Returns 1: *batch is filled; 0: the end; or
 *   KYMO_E_FORMAT   damage: @err has file and offset. Returned once, when all that can be read
 *                   has been; the next call returns 0
 *   KYMO_E_INVALID  @reader or @batch is NULL
 *   KYMO_E_MEMORY
 */
KYMO_API int kymo_reader_next(struct kymo_reader *reader, struct kymo_batch *batch,
			      struct kymo_error *err);

/*
 * Move @reader to the first event at or after @time_ns (from the clock's origin), forwards or
 * backwards, also after the end. Never before options.begin_ns.
 *
 * Returns 0, or what kymo_reader_next() does.
 */
KYMO_API int kymo_reader_seek(struct kymo_reader *reader, int64_t time_ns, struct kymo_error *err);

/* Event @i of @batch, below n_events. */
static inline const struct kymo_event *kymo_batch_event(const struct kymo_batch *batch, size_t i)
{
	return (const struct kymo_event *)(const void *)((const char *)batch->first_event +
							 i * batch->event_bytes);
}

/* for (each event of @batch), as a pointer named @event that the macro declares. */
#define kymo_batch_foreach(batch, event)                                                        \
	for (const struct kymo_event *event = kymo_batch_event(batch, 0),                       \
				     *event##_end = kymo_batch_event(batch, (batch)->n_events); \
	     event != event##_end;                                                              \
	     event = (const struct kymo_event *)(const void *)((const char *)event +            \
							       (batch)->event_bytes))

/* ---- single fields ------------------------------------------------------------------------ */

/*
 * A field of an event class: found once, read from many events. Lives where the program puts it,
 * may be copied, needs no freeing. All zeros is a field that no event has.
 */
struct kymo_field {
	const struct kymo_event_class *event_class;
	const struct kymo_field_class *field_class;
	uint64_t internal[6];
};

/*
 * Find the field named @name of @event_class: in its payload, its own context, its stream
 * class' context, or the packet context, in this order. Fields inside of structures and arrays
 * have no handle: use kymo_event_values().
 *
 * Returns 0, KYMO_E_NOT_FOUND or KYMO_E_INVALID (something is NULL); then @field is one that
 * no event has.
 */
KYMO_API int kymo_field_find(const struct kymo_event_class *event_class, const char *name,
			     struct kymo_field *field);
/* The same in @scope only. */
KYMO_API int kymo_field_find_in(const struct kymo_event_class *event_class, enum kymo_scope scope,
				const char *name, struct kymo_field *field);

/*
 * The value of @field in @event, exactly, or false and *value is left alone: the event is of
 * another class than the field, the field is of another kind, the value does not fit
 * (a negative number into unsigned 64 bits), or the bytes are damaged.
 *
 * u64, i64: integers, enumerations, booleans, bit arrays of up to 64 bits.
 * f64: floating point numbers of up to 64 bits (wider ones are rounded); integers too.
 */
KYMO_API bool kymo_event_get_u64(const struct kymo_event *event, const struct kymo_field *field,
				 uint64_t *value);
KYMO_API bool kymo_event_get_i64(const struct kymo_event *event, const struct kymo_field *field,
				 int64_t *value);
KYMO_API bool kymo_event_get_f64(const struct kymo_event *event, const struct kymo_field *field,
				 double *value);

/*
 * A STRING or TEXT in UTF-8 or ASCII: NOT followed by a NUL, *len_bytes says where it ends.
 * NULL and 0 where the functions above say false, and for other encodings.
 */
KYMO_API const char *kymo_event_get_text(const struct kymo_event *event,
					 const struct kymo_field *field, size_t *len_bytes);

/* The label of an enumeration's value, or NULL. */
KYMO_API const char *kymo_event_get_label(const struct kymo_event *event,
					  const struct kymo_field *field);

/* ---- all fields --------------------------------------------------------------------------- */

/*
 * Walking every field of an event, whatever it consists of:
 *
 *	ret = kymo_event_values(event, KYMO_SCOPE_PAYLOAD, values, &root, &err);
 *	if (ret > 0)
 *		value = kymo_value_first(root);
 *		for (i = 0; i < kymo_value_n_children(root); i++, value = kymo_value_next(value))
 *			kymo_value_name(value), ...
 *
 * Values are borrowed from @values until its next use, texts from the event.
 * Unlike above, arguments must not be NULL, and kinds must be those that a function names.
 */
struct kymo_values; /* memory for them, used again and again */
struct kymo_value;

KYMO_API struct kymo_values *kymo_values_new(void); /* NULL: out of memory */
KYMO_API void kymo_values_free(struct kymo_values *values);

/*
 * Decode all of @scope. Returns 1 and *root, a structure; 0: the event has no such scope; or
 * KYMO_E_FORMAT (with the offset in the file), KYMO_E_INVALID, KYMO_E_LIMIT, KYMO_E_MEMORY.
 */
KYMO_API int kymo_event_values(const struct kymo_event *event, enum kymo_scope scope,
			       struct kymo_values *values, const struct kymo_value **root,
			       struct kymo_error *err);

KYMO_API const struct kymo_field_class *kymo_value_class(const struct kymo_value *value);
KYMO_API enum kymo_field_kind kymo_value_kind(const struct kymo_value *value);
/* Of members of a structure; NULL for elements, for what an OPTIONAL or VARIANT holds, for roots. */
KYMO_API const char *kymo_value_name(const struct kymo_value *value);

/* Members of a STRUCT, elements of an ARRAY, 0 or 1 of an OPTIONAL, 1 of a VARIANT; else 0. */
KYMO_API size_t kymo_value_n_children(const struct kymo_value *value);
/* The first child (when there is one), and the sibling behind a child that is not the last. */
KYMO_API const struct kymo_value *kymo_value_first(const struct kymo_value *value);
KYMO_API const struct kymo_value *kymo_value_next(const struct kymo_value *value);
/* The name of the option that a VARIANT holds, or NULL. */
KYMO_API const char *kymo_value_option(const struct kymo_value *value);

/*
 * Numbers: the bits of BITS, BITMAP, BOOL, UINT, VARUINT; as signed ones of SINT, VARSINT; of
 * FLOAT. Of any other kind: 0.
 */
KYMO_API uint64_t kymo_value_u64(const struct kymo_value *value);
KYMO_API int64_t kymo_value_i64(const struct kymo_value *value);
KYMO_API double kymo_value_f64(const struct kymo_value *value);
/* Bits 64 * @word and up of a number; all there is to read beyond 64 bits. 0 for FLOAT. */
KYMO_API uint64_t kymo_value_word(const struct kymo_value *value, unsigned int word);
/* The first label that covers an enumeration's value, or NULL. */
KYMO_API const char *kymo_value_label(const struct kymo_value *value);

/*
 * The bytes of a STRING or TEXT (up to its NUL, in its encoding) or BLOB; not followed by a NUL.
 * Of any other kind: NULL and 0.
 */
KYMO_API const char *kymo_value_bytes(const struct kymo_value *value, size_t *len_bytes);

#ifdef __cplusplus
}
#endif

#endif
