/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/recording/record-network.h"
#include "cli/recording/record-summary.h"
#include "cli/terminal/command.h"
#include "net/link/tls.h"
#include "os/event-loop.h"

#define RECORDER_NICE -10

/* What the calls of the loop share. */
struct driver {
	struct ky_record_run *run;
	struct ky_recording *recording;
	struct ky_loop *loop;
	struct ky_loop_source *duration;
	sigset_t signals, old_mask;
	bool is_started;
	bool ended_by_command; /* else its exit status is no result */
};

/* ---- what ends a recording ------------------------------------------------------------ */

static int record_run_end(void *data, struct kymo_error *err)
{
	(void)data;
	(void)err;
	return KY_LOOP_END;
}

static int record_run_take_child(void *data, struct kymo_error *err)
{
	struct driver *driver = data;

	sigset_t pending;

	(void)err;
	ky_child_reap(&driver->run->command, WNOHANG);
	if (!driver->run->command.exited)
		return KYMO_OK;
	/* Ctrl-C goes to the command, too, which may be the first to end. */
	sigpending(&pending);
	driver->ended_by_command = sigismember(&pending, SIGINT) == 0 &&
				   sigismember(&pending, SIGTERM) == 0 &&
				   sigismember(&pending, SIGHUP) == 0;
	return KY_LOOP_END;
}

/* A signal asked for it: the user sees the result on the terminal. */
static void record_run_take_snapshot(struct driver *driver)
{
	struct ky_recording_snapshot snapshot;
	struct kymo_error err;
	char size[32];

	if (ky_recording_snapshot(driver->recording, NULL, &snapshot, &err) < 0) {
		(void)ky_cli_error(&err);
		return;
	}
	fputs("Snapshot: ", stderr);
	ky_cli_put_text(stderr, snapshot.path);
	fprintf(stderr, ": %" PRIu64 " %s, %s\n", snapshot.events,
		snapshot.is_raw ? "raw records and events" : "events",
		ky_format_bytes(size, snapshot.bytes));
}

static int record_run_take_signal(void *data, const struct signalfd_siginfo *info,
				  struct kymo_error *err)
{
	struct driver *driver = data;

	(void)err;
	if (info->ssi_signo == SIGUSR1) {
		record_run_take_snapshot(driver);
		return KYMO_OK;
	}
	return KY_LOOP_END;
}

static int exit_code(const struct driver *driver)
{
	return driver->ended_by_command ? ky_child_code(&driver->run->command) : KY_EXIT_OK;
}

/* ---- recording ------------------------------------------------------------------------ */

/* All is recorded and the state dump is done: now the command may start, and the duration begins. */
static int record_run_begin(struct driver *driver, struct kymo_error *err)
{
	const struct ky_record_run *run = driver->run;
	int errnum;

	if (run->command.args) {
		errnum = ky_child_release(&driver->run->command);
		/* EPIPE: it has been killed, and the loop is about to take its end. */
		if (errnum && errnum != EPIPE)
			return ky_error_errno(err, errnum, "cannot run '%s'", run->command.args[0]);
	} else if (!run->duration_ns && !run->background.is_wanted && isatty(STDERR_FILENO)) {
		fprintf(stderr,
			run->options.user.overwrite
				? "Recording into memory. Ctrl-C stops the recording and writes "
				  "the trace; kymo snapshot writes a trace at any time.\n"
				: "Recording. Ctrl-C stops.\n");
	}
	ky_loop_set_timer(driver->duration, run->duration_ns);
	return ky_background_begin(&driver->run->background, run->options.log_path) ? KYMO_OK
										    : KY_LOOP_END;
}

static void take_chunks(struct driver *driver)
{
	struct ky_recording_chunk chunk;

	while (ky_recording_take_chunk(driver->recording, &chunk))
		ky_hook_run(&driver->run->hook, driver->loop, chunk.path);
}

static void take_tasks(struct driver *driver)
{
	struct ky_recording_task *task;

	driver->run->tasks.recording = driver->recording;
	while ((task = ky_recording_take_task(driver->recording)))
		ky_tasks_run(&driver->run->tasks, driver->loop, task);
}

static int take_recording(void *data, struct kymo_error *err)
{
	struct driver *driver = data;
	unsigned int found;
	int ret = ky_recording_step(driver->recording, &found, err);

	if (!ret && found & KY_RECORDING_HAS_BEGUN)
		ret = record_run_begin(driver, err);
	if (!ret && found & KY_RECORDING_HAS_CHUNK)
		take_chunks(driver);
	if (!ret && found & KY_RECORDING_HAS_TASK)
		take_tasks(driver);
	return ret < 0 || !(found & KY_RECORDING_ENDS) ? ret : KY_LOOP_END;
}

static int add_sources(struct driver *driver, struct kymo_error *err)
{
	const struct ky_child *command = &driver->run->command;
	int ret = ky_loop_add(driver->loop, ky_recording_fd(driver->recording), take_recording,
			      driver, NULL, err);

	if (!ret)
		ret = ky_loop_add_timer(driver->loop, record_run_end, driver, &driver->duration,
					err);
	if (!ret)
		ret = ky_loop_add_signals(driver->loop, &driver->signals, record_run_take_signal,
					  driver, NULL, err);
	if (!ret && command->pid)
		ret = ky_loop_add_child(driver->loop, command->pid, record_run_take_child, driver,
					NULL, err);
	return ret;
}

