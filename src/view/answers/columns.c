/* SPDX-License-Identifier: MIT */
#include "view/answers/columns.h"

#include <endian.h>
#include <math.h>
#include <string.h>

static const int64_t most = ((int64_t)1 << 53) - 1;
/* All integers up to it are exact in 32 bits of floating point. */
#define EXACT_SINGLE 16777216.0

/* ---- values ---------------------------------------------------------------------------------- */

static void columns_put(struct ky_strbuf *out, uint64_t number)
{
	char bytes[10];
	size_t n = 0;

	for (; number > 127; number >>= 7)
		bytes[n++] = (char)(number | 128);
	bytes[n++] = (char)number;
	ky_strbuf_add(out, bytes, n);
}

void ky_view_add_number(struct ky_view_column *column, uint64_t number)
{
	columns_put(&column->bytes, number < (uint64_t)most ? number : (uint64_t)most);
	column->n++;
}

void ky_view_add_step(struct ky_view_column *column, int64_t number)
{
	uint64_t step;

	if (column->type == KY_VIEW_STEPS)
		number = number > most ? most : number < -most ? -most : number;
	/* Steps of times wrap, as the page's 64-bit integers do. */
	step = (uint64_t)number - column->last;
	column->last = (uint64_t)number;
	columns_put(&column->bytes, step << 1 ^ (step >> 63 ? UINT64_MAX : 0));
	column->n++;
}

static void columns_put_double(struct ky_strbuf *out, double number)
{
	uint64_t words;

	memcpy(&words, &number, sizeof(words));
	words = htole64(words);
	ky_strbuf_add(out, (const char *)&words, sizeof(words));
}

/* All that the column has, too. */
static void columns_widen(struct ky_view_column *column)
{
	struct ky_strbuf wide = KY_STRBUF_INIT;

	for (size_t i = 0; i < column->n && !ky_strbuf_failed(&column->bytes); i++) {
		uint32_t word;
		float single;

		memcpy(&word, column->bytes.data + i * sizeof(word), sizeof(word));
		word = le32toh(word);
		memcpy(&single, &word, sizeof(single));
		columns_put_double(&wide, (double)single);
	}
	wide.failed |= column->bytes.failed;
	ky_strbuf_fini(&column->bytes);
	column->bytes = wide;
	column->type = KY_VIEW_DOUBLES;
}

void ky_view_add_real(struct ky_view_column *column, double number)
{
	float single = (float)number;
	uint32_t word;

	if (column->type == KY_VIEW_REALS && fabs(number) > EXACT_SINGLE &&
	    (double)single != number)
		columns_widen(column);
	if (column->type == KY_VIEW_DOUBLES) {
		columns_put_double(&column->bytes, number);
	} else {
		memcpy(&word, &single, sizeof(word));
		word = htole32(word);
		ky_strbuf_add(&column->bytes, (const char *)&word, sizeof(word));
	}
	column->n++;
}

void ky_view_add_text(struct ky_view_column *column, const char *text, size_t len)
{
	columns_put(&column->bytes, len);
	ky_strbuf_add(&column->bytes, text, len);
	column->n++;
}

/* ---- names ----------------------------------------------------------------------------------- */

void ky_view_names_init(struct ky_view_names *names, const char *texts, const char *column)
{
	ky_names_init(&names->numbers);
	ky_arena_init(&names->arena);
	names->texts = (struct ky_view_column)KY_VIEW_COLUMN(texts, KY_VIEW_TEXTS);
	names->column = (struct ky_view_column)KY_VIEW_COLUMN(column, KY_VIEW_NUMBERS);
}

void ky_view_names_fini(struct ky_view_names *names)
{
	ky_names_fini(&names->numbers);
	ky_arena_fini(&names->arena);
	ky_view_column_fini(&names->texts);
	ky_view_column_fini(&names->column);
}

