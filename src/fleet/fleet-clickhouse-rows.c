/* SPDX-License-Identifier: MIT */
/* Rows in the server's format Native, column by column, in compressed blocks. */
#include "fleet/fleet-clickhouse.h"

#include <string.h>

#include "base/error.h"
#include "os/zstd-library.h"

/* Compressed blocks: a checksum, the method, both sizes. */
#define PACK_BYTES     ((size_t)1 << 20)
#define CHECKSUM_BYTES 16
#define HEAD_BYTES     9
#define METHOD_ZSTD    '\x90'

/* A dictionary of LowCardinality comes with the block, and is all of it. */
#define DICTIONARY_FLAGS UINT64_C(0x600)

static void fleet_clickhouse_put_varint(struct ky_strbuf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		ky_strbuf_addc(out, (char)(value | 0x80));
	ky_strbuf_addc(out, (char)value);
}

static void fleet_clickhouse_put_text(struct ky_strbuf *out, const char *text, size_t len)
{
	fleet_clickhouse_put_varint(out, len);
	ky_strbuf_add(out, text, len);
}

static void fleet_clickhouse_put_head(struct ky_strbuf *out, const char *name, const char *type)
{
	fleet_clickhouse_put_text(out, name, strlen(name));
	fleet_clickhouse_put_text(out, type, strlen(type));
}

static void fleet_clickhouse_put_zeros(struct ky_strbuf *out, uint64_t n)
{
	if (!ky_strbuf_reserve(out, n))
		return;
	memset(out->data + out->len, 0, n);
	out->len += n;
	out->data[out->len] = '\0';
}

/* What all rows have in common. */
static void fleet_clickhouse_put_common(struct ky_strbuf *out, const struct ky_fleet_batch *batch)
{
	const uint64_t words[] = {1, DICTIONARY_FLAGS, 1};
	int64_t number = (int64_t)batch->number;

	fleet_clickhouse_put_head(out, "trace", "LowCardinality(String)");
	ky_strbuf_add(out, (const char *)words, sizeof(words));
	fleet_clickhouse_put_text(out, batch->trace, sizeof(batch->trace) - 1);
	ky_strbuf_add(out, (const char *)&batch->n_rows, sizeof(batch->n_rows));
	fleet_clickhouse_put_zeros(out, batch->n_rows);
	fleet_clickhouse_put_head(out, "batch", "Int64");
	for (uint64_t row = 0; row < batch->n_rows; row++)
		ky_strbuf_add(out, (const char *)&number, sizeof(number));
}

/*
 * As LowCardinality has them: the version, the type of the numbers with two flags, the texts, and the numbers. NULL is the empty text, which comes
 * last.
 */
static void fleet_clickhouse_put_dictionary(struct ky_strbuf *out,
					    const struct ky_fleet_vector *vector, uint64_t n_rows)
{
	const uint64_t n = vector->ends.len + 1;
	const uint64_t size = n <= 0xff ? 1 : n <= 0xffff ? 2 : 4;
	const uint64_t words[] = {1, DICTIONARY_FLAGS | size / 2, n};

	ky_strbuf_add(out, (const char *)words, sizeof(words));
	for (uint64_t i = 0; i < n - 1; i++) {
		size_t len;
		const char *text = ky_fleet_text(vector, (int64_t)i, &len);

		fleet_clickhouse_put_text(out, text, len);
	}
	fleet_clickhouse_put_text(out, "", 0);
	ky_strbuf_add(out, (const char *)&n_rows, sizeof(n_rows));
	if (!ky_strbuf_reserve(out, n_rows * size))
		return;
	for (uint64_t row = 0; row < n_rows; row++, out->len += size) {
		uint64_t number =
			ky_fleet_is_null(vector, row) ? n - 1 : (uint64_t)vector->numbers.data[row];

		memcpy(out->data + out->len, &number, size);
	}
	out->data[out->len] = '\0';
}

