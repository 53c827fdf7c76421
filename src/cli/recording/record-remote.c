/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-remote.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/terminal/command.h"
#include "cli/recording/record-containers.h"
#include "record/common/output.h"
#include "record/user/user-rules.h"

/* ---- snapshots ------------------------------------------------------------------------ */

struct snapshot {
	char path[PATH_MAX];
	uint64_t events, bytes;
};

/* OUT-snapshot-1, the first that is not there. */
static void choose_path(const struct ky_record_run *run, struct snapshot *snapshot)
{
	size_t len = strlen(run->output);

	while (len > 1 && run->output[len - 1] == '/')
		len--;
	for (int i = 1; i < INT_MAX; i++) {
		snprintf(snapshot->path, sizeof(snapshot->path), "%.*s-snapshot-%d", (int)len,
			 run->output, i);
		if (access(snapshot->path, F_OK) < 0)
			return;
	}
}

/* Events first, of both sides: the state takes longer, and they go on overwriting meanwhile. */
static int copy_all(struct ky_record_run *run, struct snapshot *snapshot, struct kymo_error *err)
{
	struct ky_user_snapshot user = {0};
	struct kymo_error next;
	int ret = KYMO_OK, finished;

	/* The kernel's refines the clock that both sides have. */
	if (run->session)
		ret = ky_session_snapshot(run->session, snapshot->path, err);
	else
		ky_record_refine_clock(run);
	if (ret < 0)
		return ret;
	if (run->user_session)
		ret = ky_user_snapshot(run->user_session, snapshot->path, ky_record_clock(run),
				       &user, err);
	finished = run->session ? ky_session_snapshot_finish(run->session, &snapshot->events,
							     &snapshot->bytes, &next)
				: KYMO_OK;
	snapshot->events += user.events;
	snapshot->bytes += user.bytes;
	return ky_record_keep_error(ret, finished, err, &next);
}

static int take_snapshot(struct ky_record_run *run, const char *path, struct snapshot *snapshot,
			 struct kymo_error *err)
{
	bool made;
	int ret;

	snapshot->events = snapshot->bytes = 0;
	if (!run->user.overwrite)
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording is no flight recorder (kymo record "
				    "--overwrite): what it records is in %s already",
				    run->output);
	if (*path)
		snprintf(snapshot->path, sizeof(snapshot->path), "%s", path);
	else
		choose_path(run, snapshot);
	ret = ky_output_make(snapshot->path, &made, err);
	if (ret < 0)
		return ret;
	ret = copy_all(run, snapshot, err);
	if (!ret && !snapshot->events)
		ret = ky_error_set(err, KYMO_E_STATE, "nothing was recorded yet");
	if (ret < 0 && made)
		(void)rmdir(snapshot->path);
	return ret;
}

/* What is counted: nobody has looked at the kernel's pages if they are raw. */
static const char *counted(const struct ky_record_run *run)
{
	return run->session && run->kernel.raw ? "raw records and events" : "events";
}

void ky_record_remote_signal(struct ky_record_run *run)
{
	struct snapshot snapshot;
	struct kymo_error err;
	char size[32];

	if (take_snapshot(run, "", &snapshot, &err) < 0) {
		(void)ky_cli_error(&err);
		return;
	}
	fputs("Snapshot: ", stderr);
	ky_cli_put_text(stderr, snapshot.path);
	fprintf(stderr, ": %" PRIu64 " %s, %s\n", snapshot.events,
		counted(run) /* lint: own text */, ky_format_bytes(size, snapshot.bytes));
}

/* ---- requests ------------------------------------------------------------------------- */

static void add_number(struct ky_control_socket_message *answer, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	ky_control_socket_add(answer, text);
}

static int answer_snapshot(struct ky_record_run *run, const char *path,
			   struct ky_control_socket_message *answer, struct kymo_error *err)
{
	struct snapshot snapshot;
	int ret = take_snapshot(run, path ? path : "", &snapshot, err);
	char real[PATH_MAX];

	if (ret < 0)
		return ret;
	ky_control_socket_add(answer, realpath(snapshot.path, real) ? real : snapshot.path);
	add_number(answer, snapshot.events);
	add_number(answer, snapshot.bytes);
	ky_control_socket_add(answer, counted(run));
	return KYMO_OK;
}

