/* SPDX-License-Identifier: MIT */
/* Parameters of statements for ClickHouse, whose old versions have none. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "fleet/fleet-tsv.h"
#include "fleet/fleet.h"

/* The end of what begins at @text in quotes or as a comment; @text: neither does. */
static const char *parameters_skip(const char *text)
{
	const char *end;

	if (strncmp(text, "--", 2) == 0)
		return text + strcspn(text, "\n");
	if (strncmp(text, "/*", 2) == 0) {
		end = strstr(text + 2, "*/");
		return end ? end + 2 : text + strlen(text);
	}
	if (*text != '\'' && *text != '"' && *text != '`')
		return text;
	for (end = text + 1; *end && *end != *text; end++)
		if (*end == '\\' && end[1])
			end++;
	return *end ? end + 1 : end;
}

static void parameters_put_value(struct ky_strbuf *out, const char *text)
{
	struct ky_sql_value value = ky_sql_parameter_value(text);

	if (value.type == KY_SQL_INTEGER) {
		ky_strbuf_addf(out, "%" PRId64, value.integer);
	} else if (value.type == KY_SQL_REAL) {
		ky_strbuf_addf(out, "%.17g", value.real);
	} else {
		ky_strbuf_addc(out, '\'');
		ky_fleet_tsv_put_quoted(out, text);
		ky_strbuf_addc(out, '\'');
	}
}

static bool parameters_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The parameter whose name is at @text, the last one of this name; NULL: none. *len: of the name. */
static const struct ky_sql_parameter *
parameters_find(const char *text, size_t *len, const struct ky_sql_parameter *parameters, size_t n)
{
	for (*len = 0; parameters_is_word(text[*len]);)
		++*len;
	for (size_t i = n; i-- > 0;)
		if (*len && strlen(parameters[i].name) == *len &&
		    memcmp(parameters[i].name, text, *len) == 0)
			return &parameters[i];
	return NULL;
}

void ky_fleet_put_parameters(struct ky_strbuf *out, const char *text,
			     const struct ky_sql_parameter *parameters, size_t n)
{
	for (const char *begin = text, *end; *text; text = end) {
		const struct ky_sql_parameter *parameter = NULL;
		size_t len;

		end = parameters_skip(text);
		/* "::" is a cast. */
		if (end == text && *text == ':' && (text == begin || text[-1] != ':'))
			parameter = parameters_find(text + 1, &len, parameters, n);
		if (parameter) {
			parameters_put_value(out, parameter->value);
			end = text + 1 + len;
		} else {
			end = end == text ? text + 1 : end;
			ky_strbuf_add(out, text, (size_t)(end - text));
		}
	}
}

const char *ky_fleet_statement(const char *text, size_t *len, const char **rest)
{
	const char *begin = NULL, *at, *end;

	for (at = text; *at && (*at != ';' || !begin); at = end) {
		end = parameters_skip(at);
		/* Neither a blank nor a comment. */
		if (!begin && *at != ';' && !isspace((unsigned char)*at) &&
		    (end == at || strchr("'\"`", *at)))
			begin = at;
		end = end == at ? at + 1 : end;
	}
	*len = begin ? (size_t)(at - begin) : 0;
	*rest = *at ? at + 1 : at;
	return begin;
}
