/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-name.h"

#include <string.h>

#include "symbols/demangle/demangle.h"

bool ky_probe_name_is_piece(const char *rest)
{
	return strstr(rest, ".cold") || strstr(rest, ".part.");
}

bool ky_probe_name_is_clone(const char *symbol, const char *function)
{
	/* Clones for certain arguments, with others, and what is left when the beginning is inlined. */
	static const char *const kinds[] = {".constprop.", ".isra.", ".part."};
	char base[KY_DEMANGLED_BYTES];
	const char *rest = strchr(symbol, '.');
	bool is = false;

	/* A cold part is gone to from the function, where the call has been recorded. */
	if (!rest || rest == symbol || rest - symbol >= (long)sizeof(base) || strstr(rest, ".cold"))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		is |= strstr(rest, kinds[i]) != NULL;
	if (!is)
		return false;
	memcpy(base, symbol, (size_t)(rest - symbol));
	base[rest - symbol] = '\0';
	return strcmp(base, function) == 0 || ky_probe_name_is(base, function, strlen(function));
}

bool ky_probe_name_is(const char *symbol, const char *wanted, size_t len)
{
	char name[KY_DEMANGLED_BYTES];
	size_t whole;

	if (!ky_demangle(symbol, name))
		return false;
	whole = strlen(name);
	if (whole < len || memcmp(name + whole - len, wanted, len) != 0)
		return false;
	return whole == len || (whole > len + 1 && memcmp(name + whole - len - 2, "::", 2) == 0);
}
