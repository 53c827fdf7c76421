/* SPDX-License-Identifier: MIT */
/*
 * Answers as columns (columns.h), read again: for clients that get another encoding.
 *
 * Bytes may be damaged. Threads: any; the functions have no state.
 */
#ifndef KY_VIEW_COLUMNS_READ_H
#define KY_VIEW_COLUMNS_READ_H

#include <kymo/error.h>

#include "base/arena.h"
#include "ctf/json/json.h"
#include "view/answers/columns.h"

#define KY_VIEW_COLUMNS_MAX 64

struct ky_view_value_text {
	const char *data; /* NUL-terminated; any bytes */
	size_t len;
};

/* Values of one column, by its type. */
struct ky_view_values {
	const char *name;
	enum ky_view_column_type type;
	size_t n;
	const int64_t *numbers; /* numbers, steps, times */
	const double *reals;	/* reals, doubles */
	const struct ky_view_value_text *texts;
};

struct ky_view_columns {
	const struct ky_json *head; /* an object; of several, the last one */
	struct ky_view_values list[KY_VIEW_COLUMNS_MAX];
	size_t n;
};

/* All of an answer, which lives in @arena. 0, KYMO_E_FORMAT or KYMO_E_MEMORY. */
int ky_view_read_columns(const char *data, size_t len, struct ky_arena *arena,
			 struct ky_view_columns *columns, struct kymo_error *err);
/* The column @name, of a type that has numbers, reals or texts as @type has; NULL: the answer has none. */
const struct ky_view_values *ky_view_find_column(const struct ky_view_columns *columns,
						 const char *name, enum ky_view_column_type type);
/*
 * The numbers of column @name, one for each run, as @n pixels; those without a run become 0. False: the columns do not fit.
 */
bool ky_view_fill_runs(const struct ky_view_columns *columns, const char *name, double *pixels,
		       size_t n);
/* A member of the head; NULL: the answer has none. */
const struct ky_json *ky_view_head(const struct ky_view_columns *columns, const char *name);

#endif
