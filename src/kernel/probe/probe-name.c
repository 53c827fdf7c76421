/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-name.h"

#include <string.h>

#include "kernel/probe/probe-name-reader.h"

/* ---- what the readers share ----------------------------------------------------------- */

void ky_name_add(struct ky_name_reader *r, const char *text, size_t len)
{
	if (!r->name || r->failed)
		return;
	if (r->len + len >= KY_PROBE_PLAIN_BYTES) {
		r->failed = true;
		return;
	}
	memcpy(r->name + r->len, text, len);
	r->len += len;
	r->name[r->len] = '\0';
}

void ky_name_add_part(struct ky_name_reader *r, const char *text, size_t len)
{
	if (r->len)
		ky_name_add(r, "::", 2);
	ky_name_add(r, text, len);
}

bool ky_name_take(struct ky_name_reader *r, char c)
{
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

bool ky_name_fail(struct ky_name_reader *r)
{
	r->failed = true;
	return false;
}

/* ---- names ---------------------------------------------------------------------------- */

bool ky_probe_name_is_piece(const char *rest)
{
	return strstr(rest, ".cold") || strstr(rest, ".part.");
}

bool ky_probe_name_is_clone(const char *symbol, const char *function)
{
	/* Clones for certain arguments, with others, and what is left when the beginning is inlined. */
	static const char *const kinds[] = {".constprop.", ".isra.", ".part."};
	char base[KY_PROBE_PLAIN_BYTES];
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

/* The last component, "h0123456789abcdef", is Rust's hash of the rest. */
static void cut_hash(struct ky_name_reader *r)
{
	char *hash = r->len > 19 ? r->name + r->len - 19 : NULL;

	if (hash && memcmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16)
		*hash = '\0';
}

bool ky_probe_plain_name(const char *symbol, char *name)
{
	struct ky_name_reader r = {.name = name};

	name[0] = '\0';
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return false;
	r.start = r.at = symbol + 2;
	if (symbol[1] == 'R')
		return ky_name_rust(&r) && r.len && !ky_probe_name_is_piece(r.at);
	if (!ky_name_cplusplus(&r) || r.failed || !r.len || ky_probe_name_is_piece(r.at))
		return false;
	cut_hash(&r);
	return true;
}

bool ky_probe_name_is(const char *symbol, const char *wanted, size_t len)
{
	char name[KY_PROBE_PLAIN_BYTES];
	size_t whole;

	if (!ky_probe_plain_name(symbol, name))
		return false;
	whole = strlen(name);
	if (whole < len || memcmp(name + whole - len, wanted, len) != 0)
		return false;
	return whole == len || (whole > len + 1 && memcmp(name + whole - len - 2, "::", 2) == 0);
}
