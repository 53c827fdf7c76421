/* SPDX-License-Identifier: MIT */
/* Conditions of triggers, from text. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "record/triggers/trigger-words.h"

#define NS_PER_S UINT64_C(1000000000)
/* Unless the condition says otherwise: an action that causes its own condition makes no loop. */
#define DEFAULT_ONCE_PER_NS NS_PER_S
#define TIMES_MAX	    1000000

/* ---- events -------------------------------------------------------------------------- */

/* PROVIDER:NAME is a program's; syscall:NAME, and what is said so, is the kernel's. */
static bool is_of_programs(const char *pattern)
{
	const char *colon = strchr(pattern, ':');

	return colon && strncmp(pattern, "syscall:", 8) != 0;
}

static int take_filter(struct ky_trigger_parser *p, struct ky_trigger_events *events)
{
	const char *end;
	int ret = ky_trigger_find_end(p, &end);

	if (ret < 0)
		return ret;
	events->filter_at = (size_t)(p->at - p->text);
	events->filter = ky_trigger_copy(p->at, end);
	if (!events->filter)
		return ky_error_nomem(p->err);
	if (!*events->filter)
		return ky_trigger_bad(p, p->at, "an expression is needed behind 'if'");
	p->at = end;
	return KYMO_OK;
}

static int trigger_parse_take_events(struct ky_trigger_parser *p, struct ky_trigger_events *events)
{
	bool of_kernel = ky_trigger_take(p, "kernel"),
	     of_programs = !of_kernel && ky_trigger_take(p, "user");
	const char *begin = ky_trigger_skip_blanks(p->at), *end = begin;
	int depth = 0;

	/* In parentheses are the arguments of a probe, "sdt:nginx:request(id=arg1, arg2)". */
	for (; *end && (depth || (!strchr(" \t\n", *end) && strncmp(end, "->", 2) != 0)); end++)
		depth += *end == '(' ? 1 : *end == ')' && depth ? -1 : 0;
	if (begin == end || ky_trigger_begins_clause(begin) || ky_trigger_is_at(begin, "if"))
		return ky_trigger_bad(p, begin, "the name of an event is needed here");
	events->pattern = ky_trigger_copy(begin, end);
	if (!events->pattern)
		return ky_error_nomem(p->err);
	events->of_programs = of_programs || (!of_kernel && is_of_programs(events->pattern));
	p->at = ky_trigger_skip_blanks(end);
	return ky_trigger_take(p, "if") ? take_filter(p, events) : KYMO_OK;
}

/* Of two kinds of events, the names tell which is which. */
static int check_pattern(const struct ky_trigger_parser *p, const struct ky_trigger_events *events)
{
	if (events->pattern && strcspn(events->pattern, ",!") < strcspn(events->pattern, "("))
		return ky_trigger_bad(
			p, p->text,
			"'%s': a condition of two events needs a name or pattern for each of them",
			events->pattern);
	return KYMO_OK;
}

/* ---- clauses ------------------------------------------------------------------------- */

static const char *find_split(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		if (strchr("'\"`", *at)) {
			const char *next = ky_trigger_behind_quotes(at);

			if (!next)
				return NULL;
			at = next - 1;
		} else if (*at == '(') {
			depth++;
		} else if (*at == ')') {
			depth--;
		} else if (!depth && *at == '=' && at[1] != '=' && at[1] != '~') {
			return at;
		} else if (strchr("=!<>", *at) && (at[1] == '=' || at[1] == '~')) {
			at++;
		}
	}
	return NULL;
}

