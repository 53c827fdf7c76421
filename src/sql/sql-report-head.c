/* SPDX-License-Identifier: MIT */
/* The head of a user's own report. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql-report-parts.h"

/* A copy without blanks at both ends. */
static const char *sql_report_trim(struct ky_arena *arena, const char *text, size_t len)
{
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return ky_arena_strndup(arena, text, len);
}

static bool sql_report_class(const char *text, size_t len, enum ky_cell_class *cls)
{
	/* Those that have a number or a text as their value. */
	static const enum ky_cell_class classes[] = {
		KY_CELL_TEXT,  KY_CELL_COUNT,	  KY_CELL_NUMBER, KY_CELL_DURATION,
		KY_CELL_RATIO, KY_CELL_TIMESTAMP, KY_CELL_CPU,	  KY_CELL_SIZE,
		KY_CELL_RATE,  KY_CELL_ADDRESS,	  KY_CELL_PATH};

	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		const char *name = ky_cell_class_text(classes[i]);

		*cls = classes[i];
		if (strlen(name) == len && memcmp(name, text, len) == 0)
			return true;
	}
	return false;
}

/* "took duration" */
static int sql_report_add_column(struct ky_sql_report *own, const char *words, size_t len,
				 const char *help, struct kymo_error *err)
{
	const char *trimmed = sql_report_trim(&own->arena, words, len);
	const char *blank = trimmed ? strrchr(trimmed, ' ') : NULL;
	struct ky_sql_report_column column = {.help = help};

	if (!trimmed || !help)
		return ky_error_nomem(err);
	if (!blank || !sql_report_class(blank + 1, strlen(blank + 1), &column.cls))
		return ky_error_set(
			err, KYMO_E_INVALID,
			"'-- column %s': 'NAME CLASS: TEXT' is expected, with a class "
			"such as duration, timestamp, size, count, number, ratio or text",
			trimmed);
	column.name = sql_report_trim(&own->arena, trimmed, (size_t)(blank - trimmed));
	if (!column.name || ky_vec_push(&own->columns, column) < 0)
		return ky_error_nomem(err);
	return 0;
}

/* "least=1000" */
static int sql_report_add_parameter(struct ky_sql_report *own, const char *words, size_t len,
				    struct kymo_error *err)
{
	const char *equals = memchr(words, '=', len);
	struct ky_sql_parameter parameter;

	if (!equals)
		return ky_error_set(err, KYMO_E_INVALID, "'-- param': NAME=VALUE is expected");
	parameter.name = sql_report_trim(&own->arena, words, (size_t)(equals - words));
	parameter.value =
		sql_report_trim(&own->arena, equals + 1, len - (size_t)(equals + 1 - words));
	if (!parameter.name || !parameter.value || ky_vec_push(&own->parameters, parameter) < 0)
		return ky_error_nomem(err);
	return 0;
}

static int sql_report_add_table(struct ky_sql_report *own, const char *words, size_t len,
				const char *title, struct kymo_error *err)
{
	struct ky_sql_report_named named = {sql_report_trim(&own->arena, words, len), title};

	if (!named.name || !title || ky_vec_push(&own->named, named) < 0)
		return ky_error_nomem(err);
	return 0;
}

#define ABOUT_MAX_BYTES 4096

static int sql_report_add_about(struct ky_sql_report *own, const char *text, struct kymo_error *err)
{
	/* Each line copies those before. */
	if (own->about && strlen(own->about) > ABOUT_MAX_BYTES)
		return ky_error_set(err, KYMO_E_LIMIT, "the description has more than 4096 bytes");
	own->about = own->about ? ky_arena_printf(&own->arena, "%s %s", own->about, text) : text;
	return text && own->about ? 0 : ky_error_nomem(err);
}

static bool sql_report_is(const char *line, const char *word)
{
	size_t len = strlen(word);

	return strncmp(line, word, len) == 0 && (line[len] == ':' || line[len] == ' ');
}

/* A line of the head, behind "--". Others are comments. */
static int sql_report_line(struct ky_sql_report *own, const char *line, size_t len,
			   struct kymo_error *err)
{
	const char *colon = memchr(line, ':', len), *rest = NULL;

	if (sql_report_is(line, "param"))
		return sql_report_add_parameter(own, line + 5, len - 5, err);
	if (!colon)
		return 0;
	rest = sql_report_trim(&own->arena, colon + 1, len - (size_t)(colon + 1 - line));
	if (!rest)
		return ky_error_nomem(err);
	if (sql_report_is(line, "title"))
		own->title = rest;
	else if (sql_report_is(line, "about"))
		return sql_report_add_about(own, rest, err);
	else if (sql_report_is(line, "column"))
		return sql_report_add_column(own, line + 6, (size_t)(colon - line) - 6, rest, err);
	else if (sql_report_is(line, "table"))
		return sql_report_add_table(own, line + 5, (size_t)(colon - line) - 5, rest, err);
	return 0;
}

int ky_sql_report_read_head(struct ky_sql_report *own, const char *text, struct kymo_error *err)
{
	int ret = 0;

	for (uint32_t number = 1; *text && !ret; number++) {
		size_t len = strcspn(text, "\n");

		if (len >= 2 && text[0] == '-' && text[1] == '-') {
			const char *line = text + 2;
			size_t rest = len - 2;

			for (; rest && *line == ' '; rest--)
				line++;
			ret = sql_report_line(own, line, rest, err);
		} else if (strspn(text, " \t\r") < len) {
			break;
		}
		if (ret == KYMO_E_INVALID)
			ky_error_line(err, number, 1);
		text += len + (text[len] == '\n');
	}
	return ret;
}

char *ky_sql_report_title(const char *text)
{
	struct ky_sql_report own = {.sql = NULL};
	char *title;

	ky_arena_init(&own.arena);
	(void)ky_sql_report_read_head(&own, text, NULL);
	title = strdup(own.title ? own.title : "");
	ky_vec_fini(&own.columns);
	ky_vec_fini(&own.named);
	ky_vec_fini(&own.parameters);
	ky_arena_fini(&own.arena);
	return title;
}
