/* SPDX-License-Identifier: MIT */
/* Triggers' rules: their actions from text, and their end. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/triggers/trigger-rule.h"

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
