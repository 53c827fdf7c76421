/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe-spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static bool probe_spec_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static int probe_spec_wrong(struct kymo_error *err, const char *what, const char *at)
{
	int code = ky_error_set(err, KYMO_E_INVALID, "%s at '%.40s'", what, at);

	ky_error_hint(err, "a probe is FILE:FUNCTION(ARGUMENT, ...): 'bash:readline($retval)', "
			   "'./server:handle(request->id, %%di)'");
	return code;
}

/* Copy @len bytes; false when they do not fit, or there are none. */
static bool probe_spec_copy(char *to, size_t size, const char *from, size_t len)
{
	if (!len || len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

static size_t word_len(const char *at)
{
	size_t len = 0;

	while (probe_spec_is_word(at[len]))
		len++;
	return len;
}

static int parse_step(const char **text, struct ky_probe_step *step, struct kymo_error *err)
{
	const char *at = *text;
	char *end;
	size_t len;

	if (*at == '[') {
		unsigned long index = strtoul(at + 1, &end, 0);

		if (!isdigit((unsigned char)at[1]) || *end != ']' || index > 1000000)
			return probe_spec_wrong(err, "no index", at);
		step->kind = KY_PROBE_INDEX;
		step->index = (uint32_t)index;
		*text = end + 1;
		return KYMO_OK;
	}
	step->kind = *at == '.' ? KY_PROBE_DOT : KY_PROBE_ARROW;
	at += *at == '.' ? 1 : 2;
	len = word_len(at);
	if (!probe_spec_copy(step->member, sizeof(step->member), at, len))
		return probe_spec_wrong(err, "no member's name", at);
	*text = at + len;
	return KYMO_OK;
}

/* arg->a.b[3] is called arg_a_b_3. */
static void name_field(struct ky_probe_argument *argument)
{
	char name[KY_PROBE_FIELD_BYTES * 8];
	size_t len = 0;
	const char *root = argument->root + strspn(argument->root, "%$");

	len = strlen(root) < sizeof(name) ? strlen(root) : sizeof(name) - 1;
	memcpy(name, root, len);
	for (unsigned int i = 0; i < argument->n_steps; i++) {
		const struct ky_probe_step *step = &argument->steps[i];
		char index[16], *to = index + sizeof(index);
		const char *text = step->member;
		size_t add;

		if (step->kind == KY_PROBE_INDEX) {
			uint32_t value = step->index;

			*--to = '\0';
			do
				*--to = (char)('0' + value % 10);
			while (value /= 10);
			text = to;
		}
		add = strlen(text);
		if (len + add + 1 >= sizeof(name))
			break;
		name[len++] = '_';
		memcpy(name + len, text, add);
		len += add;
	}
	if (len >= KY_PROBE_FIELD_BYTES)
		len = KY_PROBE_FIELD_BYTES - 1;
	memcpy(argument->name, name, len);
	argument->name[len] = '\0';
}

static int parse_argument(const char **text, struct ky_probe_argument *argument,
			  struct kymo_error *err)
{
	const char *at = skip_space(*text);
	size_t len = word_len(at);
	int ret;

	if (len && at[len] == '=') {
		if (!probe_spec_copy(argument->name, sizeof(argument->name), at, len) ||
		    isdigit(at[0]))
			return probe_spec_wrong(err, "no name of at most 31 letters", at);
		at += len + 1;
	}
	len = (size_t)(*at == '%' || *at == '$');
	len += word_len(at + len);
	if (isdigit((unsigned char)*at) || !probe_spec_is_word(at[len ? len - 1 : 0]) ||
	    !probe_spec_copy(argument->root, sizeof(argument->root), at, len))
		return probe_spec_wrong(err, "no argument", at);
	argument->is_return = strcmp(argument->root, "$retval") == 0;
	if (*at == '$' && !argument->is_return && strncmp(at, "$stack", 6) != 0)
		return probe_spec_wrong(err, "neither $retval nor $stackN", at);
	at += len;
	while (*at == '.' || *at == '[' || (at[0] == '-' && at[1] == '>')) {
		if (argument->n_steps == KY_PROBE_MAX_STEPS)
			return probe_spec_wrong(err, "too many members", at);
		ret = parse_step(&at, &argument->steps[argument->n_steps++], err);
		if (ret < 0)
			return ret;
	}
	if (*at == ':') {
		len = word_len(++at);
		if (!probe_spec_copy(argument->type, sizeof(argument->type), at, len))
			return probe_spec_wrong(err, "no type", at);
		at += len;
	}
	if (!argument->name[0])
		name_field(argument);
	*text = skip_space(at);
	return KYMO_OK;
}

static bool probe_spec_is_taken(const struct ky_probe_spec *spec, unsigned int n)
{
	const struct ky_probe_argument *last = &spec->arguments[n];

	for (unsigned int i = 0; i < n; i++)
		if (strcmp(spec->arguments[i].name, last->name) == 0 &&
		    spec->arguments[i].is_return == last->is_return)
			return true;
	return false;
}

static int parse_arguments(const char *at, struct ky_probe_spec *spec, struct kymo_error *err)
{
	int ret;

	at = skip_space(at + 1);
	while (*at != ')') {
		if (spec->n_arguments == KY_PROBE_MAX_ARGUMENTS)
			return probe_spec_wrong(err, "too many arguments", at);
		ret = parse_argument(&at, &spec->arguments[spec->n_arguments], err);
		if (ret < 0)
			return ret;
		if (probe_spec_is_taken(spec, spec->n_arguments++))
			return probe_spec_wrong(
				err,
				"a second field of the same name (give it one: NAME=...) before",
				at);
		if (*at != ',' && *at != ')')
			return probe_spec_wrong(err, "neither ',' nor ')'", at);
		if (*at == ',')
			at++;
	}
	return *skip_space(at + 1) ? probe_spec_wrong(err, "more", at + 1) : KYMO_OK;
}

/* Behind the last colon that is not of a "::"; @text: none exists. */
static const char *behind_file(const char *text, const char *end)
{
	const char *at = end;

	while (at > text && at[-1] != ':') {
		at--;
		while (at - text >= 2 && at[-1] == ':' && at[-2] == ':')
			at -= 2;
	}
	return at;
}

static int parse_place(const char *text, size_t len, bool has_file, struct ky_probe_spec *spec,
		       struct kymo_error *err)
{
	const char *end = text + len, *function = text, *plus;
	char *rest;

	if (has_file) {
		const char *equals = memchr(text, '=', len);

		if (equals && (size_t)(equals - text) == word_len(text)) {
			if (!probe_spec_copy(spec->name, sizeof(spec->name), text,
					     (size_t)(equals - text)))
				return probe_spec_wrong(err, "no name", text);
			text = equals + 1;
		}
		function = behind_file(text, end);
		if (function == text || !probe_spec_copy(spec->file, sizeof(spec->file), text,
							 (size_t)(function - 1 - text)))
			return probe_spec_wrong(err, "no FILE:", text);
	}
	while (end > function && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	plus = memchr(function, '+', (size_t)(end - function));
	if (plus) {
		spec->offset = strtoull(plus + 1, &rest, 0);
		if (!isdigit((unsigned char)plus[1]) || rest != end || spec->offset > UINT32_MAX)
			return probe_spec_wrong(err, "no offset", plus);
		end = plus;
	}
	if (!probe_spec_copy(spec->function, sizeof(spec->function), function,
			     (size_t)(end - function)))
		return probe_spec_wrong(err, "no function", function);
	for (const char *c = spec->function; *c; c++)
		if (!probe_spec_is_word(*c) && !strchr(".$@:~", *c))
			return probe_spec_wrong(err, "no function", c);
	return KYMO_OK;
}

int ky_probe_spec_parse(const char *text, bool has_file, struct ky_probe_spec *spec,
			struct kymo_error *err)
{
	size_t len;
	int ret;

	memset(spec, 0, sizeof(*spec));
	text = skip_space(text);
	len = strcspn(text, "(");
	ret = parse_place(text, len, has_file, spec, err);
	if (!ret && text[len])
		ret = parse_arguments(text + len, spec, err);
	return ret;
}
