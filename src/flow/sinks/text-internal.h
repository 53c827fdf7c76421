/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the text sink: text.c (lines), text-plan.c (what to write for an event
 * class, compiled once), text-value.c (single values, and scopes that no plan covers),
 * text-style.c (names, colours, the origin).
 *
 * Everything writes at a pointer into the sink's buffer and returns the new one. Whoever
 * calls a ky_text_put_*() has made room first, by ky_text_room(); TEXT_SLACK bytes more
 * may be overwritten, so that short pieces are copied in whole vector registers.
 */
#ifndef KY_FLOW_SINKS_TEXT_INTERNAL_H
#define KY_FLOW_SINKS_TEXT_INTERNAL_H

#include "flow/sinks/text.h"

#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"

#define TEXT_SLACK	  64
#define SECOND_BYTES	  48
#define TEXT_MARK_BYTES	  48 /* what stands around a time stamp */
#define TEXT_CODE_BYTES	  16 /* what turns a colour on or off */
#define TEXT_PIECE_BYTES  32 /* a literal up to this is copied without a loop */
#define TEXT_NUMBER_BYTES 72 /* the longest number: 64 binary digits and their prefix */

/* What has a colour of its own. */
enum text_colour {
	TEXT_COLOUR_NONE, /* what ends a colour */
	TEXT_COLOUR_NAME,
	TEXT_COLOUR_FIELD_NAME,
	TEXT_COLOUR_VALUE, /* numbers, texts, labels */
	TEXT_COLOUR_UNKNOWN,
	TEXT_COLOUR_EVENT,
	TEXT_COLOUR_STAMP,
	TEXT_N_COLOURS,
};

/* What the options make of names and colours. */
struct text_style {
	uint8_t names, fields;		    /* enum ky_text_names, ky_text_fields */
	const char *const *codes;	    /* by enum text_colour; NULL: no colours */
	char before_stamp[TEXT_MARK_BYTES]; /* "[", "timestamp = " */
	char after_stamp[TEXT_MARK_BYTES];  /* "] ", ", " */
	char before_delta[TEXT_MARK_BYTES]; /* "(", "delta = " */
	char after_delta[TEXT_MARK_BYTES];  /* ") ", ", " */
};

/* What one step of a plan does after writing its literal. */
enum text_op_kind {
	TEXT_OP_NONE,
	TEXT_OP_ENTER,	 /* go to the begin of a scope */
	TEXT_OP_GENERAL, /* a whole scope, by its values */
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
	TEXT_OP_TEXT,	/* characters of a fixed length */
	TEXT_OP_STRING,
};

struct text_op {
	char piece[TEXT_PIECE_BYTES]; /* the literal, when it is that short */
	const char *literal;
	uint32_t literal_len;
	uint32_t align_bits;
	uint32_t bits; /* size of the field; 0 for strings */
	uint8_t kind;  /* enum text_op_kind */
	uint8_t scope; /* ENTER, GENERAL */
	const struct ky_field_class *cls;
};

/* How an event class is written. */
struct text_plan {
	/* "host:proc:(1) name: ", the packet context's name, and zeros up to TEXT_SLACK bytes */
	const char *head;
	uint32_t head_len;
	bool packet_context; /* the packet's context follows, and ", " if steps do */
	struct text_op *ops;
	uint32_t n_ops;
	size_t room; /* bytes to reserve: everything but texts */
};

/* The plans of one trace, by the event classes' index; made when an event first comes. */
struct text_trace {
	const struct ky_trace_class *cls;
	const char *name; /* see ky_trace_name() */
	struct text_plan **plans;
	size_t n_plans;
};

/* A packet's context as text: the same for all of its events. */
struct text_packet {
	const uint8_t *data; /* of which packet; NULL: none yet */
	size_t len;
	char piece[TEXT_SLACK]; /* the text, when it is that short */
	struct ky_strbuf text;
};

