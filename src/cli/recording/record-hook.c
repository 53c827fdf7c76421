/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-hook.h"

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

/* Chunks that may wait for the command. */
#define CHUNKS_MAX 1000
/* How long the end of the recording waits for the commands. */
#define WAIT_MS 30000
#define STEP_MS 20

/* The end of the recording tells what symbols it has stored, and which are missing. */
static void __attribute__((noreturn))
become_symbols(const struct ky_hook *hook, const char *path, int null)
{
	size_t n = 0, n_dirs = hook->symbol_dirs ? hook->symbol_dirs->len : 0;
	const char **args = calloc(2 * n_dirs + 6, sizeof(*args));

	if (null >= 0)
		(void)dup2(null, STDERR_FILENO);
	if (!args)
		_exit(127);
	args[n++] = "kymo";
	args[n++] = "symbols";
	for (size_t i = 0; i < n_dirs; i++) {
		args[n++] = "--symbol-dir";
		args[n++] = hook->symbol_dirs->items[i];
	}
	args[n++] = "add";
	args[n++] = "--";
	args[n++] = path;
	execv("/proc/self/exe", (char *const *)args);
	_exit(127);
}

static void store_symbols(const struct ky_hook *hook, const char *path, int null)
{
	pid_t pid = hook->stores_symbols ? fork() : -1;

	if (pid == 0)
		become_symbols(hook, path, null);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void __attribute__((noreturn)) become(const struct ky_hook *hook, const char *path)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		(void)dup2(fd, STDIN_FILENO);
	sigprocmask(SIG_SETMASK, &hook->mask, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	store_symbols(hook, path, fd);
	if (!hook->command)
		_exit(0);
	ky_memory_limit_child();
	if (hook->files.rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, &hook->files);
	(void)setenv("KYMO_CHUNK", path, 1);
	(void)setenv("KYMO_RECORDING", hook->output, 1);
	execl("/bin/sh", "sh", "-c", hook->command, (char *)NULL);
	_exit(127);
}

static const char *record_hook_work(const struct ky_hook *hook)
{
	return hook->command ? "the command of --on-rotate" : "storing the symbols of a chunk";
}

static void record_hook_warn(const struct ky_hook *hook)
{
	fputs("kymo: warning: ", stderr);
	ky_cli_put_text(stderr, record_hook_work(hook));
}

static void record_hook_report(const struct ky_hook *hook, int status)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	record_hook_warn(hook);
	fprintf(stderr, " failed: %s %d: ", WIFEXITED(status) ? "exit code" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	ky_cli_put_text(stderr, hook->command ? hook->command : "kymo symbols add");
	fputc('\n', stderr);
}

static int record_hook_take_end(void *data, struct kymo_error *err);

/* Runs the command for the first chunk. */
static void record_hook_start(struct ky_hook *hook)
{
	struct kymo_error err;
	char *path;

	if (hook->pid || !hook->chunks.len)
		return;
	path = hook->chunks.data[0];
	hook->chunks.len--;
	memmove(hook->chunks.data, hook->chunks.data + 1,
		hook->chunks.len * sizeof(hook->chunks.data[0]));
	hook->pid = fork();
	if (hook->pid == 0)
		become(hook, path);
	free(path);
	if (hook->pid < 0) {
		hook->pid = 0;
		ky_error_errno(&err, errno, "cannot start %s", record_hook_work(hook));
		(void)ky_cli_error(&err);
	} else if (hook->loop && ky_loop_add_child(hook->loop, hook->pid, record_hook_take_end,
						   hook, &hook->source, &err) < 0) {
		(void)ky_cli_error(&err);
	}
}

/* Returns whether the running command has ended. */
static bool record_hook_reap(struct ky_hook *hook)
{
	int status;

	if (!hook->pid || waitpid(hook->pid, &status, WNOHANG) != hook->pid)
		return !hook->pid;
	hook->pid = 0;
	record_hook_report(hook, status);
	return true;
}

static int record_hook_take_end(void *data, struct kymo_error *err)
{
	struct ky_hook *hook = data;

	(void)err;
	if (record_hook_reap(hook)) {
		ky_loop_remove(hook->source);
		hook->source = NULL;
		record_hook_start(hook);
	}
	return KYMO_OK;
}

void ky_hook_run(struct ky_hook *hook, struct ky_loop *loop, const char *path)
{
	char *chunk;

	if (!hook->command && !hook->stores_symbols)
		return;
	hook->loop = loop;
	chunk = hook->chunks.len < CHUNKS_MAX ? strdup(path) : NULL;
	if (!chunk || ky_vec_push(&hook->chunks, chunk) < 0) {
		free(chunk);
		record_hook_warn(hook);
		fputs(" takes too long: it does not take place for ", stderr);
		ky_cli_put_text(stderr, path);
		fputc('\n', stderr);
		return;
	}
	record_hook_start(hook);
}

void ky_hook_finish(struct ky_hook *hook)
{
	ky_loop_remove(hook->source);
	hook->source = NULL;
	hook->loop = NULL;
	for (int ms = 0; ms < WAIT_MS && (hook->pid || hook->chunks.len); ms += STEP_MS) {
		if (record_hook_reap(hook))
			record_hook_start(hook);
		else
			usleep(STEP_MS * 1000);
	}
	if (hook->pid) {
		record_hook_warn(hook);
		fputs(" has not ended; it continues to run\n", stderr);
	}
	ky_vec_foreach(&hook->chunks, chunk)
		free(*chunk);
	ky_vec_fini(&hook->chunks);
}
