/* SPDX-License-Identifier: MIT */
/*
 * A JSON reader for metadata: every value remembers its line and column, integers are exact from
 * INT64_MIN to UINT64_MAX (which is why this is no library's: those stop at INT64_MAX), and numbers
 * beyond that, and real ones, stay as they are written.
 */
#ifndef KY_CTF_JSON_JSON_H
#define KY_CTF_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/strbuf.h"

enum ky_json_kind {
	KY_JSON_NULL,
	KY_JSON_BOOL,
	KY_JSON_INTEGER,
	KY_JSON_BIG, /* an integer beyond 64 bits */
	KY_JSON_REAL,
	KY_JSON_STRING,
	KY_JSON_ARRAY,
	KY_JSON_OBJECT,
};

struct ky_json {
	enum ky_json_kind kind;
	uint32_t line, column;
	const char *key;      /* of an object's member */
	struct ky_json *next; /* sibling */
	union {
		bool boolean;
		struct {
			uint64_t u; /* two's complement when negative */
			bool negative;
		} integer;
		const char *number; /* as it is written: BIG, REAL */
		struct {
			const char *data; /* UTF-8, NUL-terminated */
			size_t len;
		} string;
		struct {
			struct ky_json *first;
			size_t len;
		} list; /* array, object */
	};
};

/*
 * Levels that any text may have. Metadata may have as many more as its length allows for: a field
 * class takes three levels, and at least 48 bytes.
 */
#define KY_JSON_DEPTH 256

/* Where reading goes on; line and column count from 1. */
struct ky_json_reader {
	const char *at, *end;
	const char *line_begin;
	uint32_t line;
	struct ky_arena *arena;
	struct kymo_error *err;
	size_t depth_left; /* levels that what is read may still have */
};

/*
 * Read one JSON value at reader->at; blanks before and behind it are skipped.
 * The tree lives in reader->arena. NULL on failure: KYMO_E_FORMAT with line and column,
 * KYMO_E_LIMIT (nested deeper than reader->depth_left), KYMO_E_MEMORY.
 */
struct ky_json *ky_json_read(struct ky_json_reader *reader);

/* Skip blanks; false at the end. */
bool ky_json_more(struct ky_json_reader *reader);

/* The member @key of an object, or NULL. */
struct ky_json *ky_json_get(const struct ky_json *object, const char *key);

/* Is integer @a (also BIG) less than integer @b? */
bool ky_json_less(const struct ky_json *a, const struct ky_json *b);

/* "a string", "an integer" ...: for messages. */
const char *ky_json_kind_name(enum ky_json_kind kind);

/* Record KYMO_E_FORMAT at the place of @value. Returns KYMO_E_FORMAT. */
int ky_json_error(struct kymo_error *err, const struct ky_json *value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Append @value, on one line, ", " and ": " in it. 0 or KYMO_E_MEMORY (as @out may have failed). */
int ky_json_put(struct ky_strbuf *out, const struct ky_json *value);
/* Append @len bytes of UTF-8 as a JSON string. */
void ky_json_put_text(struct ky_strbuf *out, const char *text, size_t len);

#endif
