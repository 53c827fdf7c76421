/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "os/memory-limit.h"

#define RUNNING_MAX 4
#define WAITING_MAX 64
/* How long the end of the recording waits for the processes. */
#define WAIT_MS 30000
#define STEP_MS 20

struct ky_running_task {
	struct ky_tasks *tasks;
	struct ky_recording_task *task;
	char *result; /* REPORT: the archive; else NULL */
	pid_t pid;
	struct ky_loop_source *source;
};

/* ---- the process ----------------------------------------------------------------------- */

static void start_recording(const char *profile)
{
	execl("/proc/self/exe", "kymo", "record", "--background", "--profile", profile,
	      (char *)NULL);
}

static void make_report(const struct ky_running_task *running)
{
	execl("/proc/self/exe", "kymo", "report", "--all", "--archive", running->result, "--event",
	      running->task->firing, running->task->trace, (char *)NULL);
}

static void __attribute__((noreturn)) become(const struct ky_running_task *running)
{
	const struct ky_tasks *tasks = running->tasks;
	const struct ky_recording_task *task = running->task;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		(void)dup2(fd, STDIN_FILENO);
		if (task->kind == KY_TRIGGER_REPORT)
			(void)dup2(fd, STDOUT_FILENO);
	}
	sigprocmask(SIG_SETMASK, &tasks->mask, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	ky_memory_limit_child();
	if (tasks->files.rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, &tasks->files);
	ky_vec_foreach(&task->environment, variable)
		(void)putenv(*variable);
	if (task->kind == KY_TRIGGER_RUN)
		execl("/bin/sh", "sh", "-c", task->argument, (char *)NULL);
	else if (task->kind == KY_TRIGGER_START)
		start_recording(task->argument);
	else if (task->kind == KY_TRIGGER_STOP)
		/* It does not wait for the end: the recording may be this one. */
		execl("/proc/self/exe", "kymo", "ctl", "--stop", task->argument, (char *)NULL);
	else
		make_report(running);
	_exit(127);
}

/* TRACE.report.tar.zst, or the action's argument with a number when that exists. */
static char *name_archive(const struct ky_recording_task *task)
{
	char *path = NULL;

	if (!task->argument)
		return asprintf(&path, "%s.report.tar.zst", task->trace) < 0 ? NULL : path;
	for (int i = 1; i < 1000000; i++) {
		int len = i == 1 ? asprintf(&path, "%s", task->argument)
				 : asprintf(&path, "%s-%d", task->argument, i);

		if (len < 0)
			return NULL;
		if (access(path, F_OK) < 0)
			return path;
		free(path);
	}
	return NULL;
}

static void free_running(struct ky_running_task *running)
{
	ky_recording_task_free(running->task);
	free(running->result);
	free(running);
}

/* ---- the queue ------------------------------------------------------------------------- */

static int record_tasks_take_end(void *data, struct kymo_error *err);

static void say_failed(const struct ky_recording_task *task, const char *why)
{
	fprintf(stderr, "kymo: warning: the trigger's action %s",
		ky_trigger_action_name(task->kind));
	if (task->argument) {
		fputc(':', stderr);
		ky_cli_put_text(stderr, task->argument);
	}
	fprintf(stderr, " failed: %s\n", why);
}

static bool record_tasks_start(struct ky_tasks *tasks, struct ky_running_task *running)
{
	struct kymo_error err;

	if (running->task->kind == KY_TRIGGER_REPORT) {
		running->result = name_archive(running->task);
		if (!running->result)
			return false;
	}
	running->pid = fork();
	if (running->pid == 0)
		become(running);
	if (running->pid < 0 || ky_vec_push(&tasks->running, running) < 0)
		return false;
	if (tasks->loop && ky_loop_add_child(tasks->loop, running->pid, record_tasks_take_end,
					     running, &running->source, &err) < 0)
		(void)ky_cli_error(&err);
	return true;
}

static void start_more(struct ky_tasks *tasks)
{
	while (tasks->waiting.len && tasks->running.len < RUNNING_MAX) {
		struct ky_running_task *running = calloc(1, sizeof(*running));
		struct ky_recording_task *task = tasks->waiting.data[0];

		tasks->waiting.len--;
		memmove(tasks->waiting.data, tasks->waiting.data + 1,
			tasks->waiting.len * sizeof(tasks->waiting.data[0]));
		if (!running) {
			ky_recording_task_free(task);
			continue;
		}
		*running = (struct ky_running_task){.tasks = tasks, .task = task};
		if (record_tasks_start(tasks, running))
			continue;
		say_failed(task, strerror(errno));
		free_running(running);
	}
}

static void record_tasks_tell(const struct ky_running_task *running, int status)
{
	const struct ky_recording_task *task = running->task;
	char what[48] = "done";

	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		snprintf(what, sizeof(what), "%s %d", WIFEXITED(status) ? "exit code" : "signal",
			 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		say_failed(task, what);
	} else if (running->result) {
		fputs("Report: ", stderr);
		ky_cli_put_text(stderr, running->result);
		fputc('\n', stderr);
	}
	if (running->tasks->recording)
		ky_recording_tell_task(
			running->tasks->recording, task,
			running->result && strcmp(what, "done") == 0 ? running->result : what);
}

/* Returns whether the process has ended; @running is then free. */
static bool record_tasks_reap(struct ky_tasks *tasks, size_t i)
{
	struct ky_running_task *running = tasks->running.data[i];
	int status;

	if (waitpid(running->pid, &status, WNOHANG) != running->pid)
		return false;
	ky_loop_remove(running->source);
	tasks->running.data[i] = tasks->running.data[--tasks->running.len];
	record_tasks_tell(running, status);
	free_running(running);
	return true;
}

static int record_tasks_take_end(void *data, struct kymo_error *err)
{
	struct ky_running_task *running = data;
	struct ky_tasks *tasks = running->tasks;

	(void)err;
	for (size_t i = 0; i < tasks->running.len; i++) {
		if (tasks->running.data[i] == running) {
			(void)record_tasks_reap(tasks, i);
			break;
		}
	}
	start_more(tasks);
	return KYMO_OK;
}

void ky_tasks_run(struct ky_tasks *tasks, struct ky_loop *loop, struct ky_recording_task *task)
{
	tasks->loop = loop;
	if (tasks->waiting.len == WAITING_MAX || ky_vec_push(&tasks->waiting, task) < 0) {
		say_failed(task, "too many actions wait already");
		ky_recording_task_free(task);
		return;
	}
	start_more(tasks);
}

void ky_tasks_finish(struct ky_tasks *tasks)
{
	ky_vec_foreach(&tasks->running, running) {
		ky_loop_remove((*running)->source);
		(*running)->source = NULL;
	}
	tasks->loop = NULL;
	for (int ms = 0; ms < WAIT_MS && (tasks->running.len || tasks->waiting.len);
	     ms += STEP_MS) {
		for (size_t i = tasks->running.len; i-- > 0;)
			(void)record_tasks_reap(tasks, i);
		start_more(tasks);
		if (tasks->running.len)
			usleep(STEP_MS * 1000);
	}
	if (tasks->running.len)
		fputs("kymo: warning: a trigger's command has not ended; it continues to run\n",
		      stderr);
	ky_vec_foreach(&tasks->running, running)
		free_running(*running);
	ky_vec_foreach(&tasks->waiting, task)
		ky_recording_task_free(*task);
	ky_vec_fini(&tasks->running);
	ky_vec_fini(&tasks->waiting);
}
