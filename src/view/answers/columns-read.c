/* SPDX-License-Identifier: MIT */
#include "view/answers/columns-read.h"

#include <endian.h>
#include <string.h>

#include "base/error.h"

#define MAX_DEPTH 8 /* of a head */

struct reader {
	const uint8_t *at, *end;
	bool failed;
};

static uint64_t columns_read_number(struct reader *reader)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
		uint64_t bits = *reader->at & 127;

		if (bits << shift >> shift != bits)
			break;
		number |= bits << shift;
		if (*reader->at++ < 128)
			return number;
	}
	reader->failed = true;
	return 0;
}

/* The next @len bytes. */
static struct reader columns_read_take(struct reader *reader, uint64_t len)
{
	struct reader part = {reader->at, reader->at, false};

	if (len > (size_t)(reader->end - reader->at)) {
		reader->failed = true;
		return part;
	}
	part.end = reader->at += len;
	return part;
}

/* ---- values ------------------------------------------------------------------------------------ */

static void columns_read_numbers(struct reader *reader, const struct ky_view_values *values,
				 int64_t *numbers)
{
	uint64_t last = 0;

	for (size_t i = 0; i < values->n; i++) {
		uint64_t word = columns_read_number(reader);

		if (values->type != KY_VIEW_NUMBERS)
			word = last += word >> 1 ^ (word & 1 ? UINT64_MAX : 0);
		numbers[i] = (int64_t)word;
	}
}

static double columns_read_real(struct reader *reader, size_t size)
{
	struct reader part = columns_read_take(reader, size);
	float single;
	double number;
	uint32_t word;
	uint64_t words;

	if (reader->failed)
		return 0;
	if (size == sizeof(word)) {
		memcpy(&word, part.at, size);
		word = le32toh(word);
		memcpy(&single, &word, size);
		return (double)single;
	}
	memcpy(&words, part.at, size);
	words = le64toh(words);
	memcpy(&number, &words, size);
	return number;
}

