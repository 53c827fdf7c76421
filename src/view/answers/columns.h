/* SPDX-License-Identifier: MIT */
/*
 * Answers as columns: the encoding of all answers to the page whose size grows with pixels, rows or events.
 * docs/design/viewer.md describes the bytes.
 *
 * A column is a list of values of one type. Numbers have seven bits in each byte, the lowest first; the eighth bit of a byte says that
 * more follow. Adding returns no error: what memory was lacking for is an answer that has failed (ky_strbuf_failed()).
 *
 * Threads: each column belongs to one thread at a time.
 */
#ifndef KY_VIEW_COLUMNS_H
#define KY_VIEW_COLUMNS_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/strbuf.h"

enum ky_view_column_type {
	KY_VIEW_HEAD = 'j',    /* a JSON object: the members of the answer that do not grow */
	KY_VIEW_NUMBERS = 'u', /* up to 2^53 - 1 */
	KY_VIEW_STEPS = 'd',   /* signed differences to the value before, within the same limits */
	KY_VIEW_TIMES = 't',   /* the same with 64 bits */
	KY_VIEW_REALS = 'f',   /* 32 bits, little-endian */
	KY_VIEW_DOUBLES = 'r', /* 64 bits, little-endian */
	KY_VIEW_TEXTS = 's',   /* number of bytes, UTF-8 */
};

/* The begin of an answer; the last byte is the version. */
#define KY_VIEW_MAGIC "KYA\1"

struct ky_view_column {
	const char *name;
	enum ky_view_column_type type;
	size_t n;
	uint64_t last;
	struct ky_strbuf bytes;
};

#define KY_VIEW_COLUMN(NAME, TYPE)                                      \
	{                                                               \
		.name = (NAME), .type = (TYPE), .bytes = KY_STRBUF_INIT \
	}

/* Greater ones become 2^53 - 1, which is more than a double of the page holds. */
void ky_view_add_number(struct ky_view_column *column, uint64_t number);
/* Of type KY_VIEW_STEPS (within +-(2^53 - 1), else the nearest of them) or KY_VIEW_TIMES. */
void ky_view_add_step(struct ky_view_column *column, int64_t number);
/*
 * Of type KY_VIEW_REALS or KY_VIEW_DOUBLES. The former becomes the latter with the first number that is greater than all integers of 32 bits
 * are exact for, and is not exact itself.
 */
void ky_view_add_real(struct ky_view_column *column, double number);
/* What is no UTF-8 is replaced by the page. */
void ky_view_add_text(struct ky_view_column *column, const char *text, size_t len);

/* Texts that occur several times: a column of the texts, and one of their numbers, from 1 on. */
struct ky_view_names {
	struct ky_names numbers;
	struct ky_arena arena;
	struct ky_view_column texts, column;
};

/* @texts, @column: names of the two columns. */
void ky_view_names_init(struct ky_view_names *names, const char *texts, const char *column);
void ky_view_names_fini(struct ky_view_names *names);
/* The number of a name, which is copied; 0: out of memory, the texts have failed. */
size_t ky_view_number_of(struct ky_view_names *names, const char *name, size_t len);
/* Add the number of a name. */
void ky_view_add_name(struct ky_view_names *names, const char *name);

/* Runs of pixels: each behind those before it. Pixels without a run have nothing to show. */
enum {
	KY_VIEW_RUN_HAS_GAP = 1,
	KY_VIEW_RUN_IS_LONG = 2,
	KY_VIEW_RUN_BITS = 2,
};

struct ky_view_runs {
	struct ky_view_column codes, extents;
	size_t end; /* of the last run */
};

/* @codes, @extents: names of the two columns. */
void ky_view_runs_init(struct ky_view_runs *runs, const char *codes, const char *extents);
/* The runs that follow are those of another row. */
void ky_view_runs_restart(struct ky_view_runs *runs);
/* Pixels @from to before @to. @code: what the run is. */
void ky_view_add_run(struct ky_view_runs *runs, size_t from, size_t to, uint64_t code);

/* An answer: begin, heads and columns in any order, end. Columns lose their memory. */
void ky_view_begin_columns(struct ky_strbuf *out);
void ky_view_put_column(struct ky_strbuf *out, struct ky_view_column *column);
/* A JSON object; @head is borrowed. */
void ky_view_put_head(struct ky_strbuf *out, const struct ky_strbuf *head);
void ky_view_put_names(struct ky_strbuf *out, struct ky_view_names *names);
void ky_view_put_runs(struct ky_strbuf *out, struct ky_view_runs *runs);
void ky_view_end_columns(struct ky_strbuf *out);

/* Free the memory of columns that are not put. */
void ky_view_column_fini(struct ky_view_column *column);
void ky_view_runs_fini(struct ky_view_runs *runs);

#endif
