/* SPDX-License-Identifier: MIT */
/*
 * Running a decode plan over bytes: the one interpreter behind skipping, values and handles.
 *
 * Files: plan-interpreter.c goes over the steps, number.c decodes numbers, choice.c selects the option of a variant.
 */
#ifndef KY_CTF_DECODE_PLAN_INTERPRETER_H
#define KY_CTF_DECODE_PLAN_INTERPRETER_H

#include "ctf/decode/decode.h"
#include "ctf/decode/plan.h"

/* Where the decoder stands in a packet. Invariant: at_bits <= end_bits <= 2^60. */
struct ky_cursor {
	const uint8_t *data;
	uint64_t at_bits;
	uint64_t end_bits;
	uint64_t *slots;	  /* values that other fields refer to, by number */
	struct ky_values *values; /* where values are collected, or NULL: only skip */
	uint32_t n_empty;	  /* array elements without a bit so far */
	bool has_order;		  /* a number was read, */
	bool last_big_endian;	  /* and this is its byte order: the rule about shared bytes */
};

/*
 * Run the steps [@begin, @end) of @plan: siblings, each with all that it contains.
 * Returns 0 or KYMO_E_FORMAT/KYMO_E_LIMIT/KYMO_E_MEMORY; then cursor->at_bits is where it went wrong.
 */
int ky_run(struct ky_cursor *cursor, const struct ky_scope_plan *plan, uint32_t begin, uint32_t end,
	   struct kymo_error *err);

/* Is a number of @cls kept in value->big? */
static inline bool ky_is_big(const struct ky_field_class *cls)
{
	return cls->kind != KY_FIELD_BOOL &&
	       cls->num.length_bits > (cls->kind == KY_FIELD_FLOAT ? 128 : 64);
}

/* A number of up to 64 bits as its class means it: sign-extended, bits in order, a float as double. */
uint64_t ky_number_read(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits);

/*
 * A LEB128 number at the byte *@at; *@at moves behind it. 0, KYMO_E_FORMAT when it does not end
 * before @end, KYMO_E_UNSUPPORTED beyond 64 bits.
 */
int ky_leb128_read(const uint8_t **at, const uint8_t *end, bool is_signed, uint64_t *value,
		   unsigned int *n_bits);

/*
 * Bits 64 * @word and up of a number of any size; @word 0 is the least significant, missing high
 * bits are 0. The caller has checked that the number lies within @data.
 */
uint64_t ky_number_word(const struct ky_field_class *cls, const uint8_t *data, uint64_t at_bits,
			unsigned int word);

/* Run over the first @count elements of the array whose step is @at. Errors as ky_run(). */
int ky_run_elements(struct ky_cursor *cursor, const struct ky_scope_plan *plan, uint32_t at,
		    uint64_t count, struct kymo_error *err);

/* Is there what @ref refers to? Else its slot has the value of an event before. */
static inline bool ky_is_there(const struct ky_cursor *cursor, const struct ky_field_ref *ref)
{
	return __builtin_expect(!ref->choice, 1) ||
	       cursor->slots[ref->target->slot + 1] >= cursor->slots[ref->choice->slot];
}

/*
 * The option that a variant or optional field holds, by its selector, which is there; n_options: none.
 * ky_option_enter() also notes what that option has (struct ky_option_target), as decoding must.
 */
size_t ky_option_selected(const struct ky_cursor *cursor, const struct ky_field_class *cls);
size_t ky_option_enter(const struct ky_cursor *cursor, const struct ky_field_class *cls);

/* The length of a text up to its NUL unit of @unit bytes, or @room when none exists. */
uint64_t ky_text_length(const uint8_t *text, uint64_t room, unsigned int unit);

/* Bytes of one unit of @encoding: 1, 2 or 4. */
unsigned int ky_code_unit_bytes(enum ky_encoding encoding);

/* Skip a whole scope; nothing when it does not exist. */
static inline int ky_skip_scope(struct ky_cursor *cursor, const struct ky_scope_plan *plan,
				struct kymo_error *err)
{
	return plan->root ? ky_run(cursor, plan, 0, plan->n_steps, err) : KYMO_OK;
}

/*
 * Fill cursor->slots with what @scope of @event needs from scopes that lie before it.
 * Leaves cursor at the begin of @scope.
 */
int ky_enter_scope(struct ky_cursor *cursor, const struct ky_event *event, enum ky_scope scope,
		   struct kymo_error *err);

#endif
