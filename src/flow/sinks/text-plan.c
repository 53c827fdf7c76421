/* SPDX-License-Identifier: MIT */
/*
 * The text sink: plans.
 *
 * For each event class, the first event compiles a list of steps: a literal (", next_tid = "),
 * then a field to load and to write. Names, braces and separators of structs and of short
 * arrays melt into the literals. A scope whose shape depends on its values (sequences,
 * variants) is one step that writes it from its list of values.
 */
#include "flow/sinks/text-internal.h"

#include "base/bits.h"
#include "base/error.h"
#include "base/word.h"
#include "ctf/decode/plan-interpreter.h"
#include "flow/sinks/address-names.h"

/* Longer arrays are not unrolled, and scopes of more steps not planned. */
#define UNROLL_MAX    32
#define SCOPE_OPS_MAX 1024
#define DEPTH_MAX     32
#define LITERAL_MAX   4096 /* elements without a bit are text all the same */

struct builder {
	struct ky_arena *arena;
	const struct text_style *style;
	KY_VEC(struct text_op) ops;
	struct ky_strbuf literal; /* collected for the next step */
	size_t scope_begin;	  /* its first step */
	unsigned int depth;	  /* of structs and arrays being compiled */
	uint8_t enters;		  /* a scope, with the next step: enum ky_scope; 0: none */
	bool is_at_byte;	  /* the next step begins at a byte, wherever its scope does */
	bool names;		  /* of fields, in this scope */
	const char *event;	  /* the name of the event class */
	bool failed;		  /* out of memory */
};

/* ---- compiling --------------------------------------------------------------------------- */

static void push_op(struct builder *b, struct text_op op)
{
	op.literal_len = (uint32_t)b->literal.len;
	op.enters = b->enters;
	if (b->enters)
		b->is_at_byte = false;
	if (b->is_at_byte && op.align_bits == 8)
		op.align_bits = 1;
	op.moves = op.enters || op.align_bits > 1;
	b->is_at_byte = (b->is_at_byte || op.align_bits >= 8) && op.bits % 8 == 0;
	b->enters = 0;
	if (b->literal.len <= TEXT_PIECE_BYTES) {
		memcpy(op.piece, ky_strbuf_text(&b->literal), b->literal.len);
	} else {
		op.literal = ky_arena_strndup(b->arena, b->literal.data, b->literal.len);
		b->failed |= !op.literal;
	}
	b->failed |= ky_strbuf_failed(&b->literal) || ky_vec_push(&b->ops, op) < 0;
	ky_strbuf_clear(&b->literal);
}

static bool plan_field(struct builder *b, const struct ky_field_class *cls);

/* Alignment of something that contains others, unless the first of them does it anyway. */
static void plan_align(struct builder *b, const struct ky_field_class *cls,
		       const struct ky_field_class *first)
{
	if (cls->align_bits > 1 && (!first || first->align_bits < cls->align_bits))
		push_op(b, (struct text_op){.kind = TEXT_OP_NONE, .align_bits = cls->align_bits});
}

/* Behind a number of whole bytes. */
static void plan_decoding(struct builder *b, const char *field, const struct ky_field_class *cls)
{
	uint8_t decoder = b->style->decode ? ky_text_decoder(b->event, field) : 0;

	if (decoder && (cls->kind == KY_FIELD_UINT || cls->kind == KY_FIELD_SINT) &&
	    !cls->num.big_endian && !cls->num.bits_reversed && cls->align_bits % 8 == 0 &&
	    (cls->num.length_bits == 32 || cls->num.length_bits == 64))
		push_op(b, (struct text_op){.kind = TEXT_OP_DECODE, .scope = decoder, .cls = cls});
}

static bool plan_struct(struct builder *b, const struct ky_field_class *cls)
{
	plan_align(b, cls, cls->st.n_members ? cls->st.members[0].cls : NULL);
	ky_strbuf_adds(&b->literal, "{");
	b->depth++;
	for (size_t i = 0; i < cls->st.n_members; i++) {
		ky_strbuf_adds(&b->literal, i ? ", " : " ");
		if (b->names)
			ky_text_add_name(&b->literal, b->style, TEXT_COLOUR_FIELD_NAME,
					 cls->st.members[i].display);
		if (!plan_field(b, cls->st.members[i].cls))
			return false;
		plan_decoding(b, cls->st.members[i].display, cls->st.members[i].cls);
	}
	b->depth--;
	ky_strbuf_adds(&b->literal, " }");
	return true;
}

