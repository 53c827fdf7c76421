/* SPDX-License-Identifier: MIT */
#include "cli/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/profile.h"

struct parser {
	const struct ky_command *command;
	struct ky_parsed *parsed;
	struct kymo_error *err;
	char **argv;
	int argc;
	int at; /* the next word */
};

const char *ky_nearest(const char *word, const char *const *names, size_t count)
{
	size_t best_distance = SIZE_MAX, len = strlen(word);
	const char *best = NULL;

	for (size_t i = 0; i < count; i++) {
		size_t distance = ky_edit_distance(word, names[i]);

		/* A beginning of a name is meant as that name, however much is missing. */
		if (len >= 2 && strncmp(word, names[i], len) == 0)
			distance = 1;
		if (distance < best_distance) {
			best_distance = distance;
			best = names[i];
		}
	}
	/* One edit for short words, up to three for long ones. */
	return best_distance <= (len < 4 ? 1 : len < 8 ? 2 : 3) ? best : NULL;
}

static void *target(const struct parser *p, const struct ky_option_def *def)
{
	return (char *)p->parsed->options + def->at;
}

static const struct ky_option_def *find_long(const struct parser *p, const char *name, size_t len)
{
	const struct ky_option_def *def = p->command->options;

	for (; def && def->name; def++) {
		if (strlen(def->name) == len && memcmp(def->name, name, len) == 0)
			return def;
	}
	return NULL;
}

static const struct ky_option_def *find_letter(const struct parser *p, char letter)
{
	const struct ky_option_def *def = p->command->options;

	for (; def && def->name; def++) {
		if (def->letter && def->letter == letter)
			return def;
	}
	return NULL;
}

static int unknown_long(const struct parser *p, const char *name, size_t len)
{
	const char *names[64] = {"help"}, *near;
	char word[64];
	size_t count = 1;
	int code;

	code = ky_error_set(p->err, KYMO_E_INVALID, "unknown option --%.*s", (int)len, name);
	for (const struct ky_option_def *def = p->command->options; def && def->name; def++) {
		if (count < 64)
			names[count++] = def->name;
	}
	if (len >= sizeof(word))
		return code;
	memcpy(word, name, len);
	word[len] = '\0';
	near = ky_nearest(word, names, count);
	if (near)
		ky_error_hint(p->err, "did you mean --%s?", near);
	return code;
}

static int add_to_list(struct ky_text_list *list, const char *text)
{
	const char **items = realloc(list->items, (list->len + 1) * sizeof(*items));

	if (!items)
		return KYMO_E_MEMORY;
	items[list->len++] = text;
	list->items = items;
	return KYMO_OK;
}

static int bad_value(const struct parser *p, const struct ky_option_def *def, const char *value,
		     const char *expected)
{
	return ky_error_set(p->err, KYMO_E_INVALID, "--%s needs %s, not '%s'", def->name, expected,
			    value);
}

static int read_profile(const struct parser *p, const char *path);

static int store_value(const struct parser *p, const struct ky_option_def *def, const char *value)
{
	if (ky_vec_push(&p->parsed->given, (struct ky_given){def, value}) < 0)
		return ky_error_nomem(p->err);
	switch (def->kind) {
	case KY_OPTION_PROFILE:
		return read_profile(p, value);
	case KY_OPTION_FLAG:
		*(bool *)target(p, def) = true;
		return KYMO_OK;
	case KY_OPTION_SAVE:
	case KY_OPTION_TEXT:
		*(const char **)target(p, def) = value;
		return KYMO_OK;
	case KY_OPTION_LIST:
		return add_to_list(target(p, def), value) < 0 ? ky_error_nomem(p->err) : KYMO_OK;
	case KY_OPTION_RULES:
		return add_to_list(target(p, def), def->name) < 0 ||
				       add_to_list(target(p, def), value) < 0
			       ? ky_error_nomem(p->err)
			       : KYMO_OK;
	case KY_OPTION_U64:
		if (ky_parse_u64(value, target(p, def)) < 0)
			return bad_value(p, def, value, "a number");
		return KYMO_OK;
	case KY_OPTION_SIZE:
		if (ky_parse_size(value, target(p, def)) < 0)
			return bad_value(p, def, value, "a size such as 64k or 8M");
		return KYMO_OK;
	case KY_OPTION_DURATION:
		if (ky_parse_duration(value, target(p, def)) < 0)
			return bad_value(p, def, value, "a duration such as 5s or 100ms");
		return KYMO_OK;
	}
	return KYMO_E_INVALID;
}

/* An option of a profile. */
static int options_options_take_line(void *data, char *name, char *value, struct kymo_error *err)
{
	const struct parser *p = data;
	const struct ky_option_def *def = find_long(p, name, strlen(name));

	if (!def)
		return unknown_long(p, name, strlen(name));
	if (def->kind == KY_OPTION_PROFILE || def->kind == KY_OPTION_SAVE)
		return ky_error_set(err, KYMO_E_INVALID, "--%s is not allowed in a profile", name);
	if (def->kind == KY_OPTION_FLAG && value)
		return ky_error_set(err, KYMO_E_INVALID, "--%s takes no value", name);
	if (def->kind != KY_OPTION_FLAG && !value)
		return ky_error_set(err, KYMO_E_INVALID, "--%s needs a value", name);
	return store_value(p, def, value);
}

static int read_profile(const struct parser *p, const char *path)
{
	struct parser copy = *p;
	char *text;
	int ret = ky_profile_read(path, &text, options_options_take_line, &copy, p->err);

	if (text && ky_vec_push(&p->parsed->texts, text) < 0) {
		free(text);
		return ky_error_nomem(p->err);
	}
	return ret;
}

/* The value that follows as the next word. */
static int store_next(struct parser *p, const struct ky_option_def *def)
{
	if (p->at >= p->argc)
		return ky_error_set(p->err, KYMO_E_INVALID, "--%s needs a value: --%s %s",
				    def->name, def->name, def->arg ? def->arg : "VALUE");
	return store_value(p, def, p->argv[p->at++]);
}

static int parse_long(struct parser *p, const char *name)
{
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct ky_option_def *def = find_long(p, name, len);

	if (!def && len == 4 && memcmp(name, "help", 4) == 0 && !equals) {
		p->parsed->help = true;
		return KYMO_OK;
	}
	if (!def)
		return unknown_long(p, name, len);
	if (def->kind != KY_OPTION_FLAG)
		return equals ? store_value(p, def, equals + 1) : store_next(p, def);
	if (equals)
		return ky_error_set(p->err, KYMO_E_INVALID, "--%s takes no value", def->name);
	return store_value(p, def, NULL);
}

/* "-abx VALUE": flags, and at most one option with a value, which takes the rest. */
static int parse_cluster(struct parser *p, const char *letters)
{
	for (; *letters; letters++) {
		const struct ky_option_def *def = find_letter(p, *letters);
		int code;

		if (!def && *letters == 'h') {
			p->parsed->help = true;
			return KYMO_OK;
		}
		if (!def)
			return ky_error_set(p->err, KYMO_E_INVALID, "unknown option -%c", *letters);
		if (def->kind != KY_OPTION_FLAG)
			return letters[1] ? store_value(p, def, letters + 1) : store_next(p, def);
		code = store_value(p, def, NULL);
		if (code < 0)
			return code;
	}
	return KYMO_OK;
}

/* All that follows is a command of the user's. */
static int take_command(struct parser *p)
{
	char **command = p->argv + p->at;

	if (p->at == p->argc)
		return ky_error_set(p->err, KYMO_E_INVALID, "a command is missing after --");
	memcpy((char *)p->parsed->options + p->command->command_at, &command, sizeof(command));
	p->at = p->argc;
	return KYMO_OK;
}

static int parse_words(struct parser *p)
{
	struct ky_parsed *parsed = p->parsed;
	bool options_end = false;

	while (p->at < p->argc && !parsed->help) {
		char *word = p->argv[p->at++];
		int code = KYMO_OK;

		if (options_end || word[0] != '-' || !word[1]) {
			parsed->args[parsed->n_args++] = word;
			options_end |= p->command->raw_args;
		} else if (word[1] != '-') {
			code = parse_cluster(p, word + 1);
		} else if (word[2]) {
			code = parse_long(p, word + 2);
		} else if (p->command->command_at) {
			code = take_command(p);
		} else {
			options_end = true;
		}
		if (code < 0)
			return code;
	}
	return KYMO_OK;
}

static int check_operands(const struct parser *p)
{
	const struct ky_command *command = p->command;
	const struct ky_parsed *parsed = p->parsed;

	if (parsed->n_args < command->min_args)
		return ky_error_set(p->err, KYMO_E_INVALID, "an operand is missing: kymo %s %.*s",
				    command->name, (int)strcspn(command->usage, "\n"),
				    command->usage);
	if (command->max_args >= 0 && parsed->n_args > command->max_args)
		return ky_error_set(p->err, KYMO_E_INVALID, "one operand too many: '%s'",
				    parsed->args[command->max_args]);
	return KYMO_OK;
}

static int save(const struct parser *p)
{
	ky_vec_foreach(&p->parsed->given, given)
		if (given->def->kind == KY_OPTION_SAVE)
			return ky_profile_write(given->value, p->parsed, p->err);
	return KYMO_OK;
}

int ky_options_parse(const struct ky_command *command, int argc, char **argv,
		     struct ky_parsed *parsed, struct kymo_error *err)
{
	struct parser p = {command, parsed, err, argv, argc, 0};
	int code;

	memset(parsed, 0, sizeof(*parsed));
	parsed->options = calloc(1, command->options_size ? command->options_size : 1);
	parsed->args = calloc((size_t)argc + 1, sizeof(*parsed->args));
	if (!parsed->options || !parsed->args)
		return ky_error_nomem(err);
	if (command->defaults)
		command->defaults(parsed->options);
	code = parse_words(&p);
	if (code < 0 || parsed->help)
		return code;
	code = check_operands(&p);
	return code < 0 ? code : save(&p);
}

void ky_parsed_fini(const struct ky_command *command, struct ky_parsed *parsed)
{
	const struct ky_option_def *def = command->options;

	for (; def && def->name && parsed->options; def++) {
		struct ky_text_list *list = (void *)((char *)parsed->options + def->at);

		if (def->kind != KY_OPTION_LIST && def->kind != KY_OPTION_RULES)
			continue;
		free(list->items);
		*list = (struct ky_text_list){0};
	}
	ky_vec_foreach(&parsed->texts, text)
		free(*text);
	ky_vec_fini(&parsed->texts);
	ky_vec_fini(&parsed->given);
	free(parsed->options);
	free(parsed->args);
	memset(parsed, 0, sizeof(*parsed));
}
