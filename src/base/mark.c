/* SPDX-License-Identifier: MIT */
#include "base/mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char word[] = "kymo-mark ";

/* From 2001 on: a time of 19 digits. */
#define DIGITS 19

void ky_mark_put(char *out, size_t size, int64_t ns, const char *text)
{
	snprintf(out, size, "%s%" PRId64 " %s", word, ns, text);
}

bool ky_mark_find(const char *text, size_t len, int64_t *ns)
{
	const char *at = memmem(text, len, word, sizeof(word) - 1), *end = text + len;
	uint64_t value = 0;
	int n = 0;

	if (!at)
		return false;
	for (at += sizeof(word) - 1; at < end && *at >= '0' && *at <= '9' && n <= DIGITS; at++, n++)
		value = value * 10 + (uint64_t)(*at - '0');
	*ns = (int64_t)value;
	return n == DIGITS && value <= INT64_MAX;
}
