/* SPDX-License-Identifier: MIT */
#include "analysis/state/span-pairs.h"

#include <stdio.h>
#include <string.h>

#define NAME_BYTES   256
#define SUFFIX_BYTES 16

/* The words that end the names of the two events: behind a separator, or with a capital letter. */
static const struct {
	const char *begin, *end;
} pairs[] = {
	{"begin", "end"},    {"entry", "exit"}, {"start", "end"},  {"start", "stop"},
	{"start", "finish"}, {"start", "done"}, {"enter", "exit"}, {"enter", "leave"},
};
static const char separators[] = "_-.:";

/* "_begin"; with separator 0: "Begin". */
static void span_pairs_suffix(char suffix[SUFFIX_BYTES], char separator, const char *word)
{
	if (separator)
		snprintf(suffix, SUFFIX_BYTES, "%c%s", separator, word);
	else
		snprintf(suffix, SUFFIX_BYTES, "%c%s", word[0] - 'a' + 'A', word + 1);
}

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
	char partner[NAME_BYTES];

	if (len + strlen(suffix) >= sizeof(partner))
		return false;
	snprintf(partner, sizeof(partner), "%.*s%s", (int)len, name, suffix);
	return ky_names_get(known, partner) != NULL;
}

/* As ky_span_pair(), for one pair of words behind @separator. */
static size_t span_pairs_find(const struct ky_names *known, const char *name, size_t pair,
			      char separator, bool *begins)
{
	char begin[SUFFIX_BYTES], end[SUFFIX_BYTES];
	size_t first, len;

	span_pairs_suffix(begin, separator, pairs[pair].begin);
	span_pairs_suffix(end, separator, pairs[pair].end);
	first = span_pairs_without(name, begin);
	len = first ? first : span_pairs_without(name, end);
	if (!len || !span_pairs_has(known, name, len, first ? end : begin))
		return 0;
	*begins = first > 0;
	return len;
}

size_t ky_span_pair(const struct ky_names *known, const char *name, bool *begins)
{
	static const char dump[] = "lttng_ust_statedump:"; /* the tracer's work, of no thread */

	if (strncmp(name, dump, sizeof(dump) - 1) == 0)
		return 0;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		for (size_t k = 0; k < sizeof(separators); k++) { /* the last one is 0 */
			size_t len = span_pairs_find(known, name, i, separators[k], begins);

			if (len)
				return len;
		}
	}
	return 0;
}