struct ky_text {
	int fd;
	struct ky_text_options options;
	struct text_style style;
	bool styled_stamp; /* cycles, names or colours */
	/* Of the scope that is being written by its values: */
	bool field_names;
	bool has_buffers; /* see ky_buffer_scope() */
	char *data;
	size_t len, cap; /* cap without the slack */
	bool held;	 /* only ky_text_flush() writes; else the buffer grows */
	bool holding;	 /* the same for a moment */
	struct ky_arena arena;
	struct ky_map traces;		    /* trace class -> struct text_trace */
	struct text_trace *trace;	    /* of the batch before */
	KY_VEC(struct text_packet) packets; /* by stream index */
	struct ky_values values;
	/* The time stamp up to the second, as text, for as long as the second lasts. */
	int64_t second_ns;
	char second[SECOND_BYTES];
	uint32_t second_len;
	bool has_second;
	bool has_last;
	int64_t last_ns;
	uint64_t last_cycles;
	bool last_unknown; /* there may have been one before what is held */
	/* The place of the difference to it, in what is held, and the time there. */
	bool has_joint;
	size_t joint_at;
	int64_t joint_ns;
	uint64_t joint_cycles;
};

/*
 * Room for @need bytes at @at: writes the buffer out, or grows it, when there is too little.
 * Returns where to go on, or NULL (then @err is set).
 */
char *ky_text_more(struct ky_text *text, char *at, size_t need, struct kymo_error *err);

static inline char *ky_text_room(struct ky_text *text, char *at, size_t need,
				 struct kymo_error *err)
{
	if (__builtin_expect(text->cap - (size_t)(at - text->data) >= need, 1))
		return at;
	return ky_text_more(text, at, need, err);
}

/* Is it text that is not UTF-8 (or ASCII) in the trace? */
bool ky_text_is_wide(const struct ky_field_class *cls);

/* A number as its class wants it: base, sign, enumeration labels. NULL: no room (@err). */
char *ky_text_number(struct ky_text *text, char *at, const struct ky_field_class *cls,
		     uint64_t value, struct kymo_error *err);
/* "text", with quotes and escapes. NULL: no room (@err). */
char *ky_text_quoted(struct ky_text *text, char *at, const char *s, size_t len,
		     struct kymo_error *err);
/* A scope by its values. @skip_roles: leave out what describes the packet itself. */
char *ky_text_scope(struct ky_text *text, char *at, const struct ky_event *event,
		    enum ky_scope scope, bool skip_roles, struct kymo_error *err);
/* Is this a member that ky_text_scope(skip_roles) leaves out? */
bool ky_text_is_packet_role(const struct ky_field_class *cls);

/*
 * Compile how to write events of @cls. @style is borrowed. @trace_name: see ky_trace_name().
 * NULL when out of memory.
 */
struct text_plan *ky_text_plan_new(struct ky_arena *arena, const struct ky_event_class *cls,
				   const struct text_style *style, const char *trace_name);
/* Write everything behind the packet's context. NULL: @err. */
char *ky_text_plan_run(struct ky_text *text, char *at, const struct text_plan *plan,
		       const struct ky_event *event, struct kymo_error *err);

/* ---- names and colours --------------------------------------------------------------- */

/* What @options ask for. */
void ky_text_style_init(struct text_style *style, const struct ky_text_options *options);
/* Are names of fields written in @scope? */
bool ky_text_names_fields(const struct text_style *style, enum ky_scope scope);
/* The code of @colour; "" without colours. */
static inline const char *ky_text_code(const struct text_style *style, enum text_colour colour)
{
	return style->codes ? style->codes[colour] : "";
}
/* "name = ", as names of @colour are written. */
void ky_text_add_name(struct ky_strbuf *out, const struct text_style *style,
		      enum text_colour colour, const char *name);
/* "stream.packet.context = ", where names of scopes are asked for. */
void ky_text_add_scope_name(struct ky_strbuf *out, const struct text_style *style,
			    enum ky_scope scope);
/* What stands between the time and the first scope: origin, level, name of the event. */
void ky_text_add_head(struct ky_strbuf *out, const struct text_style *style,
		      const struct ky_event_class *cls, const char *trace_name);

/* ---- numbers ------------------------------------------------------------------------- */

extern const char ky_text_pairs[200];

/* Decimal; @at has room for 20 bytes. */
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

/* The same for what lies in at least TEXT_SLACK bytes: mostly without a loop, whatever its length. */
static inline char *ky_text_put_padded(char *at, const char *s, size_t len)
{
	if (__builtin_expect(len <= TEXT_SLACK, 1))
		memcpy(at, s, TEXT_SLACK);
	else
		memcpy(at, s, len);
	return at + len;
}

#endif
