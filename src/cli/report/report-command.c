/* SPDX-License-Identifier: MIT */
#include "cli/report/report-command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/recording/record-child.h"
#include "cli/terminal/command.h"
#include "flow/graph/select.h"
#include "os/file.h"

#define LOG_BYTES_MAX (64u << 10)

/* ---- recording -------------------------------------------------------------------------- */

static int command_failed(const char *what)
{
	struct kymo_error err;

	ky_error_errno(&err, errno, "cannot %s", what);
	return ky_cli_error(&err);
}

/* Not in memory: a recording may be large. */
static int make_directory(struct ky_command_trace *made)
{
	const char *top = getenv("TMPDIR");

	if (!top || strlen(top) > sizeof(made->directory) - 24)
		top = access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
	snprintf(made->directory, sizeof(made->directory), "%s/kymo-report-XXXXXX", top);
	if (!mkdtemp(made->directory)) {
		made->directory[0] = '\0';
		return command_failed("make a temporary directory");
	}
	return KY_EXIT_OK;
}

/* What the trace is called: the command, for the report's first lines. */
static void report_command_name_trace(struct ky_command_trace *made, const char *command)
{
	const char *slash = strrchr(command, '/');
	const char *name = slash && slash[1] ? slash + 1 : command;

	snprintf(made->trace, sizeof(made->trace), "%s/%.200s", made->directory,
		 name[0] == '.' ? "trace" : name);
}

/* In the child: kymo record. Its messages go to a file; those of the command, by descriptor 3, do not. */
static void __attribute__((noreturn))
become_recorder(const struct ky_command_trace *made, char **command, size_t n, const char *log,
		const char *pid)
{
	/* Forks tell which processes are the command's. */
	const char *const head[] = {"kymo",
				    "record",
				    "-o",
				    made->trace,
				    made->calls	    ? "--calls=*"
				    : made->samples ? "--kernel=sched_process_*"
						    : "--kernel=default",
				    made->samples ? "--sample=999" : "--",
				    "--"};
	size_t n_head = sizeof(head) / sizeof(head[0]) - !made->samples;
	const char **args = calloc(n_head + n + 1, sizeof(*args));
	int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	fd = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 10);
	if (!args || fd < 0 || dup2(STDERR_FILENO, 3) < 0 || dup2(fd, STDERR_FILENO) < 0 ||
	    setenv(KY_CHILD_PID_FILE, pid, 1) < 0 || setenv(KY_CHILD_MESSAGES, "3", 1) < 0)
		_exit(KY_EXIT_FAIL);
	memcpy(args, head, n_head * sizeof(*head));
	memcpy(args + n_head, command, n * sizeof(*args));
	execv("/proc/self/exe", (char **)args);
	_exit(KY_EXIT_FAIL);
}

static volatile pid_t waited_for;

static void report_command_forward(int number)
{
	kill(waited_for, number);
}

/* Ctrl-C comes to the process itself. Other signals that end a program go on to it: then this program still cleans up. */
static int wait_for(pid_t pid)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction own = {.sa_handler = SIG_IGN}, old[3];
	int status = 0;

	waited_for = pid;
	for (size_t i = 0; i < 3; i++) {
		sigaction(numbers[i], &own, &old[i]);
		own.sa_handler = report_command_forward;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < 3; i++)
		sigaction(numbers[i], &old[i], NULL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int ky_command_trace_run(int (*run)(void *data), void *data)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(ky_cli_finish(run(data)));
	return pid < 0 ? command_failed("start a process") : wait_for(pid);
}

/* The recorder's messages: why nothing was recorded. */
static void show_log(const char *log)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (ky_read_file(AT_FDCWD, log, LOG_BYTES_MAX, &text) == 0)
		fputs(ky_strbuf_text(&text), stderr); /* lint: own text */
	ky_strbuf_fini(&text);
}

