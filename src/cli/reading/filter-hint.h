/* SPDX-License-Identifier: MIT */
/* Warnings about filters that say something else than they seem to. */
#ifndef KY_CLI_READING_FILTER_HINT_H
#define KY_CLI_READING_FILTER_HINT_H

#include "cli/terminal/command.h"

/* Warn where @expression (NULL: none exists) compares with a text that looks like a pattern. */
void ky_cli_hint_filter(const char *expression);

/* The same of the filters in @rules: 'EVENTS if EXPR'. */
void ky_cli_hint_rules(const struct ky_text_list *rules);

#endif
