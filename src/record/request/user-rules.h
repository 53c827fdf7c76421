/* SPDX-License-Identifier: MIT */
/*
 * The rules of a recording of programs, which select events. They can change during the recording.
 */
#ifndef KY_RECORD_REQUEST_USER_RULES_H
#define KY_RECORD_REQUEST_USER_RULES_H

#include <stdbool.h>

#include <kymo/error.h>

#include "base/vec.h"
#include "record/request/user-event.h"
#include "record/request/user-filter.h"

/* A rule in the user's form. */
struct ky_user_rule_text {
	const char *pattern;
	const char *filter, *comm; /* NULL: none */
	uint8_t level_min, level_max;
};

struct ky_user_rule {
	char *pattern;
	char *condition; /* the source of code; NULL: none */
	uint8_t level_min, level_max;
	KY_VEC(char *) exclusions;
	struct ky_user_filter code; /* the filter for programs */
};

/* A zeroed struct is empty. */
struct ky_user_rules {
	KY_VEC(struct ky_user_rule) list;
};

/*
 * Add a rule. Returns 0; KYMO_E_INVALID: the pattern matches no event, the filter is wrong, or
 * there are too many rules; KYMO_E_MEMORY.
 */
int ky_user_rules_add(struct ky_user_rules *rules, const struct ky_user_rule_text *text,
		      struct kymo_error *err);
/* The present rules no longer select events that match @pattern; later rules may. */
int ky_user_rules_exclude(struct ky_user_rules *rules, const char *pattern, struct kymo_error *err);
/* The same during a recording: also removes rules that select nothing any more. */
int ky_user_rules_disable(struct ky_user_rules *rules, const char *pattern, struct kymo_error *err);
/* Removes rules with exactly this pattern: a rule with other conditions replaces them. */
void ky_user_rules_forget(struct ky_user_rules *rules, const char *pattern);
/* On failure, the caller must call fini for @to, too. */
int ky_user_rules_copy(const struct ky_user_rules *from, struct ky_user_rules *to,
		       struct kymo_error *err);
void ky_user_rules_fini(struct ky_user_rules *rules);

/* Whether the rule selects the event, without regard to its filter. */
bool ky_user_rule_takes(const struct ky_user_rule *rule, const struct ky_user_event *event);

#endif
