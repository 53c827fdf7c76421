/* SPDX-License-Identifier: MIT */
#include "kernel/probe-name.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define MAX_DEPTH 64

struct reader {
	const char *start, *at;
	char *name; /* NULL: nothing is wanted of what is read */
	size_t len;
	int depth;
	bool failed;
};

static void add(struct reader *r, const char *text, size_t len)
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

static void add_part(struct reader *r, const char *text, size_t len)
{
	if (r->len)
		add(r, "::", 2);
	add(r, text, len);
}

static bool take(struct reader *r, char c)
{
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static bool fail(struct reader *r)
{
	r->failed = true;
	return false;
}

/* "5place": a length, and as many letters. */
static bool counted(struct reader *r, const char **text, size_t *len)
{
	size_t n = 0;

	if (!isdigit((unsigned char)*r->at))
		return fail(r);
	while (isdigit((unsigned char)*r->at) && n < 100000)
		n = n * 10 + (size_t)(*r->at++ - '0');
	if (!n || strnlen(r->at, n) < n)
		return fail(r);
	*text = r->at;
	*len = n;
	r->at += n;
	return true;
}

/* ---- C++ ------------------------------------------------------------------------------ */

static bool skip_arguments(struct reader *r);

/* "L4Kinds7E": a literal's type and value. */
static bool skip_literal(struct reader *r)
{
	const char *text;
	size_t len;

	if (take(r, 'N')) {
		if (!skip_arguments(r))
			return false;
	} else if (isdigit((unsigned char)*r->at) && !counted(r, &text, &len)) {
		return false;
	}
	r->at += strcspn(r->at, "E");
	return take(r, 'E') || fail(r);
}

/* Behind what has been opened: template arguments, names, functions' types, up to their E. */
static bool skip_arguments(struct reader *r)
{
	const char *text;
	size_t len;

	if (++r->depth > MAX_DEPTH)
		return fail(r);
	while (!take(r, 'E')) {
		if (r->failed || !*r->at)
			return fail(r);
		if (isdigit((unsigned char)*r->at)) {
			counted(r, &text, &len);
			continue;
		}
		switch (*r->at++) {
		case 'L':
			if (r->at[0] != '_')
				skip_literal(r);
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
			if (!take(r, '_'))
				return fail(r);
			break;
		case 'A':
			r->at += strspn(r->at, "0123456789");
			break;
		case 'C':
		case 'D':
			if (*r->at == 'T' || *r->at == 't')
				return fail(r);
			r->at += *r->at != '\0';
			break;
		case 'f':
			if (take(r, 'p'))
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
static bool structor(struct reader *r, const char *last, size_t len)
{
	if ((*r->at != 'C' && *r->at != 'D') || !isdigit((unsigned char)r->at[1]) || !last)
		return fail(r);
	add(r, *r->at == 'D' ? "::~" : "::", *r->at == 'D' ? 3 : 2);
	add(r, last, len);
	r->at += 2;
	return true;
}

/* "5place", "Lplace", with "B5cxx11" and "I...E" behind. */
static bool component(struct reader *r, const char **last, size_t *len)
{
	const char *tag;
	size_t tag_len;

	take(r, 'L');
	if (isdigit((unsigned char)*r->at)) {
		if (!counted(r, last, len))
			return false;
		if (*len >= 10 && memcmp(*last, "_GLOBAL__N", 10) == 0)
			add_part(r, "(anonymous namespace)", 21);
		else
			add_part(r, *last, *len);
	} else if (!structor(r, *last, *len)) {
		return false;
	}
	while (take(r, 'B'))
		if (!counted(r, &tag, &tag_len))
			return false;
	return !take(r, 'I') || skip_arguments(r);
}

/* "St", "Ss": what the ABI has abbreviations for. */
static bool abbreviated(struct reader *r, const char **last, size_t *len)
{
	static const char *const names[] = {
		"aallocator",	  "bbasic_string",  "sbasic_string",
		"ibasic_istream", "obasic_ostream", "dbasic_iostream",
	};

	add(r, "std", 3);
	if (take(r, 't'))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (*r->at == names[i][0]) {
			r->at++;
			*last = names[i] + 1;
			*len = strlen(*last);
			add_part(r, *last, *len);
			return !take(r, 'I') || skip_arguments(r);
		}
	return fail(r);
}

static bool nested(struct reader *r)
{
	const char *last = NULL;
	size_t len = 0;

	while (*r->at && strchr("rVKRO", *r->at))
		r->at++;
	if (take(r, 'S') && !abbreviated(r, &last, &len))
		return false;
	while (!take(r, 'E'))
		if (!component(r, &last, &len))
			return false;
	return r->len > 0;
}

static bool cplusplus(struct reader *r)
{
	const char *last = NULL;
	size_t len = 0;

	if (take(r, 'N'))
		return nested(r);
	if (r->at[0] == 'S' && r->at[1] == 't') {
		add(r, "std", 3);
		r->at += 2;
	}
	return component(r, &last, &len);
}

/* The last component, "h0123456789abcdef", is Rust's hash of the rest. */
static void cut_hash(struct reader *r)
{
	char *hash = r->len > 19 ? r->name + r->len - 19 : NULL;

	if (hash && memcmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16)
		*hash = '\0';
}

/* ---- Rust ----------------------------------------------------------------------------- */

/* "s_", "sa_": which of several of one name. */
static bool base62(struct reader *r, uint64_t *value)
{
	*value = 0;
	if (take(r, '_'))
		return true;
	for (; isalnum((unsigned char)*r->at); r->at++) {
		char c = *r->at;

		*value = *value * 62 + (uint64_t)(c <= '9'   ? c - '0'
						  : c >= 'a' ? c - 'a' + 10
							     : c - 'A' + 36);
	}
	*value += 1; /* hashes have 64 bits, and may run over: only places are looked at */
	return take(r, '_') || fail(r);
}

static bool identifier(struct reader *r, const char **text, size_t *len)
{
	uint64_t which;
	size_t n = 0;

	if (take(r, 's') && !base62(r, &which))
		return false;
	if (!isdigit((unsigned char)*r->at)) /* "u": in punycode */
		return fail(r);
	while (isdigit((unsigned char)*r->at) && n < 100000)
		n = n * 10 + (size_t)(*r->at++ - '0');
	take(r, '_');
	if (strnlen(r->at, n) < n)
		return fail(r);
	*text = r->at;
	*len = n;
	r->at += n;
	return true;
}

static bool rust_path(struct reader *r);

/* What is read does not belong to the name. */
static bool aside(struct reader *r, bool (*read)(struct reader *))
{
	char *name = r->name;
	bool ok;

	r->name = NULL;
	ok = read(r);
	r->name = name;
	return ok;
}

static bool rust_type(struct reader *r);

/* "j3_", "p": a value's type and digits, or none. */
static bool rust_constant(struct reader *r)
{
	uint64_t place;

	if (take(r, 'p'))
		return true;
	if (take(r, 'B'))
		return base62(r, &place);
	if (!rust_type(r))
		return false;
	take(r, 'n');
	r->at += strspn(r->at, "0123456789abcdef");
	return take(r, '_') || fail(r);
}

/* "UKCjE": what a function takes, up to the E, and gives. */
static bool rust_signature(struct reader *r)
{
	const char *text;
	uint64_t value;
	size_t len;

	if (take(r, 'G') && !base62(r, &value))
		return false;
	take(r, 'U');
	if (take(r, 'K') && !take(r, 'C') && !identifier(r, &text, &len))
		return false;
	while (!take(r, 'E'))
		if (!rust_type(r))
			return false;
	return rust_type(r);
}

/* "NtC1a2TrEL_": traits, with the types that they are of, and for how long. */
static bool rust_object(struct reader *r)
{
	const char *text;
	uint64_t value;
	size_t len;

	if (take(r, 'G') && !base62(r, &value))
		return false;
	while (!take(r, 'E')) {
		if (!rust_path(r))
			return false;
		while (take(r, 'p'))
			if (!identifier(r, &text, &len) || !rust_type(r))
				return false;
	}
	return take(r, 'L') ? base62(r, &value) : fail(r);
}

static bool rust_array(struct reader *r)
{
	return rust_type(r) && rust_constant(r);
}

/* The types of generic arguments: passed over. Of a type that is a path, its name. */
static bool rust_type(struct reader *r)
{
	uint64_t value;
	bool ok = true;

	if (++r->depth > MAX_DEPTH)
		return fail(r);
	if (strchr("CMXYNIB", *r->at) && *r->at) {
		ok = rust_path(r);
	} else if (islower((unsigned char)*r->at)) {
		r->at++;
	} else if (*r->at == 'R' || *r->at == 'Q') {
		r->at++;
		ok = (!take(r, 'L') || base62(r, &value)) && rust_type(r);
	} else if (*r->at == 'P' || *r->at == 'O' || *r->at == 'S') {
		r->at++;
		ok = rust_type(r);
	} else if (take(r, 'T')) {
		while (ok && !take(r, 'E'))
			ok = aside(r, rust_type); /* which reads no place twice */
	} else if (take(r, 'A')) {
		ok = aside(r, rust_array);
	} else if (take(r, 'F')) {
		ok = aside(r, rust_signature);
	} else if (take(r, 'D')) {
		ok = aside(r, rust_object);
	} else {
		ok = fail(r);
	}
	r->depth--;
	return ok;
}

static bool rust_argument(struct reader *r)
{
	uint64_t value;

	if (take(r, 'L'))
		return base62(r, &value);
	return take(r, 'K') ? rust_constant(r) : rust_type(r);
}

/* "B4_": what stands at that place. It must be before this one, or there were no end. */
static bool back(struct reader *r)
{
	const char *here = r->at - 1;
	uint64_t place;
	bool ok;

	if (!base62(r, &place) || place >= (uint64_t)(here - r->start))
		return fail(r);
	if (r->name) {
		const char *next = r->at;

		r->at = r->start + place;
		ok = rust_path(r);
		r->at = next;
		return ok;
	}
	return true;
}

/* "M", "X": an implementation, which is called as its type. */
static bool implementation(struct reader *r, bool of_trait)
{
	uint64_t which;

	if (take(r, 's') && !base62(r, &which))
		return false;
	return aside(r, rust_path) && rust_type(r) && (!of_trait || aside(r, rust_path));
}

static bool rust_path(struct reader *r)
{
	const char *text;
	size_t len;
	bool ok;

	if (++r->depth > MAX_DEPTH)
		return fail(r);
	switch (*r->at ? *r->at++ : '\0') {
	case 'C':
		ok = identifier(r, &text, &len);
		if (ok)
			add_part(r, text, len);
		break;
	case 'N':
		r->at += *r->at != '\0';
		ok = rust_path(r) && identifier(r, &text, &len);
		if (ok && len)
			add_part(r, text, len);
		else if (ok)
			add_part(r, "{closure}", 9);
		break;
	case 'M':
		ok = implementation(r, false);
		break;
	case 'X':
		ok = implementation(r, true);
		break;
	case 'Y':
		ok = rust_type(r) && aside(r, rust_path);
		break;
	case 'I':
		ok = rust_path(r);
		while (ok && !take(r, 'E'))
			ok = aside(r, rust_argument);
		break;
	case 'B':
		ok = back(r);
		break;
	default:
		ok = fail(r);
	}
	r->depth--;
	return ok && !r->failed;
}

/* ---- both ----------------------------------------------------------------------------- */

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

bool ky_probe_plain_name(const char *symbol, char *name)
{
	struct reader r = {.name = name};

	name[0] = '\0';
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return false;
	r.start = r.at = symbol + 2;
	if (symbol[1] == 'R')
		return rust_path(&r) && r.len && !ky_probe_name_is_piece(r.at);
	if (!cplusplus(&r) || r.failed || !r.len || ky_probe_name_is_piece(r.at))
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
