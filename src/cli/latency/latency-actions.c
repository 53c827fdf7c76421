/* SPDX-License-Identifier: MIT */
/*
 * What kymo latency does when a tracker tells of something: a snapshot, a rotation or the end of a recording that runs, an
 * action of its triggers, the start of one, or a command. A process beside this one carries out the actions of a tracker in their order.
 */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/latency/latency-output.h"
#include "cli/latency/latency-track.h"
#include "cli/recording/recordings.h"
#include "os/now.h"

#define EVERY_NS	1000000000
#define LAST_ACTIONS_NS 5000000000

/* Actions that are commands of kymo, with their argument in the place of "%"; a command of the user's; and requests. */
static const struct {
	const char *name;
	const char *words[6];
	bool needs_recording, needs_flight; /* the argument is one that runs; a flight recorder */
	bool is_request;		    /* of a trigger's action: "NAME", or "NAME:ARGUMENT" */
} actions[] = {
	{"run", {NULL}, false, false, false},
	{"snapshot", {"snapshot", "%"}, true, true, false},
	{"rotate", {"rotate", "%"}, true, false, false},
	{"stop", {"stop", "%"}, true, false, false},
	{"start", {"record", "--background", "--profile", "%"}, false, false, false},
	{"mark", {NULL}, true, false, true},
	{"notify", {NULL}, true, false, true},
	{"report", {NULL}, true, false, true},
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
	ky_error_hint(err, "use snapshot:NAME, rotate:NAME, stop:NAME, mark:NAME[:TEXT], "
			   "notify:NAME[:TEXT], report:NAME[:FILE] (of a recording that runs), "
			   "start:PROFILE or run:COMMAND");
	return ret;
}

/* "NAME:ARGUMENT" -> the recording's name, and what follows it; "": nothing. */
static const char *latency_actions_split(const char *argument, char name[NAME_MAX + 1])
{
	size_t len = strcspn(argument, ":");

	snprintf(name, NAME_MAX + 1, "%.*s", (int)len, argument);
	return argument[len] ? argument + len + 1 : "";
}

