/* SPDX-License-Identifier: MIT */
/* Conditions and actions of triggers, from text. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "record/triggers/trigger-rule.h"

#define NS_PER_S UINT64_C(1000000000)
/* Unless the condition says otherwise: an action that causes its own condition makes no loop. */
#define DEFAULT_ONCE_PER_NS NS_PER_S
#define TIMES_MAX	    1000000
#define WITHIN_MAX_NS	    (UINT64_C(86400) * NS_PER_S * 366)

struct parser {
	const char *text, *at;
	struct ky_trigger_condition *condition;
	struct kymo_error *err;
	bool has_duration; /* of the last duration clause */
};

static const char *const action_names[KY_TRIGGER_ACTION_KINDS] = {
	[KY_TRIGGER_SNAPSHOT] = "snapshot", [KY_TRIGGER_ROTATE] = "rotate",
	[KY_TRIGGER_START] = "start",	    [KY_TRIGGER_STOP] = "stop",
	[KY_TRIGGER_RUN] = "run",	    [KY_TRIGGER_MARK] = "mark",
	[KY_TRIGGER_NOTIFY] = "notify",	    [KY_TRIGGER_REPORT] = "report",
};

const char *ky_trigger_action_name(enum ky_trigger_action_kind kind)
{
	return action_names[kind];
}

/* A mistake at @at. Returns KYMO_E_INVALID. */
static int __attribute__((format(printf, 3, 4)))
bad(const struct parser *p, const char *at, const char *fmt, ...)
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

/* ---- words ---------------------------------------------------------------------------- */

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || strchr("_.$:@*?!-", c) ? c != '\0' : false;
}

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t\n");
}

/* Whether @word, a whole word, is at @at. */
static bool is_at(const char *at, const char *word)
{
	size_t len = strlen(word);

	return strncmp(at, word, len) == 0 && !is_word_char(at[len]);
}

/* Takes @word. */
static bool take(struct parser *p, const char *word)
{
	const char *at = skip_blanks(p->at);

	if (!is_at(at, word))
		return false;
	p->at = skip_blanks(at + strlen(word));
	return true;
}

static const char *behind_word(const char *at)
{
	while (is_word_char(*at))
		at++;
	return skip_blanks(at);
}

/* "with duration", "within", "5 times" and so on: the words behind the events. */
static bool begins_clause(const char *at)
{
	static const char *const words[] = {"within", "without", "by"};

	if (strncmp(at, "->", 2) == 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is_at(at, words[i]))
			return true;
	if (is_at(at, "with"))
		return is_at(behind_word(at), "duration");
	if (is_at(at, "once"))
		return is_at(behind_word(at), "per");
	if (is_at(at, "first"))
		return isdigit((unsigned char)*behind_word(at));
	return isdigit((unsigned char)*at) && is_at(behind_word(at), "times");
}

/* Behind a text in quotes; NULL: it does not end. */
static const char *behind_quotes(const char *at)
{
	char quote = *at++;

	for (; *at && *at != quote; at++)
		if (*at == '\\' && quote != '`' && at[1])
			at++;
	return *at ? at + 1 : NULL;
}

/* The end of the expression at p->at: the next clause that is in no quotes and parentheses. */
static int find_end(const struct parser *p, const char **end)
{
	const char *at = p->at, *open = NULL;
	bool at_word = true;
	int depth = 0;

	while (*at) {
		if (strchr("'\"`", *at)) {
			const char *next = behind_quotes(at);

			if (!next)
				return bad(p, at, "the quotes are not closed");
			at = next;
			at_word = false;
			continue;
		}
		if (!depth && at_word && begins_clause(at))
			break;
		if (*at == '(' && !depth++)
			open = at;
		else if (*at == ')' && --depth < 0)
			return bad(p, at, "')' without '('");
		at_word = !is_word_char(*at);
		at++;
	}
	if (depth)
		return bad(p, open, "'(' without ')'");
	*end = at;
	return KYMO_OK;
}

/* A copy of @from up to @to, without blanks at its end; NULL: out of memory. */
static char *copy(const char *from, const char *to)
{
	while (to > from && strchr(" \t\n", to[-1]))
		to--;
	return strndup(from, (size_t)(to - from));
}