/* EXPR or EXPR=EXPR. */
static int trigger_parse_add_key(const struct ky_trigger_parser *p, const char *from,
				 const char *to)
{
	struct ky_trigger_condition *condition = p->condition;
	struct ky_trigger_key *key;
	char *text = ky_trigger_copy(from, to);
	const char *split;

	if (!text)
		return ky_error_nomem(p->err);
	if (!*text || condition->n_keys == KY_TRIGGER_KEYS_MAX) {
		free(text);
		return ky_trigger_bad(
			p, from, "1 to %d keys with commas between them are needed behind 'by'",
			KY_TRIGGER_KEYS_MAX);
	}
	key = &condition->keys[condition->n_keys++];
	split = find_split(text);
	key->begin = split ? ky_trigger_copy(text, split) : strdup(text);
	key->end = strdup(split ? ky_trigger_skip_blanks(split + 1) : text);
	free(text);
	if (!key->begin || !key->end)
		return ky_error_nomem(p->err);
	return *key->begin && *key->end ? KYMO_OK : ky_trigger_bad(p, from, "a key is empty");
}

static int take_keys(struct ky_trigger_parser *p)
{
	const char *end, *from;
	int ret = ky_trigger_find_end(p, &end), depth = 0;

	from = p->at;
	for (const char *at = p->at; !ret && at < end; at++) {
		if (strchr("'\"`", *at))
			at = ky_trigger_behind_quotes(at) - 1;
		else if (strchr("()", *at))
			depth += *at == '(' ? 1 : -1;
		else if (*at == ',' && !depth) {
			ret = trigger_parse_add_key(p, ky_trigger_skip_blanks(from), at);
			from = at + 1;
		}
	}
	if (!ret)
		ret = trigger_parse_add_key(p, ky_trigger_skip_blanks(from), end);
	p->at = end;
	return ret;
}

static int take_compare(struct ky_trigger_parser *p, enum ky_trigger_compare *compare, bool only_gt)
{
	const char *at = p->at = ky_trigger_skip_blanks(p->at);

	if (*at != '>' && (*at != '<' || only_gt))
		return ky_trigger_bad(p, at,
				      only_gt ? "'>' is needed here" : "'>' or '<' is needed here");
	*compare = *at == '>' ? (at[1] == '=' ? KY_TRIGGER_GE : KY_TRIGGER_GT)
			      : (at[1] == '=' ? KY_TRIGGER_LE : KY_TRIGGER_LT);
	if (only_gt && *compare != KY_TRIGGER_GT)
		return ky_trigger_bad(p, at, "'>' is needed here");
	p->at = at + 1 + (at[1] == '=');
	return KYMO_OK;
}

static int take_duration(struct ky_trigger_parser *p)
{
	int ret = ky_trigger_take(p, "duration")
			  ? KYMO_OK
			  : ky_trigger_bad(p, p->at, "'duration' is needed here");

	if (!ret)
		ret = take_compare(p, &p->condition->compare, false);
	return ret < 0 ? ret : ky_trigger_take_time(p, &p->condition->duration_ns);
}

static int trigger_parse_take_times(struct ky_trigger_parser *p)
{
	int ret = ky_trigger_take_number(p, &p->condition->count, TIMES_MAX);

	if (!ret && !ky_trigger_take(p, "times"))
		ret = ky_trigger_bad(p, ky_trigger_skip_blanks(p->at),
				     "'times within TIME' is needed here");
	return ret < 0 ? ret : ky_trigger_take_within(p, &p->condition->within_ns);
}

/* "syscall:read" is both the entry and the exit; of durations the exit. */
static int name_exit(const struct ky_trigger_parser *p, struct ky_trigger_events *events)
{
	char *name;

	if (strncmp(events->pattern, "syscall:", 8) != 0)
		return KYMO_OK;
	if (asprintf(&name, "syscall_exit_%s", events->pattern + 8) < 0)
		return ky_error_nomem(p->err);
	free(events->pattern);
	events->pattern = name;
	return KYMO_OK;
}

/* Only the end was written. */
static int trigger_parse_find_begin(const struct ky_trigger_parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	int ret = name_exit(p, &condition->first);

	if (ret < 0)
		return ret;
	condition->second = condition->first;
	condition->first = (struct ky_trigger_events){0};
	ret = ky_trigger_find_begin(condition);
	if (ret == KYMO_E_NOT_FOUND) {
		ky_trigger_bad(p, p->text, "'%s' is not the end of a known pair of events",
			       condition->second.pattern);
		ky_error_hint(p->err, "name both: BEGIN -> END by KEY with duration > TIME");
		return KYMO_E_INVALID;
	}
	return ret < 0 ? ky_error_nomem(p->err) : KYMO_OK;
}

