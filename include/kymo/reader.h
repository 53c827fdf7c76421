/* SPDX-License-Identifier: MIT */
/*
 * Reading traces: a program opens traces, goes through the events of all data streams in the order
 * of time, and reads their fields.
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
 * The reader returns events in batches, because a call per event would cost more than the event.
 * The events of a batch are in the order of time, and no event of a later batch is earlier. Events
 * with equal times have a fixed order too (by data stream), so every run gives the same order.
 *
 * The caller borrows events and their values: they are valid until the next kymo_reader_next(),
 * kymo_reader_seek() or kymo_reader_close() of their reader.
 *
 * Of a damaged trace, the reader returns all events before the damage, and all events of the other
 * data streams. Then kymo_reader_next() returns the error once, with file and offset, and 0 after
 * that. With options.recover the reader also returns the readable events after the damage.
 *
 * Threads: one thread at a time per reader; readers are independent of each other. Between two
 * calls on the reader, any number of threads may read its events, each with its own struct
 * kymo_values.
 *
 * A NULL for a required argument gives KYMO_E_INVALID, never a crash.
 */
#ifndef KYMO_READER_H
#define KYMO_READER_H

#include <string.h>

#include <kymo/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kymo_reader;

/* ---- opening ---------------------------------------------------------------------------- */

enum kymo_log_level { KYMO_LOG_INFO, KYMO_LOG_WARNING };

/* Begin with: struct kymo_reader_options options = kymo_reader_options_init(); */
struct kymo_reader_options {
	/*
	 * The size of this struct in the compiled program; later versions of the library may have
	 * more members.
	 */
	size_t size;
	/* Only events that match this expression (docs/filter.md), or NULL. */
	const char *filter;
	/*
	 * Selects events whose name matches one of these wildcards ("sched_*"); none: all events. A
	 * wildcard after '!' excludes events. When the first wildcard has '!', it excludes events
	 * from all.
	 */
	const char *const *events;
	size_t n_events;
	/* Selects data streams by their names, with wildcards as above; none: all streams. */
	const char *const *streams;
	size_t n_streams;
	/* Selects the events in this range; both ends are included; ns from the clock's origin. */
	int64_t begin_ns, end_ns;
	/*
	 * The library calls this function with notices that are not errors: for example, it ignored
	 * a wrong index, or time went back. Notices about events come after the last event or at
	 * the close. @text is one line and valid during the call. NULL: the library drops notices.
	 */
	void (*log)(void *data, enum kymo_log_level level, const char *text);
	void *log_data;
	/*
	 * After damage, the reader continues with the next readable packet. It reports each damage
	 * as a loss (struct kymo_loss) instead of an error.
	 */
	bool recover;
	/*
	 * Compares the times of traces whose clocks are unrelated. Without this option, such traces
	 * give KYMO_E_FORMAT.
	 */
	bool force_correlate;
	/*
	 * Offsets that the reader adds to clocks: "OFFSET" for all traces, or "TRACE:OFFSET" for
	 * traces whose path, or the end of their path, matches the wildcard TRACE. OFFSET is in ns,
	 * or has a unit: "-1500ms". The sum of all matching offsets counts.
	 */
	const char *const *clock_offsets;
	size_t n_clock_offsets;
	/*
	 * The number of threads that decode, including the program's own thread. 1: no further
	 * threads; 0: as many as there are usable CPUs. Several threads help when the trace has
	 * several data streams. Events and their order do not depend on the number, and the library
	 * calls ->log in the program's thread.
	 */
	unsigned int jobs;
};

/* The defaults: all events, one thread. Threads: any. */
static inline struct kymo_reader_options kymo_reader_options_init(void)
{
	struct kymo_reader_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.begin_ns = INT64_MIN;
	options.end_ns = INT64_MAX;
	options.jobs = 1;
	return options;
}

