/* SPDX-License-Identifier: MIT */
/*
 * Packets in, events out. Opens no file: the caller hands in bytes (usually mapped).
 *
 * A struct ky_decoder decodes the packets of ONE data stream, in order. It yields batches of
 * struct ky_event: views that say where an event's scopes lie. Field values are read from a
 * view only when somebody asks: one field by handle (ky_get_*), or a scope at once as a flat
 * list of values (ky_values_decode).
 *
 * Guarantees
 *  - No byte outside the packet's content is read, whatever the bytes say.
 *  - Damage in the middle of a packet: the events before it are delivered first, then the
 *    error, which names the byte offset within the file.
 *  - Views borrow from the packet's bytes and from the decoder; they stay valid as long as
 *    the bytes do (not merely until the next batch), but ->packet's fields change with the next
 *    ky_decoder_packet().
 * Threads: one at a time per decoder; decoders are independent.
 */
#ifndef KY_CTF_DECODE_DECODE_H
#define KY_CTF_DECODE_DECODE_H

#include <assert.h>

#include "base/bits.h"
#include "ctf/model/model.h"

struct ky_stream;

/* What a packet's header and context say. All offsets and sizes in bits unless named bytes. */
struct ky_packet {
	const struct ky_stream_class *stream_class;
	const struct ky_stream *stream; /* whose packet it is: see ky_decoder_set_stream() */
	const uint8_t *data;
	uint64_t file_offset_bytes;  /* of data[0] */
	uint64_t header_bits;	     /* where the first event begins: end of header and context */
	uint64_t context_begin_bits; /* where the packet context begins */
	uint64_t content_bits;
	uint64_t packet_bits;
	bool has_begin, has_end, has_discarded, has_sequence, has_stream_id, has_cpu_id;
	bool foreign; /* its UUID is not the metadata's, nor is that of those before it */
	uint64_t begin_cycles, end_cycles;
	int64_t begin_ns, end_ns;
	/* As the packet itself says, when what is above was put right (ky_decoder_correct_times()). */
	uint64_t told_begin_cycles, told_end_cycles;
	uint64_t discarded; /* cumulative */
	uint64_t sequence;
	uint64_t stream_id; /* instance */
	uint32_t cpu_id;
};

/*
 * One event record: where it lies. The first four members are those of the public struct
 * kymo_event (kymo/reader.h): they keep their places.
 */
struct ky_event {
	const struct ky_event_class *cls;
	int64_t ns; /* from the clock's origin; INT64_MIN when it has no time */
	uint64_t cycles;
	uint32_t cpu_id; /* the packet's, or UINT32_MAX */
	/* Where the scopes begin, relative to begin_bits; not yet aligned for the scope. */
	uint32_t stream_context_bits, event_context_bits, payload_bits;
	const struct ky_packet
		*packet;     /* of its stream; see above for how long it tells the truth */
	uint64_t begin_bits; /* where its header begins, in the packet */
	uint64_t end_bits;   /* one past its last bit: the limit for reading */
};

/* Merging is moving events: one is one cache line, where it lies on its boundary. */
#define KY_EVENT_ALIGN 64
static_assert(sizeof(struct ky_event) <= KY_EVENT_ALIGN, "an event is one cache line");

struct ky_decoder;

/*
 * @trace is borrowed and must outlive the decoder. NULL when out of memory.
 */
struct ky_decoder *ky_decoder_new(const struct ky_trace_class *trace);
void ky_decoder_free(struct ky_decoder *decoder);

/* Its packets shall say that they are @stream's, which only the caller needs to know. */
void ky_decoder_set_stream(struct ky_decoder *decoder, const struct ky_stream *stream);

/*
 * Read the header and context of the packet that begins at @data.
 *
 * @avail_bytes: bytes that the file holds from there on; a packet that says it is longer is
 *	truncated: its events up to there are delivered and then KYMO_E_FORMAT.
 * @file_offset_bytes: for messages.
 *
 * Returns 0 or KYMO_E_FORMAT. On success *packet (owned by the decoder, valid until the next
 * call) is set; ky_decoder_next() continues from its first event.
 */
int ky_decoder_packet(struct ky_decoder *decoder, const uint8_t *data, uint64_t avail_bytes,
		      uint64_t file_offset_bytes, const struct ky_packet **packet,
		      struct kymo_error *err);

