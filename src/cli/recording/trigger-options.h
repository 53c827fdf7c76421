/* SPDX-License-Identifier: MIT */
/* The options --when and --do of kymo record and kymo ctl. */
#ifndef KY_CLI_RECORDING_TRIGGER_OPTIONS_H
#define KY_CLI_RECORDING_TRIGGER_OPTIONS_H

#include "base/vec.h"
#include "cli/terminal/command.h"
#include "record/triggers/trigger-rule.h"

KY_VEC_TYPE(ky_trigger_rules, struct ky_trigger_rule);

/* The rows of both options; @struct_name has a member @member: struct ky_text_list. */
#define KY_OPTION_WHEN(struct_name, member)                                                                      \
	{                                                                                                        \
		"when", 0, KY_OPTION_RULES, "CONDITION",                                                         \
			"Watch for CONDITION, and then carry out the actions of the options --do behind it: an " \
			"event with a filter (sched_switch if next_prio < 0, user shop:order if total > 9), N "  \
			"times within TIME, BEGIN -> END by KEY with duration > TIME, syscall_exit_fsync with "  \
			"duration > 100ms, EVENT without EVENT within TIME, loss, fill > 80%, size > 1G, at "    \
			"03:00, every 10min; with the limits once per TIME (default: 1s) and first N. May be "   \
			"given again. See docs/triggers.md.",                                                    \
			offsetof(struct_name, member), NULL                                                      \
	}
#define KY_OPTION_DO(struct_name, member)                                                                         \
	{                                                                                                         \
		"do", 0, KY_OPTION_RULES, "ACTION",                                                               \
			"What the conditions of --when before it cause: snapshot[:PREFIX], rotate, "              \
			"start:PROFILE, stop:NAME, run:COMMAND (with sh -c, and KYMO_TRIGGER_* in the "           \
			"environment), mark[:TEXT] (an event kymo:mark in the trace), notify[:TEXT] (a line for " \
			"kymo watch), report[:FILE] (an archive for kymo report). May be given again.",           \
			offsetof(struct_name, member),                                                            \
			"snapshot rotate start: stop: run: mark notify report"                                    \
	}

/*
 * The triggers of @list, in which options and their values follow each other. Returns an exit code:
 * KY_EXIT_OK, or KY_EXIT_USAGE after a message. The caller must call ky_trigger_rules_fini() in any
 * case.
 */
int ky_trigger_options_parse(const struct ky_command *command, const struct ky_text_list *list,
			     struct ky_trigger_rules *rules);
void ky_trigger_rules_fini(struct ky_trigger_rules *rules);

#endif