int ky_command_trace_record(struct ky_command_trace *made, char **command)
{
	char log[PATH_MAX], pid[PATH_MAX];
	size_t n = 0;
	pid_t recorder;

	*made = (struct ky_command_trace){
		.pids = KY_STRBUF_INIT, .samples = made->samples, .calls = made->calls};
	if (ky_child_check(command[0]))
		return ky_child_error(command[0], ky_child_check(command[0]));
	if (make_directory(made) != KY_EXIT_OK)
		return KY_EXIT_FAIL;
	report_command_name_trace(made, command[0]);
	snprintf(log, sizeof(log), "%s/.log", made->directory);
	snprintf(pid, sizeof(pid), "%s/.pid", made->directory);
	while (command[n])
		n++;
	fflush(NULL);
	recorder = fork();
	if (recorder == 0)
		become_recorder(made, command, n, log, pid);
	if (recorder < 0)
		return command_failed("start a process");
	made->code = wait_for(recorder);
	if (ky_read_file(AT_FDCWD, pid, 64, &made->pids) == 0 && access(made->trace, R_OK) == 0)
		return KY_EXIT_OK;
	show_log(log);
	return KY_EXIT_FAIL;
}

/* ---- processes -------------------------------------------------------------------------- */

KY_VEC_TYPE(pid_list, int64_t);

static bool report_command_is_in(const struct pid_list *pids, int64_t pid)
{
	for (size_t i = 0; i < pids->len; i++)
		if (pids->data[i] == pid)
			return true;
	return false;
}

static int64_t number_in(const struct ky_event *event, const char *name)
{
	struct ky_handle handle;

	return ky_handle_find(&handle, event->cls, KY_SCOPE_PAYLOAD, name)
		       ? ky_get_i64(event, &handle, -1)
		       : -1;
}

/* A child of a process that was found is one, too. */
static int follow_forks(struct ky_flow *flow, struct pid_list *pids, struct kymo_error *err)
{
	struct ky_batch batch;
	int ret;

	while ((ret = ky_flow_next(flow, &batch, err)) > 0) {
		for (size_t i = 0; i < batch.n_events; i++) {
			const struct ky_event *event = &batch.events[i];
			int64_t child = number_in(event, "child_pid");

			if (child < 0 ||
			    !report_command_is_in(pids, number_in(event, "parent_pid")) ||
			    report_command_is_in(pids, child))
				continue;
			if (ky_vec_push(pids, child) < 0)
				return ky_error_nomem(err);
		}
	}
	return ret;
}

static int find_children(const struct ky_trace_set *set, struct pid_list *pids,
			 struct kymo_error *err)
{
	static const char *const events[] = {"sched_process_fork"};
	struct ky_selection selection;
	struct ky_flow *flow;
	int ret;

	ky_selection_init(&selection);
	selection.events = events;
	selection.n_events = 1;
	ret = ky_flow_open_selected(set, &selection, &flow, err);
	if (ret < 0)
		return ret;
	ret = follow_forks(flow, pids, err);
	ky_flow_close(flow);
	return ret;
}

int ky_command_trace_find_pids(struct ky_command_trace *made, const struct ky_input_options *input,
			       struct kymo_error *err)
{
	struct pid_list pids = KY_VEC_INIT;
	struct ky_trace_set set = {0};
	char *paths[] = {made->trace, NULL};
	int ret = ky_cli_open(&set, paths, 1, input, false, err);

	if (ret < 0)
		return ret;
	if (ky_vec_push(&pids, strtoll(ky_strbuf_text(&made->pids), NULL, 10)) < 0)
		ret = ky_error_nomem(err);
	else
		ret = find_children(&set, &pids, err);
	ky_strbuf_clear(&made->pids);
	for (size_t i = 0; i < pids.len; i++)
		ky_strbuf_addf(&made->pids, "%s%lld", i ? "," : "", (long long)pids.data[i]);
	ky_vec_fini(&pids);
	ky_trace_set_close(&set);
	return ret < 0 ? ret : KYMO_OK;
}

void ky_command_trace_fini(struct ky_command_trace *made)
{
	ky_strbuf_fini(&made->pids);
	if (made->directory[0])
		ky_tree_remove(made->directory);
}
