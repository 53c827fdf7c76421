/* SPDX-License-Identifier: MIT */
/*
 * Constant expressions of C. Weakest first: | ^ & << >> + - * / %, then the unary ones. Casts
 * change nothing: values of flags are cut to the size of their field in the end.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/events/print-fmt.h"

/* Parentheses in parentheses; the kernel's macros make a dozen. */
#define MAX_DEPTH 64

struct reader {
	const char *at, *end;
	struct ky_btf *btf;
	int depth;
};

static bool constant_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static void constant_skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
		reader->at++;
}

static bool take_char(struct reader *reader, char c)
{
	constant_skip_blanks(reader);
	if (reader->at >= reader->end || *reader->at != c)
		return false;
	reader->at++;
	return true;
}

/* "(unsigned long)", "( gfp_t)", "(u32)": names and blanks in parentheses, before an operand. */
static bool skip_cast(struct reader *reader)
{
	const char *at = reader->at, *end = reader->end;
	int64_t ignored;
	size_t words = 0;
	const char *word = at;

	for (; at < end && (constant_is_word(*at) || *at == ' '); at++) {
		if (constant_is_word(*at) && (at == reader->at || !constant_is_word(at[-1]))) {
			word = at;
			words++;
		}
	}
	if (at == end || *at != ')' || !words || (*word >= '0' && *word <= '9'))
		return false;
	/* "(FLAG)" is a constant in parentheses. */
	if (words == 1) {
		const char *stop = word;

		while (constant_is_word(*stop))
			stop++;
		if (reader->btf &&
		    ky_btf_constant(reader->btf, word, (size_t)(stop - word), &ignored))
			return false;
	}
	at++;
	while (at < end && *at == ' ')
		at++;
	/* Behind a cast stands what is cast. */
	if (at == end || !(constant_is_word(*at) || *at == '(' || *at == '~' || *at == '-'))
		return false;
	reader->at = at;
	return true;
}

static bool expression(struct reader *reader, int level, int64_t *value);

static bool constant_number(struct reader *reader, int64_t *value)
{
	char text[32];
	size_t len = 0;
	char *stop;

	while (reader->at < reader->end && constant_is_word(*reader->at) && len < sizeof(text) - 1)
		text[len++] = *reader->at++;
	text[len] = '\0';
	*value = (int64_t)strtoull(text, &stop, 0);
	return stop[strspn(stop, "uUlL")] == '\0';
}

static bool constant_name(struct reader *reader, int64_t *value)
{
	const char *begin = reader->at;

	while (reader->at < reader->end && constant_is_word(*reader->at))
		reader->at++;
	return reader->btf &&
	       ky_btf_constant(reader->btf, begin, (size_t)(reader->at - begin), value);
}

static bool operand(struct reader *reader, int64_t *value)
{
	bool ok = false;

	if (reader->depth >= MAX_DEPTH)
		return false;
	reader->depth++;
	constant_skip_blanks(reader);
	if (reader->at >= reader->end) {
		ok = false;
	} else if (take_char(reader, '~')) {
		ok = operand(reader, value);
		*value = ~*value;
	} else if (take_char(reader, '-')) {
		ok = operand(reader, value);
		*value = (int64_t)(0 - (uint64_t)*value);
	} else if (take_char(reader, '(')) {
		ok = skip_cast(reader) ? operand(reader, value)
				       : expression(reader, 0, value) && take_char(reader, ')');
	} else if (*reader->at >= '0' && *reader->at <= '9') {
		ok = constant_number(reader, value);
	} else if (constant_is_word(*reader->at)) {
		ok = constant_name(reader, value);
	}
	reader->depth--;
	return ok;
}

static const char *const levels[] = {"|", "^", "&", "<>", "+-", "*/%"};

#define N_LEVELS ((int)(sizeof(levels) / sizeof(levels[0])))

/* The operator of @level that stands here, or 0. */
static char take_operator(struct reader *reader, int level)
{
	char c;

	constant_skip_blanks(reader);
	if (reader->at >= reader->end || !strchr(levels[level], *reader->at) || !*reader->at)
		return 0;
	c = *reader->at;
	if (c == '<' || c == '>') {
		if (reader->end - reader->at < 2 || reader->at[1] != c)
			return 0;
		reader->at++;
	}
	reader->at++;
	return c;
}

static bool constant_apply(char op, int64_t *left, int64_t right)
{
	uint64_t a = (uint64_t)*left, b = (uint64_t)right, result = 0;

	if ((op == '/' || op == '%') && !b)
		return false;
	if ((op == '<' || op == '>') && b > 63)
		return false;
	switch (op) {
	case '|':
		result = a | b;
		break;
	case '^':
		result = a ^ b;
		break;
	case '&':
		result = a & b;
		break;
	case '<':
		result = a << b;
		break;
	case '>':
		result = a >> b;
		break;
	case '+':
		result = a + b;
		break;
	case '-':
		result = a - b;
		break;
	case '*':
		result = a * b;
		break;
	case '/':
		result = a / b;
		break;
	case '%':
		result = a % b;
		break;
	}
	*left = (int64_t)result;
	return true;
}

static bool expression(struct reader *reader, int level, int64_t *value)
{
	int64_t right = 0;
	char op;

	if (level == N_LEVELS)
		return operand(reader, value);
	if (!expression(reader, level + 1, value))
		return false;
	while ((op = take_operator(reader, level)))
		if (!expression(reader, level + 1, &right) || !constant_apply(op, value, right))
			return false;
	return true;
}

bool ky_constant_value(const char *text, size_t len, struct ky_btf *btf, int64_t *value)
{
	struct reader reader = {.at = text, .end = text + len, .btf = btf};

	*value = 0;
	if (!expression(&reader, 0, value))
		return false;
	constant_skip_blanks(&reader);
	return reader.at == reader.end;
}
