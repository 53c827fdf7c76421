/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "cli/recording/record-remote.h"
#include "cli/recording/record-summary.h"
#include "record/common/output.h"

#define RECORDER_NICE -10

/* ---- signals, time, the command ------------------------------------------------------- */

static int open_fds(struct ky_record_run *run, struct kymo_error *err)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &run->old_mask);
	(void)getrlimit(RLIMIT_NOFILE, &run->command.files); /* zeros, if that fails */
	run->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (run->signal_fd < 0 || run->timer_fd < 0)
		return ky_error_errno(err, errno, "cannot set up signals and timers");
	return KYMO_OK;
}

static void start_timer(const struct ky_record_run *run)
{
	uint64_t ns = run->duration_ns;
	struct itimerspec spec = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

	if (ns)
		timerfd_settime(run->timer_fd, 0, &spec, NULL);
}

/* Returns whether it is time to stop. */
static bool take_signals(struct ky_record_run *run)
{
	struct signalfd_siginfo info;
	bool told = false;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			ky_child_reap(&run->command, WNOHANG);
		else if (info.ssi_signo == SIGUSR1)
			run->wants_snapshot = true;
		else
			told = true;
	}
	/* Ctrl-C goes to the command too: that it ends then is not its own doing. */
	run->ended_by_command = run->command.exited && !told;
	return run->command.exited || told;
}

