/* SPDX-License-Identifier: MIT */
/*
 * The trace model: what metadata says, for CTF 1.8 and CTF 2 alike.
 *
 * A metadata reader (tsdl-*.c for CTF 1.8) builds it, ky_trace_class_finish() links and
 * checks it, and from then on it is immutable: any number of threads may read it. All of
 * it lives in the arena of its struct ky_trace_class.
 *
 * Every field class stands at exactly ONE place of the tree: readers copy a named type
 * each time it is used. So a class can carry what belongs to its place (slot, role).
 */
#ifndef KY_CTF_MODEL_MODEL_H
#define KY_CTF_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/vec.h"

enum ky_field_kind {
	KY_FIELD_BITS,	 /* CTF 2 fixed-length bit array */
	KY_FIELD_BITMAP, /* CTF 2 fixed-length bit map: flags with names */
	KY_FIELD_BOOL,
	KY_FIELD_UINT, /* with mappings: an enumeration */
	KY_FIELD_SINT,
	KY_FIELD_FLOAT,
	KY_FIELD_VARUINT, /* LEB128 */
	KY_FIELD_VARSINT,
	KY_FIELD_STRING, /* null-terminated */
	/*
	 * Of a length in bytes: static, or dynamic by length_ref; cut at NUL. CTF 1.8 arrays and
	 * sequences of 8-bit characters (align 8, encoding UTF8 or ASCII) become this too.
	 */
	KY_FIELD_TEXT,
	KY_FIELD_BLOB,	/* likewise, bytes */
	KY_FIELD_ARRAY, /* static length, or dynamic by length_ref (a CTF 1.8 sequence) */
	KY_FIELD_STRUCT,
	KY_FIELD_OPTIONAL,
	KY_FIELD_VARIANT,
};

enum ky_encoding {
	KY_ENCODING_NONE, /* CTF 1.8: not text */
	KY_ENCODING_UTF8,
	KY_ENCODING_ASCII,
	KY_ENCODING_UTF16BE,
	KY_ENCODING_UTF16LE,
	KY_ENCODING_UTF32BE,
	KY_ENCODING_UTF32LE,
};

/* The dynamic scopes, in the order in which they lie in a packet. */
enum ky_scope {
	KY_SCOPE_PACKET_HEADER,
	KY_SCOPE_PACKET_CONTEXT,
	KY_SCOPE_EVENT_HEADER,
	KY_SCOPE_STREAM_CONTEXT, /* stream.event.context: common to all events of a stream class */
	KY_SCOPE_EVENT_CONTEXT,	 /* event.context: of one event class */
	KY_SCOPE_PAYLOAD,	 /* event.fields */
	KY_SCOPE_COUNT,
};

/* What a field means to the decoder; several fields may share a role. */
enum ky_role {
	KY_ROLE_NONE,
	KY_ROLE_MAGIC,
	KY_ROLE_TRACE_UUID,
	KY_ROLE_STREAM_CLASS_ID,
	KY_ROLE_STREAM_ID, /* stream_instance_id / data-stream-id */
	KY_ROLE_PACKET_SIZE,
	KY_ROLE_CONTENT_SIZE,
	KY_ROLE_CLOCK_BEGIN, /* packet begin, or the event's timestamp */
	KY_ROLE_CLOCK_END,   /* packet end */
	KY_ROLE_DISCARDED,
	KY_ROLE_SEQUENCE,
	KY_ROLE_EVENT_ID,
	KY_ROLE_CPU_ID, /* no specification names it, every Linux tracer writes it */
};

/* Integer ranges, inclusive; compared as signed or unsigned after the class they belong to. */
struct ky_range {
	union {
		uint64_t u;
		int64_t s;
	} begin, end;
};

/* What a range that no value of its class can be in is read as: of CTF 2, whose bounds are any. */
#define KY_RANGE_NEVER ((struct ky_range){{1}, {0}})

static inline bool ky_range_is_never(const struct ky_range *range)
{
	return range->begin.u == 1 && !range->end.u;
}

/* Clip @range to what numbers of @bits (up to 64) can be; false: nothing is left. */
bool ky_range_clip(struct ky_range *range, bool is_signed, unsigned int bits);

/* A label of an enumeration, a flag of a bit map. */
struct ky_mapping {
	const char *label;
	const struct ky_range *ranges;
	size_t n_ranges;
};

struct ky_field_class;

/* Where a length, tag or selector is read. Filled by the metadata reader, resolved once. */
struct ky_field_ref {
	const char *text;	       /* as the metadata writes it, for messages */
	struct ky_field_class *target; /* an integer, boolean or enumeration decoded earlier */
	struct ky_field_class **more;  /* CTF 2: others that may stand in its place (the options */
	size_t n_more;		       /* of a variant); they share the target's slot */
	enum ky_scope scope;	       /* where the target lies */
	/* The outermost variant or optional field that may not have the target; NULL: it is there. */
	const struct ky_field_class *choice;
	uint32_t line, column;
};

