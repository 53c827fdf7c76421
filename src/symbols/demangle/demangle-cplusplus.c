/* SPDX-License-Identifier: MIT */
/* Names as the Itanium ABI of C++ mangles them: "_ZN4shop4Shop5placeEi". */
#include <ctype.h>
#include <string.h>

#include "symbols/demangle/demangle-internal.h"

/* "5place": a length, and as many letters. */
static bool counted(struct ky_demangler *r, const char **text, size_t *len)
{
	size_t n = 0;

	if (!isdigit((unsigned char)*r->at))
		return ky_demangle_fail(r);
	while (isdigit((unsigned char)*r->at) && n < 100000)
		n = n * 10 + (size_t)(*r->at++ - '0');
	if (!n || strnlen(r->at, n) < n)
		return ky_demangle_fail(r);
	*text = r->at;
	*len = n;
	r->at += n;
	return true;
}

static bool skip_arguments(struct ky_demangler *r);

/* "L4Kinds7E": a literal's type and value. */
static bool demangle_cplusplus_skip_literal(struct ky_demangler *r)
{
	const char *text;
	size_t len;

	if (ky_demangle_take(r, 'N')) {
		if (!skip_arguments(r))
			return false;
	} else if (isdigit((unsigned char)*r->at) && !counted(r, &text, &len)) {
		return false;
	}
	r->at += strcspn(r->at, "E");
	return ky_demangle_take(r, 'E') || ky_demangle_fail(r);
}

/* Behind what has been opened: template arguments, names, functions' types, up to their E. */
static bool skip_arguments(struct ky_demangler *r)
{
	const char *text;
	size_t len;

	if (++r->depth > KY_DEMANGLE_MAX_DEPTH)
		return ky_demangle_fail(r);
	while (!ky_demangle_take(r, 'E')) {
		if (r->failed || !*r->at)
			return ky_demangle_fail(r);
		if (isdigit((unsigned char)*r->at)) {
			counted(r, &text, &len);
			continue;
		}
		switch (*r->at++) {
		case 'L':
			if (r->at[0] != '_')
				demangle_cplusplus_skip_literal(r);
			else if (!skip_arguments(r))
				return false;
			break;
		case 'I':
		case 'N':
		case 'X':
		case 'J':
		case 'F':
			if (!skip_arguments(r))
				return false;
			break;
		case 'S':
		case 'T':
			if (islower((unsigned char)*r->at)) {
				r->at++;
				break;
			}
			r->at += strspn(r->at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
			if (!ky_demangle_take(r, '_'))
				return ky_demangle_fail(r);
			break;
		case 'A':
			r->at += strspn(r->at, "0123456789");
			break;
		case 'C':
		case 'D':
			if (*r->at == 'T' || *r->at == 't')
				return ky_demangle_fail(r);
			r->at += *r->at != '\0';
			break;
		case 'f':
			if (ky_demangle_take(r, 'p'))
				r->at += strspn(r->at, "0123456789");
			break;
		default:
			break;
		}
	}
	r->depth--;
	return !r->failed;
}

/* "C1", "D0": constructors and destructors are called as their class. */
static bool structor(struct ky_demangler *r, const char *last, size_t len)
{
	if ((*r->at != 'C' && *r->at != 'D') || !isdigit((unsigned char)r->at[1]) || !last)
		return ky_demangle_fail(r);
	ky_demangle_add(r, *r->at == 'D' ? "::~" : "::", *r->at == 'D' ? 3 : 2);
	ky_demangle_add(r, last, len);
	r->at += 2;
	return true;
}

/* "5place", "Lplace", with "B5cxx11" and "I...E" behind. */
static bool component(struct ky_demangler *r, const char **last, size_t *len)
{
	const char *tag;
	size_t tag_len;

	ky_demangle_take(r, 'L');
	if (isdigit((unsigned char)*r->at)) {
		if (!counted(r, last, len))
			return false;
		if (*len >= 10 && memcmp(*last, "_GLOBAL__N", 10) == 0)
			ky_demangle_add_part(r, "(anonymous namespace)", 21);
		else
			ky_demangle_add_part(r, *last, *len);
	} else if (!structor(r, *last, *len)) {
		return false;
	}
	while (ky_demangle_take(r, 'B'))
		if (!counted(r, &tag, &tag_len))
			return false;
	return !ky_demangle_take(r, 'I') || skip_arguments(r);
}

/* "St", "Ss": what the ABI has abbreviations for. */
static bool abbreviated(struct ky_demangler *r, const char **last, size_t *len)
{
	static const char *const names[] = {
		"aallocator",	  "bbasic_string",  "sbasic_string",
		"ibasic_istream", "obasic_ostream", "dbasic_iostream",
	};

	ky_demangle_add(r, "std", 3);
	if (ky_demangle_take(r, 't'))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (*r->at == names[i][0]) {
			r->at++;
			*last = names[i] + 1;
			*len = strlen(*last);
			ky_demangle_add_part(r, *last, *len);
			return !ky_demangle_take(r, 'I') || skip_arguments(r);
		}
	return ky_demangle_fail(r);
}

static bool demangle_cplusplus_nested(struct ky_demangler *r)
{
	const char *last = NULL;
	size_t len = 0;

	while (*r->at && strchr("rVKRO", *r->at))
		r->at++;
	if (ky_demangle_take(r, 'S') && !abbreviated(r, &last, &len))
		return false;
	while (!ky_demangle_take(r, 'E'))
		if (!component(r, &last, &len))
			return false;
	return r->len > 0;
}

bool ky_demangle_cplusplus(struct ky_demangler *r)
{
	const char *last = NULL;
	size_t len = 0;

	if (ky_demangle_take(r, 'N'))
		return demangle_cplusplus_nested(r);
	if (r->at[0] == 'S' && r->at[1] == 't') {
		ky_demangle_add(r, "std", 3);
		r->at += 2;
	}
	return component(r, &last, &len);
}