/*
 * Open every trace at or below each of @paths. A trace is a directory with a file `metadata`.
 *
 * @options: NULL for the defaults. The reader copies them, with their texts.
 * Returns 0 and *reader; on failure *reader is NULL and the status is:
 *   KYMO_E_NOT_FOUND    a path does not exist, or has no trace
 *   KYMO_E_FORMAT       malformed metadata: @err has file, line and column; or the clocks of
 *                       the traces cannot be compared (see options.force_correlate)
 *   KYMO_E_INVALID      a mistake in the filter (@err has the column), a wildcard that matches
 *                       no event, stream or trace, a malformed clock offset, or options or
 *                       paths that are NULL or empty
 *   KYMO_E_UNSUPPORTED  options of a later version of the library, or an unsupported feature
 *                       in the metadata
 *   KYMO_E_IO, KYMO_E_PERMISSION, KYMO_E_MEMORY
 */
KYMO_API int kymo_reader_open(const char *const *paths, size_t n_paths,
			      const struct kymo_reader_options *options,
			      struct kymo_reader **reader, struct kymo_error *err);

/* Closes @reader and frees all objects that the caller borrowed from it. NULL is allowed. */
KYMO_API void kymo_reader_close(struct kymo_reader *reader);

KYMO_API size_t kymo_reader_n_traces(const struct kymo_reader *reader);
KYMO_API const struct kymo_trace *kymo_reader_trace(const struct kymo_reader *reader, size_t i);
/* The data streams of all traces. */
KYMO_API size_t kymo_reader_n_streams(const struct kymo_reader *reader);
KYMO_API const struct kymo_stream *kymo_reader_stream(const struct kymo_reader *reader, size_t i);

/*
 * The times of the first and the last event of the whole trace, without regard to the options.
 * Records that perf wrote for the time before its first sample do not count. The function reads
 * only the two ends of each data stream. Both times are INT64_MIN when no event has a time.
 *
 * Returns 0, KYMO_E_INVALID or KYMO_E_MEMORY.
 */
KYMO_API int kymo_reader_range(const struct kymo_reader *reader, int64_t *begin_ns, int64_t *end_ns,
			       struct kymo_error *err);

/*
 * The number of all events that kymo_reader_next() returns from the beginning. The position of
 * @reader does not matter and does not change. When options select only event names and streams,
 * the library counts events without decoding them.
 *
 * @n_events: set after KYMO_E_FORMAT too, to the number of readable events.
 * Returns 0, or a status of kymo_reader_next(). The library may call options.log again.
 */
KYMO_API int kymo_reader_count(struct kymo_reader *reader, uint64_t *n_events,
			       struct kymo_error *err);

/* ---- events ----------------------------------------------------------------------------- */

/*
 * An event. The library's own struct is larger and has further members after these. Programs use it
 * through the pointer: they never copy it and never rely on its size.
 */
struct kymo_event {
	const struct kymo_event_class *event_class;
	int64_t time_ns; /* from the clock's origin; INT64_MIN when the event has no time */
	uint64_t cycles; /* the same time in the clock's own cycles */
	uint32_t cpu;	 /* or KYMO_NO_CPU */
};

/*
 * A loss: events that the tracer discarded, or damage (options.recover). The library's own struct
 * may be larger: programs use it through the pointer.
 */
struct kymo_loss {
	uint64_t events; /* number of lost events; 0: only packets are missing, or this is damage */
	uint64_t packets;	  /* number of missing packets */
	int64_t begin_ns, end_ns; /* the time in which the loss happened; INT64_MIN: unknown */
	const struct kymo_stream *stream;
	/* NULL, or the damage: message, file and offset. */
	const struct kymo_error *damage;
	uint64_t skipped_bytes; /* bytes between the damage and the place where reading continues */
};

/*
 * A batch: events in the order of time, and the loss directly before them. A batch is valid until
 * the next call on the reader.
 */
struct kymo_batch {
	const struct kymo_loss *loss; /* usually NULL */
	size_t n_events;	      /* may be 0 when there is a loss */
	/*
	 * Internal. Programs use kymo_batch_event(), kymo_batch_foreach() and kymo_batch_stream().
	 */
	const void *first_event;
	size_t event_bytes;
	const void *streams;
	/* For later versions of the library. Programs must not change it. */
	uint64_t reserved[8];
};

/*
 * Get the next events.
 *
 * Returns 1 when *batch has events or a loss, 0 at the end, or
 *   KYMO_E_FORMAT   damage: @err has file and offset. Returned once, after all readable events;
 *                   the next call returns 0
 *   KYMO_E_INVALID  @reader or @batch is NULL
 *   KYMO_E_MEMORY
 */