static bool plan_array(struct builder *b, const struct ky_field_class *cls)
{
	if (cls->array.length_ref || cls->array.length > UNROLL_MAX)
		return false;
	plan_align(b, cls, cls->array.length ? cls->array.element : NULL);
	ky_strbuf_adds(&b->literal, "[");
	b->depth++;
	for (uint64_t i = 0; i < cls->array.length; i++) {
		ky_strbuf_adds(&b->literal, i ? ", " : " ");
		if (b->names)
			ky_strbuf_addf(&b->literal, "[%u] = ", (unsigned int)i);
		if (!plan_field(b, cls->array.element))
			return false;
	}
	b->depth--;
	ky_strbuf_adds(&b->literal, " ]");
	return true;
}

static enum text_op_kind number_kind(const struct ky_field_class *cls)
{
	bool is_signed = cls->kind == KY_FIELD_SINT;

	if (cls->num.is_enum || (cls->kind != KY_FIELD_UINT && cls->kind != KY_FIELD_SINT) ||
	    cls->num.big_endian || cls->num.bits_reversed || cls->align_bits % 8)
		return TEXT_OP_NUMBER;
	if (cls->num.base == 16)
		return cls->num.length_bits == 64 ? TEXT_OP_HEX64 : TEXT_OP_NUMBER;
	if (cls->num.base != 10)
		return TEXT_OP_NUMBER;
	switch (cls->num.length_bits) {
	case 8:
		return is_signed ? TEXT_OP_S8 : TEXT_OP_U8;
	case 16:
		return is_signed ? TEXT_OP_S16 : TEXT_OP_U16;
	case 32:
		return is_signed ? TEXT_OP_S32 : TEXT_OP_U32;
	case 64:
		return is_signed ? TEXT_OP_S64 : TEXT_OP_U64;
	default:
		return TEXT_OP_NUMBER;
	}
}

static bool is_byte_text(const struct ky_field_class *cls)
{
	return cls->text.encoding == KY_ENCODING_UTF8 || cls->text.encoding == KY_ENCODING_ASCII ||
	       cls->text.encoding == KY_ENCODING_NONE;
}

/* Of an enumeration, the labels and the number have colours, not the whole. */
static void text_plan_push_value(struct builder *b, struct text_op op)
{
	bool whole = op.kind >= TEXT_OP_TEXT || !op.cls->num.is_enum;

	if (whole)
		ky_strbuf_adds(&b->literal, ky_text_code(b->style, TEXT_COLOUR_VALUE));
	push_op(b, op);
	if (whole)
		ky_strbuf_adds(&b->literal, ky_text_code(b->style, TEXT_COLOUR_NONE));
}

static bool plan_field(struct builder *b, const struct ky_field_class *cls)
{
	struct text_op op = {.cls = cls, .align_bits = cls->align_bits};

	if (b->ops.len - b->scope_begin > SCOPE_OPS_MAX || b->literal.len > LITERAL_MAX ||
	    b->depth > DEPTH_MAX || ky_text_is_wide(cls))
		return false;
	switch (cls->kind) {
	case KY_FIELD_STRUCT:
		return plan_struct(b, cls);
	case KY_FIELD_ARRAY:
		return plan_array(b, cls);
	case KY_FIELD_STRING:
		op.kind = TEXT_OP_STRING;
		break;
	case KY_FIELD_TEXT:
		op.kind = TEXT_OP_TEXT;
		if (cls->text.length_ref || cls->text.length_bytes > UINT32_MAX / 8)
			return false;
		op.bits = (uint32_t)cls->text.length_bytes * 8;
		break;
	case KY_FIELD_BITS:
	case KY_FIELD_BITMAP:
	case KY_FIELD_BOOL:
	case KY_FIELD_UINT:
	case KY_FIELD_SINT:
	case KY_FIELD_FLOAT:
		op.kind = (uint8_t)number_kind(cls);
		op.bits = cls->num.length_bits;
		if (op.bits > (cls->kind == KY_FIELD_FLOAT ? 128 : 64) || cls->num.unit_bits)
			return false;
		break;
	default:
		return false;
	}
	if (op.kind >= TEXT_OP_TEXT && !is_byte_text(cls))
		return false;
	text_plan_push_value(b, op);
	return true;
}

