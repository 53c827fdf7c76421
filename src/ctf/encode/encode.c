/* SPDX-License-Identifier: MIT */
#include "ctf/encode/encode.h"

#include <string.h>

#include "base/bits.h"
#include "base/deep.h"
#include "base/error.h"
#include "ctf/decode/plan-interpreter.h"
#include "ctf/model/walk.h"

/* No room. The value is not a status, since this is not an error. */
#define FULL 1

/* What one call goes through. */
struct run {
	struct ky_encoder *e;
	const struct ky_value *at, *end;
	struct kymo_error *err;
};

static int does_not_fit(const struct run *r, const struct ky_value *v, const char *what)
{
	return ky_error_set(r->err, KYMO_E_INVALID, "field%s%s: %s", v->name ? " " : "",
			    v->name ? v->name : "", what);
}

static bool encode_has_room(const struct ky_encoder *e, uint64_t bits)
{
	return bits <= e->size_bits - e->at_bits;
}

static bool write_padding(struct ky_encoder *e, uint64_t align_bits)
{
	uint64_t aligned = ky_align_up(e->at_bits, align_bits);
	unsigned int rest;

	if (aligned > e->size_bits)
		return false;
	rest = (unsigned int)(ky_align_up(e->at_bits, 8) - e->at_bits);
	if (rest > aligned - e->at_bits)
		rest = (unsigned int)(aligned - e->at_bits);
	if (rest)
		ky_write_bits(e->data, e->at_bits, rest, 0, e->big_endian);
	e->at_bits += rest;
	memset(e->data + e->at_bits / 8, 0, (aligned - e->at_bits) / 8);
	e->at_bits = aligned;
	return true;
}

/* Most of what is written is aligned already. */
static inline bool align_to(struct ky_encoder *e, uint64_t align_bits)
{
	return __builtin_expect(!(e->at_bits & (align_bits - 1)), 1) ||
	       write_padding(e, align_bits);
}