/*
 * What lies in an option and something elsewhere refers to. A choice (variant, optional field) counts
 * whenever it is decoded, and leaves the number in its own slot and in those behind the slots of
 * what the selected option has: a target whose number is less than that of ky_field_ref.choice
 * was not there this time. Nothing is counted where nobody asks.
 */
struct ky_option_target {
	const struct ky_field_class *cls; /* noted in slot cls->slot + 1 */
	struct ky_option_target *next;
};

struct ky_member {
	const char *name;    /* as the metadata writes it: what paths are looked up with */
	const char *display; /* one leading '_' removed (CTF 1.8): what people see */
	struct ky_field_class *cls;
	const char *attributes; /* CTF 2 (ctf/ctf2/attributes.h); may be NULL, here and below */
};

struct ky_option {
	const char *name; /* may be NULL (CTF 2) */
	const char *display;
	const struct ky_range
		*ranges; /* of the selector's values; for CTF 1.8 from the tag's label */
	size_t n_ranges;
	struct ky_field_class *cls;
	const char *attributes;
	struct ky_option_target *targets; /* not those in choices within it */
};

#define KY_NO_SLOT UINT32_MAX

struct ky_field_class {
	enum ky_field_kind kind;
	enum ky_role role;
	uint32_t more_roles; /* CTF 2: bits 1 << enum ky_role of others that it has, too */
	uint32_t align_bits; /* power of two, >= 1; effective (for a struct: max of members, ...) */
	/*
	 * Where the decoder keeps the last value of this field for those that refer to it, or
	 * KY_NO_SLOT. Numbers are unique among all scopes that one event can see. A choice's is for
	 * struct ky_option_target.
	 */
	uint32_t slot;
	/* Exact size in bits if the size never varies (from an aligned start), else -1. */
	int64_t fixed_bits;
	const char *type_name; /* the enum's or alias's name, for dumps; NULL when it has none */
	const char *attributes;

	union {
		/* BITS, BITMAP, BOOL, UINT, SINT, FLOAT, VARUINT, VARSINT */
		struct {
			uint32_t length_bits; /* 0 for VAR* */
			bool big_endian;
			bool bits_reversed; /* CTF 2 bit-order that differs from the usual one */
			bool is_enum;	    /* even with no mapping at all */
			/*
			 * A bit field in C's notation: it begins the next unit of so many bits when
			 * it does not fit into the one that is begun; 0: align_bits says all.
			 */
			uint8_t unit_bits;
			uint8_t base;		   /* to show it in: 2, 8, 10, 16 */
			enum ky_encoding encoding; /* CTF 1.8 character */
			const struct ky_mapping *mappings;
			size_t n_mappings;
			struct ky_clock_class
				*clock; /* the clock that its value updates, or NULL */
		} num;
		/* STRING, TEXT, BLOB */
		struct {
			enum ky_encoding encoding;
			uint64_t length_bytes;		 /* static form */
			struct ky_field_ref *length_ref; /* dynamic form, else NULL */
			const char *media_type;
		} text;
		struct {
			struct ky_field_class *element;
			uint64_t length;		 /* static form: elements */
			uint32_t min_align_bits;	 /* 0: none */
			struct ky_field_ref *length_ref; /* dynamic form, else NULL */
		} array;
		struct {
			struct ky_member *members;
			size_t n_members;
			uint32_t min_align_bits;
		} st;
		/* OPTIONAL (one option), VARIANT */
		struct {
			struct ky_field_ref *selector;
			struct ky_option *options;
			size_t n_options;
			uint32_t count_slot; /* where it counts, or KY_NO_SLOT */
		} var;
	};
};

static inline bool ky_has_role(const struct ky_field_class *cls, enum ky_role role)
{
	return cls->role == role || cls->more_roles & 1u << role;
}

/* Who something is, as CTF 2 tells; each may be NULL. */
struct ky_identity {
	const char *space; /* namespace */
	const char *name;
	const char *uid;
};

/*
 * What a clock's times are corrected by, so that they agree with the clock of another machine:
 * t + shift_ns + (t - at_ns) * drift / 2^62, rounded down. Times stay in their order.
 */
struct ky_clock_line {
	bool is_set;
	int64_t at_ns, shift_ns;
	int64_t drift; /* at most KY_CLOCK_DRIFT_MAX, or its negative */
};

/* 1 %, in 2^-62. */
#define KY_CLOCK_DRIFT_MAX ((INT64_C(1) << 62) / 100)