static int trigger_parse_default_key(const struct ky_trigger_parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	const char *const thread[] = {"$ctx.tid", "$ctx.vtid"};
	struct ky_trigger_key *key = condition->keys;

	if (condition->n_keys)
		return KYMO_OK;
	key->begin = strdup(thread[condition->first.of_programs]);
	key->end = strdup(thread[condition->second.of_programs]);
	condition->n_keys = 1;
	return key->begin && key->end ? KYMO_OK : ky_error_nomem(p->err);
}

/* BEGIN -> END [by KEY] with duration > TIME; END with duration > TIME. */
static int take_pair(struct ky_trigger_parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	bool is_pair = false;
	int ret = KYMO_OK;

	condition->kind = KY_TRIGGER_DURATION;
	if (strncmp(p->at, "->", 2) == 0) {
		is_pair = true;
		p->at += 2;
		ret = trigger_parse_take_events(p, &condition->second);
		if (!ret && ky_trigger_take(p, "by"))
			ret = take_keys(p);
	}
	if (!ret && !ky_trigger_take(p, "with"))
		ret = ky_trigger_bad(p, p->at, "'with duration > TIME' is needed here");
	if (!ret)
		ret = take_duration(p);
	if (!ret)
		ret = is_pair ? trigger_parse_default_key(p) : trigger_parse_find_begin(p);
	if (!ret)
		ret = check_pattern(p, &condition->first);
	return ret < 0 ? ret : check_pattern(p, &condition->second);
}

static int take_limits(struct ky_trigger_parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	int ret = KYMO_OK;

	while (!ret && *(p->at = ky_trigger_skip_blanks(p->at))) {
		if (ky_trigger_take(p, "once")) {
			if (!ky_trigger_take(p, "per"))
				return ky_trigger_bad(p, p->at, "'per TIME' is needed here");
			ret = ky_trigger_take_time(p, &condition->once_per_ns);
		} else if (ky_trigger_take(p, "first")) {
			ret = ky_trigger_take_number(p, &condition->first_n, UINT32_MAX);
		} else {
			return ky_trigger_bad(
				p, p->at,
				"a clause is needed here: 'N times within TIME', 'with duration "
				"> TIME', 'without EVENT within TIME', 'once per TIME', 'first "
				"N'");
		}
	}
	return ret;
}

static int take_event_condition(struct ky_trigger_parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	int ret = trigger_parse_take_events(p, &condition->first);

	if (ret < 0)
		return ret;
	p->at = ky_trigger_skip_blanks(p->at);
	condition->kind = KY_TRIGGER_EVENT;
	condition->count = 1;
	if (strncmp(p->at, "->", 2) == 0 || ky_trigger_is_at(p->at, "with"))
		return take_pair(p);
	if (isdigit((unsigned char)*p->at))
		return trigger_parse_take_times(p);
	if (!ky_trigger_take(p, "without"))
		return KYMO_OK;
	condition->kind = KY_TRIGGER_WITHOUT;
	ret = trigger_parse_take_events(p, &condition->second);
	if (!ret && ky_trigger_take(p, "by"))
		ret = take_keys(p);
	if (!ret)
		ret = ky_trigger_take_within(p, &condition->within_ns);
	if (!ret)
		ret = check_pattern(p, &condition->first);
	return ret < 0 ? ret : check_pattern(p, &condition->second);
}

/* ---- conditions about the recording -------------------------------------------------- */

static int trigger_parse_take_loss(struct ky_trigger_parser *p)
{
	enum ky_trigger_compare compare;
	int ret;

	p->condition->kind = KY_TRIGGER_LOSS;
	if (*p->at != '>')
		return KYMO_OK;
	ret = take_compare(p, &compare, true);
	return ret < 0 ? ret : ky_trigger_take_number(p, &p->condition->number, UINT64_MAX);
}

