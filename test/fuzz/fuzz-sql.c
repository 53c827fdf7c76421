/* SPDX-License-Identifier: MIT */
/*
 * Statements of any kind over a small kernel trace: none crashes, hangs, or changes a file. A statement ends after some time or memory; its rows are texts
 * that end where they say.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "small-trace.h"
#include "sql/sql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_BYTES  (UINT64_C(64) << 20)
#define QUESTIONS_MAX 200 /* of the statement, whether it is to stop */
#define ROWS_MAX      2000

static char directory[64];
static struct ky_trace_set set;
static struct ky_sql *sql;
static unsigned int n_questions, n_rows;

static void remove_trace(void)
{
	char path[128];

	ky_sql_close(sql);
	ky_trace_set_close(&set);
	snprintf(path, sizeof(path), "%s/metadata", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/stream", directory);
	unlink(path);
	/* What a statement had written would still be there. */
	if (rmdir(directory) < 0)
		abort();
}

static bool is_enough(void *data)
{
	(void)data;
	return ++n_questions > QUESTIONS_MAX;
}

static int on_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)err;
	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) > SIZE_MAX / 2)
			abort();
	return KYMO_OK;
}

static int on_row(void *data, const struct ky_sql_value *values, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)err;
	for (size_t i = 0; i < n; i++)
		if (values[i].type == KY_SQL_TEXT && values[i].text[values[i].len])
			abort();
	return ++n_rows > ROWS_MAX ? KYMO_E_LIMIT : KYMO_OK;
}

static void prepare(void)
{
	const char *const paths[] = {directory};
	struct kymo_error err;

	strcpy(directory, "/tmp/kymo-fuzz-sql-XXXXXX");
	if (!mkdtemp(directory))
		abort();
	small_trace_write(directory);
	if (ky_trace_set_open(&set, paths, 1, NULL, &err) < 0 || ky_sql_open(&set, &sql, &err) < 0)
		abort();
	ky_sql_limit_memory(MEMORY_BYTES);
	ky_sql_set_stop(sql, is_enough, NULL);
	atexit(remove_trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ky_sql_sink sink = {NULL, on_names, on_row};
	const struct ky_sql_parameter one = {"a", "1"};
	struct kymo_error err;
	char *text;

	if (!sql)
		prepare();
	n_questions = n_rows = 0;
	text = strndup((const char *)data, size);
	if (!text)
		return 0;
	(void)ky_sql_is_complete(text);
	(void)ky_sql_run(sql, text, &one, 1, &sink, &err);
	free(text);
	return 0;
}
