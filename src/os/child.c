/* SPDX-License-Identifier: MIT */
#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"

#define TICK_MS		100
#define MAX_ERROR_BYTES ((size_t)4096)

extern char **environ;

struct child {
	const char *name;
	const struct ky_child_limits *limits;
	struct ky_strbuf *out, *errors;
	pid_t pid;
	int fds[2]; /* what is read: the standard output, the standard error; -1: at its end */
	bool has_ended;
};

/* ---- begin --------------------------------------------------------------------------------- */

static int child_prepare(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes,
			 const int *ends)
{
	sigset_t none, all;
	int ret;

	sigemptyset(&none);
	sigfillset(&all);
	ret = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (int i = 0; i < 2 && !ret; i++)
		ret = posix_spawn_file_actions_adddup2(files, ends[i], STDOUT_FILENO + i);
#ifdef __GLIBC__
	if (!ret)
		ret = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
	if (!ret)
		ret = posix_spawnattr_setsigmask(attributes, &none);
	if (!ret)
		ret = posix_spawnattr_setsigdefault(attributes, &all);
	return ret ? ret
		   : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP |
								  POSIX_SPAWN_SETSIGMASK |
								  POSIX_SPAWN_SETSIGDEF);
}

static int child_spawn(struct child *child, const char *const *argv, const int *ends)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int ret = posix_spawn_file_actions_init(&files);

	if (ret)
		return ret;
	ret = posix_spawnattr_init(&attributes);
	if (!ret) {
		ret = child_prepare(&files, &attributes, ends);
		if (!ret)
			ret = posix_spawnp(&child->pid, argv[0], &files, &attributes,
					   (char *const *)(uintptr_t)argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return ret;
}

static int child_begin(struct child *child, const char *const *argv, struct kymo_error *err)
{
	int pipes[2][2] = {{-1, -1}, {-1, -1}};
	int ends[2];
	int ret = KYMO_OK, status;

	for (int i = 0; i < 2 && ret == KYMO_OK; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			ret = ky_error_errno(err, errno, "cannot run %s", child->name);
		ends[i] = pipes[i][1];
		child->fds[i] = pipes[i][0];
	}
	if (ret == KYMO_OK) {
		status = child_spawn(child, argv, ends);
		if (status) {
			ky_error_set(err, KYMO_E_NOT_FOUND, "cannot run %s: %s", child->name,
				     strerror(status));
			ret = KYMO_E_NOT_FOUND;
		}
	}
	for (int i = 0; i < 2; i++) {
		if (pipes[i][1] >= 0)
			close(pipes[i][1]);
		if (child->fds[i] >= 0)
			fcntl(child->fds[i], F_SETFL, O_NONBLOCK);
	}
	return ret;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The last part remains. */
static void child_add_error(struct child *child, const char *data, size_t len)
{
	struct ky_strbuf *errors = child->errors;

	ky_strbuf_add(errors, data, len);
	if (!ky_strbuf_failed(errors) && errors->len > 2 * MAX_ERROR_BYTES) {
		memmove(errors->data, errors->data + errors->len - MAX_ERROR_BYTES,
			MAX_ERROR_BYTES);
		errors->len = MAX_ERROR_BYTES;
		errors->data[errors->len] = '\0';
	}
}

/* All that is there now. */
static int child_read(struct child *child, int i, struct kymo_error *err)
{
	char data[16384];
	ssize_t n;

	while ((n = read(child->fds[i], data, sizeof(data))) > 0) {
		if (i) {
			child_add_error(child, data, (size_t)n);
			return KYMO_OK;
		}
		if (child->out->len + (size_t)n > child->limits->max_bytes)
			return ky_error_set(err, KYMO_E_LIMIT, "%s writes more than %zu MiB",
					    child->name, child->limits->max_bytes >> 20);
		ky_strbuf_add(child->out, data, (size_t)n);
		if (ky_strbuf_failed(child->out))
			return ky_error_nomem(err);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return KYMO_OK;
	close(child->fds[i]);
	child->fds[i] = -1;
	return KYMO_OK;
}

/* Wait for something: output, or the end, or a time. */
static int child_step(struct child *child, struct kymo_error *err)
{
	struct pollfd polled[2];
	siginfo_t info = {0};
	int ret = KYMO_OK;

	for (int i = 0; i < 2; i++)
		polled[i] = (struct pollfd){.fd = child->fds[i], .events = POLLIN};
	if (poll(polled, 2, TICK_MS) < 0 && errno != EINTR)
		return ky_error_errno(err, errno, "cannot wait for %s", child->name);
	/* It remains a zombie, so that its number stays its own. What comes after its end is of others. */
	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    info.si_pid == child->pid)
		child->has_ended = true;
	for (int i = 0; i < 2 && ret == KYMO_OK; i++) {
		if (child->fds[i] >= 0 && (polled[i].revents || child->has_ended))
			ret = child_read(child, i, err);
	}
	return ret;
}

static int child_watch(struct child *child, struct kymo_error *err)
{
	int64_t end_ns = ky_os_now_ns() + child->limits->max_ns;
	int ret = KYMO_OK;

	while (ret == KYMO_OK && !child->has_ended) {
		ret = child_step(child, err);
		if (ret == KYMO_OK && child->limits->is_over &&
		    child->limits->is_over(child->limits->data))
			ret = ky_error_set(err, KYMO_E_INTERRUPTED,
					   "the client has closed the connection");
		if (ret == KYMO_OK && !child->has_ended && ky_os_now_ns() > end_ns)
			ret = ky_error_set(err, KYMO_E_LIMIT, "%s takes longer than %lld s",
					   child->name,
					   (long long)(child->limits->max_ns / 1000000000));
	}
	return ret;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* With all of its group. */
static int child_end(const struct child *child)
{
	int status = 0;

	kill(-child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int ky_child_run(const char *const *argv, const struct ky_child_limits *limits,
		 struct ky_strbuf *out, struct ky_strbuf *errors, struct kymo_error *err)
{
	struct child child = {
		.name = argv[0], .limits = limits, .out = out, .errors = errors, .fds = {-1, -1}};
	int ret = child_begin(&child, argv, err), status = 0;

	if (ret == KYMO_OK) {
		ret = child_watch(&child, err);
		status = child_end(&child);
	}
	for (int i = 0; i < 2; i++) {
		if (child.fds[i] >= 0)
			close(child.fds[i]);
	}
	return ret < 0 ? ret : status;
}