/* Tracers make mistakes: the current packet's times are these. */
void ky_decoder_correct_times(struct ky_decoder *decoder, uint64_t begin_cycles,
			      uint64_t end_cycles);

/*
 * Decode up to @max events of the current packet into @events.
 *
 * Returns their number, 0 at the packet's end, or negative: the events up to the damage have
 * been delivered by earlier calls. After an error the packet is over.
 */
int ky_decoder_next(struct ky_decoder *decoder, struct ky_event *events, int max,
		    struct kymo_error *err);

/*
 * From now on deliver only events whose class' byte in @wanted (by ky_event_class.index) is not 0;
 * others are stepped over. NULL: all. Borrowed.
 */
void ky_decoder_want(struct ky_decoder *decoder, const uint8_t *wanted);

/*
 * Count the rest of the current packet's events by class instead of delivering them:
 * counts[ky_event_class.index] grows. Faster than decoding views.
 * @begin_ns, @end_ns: widened to cover the events' times; start with INT64_MAX and INT64_MIN.
 * Returns 0 or an error as ky_decoder_next(); then what came before is counted.
 */
int ky_decoder_count(struct ky_decoder *decoder, uint64_t *counts, int64_t *begin_ns,
		     int64_t *end_ns, struct kymo_error *err);

/* ---- parts of a stream ----------------------------------------------------------------- */

/*
 * From now on ky_decoder_next() and ky_decoder_skip() end before the first event at or after @ns as
 * if the packet had ended; INT64_MAX: no limit. Events without a time are before any limit.
 * Damage before that event, or in it, is an error nevertheless.
 */
void ky_decoder_limit(struct ky_decoder *decoder, int64_t ns);
/* Did the last call end at the limit? Then *ns is the time of the event there. */
bool ky_decoder_at_limit(const struct ky_decoder *decoder, int64_t *ns);
/*
 * Step over the rest of the packet, up to the limit, whatever is wanted. 0, or an error as
 * ky_decoder_next() gives it.
 */
int ky_decoder_skip(struct ky_decoder *decoder, struct kymo_error *err);
/* The time of the current packet's next event, whatever is wanted. False: there is no good one. */
bool ky_decoder_peek(struct ky_decoder *decoder, int64_t *ns);

/*
 * The latest time of all events before those that the last ky_decoder_next() gave, wanted or not, as
 * far as it is known; among themselves these (and what was left out between them) are in order.
 */
int64_t ky_decoder_floor(const struct ky_decoder *decoder);
/* The latest time of all events so far, as far as it is known; INT64_MIN: none had one. */
int64_t ky_decoder_latest(const struct ky_decoder *decoder);
/* Know nothing of events before: the decoder goes on somewhere else. */
void ky_decoder_forget(struct ky_decoder *decoder);

/* Go on where @from stands, which is of the same trace. Returns the current packet, @to's own. */
const struct ky_packet *ky_decoder_copy(struct ky_decoder *to, const struct ky_decoder *from);
/* Where it stands in the packet, in bits, and its running clock. */
uint64_t ky_decoder_place(const struct ky_decoder *decoder, uint64_t *clock);

/* ---- values ------------------------------------------------------------------------- */

/*
 * A scope decoded into a flat list, parents before children (pre-order).
 * A struct or array is followed by its members; skip them with n_below.
 */
struct ky_value {
	const struct ky_field_class *cls;
	const char *name;    /* the member's display name; NULL for elements and roots */
	uint32_t n_below;    /* how many of the following values belong to this one */
	uint32_t n_children; /* struct: members; array: elements; optional: 0 or 1; variant: 1;
				 LEB128: the bits that were written, for timestamps */
	union {
		uint64_t u; /* unsigned, bool, bits, bit map */
		int64_t s;
		/* With the bits it was made of, because not every float survives being a double. */
		struct {
			double f;
			union {
				uint64_t f_bits;       /* up to 64 of them */
				const uint8_t *f_data; /* 128: borrowed from the packet; where */
			};			       /* they begin there is n_children, 0 to 7 */
		};
		/* TEXT, STRING (without NUL, cut at NUL), BLOB */
		struct {
			const char *data; /* borrowed from the packet */
			size_t len_bytes;
		} str;
		/* Numbers beyond 64 bits (floats: beyond 128): see ky_value_word(). */
		struct {
			const uint8_t *data; /* borrowed from the packet */
			uint32_t at_bits;    /* where the number begins there, 0 to 7 */
		} big;
		const struct ky_option *option; /* VARIANT: the selected one */
	};
};

