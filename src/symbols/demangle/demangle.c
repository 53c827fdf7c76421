/* SPDX-License-Identifier: MIT */
#include "symbols/demangle/demangle.h"

#include <string.h>

#include "symbols/demangle/demangle-internal.h"

/* ---- what the readers share ----------------------------------------------------------- */

void ky_demangle_add(struct ky_demangler *r, const char *text, size_t len)
{
	if (!r->name || r->failed)
		return;
	if (r->len + len >= KY_DEMANGLED_BYTES) {
		r->failed = true;
		return;
	}
	memcpy(r->name + r->len, text, len);
	r->len += len;
	r->name[r->len] = '\0';
}

void ky_demangle_add_part(struct ky_demangler *r, const char *text, size_t len)
{
	if (r->len)
		ky_demangle_add(r, "::", 2);
	ky_demangle_add(r, text, len);
}

bool ky_demangle_take(struct ky_demangler *r, char c)
{
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

bool ky_demangle_fail(struct ky_demangler *r)
{
	r->failed = true;
	return false;
}

/* ---- names ---------------------------------------------------------------------------- */

/* ".cold", ".part.0": a piece of a function, beside its beginning. */
static bool is_piece(const char *rest)
{
	return strstr(rest, ".cold") || strstr(rest, ".part.");
}

/* The last component, "h0123456789abcdef", is Rust's hash of the rest. */
static void cut_hash(struct ky_demangler *r)
{
	char *hash = r->len > 19 ? r->name + r->len - 19 : NULL;

	if (hash && memcmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16)
		*hash = '\0';
}

bool ky_demangle(const char *symbol, char *name)
{
	struct ky_demangler r = {.name = name};

	name[0] = '\0';
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return false;
	r.start = r.at = symbol + 2;
	if (symbol[1] == 'R')
		return ky_demangle_rust(&r) && r.len && !is_piece(r.at);
	if (!ky_demangle_cplusplus(&r) || r.failed || !r.len || is_piece(r.at))
		return false;
	cut_hash(&r);
	return true;
}