static void add_words(struct ky_control_socket_message *answer, const char *name,
		      const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ky_control_socket_add(answer, name);
		ky_control_socket_add(answer, words[i]);
	}
}

/* A rule of programs' events, and behind it its conditions. */
static void add_rule(struct ky_control_socket_message *answer, const struct ky_user_rule *rule)
{
	char levels[64];

	ky_control_socket_add(answer, "user");
	ky_control_socket_add(answer, rule->pattern);
	if (rule->condition) {
		ky_control_socket_add(answer, "filter");
		ky_control_socket_add(answer, rule->condition);
	}
	if (rule->level_min > 0 || rule->level_max < 14) {
		snprintf(levels, sizeof(levels), "%s..%s", ky_log_level_name(rule->level_min),
			 ky_log_level_name(rule->level_max));
		ky_control_socket_add(answer, "loglevel");
		ky_control_socket_add(answer, levels);
	}
	ky_vec_foreach(&rule->exclusions, exclusion) {
		ky_control_socket_add(answer, "exclude");
		ky_control_socket_add(answer, *exclusion);
	}
}

/* Pairs of words. */
static int answer_status(struct ky_record_run *run, struct ky_control_socket_message *answer)
{
	const struct ky_user_rule *rule;
	char path[PATH_MAX];

	ky_control_socket_add(answer, "output");
	ky_control_socket_add(answer, realpath(run->output, path) ? path : run->output);
	ky_control_socket_add(answer, "mode");
	ky_control_socket_add(answer, run->user.overwrite ? "flight" : "trace");
	ky_control_socket_add(answer, "pid");
	add_number(answer, (uint64_t)getpid());
	ky_control_socket_add(answer, "start");
	add_number(answer, (uint64_t)ky_os_clock_to_ns(ky_record_clock(run), run->start_cycles));
	add_words(answer, "kernel", run->kernel.events, run->kernel.n_events);
	if (run->has_kernel && !run->kernel.n_events && !run->kernel.only_probes) {
		ky_control_socket_add(answer, "kernel");
		ky_control_socket_add(answer, "default");
	}
	add_words(answer, "probe", run->kernel.probes, run->kernel.n_probes);
	add_words(answer, "sdt", run->kernel.sdt, run->kernel.n_sdt);
	add_words(answer, "kprobe", run->kernel.kprobes, run->kernel.n_kprobes);
	for (size_t i = 0; run->user_session && (rule = ky_user_rule_at(run->user_session, i)); i++)
		add_rule(answer, rule);
	return KYMO_OK;
}

/* A request's words: what to do, the pattern, and of "enable" the filter and the log levels. */
static int change_user(struct ky_record_run *run, const struct ky_control_socket_message *request,
		       size_t at, bool enables, struct kymo_error *err)
{
	struct ky_user_change change = {.enables = enables, .level_max = 14};
	const char *filter, *levels;

	change.pattern = ky_control_socket_next(request, &at);
	filter = ky_control_socket_next(request, &at);
	levels = ky_control_socket_next(request, &at);
	if (!run->user_session)
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording has no programs (kymo record --user)");
	if (!change.pattern || !*change.pattern)
		return ky_error_set(err, KYMO_E_INVALID, "which events?");
	if (filter && *filter)
		change.filter = filter;
	if (levels && *levels &&
	    ky_user_levels_parse(levels, &change.level_min, &change.level_max) < 0)
		return ky_error_set(err, KYMO_E_INVALID, "'%s' is no log level", levels);
	return ky_user_change(run->user_session, &change, err);
}

static int no_kernel(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_STATE,
			    "this recording does not record the kernel (kymo record --kernel)");
}

static int change_kernel(struct ky_record_run *run, const char *pattern, bool enables,
			 struct kymo_error *err)
{
	if (!run->session)
		return no_kernel(err);
	if (!pattern || !*pattern)
		return ky_error_set(err, KYMO_E_INVALID, "which events?");
	return ky_session_change(run->session, pattern, enables, err);
}