/* A word without blanks, such as a number; "" at the end. */
static int take_word(struct parser *p, char *word, size_t size)
{
	size_t len;

	p->at = skip_blanks(p->at);
	len = strcspn(p->at, " \t\n");
	if (len >= size)
		return bad(p, p->at, "this word is too long");
	memcpy(word, p->at, len);
	word[len] = '\0';
	p->at += len;
	return KYMO_OK;
}

static int take_time(struct parser *p, uint64_t *ns)
{
	const char *at = skip_blanks(p->at);
	char word[32];
	int ret = take_word(p, word, sizeof(word));

	if (ret < 0)
		return ret;
	if (ky_parse_duration(word, ns) < 0 || *ns > WITHIN_MAX_NS)
		return bad(p, at, "a time is needed here, such as 100ms or 5s");
	return KYMO_OK;
}

static int take_number(struct parser *p, uint64_t *number, uint64_t max)
{
	const char *at = skip_blanks(p->at);
	char word[32];
	int ret = take_word(p, word, sizeof(word));

	if (ret < 0)
		return ret;
	if (ky_parse_u64(word, number) < 0 || !*number || *number > max)
		return bad(p, at, "a number from 1 to %llu is needed here",
			   (unsigned long long)max);
	return KYMO_OK;
}

static int take_within(struct parser *p, uint64_t *ns)
{
	const char *at;
	int ret;

	if (!take(p, "within"))
		return bad(p, skip_blanks(p->at), "'within TIME' is needed here");
	at = p->at;
	ret = take_time(p, ns);
	return ret < 0 || *ns ? ret : bad(p, at, "the time must be longer than 0");
}

/* ---- events --------------------------------------------------------------------------- */

/* PROVIDER:NAME is a program's; syscall:NAME, and what is said so, is the kernel's. */
static bool is_of_programs(const char *pattern)
{
	const char *colon = strchr(pattern, ':');

	return colon && strncmp(pattern, "syscall:", 8) != 0;
}

static int take_filter(struct parser *p, struct ky_trigger_events *events)
{
	const char *end;
	int ret = find_end(p, &end);

	if (ret < 0)
		return ret;
	events->filter_at = (size_t)(p->at - p->text);
	events->filter = copy(p->at, end);
	if (!events->filter)
		return ky_error_nomem(p->err);
	if (!*events->filter)
		return bad(p, p->at, "an expression is needed behind 'if'");
	p->at = end;
	return KYMO_OK;
}

static int take_events(struct parser *p, struct ky_trigger_events *events)
{
	bool of_kernel = take(p, "kernel"), of_programs = !of_kernel && take(p, "user");
	const char *begin = skip_blanks(p->at), *end = begin;

	while (*end && !strchr(" \t\n", *end) && strncmp(end, "->", 2) != 0)
		end++;
	if (begin == end || begins_clause(begin) || is_at(begin, "if"))
		return bad(p, begin, "the name of an event is needed here");
	events->pattern = copy(begin, end);
	if (!events->pattern)
		return ky_error_nomem(p->err);
	events->of_programs = of_programs || (!of_kernel && is_of_programs(events->pattern));
	p->at = skip_blanks(end);
	return take(p, "if") ? take_filter(p, events) : KYMO_OK;
}

/* Of two kinds of events, the names tell which is which. */
static int check_pattern(const struct parser *p, const struct ky_trigger_events *events)
{
	if (events->pattern && strpbrk(events->pattern, ",!"))
		return bad(
			p, p->text,
			"'%s': a condition of two events needs a name or pattern for each of them",
			events->pattern);
	return KYMO_OK;
}

/* ---- clauses -------------------------------------------------------------------------- */

