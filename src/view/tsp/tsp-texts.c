/* SPDX-License-Identifier: MIT */
/* Times as text, and the expressions that states are filtered by. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/text.h"
#include "view/tsp/tsp-internal.h"

void ky_tsp_time(struct ky_strbuf *out, int64_t ns)
{
	int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
	time_t clock;
	struct tm tm;
	char text[64];

	if (rest < 0) {
		rest += 1000000000;
		seconds--;
	}
	clock = (time_t)seconds;
	if (!localtime_r(&clock, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, sizeof(text), "%lld", (long long)seconds);
	ky_strbuf_addf(out, "%s.%09lld", text, (long long)rest);
}

/* "duration > 10ms": 1 or 0, or -1: it is no such expression. */
static int compare_duration(const char *text, uint64_t duration_ns)
{
	bool is_less, is_equal;
	uint64_t ns;

	if (strncmp(text, "duration", 8) != 0)
		return -1;
	text += 8 + strspn(text + 8, " ");
	if (*text != '<' && *text != '>')
		return -1;
	is_less = *text++ == '<';
	is_equal = *text == '=';
	text += is_equal;
	text += strspn(text, " ");
	if (ky_parse_duration(text, &ns) < 0)
		return -1;
	if (duration_ns == ns)
		return is_equal;
	return is_less ? duration_ns < ns : duration_ns > ns;
}

static bool tsp_texts_matches(const char *expression, const char *const *texts, size_t n,
			      uint64_t duration_ns)
{
	int by_duration = compare_duration(expression, duration_ns);

	if (by_duration >= 0)
		return by_duration;
	for (size_t i = 0; i < n; i++) {
		if (strcasestr(texts[i], expression))
			return true;
	}
	return false;
}

bool ky_tsp_matches(const struct ky_tsp_texts *expressions, const char *const *texts, size_t n,
		    uint64_t duration_ns)
{
	for (size_t i = 0; i < expressions->len; i++) {
		if (!tsp_texts_matches(expressions->data[i], texts, n, duration_ns))
			return false;
	}
	return true;
}
