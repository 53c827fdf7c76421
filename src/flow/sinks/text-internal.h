/* SPDX-License-Identifier: MIT */
/*
 * The shared part of the text sink's files: text.c (lines), text-plan.c (the plan of an event
 * class, compiled once), text-value.c (single values, and scopes without a plan), text-quoted.c
 * (texts), text-context.c (packets' contexts), text-style.c (names, colours, the origin).
 *
 * Every function writes at a pointer into the sink's buffer and returns the new one. A caller of a
 * ky_text_put_*() must reserve room first, with ky_text_room(). The function may overwrite
 * TEXT_SLACK bytes more, so that short pieces are copied in whole vector registers.
 */
#ifndef KY_FLOW_SINKS_TEXT_INTERNAL_H
#define KY_FLOW_SINKS_TEXT_INTERNAL_H

#include "flow/sinks/text.h"

#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"

#define TEXT_SLACK	  64
#define SECOND_BYTES	  48
#define TEXT_MARK_BYTES	  48 /* literal around a time stamp */
#define TEXT_CODE_BYTES	  16 /* escape sequence of a colour */
#define TEXT_PIECE_BYTES  32 /* longer literals need a loop to copy */
#define TEXT_NUMBER_BYTES 72 /* the longest number: 64 binary digits and their prefix */

/* The parts of a line with their own colours. */
enum text_colour {
	TEXT_COLOUR_NONE, /* the end of a colour */
	TEXT_COLOUR_NAME,
	TEXT_COLOUR_FIELD_NAME,
	TEXT_COLOUR_VALUE, /* numbers, texts, labels */
	TEXT_COLOUR_UNKNOWN,
	TEXT_COLOUR_EVENT,
	TEXT_COLOUR_STAMP,
	TEXT_N_COLOURS,
};

/* Names and colours according to the options. */
struct text_style {
	uint8_t names, fields; /* enum ky_text_names, ky_text_fields */
	bool decode;
	bool has_addresses;		    /* they get names */
	const char *const *codes;	    /* by enum text_colour; NULL: no colours */
	char before_stamp[TEXT_MARK_BYTES]; /* "[", "timestamp = " */
	char after_stamp[TEXT_MARK_BYTES];  /* "] ", ", " */
	char before_delta[TEXT_MARK_BYTES]; /* "(", "delta = " */
	char after_delta[TEXT_MARK_BYTES];  /* ") ", ", " */
};

/* The work of one step of a plan after its literal. */
enum text_op_kind {
	TEXT_OP_NONE,
	TEXT_OP_GENERAL, /* a whole scope, value by value */
	TEXT_OP_U8,
	TEXT_OP_U16,
	TEXT_OP_U32,
	TEXT_OP_U64,
	TEXT_OP_S8,
	TEXT_OP_S16,
	TEXT_OP_S32,
	TEXT_OP_S64,
	TEXT_OP_HEX64,
	TEXT_OP_NUMBER, /* any other number */
	TEXT_OP_DECODE, /* what the number before means */
	TEXT_OP_TEXT,	/* text of a fixed length */
	TEXT_OP_STRING,
};

struct text_op {
	char piece[TEXT_PIECE_BYTES]; /* the literal, when it is short enough */
	const char *literal;
	uint32_t literal_len;
	uint32_t align_bits;
	uint32_t bits;	/* size of the field; 0 for strings */
	uint8_t kind;	/* enum text_op_kind */
	uint8_t scope;	/* GENERAL; DECODE: how */
	uint8_t enters; /* the scope that begins with this step; 0: none */
	bool moves;	/* it enters a scope, or must be aligned */
	const struct ky_field_class *cls;
};

#define TEXT_JOINTS 4

/* What lines of one class have in a packet from the head to the first field, if it is short enough. */
struct text_joint {
	const struct ky_stream *stream; /* NULL: nothing is kept */
	const struct ky_stream *last;	/* of the last line that was not kept */
	const uint8_t *data;		/* the packet */
	uint32_t len;
	char piece[TEXT_SLACK];
};

/* The plan for an event class. */
struct text_plan {
	/* "host:proc:(1) name: ", the packet context's name, and zeros up to TEXT_SLACK bytes */
	const char *head;
	uint32_t head_len;
	bool packet_context; /* the packet context follows, and ", " if there are steps */
	struct text_op *ops;
	uint32_t n_ops;
	struct text_joint joints[TEXT_JOINTS]; /* by the stream's index */
	size_t room;			       /* bytes to reserve: everything except texts */
};