static const char *find_split(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		if (strchr("'\"`", *at)) {
			const char *next = behind_quotes(at);

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
static int add_key(const struct parser *p, const char *from, const char *to)
{
	struct ky_trigger_condition *condition = p->condition;
	struct ky_trigger_key *key;
	char *text = copy(from, to);
	const char *split;

	if (!text)
		return ky_error_nomem(p->err);
	if (!*text || condition->n_keys == KY_TRIGGER_KEYS_MAX) {
		free(text);
		return bad(p, from, "1 to %d keys with commas between them are needed behind 'by'",
			   KY_TRIGGER_KEYS_MAX);
	}
	key = &condition->keys[condition->n_keys++];
	split = find_split(text);
	key->begin = split ? copy(text, split) : strdup(text);
	key->end = strdup(split ? skip_blanks(split + 1) : text);
	free(text);
	if (!key->begin || !key->end)
		return ky_error_nomem(p->err);
	return *key->begin && *key->end ? KYMO_OK : bad(p, from, "a key is empty");
}

static int take_keys(struct parser *p)
{
	const char *end, *from;
	int ret = find_end(p, &end), depth = 0;

	from = p->at;
	for (const char *at = p->at; !ret && at < end; at++) {
		if (strchr("'\"`", *at))
			at = behind_quotes(at) - 1;
		else if (strchr("()", *at))
			depth += *at == '(' ? 1 : -1;
		else if (*at == ',' && !depth) {
			ret = add_key(p, skip_blanks(from), at);
			from = at + 1;
		}
	}
	if (!ret)
		ret = add_key(p, skip_blanks(from), end);
	p->at = end;
	return ret;
}

static int take_compare(struct parser *p, enum ky_trigger_compare *compare, bool only_gt)
{
	const char *at = p->at = skip_blanks(p->at);

	if (*at != '>' && (*at != '<' || only_gt))
		return bad(p, at, only_gt ? "'>' is needed here" : "'>' or '<' is needed here");
	*compare = *at == '>' ? (at[1] == '=' ? KY_TRIGGER_GE : KY_TRIGGER_GT)
			      : (at[1] == '=' ? KY_TRIGGER_LE : KY_TRIGGER_LT);
	if (only_gt && *compare != KY_TRIGGER_GT)
		return bad(p, at, "'>' is needed here");
	p->at = at + 1 + (at[1] == '=');
	return KYMO_OK;
}

static int take_duration(struct parser *p)
{
	int ret = take(p, "duration") ? KYMO_OK : bad(p, p->at, "'duration' is needed here");

	if (!ret)
		ret = take_compare(p, &p->condition->compare, false);
	p->has_duration = true;
	return ret < 0 ? ret : take_time(p, &p->condition->duration_ns);
}

static int take_times(struct parser *p)
{
	int ret = take_number(p, &p->condition->count, TIMES_MAX);

	if (!ret && !take(p, "times"))
		ret = bad(p, skip_blanks(p->at), "'times within TIME' is needed here");
	return ret < 0 ? ret : take_within(p, &p->condition->within_ns);
}

/* "syscall:read" is both the entry and the exit; of durations the exit. */
static int name_exit(const struct parser *p, struct ky_trigger_events *events)
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
static int find_begin(const struct parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	int ret = name_exit(p, &condition->first);

	if (ret < 0)
		return ret;
	condition->second = condition->first;
	condition->first = (struct ky_trigger_events){0};
	ret = ky_trigger_find_begin(condition);
	if (ret == KYMO_E_NOT_FOUND) {
		bad(p, p->text, "'%s' is not the end of a known pair of events",
		    condition->second.pattern);
		ky_error_hint(p->err, "name both: BEGIN -> END by KEY with duration > TIME");
		return KYMO_E_INVALID;
	}
	return ret < 0 ? ky_error_nomem(p->err) : KYMO_OK;
}

static int default_key(const struct parser *p)
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
static int take_pair(struct parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	bool is_pair = false;
	int ret = KYMO_OK;

	condition->kind = KY_TRIGGER_DURATION;
	if (strncmp(p->at, "->", 2) == 0) {
		is_pair = true;
		p->at += 2;
		ret = take_events(p, &condition->second);
		if (!ret && take(p, "by"))
			ret = take_keys(p);
	}
	if (!ret && !take(p, "with"))
		ret = bad(p, p->at, "'with duration > TIME' is needed here");
	if (!ret)
		ret = take_duration(p);
	if (!ret)
		ret = is_pair ? default_key(p) : find_begin(p);
	if (!ret)
		ret = check_pattern(p, &condition->first);
	return ret < 0 ? ret : check_pattern(p, &condition->second);
}

static int take_limits(struct parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	int ret = KYMO_OK;

	while (!ret && *(p->at = skip_blanks(p->at))) {
		if (take(p, "once")) {
			if (!take(p, "per"))
				return bad(p, p->at, "'per TIME' is needed here");
			ret = take_time(p, &condition->once_per_ns);
		} else if (take(p, "first")) {
			ret = take_number(p, &condition->first_n, UINT32_MAX);
		} else {
			return bad(p, p->at,
				   "a clause is needed here: 'N times within TIME', 'with duration "
				   "> TIME', 'without EVENT within TIME', 'once per TIME', 'first "
				   "N'");
		}
	}
	return ret;
}

static int take_event_condition(struct parser *p)
{
	struct ky_trigger_condition *condition = p->condition;
	int ret = take_events(p, &condition->first);

	if (ret < 0)
		return ret;
	p->at = skip_blanks(p->at);
	condition->kind = KY_TRIGGER_EVENT;
	condition->count = 1;
	if (strncmp(p->at, "->", 2) == 0 || is_at(p->at, "with"))
		return take_pair(p);
	if (isdigit((unsigned char)*p->at))
		return take_times(p);
	if (!take(p, "without"))
		return KYMO_OK;
	condition->kind = KY_TRIGGER_WITHOUT;
	ret = take_events(p, &condition->second);
	if (!ret && take(p, "by"))
		ret = take_keys(p);
	if (!ret)
		ret = take_within(p, &condition->within_ns);
	if (!ret)
		ret = check_pattern(p, &condition->first);
	return ret < 0 ? ret : check_pattern(p, &condition->second);
}

/* ---- conditions about the recording ---------------------------------------------------- */

static int take_loss(struct parser *p)
{
	enum ky_trigger_compare compare;
	int ret;

	p->condition->kind = KY_TRIGGER_LOSS;
	if (*p->at != '>')
		return KYMO_OK;
	ret = take_compare(p, &compare, true);
	return ret < 0 ? ret : take_number(p, &p->condition->number, UINT64_MAX);
}

/* > NUMBER%, > SIZE */
static int take_amount(struct parser *p, bool is_fill)
{
	enum ky_trigger_compare compare;
	uint64_t *number = &p->condition->number;
	char word[32];
	const char *at;
	int ret = take_compare(p, &compare, true);
	size_t len;

	at = p->at = skip_blanks(p->at);
	p->condition->kind = is_fill ? KY_TRIGGER_FILL : KY_TRIGGER_SIZE;
	if (!ret)
		ret = take_word(p, word, sizeof(word));
	if (ret < 0)
		return ret;
	len = strlen(word);
	if (!is_fill)
		return ky_parse_size(word, number) < 0 || !*number
			       ? bad(p, at, "a size is needed here, such as 100M")
			       : KYMO_OK;
	if (len < 2 || word[len - 1] != '%')
		return bad(p, at, "a percentage is needed here, such as 80%%");
	word[len - 1] = '\0';
	if (ky_parse_u64(word, number) < 0 || *number > 99)
		return bad(p, at, "a percentage from 0%% to 99%% is needed here");
	return KYMO_OK;
}

/* HH:MM[:SS] */
static int take_time_of_day(struct parser *p)
{
	const char *at = skip_blanks(p->at);
	unsigned int h, m, s = 0;
	char word[32];
	int end = 0, ret = take_word(p, word, sizeof(word));

	if (ret < 0)
		return ret;
	p->condition->kind = KY_TRIGGER_AT;
	if ((sscanf(word, "%2u:%2u%n", &h, &m, &end) != 2 || word[end]) &&
	    (sscanf(word, "%2u:%2u:%2u%n", &h, &m, &s, &end) != 3 || word[end]))
		return bad(p, at, "a time of day is needed here, such as 03:00");
	if (h > 23 || m > 59 || s > 59)
		return bad(p, at, "'%s' is not a time of day", word);
	p->condition->number = h * 3600 + m * 60 + s;
	return KYMO_OK;
}

static int take_every(struct parser *p)
{
	const char *at = p->at;
	int ret = take_time(p, &p->condition->within_ns);

	p->condition->kind = KY_TRIGGER_EVERY;
	if (!ret && p->condition->within_ns < NS_PER_S)
		return bad(p, at, "the time must be at least 1s");
	return ret;
}

static int parse(struct parser *p)
{
	int ret;

	if (take(p, "loss"))
		ret = take_loss(p);
	else if (take(p, "fill"))
		ret = take_amount(p, true);
	else if (take(p, "size"))
		ret = take_amount(p, false);
	else if (take(p, "at"))
		ret = take_time_of_day(p);
	else if (take(p, "every"))
		ret = take_every(p);
	else
		ret = take_event_condition(p);
	return ret < 0 ? ret : take_limits(p);
}

int ky_trigger_rule_parse(struct ky_trigger_rule *rule, const char *text, struct kymo_error *err)
{
	struct parser p = {.text = text, .at = text, .condition = &rule->condition, .err = err};

	*rule = (struct ky_trigger_rule){.condition.once_per_ns = DEFAULT_ONCE_PER_NS};
	if (strlen(text) > KY_TRIGGER_TEXT_MAX)
		return bad(&p, text, "a condition has %d bytes at most", KY_TRIGGER_TEXT_MAX);
	if (strpbrk(text, "\n\r"))
		return bad(&p, text, "a condition is one line");
	rule->condition.text = strdup(text);
	return rule->condition.text ? parse(&p) : ky_error_nomem(err);
}

/* ---- actions -------------------------------------------------------------------------- */

static int bad_action(const char *text, const char *what, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_INVALID, "'%s': %s", text, what);
	ky_error_input(err, "trigger's action");
	return KYMO_E_INVALID;
}

static int check_argument(const char *text, enum ky_trigger_action_kind kind, bool has_argument,
			  struct kymo_error *err)
{
	bool needs = kind == KY_TRIGGER_START || kind == KY_TRIGGER_STOP || kind == KY_TRIGGER_RUN;

	if (needs && !has_argument)
		return bad_action(text,
				  kind == KY_TRIGGER_RUN    ? "a command is needed: run:COMMAND"
				  : kind == KY_TRIGGER_STOP ? "a recording is needed: stop:NAME"
							    : "a profile is needed: start:PROFILE",
				  err);
	if (kind == KY_TRIGGER_ROTATE && has_argument)
		return bad_action(text, "'rotate' takes no argument", err);
	return KYMO_OK;
}

int ky_trigger_rule_add_action(struct ky_trigger_rule *rule, const char *text,
			       struct kymo_error *err)
{
	size_t len = strcspn(text, ":");
	struct ky_trigger_action action = {0};
	int ret;

	while (action.kind < KY_TRIGGER_ACTION_KINDS &&
	       (strlen(action_names[action.kind]) != len ||
		strncmp(action_names[action.kind], text, len) != 0))
		action.kind++;
	if (action.kind == KY_TRIGGER_ACTION_KINDS)
		return bad_action(text,
				  "this action is unknown; try snapshot, rotate, start:PROFILE, "
				  "stop:NAME, run:COMMAND, mark, notify or report",
				  err);
	if (strlen(text) > KY_TRIGGER_TEXT_MAX || rule->actions.len == KY_TRIGGER_ACTIONS_MAX)
		return bad_action("...", "the action is too long, or the trigger has too many",
				  err);
	if (strpbrk(text, "\n\r"))
		return bad_action("...", "an action is one line", err);
	ret = check_argument(text, action.kind, text[len] && text[len + 1], err);
	if (ret < 0)
		return ret;
	action.text = strdup(text);
	if (text[len] && text[len + 1])
		action.argument = strdup(text + len + 1);
	if (action.text && (action.argument || !text[len] || !text[len + 1]) &&
	    ky_vec_push(&rule->actions, action) == 0)
		return KYMO_OK;
	free(action.text);
	free(action.argument);
	return ky_error_nomem(err);
}

static void free_events(struct ky_trigger_events *events)
{
	free(events->pattern);
	free(events->filter);
}

void ky_trigger_rule_fini(struct ky_trigger_rule *rule)
{
	struct ky_trigger_condition *condition = &rule->condition;

	free(condition->text);
	free_events(&condition->first);
	free_events(&condition->second);
	for (size_t i = 0; i < condition->n_keys; i++) {
		free(condition->keys[i].begin);
		free(condition->keys[i].end);
	}
	ky_vec_foreach(&rule->actions, action) {
		free(action->text);
		free(action->argument);
	}
	ky_vec_fini(&rule->actions);
	*rule = (struct ky_trigger_rule){0};
}
