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
 * events are in order; those of later batches are not earlier.
 * Equal times have a fixed order too (by data stream), so reading again gives the same again.
 *
 * Events and what is read from them are borrowed: valid until the next kymo_reader_next(),
 * kymo_reader_seek() or kymo_reader_close() of their reader.
 *
 * A damaged trace gives everything that comes before the damage, and all of its other data
 * streams; then kymo_reader_next() returns the error once, with file and offset, and 0 after it.
 * With options.recover it also gives what can be read behind the damage.
 *
 * Threads: one at a time per reader; readers are independent. Between two calls on the reader,
 * any number of threads may look at its events, each with a struct kymo_values of its own.
 *
 * NULL for an argument that needs something is KYMO_E_INVALID, never a crash.
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
	size_t size; /* of this struct, as the program was compiled: later versions grow */
	/* Only events that match this expression (docs/filter.md), or NULL. */
	const char *filter;
	/*
	 * Only events whose name matches one of these wildcards ("sched_*"); none: all. A wildcard behind '!' takes events
	 * out again; where the first one is such, it does so of all.
	 */
	const char *const *events;
	size_t n_events;
	/* Only data streams whose name matches one of these, in the same way; none: all. */
	const char *const *streams;
	size_t n_streams;
	/* Only events in this range, inclusive; ns from the clock's origin. */
	int64_t begin_ns, end_ns;
	/*
	 * Called with what is worth telling but no error: an index that is wrong and was
	 * ignored, time that goes back. What is noticed while events are read is told when the last was,
	 * or at the close. @text is one line, valid during the call; NULL: nowhere.
	 */
	void (*log)(void *data, enum kymo_log_level level, const char *text);
	void *log_data;
	/*
	 * Go on behind damage with the next packet that can be read. Each damage is then a loss
	 * (struct kymo_loss) and not an error.
	 */
	bool recover;
	/*
	 * Read traces together whose clocks have nothing in common (KYMO_E_FORMAT otherwise):
	 * their times are compared nevertheless.
	 */
	bool force_correlate;
	/*
	 * Shift clocks: "OFFSET" for all traces, or "TRACE:OFFSET" for those whose path, or the
	 * end of it, the wildcard TRACE matches. OFFSET is in ns, or has a unit: "-1500ms". Several
	 * add up.
	 */
	const char *const *clock_offsets;
	size_t n_clock_offsets;
	/*
	 * How many threads decode, the program's own included: 1: no further ones; 0: as many
	 * as there are CPUs to use. Worth it for several data streams; the events and
	 * their order are the same with any number, and ->log is called in the program's thread.
	 */
	unsigned int jobs;
};

/* The defaults: every event, one thread. Threads: any. */
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
 * Open every trace at or below each of @paths: each directory that holds a file `metadata`.
 *
 * @options: NULL for everything. Copied; the texts too.
 * Returns 0 and *reader, or (*reader is then NULL)
 *   KYMO_E_NOT_FOUND    a path that does not exist, or holds no trace
 *   KYMO_E_FORMAT       metadata that cannot be understood: @err has file, line and column; or
 *                       traces whose clocks cannot be compared (see options.force_correlate)
 *   KYMO_E_INVALID      a filter with a mistake (@err has the column), a wildcard that matches
 *                       no event, stream or trace, a clock offset that is none, options or
 *                       paths that are NULL or of no size
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
 * The times of the first and the last event, whatever the options select; what perf tells of the time
 * before its first sample is left out. Reads the ends of each data stream only. Both INT64_MIN when no event has a time. 0, KYMO_E_INVALID, KYMO_E_MEMORY.
 */
KYMO_API int kymo_reader_range(const struct kymo_reader *reader, int64_t *begin_ns, int64_t *end_ns,
			       struct kymo_error *err);

/*
 * How many events kymo_reader_next() has in all, from the beginning, wherever @reader stands (it
 * stays there). With only event types and streams selected they are counted without being decoded.
 *
 * @n_events: set after a KYMO_E_FORMAT too, to the number of those that can be read.
 * Returns 0, or what kymo_reader_next() does. options.log may be called again.
 */
