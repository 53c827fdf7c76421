/* SPDX-License-Identifier: MIT */
#include "analysis/state/span-pairs.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *begin, *end;
} pairs[] = {
	{"_begin", "_end"},
	{"_entry", "_exit"},
};

static size_t span_pairs_without(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	if (len <= suffix_len || strcmp(name + len - suffix_len, suffix) != 0)
		return 0;
	return len - suffix_len;
}

static bool span_pairs_has(const struct ky_names *known, const char *name, size_t len,
			   const char *suffix)
{
	char partner[256];

	if (len + strlen(suffix) >= sizeof(partner))
		return false;
	snprintf(partner, sizeof(partner), "%.*s%s", (int)len, name, suffix);
	return ky_names_get(known, partner) != NULL;
}

size_t ky_span_pair(const struct ky_names *known, const char *name, bool *begins)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		size_t first = span_pairs_without(name, pairs[i].begin);
		size_t len = first ? first : span_pairs_without(name, pairs[i].end);

		if (!len ||
		    !span_pairs_has(known, name, len, first ? pairs[i].end : pairs[i].begin))
			continue;
		*begins = first > 0;
		return len;
	}
	return 0;
}
