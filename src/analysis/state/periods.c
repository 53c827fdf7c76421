/* SPDX-License-Identifier: MIT */
/* Definitions of periods: parsed, and bound to the traces' event classes. */
#include "analysis/state/periods.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

struct parser {
	struct ky_periods *periods;
	const struct ky_trace_class **traces;
	size_t n_traces;
	const char *text; /* the whole definition, for messages */
	struct kymo_error *err;
};

/* What is wrong with the definition, as ky_error_set(). Returns @code. */
static int __attribute__((format(printf, 3, 4)))
fail(struct parser *p, int code, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	ky_error_set(p->err, code, "'%s': %s", p->text, what);
	ky_error_input(p->err, "period");
	return code;
}

static int periods_bad(struct parser *p, const char *what)
{
	return fail(p, KYMO_E_INVALID, "%s", what);
}

static char *periods_trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \t\n", end[-1]))
		*--end = '\0';
	return text + strspn(text, " \t\n");
}

/*
 * Cut off and return what comes before the first @sep that is in no quotes and no parentheses; NULL
 * when nothing is left. A '=' that is a part of an operator separates nothing.
 */
static char *next_part(char **rest, char sep)
{
	char *begin = *rest, quote = '\0';
	int depth = 0;

	if (!begin)
		return NULL;
	for (char *at = begin; *at; at++) {
		if (quote) {
			if (*at == '\\' && at[1] && quote != '`')
				at++;
			else if (*at == quote)
				quote = '\0';
		} else if (strchr("'\"`", *at)) {
			quote = *at;
		} else if (strchr("()", *at)) {
			depth += *at == '(' ? 1 : -1;
		} else if (sep == '=' && strchr("=!<>", *at) && (at[1] == '=' || at[1] == '~')) {
			at++;
		} else if (*at == sep && depth <= 0) {
			*at = '\0';
			*rest = at + 1;
			return periods_trim(begin);
		}
	}
	*rest = NULL;
	return periods_trim(begin);
}

/* @text as an expression; @what it is, for messages. */
static int periods_compile(struct parser *p, const char *what, const char *text,
			   struct ky_filter **filter)
{
	struct kymo_error err;
	int status;

	ky_error_clear(&err);
	if (!*text)
		return fail(p, KYMO_E_INVALID, "the %s is empty", what);
	status = ky_filter_compile(text, p->traces, p->n_traces, filter, &err);
	if (status == KYMO_E_MEMORY)
		return ky_error_nomem(p->err);
	if (status < 0) {
		fail(p, status, "in the %s '%s', column %u: %s", what, text, err.column,
		     err.message);
		if (err.hint[0])
			ky_error_hint(p->err, "%s", err.hint);
		return status;
	}
	if (ky_vec_push(&p->periods->filters, *filter) < 0) {
		ky_filter_free(*filter);
		return ky_error_nomem(p->err);
	}
	return 0;
}

static int parse_key(struct parser *p, char *text, struct ky_period_key *key)
{
	char *rest = text, *begin = next_part(&rest, '='), *end = rest ? periods_trim(rest) : NULL;
	int status = 0;

	if (strcmp(begin, "$thread") != 0)
		status = periods_compile(p, "key", begin, &key->begin);
	if (status < 0)
		return status;
	key->end = key->begin;
	if (!end)
		return 0;
	key->end = NULL;
	return strcmp(end, "$thread") == 0 ? 0 : periods_compile(p, "key", end, &key->end);
}

static int parse_keys(struct parser *p, struct ky_period_def *def, char *text)
{
	char *rest = text, *part;

	while ((part = next_part(&rest, ','))) {
		int status;

		if (def->n_keys == KY_PERIOD_KEYS_MAX)
			return periods_bad(p, "more than four keys");
		status = parse_key(p, part, &def->keys[def->n_keys++]);
		if (status < 0)
			return status;
	}
	return 0;
}

static int parse_captures(struct parser *p, struct ky_period_def *def, char *text, bool at_end)
{
	char *rest = text, *part;

	while ((part = next_part(&rest, ','))) {
		char *value = part, *name = next_part(&value, '=');
		struct ky_capture capture = {.name = name, .at_end = at_end};
		int status;

		value = value ? periods_trim(value) : name;
		status = periods_compile(p, "capture", value, &capture.value);
		if (status < 0)
			return status;
		if (ky_vec_push(&def->captures, capture) < 0)
			return ky_error_nomem(p->err);
	}
	return 0;
}

static const struct ky_period_def *periods_find(const struct ky_periods *periods, const char *name)
{
	ky_vec_foreach(&periods->defs, def) {
		if (strcmp((*def)->name, name) == 0)
			return *def;
	}
	return NULL;
}

