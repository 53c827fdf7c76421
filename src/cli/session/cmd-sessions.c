/* SPDX-License-Identifier: MIT */
/* kymo sessions: the recordings that run, or that a relay has. */
#include "cli/reading/remotes.h"
#include "cli/daemon/policy-client.h"
#include "cli/recording/recordings.h"
#include "cli/terminal/command.h"

struct options {
	bool json, names, policies;
	const char *relay_key;
};

static int run_sessions(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct kymo_error err;

	if (n_args && (options->names || options->policies))
		return ky_cli_usage(command, "--names and --policies are for this machine");
	if (n_args && !ky_cli_is_relay(args[0]))
		return ky_cli_usage(command, "%s: not the address of a relay", args[0]);
	if (n_args)
		return ky_cli_list_relay(args[0], options->relay_key, options->json, &err) < 0
			       ? ky_cli_error(&err)
			       : KY_EXIT_OK;
	if (options->policies)
		return ky_policy_print(options->json, &err) < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
	if (options->names)
		ky_recordings_print_names();
	else if (ky_recordings_print(options->json, &err) < 0)
		return ky_cli_error(&err);
	return KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"json", 0, KY_OPTION_FLAG, NULL, "Print JSON.", offsetof(struct options, json), NULL},
	{"names", 0, KY_OPTION_FLAG, NULL,
	 "Print only names (numbers of recordings without a name), one per line.",
	 offsetof(struct options, names), NULL},
	{"policies", 0, KY_OPTION_FLAG, NULL,
	 "Show instead the policies of kymo daemon by which you may record: kymo record --policy NAME.",
	 offsetof(struct options, policies), NULL},
	{"relay-key", 0, KY_OPTION_TEXT, "FILE",
	 "For kymo://HOST: the relay's key, for TLS. Default for other machines: ~/.config/kymo/relay-key.",
	 offsetof(struct options, relay_key), NULL},
	{0},
};

const struct ky_command ky_command_sessions = {
	.name = "sessions",
	.summary = "show the recordings that run",
	.usage = "[--json] [--names | --policies | kymo://HOST[:PORT]]",
	.description =
		"Shows each running recording: name or number, directory, start time, numbers of "
		"recorded and lost events, bytes written, fill level of the kernel's fullest "
		"buffer, and recorded events. Root sees the recordings of all users.\n\n"
		"A flight recorder (kymo record --overwrite) writes nothing before a snapshot or "
		"its end. The events of programs count when the recorder reads their buffers, so "
		"those of a flight recorder do not count.\n\n"
		"With the address of a relay, shows the recordings that the relay has, running or complete: the "
		"address of each, its streams and its readers. net://HOST is lttng-relayd.",
	.examples = "# a recording in the background, and its state\n"
		    "kymo record --name web --background -k sched_switch\nkymo sessions\n\n"
		    "# for a script\nkymo sessions --json\n\n"
		    "# the recordings at a relay\nkymo sessions kymo://localhost\n",
	.see_also = "record stop ctl snapshot relay",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.max_args = 1,
	.run = run_sessions,
};
