/* SPDX-License-Identifier: MIT */
/* kymo ctl: a running recording is changed, or ended. */
#include "cli/command.h"

#include <string.h>

#include "base/error.h"
#include "cli/recordings.h"

struct options {
	struct ky_text_list enable, disable, enable_kernel, disable_kernel;
	const char *filter, *log_level;
	bool stop;
};

static int ask(const char *socket, const char *what, const char *pattern,
	       const struct options *options, struct kymo_error *err)
{
	struct ky_remote_message request = {.len = 0}, answer;
	bool enables = strcmp(what, "enable") == 0;

	ky_remote_add(&request, what);
	ky_remote_add(&request, pattern);
	ky_remote_add(&request, enables && options->filter ? options->filter : "");
	ky_remote_add(&request, enables && options->log_level ? options->log_level : "");
	return ky_remote_ask(socket, &request, &answer, err);
}

static int ask_all(const char *socket, const struct options *options, struct kymo_error *err)
{
	const struct {
		const char *what;
		const struct ky_text_list *patterns;
	} changes[] = {
		{"disable", &options->disable},
		{"enable", &options->enable},
		{"disable-kernel", &options->disable_kernel},
		{"enable-kernel", &options->enable_kernel},
	};
	int ret = KYMO_OK;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		for (size_t k = 0; k < changes[i].patterns->len && !ret; k++)
			ret = ask(socket, changes[i].what, changes[i].patterns->items[k], options,
				  err);
	}
	return !ret && options->stop ? ask(socket, "stop", "", options, err) : ret;
}

static int run_ctl(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	char socket[KY_REMOTE_PATH_MAX];
	struct kymo_error err;
	int ret;

	if (!options->enable.len && !options->disable.len && !options->enable_kernel.len &&
	    !options->disable_kernel.len && !options->stop)
		return ky_cli_usage(command, "say what is to be changed");
	if (!options->enable.len && (options->filter || options->log_level))
		return ky_cli_usage(command, "--filter and --loglevel are about --enable-event");
	ret = ky_recordings_find(n_args ? args[0] : NULL, false, socket, &err);
	if (!ret)
		ret = ask_all(socket, options, &err);
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"enable-event", 'e', KY_OPTION_LIST, "PATTERN",
	 "Record events of programs that match, too: PROVIDER:NAME, '*' being any run of characters. A pattern "
	 "that is recorded already is recorded under these conditions from now on. May be given again.",
	 offsetof(struct options, enable), NULL},
	{"disable-event", 'x', KY_OPTION_LIST, "PATTERN",
	 "Do not record events of programs that match any more. May be given again; comes before "
	 "--enable-event.",
	 offsetof(struct options, disable), NULL},
	{"filter", 0, KY_OPTION_TEXT, "EXPR",
	 "Of the events that are enabled, only those for which EXPR is true; as with kymo record.",
	 offsetof(struct options, filter), NULL},
	{"loglevel", 0, KY_OPTION_TEXT, "LEVEL",
	 "Of the events that are enabled, only those with this log level; as with kymo record.",
	 offsetof(struct options, log_level),
	 "EMERG.. ALERT.. CRIT.. ERR.. WARNING.. NOTICE.. INFO.. DEBUG_LINE.. DEBUG.."},
	{"enable-kernel", 0, KY_OPTION_LIST, "PATTERN",
	 "Record events of the kernel that match again. Only those that the recording began with: its "
	 "trace describes no others.",
	 offsetof(struct options, enable_kernel), NULL},
	{"disable-kernel", 0, KY_OPTION_LIST, "PATTERN",
	 "Do not record events of the kernel that match any more.",
	 offsetof(struct options, disable_kernel), NULL},
	{"stop", 0, KY_OPTION_FLAG, NULL, "End the recording, after the changes: as Ctrl-C does.",
	 offsetof(struct options, stop), NULL},
	{0},
};

const struct ky_command ky_command_ctl = {
	.name = "ctl",
	.summary = "change what a running recording records, or end it",
	.usage = "[OPTIONS] [RECORDING]",
	.description =
		"Changes which events a running kymo record takes. Programs see it at their next event, and "
		"go on in the same trace.\n\n"
		"RECORDING is what kymo list --recordings calls it: its number, or the directory of its trace. "
		"With only one recording it need not be said. Recordings are their user's: nobody else is "
		"answered but root.\n\n"
		"Context fields cannot be changed: they are part of every event's layout. Start another recording "
		"beside this one for that; there may be any number.",
	.examples =
		"# more, for a while\nkymo ctl --enable-event 'shop:stock_*' --filter 'items > 100'\n"
		"kymo ctl --disable-event 'shop:stock_*'\n\n"
		"# one of several recordings; end it\nkymo ctl my-trace --stop",
	.see_also = "record snapshot list",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.min_args = 0,
	.max_args = 1,
	.run = run_ctl,
};