size_t ky_view_number_of(struct ky_view_names *names, const char *name, size_t len)
{
	size_t number = (uintptr_t)ky_names_getn(&names->numbers, name, len);
	char *copy;

	if (number)
		return number;
	copy = ky_arena_strndup(&names->arena, name, len);
	number = names->texts.n + 1;
	if (!copy || ky_names_set(&names->numbers, copy, (void *)(uintptr_t)number) < 0) {
		names->texts.bytes.failed = true;
		return 0;
	}
	ky_view_add_text(&names->texts, name, len);
	return number;
}

void ky_view_add_name(struct ky_view_names *names, const char *name)
{
	ky_view_add_number(&names->column, ky_view_number_of(names, name, strlen(name)));
}

/* ---- runs ------------------------------------------------------------------------------------ */

void ky_view_runs_init(struct ky_view_runs *runs, const char *codes, const char *extents)
{
	*runs = (struct ky_view_runs){.codes = KY_VIEW_COLUMN(codes, KY_VIEW_NUMBERS),
				      .extents = KY_VIEW_COLUMN(extents, KY_VIEW_NUMBERS)};
}

void ky_view_runs_restart(struct ky_view_runs *runs)
{
	runs->end = 0;
}

void ky_view_add_run(struct ky_view_runs *runs, size_t from, size_t to, uint64_t code)
{
	bool has_gap = from > runs->end, is_long = to - from > 1;

	ky_view_add_number(&runs->codes, code << KY_VIEW_RUN_BITS |
						 (has_gap ? KY_VIEW_RUN_HAS_GAP : 0) |
						 (is_long ? KY_VIEW_RUN_IS_LONG : 0));
	if (has_gap)
		ky_view_add_number(&runs->extents, from - runs->end);
	if (is_long)
		ky_view_add_number(&runs->extents, to - from);
	runs->end = to;
}

/* ---- answers --------------------------------------------------------------------------------- */

void ky_view_begin_columns(struct ky_strbuf *out)
{
	ky_strbuf_add(out, KY_VIEW_MAGIC, sizeof(KY_VIEW_MAGIC) - 1);
}

static void columns_put_bytes(struct ky_strbuf *out, const char *name,
			      enum ky_view_column_type type, size_t n,
			      const struct ky_strbuf *bytes)
{
	ky_strbuf_addc(out, (char)type);
	columns_put(out, strlen(name));
	ky_strbuf_adds(out, name);
	columns_put(out, n);
	columns_put(out, bytes->len);
	ky_strbuf_add(out, ky_strbuf_text(bytes), bytes->len);
	out->failed |= bytes->failed;
}

void ky_view_put_column(struct ky_strbuf *out, struct ky_view_column *column)
{
	columns_put_bytes(out, column->name, column->type, column->n, &column->bytes);
	ky_view_column_fini(column);
}

void ky_view_put_head(struct ky_strbuf *out, const struct ky_strbuf *head)
{
	columns_put_bytes(out, "", KY_VIEW_HEAD, 1, head);
}

void ky_view_put_names(struct ky_strbuf *out, struct ky_view_names *names)
{
	ky_view_put_column(out, &names->texts);
	ky_view_put_column(out, &names->column);
	ky_view_names_fini(names);
}

void ky_view_put_runs(struct ky_strbuf *out, struct ky_view_runs *runs)
{
	ky_view_put_column(out, &runs->codes);
	ky_view_put_column(out, &runs->extents);
}

void ky_view_end_columns(struct ky_strbuf *out)
{
	ky_strbuf_addc(out, '\0');
}

void ky_view_column_fini(struct ky_view_column *column)
{
	ky_strbuf_fini(&column->bytes);
	ky_strbuf_init(&column->bytes);
	column->n = 0;
}

void ky_view_runs_fini(struct ky_view_runs *runs)
{
	ky_view_column_fini(&runs->codes);
	ky_view_column_fini(&runs->extents);
}
