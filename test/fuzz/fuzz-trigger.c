/* SPDX-License-Identifier: MIT */
/*
 * Conditions and actions of triggers: a line each. What is accepted says the same when its text is read again, and
 * survives events.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/triggers/trigger-match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct ky_trigger_rule *rule)
{
	struct ky_trigger_match match;
	struct ky_trigger_hit hit;

	if (rule->condition.count > 1000 || ky_trigger_match_init(&match, &rule->condition, 0) < 0)
		return;
	for (int i = 0; i < 16; i++)
		(void)ky_trigger_match_event(&match, i & 1, (uint64_t)i / 3, i * INT64_C(7000000),
					     &hit);
	(void)ky_trigger_match_amount(&match, 1000, 5);
	while (ky_trigger_match_expire(&match, INT64_C(1) << 40, &hit))
		;
	ky_trigger_match_fini(&match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *action;
	struct ky_trigger_rule rule, again;
	struct kymo_error err;

	if (!text)
		return 0;
	action = strchr(text, '\n');
	if (action)
		*action++ = '\0';
	if (ky_trigger_rule_parse(&rule, text, &err) == 0) {
		if (ky_trigger_rule_parse(&again, rule.condition.text, &err) < 0 ||
		    again.condition.kind != rule.condition.kind)
			abort();
		ky_trigger_rule_fini(&again);
		if (action)
			(void)ky_trigger_rule_add_action(&rule, action, &err);
		use(&rule);
	}
	ky_trigger_rule_fini(&rule);
	free(text);
	return 0;
}
