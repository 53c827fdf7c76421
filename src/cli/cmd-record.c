/* SPDX-License-Identifier: MIT */
/* kymo record: record the kernel, for a time or while a command runs. */
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/command.h"
#include "kernel/catalogue.h"
#include "kernel/convert.h"
#include "record/session.h"

#define DEFAULT_BUFFER_BYTES (4u << 20)
#define MIN_BUFFER_BYTES     (64u << 10)
#define MAX_BUFFER_BYTES     (UINT64_C(64) << 30)

#define RECORDER_NICE -10

/* How long the command may take to end after it was told to. */
#define GRACE_MS 2000

struct options {
	const char *output;
	struct ky_text_list kernel;
	uint64_t duration_ns;
	uint64_t buffer_bytes;
	uint64_t pid;
	const char *context;
	const char *identity;
	const char *clock;
	const char *reader;
};

struct command {
	char **args; /* NULL: none */
	pid_t pid;   /* 0: not running (any more) */
	int go_fd;   /* a byte here starts it */
	int fail_fd; /* its errno, when it cannot be executed */
	bool exited;
	int status; /* of waitpid() */
};

struct run {
	struct ky_session_options session_options;
	struct ky_session *session;
	struct command command;
	const struct options *options;
	int signal_fd, timer_fd;
	sigset_t old_mask;
	bool started;
	bool ended_by_command;
	char default_output[64];
};

/* ---- options -------------------------------------------------------------------------- */

static void defaults(void *data)
{
	struct options *options = data;

	options->buffer_bytes = DEFAULT_BUFFER_BYTES;
	options->identity = "lttng";
	options->clock = "auto";
	options->reader = "auto";
}

static int parse_context(const struct ky_command *command, const char *list, unsigned int *context)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} names[] = {
		{"pid", KY_CONTEXT_PID},
		{"ppid", KY_CONTEXT_PPID},
		{"procname", KY_CONTEXT_PROCNAME},
		{"prio", KY_CONTEXT_PRIO},
		{"tid", 0}, /* there always */
	};

	while (list && *list) {
		size_t len = strcspn(list, ","), i;

		for (i = 0; i < 5; i++)
			if (strlen(names[i].name) == len && !strncmp(names[i].name, list, len))
				break;
		if (i == 5)
			return ky_cli_usage(
				command, "--context: '%.*s' is none of pid, ppid, procname, prio",
				(int)len, list);
		*context |= names[i].bit;
		list += len + (list[len] == ',');
	}
	return KY_EXIT_OK;
}

static int parse_clock(const struct ky_command *command, const char *name,
		       enum ky_os_clock_kind *kind)
{
	if (strcmp(name, "auto") == 0)
		*kind = KY_OS_CLOCK_AUTO;
	else if (strcmp(name, "tsc") == 0)
		*kind = KY_OS_CLOCK_TSC;
	else if (strcmp(name, "monotonic") == 0)
		*kind = KY_OS_CLOCK_MONOTONIC;
	else
		return ky_cli_usage(command, "--clock: '%s' is none of auto, tsc, monotonic", name);
	return KY_EXIT_OK;
}

static int parse_reader(const struct ky_command *command, const char *name, enum ky_ring_way *way)
{
	static const char *const names[] = {
		[KY_RING_AUTO] = "auto",
		[KY_RING_MMAP] = "mmap",
		[KY_RING_SPLICE] = "splice",
		[KY_RING_READ] = "read",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*way = (enum ky_ring_way)i;
			return KY_EXIT_OK;
		}
	}
	return ky_cli_usage(command, "--reader: '%s' is none of auto, mmap, splice, read", name);
}