static int exit_code(const struct ky_record_run *run)
{
	int status = run->command.status;

	if (!run->ended_by_command)
		return KY_EXIT_OK;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Everything is recorded, the state dump is done: now the command may start, and time runs. */
static int begin(struct ky_record_run *run, struct kymo_error *err)
{
	int errnum;

	if (run->command.args) {
		errnum = ky_child_release(&run->command);
		if (errnum)
			return ky_error_errno(err, errnum, "cannot run '%s'", run->command.args[0]);
	} else if (!run->duration_ns && isatty(STDERR_FILENO)) {
		fprintf(stderr,
			run->user.overwrite
				? "Recording into memory. Ctrl-C stops, and writes the last "
				  "of it; kymo snapshot writes it at any time.\n"
				: "Recording. Ctrl-C stops.\n");
	}
	start_timer(run);
	return KYMO_OK;
}

/* ---- recording ------------------------------------------------------------------------ */

const struct ky_os_clock *ky_record_clock(const struct ky_record_run *run)
{
	return run->session ? ky_session_clock(run->session) : &run->user_clock;
}

static int open_sessions(struct ky_record_run *run, struct kymo_error *err)
{
	int ret;

	run->kernel.output = run->user.output = run->output;
	if (run->has_kernel) {
		ret = ky_session_open(&run->kernel, &run->session, err);
	} else {
		ret = ky_os_clock_init(&run->user_clock, run->clock, err);
		if (!ret)
			ret = ky_output_make(run->output, &run->made_output, err);
	}
	if (ret < 0 || !run->has_user)
		return ret;
	run->user.clock = ky_record_clock(run);
	return ky_user_open(&run->user, &run->user_session, err);
}

static void own_threads(struct ky_record_run *run)
{
	int32_t tids[KY_USER_THREADS_MAX];

	ky_session_own_threads(run->session, tids, ky_user_threads(run->user_session, tids));
}

static int start_sessions(struct ky_record_run *run, struct kymo_error *err)
{
	int ret = KYMO_OK;

	run->start_cycles = ky_os_clock_now(ky_record_clock(run));
	if (run->session)
		ret = ky_session_start(run->session, err);
	if (!ret && run->user_session)
		ret = ky_user_start(run->user_session, err);
	if (!ret && run->session && run->user_session)
		own_threads(run);
	return ret;
}

/* What may happen, and the files that tell. */
enum happening {
	HAPPENS_SIGNAL,
	HAPPENS_TIME,	/* the duration is over */
	HAPPENS_FAILED, /* the programs' recording cannot go on */
	HAPPENS_REQUEST,
	HAPPENS_DUMPED, /* the kernel's state is written */
	HAPPENINGS,
};

static void list_fds(const struct ky_record_run *run, bool has_begun, int fds[HAPPENINGS])
{
	fds[HAPPENS_SIGNAL] = run->signal_fd;
	fds[HAPPENS_TIME] = run->timer_fd;
	fds[HAPPENS_FAILED] = run->user_session ? ky_user_failed_fd(run->user_session) : -1;
	fds[HAPPENS_REQUEST] = ky_control_socket_fd(&run->remote);
	fds[HAPPENS_DUMPED] = run->session && !has_begun ? ky_session_dump_fd(run->session) : -1;
}

/* Wait for something to happen, while the kernel's rings are read. HAPPENINGS: nothing yet. */
static int wait_for(struct ky_record_run *run, bool has_begun, enum happening *what,
		    struct kymo_error *err)
{
	int all[HAPPENINGS], fds[HAPPENINGS], n = 0, which = -1, ret = KYMO_OK;
	enum happening kinds[HAPPENINGS];
	struct pollfd polls[HAPPENINGS];

	*what = HAPPENINGS;
	list_fds(run, has_begun, all);
	for (int i = 0; i < HAPPENINGS; i++) {
		if (all[i] < 0)
			continue;
		kinds[n] = (enum happening)i;
		polls[n] = (struct pollfd){all[i], POLLIN, 0};
		fds[n++] = all[i];
	}
	if (run->session) {
		ret = ky_session_run(run->session, fds, n, &which, err);
	} else {
		if (poll(polls, (nfds_t)n, -1) < 0 && errno != EINTR)
			return ky_error_errno(err, errno, "cannot wait for an event");
		for (int i = 0; i < n && which < 0; i++)
			which = polls[i].revents ? i : -1;
	}
	if (which >= 0)
		*what = kinds[which];
	return ret;
}

/* Returns whether it is time to stop. */
static bool handle(struct ky_record_run *run, enum happening what)
{
	bool stops;

	switch (what) {
	case HAPPENS_SIGNAL:
		stops = take_signals(run);
		if (run->wants_snapshot && !stops)
			ky_record_remote_signal(run);
		run->wants_snapshot = false;
		return stops;
	case HAPPENS_REQUEST:
		return ky_record_remote_take(run);
	case HAPPENS_TIME:
	case HAPPENS_FAILED: /* its stop says why */
		return true;
	default:
		return false;
	}
}

static int record(struct ky_record_run *run, struct kymo_error *err)
{
	bool has_begun = !run->session, stops = false;
	enum happening what;
	int ret = has_begun ? begin(run, err) : KYMO_OK;

	while (!ret && !stops) {
		ret = wait_for(run, has_begun, &what, err);
		if (!ret && what == HAPPENS_DUMPED) {
			has_begun = true;
			ret = begin(run, err);
		} else if (!ret) {
			stops = handle(run, what);
		}
	}
	return ret;
}

/* ---- the end -------------------------------------------------------------------------- */

int ky_record_keep_error(int ret, int next, struct kymo_error *err,
			 const struct kymo_error *next_err)
{
	if (ret < 0 || next >= 0)
		return ret;
	*err = *next_err;
	return next;
}

/* Without the kernel nobody else refines the clock. */
void ky_record_refine_clock(struct ky_record_run *run)
{
	struct ky_os_clock_drift drift;

	if (run->session)
		return;
	ky_os_clock_resample(&run->user_clock, &drift);
	(void)ky_os_clock_refine(&run->user_clock, &drift);
}

static int stop_sessions(struct ky_record_run *run, int ret, struct kymo_error *err)
{
	struct kymo_error next;

	if (run->user_session)
		ret = ky_record_keep_error(ret, ky_user_stop(run->user_session, &next), err, &next);
	if (run->session)
		ret = ky_record_keep_error(ret, ky_session_stop(run->session, &next), err, &next);
	ky_record_refine_clock(run);
	if (run->user_session)
		ret = ky_record_keep_error(
			ret, ky_user_finish(run->user_session, ky_record_clock(run), &next), err,
			&next);
	return ret;
}

static int close_sessions(struct ky_record_run *run, int ret, struct kymo_error *err)
{
	struct kymo_error next;

	ky_user_close(run->user_session);
	run->user_session = NULL;
	if (run->session)
		ret = ky_record_keep_error(ret, ky_session_close(run->session, &next), err, &next);
	run->session = NULL;
	if (!run->started && run->made_output)
		(void)rmdir(run->output);
	return ret;
}

/* The exit code of @err. With a column it is about a filter: a mistake of the command line, as it is of kymo print. */
static int failure(const struct ky_record_run *run, const struct kymo_error *err)
{
	return !run->started && err->code == KYMO_E_INVALID && err->column ? KY_EXIT_USAGE
									   : KY_EXIT_FAIL;
}

static int finish(struct ky_record_run *run, int ret, struct kymo_error *err)
{
	const struct ky_os_clock *clock = ky_record_clock(run);
	uint64_t end = ky_os_clock_now(clock);
	bool failed;

	ky_control_socket_close(&run->remote);
	ret = stop_sessions(run, ret, err);
	ky_child_end(&run->command);
	/* What went wrong is told before what there is all the same. */
	failed = ret < 0;
	if (failed)
		(void)ky_cli_error(err);
	if (run->started)
		ky_record_summary(run->output, run->session ? ky_session_stats(run->session) : NULL,
				  run->user_session ? ky_user_stats(run->user_session) : NULL,
				  (uint64_t)(ky_os_clock_to_ns(clock, end) -
					     ky_os_clock_to_ns(clock, run->start_cycles)),
				  run->buffer_bytes, !failed);
	ret = close_sessions(run, ret, err);
	if (failed)
		return failure(run, err);
	return ret < 0 ? ky_cli_error(err) : exit_code(run);
}

static int run_sessions(struct ky_record_run *run)
{
	struct kymo_error err;
	int ret = open_fds(run, &err), code;

	if (!ret)
		ret = open_sessions(run, &err);
	if (ret < 0) {
		(void)close_sessions(run, ret, &err);
		(void)ky_cli_error(&err);
		return failure(run, &err);
	}
	/* Before the sessions start threads. */
	code = ky_child_fork(&run->command, &run->old_mask);
	if (code) {
		(void)close_sessions(run, KYMO_OK, &err);
		return code;
	}
	/*
	 * On a machine with more to do than CPUs, who reads too late loses events. The recorder needs
	 * a few per cent of one; the command, forked before, does not inherit this.
	 */
	(void)setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	ret = run->session && run->command.args
		      ? ky_session_choose_child(run->session, run->command.pid, &err)
		      : KYMO_OK;
	if (!ret)
		ret = start_sessions(run, &err);
	run->started = ret == 0;
	if (!ret)
		ky_record_remote_open(run);
	if (!ret)
		ret = record(run, &err);
	return finish(run, ret, &err);
}

int ky_record_run(struct ky_record_run *run)
{
	int code = run_sessions(run);

	ky_child_end(&run->command);
	if (run->signal_fd >= 0)
		close(run->signal_fd);
	if (run->timer_fd >= 0)
		close(run->timer_fd);
	return code;
}
