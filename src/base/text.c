/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

int ky_parse_u64(const char *text, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	unsigned long long number;
	char *end;

	/* strtoull() accepts blanks and signs, which are mistakes here. */
	if (text[0] < '0' || text[0] > '9')
		return KYMO_E_INVALID;
	errno = 0;
	number = strtoull(text, &end, hex ? 16 : 10);
	if (errno || *end || (hex && !text[2]))
		return KYMO_E_INVALID;
	*value = number;
	return KYMO_OK;
}

/* Parse a number with a unit out of @units; the value is scaled and must fit 64 bits. */
struct text_unit {
	const char *name;
	double scale;
};

static int parse_scaled(const char *text, const struct text_unit *units, uint64_t *value)
{
	double number;
	char *end;

	if (text[0] < '0' || text[0] > '9' || text[1] == 'x' || text[1] == 'X')
		return KYMO_E_INVALID;
	number = strtod(text, &end);
	for (; units->name; units++) {
		if (strcasecmp(end, units->name) != 0)
			continue;
		number *= units->scale;
		if (!isfinite(number) || number < 0 || number >= 9.2e18)
			return KYMO_E_INVALID;
		*value = (uint64_t)(number + 0.5);
		return KYMO_OK;
	}
	return KYMO_E_INVALID;
}

int ky_parse_size(const char *text, uint64_t *bytes)
{
	static const struct text_unit units[] = {
		{"", 1},	   {"b", 1},	       {"k", 1024},	    {"kb", 1024},
		{"kib", 1024},	   {"m", 1048576},     {"mb", 1048576},	    {"mib", 1048576},
		{"g", 1073741824}, {"gb", 1073741824}, {"gib", 1073741824}, {NULL, 0},
	};

	return parse_scaled(text, units, bytes);
}

int ky_parse_duration(const char *text, uint64_t *ns)
{
	static const struct text_unit units[] = {
		{"", 1e9},     {"ns", 1},   {"us", 1e3},   {"ms", 1e6},	   {"s", 1e9},
		{"min", 60e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {NULL, 0},
	};

	return parse_scaled(text, units, ns);
}

bool ky_glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text) {
		bool quoted = *pattern == '\\' && pattern[1];

		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
			continue;
		}
		if (quoted ? pattern[1] == *text : (*pattern == '?' || *pattern == *text)) {
			pattern += quoted ? 2 : 1;
			text++;
			continue;
		}
		if (!star)
			return false;
		pattern = star;
		text = ++resume;
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool ky_glob_choose(const char *const *globs, size_t n, const char *text)
{
	bool chosen = !n || globs[0][0] == '!';

	for (size_t i = 0; i < n; i++) {
		bool takes_out = globs[i][0] == '!';

		if (ky_glob_match(globs[i] + takes_out, text))
			chosen = !takes_out;
	}
	return chosen;
}

size_t ky_edit_distance(const char *a, const char *b)
{
	size_t row[128], len_b = strlen(b), len_a = strlen(a);

	if (len_b >= 127)
		return len_a > len_b ? len_a : len_b;
	for (size_t j = 0; j <= len_b; j++)
		row[j] = j;
	for (size_t i = 1; i <= len_a; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len_b; j++) {
			size_t replace = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < replace)
				replace = row[j] + 1;
			if (row[j - 1] + 1 < replace)
				replace = row[j - 1] + 1;
			row[j] = replace;
		}
	}
	return row[len_b];
}

int ky_digit_value(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return KY_NO_DIGIT;
}

bool ky_parse_uuid(const char *text, uint8_t uuid[16])
{
	if (strlen(text) != 36)
		return false;
	for (int i = 0; i < 16; i++) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		high = ky_digit_value(*text++);
		low = ky_digit_value(*text++);
		if (high == KY_NO_DIGIT || low == KY_NO_DIGIT)
			return false;
		uuid[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

char *ky_format_uuid(char out[KY_UUID_TEXT_BYTES], const uint8_t uuid[16])
{
	static const char hex[] = "0123456789abcdef";
	char *at = out;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = hex[uuid[i] >> 4];
		*at++ = hex[uuid[i] & 15];
	}
	*at = '\0';
	return out;
}

char *ky_format_bytes(char *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	if (unit)
		snprintf(out, 32, "%.1f %s", value, units[unit]);
	else
		snprintf(out, 32, "%llu B", (unsigned long long)bytes);
	return out;
}

char *ky_format_duration(char *out, uint64_t ns)
{
	if (ns < 1000)
		snprintf(out, 32, "%llu ns", (unsigned long long)ns);
	else if (ns < 1000000)
		snprintf(out, 32, "%.3f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(out, 32, "%.3f ms", (double)ns / 1e6);
	else
		snprintf(out, 32, "%.3f s", (double)ns / 1e9);
	return out;
}

char *ky_format_setting(char *out, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{86400000000000, "d"},
		     {3600000000000, "h"},
		     {60000000000, "min"},
		     {1000000000, "s"},
		     {1000000, "ms"},
		     {1000, "us"},
		     {1, "ns"}};
	unsigned int i = 0;

	if (!ns)
		i = 3;
	while (ns % units[i].ns)
		i++;
	snprintf(out, 32, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].name);
	return out;
}