static int check_options(const struct ky_command *command, struct run *run)
{
	const struct options *options = run->options;
	struct ky_session_options *to = &run->session_options;
	int code;

	if (strcmp(options->identity, "lttng") != 0 && strcmp(options->identity, "kymo") != 0)
		return ky_cli_usage(command, "--identity: '%s' is neither lttng nor kymo",
				    options->identity);
	if (options->pid > INT32_MAX)
		return ky_cli_usage(command, "--pid: %" PRIu64 " is no process id", options->pid);
	if (options->buffer_bytes < MIN_BUFFER_BYTES || options->buffer_bytes > MAX_BUFFER_BYTES)
		return ky_cli_usage(command, "--buffer-size: from 64k to 64G for each CPU");
	to->identity_kymo = strcmp(options->identity, "kymo") == 0;
	to->pid = (int32_t)options->pid;
	to->buffer_bytes = options->buffer_bytes;
	to->log = &ky_cli_log;
	code = parse_context(command, options->context, &to->context);
	if (!code)
		code = parse_clock(command, options->clock, &to->clock);
	return code ? code : parse_reader(command, options->reader, &to->reader);
}

/* kymo-20261121-073000, and -2, -3 when that exists. */
static void choose_output(struct run *run)
{
	time_t now = time(NULL);
	size_t len;
	struct tm tm;

	run->session_options.output = run->options->output;
	if (run->options->output)
		return;
	len = strftime(run->default_output, sizeof(run->default_output), "kymo-%Y%m%d-%H%M%S",
		       localtime_r(&now, &tm));
	for (int i = 2; access(run->default_output, F_OK) == 0 && i < 100; i++)
		snprintf(run->default_output + len, sizeof(run->default_output) - len, "-%d", i);
	run->session_options.output = run->default_output;
}

/* -k may be given again: one list. */
static char *join_events(const struct ky_text_list *list)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t i = 0; i < list->len; i++) {
		if (i)
			ky_strbuf_addc(&text, ',');
		ky_strbuf_adds(&text, list->items[i]);
	}
	return ky_strbuf_take(&text);
}

/* ---- the command ---------------------------------------------------------------------- */

/* A mistyped command should not cost a recording: look for it as execvp() will. */
static int check_command(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? 0 : errno;
	for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':')) {
		struct stat st;

		path += *path == ':';
		snprintf(file, sizeof(file), "%.*s/%s", (int)strcspn(path, ":"), path, name);
		if (access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
	}
	return ENOENT;
}

static int command_error(const char *name, int errnum)
{
	struct kymo_error err;

	ky_error_errno(&err, errnum, "cannot run '%s'", name);
	if (errnum == ENOENT)
		ky_error_hint(&err, "check the name, or give its path");
	return ky_cli_error(&err);
}