static void fleet_clickhouse_put_nulls(struct ky_strbuf *out, const struct ky_fleet_vector *vector,
				       uint64_t n_rows)
{
	size_t begin = out->len;

	fleet_clickhouse_put_zeros(out, n_rows);
	if (vector->nulls.len && !ky_strbuf_failed(out))
		memcpy(out->data + begin, vector->nulls.data, vector->nulls.len);
}

/* Under NULL stands the number before it: equal numbers are smaller when they are compressed. */
static int64_t fleet_clickhouse_number(const struct ky_fleet_vector *vector, size_t row,
				       int64_t before)
{
	return ky_fleet_is_null(vector, row) ? before : vector->numbers.data[row];
}

static void fleet_clickhouse_put_numbers(struct ky_strbuf *out,
					 const struct ky_fleet_vector *vector, uint64_t n_rows)
{
	int64_t number = 0;

	if (!vector->nulls.len) {
		ky_strbuf_add(out, (const char *)vector->numbers.data, n_rows * sizeof(number));
		return;
	}
	if (!ky_strbuf_reserve(out, n_rows * sizeof(number)))
		return;
	for (uint64_t row = 0; row < n_rows; row++, out->len += sizeof(number)) {
		number = fleet_clickhouse_number(vector, row, number);
		memcpy(out->data + out->len, &number, sizeof(number));
	}
	out->data[out->len] = '\0';
}

/* What is no small number is NULL. */
static void fleet_clickhouse_put_small(struct ky_strbuf *out, const struct ky_fleet_vector *vector,
				       uint64_t n_rows)
{
	int64_t number = 0;
	int32_t small = 0;
	size_t nulls = out->len;

	fleet_clickhouse_put_nulls(out, vector, n_rows);
	if (!ky_strbuf_reserve(out, n_rows * sizeof(small)))
		return;
	for (uint64_t row = 0; row < n_rows; row++, out->len += sizeof(small)) {
		number = fleet_clickhouse_number(vector, row, number);
		if (number == (int32_t)number)
			small = (int32_t)number;
		else
			out->data[nulls + row] = 1;
		memcpy(out->data + out->len, &small, sizeof(small));
	}
	out->data[out->len] = '\0';
}

static void fleet_clickhouse_put_texts(struct ky_strbuf *out, const struct ky_fleet_vector *vector,
				       uint64_t n_rows)
{
	for (uint64_t row = 0; row < n_rows; row++) {
		size_t len = 0;
		const char *text = "";

		if (!ky_fleet_is_null(vector, row))
			text = ky_fleet_text(vector, vector->numbers.data[row], &len);
		fleet_clickhouse_put_text(out, text, len);
	}
}

/* The server makes a dictionary of a column of texts by itself. */
static void fleet_clickhouse_rows_put_column(struct ky_strbuf *out,
					     const struct ky_fleet_batch *batch, size_t i,
					     const struct ky_fleet_form *form)
{
	const struct ky_fleet_vector *vector = &batch->vectors.data[i];

	fleet_clickhouse_put_head(out, batch->table->columns.data[i].name,
				  form->kind == KY_FLEET_TEXT ? "Nullable(String)" : form->type);
	if (form->kind == KY_FLEET_SMALL_NUMBER) {
		fleet_clickhouse_put_small(out, vector, batch->n_rows);
		return;
	}
	if (form->is_nullable)
		fleet_clickhouse_put_nulls(out, vector, batch->n_rows);
	if (form->kind == KY_FLEET_NUMBER || form->kind == KY_FLEET_REAL)
		fleet_clickhouse_put_numbers(out, vector, batch->n_rows);
	else if (form->kind == KY_FLEET_DICTIONARY)
		fleet_clickhouse_put_dictionary(out, vector, batch->n_rows);
	else
		fleet_clickhouse_put_texts(out, vector, batch->n_rows);
}

static bool fleet_clickhouse_fits(const struct ky_fleet_form *form,
				  const struct ky_fleet_column *column)
{
	bool is_text = form->kind == KY_FLEET_TEXT || form->kind == KY_FLEET_DICTIONARY;

	return is_text == column->is_text && (form->kind == KY_FLEET_REAL) == column->is_real;
}

