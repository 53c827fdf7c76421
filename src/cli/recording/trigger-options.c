/* SPDX-License-Identifier: MIT */
#include "cli/recording/trigger-options.h"

#include <string.h>

#include "base/error.h"
#include "cli/reading/filter-hint.h"

/* Shows the mistake as one of the command line. */
static int trigger_options_wrong(const struct ky_command *command, const char *option,
				 const char *value, const struct kymo_error *err)
{
	if (err->code == KYMO_E_MEMORY)
		return ky_cli_error(err);
	if (err->column)
		return ky_cli_usage(command, "--%s '%s': column %u: %s%s%s", option, value,
				    err->column, err->message, err->hint[0] ? "; " : "", err->hint);
	return ky_cli_usage(command, "--%s %s%s%s", option, err->message, err->hint[0] ? "; " : "",
			    err->hint);
}

static int add_when(const struct ky_command *command, const char *text,
		    struct ky_trigger_rules *rules)
{
	struct ky_trigger_rule rule;
	struct kymo_error err;
	int ret = ky_trigger_rule_parse(&rule, text, &err);

	if (!ret && ky_vec_push(rules, rule) < 0)
		ret = ky_error_nomem(&err);
	if (ret < 0) {
		ky_trigger_rule_fini(&rule);
		return trigger_options_wrong(command, "when", text, &err);
	}
	ky_cli_hint_filter(rule.condition.first.filter);
	ky_cli_hint_filter(rule.condition.second.filter);
	return KY_EXIT_OK;
}

/* To all conditions since the last actions. */
static int add_do(const struct ky_command *command, const char *text,
		  struct ky_trigger_rules *rules, size_t first)
{
	struct kymo_error err;
	int ret = KYMO_OK;

	if (first == rules->len)
		return ky_cli_usage(command, "--do '%s' needs --when CONDITION before it", text);
	for (size_t i = first; i < rules->len && !ret; i++)
		ret = ky_trigger_rule_add_action(&rules->data[i], text, &err);
	return ret < 0 ? trigger_options_wrong(command, "do", text, &err) : KY_EXIT_OK;
}

int ky_trigger_options_parse(const struct ky_command *command, const struct ky_text_list *list,
			     struct ky_trigger_rules *rules)
{
	size_t first = 0;
	bool has_action = false;
	int code = KY_EXIT_OK;

	*rules = (struct ky_trigger_rules)KY_VEC_INIT;
	for (size_t i = 0; i + 1 < list->len && !code; i += 2) {
		if (strcmp(list->items[i], "when") == 0) {
			first = has_action ? rules->len : first;
			has_action = false;
			code = add_when(command, list->items[i + 1], rules);
		} else {
			has_action = true;
			code = add_do(command, list->items[i + 1], rules, first);
		}
	}
	if (!code && list->len && !has_action)
		return ky_cli_usage(command, "--when '%s' needs --do ACTION behind it",
				    ky_vec_last(rules)->condition.text);
	return code;
}

void ky_trigger_rules_fini(struct ky_trigger_rules *rules)
{
	ky_vec_foreach(rules, rule)
		ky_trigger_rule_fini(rule);
	ky_vec_fini(rules);
}