static void plan_scope(struct builder *b, const struct ky_event_class *cls, enum ky_scope scope)
{
	const struct ky_field_class *root = ky_scope_root(cls, scope);
	const char *before;
	size_t n_before;

	ky_text_add_scope_name(&b->literal, b->style, scope);
	n_before = b->literal.len;
	before = ky_arena_strndup(b->arena, ky_strbuf_text(&b->literal), n_before);
	b->failed |= !before;
	b->enters = (uint8_t)scope;
	b->names = ky_text_names_fields(b->style, scope);
	b->scope_begin = b->ops.len;
	b->depth = 0;
	if (!(b->style->has_addresses && ky_address_in_scope(cls, scope)) && plan_struct(b, root))
		return;
	b->ops.len = b->scope_begin;
	ky_strbuf_clear(&b->literal);
	b->enters = 0;
	b->is_at_byte = false;
	if (before)
		ky_strbuf_add(&b->literal, before, n_before); /* lint: own text */
	push_op(b, (struct text_op){.kind = TEXT_OP_GENERAL, .scope = (uint8_t)scope});
}

static bool has_packet_context(const struct ky_stream_class *cls)
{
	const struct ky_field_class *st = cls->packet_context;

	for (size_t i = 0; st && i < st->st.n_members; i++) {
		if (!ky_text_is_packet_role(st->st.members[i].cls))
			return true;
	}
	/* One that was meant to be empty is shown, as babeltrace2 does. */
	return st && !st->st.n_members;
}

static void plan_head(struct builder *b, const struct ky_event_class *cls, const char *trace_name,
		      struct text_plan *plan)
{
	struct ky_strbuf head = KY_STRBUF_INIT;

	ky_text_add_head(&head, b->style, cls, trace_name);
	if (plan->packet_context)
		ky_text_add_scope_name(&head, b->style, KY_SCOPE_PACKET_CONTEXT);
	plan->head_len = (uint32_t)head.len;
	for (size_t i = head.len; i < TEXT_SLACK; i++)
		ky_strbuf_addc(&head, '\0');
	plan->head = ky_arena_strndup(b->arena, ky_strbuf_text(&head), head.len);
	b->failed |= !plan->head || ky_strbuf_failed(&head);
	ky_strbuf_fini(&head);
}

static size_t room_for(const struct text_op *op)
{
	return op->literal_len + TEXT_NUMBER_BYTES;
}

struct text_plan *ky_text_plan_new(struct ky_arena *arena, const struct ky_event_class *cls,
				   const struct text_style *style, const char *trace_name)
{
	static const enum ky_scope scopes[] = {KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_EVENT_CONTEXT,
					       KY_SCOPE_PAYLOAD};
	struct text_plan *plan = ky_arena_new(arena, struct text_plan);
	struct builder b = {.arena = arena, .style = style, .event = cls->name ? cls->name : ""};
	bool first = true;

	if (!plan)
		return NULL;
	plan->packet_context = has_packet_context(cls->stream);
	plan_head(&b, cls, trace_name, plan);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		if (!ky_scope_root(cls, scopes[i]))
			continue;
		if (!first || plan->packet_context)
			ky_strbuf_adds(&b.literal, ", ");
		first = false;
		plan_scope(&b, cls, scopes[i]);
	}
	ky_strbuf_addc(&b.literal, '\n');
	push_op(&b, (struct text_op){.kind = TEXT_OP_NONE});
	ky_vec_foreach(&b.ops, op)
		plan->room += room_for(op);
	plan->n_ops = (uint32_t)b.ops.len;
	plan->ops = ky_arena_memdup(arena, b.ops.data, b.ops.len * sizeof(*b.ops.data));
	b.failed |= !plan->ops;
	ky_vec_fini(&b.ops);
	ky_strbuf_fini(&b.literal);
	return b.failed ? NULL : plan;
}

/* ---- running ----------------------------------------------------------------------------- */

static uint64_t text_plan_scope_begin(const struct ky_event *event, uint8_t scope)
{
	switch (scope) {
	case KY_SCOPE_STREAM_CONTEXT:
		return event->begin_bits + event->stream_context_bits;
	case KY_SCOPE_EVENT_CONTEXT:
		return event->begin_bits + event->event_context_bits;
	default:
		return event->begin_bits + event->payload_bits;
	}
}