struct ky_values {
	KY_VEC(struct ky_value) list;
	uint64_t *slots; /* scratch */
	size_t n_slots;
};

void ky_values_init(struct ky_values *values);
void ky_values_fini(struct ky_values *values);

/*
 * Decode @scope of @event; values->list[0] is the scope's struct. Replaces what was in @values.
 * Returns the number of values, 0 when the event has no such scope, or negative: KYMO_E_FORMAT,
 * KYMO_E_MEMORY, KYMO_E_LIMIT (over 16 Mi values in one scope).
 */
int ky_values_decode(struct ky_values *values, const struct ky_event *event, enum ky_scope scope,
		     struct kymo_error *err);

/* Is the number kept in value->big? */
bool ky_value_is_big(const struct ky_value *value);
/* 64 bits of a big number, or of a float of 128 bits: @word 0 is the least significant; missing
 * high bits are 0. */
uint64_t ky_value_word(const struct ky_value *value, unsigned int word);

/* ---- single fields ------------------------------------------------------------------- */

/* A handle leads through at most so many arrays; deeper ones are for ky_values_decode(). */
#define KY_HANDLE_ARRAYS_MAX 6

/*
 * A field of an event class, found once and read many times: a scope, a field class in it, and
 * which element of each array on the way. A handle that is all zeros is of no field.
 */
struct ky_handle {
	const struct ky_field_class *cls; /* NULL: the event class has no such field */
	int64_t fixed_at_bits; /* from the scope's aligned begin; -1: after variable-size fields */
	enum ky_scope scope;
	uint32_t scope_align_bits;
	uint32_t step; /* of the field, in the scope's plan */
	uint8_t n_arrays;
	/* An integer of 1, 2, 4 or 8 bytes at a fixed place; 0: it is something else. */
	uint8_t plain_bytes;
	bool plain_signed, plain_big; /* the latter is its byte order */
	/* A text of so many bytes, which are its characters, at a fixed place; 0: something else. */
	uint32_t plain_text_bytes;
	uint32_t plain_scope; /* of both: offset in struct ky_event of where their scope begins */
	uint32_t elements[KY_HANDLE_ARRAYS_MAX]; /* of the arrays that it lies in */
};

/*
 * Find field @name in @scope of @event. @name is a top-level member's written or displayed name.
 * Returns true when it exists; else handle->cls is NULL and every ky_get_* returns its default.
 */
bool ky_handle_find(struct ky_handle *handle, const struct ky_event_class *event,
		    enum ky_scope scope, const char *name);
/* The same, searching payload, event context, stream context, packet context in this order. */
bool ky_handle_find_any(struct ky_handle *handle, const struct ky_event_class *event,
			const char *name);

/* The structure at the root of @scope; false when @event has none. */
bool ky_handle_root(struct ky_handle *handle, const struct ky_event_class *event,
		    enum ky_scope scope);
/*
 * What @parent of @event contains: member @i of a structure, element @i of an array, option @i of a
 * variant, what an optional field holds (0). @child may be @parent.
 * Returns 0, KYMO_E_NOT_FOUND (it can never have that many), or KYMO_E_LIMIT (it lies in too many
 * arrays).
 */
int ky_handle_child(struct ky_handle *child, const struct ky_event_class *event,
		    const struct ky_handle *parent, uint64_t i);

/* Where a field lies in an event. */
struct ky_place {
	/* Seen through what is optional or a variant: the class of what is there. */
	const struct ky_field_class *cls;
	uint64_t at_bits; /* in the packet */
	uint64_t length;  /* of a text, blob or array, as the event says */
};

/*
 * Find @handle's field in @event. False: the event does not have it (an option that is not
 * selected, an element beyond the array's length), or the bytes before it are damaged.
 */
bool ky_handle_place(const struct ky_event *event, const struct ky_handle *handle,
		     struct ky_place *place);

/*
 * As ky_handle_place(), not seen through: the option that the variant or optional field @handle
 * holds in @event. False also when it is neither, and for an optional field that is not there.
 */
bool ky_handle_option(const struct ky_event *event, const struct ky_handle *handle, size_t *option);

/*
 * Decode the field, with all that it contains, as ky_values_decode() does a scope.
 * Returns the number of values; 0 where ky_handle_place() says false; or negative.
 */
int ky_handle_decode(struct ky_values *values, const struct ky_event *event,
		     const struct ky_handle *handle, struct kymo_error *err);