/* A request's words: of what ids ("pid", "tid", "uid"), or "cgroup", "container" or "comm"; "add" or "remove"; which; where. */
static int choose(struct ky_record_run *run, const struct ky_control_socket_message *request,
		  size_t at, struct kymo_error *err)
{
	static const char *const kinds[] = {
		[KY_SESSION_PIDS] = "pid",
		[KY_SESSION_TIDS] = "tid",
		[KY_SESSION_UIDS] = "uid",
	};
	const char *kind = ky_control_socket_next(request, &at),
		   *how = ky_control_socket_next(request, &at);
	const char *text = ky_control_socket_next(request, &at),
		   *place = ky_control_socket_next(request, &at);
	int32_t ids[KY_CLI_MAX_IDS];
	bool adds;
	int n;

	if (!run->session)
		return no_kernel(err);
	if (!kind || !how || !text)
		return ky_error_set(err, KYMO_E_INVALID, "whose events?");
	adds = strcmp(how, "add") == 0;
	if (strcmp(kind, "comm") == 0) {
		if (*text && !ky_cli_is_comm(text))
			return ky_error_set(err, KYMO_E_INVALID,
					    "'%s' is no name of a thread (15 characters)", text);
		return ky_session_choose_comm(run->session, *text ? text : NULL, err);
	}
	if (strcmp(kind, "cgroup") == 0)
		return ky_session_choose_group(run->session, text, adds, err);
	if (strcmp(kind, "container") == 0)
		return ky_record_container_choose(run, text, place ? place : "", adds, err);
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i]) != 0)
			continue;
		n = ky_cli_parse_ids(text, i == KY_SESSION_UIDS, ids, 0);
		if (n < 0)
			return ky_error_set(err, KYMO_E_INVALID,
					    "'%s': up to %d ids between commas are wanted", text,
					    KY_CLI_MAX_IDS);
		return ky_session_choose(run->session, (enum ky_session_choice)i, ids, (size_t)n,
					 adds, err);
	}
	return ky_error_set(err, KYMO_E_INVALID, "whose events?");
}

/* *ends: the request is for the end. */
static int obey(struct ky_record_run *run, const struct ky_control_socket_message *request,
		struct ky_control_socket_message *answer, bool *ends, struct kymo_error *err)
{
	size_t at = 0;
	const char *word = ky_control_socket_next(request, &at);

	if (word && strcmp(word, "status") == 0)
		return answer_status(run, answer);
	if (word && strcmp(word, "snapshot") == 0)
		return answer_snapshot(run, ky_control_socket_next(request, &at), answer, err);
	if (word && strcmp(word, "enable") == 0)
		return change_user(run, request, at, true, err);
	if (word && strcmp(word, "disable") == 0)
		return change_user(run, request, at, false, err);
	if (word && strcmp(word, "enable-kernel") == 0)
		return change_kernel(run, ky_control_socket_next(request, &at), true, err);
	if (word && strcmp(word, "disable-kernel") == 0)
		return change_kernel(run, ky_control_socket_next(request, &at), false, err);
	if (word && strcmp(word, "choose") == 0)
		return choose(run, request, at, err);
	if (word && strcmp(word, "stop") == 0) {
		*ends = true;
		return KYMO_OK;
	}
	return ky_error_set(
		err, KYMO_E_INVALID,
		"this recorder does not know how to do that; is it of another version?");
}

bool ky_record_remote_take(struct ky_record_run *run)
{
	struct ky_control_socket_message request, answer = {.len = 0};
	struct kymo_error err;
	bool ends = false;
	int ret;

	if (!ky_control_socket_take(&run->remote, &request))
		return false;
	ky_control_socket_add(&answer, "ok");
	ret = obey(run, &request, &answer, &ends, &err);
	if (ret < 0) {
		answer.len = 0;
		ky_control_socket_add(&answer, "error");
		ky_control_socket_add(&answer, err.message);
		ky_control_socket_add(&answer, err.path);
		ky_control_socket_add(&answer, err.hint);
	}
	ky_control_socket_answer(&run->remote, &answer);
	return ends;
}

void ky_record_remote_open(struct ky_record_run *run)
{
	struct kymo_error err;

	if (ky_control_socket_open(&run->remote, &err) == 0)
		return;
	ky_control_socket_close(&run->remote);
	ky_log_warning(&ky_cli_log, "no other command finds this recording: %s%s%s", err.path,
		       err.path[0] ? ": " : "", err.message);
}