static inline char *text_plan_put_literal(char *at, const struct text_op *op)
{
	if (__builtin_expect(op->literal_len <= TEXT_PIECE_BYTES, 1)) {
		memcpy(at, op->piece, TEXT_PIECE_BYTES);
		return at + op->literal_len;
	}
	return ky_text_put(at, op->literal, op->literal_len);
}

/*
 * The decoder has walked this event by the same classes, so the checks against its end
 * never fire; they keep a mistake here from reading elsewhere.
 */
char *ky_text_plan_run(struct ky_text *text, char *at, const struct text_plan *plan,
		       const struct ky_event *event, bool has_first, struct kymo_error *err)
{
	const struct text_op *op = plan->ops, *last = op + plan->n_ops - 1;
	const uint8_t *data = event->packet->data, *field;
	uint64_t bits = 0, end = event->end_bits, value;
	const char *s, *nul;
	size_t len;

	at = ky_text_room(text, at, plan->room, err);
	if (!at)
		return NULL;
	if (!has_first)
		at = text_plan_put_literal(at, op);
	for (;; at = text_plan_put_literal(at, ++op)) {
		if (op->moves) {
			if (op->enters)
				bits = text_plan_scope_begin(event, op->enters);
			if (op->align_bits > 1)
				bits = ky_align_up(bits, op->align_bits);
		}
		if (__builtin_expect(bits + op->bits > end, 0))
			goto past_end;
		field = data + bits / 8;
		bits += op->bits;
		switch ((enum text_op_kind)op->kind) {
		case TEXT_OP_NONE:
			break;
		case TEXT_OP_DECODE:
			field -= op->cls->num.length_bits / 8;
			at = ky_text_put_decoded(at, op->scope,
						 op->cls->num.length_bits == 32
							 ? ky_load32(field, false)
							 : ky_load64(field, false));
			break;
		case TEXT_OP_GENERAL:
			at = ky_text_scope(text, at, event, (enum ky_scope)op->scope, false, err);
			goto room;
		case TEXT_OP_U8:
			at = ky_text_put_u64(at, *field);
			break;
		case TEXT_OP_U16:
			at = ky_text_put_u64(at, ky_load16(field, false));
			break;
		case TEXT_OP_U32:
			at = ky_text_put_u64(at, ky_load32(field, false));
			break;
		case TEXT_OP_U64:
			at = ky_text_put_u64(at, ky_load64(field, false));
			break;
		case TEXT_OP_S8:
			at = ky_text_put_i64(at, (int8_t)*field);
			break;
		case TEXT_OP_S16:
			at = ky_text_put_i64(at, (int16_t)ky_load16(field, false));
			break;
		case TEXT_OP_S32:
			at = ky_text_put_i64(at, (int32_t)ky_load32(field, false));
			break;
		case TEXT_OP_S64:
			at = ky_text_put_i64(at, (int64_t)ky_load64(field, false));
			break;
		case TEXT_OP_HEX64:
			value = ky_load64(field, false);
			*at++ = '0';
			*at++ = 'x';
			at = ky_word_put_hex(at, value, ky_word_hex_digits(value), true);
			break;
		case TEXT_OP_NUMBER:
			at = ky_text_number(text, at, op->cls,
					    ky_number_read(op->cls, data, bits - op->bits), err);
			goto room;
		case TEXT_OP_TEXT:
			s = (const char *)field;
			len = op->bits / 8;
			nul = ky_word_find_nul(s, len);
			at = ky_text_quoted(text, at, s, nul ? (size_t)(nul - s) : len, err);
			goto room;
		case TEXT_OP_STRING:
			s = (const char *)field;
			nul = ky_word_find_nul(s, (end - bits) / 8);
			if (!nul)
				goto past_end;
			len = (size_t)(nul - s);
			bits += (len + 1) * 8;
			at = ky_text_quoted(text, at, s, len, err);
			goto room;
		}
		if (op == last)
			return at;
		continue;
room:
		/* What was written had no fixed size. */
		if (at)
			at = ky_text_room(text, at, plan->room, err);
		if (!at || op == last)
			return at;
	}
past_end:
	ky_error_set(err, KYMO_E_FORMAT, "field goes past the event's end");
	ky_error_offset(err, event->packet->file_offset_bytes + bits / 8);
	return NULL;
}