KYMO_API int kymo_reader_next(struct kymo_reader *reader, struct kymo_batch *batch,
			      struct kymo_error *err);

/*
 * Move @reader to the first event at or after @time_ns (from the clock's origin), forwards or
 * backwards, also after the end. The reader never moves to a time before options.begin_ns.
 *
 * Returns 0, or a status of kymo_reader_next().
 */
KYMO_API int kymo_reader_seek(struct kymo_reader *reader, int64_t time_ns, struct kymo_error *err);

/*
 * Move @reader to the first event that is at most @before_ns older than the last event. 0 selects
 * the last event (and all events of the same time), 1000000000 the last second. The reader does not
 * read the events before that place.
 *
 * The last event is that of all data streams, or options.end_ns if that is earlier; other
 * selections have no influence on it. Returns as kymo_reader_seek() does; KYMO_E_INVALID also for
 * @before_ns < 0.
 */
KYMO_API int kymo_reader_seek_end(struct kymo_reader *reader, int64_t before_ns,
				  struct kymo_error *err);

/* The data stream of @event, an event of @batch. NULL for NULL. */
KYMO_API const struct kymo_stream *kymo_batch_stream(const struct kymo_batch *batch,
						     const struct kymo_event *event);

/*
 * The place of @event, an event of @batch: returns the path of the event's file and sets
 * *offset_bytes to its first byte in that file. Events of some tracers begin inside of a byte; the
 * offset is then that of this byte. NULL for NULL.
 */
KYMO_API const char *kymo_batch_place(const struct kymo_batch *batch,
				      const struct kymo_event *event, uint64_t *offset_bytes);

/* Event @i of @batch. @i must be below n_events. */
static inline const struct kymo_event *kymo_batch_event(const struct kymo_batch *batch, size_t i)
{
	return (const struct kymo_event *)(const void *)((const char *)batch->first_event +
							 i * batch->event_bytes);
}

/* Loops over the events of @batch. The macro declares the pointer @event. */
#define kymo_batch_foreach(batch, event)                                                        \
	for (const struct kymo_event *event = kymo_batch_event(batch, 0),                       \
				     *event##_end = kymo_batch_event(batch, (batch)->n_events); \
	     event != event##_end;                                                              \
	     event = (const struct kymo_event *)(const void *)((const char *)event +            \
							       (batch)->event_bytes))

/* ---- single fields ------------------------------------------------------------------------ */

/*
 * A field of an event class. A program finds it once and then reads it from many events. The
 * program may put it anywhere and copy it; it needs no freeing; its reader must be open. A struct
 * of zeros is a field that no event has.
 */
struct kymo_field {
	const struct kymo_event_class *event_class;
	const struct kymo_field_class *field_class;
	uint64_t internal[8];
};

/*
 * Find a field of @event_class: in its payload, then its own context, then its stream class's
 * context, then the packet context.
 *
 * @path: a name, or a path to a field inside of other fields:
 *	ctx.perms[2].name	member "name" of element 2 of array "perms" of structure "ctx"
 *	value.number		option "number" of variant "value"; [1] is its second option
 * The member of an optional field has the name of the optional field.
 *
 * Returns 0, KYMO_E_NOT_FOUND (also for an element that no event can have), KYMO_E_LIMIT (inside of
 * more than 6 arrays) or KYMO_E_INVALID (malformed path, or a NULL). On failure @field becomes a
 * field that no event has.
 * Threads: any.
 */
KYMO_API int kymo_field_find(const struct kymo_event_class *event_class, const char *path,
			     struct kymo_field *field);
/*
 * Like kymo_field_find(), but in @scope only, which may also be KYMO_SCOPE_PACKET_HEADER or
 * KYMO_SCOPE_EVENT_HEADER.
 */
KYMO_API int kymo_field_find_in(const struct kymo_event_class *event_class, enum kymo_scope scope,
				const char *path, struct kymo_field *field);

/*
 * The structure of all fields in @scope. Returns 0, KYMO_E_NOT_FOUND (the class has no such scope)
 * or KYMO_E_INVALID.
 */
KYMO_API int kymo_field_root(const struct kymo_event_class *event_class, enum kymo_scope scope,
			     struct kymo_field *field);