/* The plans of one trace, by the event classes' index; made at the first event of a class. */
struct text_trace {
	const struct ky_trace_class *cls;
	const char *name; /* see ky_trace_name() */
	struct text_plan **plans;
	size_t n_plans;
};

/* A packet's context as text: the same for all of its events. */
struct text_packet {
	const uint8_t *data; /* the packet of the text; NULL: none yet */
	size_t len;
	char piece[TEXT_SLACK]; /* the text, when it is short enough */
	struct ky_strbuf text;
};

/* The last event of a machine. */
struct text_order {
	const struct ky_sync *sync; /* of the first of its traces */
	int64_t until_ns;	    /* it may have happened up to then */
};

struct ky_text {
	int fd;
	struct ky_text_options options;
	struct text_style style;
	bool styled_stamp; /* cycles, names or colours */
	/* Of the scope that is written value by value: */
	bool field_names;
	bool has_buffers; /* see ky_buffer_scope() */
	/* Its event, if it has addresses that get names; else NULL. */
	const struct ky_event *address_event;
	enum ky_scope address_scope;
	char *data;
	size_t len, cap; /* cap without the slack */
	bool held;	 /* only ky_text_flush() writes; until then the buffer grows */
	bool holding;	 /* the same temporarily */
	struct ky_arena arena;
	struct ky_map traces;		    /* trace class -> struct text_trace */
	struct text_trace *trace;	    /* of the last batch */
	KY_VEC(struct text_packet) packets; /* by stream index */
	KY_VEC(struct text_order) order;    /* with the option: by machine */
	struct ky_values values;
	/* The time stamp up to the second, as text, valid during this second. */
	int64_t second_ns;
	char second[SECOND_BYTES];
	uint32_t second_len;
	bool has_second;
	bool has_last;
	int64_t last_ns;
	uint64_t last_cycles;
	bool last_unknown; /* events before the held ones are unknown */
	/* The place of the time difference in the held text, and the time there. */
	bool has_joint;
	size_t joint_at;
	int64_t joint_ns;
	uint64_t joint_cycles;
};

/*
 * Room for @need bytes at @at: writes the buffer out, or grows it, when there is too little.
 * Returns the place to continue, or NULL with @err.
 */
char *ky_text_more(struct ky_text *text, char *at, size_t need, struct kymo_error *err);

static inline char *ky_text_room(struct ky_text *text, char *at, size_t need,
				 struct kymo_error *err)
{
	if (__builtin_expect(text->cap - (size_t)(at - text->data) >= need, 1))
		return at;
	return ky_text_more(text, at, need, err);
}

/* Whether the text is not in UTF-8 (or ASCII) in the trace. */
bool ky_text_is_wide(const struct ky_field_class *cls);

/* A number in the form of its class: base, sign, enumeration labels. NULL: no room (@err). */
char *ky_text_number(struct ky_text *text, char *at, const struct ky_field_class *cls,
		     uint64_t value, struct kymo_error *err);
/* "text", with quotes and escapes. NULL: no room (@err). */
char *ky_text_quoted(struct ky_text *text, char *at, const char *s, size_t len,
		     struct kymo_error *err);
/* " (main+0x1c shop.c:34)" behind @child, member or element @number of @parent, if it is an address. NULL: no room (@err). */
char *ky_text_put_address(struct ky_text *text, char *at, const struct ky_value *parent,
			  const struct ky_value *child, uint32_t number, struct kymo_error *err);
/* A scope value by value. @skip_roles: omit members that describe the packet itself. */
char *ky_text_scope(struct ky_text *text, char *at, const struct ky_event *event,
		    enum ky_scope scope, bool skip_roles, struct kymo_error *err);
/* Whether ky_text_scope(skip_roles) omits this member. */
bool ky_text_is_packet_role(const struct ky_field_class *cls);

/*
 * Compile the plan of @cls. @style is borrowed. @trace_name: see ky_trace_name(). Returns NULL when
 * memory is out.
 */
struct text_plan *ky_text_plan_new(struct ky_arena *arena, const struct ky_event_class *cls,
				   const struct text_style *style, const char *trace_name);
/* Writes everything after the packet context; @has_first: and after the first step's literal. NULL: @err. */
char *ky_text_plan_run(struct ky_text *text, char *at, const struct text_plan *plan,
		       const struct ky_event *event, bool has_first, struct kymo_error *err);