bool ky_encode_align(struct ky_encoder *e, uint64_t align_bits)
{
	return align_to(e, align_bits);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static void write_raw(const struct ky_encoder *e, const struct ky_field_class *cls, uint64_t at,
		      unsigned int bits, uint64_t raw)
{
	if (cls->num.bits_reversed)
		raw = ky_reverse_bits(raw, bits);
	ky_write_bits(e->data, at, bits, raw, cls->num.big_endian);
}

/* Bits of any number, 64 at a time from the least significant. */
static void write_words(const struct ky_encoder *e, const struct ky_value *v)
{
	bool high_first = v->cls->num.big_endian != v->cls->num.bits_reversed;
	uint32_t bits = v->cls->num.length_bits;

	for (uint32_t from = 0; from < bits; from += 64) {
		uint32_t n = bits - from < 64 ? bits - from : 64;
		uint64_t at = e->at_bits + (high_first ? bits - from - n : from);

		write_raw(e, v->cls, at, n, ky_value_word(v, from / 64));
	}
}

/* Whole bytes that begin at one, as most numbers are. False: not such a number, or no room. */
static inline bool encode_whole(struct ky_encoder *e, const struct ky_value *v)
{
	const struct ky_field_class *cls = v->cls;
	uint32_t bits = cls->num.length_bits;

	if ((e->at_bits & 7) || cls->num.bits_reversed || cls->num.unit_bits ||
	    cls->kind == KY_FIELD_FLOAT || bits > 64 || !encode_has_room(e, bits) ||
	    !ky_store_bytes(e->data + e->at_bits / 8, bits, v->u, cls->num.big_endian))
		return false;
	if (cls->slot != KY_NO_SLOT)
		e->slots[cls->slot] = v->u;
	e->big_endian = cls->num.big_endian;
	e->at_bits += bits;
	return true;
}

static int encode_number(struct run *r, const struct ky_value *v)
{
	const struct ky_field_class *cls = v->cls;
	struct ky_encoder *e = r->e;
	uint32_t bits = cls->num.length_bits;

	if (!align_to(e, ky_unit_align(cls, e->at_bits)) || !encode_has_room(e, bits))
		return FULL;
	if ((e->at_bits & 7) && e->big_endian != cls->num.big_endian)
		return does_not_fit(r, v, "the byte order would change inside a byte");
	e->big_endian = cls->num.big_endian;
	if (bits > 64)
		write_words(e, v);
	else if (cls->kind == KY_FIELD_FLOAT)
		write_raw(e, cls, e->at_bits, bits, v->f_bits);
	else
		write_raw(e, cls, e->at_bits, bits, v->u & ky_mask_bits(bits));
	if (cls->slot != KY_NO_SLOT)
		e->slots[cls->slot] = v->u;
	e->at_bits += bits;
	return KYMO_OK;
}

unsigned int ky_leb128_write(uint8_t *at, uint64_t value, bool is_signed, unsigned int min_bytes)
{
	uint64_t fill = is_signed && value >> 63 ? UINT64_MAX : 0;
	unsigned int n = 0;
	uint8_t byte;
	bool more;

	do {
		byte = value & 0x7f;
		value = value >> 7 | fill << 57;
		/* A signed number ends when the rest is copies of the sign that was written. */
		more = value != fill || (is_signed && (byte >> 6 & 1) != (fill & 1));
		n++;
		more |= n < min_bytes && n < KY_LEB128_MAX_BYTES;
		*at++ = byte | (more ? 0x80 : 0);
	} while (more);
	return n;
}

static int encode_leb128(struct run *r, const struct ky_value *v)
{
	struct ky_encoder *e = r->e;
	uint8_t bytes[KY_LEB128_MAX_BYTES];
	unsigned int n =
		ky_leb128_write(bytes, v->u, v->cls->kind == KY_FIELD_VARSINT, v->n_children / 7);

	if (!encode_has_room(e, (uint64_t)n * 8))
		return FULL;
	memcpy(e->data + e->at_bits / 8, bytes, n);
	e->at_bits += (uint64_t)n * 8;
	if (v->cls->slot != KY_NO_SLOT)
		e->slots[v->cls->slot] = v->u;
	return KYMO_OK;
}

/* ---- text --------------------------------------------------------------------------------- */

/* The text, and zeros up to @size_bytes. */
static int encode_put_bytes(struct run *r, const struct ky_value *v, uint64_t size_bytes)
{
	struct ky_encoder *e = r->e;
	uint8_t *to = e->data + e->at_bits / 8;

	if (size_bytes > (e->size_bits - e->at_bits) / 8)
		return FULL;
	memcpy(to, v->str.data, v->str.len_bytes);
	memset(to + v->str.len_bytes, 0, size_bytes - v->str.len_bytes);
	e->at_bits += size_bytes * 8;
	return KYMO_OK;
}

static int encode_bytes(struct run *r, const struct ky_value *v)
{
	const struct ky_field_class *cls = v->cls;
	uint64_t len = cls->text.length_bytes;

	if (cls->text.length_ref)
		len = r->e->slots[cls->text.length_ref->target->slot];
	if (v->str.len_bytes > len || (cls->kind == KY_FIELD_BLOB && v->str.len_bytes != len))
		return does_not_fit(r, v, "its text or blob is not as long as its length says");
	return encode_put_bytes(r, v, len);
}

/* ---- fields that contain others ----------------------------------------------------------- */

/* What it contains comes next. */
static int encode_array(struct run *r, const struct ky_value *v)
{
	const struct ky_field_class *cls = v->cls;
	uint64_t count = cls->array.length;

	if (cls->array.length_ref)
		count = r->e->slots[cls->array.length_ref->target->slot];
	/* n_children holds 32 bits; nothing longer was ever decoded. */
	if (v->n_children != count)
		return does_not_fit(r, v, "its elements are not as many as its length says");
	return KYMO_OK;
}

/* The value at r->at, without what it contains: in a list in pre-order that follows. */
static inline int encode_value(struct run *r)
{
	const struct ky_value *v = r->at++;

	if (v->n_below > (size_t)(r->end - r->at))
		return does_not_fit(r, v, "values are missing");
	if (!align_to(r->e, v->cls->align_bits))
		return FULL;
	switch (v->cls->kind) {
	case KY_FIELD_STRUCT:
	case KY_FIELD_OPTIONAL:
	case KY_FIELD_VARIANT:
		return KYMO_OK;
	case KY_FIELD_ARRAY:
		return encode_array(r, v);
	case KY_FIELD_STRING:
		return encode_put_bytes(
			r, v, v->str.len_bytes + ky_code_unit_bytes(v->cls->text.encoding));
	case KY_FIELD_TEXT:
	case KY_FIELD_BLOB:
		return encode_bytes(r, v);
	case KY_FIELD_VARUINT:
	case KY_FIELD_VARSINT:
		return encode_leb128(r, v);
	default:
		return encode_whole(r->e, v) ? KYMO_OK : encode_number(r, v);
	}
}

int ky_encode_scope(struct ky_encoder *encoder, const struct ky_value *values, size_t n_values,
		    struct kymo_error *err)
{
	struct run r = {.e = encoder, .at = values, .end = values + n_values, .err = err};
	uint64_t begin_bits = encoder->at_bits;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && r.at < r.end)
		ret = encode_value(&r);
	if (ret != KYMO_OK)
		encoder->at_bits = begin_bits;
	return ret;
}

KY_DEEP1(uint64_t, encode_max_align, const struct ky_field_class *)

static uint64_t encode_max_align(const struct ky_field_class *cls)
{
	uint64_t align = cls->align_bits, child;

	for (size_t i = 0; i < ky_field_n_children(cls); i++) {
		child = encode_max_align_deep(UINT32_MAX, ky_field_child(cls, i));
		align = child > align ? child : align;
	}
	return align;
}

uint64_t ky_encode_max_align(const struct ky_field_class *cls)
{
	return cls ? encode_max_align(cls) : 1;
}