struct ky_clock_class {
	const char *name;	 /* CTF 2: its id */
	const char *description; /* may be NULL */
	bool has_uuid;
	uint8_t uuid[16];
	uint64_t frequency_hz;
	uint64_t precision_cycles; /* 0: unknown */
	uint64_t accuracy_cycles;  /* CTF 2; when has_accuracy */
	bool has_accuracy;
	int64_t offset_s;
	int64_t offset_cycles;	   /* may exceed one second's worth and may be negative */
	struct ky_identity self;   /* CTF 2 */
	struct ky_identity origin; /* CTF 2: the origin, where it is another than the Unix epoch */
	/* Made of one of the two: clocks with the same text can be compared. */
	const char *identity;
	bool is_unix_epoch; /* the origin is the Unix epoch (absolute, or LTTng's monotonic) */
	const char *attributes;
	/* From the fields above, by ky_clock_finish(): origin in ns, and the multiplier. */
	int64_t base_ns;
	bool origin_wraps; /* base_ns is the origin's lowest 64 bits only */
	uint64_t mult;	   /* floor(2^64 * 1e9 / frequency) when frequency > 1e9, else 0 */
	/* No part of the metadata: whoever opened the trace may set it. ky_clock_to_ns() applies it. */
	struct ky_clock_line line;
};

/* @ns as @line corrects it; saturates. */
int64_t ky_clock_line_apply(const struct ky_clock_line *line, int64_t ns);

/* env, and tracer-specific attributes. */
struct ky_env {
	const char *name;
	bool is_text;
	const char *text;
	int64_t number;
};

struct ky_stream_class;
struct ky_scope_plan;  /* plan.h */
struct ky_event_plan;  /* plan.h */
struct ky_stream_plan; /* plan.h */

#define KY_LOGLEVEL_NONE (-1)

struct ky_event_class {
	uint64_t id;
	const char *name;    /* "" when the metadata gives none */
	const char *emf_uri; /* may be NULL */
	const char *attributes;
	int64_t loglevel; /* KY_LOGLEVEL_NONE when absent (has_loglevel says so exactly) */
	bool has_loglevel;
	uint32_t index; /* 0 .. ky_trace_class.n_event_classes - 1, over all stream classes */
	struct ky_stream_class *stream;
	struct ky_field_class *context; /* struct, or NULL */
	struct ky_field_class *payload; /* struct, or NULL */
	struct ky_event_plan *plan;
};

struct ky_stream_class {
	uint64_t id;
	bool has_id;
	const char *name; /* may be NULL */
	const char *attributes;
	struct ky_trace_class *trace;
	struct ky_field_class *packet_context; /* structs, or NULL */
	struct ky_field_class *event_header;
	struct ky_field_class *event_context;
	struct ky_clock_class *clock;		/* the one that its timestamps use, or NULL */
	KY_VEC(struct ky_event_class *) events; /* in order of appearance */
	struct ky_map events_by_id;		/* id -> struct ky_event_class * */
	struct ky_stream_plan *plan;
};

struct ky_stored_stacks;

struct ky_trace_class {
	struct ky_arena arena;
	uint32_t major, minor; /* 1, 8 or 2, 0 */
	bool has_uuid;
	bool lax_uuid; /* streams of another UUID are read: see ky_packet.foreign */
	uint8_t uuid[16];
	bool big_endian;
	const char *name;	/* CTF 2; may be NULL */
	const char *attributes; /* of the trace class */
	const char *preamble_attributes;
	/* CTF 2, when one of them has attributes: all aliases' fragments as they were read. */
	const char *aliases;
	uint64_t n_attributes_lost;	      /* classes whose attributes are beyond a limit */
	struct ky_field_class *packet_header; /* struct, or NULL */
	struct ky_scope_plan *packet_header_plan;
	KY_VEC(struct ky_env) env;
	KY_VEC(struct ky_clock_class *) clocks;
	KY_VEC(struct ky_stream_class *) streams;
	struct ky_map streams_by_id;
	KY_VEC(struct ky_event_class *) events; /* all, by index */
	uint32_t n_slots;
	struct ky_stored_stacks
		*stacks;   /* of its events (ctf/decode/stored-stacks.h), borrowed; NULL: none */
	bool is_draft;	   /* read from a draft of CTF 2: its text is no CTF 2.0 */
	bool mixes_orders; /* a byte order could change inside a byte, which is an error */
};

/*
 * Can there be a packet, or an event, of this class? In CTF 2 not when its id is not 0 and no field of the
 * header tells ids.
 */
bool ky_stream_class_is_used(const struct ky_stream_class *stream);
bool ky_event_class_is_used(const struct ky_event_class *event);

/*
 * The id that packets, or events, of this class have as CTF 2 sees it: 0 where no header tells ids. CTF 1.8 has
 * one class then, whatever id its metadata gives it.
 */
uint64_t ky_stream_class_id_told(const struct ky_stream_class *stream);
uint64_t ky_event_class_id_told(const struct ky_event_class *event);

