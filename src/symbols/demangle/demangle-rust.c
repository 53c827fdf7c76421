/* SPDX-License-Identifier: MIT */
/* Names as Rust mangles them since its version 0: "_RNvCs6GmmlP4bgsG_1r7free_fn". */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "symbols/demangle/demangle-internal.h"

/* "s_", "sa_": which of several of one name. */
static bool base62(struct ky_demangler *r, uint64_t *value)
{
	*value = 0;
	if (ky_demangle_take(r, '_'))
		return true;
	for (; isalnum((unsigned char)*r->at); r->at++) {
		char c = *r->at;

		*value = *value * 62 + (uint64_t)(c <= '9'   ? c - '0'
						  : c >= 'a' ? c - 'a' + 10
							     : c - 'A' + 36);
	}
	*value += 1; /* hashes have 64 bits, and may run over: only places are looked at */
	return ky_demangle_take(r, '_') || ky_demangle_fail(r);
}

static bool identifier(struct ky_demangler *r, const char **text, size_t *len)
{
	uint64_t which;
	size_t n = 0;

	if (ky_demangle_take(r, 's') && !base62(r, &which))
		return false;
	if (!isdigit((unsigned char)*r->at)) /* "u": in punycode */
		return ky_demangle_fail(r);
	while (isdigit((unsigned char)*r->at) && n < 100000)
		n = n * 10 + (size_t)(*r->at++ - '0');
	ky_demangle_take(r, '_');
	if (strnlen(r->at, n) < n)
		return ky_demangle_fail(r);
	*text = r->at;
	*len = n;
	r->at += n;
	return true;
}

/* What is read does not belong to the name. */
static bool aside(struct ky_demangler *r, bool (*read)(struct ky_demangler *))
{
	char *name = r->name;
	bool ok;

	r->name = NULL;
	ok = read(r);
	r->name = name;
	return ok;
}

static bool rust_type(struct ky_demangler *r);

/* "j3_", "p": a value's type and digits, or none. */
static bool rust_constant(struct ky_demangler *r)
{
	uint64_t place;

	if (ky_demangle_take(r, 'p'))
		return true;
	if (ky_demangle_take(r, 'B'))
		return base62(r, &place);
	if (!rust_type(r))
		return false;
	ky_demangle_take(r, 'n');
	r->at += strspn(r->at, "0123456789abcdef");
	return ky_demangle_take(r, '_') || ky_demangle_fail(r);
}

/* "UKCjE": what a function takes, up to the E, and gives. */
static bool rust_signature(struct ky_demangler *r)
{
	const char *text;
	uint64_t value;
	size_t len;

	if (ky_demangle_take(r, 'G') && !base62(r, &value))
		return false;
	ky_demangle_take(r, 'U');
	if (ky_demangle_take(r, 'K') && !ky_demangle_take(r, 'C') && !identifier(r, &text, &len))
		return false;
	while (!ky_demangle_take(r, 'E'))
		if (!rust_type(r))
			return false;
	return rust_type(r);
}

/* "NtC1a2TrEL_": traits, with the types that they are of, and for how long. */
static bool rust_object(struct ky_demangler *r)
{
	const char *text;
	uint64_t value;
	size_t len;

	if (ky_demangle_take(r, 'G') && !base62(r, &value))
		return false;
	while (!ky_demangle_take(r, 'E')) {
		if (!ky_demangle_rust(r))
			return false;
		while (ky_demangle_take(r, 'p'))
			if (!identifier(r, &text, &len) || !rust_type(r))
				return false;
	}
	return ky_demangle_take(r, 'L') ? base62(r, &value) : ky_demangle_fail(r);
}

static bool rust_array(struct ky_demangler *r)
{
	return rust_type(r) && rust_constant(r);
}

/* The types of generic arguments: passed over. Of a type that is a path, its name. */
static bool rust_type(struct ky_demangler *r)
{
	uint64_t value;
	bool ok = true;

	if (++r->depth > KY_DEMANGLE_MAX_DEPTH)
		return ky_demangle_fail(r);
	if (strchr("CMXYNIB", *r->at) && *r->at) {
		ok = ky_demangle_rust(r);
	} else if (islower((unsigned char)*r->at)) {
		r->at++;
	} else if (*r->at == 'R' || *r->at == 'Q') {
		r->at++;
		ok = (!ky_demangle_take(r, 'L') || base62(r, &value)) && rust_type(r);
	} else if (*r->at == 'P' || *r->at == 'O' || *r->at == 'S') {
		r->at++;
		ok = rust_type(r);
	} else if (ky_demangle_take(r, 'T')) {
		while (ok && !ky_demangle_take(r, 'E'))
			ok = aside(r, rust_type); /* which reads no place twice */
	} else if (ky_demangle_take(r, 'A')) {
		ok = aside(r, rust_array);
	} else if (ky_demangle_take(r, 'F')) {
		ok = aside(r, rust_signature);
	} else if (ky_demangle_take(r, 'D')) {
		ok = aside(r, rust_object);
	} else {
		ok = ky_demangle_fail(r);
	}
	r->depth--;
	return ok;
}

static bool rust_argument(struct ky_demangler *r)
{
	uint64_t value;

	if (ky_demangle_take(r, 'L'))
		return base62(r, &value);
	return ky_demangle_take(r, 'K') ? rust_constant(r) : rust_type(r);
}

/* "B4_": what stands at that place. It must be before this one, or there were no end. */
static bool back(struct ky_demangler *r)
{
	const char *here = r->at - 1;
	uint64_t place;
	bool ok;

	if (!base62(r, &place) || place >= (uint64_t)(here - r->start))
		return ky_demangle_fail(r);
	if (r->name) {
		const char *next = r->at;

		r->at = r->start + place;
		ok = ky_demangle_rust(r);
		r->at = next;
		return ok;
	}
	return true;
}

/* "M", "X": an implementation, which is called as its type. */
static bool implementation(struct ky_demangler *r, bool of_trait)
{
	uint64_t which;

	if (ky_demangle_take(r, 's') && !base62(r, &which))
		return false;
	return aside(r, ky_demangle_rust) && rust_type(r) &&
	       (!of_trait || aside(r, ky_demangle_rust));
}

bool ky_demangle_rust(struct ky_demangler *r)
{
	const char *text;
	size_t len;
	bool ok;

	if (++r->depth > KY_DEMANGLE_MAX_DEPTH)
		return ky_demangle_fail(r);
	switch (*r->at ? *r->at++ : '\0') {
	case 'C':
		ok = identifier(r, &text, &len);
		if (ok)
			ky_demangle_add_part(r, text, len);
		break;
	case 'N':
		r->at += *r->at != '\0';
		ok = ky_demangle_rust(r) && identifier(r, &text, &len);
		if (ok && len)
			ky_demangle_add_part(r, text, len);
		else if (ok)
			ky_demangle_add_part(r, "{closure}", 9);
		break;
	case 'M':
		ok = implementation(r, false);
		break;
	case 'X':
		ok = implementation(r, true);
		break;
	case 'Y':
		ok = rust_type(r) && aside(r, ky_demangle_rust);
		break;
	case 'I':
		ok = ky_demangle_rust(r);
		while (ok && !ky_demangle_take(r, 'E'))
			ok = aside(r, rust_argument);
		break;
	case 'B':
		ok = back(r);
		break;
	default:
		ok = ky_demangle_fail(r);
	}
	r->depth--;
	return ok && !r->failed;
}