/*
 * Read an integer, boolean or enumeration of up to 64 bits (signed ones: two's complement), or a
 * float as a double. False when the event has no such field, or it is of another kind, or damaged.
 */
bool ky_get_number(const struct ky_event *event, const struct ky_handle *handle, uint64_t *value);
bool ky_get_real(const struct ky_event *event, const struct ky_handle *handle, double *value);
/* The same at a place that ky_handle_place() found. */
bool ky_place_number(const struct ky_event *event, const struct ky_place *place, uint64_t *value);
bool ky_place_real(const struct ky_event *event, const struct ky_place *place, double *value);
/* The bytes of a string, text (up to its NUL) or blob, borrowed from the packet; or NULL. */
const char *ky_place_bytes(const struct ky_event *event, const struct ky_place *place,
			   size_t *len_bytes);
/* Bits 64 * @word and up of a number of any size; missing high bits are 0. 0 for other kinds. */
uint64_t ky_place_word(const struct ky_event *event, const struct ky_place *place,
		       unsigned int word);

/* The @n_bytes of what is at a fixed place; NULL: they do not begin with a byte, or are damaged. */
static inline const uint8_t *ky_plain_at(const struct ky_event *event,
					 const struct ky_handle *handle, uint32_t n_bytes)
{
	uint32_t scope_bits;
	uint64_t at_bits;

	memcpy(&scope_bits, (const char *)event + handle->plain_scope, sizeof(scope_bits));
	at_bits = ky_align_up(event->begin_bits + scope_bits, handle->scope_align_bits) +
		  (uint64_t)handle->fixed_at_bits;
	if (at_bits & 7 || at_bits + UINT64_C(8) * n_bytes > event->end_bits)
		return NULL;
	return event->packet->data + at_bits / 8;
}

/* The short way to what most handles are for: a load. False: it has to be ky_get_number(). */
static inline bool ky_get_plain(const struct ky_event *event, const struct ky_handle *handle,
				uint64_t *value)
{
	const uint8_t *from =
		handle->plain_bytes ? ky_plain_at(event, handle, handle->plain_bytes) : NULL;

	if (!from)
		return false;
	switch (handle->plain_bytes) {
	case 1:
		*value = handle->plain_signed ? (uint64_t)(int8_t)*from : *from;
		break;
	case 2:
		*value = ky_load16(from, handle->plain_big);
		if (handle->plain_signed)
			*value = (uint64_t)(int16_t)*value;
		break;
	case 4:
		*value = ky_load32(from, handle->plain_big);
		if (handle->plain_signed)
			*value = (uint64_t)(int32_t)*value;
		break;
	default:
		*value = ky_load64(from, handle->plain_big);
	}
	return true;
}

/*
 * Read an integer, boolean or enumeration of up to 64 bits; signed ones are sign-extended.
 * Anything else (no such field, other kind, bad data) gives @otherwise.
 */
static inline uint64_t ky_get_u64(const struct ky_event *event, const struct ky_handle *handle,
				  uint64_t otherwise)
{
	uint64_t value;

	if (__builtin_expect(ky_get_plain(event, handle, &value), 1))
		return value;
	return handle->cls && ky_get_number(event, handle, &value) ? value : otherwise;
}

static inline int64_t ky_get_i64(const struct ky_event *event, const struct ky_handle *handle,
				 int64_t otherwise)
{
	return (int64_t)ky_get_u64(event, handle, (uint64_t)otherwise);
}

/*
 * Of a text that has always @n_bytes: those, with what follows a NUL in them, borrowed from the packet.
 * NULL: it has to be ky_get_text().
 */
static inline const char *ky_get_plain_text(const struct ky_event *event,
					    const struct ky_handle *handle, uint32_t n_bytes)
{
	if (handle->plain_text_bytes != n_bytes)
		return NULL;
	return (const char *)ky_plain_at(event, handle, n_bytes);
}

/* A string or text; borrowed from the packet, not NUL-terminated. "" and 0 when none exists. */
const char *ky_get_text(const struct ky_event *event, const struct ky_handle *handle,
			size_t *len_bytes);

/* Bytes of an array of numbers: @n of its elements, from number @from on. False: it does not have so many. */
bool ky_get_array_bytes(const struct ky_event *event, const struct ky_handle *array, size_t from,
			uint8_t *bytes, size_t n);

#endif