/* An empty model, or NULL when out of memory. */
struct ky_trace_class *ky_trace_class_new(void);
void ky_trace_class_free(struct ky_trace_class *trace);
/* Free what a stream class has beside its trace's memory, when it is taken off the trace's list. */
void ky_stream_class_fini(struct ky_stream_class *stream);

/*
 * Adding: the object lives in the arena, is registered with its parent, has its defaults set
 * (a field class: kind, align 1, no slot). NULL when out of memory.
 */
struct ky_clock_class *ky_clock_class_new(struct ky_trace_class *trace, const char *name);
struct ky_stream_class *ky_stream_class_new(struct ky_trace_class *trace, uint64_t id);
struct ky_event_class *ky_event_class_new(struct ky_stream_class *stream, uint64_t id,
					  const char *name);
/* Takes back the newest event class of its trace, which nobody has used yet. */
void ky_event_class_forget(const struct ky_event_class *event);
struct ky_field_class *ky_field_class_new(struct ky_trace_class *trace, enum ky_field_kind kind);
int ky_env_add_text(struct ky_trace_class *trace, const char *name, const char *text);
int ky_env_add_number(struct ky_trace_class *trace, const char *name, int64_t number);
const struct ky_env *ky_env_find(const struct ky_trace_class *trace, const char *name);

/*
 * Link and check a trace model whose parts are all there: effective alignment and fixed sizes,
 * slots for everything that is referred to, the ranges of CTF 1.8 variant options from their
 * tags' labels, each stream class' clock, roles by name (CTF 1.8 only: @roles_by_name), the
 * clocks' constants, and the decode plans (plan.h).
 *
 * Returns 0, KYMO_E_FORMAT (@err says what, with line and column where known) or KYMO_E_MEMORY.
 */
int ky_trace_class_finish(struct ky_trace_class *trace, bool roles_by_name, struct kymo_error *err);

/*
 * As above for one more event class of a finished trace (a recorder that adds events). Links the
 * whole trace anew: nobody may read it meanwhile, and decoders made before are void.
 */
int ky_event_class_finish(struct ky_event_class *event, struct kymo_error *err);

/* A member of a struct by its name (as written or as displayed), or NULL. */
const struct ky_member *ky_struct_member(const struct ky_field_class *st, const char *name);
/* The struct at the root of @scope for events of @event, or NULL. */
const struct ky_field_class *ky_scope_root(const struct ky_event_class *event, enum ky_scope scope);
/* "packet.context", "event.fields", ... */
const char *ky_scope_name(enum ky_scope scope);
/* The first label that covers @value (bits of a signed or unsigned class), or NULL. */
const char *ky_enum_label(const struct ky_field_class *cls, uint64_t value);
/* Number of labels that cover @value; the first @max are stored. */
size_t ky_enum_labels(const struct ky_field_class *cls, uint64_t value, const char **labels,
		      size_t max);
/*
 * Flags of a bit map that have a bit set among the 64 * @n_words lowest ones, @words[0] being the
 * least significant. Returns their number; the first @max are stored.
 */
size_t ky_flag_labels(const struct ky_field_class *cls, const uint64_t *words, size_t n_words,
		      const char **labels, size_t max);

/* base_ns, origin_wraps and mult; KYMO_E_FORMAT when the frequency is 0. */
int ky_clock_finish(struct ky_clock_class *clock, struct kymo_error *err);

/*
 * Clock value -> ns from the clock's origin: base_ns + floor(cycles * 1e9 / frequency),
 * where base_ns = offset_s * 1e9 + floor(offset_cycles * 1e9 / frequency). Rounding both
 * parts apart is what babeltrace does, so that both tools print the same digits.
 * Saturates at the ends of int64_t.
 */
int64_t ky_clock_to_ns_exactly(const struct ky_clock_class *clock, uint64_t cycles);

/*
 * The same, mostly by one multiplication: the multiplier is short of the true factor by less than 2^-64, so
 * the product is short by less than @cycles * 2^-64. Where its fraction has room for that, its integer is exact.
 */
static inline int64_t ky_clock_to_ns(const struct ky_clock_class *clock, uint64_t cycles)
{
	unsigned __int128 product = (unsigned __int128)cycles * clock->mult;
	int64_t sum;

	if (__builtin_expect(!clock->mult || (uint64_t)product > UINT64_MAX - cycles ||
				     clock->line.is_set,
			     0) ||
	    __builtin_add_overflow(clock->base_ns, (uint64_t)(product >> 64), &sum))
		return ky_clock_to_ns_exactly(clock, cycles);
	return sum;
}

/* The first clock value that is @ns or later; UINT64_MAX when none exists. */
uint64_t ky_clock_from_ns(const struct ky_clock_class *clock, int64_t ns);

#endif