/* text-context.c: the packet's context as text, made once per packet. NULL: @err. */
const struct text_packet *ky_text_packet_context(struct ky_text *text, const struct ky_event *event,
						 uint32_t stream_index, char **at,
						 struct kymo_error *err);
/* Keeps what the lines of @plan have in the packet of @event. */
void ky_text_keep_joint(struct text_plan *plan, const struct ky_event *event,
			const struct ky_stream *stream, const struct text_packet *context);

/*
 * Whether an event of another machine, in a line before, may have happened after @event: the clocks are not known that well. Remembers
 * @event. Returns 1, 0 or KYMO_E_MEMORY.
 */
int ky_text_is_uncertain(struct ky_text *text, const struct ky_event *event,
			 const struct ky_trace *trace);

/* ---- names and colours --------------------------------------------------------------- */

/* The style for @options. */
void ky_text_style_init(struct text_style *style, const struct ky_text_options *options);
/* Whether names of fields are written in @scope. */
bool ky_text_names_fields(const struct text_style *style, enum ky_scope scope);
/* The code of @colour; "" without colours. */
static inline const char *ky_text_code(const struct text_style *style, enum text_colour colour)
{
	return style->codes ? style->codes[colour] : "";
}
/* Adds "name = ", in @colour. */
void ky_text_add_name(struct ky_strbuf *out, const struct text_style *style,
		      enum text_colour colour, const char *name);
/* Adds "stream.packet.context = ", if the options have names of scopes. */
void ky_text_add_scope_name(struct ky_strbuf *out, const struct text_style *style,
			    enum ky_scope scope);
/* Adds the part between the time and the first scope: origin, level, name of the event. */
void ky_text_add_head(struct ky_strbuf *out, const struct text_style *style,
		      const struct ky_event_class *cls, const char *trace_name);

/* ---- text-decode.c: the meanings of numbers -------------------------------------------------- */

/* How the numbers of a field are decoded; 0: not at all. */
uint8_t ky_text_decoder(const char *event, const char *field);
/* Adds " (meaning)", if the value has one; @at must have room for 32 bytes. */
char *ky_text_put_decoded(char *at, uint8_t decoder, uint64_t value);

/* ---- numbers ------------------------------------------------------------------------- */

extern const char ky_text_pairs[200];

/* Decimal; @at must have room for 20 bytes. */
static inline char *ky_text_put_u64(char *at, uint64_t value)
{
	char *end;

	if (value < 10) {
		*at = (char)('0' + value);
		return at + 1;
	}
	if (value < 100) {
		memcpy(at, ky_text_pairs + value * 2, 2);
		return at + 2;
	}
	if (value >= 10000000000u)
		return ky_put_u64(at, value);
	end = at + 3 + (value >= 1000) + (value >= 10000) + (value >= 100000) + (value >= 1000000) +
	      (value >= 10000000) + (value >= 100000000) + (value >= 1000000000);
	at = end;
	while (value >= 100) {
		at -= 2;
		memcpy(at, ky_text_pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10)
		memcpy(at - 2, ky_text_pairs + value * 2, 2);
	else
		at[-1] = (char)('0' + value);
	return end;
}

static inline char *ky_text_put_i64(char *at, int64_t value)
{
	if (value >= 0)
		return ky_text_put_u64(at, (uint64_t)value);
	*at = '-';
	return ky_text_put_u64(at + 1, 0 - (uint64_t)value);
}

/* Nine digits. */
static inline char *ky_text_put_nanos(char *at, uint32_t ns)
{
	uint32_t high = ns / 10000, low = ns % 10000, top = high / 10000;

	high %= 10000;
	*at = (char)('0' + top);
	memcpy(at + 1, ky_text_pairs + high / 100 * 2, 2);
	memcpy(at + 3, ky_text_pairs + high % 100 * 2, 2);
	memcpy(at + 5, ky_text_pairs + low / 100 * 2, 2);
	memcpy(at + 7, ky_text_pairs + low % 100 * 2, 2);
	return at + 9;
}

static inline char *ky_text_put(char *at, const char *s, size_t len)
{
	memcpy(at, s, len);
	return at + len;
}

/* The same for a text in at least TEXT_SLACK bytes: mostly without a loop, for any length. */
static inline char *ky_text_put_padded(char *at, const char *s, size_t len)
{
	if (__builtin_expect(len <= TEXT_SLACK, 1))
		memcpy(at, s, TEXT_SLACK);
	else
		memcpy(at, s, len);
	return at + len;
}

#endif
