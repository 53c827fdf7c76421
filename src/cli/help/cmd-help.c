/* SPDX-License-Identifier: MIT */
/* kymo help: the overview, one command's help, or its man page source. */
#include "cli/help/help.h"

struct help_options {
	bool man;
};

static const struct ky_option_def help_option_defs[] = {
	{.name = "man",
	 .kind = KY_OPTION_FLAG,
	 .help = "Write the help as man page source (mdoc); without COMMAND, the man page of kymo.",
	 .at = offsetof(struct help_options, man)},
	{0},
};

static int run_help(const struct ky_command *self, void *data, int n_args, char **args)
{
	const struct help_options *options = data;
	const struct ky_command *command = NULL;

	if (n_args) {
		command = ky_command_find(args[0]);
		if (!command)
			return ky_command_unknown(args[0]);
	}
	if (options->man)
		return ky_man_page(stdout, command);
	if (n_args > 1 && command->topic_help)
		return command->topic_help(command, stdout, args[1]);
	if (n_args > 1)
		return ky_cli_usage(self, "kymo %s has no further topics", command->name);
	return command ? ky_help_command(stdout, command) : ky_help_overview(stdout);
}

const struct ky_command ky_command_help = {
	.name = "help",
	.summary = "explain kymo or one of its commands",
	.usage = "[OPTIONS] [COMMAND [TOPIC]]",
	.description = "Prints the description, options and examples of a command, as 'kymo "
		       "COMMAND --help' does. Without COMMAND, lists the commands. TOPIC is a "
		       "topic of the command, such as a report's name.",
	.examples = "# the commands of kymo\nkymo help\n\n"
		    "# the help of a command\nkymo help completion\n\n"
		    "# the help of a command as a man page\nkymo help --man help | man -l -",
	.see_also = "completion",
	.options = help_option_defs,
	.options_size = sizeof(struct help_options),
	.max_args = 2,
	.run = run_help,
};