/* "NAME", "NAME(PARENT)" */
static int periods_parse_name(struct parser *p, struct ky_period_def *def, char *text)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	const char *parent = NULL;

	if (open && (!close || close < open || close[1]))
		return periods_bad(p, "its name must be NAME or NAME(PARENT)");
	if (open) {
		*open = *close = '\0';
		parent = periods_trim(open + 1);
		text = periods_trim(text);
		def->parent = periods_find(p->periods, parent);
		if (!def->parent)
			return fail(p, KYMO_E_INVALID, "no period '%s' is defined before it",
				    parent);
	}
	if (!*text)
		return periods_bad(p, "it has no name; write NAME : BEGIN : END");
	if (periods_find(p->periods, text))
		return fail(p, KYMO_E_INVALID, "another period has the name '%s'", text);
	def->name = text;
	return 0;
}

static bool says_by(const char *text)
{
	return strncmp(text, "by", 2) == 0 && (text[2] == ' ' || text[2] == '\t');
}

static int parse_parts(struct parser *p, struct ky_period_def *def, char *rest)
{
	char *name = next_part(&rest, ':'), *begin = next_part(&rest, ':'),
	     *end = next_part(&rest, ':'), *part;
	bool at_end = false;
	int status;

	if (!end)
		return periods_bad(p, "NAME : BEGIN : END is wanted");
	status = periods_parse_name(p, def, name);
	if (!status)
		status = periods_compile(p, "begin", begin, &def->begin);
	if (!status)
		status = periods_compile(p, "end", end, &def->end);
	part = status < 0 ? NULL : next_part(&rest, ':');
	if (part && says_by(part)) {
		status = parse_keys(p, def, periods_trim(part + 2));
		part = status < 0 ? NULL : next_part(&rest, ':');
	} else {
		def->n_keys = 1; /* the thread */
	}
	for (; part && status >= 0; part = next_part(&rest, ':')) {
		if (*part)
			status = parse_captures(p, def, part, at_end);
		if (at_end && rest)
			return periods_bad(p, "there is text after the captures of its end");
		at_end = true;
	}
	if (status >= 0 && def->parent && def->n_keys < def->parent->n_keys)
		return periods_bad(p, "it needs the keys of its parent before others of its own");
	return status;
}

static int add_def(struct parser *p, const char *text)
{
	struct ky_arena *arena = &p->periods->arena;
	struct ky_period_def *def = ky_arena_new(arena, struct ky_period_def);
	char *copy = ky_arena_strdup(arena, text);
	int status;

	p->text = text;
	if (!def || !copy)
		return ky_error_nomem(p->err);
	if (p->periods->defs.len == KY_PERIODS_MAX)
		return fail(p, KYMO_E_INVALID, "there are more than %d periods", KY_PERIODS_MAX);
	*def = (struct ky_period_def){.index = (uint32_t)p->periods->defs.len};
	status = parse_parts(p, def, copy);
	if (status >= 0 && ky_vec_push(&p->periods->defs, def) < 0)
		status = ky_error_nomem(p->err);
	if (status < 0)
		ky_vec_fini(&def->captures);
	return status;
}

int ky_periods_new(const char *const *texts, size_t n_texts, const struct ky_trace_set *set,
		   struct ky_periods **out, struct kymo_error *err)
{
	struct parser p = {.periods = calloc(1, sizeof(*p.periods)),
			   .traces = calloc(set->traces.len + 1, sizeof(*p.traces)),
			   .n_traces = set->traces.len,
			   .err = err};
	int status = p.periods && p.traces ? 0 : ky_error_nomem(err);

	*out = NULL;
	if (p.periods)
		ky_arena_init(&p.periods->arena);
	for (size_t i = 0; i < p.n_traces && !status; i++)
		p.traces[i] = set->traces.data[i]->cls;
	for (size_t i = 0; i < n_texts && status >= 0; i++)
		status = add_def(&p, texts[i]);
	free(p.traces);
	if (status < 0)
		ky_periods_free(p.periods);
	else
		*out = p.periods;
	return status < 0 ? status : 0;
}

void ky_periods_free(struct ky_periods *periods)
{
	if (!periods)
		return;
	ky_vec_foreach(&periods->defs, def)
		ky_vec_fini(&(*def)->captures);
	ky_vec_foreach(&periods->filters, filter)
		ky_filter_free(*filter);
	ky_vec_fini(&periods->defs);
	ky_vec_fini(&periods->filters);
	ky_arena_fini(&periods->arena);
	free(periods);
}