/*
 * A child of @field by its number: member @i of a structure, element @i of an array, option @i of a
 * variant. With kymo_field_class_n_members() and kymo_event_get_length(), a program can go through
 * fields without knowing their names. @child may be @field. Returns as kymo_field_find() does.
 */
KYMO_API int kymo_field_child(const struct kymo_field *field, size_t i, struct kymo_field *child);
/* A member or option by its exact name. The name need not be a valid path. */
KYMO_API int kymo_field_member(const struct kymo_field *field, const char *name,
			       struct kymo_field *child);

/*
 * Does @event have @field? The result is false when the event is of another class, when the option
 * is not selected, when the optional field is absent, or when the array is shorter.
 */
KYMO_API bool kymo_event_has(const struct kymo_event *event, const struct kymo_field *field);

/*
 * The exact value of @field in @event. The functions return false and leave *value alone when the
 * event does not have the field, when the field is of another kind, when the value does not fit (a
 * negative number into unsigned 64 bits), or when the bytes are damaged. The value of a variant is
 * the value of its selected option.
 *
 * u64, i64: integers, enumerations, booleans, bit arrays and maps of up to 64 bits.
 * f64: floating point numbers of up to 128 bits (wide numbers are rounded); integers too.
 */
KYMO_API bool kymo_event_get_u64(const struct kymo_event *event, const struct kymo_field *field,
				 uint64_t *value);
KYMO_API bool kymo_event_get_i64(const struct kymo_event *event, const struct kymo_field *field,
				 int64_t *value);
KYMO_API bool kymo_event_get_f64(const struct kymo_event *event, const struct kymo_field *field,
				 double *value);

/*
 * Numbers of any size, bit by bit: words[0] has the least significant 64 bits. Bits above the
 * number's own size are copies of its sign, or zeros. A floating point number gives the bits of its
 * encoding. Returns false as above, or when @n_words is too small.
 */
KYMO_API bool kymo_event_get_words(const struct kymo_event *event, const struct kymo_field *field,
				   uint64_t *words, size_t n_words);

/*
 * A STRING or TEXT in UTF-8 or ASCII. No NUL follows it: *len_bytes is its length. Returns NULL and
 * 0 where the functions above return false, and for other encodings.
 */
KYMO_API const char *kymo_event_get_text(const struct kymo_event *event,
					 const struct kymo_field *field, size_t *len_bytes);

/*
 * A STRING or TEXT in any encoding, as well-formed UTF-8. U+FFFD replaces malformed characters.
 *
 * @buffer: gets whole characters and a NUL, at most @size_bytes in all; may be NULL when
 *	@size_bytes is 0.
 * Returns the length of the whole text in bytes, without the NUL. When the length is not below
 * @size_bytes, the text in the buffer is cut. When kymo_event_has() is false, or for other kinds,
 * the function returns SIZE_MAX and the buffer gets "".
 */
KYMO_API size_t kymo_event_get_utf8(const struct kymo_event *event, const struct kymo_field *field,
				    char *buffer, size_t size_bytes);

/* The bytes of a BLOB, STRING or TEXT (in its encoding, up to its NUL); or NULL and 0. */
KYMO_API const void *kymo_event_get_bytes(const struct kymo_event *event,
					  const struct kymo_field *field, size_t *len_bytes);

/* The number of elements of an ARRAY in @event. Returns false when the event has no such array. */
KYMO_API bool kymo_event_get_length(const struct kymo_event *event, const struct kymo_field *field,
				    uint64_t *n_elements);

/* The option of a VARIANT in @event: a number for kymo_field_class_member(). */
KYMO_API bool kymo_event_get_option(const struct kymo_event *event, const struct kymo_field *field,
				    size_t *option);

/* The first label of an enumeration's value, or of the flags that are set in a bit map; or NULL. */
KYMO_API const char *kymo_event_get_label(const struct kymo_event *event,
					  const struct kymo_field *field);
/*
 * All labels: the first @max go into @labels, which may be NULL when @max is 0. Returns the number
 * of labels. In bit maps, only the lowest 4096 bits count.
 */
KYMO_API size_t kymo_event_get_labels(const struct kymo_event *event,
				      const struct kymo_field *field, const char **labels,
				      size_t max);

/* ---- all fields --------------------------------------------------------------------------- */

