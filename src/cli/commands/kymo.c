/* SPDX-License-Identifier: MIT */
/* The program: the table of commands, and what finds one and runs it. */
#include "cli/reading/input-options.h"
#include "cli/terminal/command.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <kymo/version.h>

#include "cli/help/help.h"
#include "cli/options/options.h"
#include "cli/reading/remotes.h"
#include "cli/recording/recordings.h"
#include "record/recording/recording.h"

/* In the order of `kymo help`. */
const struct ky_command *const ky_commands[] = {
	/* record */
	&ky_command_record,
	&ky_command_sessions,
	&ky_command_stop,

	/* read */
	&ky_command_print,
	&ky_command_convert,
	&ky_command_info,
	&ky_command_report,
	&ky_command_query,
	&ky_command_view,

	/* this machine */
	&ky_command_list,
	&ky_command_latency,
	&ky_command_count,
	&ky_command_doctor,

	/* help */
	&ky_command_help,

	/* rare */
	&ky_command_timeline,
	&ky_command_sync,
	&ky_command_fleet,
	&ky_command_ctl,
	&ky_command_watch,
	&ky_command_snapshot,
	&ky_command_mark,
	&ky_command_rotate,
	&ky_command_daemon,
	&ky_command_relay,
	&ky_command_recover,
	&ky_command_lami,
	&ky_command_debug_info,
	&ky_command_symbols,
	&ky_command_completion,
	NULL,
};

const struct ky_command *ky_command_find(const char *name)
{
	for (const struct ky_command *const *command = ky_commands; *command; command++) {
		if (strcmp((*command)->name, name) == 0)
			return *command;
	}
	return NULL;
}

int ky_command_unknown(const char *name)
{
	const char *names[64], *near;
	size_t count = 0;

	while (ky_commands[count] && count < 64) {
		names[count] = ky_commands[count]->name;
		count++;
	}
	near = ky_nearest(name, names, count);
	fputs("kymo: '", stderr);
	ky_cli_put_text(stderr, name);
	fputs("' is not a command of kymo; ", stderr);
	if (near)
		fprintf(stderr, "did you mean 'kymo %s'?\n", near); /* lint: own text */
	else
		fputs("see kymo help\n", stderr);
	return KY_EXIT_USAGE;
}

/* A trace that is no path may be the name of a recording that runs. */
static void find_recordings(const struct ky_command *command, struct ky_parsed *parsed)
{
	for (int i = command->first_trace ? command->first_trace - 1 : parsed->n_args;
	     i < parsed->n_args; i++) {
		char path[PATH_MAX], *copy;

		if (!ky_recording_is_name(parsed->args[i]) || access(parsed->args[i], F_OK) == 0 ||
		    ky_recordings_directory(parsed->args[i], path) < 0)
			continue;
		copy = strdup(path);
		if (copy && ky_vec_push(&parsed->texts, copy) == 0)
			parsed->args[i] = copy;
		else
			free(copy);
	}
}

/* The value of --relay-key; NULL without. */
static const char *relay_key(const struct ky_command *command, const struct ky_parsed *parsed)
{
	for (const struct ky_option_def *def = command->options; def && def->name; def++)
		if (strcmp(def->name, "relay-key") == 0)
			return *(const char *const *)((const char *)parsed->options + def->at);
	return NULL;
}

/* The address of a relay alone, instead of traces: the recordings that it has. An exit code, or -1: not an address. */
static int list_relays(const struct ky_command *command, const struct ky_parsed *parsed)
{
	struct kymo_error err;
	int code = -1;

	for (int i = command->first_trace ? command->first_trace - 1 : parsed->n_args;
	     i < parsed->n_args && code <= KY_EXIT_OK; i++) {
		if (!ky_cli_is_relay(parsed->args[i]))
			continue;
		ky_error_clear(&err);
		code = ky_cli_list_relay(parsed->args[i], relay_key(command, parsed), false, &err) <
				       0
			       ? ky_cli_error(&err)
			       : KY_EXIT_OK;
	}
	return code;
}

static int run_command(const struct ky_command *command, int argc, char **argv)
{
	struct ky_parsed parsed;
	struct kymo_error err;
	int code;

	code = ky_options_parse(command, argc, argv, &parsed, &err);
	if (code == KYMO_E_INVALID && err.path[0]) { /* in a profile */
		(void)ky_cli_error(&err);
		code = KY_EXIT_USAGE;
	} else if (code == KYMO_E_INVALID) {
		code = err.hint[0] ? ky_cli_usage(command, "%s; %s", err.message, err.hint)
				   : ky_cli_usage(command, "%s", err.message);
	} else if (code < 0) {
		code = ky_cli_error(&err);
	} else if (parsed.help && parsed.n_args && command->topic_help) {
		code = command->topic_help(command, stdout, parsed.args[0]);
	} else if (parsed.help) {
		code = ky_help_command(stdout, command);
	} else {
		find_recordings(command, &parsed);
		code = list_relays(command, &parsed);
		if (code < 0)
			code = command->run(command, parsed.options, parsed.n_args, parsed.args);
	}
	ky_parsed_fini(command, &parsed);
	return code;
}

static int dispatch(int argc, char **argv)
{
	const struct ky_command *command;

	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return ky_help_overview(stdout);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts("kymo " KYMO_VERSION);
		return KY_EXIT_OK;
	}
	command = ky_command_find(argv[1]);
	if (command)
		return run_command(command, argc - 2, argv + 2);
	if (argv[1][0] != '-')
		return ky_command_unknown(argv[1]);
	fputs("kymo: unknown option ", stderr);
	ky_cli_put_text(stderr, argv[1]);
	fputs("; see kymo help\n", stderr);
	return KY_EXIT_USAGE;
}

/*
 * Programs that look for analyses want one executable for each: called as "kymo-cpu-mi" this is
 * `kymo lami cpu`. Returns an exit code, or -1 when it goes by another name.
 */
static int run_as_analysis(int argc, char **argv)
{
	const char *name = argc ? strrchr(argv[0], '/') : NULL;
	char report[64], **args;
	size_t len;
	int code;

	name = name ? name + 1 : argc ? argv[0] : "";
	len = strlen(name);
	if (len <= 8 || len >= sizeof(report) || strncmp(name, "kymo-", 5) != 0 ||
	    strcmp(name + len - 3, "-mi") != 0)
		return -1;
	snprintf(report, sizeof(report), "%.*s", (int)(len - 8), name + 5);
	args = calloc((size_t)argc + 1, sizeof(*args));
	if (!args)
		return KY_EXIT_FAIL;
	args[0] = report;
	for (int i = 1; i < argc; i++)
		args[i] = argv[i];
	code = run_command(&ky_command_lami, argc, args);
	free(args);
	return code;
}

/* What kymo daemon and others start by /proc/self/exe would be called "exe" in lists of processes. */
static void name_process(void)
{
	char name[16];

	if (prctl(PR_GET_NAME, name) == 0 && strcmp(name, "exe") == 0)
		(void)prctl(PR_SET_NAME, "kymo");
}

int main(int argc, char **argv)
{
	int code;

	name_process();

	ky_cli_catch_sigpipe();
	ky_cli_catch_sigxfsz();
	code = run_as_analysis(argc, argv);
	code = ky_cli_finish(code < 0 ? dispatch(argc, argv) : code);
	return ky_cli_inputs_finish(code);
}
