/* SPDX-License-Identifier: MIT */
#include "record/triggers/trigger-words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define WITHIN_MAX_NS (UINT64_C(86400) * 1000000000 * 366)

int ky_trigger_bad(const struct ky_trigger_parser *p, const char *at, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	ky_error_set(p->err, KYMO_E_INVALID, "%s", what);
	ky_error_input(p->err, "trigger");
	ky_error_line(p->err, 1, (uint32_t)(at - p->text) + 1);
	return KYMO_E_INVALID;
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || strchr("_.$:@*?!-", c) ? c != '\0' : false;
}

const char *ky_trigger_skip_blanks(const char *at)
{
	return at + strspn(at, " \t\n");
}

bool ky_trigger_is_at(const char *at, const char *word)
{
	size_t len = strlen(word);

	return strncmp(at, word, len) == 0 && !is_word_char(at[len]);
}

bool ky_trigger_take(struct ky_trigger_parser *p, const char *word)
{
	const char *at = ky_trigger_skip_blanks(p->at);

	if (!ky_trigger_is_at(at, word))
		return false;
	p->at = ky_trigger_skip_blanks(at + strlen(word));
	return true;
}

static const char *behind_word(const char *at)
{
	while (is_word_char(*at))
		at++;
	return ky_trigger_skip_blanks(at);
}

bool ky_trigger_begins_clause(const char *at)
{
	static const char *const words[] = {"within", "without", "by"};

	if (strncmp(at, "->", 2) == 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (ky_trigger_is_at(at, words[i]))
			return true;
	if (ky_trigger_is_at(at, "with"))
		return ky_trigger_is_at(behind_word(at), "duration");
	if (ky_trigger_is_at(at, "once"))
		return ky_trigger_is_at(behind_word(at), "per");
	if (ky_trigger_is_at(at, "first"))
		return isdigit((unsigned char)*behind_word(at));
	return isdigit((unsigned char)*at) && ky_trigger_is_at(behind_word(at), "times");
}

const char *ky_trigger_behind_quotes(const char *at)
{
	char quote = *at++;

	for (; *at && *at != quote; at++)
		if (*at == '\\' && quote != '`' && at[1])
			at++;
	return *at ? at + 1 : NULL;
}

int ky_trigger_find_end(const struct ky_trigger_parser *p, const char **end)
{
	const char *at = p->at, *open = NULL;
	bool at_word = true;
	int depth = 0;

	while (*at) {
		if (strchr("'\"`", *at)) {
			const char *next = ky_trigger_behind_quotes(at);

			if (!next)
				return ky_trigger_bad(p, at, "the quotes are not closed");
			at = next;
			at_word = false;
			continue;
		}
		if (!depth && at_word && ky_trigger_begins_clause(at))
			break;
		if (*at == '(' && !depth++)
			open = at;
		else if (*at == ')' && --depth < 0)
			return ky_trigger_bad(p, at, "')' without '('");
		at_word = !is_word_char(*at);
		at++;
	}
	if (depth)
		return ky_trigger_bad(p, open, "'(' without ')'");
	*end = at;
	return KYMO_OK;
}

char *ky_trigger_copy(const char *from, const char *to)
{
	while (to > from && strchr(" \t\n", to[-1]))
		to--;
	return strndup(from, (size_t)(to - from));
}

int ky_trigger_take_word(struct ky_trigger_parser *p, char *word, size_t size)
{
	size_t len;

	p->at = ky_trigger_skip_blanks(p->at);
	len = strcspn(p->at, " \t\n");
	if (len >= size)
		return ky_trigger_bad(p, p->at, "this word is too long");
	memcpy(word, p->at, len);
	word[len] = '\0';
	p->at += len;
	return KYMO_OK;
}

int ky_trigger_take_time(struct ky_trigger_parser *p, uint64_t *ns)
{
	const char *at = ky_trigger_skip_blanks(p->at);
	char word[32];
	int ret = ky_trigger_take_word(p, word, sizeof(word));

	if (ret < 0)
		return ret;
	if (ky_parse_duration(word, ns) < 0 || *ns > WITHIN_MAX_NS)
		return ky_trigger_bad(p, at, "a time is needed here, such as 100ms or 5s");
	return KYMO_OK;
}

int ky_trigger_take_number(struct ky_trigger_parser *p, uint64_t *number, uint64_t max)
{
	const char *at = ky_trigger_skip_blanks(p->at);
	char word[32];
	int ret = ky_trigger_take_word(p, word, sizeof(word));

	if (ret < 0)
		return ret;
	if (ky_parse_u64(word, number) < 0 || !*number || *number > max)
		return ky_trigger_bad(p, at, "a number from 1 to %llu is needed here",
				      (unsigned long long)max);
	return KYMO_OK;
}

int ky_trigger_take_within(struct ky_trigger_parser *p, uint64_t *ns)
{
	const char *at;
	int ret;

	if (!ky_trigger_take(p, "within"))
		return ky_trigger_bad(p, ky_trigger_skip_blanks(p->at),
				      "'within TIME' is needed here");
	at = p->at;
	ret = ky_trigger_take_time(p, ns);
	return ret < 0 || *ns ? ret : ky_trigger_bad(p, at, "the time must be longer than 0");
}
