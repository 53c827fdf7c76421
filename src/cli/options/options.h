/* SPDX-License-Identifier: MIT */
/*
 * The command line parser. It fills a command's options from its table:
 *
 *	--name VALUE   --name=VALUE   -x VALUE   -xVALUE   -abx VALUE (a cluster)   --
 *
 * Long names are never shortened: a script that relied on a prefix would break with the
 * next option added. Options and operands may be mixed unless the command says raw_args.
 * --help and -h belong to every command and stand in no table.
 */
#ifndef KY_CLI_OPTIONS_OPTIONS_H
#define KY_CLI_OPTIONS_OPTIONS_H

#include "cli/terminal/command.h"

struct ky_parsed {
	void *options; /* options_size bytes, filled */
	char **args;   /* operands in order, ended by NULL; the strings are argv's */
	int n_args;
	bool help; /* --help was asked for; nothing else was checked then */
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