static int record_run_record(struct driver *driver, struct kymo_error *err)
{
	const struct ky_child *command = &driver->run->command;
	int ret = KYMO_OK;

	/*
	 * On a machine with more to do than CPUs, a recorder that reads too late loses events. It needs
	 * a few per cent of one; the command, forked before, does not inherit this.
	 */
	(void)setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	if (command->pid)
		ret = ky_recording_choose_child(driver->recording, command->pid, err);
	if (!ret)
		ret = ky_recording_start(driver->recording, err);
	driver->is_started = ret == 0;
	if (!ret)
		ret = add_sources(driver, err);
	return ret ? ret : ky_loop_run(driver->loop, err);
}

/* The exit code of @err. With a column it is about a filter: a mistake of the command line, as it is of kymo print. */
static int record_run_failure(const struct driver *driver, const struct kymo_error *err)
{
	(void)ky_cli_error(err);
	return !driver->is_started && err->code == KYMO_E_INVALID && err->column ? KY_EXIT_USAGE
										 : KY_EXIT_FAIL;
}

/* @ret, @err: what the recording ended with. Returns an exit code. */
static int record_run_finish(struct driver *driver, int ret, struct kymo_error *err)
{
	const struct ky_record_run *run = driver->run;
	struct ky_recording_waiters waiters;
	struct ky_recording_stats stats;
	struct kymo_error next;
	int stopped = ky_recording_stop(driver->recording, &next), closed, code = KY_EXIT_OK;
	bool has_kernel;

	ky_child_end(&driver->run->command);
	ky_hook_finish(&driver->run->hook);
	take_tasks(driver);
	ky_tasks_finish(&driver->run->tasks);
	if (!ret && stopped < 0) {
		ret = stopped;
		*err = next;
	}
	/* What went wrong comes before what was recorded all the same. */
	if (ret < 0)
		code = record_run_failure(driver, err);
	ky_recording_stats(driver->recording, &stats);
	has_kernel = stats.kernel != NULL;
	if (driver->is_started)
		ky_record_summary(run->options.output, &stats, driver->run->command.calls != NULL,
				  !ret);
	ky_recording_take_waiters(driver->recording, &waiters);
	closed = ky_recording_close(driver->recording, &next);
	driver->recording = NULL;
	/* The end of each trace is on its way now. */
	if (closed >= 0 && run->options.store) {
		ky_record_symbols_send(&driver->run->symbols,
				       &(struct ky_symbol_options){.dirs = run->symbol_dirs});
		closed = ky_record_finish_network(run->network.store, &next);
		if (closed >= 0 && driver->is_started)
			ky_record_say_next_there(&run->network, run->options.output,
						 run->options.name ? run->options.name : "kymo",
						 has_kernel);
	}
	if (closed < 0)
		(void)ky_cli_error(&next);
	ky_recording_answer_waiters(&waiters, ret < 0 ? ret : closed, ret < 0 ? err : &next);
	if (ret < 0)
		return code;
	return closed < 0 ? KY_EXIT_FAIL : exit_code(driver);
}

static int open_network(struct ky_record_run *run, struct kymo_error *err)
{
	int ret = ky_record_open_network(&run->network, run->options.output,
					 run->options.name ? run->options.name : "kymo",
					 &run->network.store, err);

	run->options.store = run->network.store;
	if (!ret && run->stores_symbols)
		ky_record_symbols_begin(&run->symbols, &run->options.store);
	return ret;
}

static int run_driver(struct driver *driver)
{
	struct ky_record_run *run = driver->run;
	struct kymo_error err;
	int ret = ky_loop_new(&driver->loop, &err), code;

	if (!ret && ky_record_is_network(run->options.output))
		ret = open_network(run, &err);
	if (!ret)
		ret = ky_recording_open(&run->options, &driver->recording, &err);
	if (ret < 0)
		return record_run_failure(driver, &err);
	/* Before the recording starts threads. */
	code = ky_child_fork(&run->command, &driver->old_mask);
	if (code)
		return code;
	ret = record_run_record(driver, &err);
	return record_run_finish(driver, ret, &err);
}

int ky_record_run(struct ky_record_run *run)
{
	struct driver driver = {.run = run};
	int code;

	sigemptyset(&driver.signals);
	sigaddset(&driver.signals, SIGINT);
	sigaddset(&driver.signals, SIGTERM);
	sigaddset(&driver.signals, SIGHUP);
	sigaddset(&driver.signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &driver.signals, &driver.old_mask);
	/* A reader that goes must not end the recorder in the middle of its work. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)getrlimit(RLIMIT_NOFILE, &run->command.files); /* zeros, if that fails */
	run->hook.mask = run->tasks.mask = driver.old_mask;
	run->tasks.files = run->command.files;
	run->hook.files = run->command.files;
	run->hook.output = run->options.output;
	code = run_driver(&driver);
	ky_child_end(&run->command);
	(void)ky_recording_close(driver.recording, NULL);
	ky_store_free(run->options.store);
	ky_record_symbols_fini(&run->symbols);
	ky_tls_free(run->network.tls);
	ky_loop_free(driver.loop);
	return code;
}
