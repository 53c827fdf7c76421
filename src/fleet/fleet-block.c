/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-block.h"

#include <string.h>

#include "base/error.h"
#include "os/zstd-library.h"

/* As what a value is written. */
enum block_base {
	BLOCK_PLAIN,
	BLOCK_BEFORE, /* the difference to the last value */
	BLOCK_TIME,   /* to the begin of the interval of its row */
	BLOCK_SPAN,   /* to the length of it */
	BLOCK_BASES,
};

/* Flags, above the base. */
#define FLAG_NULLS 4  /* some rows are NULL */
#define FLAG_EQUAL 8  /* all differences are equal */
#define FLAG_TEXTS 16 /* the values are numbers of texts */
#define FLAG_REALS 32 /* the values are bits of real numbers */
#define FLAGS_MAX  63

#define ZSTD_LEVEL   1
#define PACK_MIN     64 /* bytes */
#define SAMPLE_ROWS  4096
#define VARINT_BYTES 10
#define BODY_MAX     (UINT64_C(1) << 30)

static uint64_t block_zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static uint64_t block_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

/* What the value of @row is compared with. */
static inline uint64_t block_base(enum block_base base, const struct ky_fleet_vector *time,
				  const struct ky_fleet_vector *end, size_t row, uint64_t last)
{
	switch (base) {
	case BLOCK_BEFORE:
		return last;
	case BLOCK_TIME:
		return (uint64_t)time->numbers.data[row];
	case BLOCK_SPAN:
		return (uint64_t)end->numbers.data[row] - (uint64_t)time->numbers.data[row];
	default:
		return 0;
	}
}

/* ---- to bytes ------------------------------------------------------------------------- */