KYMO_API int kymo_reader_count(struct kymo_reader *reader, uint64_t *n_events,
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

/*
 * What is missing: what the tracer could not keep, or what is damaged (options.recover). The
 * library's own may be larger: use it where it is.
 */
struct kymo_loss {
	uint64_t events;	  /* event records; 0: only packets are missing, or it is damage */
	uint64_t packets;	  /* packets that the trace should have but has not */
	int64_t begin_ns, end_ns; /* they were lost in between; INT64_MIN: not known */
	const struct kymo_stream *stream;
	/* NULL, or what is damaged: message, file and offset. */
	const struct kymo_error *damage;
	uint64_t skipped_bytes; /* from there to where reading went on */
};

/*
 * Events in order, and what is missing right before them. Live and die together: until the next
 * call on the reader.
 */
struct kymo_batch {
	const struct kymo_loss *loss; /* usually NULL */
	size_t n_events;	      /* may be 0 when there is a loss */
	/* Use kymo_batch_event(), kymo_batch_foreach(), kymo_batch_stream(). */
	const void *first_event;
	size_t event_bytes;
	const void *streams;
	/* For later versions of the library; the program leaves it alone. */
	uint64_t reserved[8];
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

/*
 * Move @reader to the first event that is no more than @before_ns older than the last one: 0 is the
 * last event (all that bear its time), 1000000000 the last second. What comes before is not read.
 *
 * The last event is that of all data streams, or options.end_ns if that is earlier; what else is
 * selected does not count. Returns as kymo_reader_seek(); KYMO_E_INVALID also for @before_ns < 0.
 */
KYMO_API int kymo_reader_seek_end(struct kymo_reader *reader, int64_t before_ns,
				  struct kymo_error *err);

/* The data stream of @event, which belongs to @batch. NULL for NULL. */
KYMO_API const struct kymo_stream *kymo_batch_stream(const struct kymo_batch *batch,
						     const struct kymo_event *event);

/*
 * Where @event, which belongs to @batch, begins: the path of its file, and *offset_bytes in it.
 * Events of some tracers begin inside of a byte; it is that byte. NULL for NULL.
 */
KYMO_API const char *kymo_batch_place(const struct kymo_batch *batch,
				      const struct kymo_event *event, uint64_t *offset_bytes);

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
 * may be copied, needs no freeing; its reader must be open. All zeros is a field that no event has.
 */
struct kymo_field {
	const struct kymo_event_class *event_class;
	const struct kymo_field_class *field_class;
	uint64_t internal[8];
};

/*
 * Find a field of @event_class: in its payload, its own context, its stream class' context, or
 * the packet context, in this order.
 *
 * @path: a name, or the way to a field inside of others:
 *	ctx.perms[2].name	member "name" of element 2 of array "perms" of structure "ctx"
 *	value.number		option "number" of variant "value"; [1] is its second option
 * What an optional field holds goes by the name of the optional field.
 *
 * Returns 0; or KYMO_E_NOT_FOUND (also for an element that no event can have), KYMO_E_LIMIT (inside
 * of more than 6 arrays) or KYMO_E_INVALID (no such path, something is NULL): then @field is
 * one that no event has.
 * Threads: any.
 */
KYMO_API int kymo_field_find(const struct kymo_event_class *event_class, const char *path,
			     struct kymo_field *field);
/* The same in @scope only: also KYMO_SCOPE_PACKET_HEADER and KYMO_SCOPE_EVENT_HEADER. */
KYMO_API int kymo_field_find_in(const struct kymo_event_class *event_class, enum kymo_scope scope,
				const char *path, struct kymo_field *field);

/* The structure of all fields in @scope. 0, KYMO_E_NOT_FOUND (there is none) or KYMO_E_INVALID. */
KYMO_API int kymo_field_root(const struct kymo_event_class *event_class, enum kymo_scope scope,
			     struct kymo_field *field);
/*
 * What @field contains, by its number: member @i of a structure, element @i of an array, option
 * @i of a variant; with kymo_field_class_n_members() and kymo_event_get_length() one goes through
 * fields without knowing their names. @child may be @field. Returns as kymo_field_find().
 */
KYMO_API int kymo_field_child(const struct kymo_field *field, size_t i, struct kymo_field *child);
/* A member or option by its exact name, which may be one that is no path. */
KYMO_API int kymo_field_member(const struct kymo_field *field, const char *name,
			       struct kymo_field *child);

/*
 * Does @event have @field? Not when the event is of another class, the option is not
 * selected, the optional field not there, the array shorter.
 */
KYMO_API bool kymo_event_has(const struct kymo_event *event, const struct kymo_field *field);

/*
 * The value of @field in @event, exactly, or false and *value is left alone: the event does not
 * have it, it is of another kind, the value does not fit (a negative number into unsigned 64
 * bits), or the bytes are damaged. Of a variant: the value of the option that is selected.
 *
 * u64, i64: integers, enumerations, booleans, bit arrays and maps of up to 64 bits.
 * f64: floating point numbers of up to 128 bits (wide ones are rounded); integers too.
 */
KYMO_API bool kymo_event_get_u64(const struct kymo_event *event, const struct kymo_field *field,
				 uint64_t *value);
KYMO_API bool kymo_event_get_i64(const struct kymo_event *event, const struct kymo_field *field,
				 int64_t *value);
KYMO_API bool kymo_event_get_f64(const struct kymo_event *event, const struct kymo_field *field,
				 double *value);

/*
 * Numbers of any size, bit by bit: words[0] has the least significant 64 bits. Above the number's
 * own bits there are copies of its sign, or zeros. Floating point numbers give their encoding.
 * False as above, or when @n_words are too few.
 */
KYMO_API bool kymo_event_get_words(const struct kymo_event *event, const struct kymo_field *field,
				   uint64_t *words, size_t n_words);

/*
 * A STRING or TEXT in UTF-8 or ASCII: NOT followed by a NUL, *len_bytes says where it ends.
 * NULL and 0 where the functions above say false, and for other encodings.
 */
KYMO_API const char *kymo_event_get_text(const struct kymo_event *event,
					 const struct kymo_field *field, size_t *len_bytes);

/*
 * A STRING or TEXT in any encoding, as UTF-8 that is well-formed (U+FFFD stands for what is not).
 *
 * @buffer: gets at most @size_bytes, whole characters, and ends with a NUL; NULL when 0.
 * Returns the bytes that all of it has, without the NUL: when that is not below @size_bytes, it was
 * cut. Where kymo_event_has() says false, and of other kinds: SIZE_MAX, and the buffer has "".
 */
KYMO_API size_t kymo_event_get_utf8(const struct kymo_event *event, const struct kymo_field *field,
				    char *buffer, size_t size_bytes);

/* The bytes of a BLOB, STRING or TEXT (in its encoding, up to its NUL); or NULL and 0. */
KYMO_API const void *kymo_event_get_bytes(const struct kymo_event *event,
					  const struct kymo_field *field, size_t *len_bytes);

/* How many elements an ARRAY has in @event; false where there is none. */
KYMO_API bool kymo_event_get_length(const struct kymo_event *event, const struct kymo_field *field,
				    uint64_t *n_elements);

/* Which option a VARIANT has in @event: a number for kymo_field_class_member(). */
KYMO_API bool kymo_event_get_option(const struct kymo_event *event, const struct kymo_field *field,
				    size_t *option);

/* The first label of an enumeration's value, or of a bit map's flags that are set; or NULL. */
KYMO_API const char *kymo_event_get_label(const struct kymo_event *event,
					  const struct kymo_field *field);
/*
 * All of them: at most @max go into @labels (which may then be NULL). Returns how many there are. Of
 * bit maps the lowest 4096 bits count.
 */
KYMO_API size_t kymo_event_get_labels(const struct kymo_event *event,
				      const struct kymo_field *field, const char **labels,
				      size_t max);

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

/* The same for one field with all that it contains. 0 where kymo_event_has() says false. */
KYMO_API int kymo_event_value(const struct kymo_event *event, const struct kymo_field *field,
			      struct kymo_values *values, const struct kymo_value **value,
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
/* Child @i, or NULL. The last ones of many take long to find: prefer kymo_value_next(). */
KYMO_API const struct kymo_value *kymo_value_child(const struct kymo_value *value, size_t i);
/* The member of a STRUCT named @name, or NULL. */
KYMO_API const struct kymo_value *kymo_value_member(const struct kymo_value *value,
						    const char *name);
/* The name of the option that a VARIANT holds, or NULL. */
KYMO_API const char *kymo_value_option(const struct kymo_value *value);

/*
 * Numbers: the bits of BITS, BITMAP, BOOL, UINT, VARUINT; as signed ones of SINT, VARSINT; of
 * FLOAT. Of any other kind: 0.
 */
KYMO_API uint64_t kymo_value_u64(const struct kymo_value *value);
KYMO_API int64_t kymo_value_i64(const struct kymo_value *value);
KYMO_API double kymo_value_f64(const struct kymo_value *value);
/*
 * Bits 64 * @word and up of a number, of its encoding for FLOAT; above its own bits copies of its
 * sign, or zeros.
 */
KYMO_API uint64_t kymo_value_word(const struct kymo_value *value, unsigned int word);
/* As kymo_event_get_label() and kymo_event_get_labels(). */
KYMO_API const char *kymo_value_label(const struct kymo_value *value);
KYMO_API size_t kymo_value_labels(const struct kymo_value *value, const char **labels, size_t max);

/*
 * The bytes of a STRING or TEXT (up to its NUL, in its encoding) or BLOB; not followed by a NUL.
 * Of any other kind: NULL and 0.
 */
KYMO_API const char *kymo_value_bytes(const struct kymo_value *value, size_t *len_bytes);
/* As kymo_event_get_utf8(). */
KYMO_API size_t kymo_value_utf8(const struct kymo_value *value, char *buffer, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif
