/* SPDX-License-Identifier: MIT */
#include "symbols/demangle/demangle.h"

#include <stdio.h>
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

/* ---- Rust's older names ----------------------------------------------------------------- */

/* What "$LT$" and the like stand for; 0: nothing. *len: of the escape. */
static char demangle_escape(const char *at, size_t *len)
{
	static const struct {
		const char *text;
		char c;
	} known[] = {{"$SP$", '@'}, {"$BP$", '*'}, {"$RF$", '&'}, {"$LT$", '<'},
		     {"$GT$", '>'}, {"$LP$", '('}, {"$RP$", ')'}, {"$C$", ','}};
	unsigned int value;
	int n = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		*len = strlen(known[i].text);
		if (strncmp(at, known[i].text, *len) == 0)
			return known[i].c;
	}
	if (sscanf(at, "$u%2x$%n", &value, &n) != 1 || n < 4 || value < ' ' || value > '~')
		return 0;
	*len = (size_t)n;
	return (char)value;
}

static bool demangle_begins_part(const struct ky_demangler *r, const char *at)
{
	return at == r->name || (at >= r->name + 2 && at[-1] == ':' && at[-2] == ':');
}

/* Escapes are longer than what they stand for. */
static void demangle_unescape(struct ky_demangler *r)
{
	char *to = r->name;
	size_t len;

	for (const char *at = r->name; *at;) {
		char c = *at == '$' ? demangle_escape(at, &len) : 0;

		if (c) {
			*to++ = c;
			at += len;
		} else if (at[0] == '.' && at[1] == '.') {
			*to++ = ':';
			*to++ = ':';
			at += 2;
		} else if (*at == '_' && at[1] == '$' && demangle_begins_part(r, at)) {
			at++;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

/* Behind the '>' of the '<' at @at; without one, the end. */
static const char *demangle_behind(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		depth += *at == '<';
		depth -= *at == '>' && at[-1] != '-';
		if (!depth)
			return at + 1;
	}
	return at;
}

/* The @text in [at, end), beside generic arguments; else @end. */
static const char *demangle_word(const char *at, const char *end, const char *text)
{
	while (at < end && strncmp(at, text, strlen(text)) != 0)
		at = *at == '<' ? demangle_behind(at) : at + 1;
	return at < end ? at : end;
}

/*
 * <shop::Item<T> as shop::Price>::total becomes shop::Item::total, and <impl shop::Price for shop::Item>::total the same, as newer
 * names are read.
 */
static void demangle_shorten(struct ky_demangler *r)
{
	char *to = r->name;

	for (const char *at = r->name, *end, *word; *at; at = end) {
		end = *at == '<' ? demangle_behind(at) : at + 1;
		word = end;
		if (*at != '<') {
			*to++ = *at;
		} else if (demangle_begins_part(r, to) && end[-1] == '>') {
			if (strncmp(++at, "impl ", 5) == 0) {
				at += 5;
				word = demangle_word(at, end - 1, " for ");
				at = word < end - 1 ? word + 5 : at;
			}
			word = demangle_word(at, end - 1, " as ");
			while (at < word)
				if (*at == '<')
					at = demangle_behind(at);
				else
					*to++ = *at++;
		}
	}
	*to = '\0';
	r->len = (size_t)(to - r->name);
}

/* ---- names ---------------------------------------------------------------------------- */

/* ".cold", ".part.0": a piece of a function, beside its beginning. */
static bool is_piece(const char *rest)
{
	return strstr(rest, ".cold") || strstr(rest, ".part.");
}

/* The last component, "h0123456789abcdef", is Rust's hash of the rest. */
static void demangle_older_rust(struct ky_demangler *r)
{
	char *hash = r->len > 19 ? r->name + r->len - 19 : NULL;

	if (!hash || memcmp(hash, "::h", 3) != 0 || strspn(hash + 3, "0123456789abcdef") != 16)
		return;
	*hash = '\0';
	demangle_unescape(r);
	demangle_shorten(r);
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
	demangle_older_rust(&r);
	return r.len != 0;
}