/* In the child: wait for the word to go, become the command. */
static void __attribute__((noreturn))
become(const struct command *command, int go_fd, int fail_fd, const sigset_t *mask)
{
	char go;
	int errnum;

	sigprocmask(SIG_SETMASK, mask, NULL);
	/* End of file: the recorder gave up before it began. */
	if (read(go_fd, &go, 1) != 1)
		_exit(127);
	execvp(command->args[0], command->args);
	errnum = errno;
	if (write(fail_fd, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

static int fork_command(struct run *run)
{
	struct command *command = &run->command;
	int go[2], fail[2];

	if (!command->args)
		return KY_EXIT_OK;
	if (pipe2(go, O_CLOEXEC) < 0)
		return command_error(command->args[0], errno);
	if (pipe2(fail, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return command_error(command->args[0], errno);
	}
	command->pid = fork();
	if (command->pid == 0) {
		close(go[1]);
		become(command, go[0], fail[1], &run->old_mask);
	}
	close(go[0]);
	close(fail[1]);
	command->go_fd = go[1];
	command->fail_fd = fail[0];
	if (command->pid < 0) {
		command->pid = 0;
		return command_error(command->args[0], errno);
	}
	return KY_EXIT_OK;
}

/* Let it go. Returns an errno when it cannot be executed. */
static int release_command(struct command *command)
{
	int errnum = 0;

	if (write(command->go_fd, "!", 1) < 0)
		return errno;
	/* Either exec closes the other end, or the reason comes. */
	while (read(command->fail_fd, &errnum, sizeof(errnum)) < 0 && errno == EINTR)
		;
	return errnum;
}

static void reap_command(struct command *command, int flags)
{
	pid_t pid;

	if (!command->pid)
		return;
	do {
		pid = waitpid(command->pid, &command->status, flags);
	} while (pid < 0 && errno == EINTR);
	if (pid == command->pid) {
		command->exited = true;
		command->pid = 0;
	}
}

/* The recording is over: the command ends too, unless it ignores being told. */
static void end_command(struct command *command)
{
	pid_t pid = command->pid;

	if (command->go_fd >= 0)
		close(command->go_fd);
	if (command->fail_fd >= 0)
		close(command->fail_fd);
	command->go_fd = command->fail_fd = -1;
	reap_command(command, WNOHANG);
	if (!command->pid)
		return;
	kill(pid, SIGTERM);
	for (int i = 0; i < GRACE_MS / 10 && command->pid; i++) {
		usleep(10000);
		reap_command(command, WNOHANG);
	}
	if (command->pid)
		fprintf(stderr,
			"kymo: warning: the command (process %d) ignores SIGTERM and goes on\n",
			(int)pid);
}

static int exit_code(const struct run *run)
{
	int status = run->command.status;

	if (!run->ended_by_command)
		return KY_EXIT_OK;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- recording ------------------------------------------------------------------------ */

static int open_fds(struct run *run, struct kymo_error *err)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &run->old_mask);
	run->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (run->signal_fd < 0 || run->timer_fd < 0)
		return ky_error_errno(err, errno, "cannot set up signals and timers");
	return KYMO_OK;
}

static void start_timer(const struct run *run)
{
	uint64_t ns = run->options->duration_ns;
	struct itimerspec spec = {.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

	if (ns)
		timerfd_settime(run->timer_fd, 0, &spec, NULL);
}

/* Returns whether it is time to stop. */
static bool take_signals(struct run *run)
{
	struct signalfd_siginfo info;
	bool told = false;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap_command(&run->command, WNOHANG);
		else
			told = true;
	}
	/* Ctrl-C goes to the command too: that it ends then is not its own doing. */
	run->ended_by_command = run->command.exited && !told;
	return run->command.exited || told;
}

/* The state dump is done: now the command may start, and time runs. */
static int begin(struct run *run, struct kymo_error *err)
{
	int errnum;

	if (run->command.args) {
		errnum = release_command(&run->command);
		if (errnum)
			return ky_error_errno(err, errnum, "cannot run '%s'", run->command.args[0]);
	} else if (!run->options->duration_ns && isatty(STDERR_FILENO)) {
		fprintf(stderr, "Recording. Ctrl-C stops.\n");
	}
	start_timer(run);
	return KYMO_OK;
}

static int record(struct run *run, struct kymo_error *err)
{
	int fds[] = {run->signal_fd, run->timer_fd, ky_session_dump_fd(run->session)};
	int n_fds = 3, which, ret = KYMO_OK;

	while (!ret) {
		ret = ky_session_run(run->session, fds, n_fds, &which, err);
		if (ret < 0 || which == 1)
			break;
		if (which == 0 && take_signals(run))
			break;
		if (which == 2) {
			n_fds = 2;
			ret = begin(run, err);
		}
	}
	return ret;
}

/* ---- what is said at the end ---------------------------------------------------------- */

static void print_losses(const struct ky_session_stats *stats, const struct options *options)
{
	char size[32];

	if (stats->bad)
		fprintf(stderr,
			"kymo: warning: %" PRIu64 " records of the kernel could not be read\n",
			stats->bad);
	if (!stats->lost)
		return;
	fprintf(stderr,
		"kymo: warning: %" PRIu64 " events were lost: the rings (%s per CPU) were "
		"full; give a larger --buffer-size, or fewer events with --kernel\n",
		stats->lost, ky_format_bytes(size, options->buffer_bytes));
}

static void print_summary(const struct run *run)
{
	const struct ky_session_stats *stats = ky_session_stats(run->session);
	const char *output = run->session_options.output;
	char size[32], time[32];

	fprintf(stderr, "Recorded %" PRIu64 " events, %s, in %s; %" PRIu64 " lost.\n",
		stats->events + stats->dump_events, ky_format_bytes(size, stats->bytes),
		ky_format_duration(time, stats->duration_ns), stats->lost);
	fprintf(stderr, "%8s %14s %14s\n", "CPU", "events", "lost");
	for (uint32_t i = 0; i < stats->n_cpus; i++)
		fprintf(stderr, "%8" PRIu32 " %14" PRIu64 " %14" PRIu64 "\n", stats->cpus[i].cpu,
			stats->cpus[i].events, stats->cpus[i].lost);
	fprintf(stderr, "%8s %14" PRIu64 "\n", "state", stats->dump_events);
	print_losses(stats, run->options);
	fprintf(stderr,
		"Trace: %s\n"
		"Next:  kymo info %s\n"
		"       kymo report cpu %s\n"
		"       kymo print %s\n",
		output, output, output, output);
}

static int finish(struct run *run, int ret, struct kymo_error *err)
{
	struct kymo_error stop_err;
	int stopped = ky_session_stop(run->session, &stop_err);

	end_command(&run->command);
	if (ret == 0 && stopped < 0) {
		ret = stopped;
		*err = stop_err;
	}
	if (run->started)
		print_summary(run);
	stopped = ky_session_close(run->session, &stop_err);
	run->session = NULL;
	if (ret == 0 && stopped < 0) {
		ret = stopped;
		*err = stop_err;
	}
	return ret < 0 ? ky_cli_error(err) : exit_code(run);
}

static int run_session(struct run *run)
{
	struct kymo_error err;
	int ret = open_fds(run, &err), code;

	if (!ret)
		ret = ky_session_open(&run->session_options, &run->session, &err);
	if (ret < 0)
		return ky_cli_error(&err);
	/* Before the session starts threads. */
	code = fork_command(run);
	if (code)
		return code;
	/*
	 * On a machine with more to do than CPUs, who reads too late loses events. The recorder needs
	 * a few per cent of one; the command, forked before, does not inherit this.
	 */
	(void)setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	ret = ky_session_start(run->session, &err);
	run->started = ret == 0;
	if (!ret)
		ret = record(run, &err);
	return finish(run, ret, &err);
}

static int run_record(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct run run = {.options = data,
			  .signal_fd = -1,
			  .timer_fd = -1,
			  .command = {.go_fd = -1, .fail_fd = -1}};
	char *events = NULL;
	int code = check_options(command, &run), errnum;

	if (code)
		return code;
	if (n_args) {
		run.command.args = args;
		errnum = check_command(args[0]);
		if (errnum)
			return command_error(args[0], errnum);
	}
	choose_output(&run);
	if (run.options->kernel.len)
		run.session_options.events = events = join_events(&run.options->kernel);
	code = run_session(&run);
	end_command(&run.command);
	(void)ky_session_close(run.session, NULL);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	if (run.timer_fd >= 0)
		close(run.timer_fd);
	free(events);
	return code;
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Directory to create for the trace; its parent must exist. Default: kymo-DATE-TIME in the "
	 "current directory.",
	 offsetof(struct options, output), NULL},
	{"kernel", 'k', KY_OPTION_LIST, "EVENTS",
	 "Which kernel events: names or globs, separated by commas, as in the trace (sched_switch, "
	 "syscall_entry_open*) or in tracefs (sched:sched_switch, irq); 'syscalls' is all system calls; "
	 "'!' before a pattern takes its events out again. May be given again. Default: what the "
	 "reports need.",
	 offsetof(struct options, kernel), NULL},
	{"duration", 'd', KY_OPTION_DURATION, "TIME",
	 "Stop after this time: 5s, 500ms, 2min. Default: until Ctrl-C, or until the command ends.",
	 offsetof(struct options, duration_ns), NULL},
	{"buffer-size", 'b', KY_OPTION_SIZE, "SIZE",
	 "Size of the kernel's ring buffer on each CPU. Default: 4M. When events come faster than they "
	 "can be written for so long that it fills up, the oldest are lost, and counted.",
	 offsetof(struct options, buffer_bytes), NULL},
	{"pid", 'p', KY_OPTION_U64, "PID",
	 "Record only what happens in this process, its threads, and what they start.",
	 offsetof(struct options, pid), NULL},
	{"context", 'c', KY_OPTION_TEXT, "LIST",
	 "Fields to add to every event besides its tid: pid, ppid, procname, prio, separated by commas.",
	 offsetof(struct options, context), "pid ppid procname prio"},
	{"identity", 0, KY_OPTION_TEXT, "NAME",
	 "Which tracer the trace says it is from: lttng (default), so that every reader of LTTng's "
	 "kernel traces knows its events; or kymo.",
	 offsetof(struct options, identity), "lttng kymo"},
	{"clock", 0, KY_OPTION_TEXT, "NAME",
	 "Clock of the trace: tsc, monotonic, or auto (default): tsc where it is sound.",
	 offsetof(struct options, clock), "auto tsc monotonic"},
	{"reader", 0, KY_OPTION_TEXT, "WAY",
	 "How the kernel's ring buffers are read: splice moves whole pages out, mmap looks at them where "
	 "they are, read copies. Default: auto, which takes what is cheapest for each buffer as things "
	 "stand, and what the kernel has. The trace is the same.",
	 offsetof(struct options, reader), "auto mmap splice read"},
	{0},
};

const struct ky_command ky_command_record = {
	.name = "record",
	.summary = "record this machine's kernel into a trace",
	.usage = "[OPTIONS] [--] [COMMAND [ARGS...]]",
	.description =
		"Records what the kernel does on all CPUs - scheduling, interrupts, block and network "
		"input and output, page allocation, and all system calls - into a CTF trace with LTTng's "
		"event and field names, until Ctrl-C, for a time, or while COMMAND runs. The trace begins "
		"with the state of the machine: processes, open files, devices.\n\n"
		"It needs root, and a kernel with tracefs; no kernel module. It works in a tracefs instance of "
		"its own, so it disturbs no other tracer. The instance is removed at the end; what a killed "
		"recorder left is removed by the next one.\n\n"
		"COMMAND starts once recording is on and the state is written, with the rights of kymo itself. "
		"The whole machine is recorded, not only COMMAND. The exit code is that of COMMAND "
		"(128 + N when signal N killed it). When recording ends first, by --duration or Ctrl-C, "
		"COMMAND is sent SIGTERM and the exit code is 0. It is 1 when the recording failed.\n\n"
		"The recorder's own system calls are left out; its threads do appear in sched_switch and the "
		"like, so that the CPUs' time adds up.",
	.examples = "# the whole machine, until Ctrl-C\nkymo record\n\n"
		    "# while a command runs\nkymo record -o build-trace -- make -j8\n\n"
		    "# five seconds of scheduling and of opening files\n"
		    "kymo record -k 'sched_*,syscall_*_open*' --duration 5s\n\n"
		    "# one process, with its threads' names on each event\n"
		    "kymo record --pid 4711 --context pid,procname --duration 10s",
	.see_also = "list info print report doctor",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.defaults = defaults,
	.min_args = 0,
	.max_args = -1,
	.raw_args = true,
	.run = run_record,
};
