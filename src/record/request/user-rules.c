/* SPDX-License-Identifier: MIT */
#include "record/request/user-rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"

/* As programs have it (session-file.c); and so many in one rule. */
#define RULES_MAX      1024u
#define EXCLUSIONS_MAX 1024u

static void fini_rule(struct ky_user_rule *rule)
{
	ky_vec_foreach(&rule->exclusions, it)
		free(*it);
	ky_vec_fini(&rule->exclusions);
	ky_user_filter_fini(&rule->code);
	free(rule->pattern);
	free(rule->condition);
}

void ky_user_rules_fini(struct ky_user_rules *rules)
{
	ky_vec_foreach(&rules->list, rule)
		fini_rule(rule);
	ky_vec_fini(&rules->list);
}

/* $ctx.procname == "COMM", and the user's filter. Malloc()ed; NULL without memory. */
static char *full_condition(const char *comm, const char *filter)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (!comm)
		return strdup(filter);
	ky_strbuf_adds(&text, "$ctx.procname == \"");
	for (const char *c = comm; *c; c++) {
		if (*c == '"' || *c == '\\')
			ky_strbuf_addc(&text, '\\');
		ky_strbuf_addc(&text, *c);
	}
	ky_strbuf_addc(&text, '"');
	if (filter)
		ky_strbuf_addf(&text, " && (%s)", filter);
	return ky_strbuf_take(&text);
}

/* Fill what @condition (taken over), @pattern and the levels say. fini is due in any case. */
static int init_rule(struct ky_user_rule *rule, const char *pattern, char *condition,
		     struct kymo_error *err)
{
	rule->condition = condition;
	rule->pattern = strdup(pattern);
	if (!rule->pattern)
		return ky_error_nomem(err);
	return condition ? ky_user_filter_compile(condition, &rule->code, err) : KYMO_OK;
}

static int user_rules_push(struct ky_user_rules *rules, struct ky_user_rule *rule, int ret,
			   struct kymo_error *err)
{
	if (!ret && rules->list.len == RULES_MAX)
		ret = ky_error_set(err, KYMO_E_INVALID, "more than %u patterns", RULES_MAX);
	if (!ret && ky_vec_push(&rules->list, *rule) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0)
		fini_rule(rule);
	return ret;
}

static int user_rules_check(const char *pattern, struct kymo_error *err)
{
	const char *condition = strstr(pattern, " if ");

	if (condition)
		ky_error_set(
			err, KYMO_E_INVALID,
			"'%s' is a pattern with a filter; programs' events have an option of its "
			"own for '%s': filter",
			pattern, condition + 4);
	else if (!strchr(pattern, ':') && !strchr(pattern, '*'))
		ky_error_set(err, KYMO_E_INVALID,
			     "'%s' matches no event: an event's name is PROVIDER:NAME; '%s:*' "
			     "matches all events of a provider",
			     pattern, pattern);
	else
		return KYMO_OK;
	ky_error_input(err, "patterns");
	return KYMO_E_INVALID;
}

int ky_user_rules_add(struct ky_user_rules *rules, const struct ky_user_rule_text *text,
		      struct kymo_error *err)
{
	struct ky_user_rule rule = {.level_min = text->level_min, .level_max = text->level_max};
	struct ky_user_filter alone = {0};
	char *condition = NULL;
	int ret = user_rules_check(text->pattern, err);

	/* Compile it alone, so that an error's position is one of the user's text. */
	if (!ret && text->filter)
		ret = ky_user_filter_compile(text->filter, &alone, err);
	ky_user_filter_fini(&alone);
	if (!ret && (text->comm || text->filter)) {
		condition = full_condition(text->comm, text->filter);
		ret = condition ? KYMO_OK : ky_error_nomem(err);
	}
	if (!ret)
		ret = init_rule(&rule, text->pattern, condition, err);
	return user_rules_push(rules, &rule, ret, err);
}

static int user_rules_exclude(struct ky_user_rule *rule, const char *pattern,
			      struct kymo_error *err)
{
	char *copy;

	ky_vec_foreach(&rule->exclusions, it) {
		if (strcmp(*it, pattern) == 0)
			return KYMO_OK;
	}
	if (rule->exclusions.len == EXCLUSIONS_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "more than %u patterns", EXCLUSIONS_MAX);
	copy = strdup(pattern);
	if (copy && ky_vec_push(&rule->exclusions, copy) == 0)
		return KYMO_OK;
	free(copy);
	return ky_error_nomem(err);
}

int ky_user_rules_exclude(struct ky_user_rules *rules, const char *pattern, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < rules->list.len && !ret; i++)
		ret = user_rules_exclude(&rules->list.data[i], pattern, err);
	return ret;
}

/* Remove the rules whose pattern is @pattern; @covered: those that it matches as a text, too. */
static void user_rules_forget(struct ky_user_rules *rules, const char *pattern, bool covered)
{
	size_t n = 0;

	for (size_t i = 0; i < rules->list.len; i++) {
		struct ky_user_rule *rule = &rules->list.data[i];

		/* What a pattern matches as a text, stars and all, has only events that it matches. */
		if (strcmp(rule->pattern, pattern) == 0 ||
		    (covered && ky_user_glob(pattern, rule->pattern)))
			fini_rule(rule);
		else
			rules->list.data[n++] = *rule;
	}
	rules->list.len = n;
}

void ky_user_rules_forget(struct ky_user_rules *rules, const char *pattern)
{
	user_rules_forget(rules, pattern, false);
}

int ky_user_rules_disable(struct ky_user_rules *rules, const char *pattern, struct kymo_error *err)
{
	user_rules_forget(rules, pattern, !strchr(pattern, '\\'));
	return ky_user_rules_exclude(rules, pattern, err);
}

int ky_user_rules_copy(const struct ky_user_rules *from, struct ky_user_rules *to,
		       struct kymo_error *err)
{
	for (size_t i = 0; i < from->list.len; i++) {
		const struct ky_user_rule *old = &from->list.data[i];
		struct ky_user_rule rule = {.level_min = old->level_min,
					    .level_max = old->level_max};
		char *condition = old->condition ? strdup(old->condition) : NULL;
		int ret = old->condition && !condition
				  ? ky_error_nomem(err)
				  : init_rule(&rule, old->pattern, condition, err);

		for (size_t k = 0; k < old->exclusions.len && !ret; k++)
			ret = user_rules_exclude(&rule, old->exclusions.data[k], err);
		ret = user_rules_push(to, &rule, ret, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

bool ky_user_rule_takes(const struct ky_user_rule *rule, const struct ky_user_event *event)
{
	char name[KY_USER_EVENT_NAME_BYTES];

	if (!event->is_query && (event->record->log_level < rule->level_min ||
				 event->record->log_level > rule->level_max))
		return false;
	ky_user_event_name(event, name);
	if (!ky_user_glob(rule->pattern, name))
		return false;
	for (size_t i = 0; i < rule->exclusions.len; i++) {
		if (ky_user_glob(rule->exclusions.data[i], name))
			return false;
	}
	return true;
}
