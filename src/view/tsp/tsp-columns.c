/* SPDX-License-Identifier: MIT */
/* Answers of the engine in columns. */
#include <stdlib.h>

#include "base/error.h"
#include "view/tsp/tsp-internal.h"

int ky_tsp_ask_columns(struct ky_tsp_answer *answer, const struct ky_view_request *request,
		       struct ky_arena *arena, struct ky_view_columns *columns,
		       struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	int ret = ky_view_answer(answer->view, request, answer->stop, &bytes, err);

	if (ret == KYMO_OK)
		ret = ky_view_read_columns(bytes.data, bytes.len, arena, columns, err);
	ky_strbuf_fini(&bytes);
	return ret;
}

const int64_t *ky_tsp_numbers(const struct ky_view_columns *columns, const char *name, size_t n)
{
	const struct ky_view_values *values = ky_view_find_column(columns, name, KY_VIEW_NUMBERS);

	return values && values->n == n ? values->numbers : NULL;
}

bool ky_tsp_flag(const struct ky_view_columns *columns, const char *name)
{
	const struct ky_json *value = ky_view_head(columns, name);

	return value && value->kind == KY_JSON_BOOL && value->boolean;
}

/* Whole numbers are written with a point, too. */
bool ky_tsp_is_counted(const struct ky_view_columns *columns)
{
	const struct ky_json *progress = ky_view_head(columns, "progress");

	if (!progress || progress->kind != KY_JSON_REAL)
		return progress && progress->kind == KY_JSON_INTEGER && progress->integer.u == 1;
	return strtod(progress->number, NULL) >= 1;
}

static bool tsp_columns_are_names(const struct ky_tsp_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		if (rows->name_numbers[i] < 1 || (uint64_t)rows->name_numbers[i] > rows->names->n)
			return false;
	}
	return true;
}

int ky_tsp_ask_rows(struct ky_tsp_answer *answer, struct ky_view_request *request,
		    struct ky_arena *arena, struct ky_tsp_rows *rows, struct kymo_error *err)
{
	const struct ky_view_values *texts;
	int ret;

	request->what = KY_VIEW_ROWS;
	ret = ky_tsp_ask_columns(answer, request, arena, &rows->columns, err);
	if (ret < 0)
		return ret;
	texts = ky_view_find_column(&rows->columns, "text", KY_VIEW_TEXTS);
	rows->n = texts ? texts->n : 0;
	rows->texts = texts ? texts->texts : NULL;
	rows->times = ky_tsp_numbers(&rows->columns, "ns", rows->n);
	rows->traces = ky_tsp_numbers(&rows->columns, "trace", rows->n);
	rows->cpus = ky_tsp_numbers(&rows->columns, "cpu", rows->n);
	rows->name_numbers = ky_tsp_numbers(&rows->columns, "name", rows->n);
	rows->names = ky_view_find_column(&rows->columns, "names", KY_VIEW_TEXTS);
	if (!texts || !rows->times || !rows->traces || !rows->cpus || !rows->name_numbers ||
	    !rows->names || !tsp_columns_are_names(rows))
		return ky_error_set(err, KYMO_E_STATE, "the answer has no rows");
	return KYMO_OK;
}