static inline uint8_t *block_put_varint(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

static void block_add_varint(struct ky_strbuf *out, uint64_t value)
{
	uint8_t bytes[VARINT_BYTES];

	ky_strbuf_add(out, (const char *)bytes, (size_t)(block_put_varint(bytes, value) - bytes));
}

struct block_encoder {
	const struct ky_fleet_vector *vector, *time, *end;
	size_t n_rows;
	struct ky_strbuf body;
};

/* How many bits the first differences have. */
static uint64_t block_cost(const struct block_encoder *encoder, enum block_base base)
{
	const struct ky_fleet_vector *vector = encoder->vector;
	uint64_t last = 0, bits = 0;

	for (size_t row = 0; row < encoder->n_rows && row < SAMPLE_ROWS; row++) {
		uint64_t value = (uint64_t)vector->numbers.data[row];

		if (ky_fleet_is_null(vector, row))
			continue;
		bits += 64 - (unsigned int)__builtin_clzll(
				     block_zigzag(value - block_base(base, encoder->time,
								     encoder->end, row, last)) |
				     1);
		last = value;
	}
	return bits;
}

static enum block_base block_choose(const struct block_encoder *encoder)
{
	enum block_base best = BLOCK_PLAIN;
	uint64_t least = block_cost(encoder, BLOCK_PLAIN);

	/* Neighbours of texts' numbers mean nothing, and zstd finds what comes again. */
	for (enum block_base base = BLOCK_BEFORE; base < BLOCK_BASES && !encoder->vector->ends.len;
	     base++) {
		uint64_t cost;

		if ((base >= BLOCK_TIME && !encoder->time) || (base == BLOCK_SPAN && !encoder->end))
			continue;
		cost = block_cost(encoder, base);
		if (cost < least) {
			least = cost;
			best = base;
		}
	}
	return best;
}

static void block_put_nulls(struct block_encoder *encoder)
{
	uint8_t byte = 0;

	for (size_t row = 0; row < encoder->n_rows; row++) {
		byte |= (uint8_t)(ky_fleet_is_null(encoder->vector, row) << (row & 7));
		if ((row & 7) == 7 || row + 1 == encoder->n_rows) {
			ky_strbuf_addc(&encoder->body, (char)byte);
			byte = 0;
		}
	}
}

static void block_put_texts(struct block_encoder *encoder)
{
	block_add_varint(&encoder->body, encoder->vector->ends.len);
	for (size_t i = 0; i < encoder->vector->ends.len; i++) {
		size_t len;
		const char *text = ky_fleet_text(encoder->vector, (int64_t)i, &len);

		block_add_varint(&encoder->body, len);
		ky_strbuf_add(&encoder->body, text, len);
	}
}

/* *is_equal: all are as the first one, which alone is needed then. */
static void block_put_values(struct block_encoder *encoder, enum block_base base, bool *is_equal)
{
	const struct ky_fleet_vector *vector = encoder->vector;
	uint64_t last = 0, first = 0;
	size_t begin = encoder->body.len, n = 0, first_len = 0;
	uint8_t *at;

	*is_equal = true;
	if (!ky_strbuf_reserve(&encoder->body, encoder->n_rows * VARINT_BYTES))
		return;
	at = (uint8_t *)encoder->body.data + begin;
	for (size_t row = 0; row < encoder->n_rows; row++) {
		uint64_t value = (uint64_t)vector->numbers.data[row], coded;

		if (ky_fleet_is_null(vector, row))
			continue;
		coded = block_zigzag(value -
				     block_base(base, encoder->time, encoder->end, row, last));
		last = value;
		at = block_put_varint(at, coded);
		if (!n++) {
			first = coded;
			first_len = (size_t)(at - (uint8_t *)encoder->body.data) - begin;
		}
		*is_equal &= coded == first;
	}
	encoder->body.len =
		*is_equal ? begin + first_len : (size_t)(at - (uint8_t *)encoder->body.data);
	encoder->body.data[encoder->body.len] = '\0';
}

static int block_pack(const struct ky_strbuf *body, struct ky_strbuf *out, struct kymo_error *err)
{
	size_t n = body->len < PACK_MIN ? 0 : ky_zstd.ZSTD_compressBound(body->len), begin;

	ky_strbuf_addc(out, n != 0);
	block_add_varint(out, body->len);
	if (!n) {
		ky_strbuf_add(out, ky_strbuf_text(body), body->len);
		return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
	}
	if (!ky_strbuf_reserve(out, n))
		return ky_error_nomem(err);
	begin = out->len;
	n = ky_zstd.ZSTD_compress(out->data + begin, n, body->data, body->len, ZSTD_LEVEL);
	if (ky_zstd.ZSTD_isError(n))
		return ky_error_nomem(err);
	out->len = begin + n;
	out->data[out->len] = '\0';
	return KYMO_OK;
}

static unsigned int block_flags(const struct ky_fleet_column *column)
{
	return column->is_text ? FLAG_TEXTS : column->is_real ? FLAG_REALS : 0;
}

int ky_fleet_block_encode(const struct ky_fleet_batch *batch, size_t i, struct ky_strbuf *out,
			  struct kymo_error *err)
{
	int time = batch->table->time, end = batch->table->end;
	const struct ky_fleet_vector *vectors = batch->vectors.data;
	struct block_encoder encoder = {
		.vector = &vectors[i],
		.time = time >= 0 && (int)i != time ? &vectors[time] : NULL,
		.end = time >= 0 && end >= 0 && (int)i != time && (int)i != end ? &vectors[end]
										: NULL,
		.n_rows = batch->n_rows,
		.body = KY_STRBUF_INIT,
	};
	enum block_base base = block_choose(&encoder);
	bool is_equal;
	int ret = ky_zstd_library_load(err);

	if (ret < 0)
		return ret;
	ky_strbuf_addc(&encoder.body, 0);
	if (encoder.vector->nulls.len)
		block_put_nulls(&encoder);
	if (batch->table->columns.data[i].is_text)
		block_put_texts(&encoder);
	block_put_values(&encoder, base, &is_equal);
	if (ky_strbuf_failed(&encoder.body)) {
		ret = ky_error_nomem(err);
	} else {
		encoder.body.data[0] = (char)(base | (encoder.vector->nulls.len ? FLAG_NULLS : 0) |
					      (is_equal ? FLAG_EQUAL : 0) |
					      block_flags(&batch->table->columns.data[i]));
		ret = block_pack(&encoder.body, out, err);
	}
	ky_strbuf_fini(&encoder.body);
	return ret;
}

/* ---- from bytes ----------------------------------------------------------------------- */

struct block_decoder {
	const uint8_t *at, *end;
	uint64_t n_rows;
	struct ky_fleet_vector *vector;
};

static bool block_get_varint(struct block_decoder *decoder, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && decoder->at < decoder->end; shift += 7) {
		uint8_t byte = *decoder->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool block_get_nulls(struct block_decoder *decoder)
{
	if ((uint64_t)(decoder->end - decoder->at) < (decoder->n_rows + 7) / 8 ||
	    ky_vec_reserve(&decoder->vector->nulls, decoder->n_rows + 1) < 0)
		return false;
	for (uint64_t row = 0; row < decoder->n_rows; row++)
		decoder->vector->nulls.data[row] = decoder->at[row / 8] >> (row & 7) & 1;
	decoder->vector->nulls.len = decoder->n_rows;
	decoder->at += (decoder->n_rows + 7) / 8;
	return true;
}

static bool block_get_texts(struct block_decoder *decoder)
{
	struct ky_fleet_vector *vector = decoder->vector;
	uint64_t n, len;

	if (!block_get_varint(decoder, &n) || n > decoder->n_rows)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (!block_get_varint(decoder, &len) ||
		    len > (uint64_t)(decoder->end - decoder->at))
			return false;
		ky_strbuf_add(&vector->texts, (const char *)decoder->at, len);
		decoder->at += len;
		if (ky_strbuf_failed(&vector->texts) ||
		    ky_vec_push(&vector->ends, vector->texts.len) < 0)
			return false;
	}
	return true;
}

static bool block_get_values(struct block_decoder *decoder, unsigned int flags,
			     const struct ky_fleet_vector *time, const struct ky_fleet_vector *end)
{
	struct ky_fleet_vector *vector = decoder->vector;
	enum block_base base = flags & 3;
	uint64_t last = 0, coded = 0;
	bool is_known = false;

	if (ky_vec_reserve(&vector->numbers, decoder->n_rows + 1) < 0)
		return false;
	for (uint64_t row = 0; row < decoder->n_rows; row++) {
		vector->numbers.data[row] = 0;
		if (ky_fleet_is_null(vector, row))
			continue;
		if (!(is_known && (flags & FLAG_EQUAL)) && !block_get_varint(decoder, &coded))
			return false;
		is_known = true;
		last = block_unzigzag(coded) + block_base(base, time, end, row, last);
		if ((flags & FLAG_TEXTS) && last >= vector->ends.len)
			return false;
		vector->numbers.data[row] = (int64_t)last;
	}
	vector->numbers.len = decoder->n_rows;
	return true;
}

static bool block_get(struct block_decoder *decoder, enum ky_sql_type *type,
		      const struct ky_fleet_vector *time, const struct ky_fleet_vector *end)
{
	uint8_t flags = decoder->at < decoder->end ? *decoder->at++ : 0xff;
	enum block_base base = flags & 3;

	*type = flags & FLAG_TEXTS   ? KY_SQL_TEXT
		: flags & FLAG_REALS ? KY_SQL_REAL
				     : KY_SQL_INTEGER;
	if (flags > FLAGS_MAX || (flags & (FLAG_TEXTS | FLAG_REALS)) == (FLAG_TEXTS | FLAG_REALS))
		return false;
	if ((base >= BLOCK_TIME && (!time || time->numbers.len < decoder->n_rows)) ||
	    (base == BLOCK_SPAN && (!end || end->numbers.len < decoder->n_rows)))
		return false;
	return (!(flags & FLAG_NULLS) || block_get_nulls(decoder)) &&
	       (*type != KY_SQL_TEXT || block_get_texts(decoder)) &&
	       block_get_values(decoder, flags, time, end);
}

static void block_empty(struct ky_fleet_vector *vector)
{
	ky_vec_clear(&vector->numbers);
	ky_vec_clear(&vector->nulls);
	ky_vec_clear(&vector->ends);
	ky_strbuf_clear(&vector->texts);
}

/* What zstd packed, to @body. */
static bool block_unpack(struct block_decoder *packed, uint64_t bytes, struct ky_strbuf *body)
{
	size_t n;

	if (bytes > BODY_MAX || !ky_strbuf_reserve(body, bytes))
		return false;
	n = ky_zstd.ZSTD_decompress(body->data, bytes, packed->at,
				    (size_t)(packed->end - packed->at));
	packed->at = (const uint8_t *)body->data;
	packed->end = packed->at + bytes;
	return !ky_zstd.ZSTD_isError(n) && n == bytes;
}

int ky_fleet_block_decode(const char *data, size_t len, uint64_t n_rows,
			  const struct ky_fleet_vector *time, const struct ky_fleet_vector *end,
			  struct ky_fleet_vector *vector, enum ky_sql_type *type,
			  struct kymo_error *err)
{
	struct block_decoder decoder = {(const uint8_t *)data, (const uint8_t *)data + len, n_rows,
					vector};
	struct ky_strbuf body = KY_STRBUF_INIT;
	uint8_t is_packed = len ? *decoder.at++ : 2;
	uint64_t bytes;
	int ret = ky_zstd_library_load(err);
	bool is_right;

	block_empty(vector);
	if (ret < 0)
		return ret;
	is_right = n_rows <= KY_FLEET_BLOCK_ROWS && is_packed < 2 &&
		   block_get_varint(&decoder, &bytes) &&
		   (!is_packed || block_unpack(&decoder, bytes, &body)) &&
		   block_get(&decoder, type, time, end);
	ky_strbuf_fini(&body);
	if (is_right)
		return KYMO_OK;
	block_empty(vector);
	ky_error_set(err, KYMO_E_FORMAT, "the store is damaged: a column has other bytes");
	ky_error_hint(err, "load the traces into a new directory");
	return KYMO_E_FORMAT;
}
