/* SPDX-License-Identifier: MIT */
/* kymo completion: shell completion scripts. */
#include "cli/help/help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In one piece: stdio forgets why it could not write the first of several. */
static int put_script(int (*make)(FILE *out))
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *script = NULL;
	size_t len;
	FILE *out = open_memstream(&script, &len);
	int code = out ? make(out) : KY_EXIT_FAIL;

	if (out && fclose(out) == 0) {
		ky_strbuf_add(&text, script, len);
		ky_cli_write(&text);
		ky_strbuf_fini(&text);
	}
	free(script);
	return code;
}

static int run_completion(const struct ky_command *self, void *options, int n_args, char **args)
{
	(void)options;
	(void)n_args;
	if (strcmp(args[0], "bash") == 0)
		return put_script(ky_completion_bash);
	if (strcmp(args[0], "zsh") == 0)
		return put_script(ky_completion_zsh);
	if (strcmp(args[0], "fish") == 0)
		return put_script(ky_completion_fish);
	return ky_cli_usage(self, "unknown shell '%s'; try bash, zsh or fish", args[0]);
}

const struct ky_command ky_command_completion = {
	.name = "completion",
	.is_rare = true,
	.summary = "write a completion script for bash, zsh or fish",
	.usage = "bash|zsh|fish",
	.description = "Writes a script to the standard output, with which the shell completes "
		       "kymo's commands, options and their values. 'make install' installs all "
		       "three scripts.",
	.examples = "# in this shell, and in ~/.bashrc for every shell\n"
		    "eval \"$(kymo completion bash)\"\n\n"
		    "# zsh: into a directory of $fpath\n"
		    "kymo completion zsh > ~/.zsh/completion/_kymo\n\n"
		    "# fish\n"
		    "kymo completion fish > ~/.config/fish/completions/kymo.fish",
	.see_also = "help",
	.min_args = 1,
	.max_args = 1,
	.operands = "bash zsh fish",
	.run = run_completion,
};
