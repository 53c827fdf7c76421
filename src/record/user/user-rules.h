/* SPDX-License-Identifier: MIT */
/* The rules of a recording of programs: which events are wanted. They change while it runs. */
#ifndef KY_RECORD_USER_USER_RULES_H
#define KY_RECORD_USER_USER_RULES_H

#include <stdbool.h>

#include <kymo/error.h>

#include "base/vec.h"
#include "record/user/user-event.h"
#include "record/user/user-filter.h"

/* A rule as people write it. */
struct ky_user_rule_text {
	const char *pattern;
	const char *filter, *comm; /* NULL: none */
	uint8_t level_min, level_max;
};

struct ky_user_rule {
	char *pattern;
	char *condition; /* what code was made of; NULL: none */
	uint8_t level_min, level_max;
	KY_VEC(char *) exclusions;
	struct ky_user_filter code; /* what programs get */
};

/* Zeroed: empty. */
struct ky_user_rules {
	KY_VEC(struct ky_user_rule) list;
};

/* 0; KYMO_E_INVALID: a pattern that matches no event, a filter that is wrong, too many; KYMO_E_MEMORY. */
int ky_user_rules_add(struct ky_user_rules *rules, const struct ky_user_rule_text *text,
		      struct kymo_error *err);
/* No rule takes events that match @pattern any more; those added later may. */
int ky_user_rules_exclude(struct ky_user_rules *rules, const char *pattern, struct kymo_error *err);
/* The same, for a recording that runs: rules that are left with nothing go. */
int ky_user_rules_disable(struct ky_user_rules *rules, const char *pattern, struct kymo_error *err);
/* Rules with this very pattern go: one with other words follows. */
void ky_user_rules_forget(struct ky_user_rules *rules, const char *pattern);
/* On failure @to is due for fini, too. */
int ky_user_rules_copy(const struct ky_user_rules *from, struct ky_user_rules *to,
		       struct kymo_error *err);
void ky_user_rules_fini(struct ky_user_rules *rules);

/* Whether the rule takes the event, but for its filter. */
bool ky_user_rule_takes(const struct ky_user_rule *rule, const struct ky_user_event *event);

#endif
