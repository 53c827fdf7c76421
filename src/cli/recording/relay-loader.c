/* SPDX-License-Identifier: MIT */
#include "cli/recording/relay-loader.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

#define SECOND_NS    UINT64_C(1000000000)
#define N_ENDS_MAX   5 /* the longest pause has 32 s */
#define LESS_URGENT  5
#define STOP_STEPS   100
#define STOP_STEP_US 20000

static int relay_loader_start(struct ky_relay_loader *loader, struct kymo_error *err);

static int relay_loader_ended(void *data, struct kymo_error *err)
{
	struct ky_relay_loader *loader = data;
	int status = 0;

	(void)err;
	(void)waitpid(loader->pid, &status, 0);
	loader->pid = 0;
	ky_loop_remove(loader->child);
	loader->child = NULL;
	fprintf(stderr,
		"kymo: the process that loads recordings has ended (%s %d); it starts again\n",
		WIFSIGNALED(status) ? "signal" : "code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	ky_loop_set_timer(loader->timer, SECOND_NS << loader->n_ends);
	loader->n_ends += loader->n_ends < N_ENDS_MAX;
	return KYMO_OK;
}

static int relay_loader_again(void *data, struct kymo_error *err)
{
	return relay_loader_start(data, err);
}

static void __attribute__((noreturn)) become(const struct ky_relay_loader *loader, pid_t relay)
{
	const char *args[] = {"kymo",	     "fleet", "follow",	   "--to",
			      loader->store, "--",    loader->dir, NULL};

	/* A relay that is killed now, and begins again, needs its port. */
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	sigprocmask(SIG_SETMASK, &loader->mask, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != relay)
		_exit(1);
	/* The relay comes first. */
	(void)!nice(LESS_URGENT);
	execv("/proc/self/exe", (char *const *)args);
	_exit(127);
}

static int relay_loader_start(struct ky_relay_loader *loader, struct kymo_error *err)
{
	pid_t relay = getpid();

	loader->pid = fork();
	if (loader->pid == 0)
		become(loader, relay);
	if (loader->pid > 0)
		return ky_loop_add_child(loader->loop, loader->pid, relay_loader_ended, loader,
					 &loader->child, err);
	loader->pid = 0;
	return ky_error_errno(err, errno, "cannot start the process that loads recordings");
}

int ky_relay_loader_begin(struct ky_relay_loader *loader, struct kymo_error *err)
{
	int ret = ky_loop_add_timer(loader->loop, relay_loader_again, loader, &loader->timer, err);

	return ret ? ret : relay_loader_start(loader, err);
}

void ky_relay_loader_end(struct ky_relay_loader *loader)
{
	ky_loop_remove(loader->child);
	ky_loop_remove(loader->timer);
	if (!loader->pid)
		return;
	(void)kill(loader->pid, SIGTERM);
	/* It may wait for a server. What it has begun, the next one ends. */
	for (int i = 0; i < STOP_STEPS; i++) {
		if (waitpid(loader->pid, NULL, WNOHANG) != 0)
			return;
		(void)usleep(STOP_STEP_US);
	}
	(void)kill(loader->pid, SIGKILL);
	(void)waitpid(loader->pid, NULL, 0);
}