/*
 * Walking through all fields of an event of any class:
 *
 *	ret = kymo_event_values(event, KYMO_SCOPE_PAYLOAD, values, &root, &err);
 *	if (ret > 0)
 *		value = kymo_value_first(root);
 *		for (i = 0; i < kymo_value_n_children(root); i++, value = kymo_value_next(value))
 *			kymo_value_name(value), ...
 *
 * Values are valid until the next use of @values, their texts until the next call on the reader.
 * In contrast to the functions above, arguments must not be NULL, and the value must be of a kind
 * that the function's comment names.
 */
struct kymo_values; /* memory for values, which every call uses again */
struct kymo_value;

KYMO_API struct kymo_values *kymo_values_new(void); /* NULL: out of memory */
KYMO_API void kymo_values_free(struct kymo_values *values);

/*
 * Decode all of @scope. Returns 1 and *root (a structure), 0 when the event has no such scope, or
 * KYMO_E_FORMAT (with the offset in the file), KYMO_E_INVALID, KYMO_E_LIMIT or KYMO_E_MEMORY.
 */
KYMO_API int kymo_event_values(const struct kymo_event *event, enum kymo_scope scope,
			       struct kymo_values *values, const struct kymo_value **root,
			       struct kymo_error *err);

/* The same for one field with all its children. Returns 0 when kymo_event_has() is false. */
KYMO_API int kymo_event_value(const struct kymo_event *event, const struct kymo_field *field,
			      struct kymo_values *values, const struct kymo_value **value,
			      struct kymo_error *err);

KYMO_API const struct kymo_field_class *kymo_value_class(const struct kymo_value *value);
KYMO_API enum kymo_field_kind kymo_value_kind(const struct kymo_value *value);
/*
 * The name of a structure's member. NULL for elements, for roots, and for the child of an OPTIONAL
 * or VARIANT.
 */
KYMO_API const char *kymo_value_name(const struct kymo_value *value);

/*
 * The number of members of a STRUCT or elements of an ARRAY; 0 or 1 for an OPTIONAL, 1 for a
 * VARIANT; else 0.
 */
KYMO_API size_t kymo_value_n_children(const struct kymo_value *value);
/* The first child, if any; and the next sibling of a child that is not the last. */
KYMO_API const struct kymo_value *kymo_value_first(const struct kymo_value *value);
KYMO_API const struct kymo_value *kymo_value_next(const struct kymo_value *value);
/* Child @i, or NULL. The search for a late child is slow: loops should use kymo_value_next(). */
KYMO_API const struct kymo_value *kymo_value_child(const struct kymo_value *value, size_t i);
/* The member @name of a STRUCT, or NULL. */
KYMO_API const struct kymo_value *kymo_value_member(const struct kymo_value *value,
						    const char *name);
/* The name of a VARIANT's selected option, or NULL. */
KYMO_API const char *kymo_value_option(const struct kymo_value *value);

/*
 * Numbers. u64: the bits of BITS, BITMAP, BOOL, UINT and VARUINT. i64: the value of SINT and
 * VARSINT. f64: the value of FLOAT. For any other kind: 0.
 */
KYMO_API uint64_t kymo_value_u64(const struct kymo_value *value);
KYMO_API int64_t kymo_value_i64(const struct kymo_value *value);
KYMO_API double kymo_value_f64(const struct kymo_value *value);
/*
 * Bits 64 * @word and up of a number, or of the encoding of a FLOAT. Bits above its own size are
 * copies of its sign, or zeros.
 */
KYMO_API uint64_t kymo_value_word(const struct kymo_value *value, unsigned int word);
/* See kymo_event_get_label() and kymo_event_get_labels(). */
KYMO_API const char *kymo_value_label(const struct kymo_value *value);
KYMO_API size_t kymo_value_labels(const struct kymo_value *value, const char **labels, size_t max);

/*
 * The bytes of a STRING or TEXT (up to its NUL, in its encoding) or BLOB. No NUL follows them. For
 * any other kind: NULL and 0.
 */
KYMO_API const char *kymo_value_bytes(const struct kymo_value *value, size_t *len_bytes);
/* See kymo_event_get_utf8(). */
KYMO_API size_t kymo_value_utf8(const struct kymo_value *value, char *buffer, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif
