/* SPDX-License-Identifier: MIT */
/*
 * The command line parser. It fills a command's options from its table:
 *
 *	--name VALUE   --name=VALUE   -x VALUE   -xVALUE   -abx VALUE (a cluster)   --
 *
 * Long names are never shortened: a script that relied on a prefix would break with the
 * next option added. Options and operands may be mixed unless the command says raw_args.
 * Behind "--" is the command that a command with command_at runs; else an operand.
 * --help and -h belong to every command and stand in no table.
 *
 * A profile is a file with one option per line, as "--name VALUE", "name VALUE" or "name=VALUE"; the value is the rest of the
 * line. Empty lines and lines that begin with '#' count for nothing.
 */
#ifndef KY_CLI_OPTIONS_OPTIONS_H
#define KY_CLI_OPTIONS_OPTIONS_H

#include "base/vec.h"
#include "cli/terminal/command.h"

/* An option as it was given. */
struct ky_given {
	const struct ky_option_def *def;
	const char *value; /* NULL: a flag */
};

struct ky_parsed {
	void *options; /* options_size bytes, filled */
	char **args;   /* operands in order, ended by NULL; the strings are argv's */
	int n_args;
	bool help; /* --help was asked for; nothing else was checked then */
	/* What was given, for a profile. */
	KY_VEC(struct ky_given) given;
	KY_VEC(char *) texts; /* of profiles, which values point into */
};

/*
 * Parse @argv[0..argc), which begins after the command's name, for @command.
 *
 * Returns 0, KYMO_E_INVALID (usage; @err has message and hint) or KYMO_E_MEMORY. In every
 * case ky_parsed_fini() must follow.
 */
int ky_options_parse(const struct ky_command *command, int argc, char **argv,
		     struct ky_parsed *parsed, struct kymo_error *err);
void ky_parsed_fini(const struct ky_command *command, struct ky_parsed *parsed);

/*
 * The nearest of @names[0..count) to @word when it is near enough to be meant, else NULL.
 */
const char *ky_nearest(const char *word, const char *const *names, size_t count);

#endif