/* > NUMBER%, > SIZE */
static int take_amount(struct ky_trigger_parser *p, bool is_fill)
{
	enum ky_trigger_compare compare;
	uint64_t *number = &p->condition->number;
	char word[32];
	const char *at;
	int ret = take_compare(p, &compare, true);
	size_t len;

	at = p->at = ky_trigger_skip_blanks(p->at);
	p->condition->kind = is_fill ? KY_TRIGGER_FILL : KY_TRIGGER_SIZE;
	if (!ret)
		ret = ky_trigger_take_word(p, word, sizeof(word));
	if (ret < 0)
		return ret;
	len = strlen(word);
	if (!is_fill)
		return ky_parse_size(word, number) < 0 || !*number
			       ? ky_trigger_bad(p, at, "a size is needed here, such as 100M")
			       : KYMO_OK;
	if (len < 2 || word[len - 1] != '%')
		return ky_trigger_bad(p, at, "a percentage is needed here, such as 80%%");
	word[len - 1] = '\0';
	if (ky_parse_u64(word, number) < 0 || *number > 99)
		return ky_trigger_bad(p, at, "a percentage from 0%% to 99%% is needed here");
	return KYMO_OK;
}

/* HH:MM[:SS] */
static int take_time_of_day(struct ky_trigger_parser *p)
{
	const char *at = ky_trigger_skip_blanks(p->at);
	unsigned int h, m, s = 0;
	char word[32];
	int end = 0, ret = ky_trigger_take_word(p, word, sizeof(word));

	if (ret < 0)
		return ret;
	p->condition->kind = KY_TRIGGER_AT;
	if ((sscanf(word, "%2u:%2u%n", &h, &m, &end) != 2 || word[end]) &&
	    (sscanf(word, "%2u:%2u:%2u%n", &h, &m, &s, &end) != 3 || word[end]))
		return ky_trigger_bad(p, at, "a time of day is needed here, such as 03:00");
	if (h > 23 || m > 59 || s > 59)
		return ky_trigger_bad(p, at, "'%s' is not a time of day", word);
	p->condition->number = h * 3600 + m * 60 + s;
	return KYMO_OK;
}

static int take_every(struct ky_trigger_parser *p)
{
	const char *at = p->at;
	int ret = ky_trigger_take_time(p, &p->condition->within_ns);

	p->condition->kind = KY_TRIGGER_EVERY;
	if (!ret && p->condition->within_ns < NS_PER_S)
		return ky_trigger_bad(p, at, "the time must be at least 1s");
	return ret;
}

static int trigger_parse_parse(struct ky_trigger_parser *p)
{
	int ret;

	if (ky_trigger_take(p, "loss"))
		ret = trigger_parse_take_loss(p);
	else if (ky_trigger_take(p, "fill"))
		ret = take_amount(p, true);
	else if (ky_trigger_take(p, "size"))
		ret = take_amount(p, false);
	else if (ky_trigger_take(p, "at"))
		ret = take_time_of_day(p);
	else if (ky_trigger_take(p, "every"))
		ret = take_every(p);
	else
		ret = take_event_condition(p);
	return ret < 0 ? ret : take_limits(p);
}

int ky_trigger_rule_parse(struct ky_trigger_rule *rule, const char *text, struct kymo_error *err)
{
	struct ky_trigger_parser p = {
		.text = text, .at = text, .condition = &rule->condition, .err = err};

	*rule = (struct ky_trigger_rule){.condition.once_per_ns = DEFAULT_ONCE_PER_NS};
	if (strlen(text) > KY_TRIGGER_TEXT_MAX)
		return ky_trigger_bad(&p, text, "a condition has %d bytes at most",
				      KY_TRIGGER_TEXT_MAX);
	if (strpbrk(text, "\n\r"))
		return ky_trigger_bad(&p, text, "a condition is one line");
	rule->condition.text = strdup(text);
	return rule->condition.text ? trigger_parse_parse(&p) : ky_error_nomem(err);
}
