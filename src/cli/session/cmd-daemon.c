/* SPDX-License-Identifier: MIT */
/* kymo daemon: recordings from a directory of profiles, for as long as the machine runs. */
#include "cli/daemon/daemon.h"
#include "record/control/daemon-socket.h"
#include "cli/terminal/command.h"

struct options {
	const char *profiles, *output, *socket;
};

static void cmd_daemon_defaults(void *data)
{
	struct options *options = data;

	options->profiles = "/etc/kymo";
	options->output = "/var/lib/kymo";
	options->socket = KY_DAEMON_SOCKET;
}

static int run_daemon(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	const struct ky_daemon_options to = {options->profiles, options->output, options->socket};
	struct kymo_error err;

	(void)command;
	(void)n_args;
	(void)args;
	return ky_daemon_run(&to, &err) < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"profiles", 'p', KY_OPTION_TEXT, "DIR",
	 "Directory with the profiles: NAME.profile is the recording NAME. Default: /etc/kymo.",
	 offsetof(struct options, profiles), NULL},
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Where recordings go whose profile has no output: DIR/NAME/DATE-TIME. Default: /var/lib/kymo.",
	 offsetof(struct options, output), NULL},
	{"socket", 0, KY_OPTION_TEXT, "PATH",
	 "Where users ask for recordings of policies. Default: /run/kymo/daemon. Users of another path set it in "
	 "$KYMO_DAEMON_SOCKET.",
	 offsetof(struct options, socket), NULL},
	{0},
};

const struct ky_command ky_command_daemon = {
	.name = "daemon",
	.is_rare = true,
	.summary = "run the recordings of a directory of profiles",
	.usage = "[OPTIONS]",
	.description =
		"Begins a recording for each profile in a directory, and begins it again when it ends: after 1 s, then after "
		"twice the time up to 1 min. A profile is a file with one option of kymo record per line (kymo record "
		"--save makes one). Its file name without .profile is the recording's name. kymo sessions, ctl, snapshot and "
		"rotate work as with every other recording. Nothing else needs the daemon.\n\n"
		"SIGHUP reads the directory again: new profiles begin, changed ones begin anew, and recordings of removed profiles "
		"end. SIGTERM and SIGINT end all recordings, and then the daemon. The daemon stays in the foreground; the unit "
		"kymo.service runs it with systemd.\n\n"
		"A profile belongs to the daemon's user or to root, and no other user can write it.\n\n"
		"NAME.policy in the same directory lets members of a group record without being root: kymo record --policy NAME. "
		"It is a profile with these additional lines:\n\n"
		"  group=NAME          may ask; may be given again\n"
		"  max-duration=TIME   the longest recording (10min)\n"
		"  max-size=SIZE       a recording ends when its trace has this size (1G)\n"
		"  max-recordings=N    of one user, running or not fetched yet (1)\n"
		"  own-processes       only the user's own processes\n\n"
		"The user chooses the policy, a shorter time and whether only the user's own processes are recorded, and nothing "
		"else. The daemon reads a policy at each request. The recording is in OUTPUT/.policies until the user has fetched it, "
		"at most a day.",
	.examples =
		"# scheduling, always: chunks of ten minutes, of which a day stays\n"
		"kymo record -k sched_switch --rotate-every 10min --keep-for 1d -o t -d 1s --save /etc/kymo/always.profile\n"
		"sed -i '/^output/d; /^duration/d' /etc/kymo/always.profile\n"
		"kymo daemon &\nkymo sessions\n\n"
		"# members of group tracing may record scheduling, for 5 minutes\n"
		"printf 'group=tracing\\nmax-duration=5min\\nkernel=sched_switch,sched_waking\\n' >/etc/kymo/sched.policy\n"
		"systemctl reload kymo\n",
	.see_also = "record sessions stop",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.defaults = cmd_daemon_defaults,
	.max_args = 0,
	.run = run_daemon,
};
