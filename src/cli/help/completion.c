/* SPDX-License-Identifier: MIT */
/* Completion scripts for bash, zsh and fish, from the command table. */
#include "cli/help/help.h"

#include <string.h>

/* @text inside single quotes of a shell: a quote closes, is quoted, and opens again. */
static void completion_put_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	}
	fputc('\'', out);
}

/* ---- bash ---------------------------------------------------------------------------- */

static void bash_values(FILE *out, const struct ky_command *command)
{
	for (const struct ky_option_def *def = command->options; def && def->name; def++) {
		if (def->kind == KY_OPTION_FLAG || !def->choices)
			continue;
		fprintf(out, "\t%s:--%s", command->name, def->name);
		if (def->letter)
			fprintf(out, "|%s:-%c", command->name, def->letter);
		fprintf(out, ") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n",
			def->choices);
	}
}

/* Names of recordings that run; for commands that read traces, beside files. */
static void bash_recordings(FILE *out)
{
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		if ((*command)->names_recording || (*command)->first_trace)
			fprintf(out,
				"\t*:%s) COMPREPLY=($(compgen %s-W \"$(kymo sessions --names 2>/dev/null)\" -- \"$cur\")) ;;\n",
				(*command)->name, (*command)->first_trace ? "-f " : "");
	}
}

static void bash_operands(FILE *out)
{
	fputs("\tcase \"$COMP_CWORD:$command\" in\n"
	      "\t*:|2:help) COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\")) ;;\n",
	      out);
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		if ((*command)->operands)
			fprintf(out, "\t2:%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n",
				(*command)->name, (*command)->operands);
	}
	bash_recordings(out);
	fputs("\t*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n\tesac\n", out);
}

int ky_completion_bash(FILE *out)
{
	fputs("# bash completion for kymo\n_kymo()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=''\n"
	      "\tlocal options='--help' commands='",
	      out);
	for (const struct ky_command *const *command = ky_commands; *command; command++)
		fprintf(out, "%s%s", command == ky_commands ? "" : " ", (*command)->name);
	fputs("'\n\tCOMPREPLY=()\n\t[ \"$COMP_CWORD\" -gt 1 ] && command=${COMP_WORDS[1]}\n"
	      "\tcase \"$command:$prev\" in\n",
	      out);
	for (const struct ky_command *const *command = ky_commands; *command; command++)
		bash_values(out, *command);
	fputs("\tesac\n\tcase \"$command\" in\n\t'') options='--help --version' ;;\n", out);
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		fprintf(out, "\t%s) options='--help", (*command)->name);
		for (const struct ky_option_def *def = (*command)->options; def && def->name; def++)
			fprintf(out, " --%s", def->name);
		fputs("' ;;\n", out);
	}
	fputs("\tesac\n\tif [[ $cur == -* ]]; then\n"
	      "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n\t\treturn\n\tfi\n",
	      out);
	bash_operands(out);
	fputs("}\ncomplete -o filenames -F _kymo kymo\n", out);
	return KY_EXIT_OK;
}

/* ---- zsh ----------------------------------------------------------------------------- */

/* What may not stand unquoted in an _arguments description. */
static void zsh_description(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			fputc('\\', out);
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	}
}

static void zsh_spec(FILE *out, const struct ky_option_def *def, const char *flag)
{
	fprintf(out, "\t\t\t'%s%s[",
		def->kind == KY_OPTION_LIST || def->kind == KY_OPTION_RULES ? "*" : "", flag);
	zsh_description(out, def->help);
	fputc(']', out);
	if (def->kind != KY_OPTION_FLAG)
		fprintf(out, ":%s:", def->arg ? def->arg : "VALUE");
	if (def->kind != KY_OPTION_FLAG && def->choices)
		fprintf(out, "(%s)", def->choices);
	else if (def->kind == KY_OPTION_TEXT || def->kind == KY_OPTION_LIST ||
		 def->kind == KY_OPTION_RULES)
		fputs("_files", out);
	fputs("' \\\n", out);
}

