/* SPDX-License-Identifier: MIT */
#include "cli/reading/filter-hint.h"

#include <string.h>

#include "query/filter.h"

void ky_cli_hint_filter(const char *expression)
{
	char pattern[64];
	uint32_t column;

	if (!expression || !ky_filter_literal_glob(expression, pattern, sizeof(pattern), &column))
		return;
	ky_log_warning(
		&ky_cli_log,
		"the filter compares '%s' (column %u) literally, with '*' and '?' as characters; "
		"for a pattern write =~ instead of == or in",
		pattern, column);
}

void ky_cli_hint_rules(const struct ky_text_list *rules)
{
	for (size_t i = 0; i < rules->len; i++) {
		const char *filter = strstr(rules->items[i], " if ");

		ky_cli_hint_filter(filter ? filter + 4 : NULL);
	}
}