static int columns_read_texts(struct reader *reader, size_t n, struct ky_arena *arena,
			      struct ky_view_value_text *texts)
{
	for (size_t i = 0; i < n; i++) {
		struct reader part = columns_read_take(reader, columns_read_number(reader));

		texts[i].len = (size_t)(part.end - part.at);
		texts[i].data = ky_arena_strndup(arena, (const char *)part.at, texts[i].len);
		if (!texts[i].data)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

/* Each value has a byte at least. */
static int columns_read_values(struct reader *reader, struct ky_view_values *values,
			       struct ky_arena *arena)
{
	size_t n = values->n;
	void *list;
	int ret = KYMO_OK;

	if (n > (size_t)(reader->end - reader->at)) {
		reader->failed = true;
		return KYMO_OK;
	}
	list = ky_arena_array(arena, n + 1, sizeof(struct ky_view_value_text));
	if (!list)
		return KYMO_E_MEMORY;
	if (values->type == KY_VIEW_TEXTS) {
		values->texts = list;
		ret = columns_read_texts(reader, n, arena, list);
	} else if (values->type == KY_VIEW_REALS || values->type == KY_VIEW_DOUBLES) {
		values->reals = list;
		for (size_t i = 0; i < n; i++)
			((double *)list)[i] =
				columns_read_real(reader, values->type == KY_VIEW_REALS ? 4 : 8);
	} else {
		values->numbers = list;
		columns_read_numbers(reader, values, list);
	}
	reader->failed |= reader->at != reader->end;
	return ret;
}

/* ---- answers ----------------------------------------------------------------------------------- */

static int columns_read_head(const struct reader *part, struct ky_arena *arena,
			     struct ky_view_columns *columns)
{
	struct kymo_error why;
	struct ky_json_reader reader = {
		.line = 1, .arena = arena, .err = &why, .depth_left = MAX_DEPTH};

	ky_error_clear(&why);
	reader.at = reader.line_begin = (const char *)part->at;
	reader.end = (const char *)part->end;
	columns->head = ky_json_read(&reader);
	if (!columns->head)
		return why.code == KYMO_E_FORMAT ? KYMO_E_FORMAT : KYMO_E_MEMORY;
	return columns->head->kind == KY_JSON_OBJECT ? KYMO_OK : KYMO_E_FORMAT;
}

static int columns_read_one(struct reader *reader, enum ky_view_column_type type,
			    struct ky_arena *arena, struct ky_view_columns *columns)
{
	struct reader name = columns_read_take(reader, columns_read_number(reader));
	struct ky_view_values *values = &columns->list[columns->n];
	struct reader part;
	int ret;

	*values = (struct ky_view_values){.type = type};
	values->n = columns_read_number(reader);
	part = columns_read_take(reader, columns_read_number(reader));
	if (reader->failed)
		return KYMO_OK;
	if (type == KY_VIEW_HEAD)
		return columns_read_head(&part, arena, columns);
	if (!strchr("udtfrs", (int)type) || columns->n + 1 >= KY_VIEW_COLUMNS_MAX) {
		reader->failed = true;
		return KYMO_OK;
	}
	values->name = ky_arena_strndup(arena, (const char *)name.at, (size_t)(name.end - name.at));
	ret = values->name ? columns_read_values(&part, values, arena) : KYMO_E_MEMORY;
	reader->failed |= part.failed;
	columns->n++;
	return ret;
}

int ky_view_read_columns(const char *data, size_t len, struct ky_arena *arena,
			 struct ky_view_columns *columns, struct kymo_error *err)
{
	struct reader reader = {(const uint8_t *)data, (const uint8_t *)data + len, false};
	int ret = KYMO_OK;

	columns->head = NULL;
	columns->n = 0;
	if (len < sizeof(KY_VIEW_MAGIC) ||
	    memcmp(data, KY_VIEW_MAGIC, sizeof(KY_VIEW_MAGIC) - 1) != 0)
		return ky_error_set(err, KYMO_E_FORMAT, "the answer is malformed");
	reader.at += sizeof(KY_VIEW_MAGIC) - 1;
	while (ret == KYMO_OK && !reader.failed && reader.at < reader.end && *reader.at) {
		enum ky_view_column_type type = (enum ky_view_column_type) * reader.at++;

		ret = columns_read_one(&reader, type, arena, columns);
	}
	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0 || reader.failed || reader.end - reader.at != 1)
		return ky_error_set(err, KYMO_E_FORMAT, "the answer is malformed");
	return KYMO_OK;
}

static bool columns_read_is_like(enum ky_view_column_type a, enum ky_view_column_type b)
{
	bool texts = a == KY_VIEW_TEXTS, reals = a == KY_VIEW_REALS || a == KY_VIEW_DOUBLES;

	return texts == (b == KY_VIEW_TEXTS) &&
	       reals == (b == KY_VIEW_REALS || b == KY_VIEW_DOUBLES);
}

const struct ky_view_values *ky_view_find_column(const struct ky_view_columns *columns,
						 const char *name, enum ky_view_column_type type)
{
	for (size_t i = 0; i < columns->n; i++) {
		const struct ky_view_values *values = &columns->list[i];

		if (columns_read_is_like(values->type, type) && strcmp(values->name, name) == 0)
			return values;
	}
	return NULL;
}

const struct ky_json *ky_view_head(const struct ky_view_columns *columns, const char *name)
{
	return columns->head ? ky_json_get(columns->head, name) : NULL;
}

bool ky_view_fill_runs(const struct ky_view_columns *columns, const char *name, double *pixels,
		       size_t n)
{
	const struct ky_view_values *codes = ky_view_find_column(columns, "code", KY_VIEW_NUMBERS);
	const struct ky_view_values *extents =
		ky_view_find_column(columns, "extent", KY_VIEW_NUMBERS);
	const struct ky_view_values *values = ky_view_find_column(columns, name, KY_VIEW_NUMBERS);
	uint64_t x = 0, used = 0;

	if (!codes || !extents || !values || values->n != codes->n)
		return false;
	memset(pixels, 0, n * sizeof(*pixels));
	for (size_t i = 0; i < codes->n; i++) {
		uint64_t code = (uint64_t)codes->numbers[i], length = 1;

		if (used + (code & KY_VIEW_RUN_HAS_GAP) + (code >> 1 & 1) > extents->n)
			return false;
		if (code & KY_VIEW_RUN_HAS_GAP)
			x += (uint64_t)extents->numbers[used++];
		if (code & KY_VIEW_RUN_IS_LONG)
			length = (uint64_t)extents->numbers[used++];
		if (x > n || length > n - x)
			return false;
		for (; length; length--)
			pixels[x++] = (double)values->numbers[i];
	}
	return true;
}
