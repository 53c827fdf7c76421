/* SPDX-License-Identifier: MIT */
/*
 * What kymo latency does when a tracker tells of something: a snapshot, a rotation or the end of a recording that runs, the
 * start of one, or a command. A process beside this one carries out the actions of a tracker in their order.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/commands/latency-track.h"
#include "cli/recording/recordings.h"
#include "os/now.h"

#define EVERY_NS	1000000000
#define LAST_ACTIONS_NS 5000000000

/* Actions that are commands of kymo, with their argument in the place of "%". */
static const struct {
	const char *name;
	const char *words[6];
	bool needs_recording, needs_flight; /* the argument is one that runs; a flight recorder */
} actions[] = {
	{"run", {NULL}, false, false},
	{"snapshot", {"snapshot", "%"}, true, true},
	{"rotate", {"rotate", "%"}, true, false},
	{"stop", {"stop", "%"}, true, false},
	{"start", {"record", "--background", "--profile", "%"}, false, false},
};

#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

/* Its row and its argument. False: no such action, or nothing behind its ':'. */
static bool latency_actions_find(const char *text, size_t *row, const char **argument)
{
	size_t len = strcspn(text, ":");

	for (size_t i = 0; i < N_ACTIONS; i++)
		if (strlen(actions[i].name) == len && strncmp(actions[i].name, text, len) == 0 &&
		    text[len] && text[len + 1]) {
			*row = i;
			*argument = text + len + 1;
			return true;
		}
	return false;
}

int ky_track_action_check(const char *text, struct kymo_error *err)
{
	const char *argument;
	size_t row;
	int ret;

	if (latency_actions_find(text, &row, &argument))
		return KYMO_OK;
	ret = ky_error_set(err, KYMO_E_INVALID, "--do: '%s' is not an action", text);
	ky_error_hint(err, "use snapshot:NAME, rotate:NAME, stop:NAME (of a recording that runs), "
			   "start:PROFILE or run:COMMAND");
	return ret;
}

/* Actions of recordings that do not run now would fail only when something takes long. */
static void latency_actions_warn_of(const char *text)
{
	struct ky_control_socket_place place;
	struct kymo_error err;
	const char *argument;
	size_t row;

	if (!latency_actions_find(text, &row, &argument) || !actions[row].needs_recording)
		return;
	ky_error_clear(&err);
	if (ky_recordings_find(argument, actions[row].needs_flight, &place, &err) >= 0)
		return;
	fputs("kymo: warning: --do '", stderr);
	ky_cli_put_text(stderr, text);
	fputs("' cannot work now: ", stderr);
	ky_cli_put_text(stderr, err.message);
	fputs("; start the recording, or correct its name\n", stderr);
}

void ky_track_actions_warn(const struct ky_track *track)
{
	for (size_t i = 0; i < track->n_actions; i++)
		latency_actions_warn_of(track->actions[i]);
}

static int run_program(const char *path, char *const *args)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execv(path, args);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int run_words(const char *const *words, const char *argument)
{
	char *args[8] = {"kymo"};
	size_t n = 1;

	for (size_t i = 0; i < 6 && words[i]; i++)
		args[n++] = (char *)(strcmp(words[i], "%") == 0 ? argument : words[i]);
	return run_program("/proc/self/exe", args);
}

static int run_shell(const char *command)
{
	char *const args[] = {"sh", "-c", (char *)command, NULL};

	return run_program("/bin/sh", args);
}

static void set_number(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
}

/* The same names as those of triggers. */
static void latency_actions_environment(const char *name, const struct ky_tracker_news *news)
{
	const struct ky_tracker_report *report = news->report;
	char comm[KY_LATENCY_COMM_BYTES + 1] = "";

	memcpy(comm, report->begin.comm, KY_LATENCY_COMM_BYTES);
	setenv("KYMO_TRIGGER_CONDITION", name, 1);
	setenv("KYMO_TRIGGER_EVENT", news->kind == KY_TRACKER_STILL_OPEN ? "open" : "end", 1);
	set_number("KYMO_TRIGGER_DURATION_NS", news->duration_ns);
	set_number("KYMO_TRIGGER_TIME_NS", (uint64_t)ky_os_time_ns(CLOCK_REALTIME));
	set_number("KYMO_TRIGGER_FIELD_tid", (uint32_t)report->begin.tid);
	set_number("KYMO_TRIGGER_FIELD_pid", (uint32_t)report->begin.pid);
	setenv("KYMO_TRIGGER_FIELD_procname", comm, 1);
}

static void act_all(const struct ky_track *track)
{
	for (size_t i = 0; i < track->n_actions; i++) {
		const char *argument;
		size_t row;
		int status;

		if (!latency_actions_find(track->actions[i], &row, &argument))
			continue;
		status = actions[row].words[0] ? run_words(actions[row].words, argument)
					       : run_shell(argument);
		if (status == 0)
			continue;
		fputs("kymo: warning: the action '", stderr);
		ky_cli_put_text(stderr, track->actions[i]);
		fputs("' has failed\n", stderr);
	}
}

static void reap(struct ky_tracks *tracks, int flags)
{
	for (size_t i = tracks->n_children; i-- > 0;)
		if (waitpid(tracks->children[i], NULL, flags) != 0)
			tracks->children[i] = tracks->children[--tracks->n_children];
}

bool ky_track_act(struct ky_tracks *tracks, struct ky_track *track, const char *name,
		  const struct ky_tracker_news *news)
{
	int64_t now_ns = ky_os_time_ns(CLOCK_MONOTONIC);
	sigset_t none;
	pid_t pid;

	reap(tracks, WNOHANG);
	if (!track->n_actions)
		return true;
	if ((track->acted_ns && now_ns - track->acted_ns < EVERY_NS) ||
	    tracks->n_children == KY_TRACK_CHILDREN_MAX)
		return false;
	track->acted_ns = now_ns;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		close_range(3, ~0u, 0); /* the port of --listen, BPF links */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		latency_actions_environment(name, news);
		act_all(track);
		_exit(0);
	}
	if (pid > 0)
		tracks->children[tracks->n_children++] = pid;
	return pid > 0;
}

/* The last actions may take their time, such as a snapshot; a command of the user's may take any time. */
static void latency_actions_wait(struct ky_tracks *tracks)
{
	int64_t until_ns = ky_os_now_ns() + LAST_ACTIONS_NS;
	const struct timespec moment = {0, 10000000};

	reap(tracks, WNOHANG);
	while (tracks->n_children && ky_os_now_ns() < until_ns) {
		nanosleep(&moment, NULL);
		reap(tracks, WNOHANG);
	}
	if (tracks->n_children)
		fputs("kymo: warning: an action of --do still runs; kymo does not wait for it\n",
		      stderr);
}

void ky_tracks_fini(struct ky_tracks *tracks)
{
	latency_actions_wait(tracks);
	ky_frames_fini(&tracks->frames);
	ky_strbuf_fini(&tracks->out);
}