/* Fields of one name may have different types in two traces: the table has that of the trace which was first. */
static void fleet_clickhouse_put_cast(struct ky_strbuf *out, const struct ky_fleet_batch *batch,
				      size_t i, const struct ky_fleet_form *form)
{
	struct ky_fleet_column column = batch->table->columns.data[i];
	struct ky_fleet_table table = {.name = batch->table->name,
				       .columns = {.data = &column, .len = 1}};
	struct ky_fleet_batch cast;

	column.is_text = form->kind == KY_FLEET_TEXT || form->kind == KY_FLEET_DICTIONARY;
	column.is_real = form->kind == KY_FLEET_REAL;
	if (ky_fleet_batch_init(&cast, &table) < 0) {
		out->failed = true;
		return;
	}
	for (uint64_t row = 0; row < batch->n_rows; row++) {
		const struct ky_sql_cell cell = ky_fleet_batch_cell(batch, i, row);

		ky_fleet_batch_add(&cast, 0, &cell);
		ky_fleet_batch_end_row(&cast);
	}
	out->failed |= cast.failed;
	if (!cast.failed)
		fleet_clickhouse_rows_put_column(out, &cast, 0, form);
	ky_fleet_batch_fini(&cast);
}

void ky_fleet_clickhouse_put_rows(struct ky_fleet_clickhouse *ch, struct ky_strbuf *out,
				  const struct ky_fleet_batch *batch)
{
	const struct ky_fleet_form *form;
	size_t n = 2;

	for (size_t i = 0; i < batch->vectors.len; i++)
		n += ky_fleet_clickhouse_form(ch, batch->table, i)->kind != KY_FLEET_COMPUTED;
	fleet_clickhouse_put_varint(out, n);
	fleet_clickhouse_put_varint(out, batch->n_rows);
	fleet_clickhouse_put_common(out, batch);
	for (size_t i = 0; i < batch->vectors.len; i++) {
		form = ky_fleet_clickhouse_form(ch, batch->table, i);
		if (form->kind == KY_FLEET_COMPUTED)
			continue;
		if (fleet_clickhouse_fits(form, &batch->table->columns.data[i]))
			fleet_clickhouse_rows_put_column(out, batch, i, form);
		else
			fleet_clickhouse_put_cast(out, batch, i, form);
	}
}

static int fleet_clickhouse_pack_piece(const char *data, size_t len, struct ky_strbuf *out)
{
	static const char checksum[CHECKSUM_BYTES];
	size_t room = ky_zstd.ZSTD_compressBound(len), n;
	uint32_t sizes[2];
	char *at;

	ky_strbuf_add(out, checksum, sizeof(checksum));
	if (!ky_strbuf_reserve(out, HEAD_BYTES + room))
		return KYMO_E_MEMORY;
	at = out->data + out->len;
	n = ky_zstd.ZSTD_compress(at + HEAD_BYTES, room, data, len, 1);
	if (ky_zstd.ZSTD_isError(n))
		return KYMO_E_MEMORY;
	sizes[0] = (uint32_t)(n + HEAD_BYTES);
	sizes[1] = (uint32_t)len;
	at[0] = METHOD_ZSTD;
	memcpy(at + 1, sizes, sizeof(sizes));
	out->len += HEAD_BYTES + n;
	out->data[out->len] = '\0';
	return KYMO_OK;
}

int ky_fleet_clickhouse_pack(const struct ky_strbuf *rows, struct ky_strbuf *out,
			     struct kymo_error *err)
{
	int ret = ky_zstd_library_load(err);

	for (size_t at = 0; at < rows->len && !ret; at += PACK_BYTES) {
		size_t len = rows->len - at < PACK_BYTES ? rows->len - at : PACK_BYTES;

		if (fleet_clickhouse_pack_piece(rows->data + at, len, out) < 0)
			ret = ky_error_nomem(err);
	}
	return ret;
}