/* Actions of recordings that do not run now would fail only when something takes long. */
static void latency_actions_warn_of(const char *text)
{
	struct ky_control_socket_place place;
	struct kymo_error err;
	char name[NAME_MAX + 1];
	const char *argument;
	size_t row;

	if (!latency_actions_find(text, &row, &argument) || !actions[row].needs_recording)
		return;
	ky_error_clear(&err);
	if (actions[row].is_request) {
		(void)latency_actions_split(argument, name);
		argument = name;
	}
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

/* ---- actions of triggers, which a recording carries out -------------------------------------- */

/* Fields are "NAME", "text" or "number", and a value. */
static void latency_actions_add_number(struct ky_control_socket_message *request,
				       const char *prefix, const char *name, int64_t number)
{
	char text[96];

	snprintf(text, sizeof(text), "%s%.60s", prefix, name);
	ky_control_socket_add(request, text);
	ky_control_socket_add(request, "number");
	snprintf(text, sizeof(text), "%" PRId64, number);
	ky_control_socket_add(request, text);
}

static void latency_actions_add_thread(struct ky_control_socket_message *request,
				       const char *prefix, const struct ky_tracker_thread *thread)
{
	char text[KY_LATENCY_COMM_BYTES + 1] = "", name[32];

	latency_actions_add_number(request, prefix, "tid", thread->tid);
	latency_actions_add_number(request, prefix, "pid", thread->pid);
	memcpy(text, thread->comm, KY_LATENCY_COMM_BYTES);
	snprintf(name, sizeof(name), "%sprocname", prefix);
	ky_control_socket_add(request, name);
	ky_control_socket_add(request, "text");
	ky_control_socket_add(request, text);
}

static void latency_actions_add_u64(struct ky_control_socket_message *request, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	ky_control_socket_add(request, text);
}

static void latency_actions_make(struct ky_control_socket_message *request, const char *action,
				 const struct ky_track *track, const struct ky_tracker *tracker,
				 const struct ky_tracker_news *news)
{
	const struct ky_tracker_report *report = news->report;

	request->len = 0;
	ky_control_socket_add(request, "act");
	ky_control_socket_add(request, action);
	ky_control_socket_add(request, track->options.text);
	ky_control_socket_add(request, news->kind == KY_TRACKER_STILL_OPEN ? "open" : "end");
	latency_actions_add_u64(request, track->n_told);
	latency_actions_add_u64(request,
				(uint64_t)ky_latency_wall_ns(report->begin_ns + news->duration_ns));
	latency_actions_add_u64(request, news->duration_ns);
	latency_actions_add_thread(request, "", &report->begin);
	if (news->kind != KY_TRACKER_STILL_OPEN)
		latency_actions_add_thread(request, "end_", &report->end);
	for (size_t i = 0; ky_tracker_key_name(tracker, i); i++)
		latency_actions_add_number(request, "key_", ky_tracker_key_name(tracker, i),
					   (int64_t)report->key.values[i]);
}

/* "mark" of "NAME:TEXT" is the trigger's action "mark:TEXT"; without a text, a mark has the tracker's name. */
static int latency_actions_ask(const struct ky_track *track, const struct ky_tracker *tracker,
			       const struct ky_tracker_news *news, size_t row, const char *argument,
			       struct kymo_error *err)
{
	struct ky_control_socket_message request, answer;
	struct ky_control_socket_place place;
	struct ky_strbuf action = KY_STRBUF_INIT;
	char name[NAME_MAX + 1];
	const char *rest = latency_actions_split(argument, name);
	int ret;

	if (!*rest && strcmp(actions[row].name, "mark") == 0)
		rest = ky_tracker_name(tracker);
	ky_strbuf_addf(&action, "%s%s%s", actions[row].name, *rest ? ":" : "", rest);
	ret = ky_strbuf_failed(&action) ? ky_error_nomem(err)
					: ky_recordings_find(name, false, &place, err);
	if (ret >= 0) {
		latency_actions_make(&request, ky_strbuf_text(&action), track, tracker, news);
		ret = ky_control_socket_ask(&place, &request, 0, &answer, err);
	}
	ky_strbuf_fini(&action);
	return ret;
}

/* ---- all of a tracker's ----------------------------------------------------------------------- */

static void latency_actions_failed(const char *action, const struct kymo_error *err)
{
	fputs("kymo: warning: the action '", stderr);
	ky_cli_put_text(stderr, action);
	fputs("' has failed", stderr);
	if (err->message[0]) {
		fputs(": ", stderr);
		ky_cli_put_text(stderr, err->message);
	}
	fputc('\n', stderr);
}

static void act_all(const struct ky_track *track, const struct ky_tracker *tracker,
		    const struct ky_tracker_news *news)
{
	for (size_t i = 0; i < track->n_actions; i++) {
		struct kymo_error err;
		const char *argument;
		size_t row;
		int status;

		ky_error_clear(&err);
		if (!latency_actions_find(track->actions[i], &row, &argument))
			continue;
		if (actions[row].is_request)
			status = latency_actions_ask(track, tracker, news, row, argument, &err);
		else
			status = actions[row].words[0] ? run_words(actions[row].words, argument)
						       : run_shell(argument);
		if (status != 0)
			latency_actions_failed(track->actions[i], &err);
	}
}

static void reap(struct ky_tracks *tracks, int flags)
{
	for (size_t i = tracks->n_children; i-- > 0;)
		if (waitpid(tracks->children[i], NULL, flags) != 0)
			tracks->children[i] = tracks->children[--tracks->n_children];
}

bool ky_track_act(struct ky_tracks *tracks, struct ky_track *track,
		  const struct ky_tracker *tracker, const struct ky_tracker_news *news)
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
		latency_actions_environment(ky_tracker_name(tracker), news);
		act_all(track, tracker, news);
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
	for (size_t i = 0; i < tracks->n; i++)
		free(tracks->list[i].text);
	ky_frames_fini(&tracks->frames);
	ky_strbuf_fini(&tracks->out);
}
