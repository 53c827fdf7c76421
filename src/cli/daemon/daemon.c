/* SPDX-License-Identifier: MIT */
#include "cli/daemon/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "cli/options/profile.h"
#include "cli/daemon/daemon-policies.h"
#include "cli/daemon/policy.h"
#include "cli/terminal/command.h"
#include "os/event-loop.h"
#include "os/file.h"
#include "os/now.h"
#include "record/recording/recording.h"

#define SUFFIX	 ".profile"
#define NS_PER_S UINT64_C(1000000000)
/* A recording that ended begins again after 1 s, then after twice the time, up to this. */
#define BACKOFF_MAX_S 60
/* One that has run for so long begins again at once. */
#define RAN_WELL_S 60

struct daemon;

/* A profile, and the process that records it. */
struct unit {
	struct daemon *daemon;
	char *name, *path;
	struct stat id; /* of the file when the process began */
	bool is_there;	/* the last look at the directory has found it */
	bool is_ending; /* the daemon ends the process */
	pid_t pid;	/* 0: none runs */
	time_t began_s; /* CLOCK_MONOTONIC */
	unsigned int backoff_s;
	struct ky_loop_source *child, *timer;
};

struct daemon {
	const struct ky_daemon_options *options;
	struct ky_loop *loop;
	sigset_t old_mask;
	KY_VEC(struct unit *) units;
	struct ky_policies *policies; /* NULL: there are none */
	bool is_ending;
};

static void daemon_say(const struct unit *unit, const char *what)
{
	fputs("kymo: ", stderr);
	ky_cli_put_text(stderr, unit->name);
	fprintf(stderr, ": %s\n", what); /* lint: own text */
}

/* ---- profiles ------------------------------------------------------------------------- */

/* What the daemon looks for in a profile. */
struct words {
	const char *output; /* NULL: it names none */
	const char *refusal;
};

static int daemon_take_word(void *data, char *name, char *value, struct kymo_error *err)
{
	struct words *words = data;

	(void)err;
	if (strcmp(name, "output") == 0)
		words->output = value;
	if (strcmp(name, "background") == 0)
		words->refusal =
			"a profile of the daemon cannot have 'background'; remove the line";
	if (strcmp(name, "name") == 0)
		words->refusal =
			"the name of the file is the recording's name; remove the line 'name'";
	return KYMO_OK;
}

/* ---- processes ------------------------------------------------------------------------ */

static int daemon_take_end(void *data, struct kymo_error *err);
static int daemon_take_timer(void *data, struct kymo_error *err);

/* OUTPUT/NAME/DATE-TIME; its parents exist after this. */
static bool make_output(const struct unit *unit, char path[PATH_MAX])
{
	time_t now = time(NULL);
	struct tm tm;
	int len;

	gmtime_r(&now, &tm);
	(void)mkdir(unit->daemon->options->output, 0700);
	len = snprintf(path, PATH_MAX, "%s/%s", unit->daemon->options->output, unit->name);
	if (len < 0 || len > PATH_MAX - 32)
		return false;
	(void)mkdir(path, 0700);
	return strftime(path + len, (size_t)(PATH_MAX - len), "/%Y%m%dT%H%M%SZ", &tm) > 0;
}

/* A recording can go there: the path does not exist, or is an empty directory. What is wrong otherwise, the recorder says. */
static bool is_free(const char *path)
{
	DIR *dir = opendir(path);
	bool is_empty = true;
	struct dirent *entry;

	while (dir && is_empty && (entry = readdir(dir)))
		is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (dir)
		closedir(dir);
	return is_empty;
}

/* The profile's output, or with a number: the trace of an earlier time is there, which ended when the machine did. */
static bool number_output(const char *wanted, char path[PATH_MAX])
{
	int len = (int)strlen(wanted);

	while (len > 1 && wanted[len - 1] == '/')
		len--;
	for (int i = 1; i < INT_MAX; i++) {
		int used = i == 1 ? snprintf(path, PATH_MAX, "%.*s", len, wanted)
				  : snprintf(path, PATH_MAX, "%.*s-%d", len, wanted, i);

		if (used < 0 || used >= PATH_MAX)
			return false;
		if (is_free(path))
			return true;
	}
	return false;
}