static void zsh_command(FILE *out, const struct ky_command *command)
{
	char flag[80];

	fprintf(out, "\t\t%s)\n\t\t\t_arguments \\\n", command->name);
	for (const struct ky_option_def *def = command->options; def && def->name; def++) {
		snprintf(flag, sizeof(flag), "--%.60s", def->name);
		zsh_spec(out, def, flag);
		if (!def->letter)
			continue;
		snprintf(flag, sizeof(flag), "-%c", def->letter);
		zsh_spec(out, def, flag);
	}
	fputs("\t\t\t'--help[Print the help.]'", out);
	if (command == &ky_command_help)
		fputs(" \\\n\t\t\t'1:command:_kymo_commands'", out);
	else if (command->operands)
		fprintf(out, " \\\n\t\t\t'1:operand:(%s)'", command->operands);
	if (command->names_recording || command->first_trace)
		fprintf(out, " \\\n\t\t\t'*:recording:_kymo_recordings%s'",
			command->first_trace ? " files" : "");
	else if (command != &ky_command_help && command->max_args != (command->operands ? 1 : 0))
		fputs(" \\\n\t\t\t'*:operand:_files'", out);
	fputs("\n\t\t\t;;\n", out);
}

int ky_completion_zsh(FILE *out)
{
	fputs("#compdef kymo\n_kymo_commands()\n{\n\tlocal -a commands\n\tcommands=(\n", out);
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		fprintf(out, "\t\t'%s:", (*command)->name);
		zsh_description(out, (*command)->summary);
		fputs("'\n", out);
	}
	fputs("\t)\n\t_describe -t commands 'kymo command' commands\n}\n\n"
	      "_kymo_recordings()\n{\n\tcompadd -- ${(f)\"$(kymo sessions --names 2>/dev/null)\"}\n"
	      "\tif [ \"$1\" = files ]; then _files; fi\n}\n\n"
	      "_kymo()\n{\n\tif (( CURRENT == 2 )); then\n\t\t_kymo_commands\n\t\treturn\n\tfi\n"
	      "\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in\n",
	      out);
	for (const struct ky_command *const *command = ky_commands; *command; command++)
		zsh_command(out, *command);
	fputs("\tesac\n}\n\n"
	      "if [ \"$funcstack[1]\" = _kymo ]; then\n\t_kymo \"$@\"\nelse\n\tcompdef _kymo kymo\nfi\n",
	      out);
	return KY_EXIT_OK;
}

/* ---- fish ---------------------------------------------------------------------------- */

static void fish_option(FILE *out, const struct ky_command *command,
			const struct ky_option_def *def)
{
	fprintf(out, "complete -c kymo -n '__fish_seen_subcommand_from %s' -l %s", command->name,
		def->name);
	if (def->letter)
		fprintf(out, " -s %c", def->letter);
	if (def->kind != KY_OPTION_FLAG)
		fputs(" -r", out);
	if (def->kind != KY_OPTION_FLAG && def->choices)
		fprintf(out, " -f -a '%s'", def->choices);
	fputs(" -d ", out);
	completion_put_quoted(out, def->help);
	fputc('\n', out);
}

int ky_completion_fish(FILE *out)
{
	fputs("# fish completion for kymo\n", out);
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		fprintf(out, "complete -c kymo -n __fish_use_subcommand -f -a %s -d ",
			(*command)->name);
		completion_put_quoted(out, (*command)->summary);
		fputc('\n', out);
		fprintf(out,
			"complete -c kymo -n '__fish_seen_subcommand_from %s' -l help -d "
			"'Print the help.'\n",
			(*command)->name);
		for (const struct ky_option_def *def = (*command)->options; def && def->name; def++)
			fish_option(out, *command, def);
		if ((*command)->operands)
			fprintf(out,
				"complete -c kymo -n '__fish_seen_subcommand_from %s' -a '%s'\n",
				(*command)->name, (*command)->operands);
	}
	for (const struct ky_command *const *command = ky_commands; *command; command++)
		if ((*command)->names_recording || (*command)->first_trace)
			fprintf(out,
				"complete -c kymo -n '__fish_seen_subcommand_from %s' %s-a '(kymo sessions "
				"--names 2>/dev/null)'\n",
				(*command)->name, (*command)->names_recording ? "-f " : "");
	fputs("complete -c kymo -n '__fish_seen_subcommand_from help' -f -a '", out);
	for (const struct ky_command *const *command = ky_commands; *command; command++)
		fprintf(out, "%s%s", command == ky_commands ? "" : " ", (*command)->name);
	fputs("'\n", out);
	return KY_EXIT_OK;
}