static void __attribute__((noreturn)) become(const struct unit *unit, const char *output)
{
	const char *args[] = {"kymo",	  "record",   "--profile", unit->path, "--name",
			      unit->name, "--output", output,	   NULL};

	sigprocmask(SIG_SETMASK, &unit->daemon->old_mask, NULL);
	/* The recordings of a killed daemon end, too. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	execv("/proc/self/exe", (char *const *)args);
	_exit(127);
}

static void try_later(struct unit *unit)
{
	unit->backoff_s = unit->backoff_s ? unit->backoff_s * 2 : 1;
	if (unit->backoff_s > BACKOFF_MAX_S)
		unit->backoff_s = BACKOFF_MAX_S;
	ky_loop_set_timer(unit->timer, unit->backoff_s * NS_PER_S);
}

static void daemon_start(struct unit *unit)
{
	struct words words = {.output = NULL};
	struct kymo_error err;
	char output[PATH_MAX], *text = NULL;
	int ret;

	ky_loop_set_timer(unit->timer, 0);
	ret = ky_profile_read(unit->path, &text, daemon_take_word, &words, &err);
	if (ret < 0) {
		(void)ky_cli_error(&err);
	} else if (!words.refusal && !(words.output ? number_output(words.output, output)
						    : make_output(unit, output))) {
		words.refusal = "the path of the output is too long";
	}
	free(text);
	if (ret < 0)
		return;
	if (words.refusal) {
		daemon_say(unit, words.refusal);
		return;
	}
	unit->began_s = ky_os_now_s();
	unit->pid = fork();
	if (unit->pid == 0)
		become(unit, output);
	if (unit->pid < 0) {
		unit->pid = 0;
		daemon_say(unit, "cannot begin");
		try_later(unit);
	} else if (ky_loop_add_child(unit->daemon->loop, unit->pid, daemon_take_end, unit,
				     &unit->child, &err) < 0) {
		(void)ky_cli_error(&err);
	}
}

static void daemon_stop(struct unit *unit)
{
	ky_loop_set_timer(unit->timer, 0);
	if (!unit->pid || unit->is_ending)
		return;
	unit->is_ending = true;
	(void)kill(unit->pid, SIGTERM);
}

static void unit_free(struct unit *unit)
{
	ky_loop_remove(unit->child);
	ky_loop_remove(unit->timer);
	free(unit->name);
	free(unit->path);
	free(unit);
}

static void daemon_forget(struct unit *unit)
{
	struct daemon *daemon = unit->daemon;
	size_t i = 0;

	while (daemon->units.data[i] != unit)
		i++;
	daemon->units.data[i] = daemon->units.data[--daemon->units.len];
	unit_free(unit);
}

static bool any_runs(const struct daemon *daemon)
{
	ky_vec_foreach(&daemon->units, unit)
		if ((*unit)->pid)
			return true;
	return ky_policies_any_runs(daemon->policies);
}

static int daemon_take_end(void *data, struct kymo_error *err)
{
	struct unit *unit = data;
	struct daemon *daemon = unit->daemon;
	bool was_ending = unit->is_ending;
	int status;

	(void)err;
	if (waitpid(unit->pid, &status, WNOHANG) != unit->pid)
		return KYMO_OK;
	unit->pid = 0;
	unit->is_ending = false;
	ky_loop_remove(unit->child);
	unit->child = NULL;
	if (daemon->is_ending)
		return any_runs(daemon) ? KYMO_OK : KY_LOOP_END;
	if (!unit->is_there) {
		daemon_forget(unit);
		return KYMO_OK;
	}
	if (was_ending) {
		unit->backoff_s = 0;
		daemon_start(unit);
		return KYMO_OK;
	}
	/* A mistake in the profile does not go away by itself. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == KY_EXIT_USAGE) {
		daemon_say(unit, "the profile has a mistake; it is read again after a SIGHUP");
		return KYMO_OK;
	}
	if (ky_os_now_s() - unit->began_s > RAN_WELL_S)
		unit->backoff_s = 0;
	daemon_say(unit, "the recording has ended; it begins again");
	try_later(unit);
	return KYMO_OK;
}

static int daemon_take_timer(void *data, struct kymo_error *err)
{
	struct unit *unit = data;

	(void)err;
	if (!unit->pid && unit->is_there && !unit->daemon->is_ending)
		daemon_start(unit);
	return KYMO_OK;
}

/* ---- the directory -------------------------------------------------------------------- */

static struct unit *daemon_find(const struct daemon *daemon, const char *name)
{
	ky_vec_foreach(&daemon->units, unit)
		if (strcmp((*unit)->name, name) == 0)
			return *unit;
	return NULL;
}

static struct unit *unit_new(struct daemon *daemon, const char *name)
{
	struct unit *unit = calloc(1, sizeof(*unit));

	if (!unit)
		return NULL;
	unit->daemon = daemon;
	unit->name = strdup(name);
	if (asprintf(&unit->path, "%s/%s" SUFFIX, daemon->options->profiles, name) < 0)
		unit->path = NULL;
	if (!unit->name || !unit->path ||
	    ky_loop_add_timer(daemon->loop, daemon_take_timer, unit, &unit->timer, NULL) < 0 ||
	    ky_vec_push(&daemon->units, unit) < 0) {
		unit_free(unit);
		return NULL;
	}
	return unit;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void take_profile(struct daemon *daemon, const char *name)
{
	struct unit *unit = daemon_find(daemon, name);
	const char *refusal;
	struct stat st;
	char text[128];

	if (!unit)
		unit = unit_new(daemon, name);
	if (!unit || stat(unit->path, &st) < 0)
		return;
	refusal = ky_policy_refuse_file(&st);
	if (refusal) {
		snprintf(text, sizeof(text), "the profile %s", refusal);
		daemon_say(unit, text);
		return;
	}
	unit->is_there = true;
	if (unit->pid && is_same_file(&unit->id, &st))
		return;
	unit->id = st;
	if (unit->pid) {
		/* It begins again when it has ended. */
		daemon_stop(unit);
	} else {
		unit->backoff_s = 0;
		daemon_start(unit);
	}
}

static int policies_ended(void *data)
{
	const struct daemon *daemon = data;

	return daemon->is_ending && !any_runs(daemon) ? KY_LOOP_END : KYMO_OK;
}

/* Users are served from the time on when there is a policy. */
static void look_for_policies(struct daemon *daemon)
{
	const struct ky_policies_options options = {
		.profiles = daemon->options->profiles,
		.output = daemon->options->output,
		.socket = daemon->options->socket,
		.loop = daemon->loop,
		.mask = daemon->old_mask,
		.ended = policies_ended,
		.data = daemon,
	};
	struct kymo_error err;

	if (!daemon->policies && ky_policies_exist(options.profiles) &&
	    ky_policies_open(&options, &daemon->policies, &err) < 0)
		(void)ky_cli_error(&err);
}

static int daemon_look(struct daemon *daemon, struct kymo_error *err)
{
	DIR *dir = opendir(daemon->options->profiles);
	char name[NAME_MAX + 1];
	struct dirent *entry;

	if (!dir) {
		int ret = ky_error_errno(err, errno, "cannot read the directory of profiles");

		ky_error_path(err, daemon->options->profiles);
		ky_error_hint(err, "create it, or name another one: --profiles DIR");
		return ret;
	}
	ky_vec_foreach(&daemon->units, unit)
		(*unit)->is_there = false;
	while ((entry = readdir(dir)))
		if (ky_policy_file_name(entry->d_name, SUFFIX, name))
			take_profile(daemon, name);
	closedir(dir);
	for (size_t i = daemon->units.len; i-- > 0;) {
		struct unit *unit = daemon->units.data[i];

		if (unit->is_there)
			continue;
		if (unit->pid)
			daemon_stop(unit);
		else
			daemon_forget(unit);
	}
	look_for_policies(daemon);
	return KYMO_OK;
}

static int daemon_take_signal(void *data, const struct signalfd_siginfo *info,
			      struct kymo_error *err)
{
	struct daemon *daemon = data;
	struct kymo_error local;

	(void)err;
	if (info->ssi_signo == SIGHUP && !daemon->is_ending) {
		if (daemon_look(daemon, &local) < 0)
			(void)ky_cli_error(&local);
		return KYMO_OK;
	}
	if (info->ssi_signo == SIGHUP)
		return KYMO_OK;
	daemon->is_ending = true;
	ky_vec_foreach(&daemon->units, unit)
		daemon_stop(*unit);
	ky_policies_end(daemon->policies);
	return any_runs(daemon) ? KYMO_OK : KY_LOOP_END;
}

int ky_daemon_run(const struct ky_daemon_options *options, struct kymo_error *err)
{
	struct daemon daemon = {.options = options};
	sigset_t signals;
	int ret = ky_loop_new(&daemon.loop, err);

	if (ret < 0)
		return ret;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &daemon.old_mask);
	ret = ky_loop_add_signals(daemon.loop, &signals, daemon_take_signal, &daemon, NULL, err);
	if (!ret)
		ret = daemon_look(&daemon, err);
	if (!ret)
		ret = ky_loop_run(daemon.loop, err);
	ky_policies_close(daemon.policies);
	ky_vec_foreach(&daemon.units, unit)
		unit_free(*unit);
	ky_vec_fini(&daemon.units);
	ky_loop_free(daemon.loop);
	return ret;
}
