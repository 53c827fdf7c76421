/* SPDX-License-Identifier: MIT */
/* kymo record: record the kernel and programs, for a time or while a command runs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "cli/options/user-options.h"
#include "cli/terminal/command.h"
#include "cli/reading/symbol-store.h"
#include "cli/daemon/policy-client.h"
#include "cli/recording/record-network.h"
#include "cli/recording/calls-options.h"
#include "kernel/probe/probe-file.h"
#include "cli/recording/record-options.h"
#include "cli/recording/recordings.h"

#define OUTPUT_BYTES 128

/*
 * Make kymo-20261121-073000, or -2, -3 when that exists: only the process that makes a directory has its name. The recording
 * meets an error again when it makes its output.
 */
static void make_default_output(const char *prefix, char name[OUTPUT_BYTES])
{
	time_t now = time(NULL);
	struct tm tm;
	size_t len = (size_t)snprintf(name, OUTPUT_BYTES, "%.64s-", prefix);

	len += strftime(name + len, OUTPUT_BYTES - len, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	for (int i = 2; mkdir(name, 0700) < 0 && errno == EEXIST && i < INT_MAX; i++)
		snprintf(name + len, OUTPUT_BYTES - len, "-%d", i);
}

/* The process that the user started: the recording goes on in another one. */
static void cmd_record_say_background(const struct ky_record_run *run)
{
	const char *name = run->options.name ? run->options.name : run->options.output;

	fputs("Recording in the background: ", stderr);
	ky_cli_put_text(stderr, name);
	fputs("\nTrace: ", stderr);
	ky_cli_put_text(stderr, run->options.output);
	fputs("\nNext:  kymo sessions\n       kymo stop ", stderr);
	ky_cli_put_text(stderr, name);
	fputc('\n', stderr);
}

/* Records; then what the recorded addresses need is still there. Without it, the trace is complete nevertheless. */
static int record_and_store(struct ky_record_run *run)
{
	const struct ky_symbol_options symbols = {.dirs = run->symbol_dirs};
	int code = ky_record_run(run);
	struct kymo_error err;

	if (!run->stores_symbols || ky_record_is_network(run->options.output) ||
	    access(run->options.output, W_OK) != 0)
		return code;
	ky_error_clear(&err);
	if (ky_cli_symbols_store(run->options.output, &symbols, false, &err) < 0)
		ky_log_warning(&ky_cli_log, "no symbols were stored: %s", err.message);
	return code;
}

/* @run has an output. Returns an exit code. */
static int run_there(struct ky_record_run *run)
{
	char log_path[PATH_MAX];
	int code;

	if (!run->background.is_wanted)
		return record_and_store(run);
	/* There is no directory here for a recording that goes to a relay. */
	if (ky_record_is_network(run->options.output))
		snprintf(log_path, sizeof(log_path), "%s.log",
			 run->options.name ? run->options.name : "kymo");
	else
		snprintf(log_path, sizeof(log_path), "%s/recorder.log", run->options.output);
	run->options.log_path = log_path;
	code = ky_background_fork(&run->background);
	if (code < 0)
		return record_and_store(run);
	if (code == KY_EXIT_OK)
		cmd_record_say_background(run);
	return code;
}

static bool chooses_anybody(const struct ky_record_options *options)
{
	return options->pid.len || options->tid.len || options->uid || options->cgroups.len ||
	       options->containers.len;
}

/* Whether nothing else is given than what a policy leaves to its user. */
static bool fits_policy(const struct ky_record_options *options)
{
	struct ky_record_options rest, none;
	/* The structs began as zeros, so their padding is equal, too. */
	const void *bytes = &rest, *none_bytes = &none;

	memset(&none, 0, sizeof(none));
	memcpy(&rest, options, sizeof(rest));
	ky_record_defaults(&none);
	rest.output = rest.policy = rest.uid = NULL;
	rest.background = false;
	rest.duration_ns = none.duration_ns;
	return memcmp(bytes, none_bytes, sizeof(rest)) == 0;
}

static int run_policy(const struct ky_command *command, const struct ky_record_options *options,
		      int n_args)
{
	struct ky_policy_request request = {
		.policy = options->policy,
		.output = options->output,
		.own = options->uid,
		.in_background = options->background,
	};
	struct ky_record_options none;
	struct kymo_error err;
	uint32_t uid = 0;

	if (n_args || !fits_policy(options))
		return ky_cli_usage(
			command,
			"--policy: only --output, --duration, --background and --uid go with it; the "
			"policy has the rest");
	if (options->uid && (ky_cli_parse_user(options->uid, &uid) < 0 || uid != geteuid()))
		return ky_cli_usage(command, "--policy: --uid takes only your own name");
	if (options->background && options->output)
		return ky_cli_usage(
			command,
			"--policy: with --background, 'kymo stop --output DIR' has the directory");
	ky_record_defaults(&none);
	if (!options->duration_ns)
		return ky_cli_usage(command,
				    "--duration: the time must be longer than 0: 5s, 500ms");
	if (options->duration_ns != none.duration_ns)
		request.duration_ns = options->duration_ns;
	return ky_policy_record(&request, &err) < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static int check_and_run(const struct ky_command *command, const struct ky_record_options *options,
			 struct ky_record_run *run, int n_args, char **args)
{
	char name[OUTPUT_BYTES];
	int code = ky_record_check_options(command, options, run), errnum;

	if (code)
		return code;
	if (run->options.kernel.threads.follow && !n_args && !chooses_anybody(options))
		return ky_cli_usage(command,
				    "--follow needs a COMMAND, --pid, --tid, --uid, --cgroup or "
				    "--container");
	if (n_args) {
		run->command.args = args;
		errnum = ky_child_check(args[0]);
		if (errnum)
			return ky_child_error(args[0], errnum);
	}
	run->symbol_dirs = options->symbol_dirs;
	ky_probe_file_set_dirs((const char *const *)options->symbol_dirs.items,
			       options->symbol_dirs.len);
	run->stores_symbols =
		!options->raw && !options->no_symbols && (options->symbols || options->samples.len);
	if (!options->output)
		make_default_output(options->name ? options->name : "kymo", name);
	run->options.output = options->output ? options->output : name;
	run->hook.stores_symbols =
		run->stores_symbols && !ky_record_is_network(run->options.output);
	run->hook.symbol_dirs = &run->symbol_dirs;
	code = run_there(run);
	/* Empty: nothing was recorded. */
	if (!options->output)
		(void)rmdir(name);
	return code;
}

static int run_record(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct ky_record_options *options = data;
	struct ky_record_run run = KY_RECORD_RUN_INIT;
	struct ky_calls_options calls;
	int code;

	if (options->policy)
		return run_policy(command, options, n_args);
	code = ky_calls_options_init(command, options, n_args > 0, &calls);
	ky_calls_options_child(&calls, &run.command);
	if (!code)
		code = check_and_run(command, &calls.options, &run, n_args, args);
	ky_calls_options_fini(&calls);
	ky_trigger_rules_fini(&run.triggers);
	ky_group_options_fini(&run.groups);
	return code;
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Directory to create for the trace; its parent must exist. kymo://HOST[:PORT]/NAME: a relay (kymo relay). "
	 "ssh://HOST/DIR: a directory on another machine, through ssh. Default: kymo-DATE-TIME in the current directory.",
	 offsetof(struct ky_record_options, output), NULL},
	{"name", 'N', KY_OPTION_TEXT, "NAME",
	 "Name of the recording, for kymo sessions, stop, ctl and snapshot: up to 64 letters, digits, '.', '_' and '-'. "
	 "Two recordings of one user cannot have the same name. With a name, the default for --output is NAME-DATE-TIME.",
	 offsetof(struct ky_record_options, name), NULL},
	{"background", 0, KY_OPTION_FLAG, NULL,
	 "Return once the recording has started. The recording ends at 'kymo stop', after its "
	 "duration or when COMMAND ends. The recorder writes its messages to the file recorder.log "
	 "in the output directory.",
	 offsetof(struct ky_record_options, background), NULL},
	{"profile", 0, KY_OPTION_PROFILE, "FILE",
	 "Take options from FILE: one per line, without dashes (kernel=sched_switch); a comment "
	 "begins with '#'. An option after --profile on the command line replaces the file's "
	 "value; an option that takes a list adds to the file's list.",
	 0, NULL},
	{"policy", 0, KY_OPTION_TEXT, "NAME",
	 "Record what the policy NAME says, through kymo daemon: for members of the groups that root names in the policy, without "
	 "being root. The other options are only --output, --duration, --background and --uid with your own name, which "
	 "leaves out the processes of others. kymo sessions --policies shows your policies.",
	 offsetof(struct ky_record_options, policy), NULL},
	{"ready-fd", 0, KY_OPTION_U64, "N",
	 "Write one byte to the open descriptor N when the recording has started, and close it: for programs that start "
	 "recorders.",
	 offsetof(struct ky_record_options, ready_fd), NULL},
	{"save", 0, KY_OPTION_SAVE, "FILE",
	 "Write the options of this command line to FILE, as a profile for --profile. The "
	 "recording starts as usual.",
	 offsetof(struct ky_record_options, save), NULL},
	{"calls", 0, KY_OPTION_TEXT, "PATTERN",
	 "Record the calls of the functions of COMMAND that match PATTERN, for 'kymo report calls': '*' all of them; "
	 "'parse*,shop::*,!*log*' some, '!' leaves out. COMMAND must be compiled with -pg, -pg -mfentry, "
	 "-fpatchable-function-entry=5 or -finstrument-functions; it needs no other change. Adds libraries to LD_PRELOAD, the context "
	 "vtid, and --symbols. See docs/calls.md.",
	 offsetof(struct ky_record_options, calls), NULL},
	{"symbols", 0, KY_OPTION_FLAG, NULL,
	 "When the recording ends, store the functions and lines of recorded addresses (-c ip, call stacks, samples) in "
	 "the directory symbols of the trace, so that they are known on other machines and later. Default with --sample and --calls. "
	 "'kymo symbols add' does it later, for a trace on this machine. Each chunk of a rotation has its own. A recording at a relay gets its symbols, too; until "
	 "the end, the recorder keeps a copy of the trace, up to 256 MiB, in TMPDIR, /var/tmp or /tmp.",
	 offsetof(struct ky_record_options, symbols), NULL},
	{"symbol-dir", 0, KY_OPTION_LIST, "DIR",
	 "Look in DIR first for debug information: BUILD-ID.kdi (kymo debug-info make), and debug files as in /usr/lib/debug. "
	 "--probe takes names of parameters from there, and --symbols the functions. May be given several times. "
	 "Kymo always looks in /usr/lib/debug/kymo for BUILD-ID.kdi.",
	 offsetof(struct ky_record_options, symbol_dirs), NULL},
	{"no-symbols", 0, KY_OPTION_FLAG, NULL, "Do not store them with --sample either.",
	 offsetof(struct ky_record_options, no_symbols), NULL},
	{"kernel", 'k', KY_OPTION_LIST, "EVENTS",
	 "Kernel events to record: names or globs, separated by commas, as in the trace "
	 "(sched_switch, syscall_entry_open*) or in tracefs (sched:sched_switch, irq). 'syscalls' "
	 "selects all system calls, 'syscall:open*' entry and exit of the matching calls, "
	 "'compat_syscall_*' the calls of 32-bit programs, 'syscall:unknown' the calls that the "
	 "kernel does not know. '!' before a pattern excludes its events. 'EVENTS if EXPR' records "
	 "only the events for which EXPR is true (docs/filter.md); the kernel evaluates as much of "
	 "EXPR as it can. May be given again. Default, with the name 'default': the events that "
	 "the reports need; with --user, none.",
	 offsetof(struct ky_record_options, kernel), NULL},
	{"user", 'u', KY_OPTION_LIST, "PATTERN",
	 "Record events of programs that are built with libkymo-trace: PROVIDER:NAME, where '*' "
	 "matches any characters. May be given again. Running programs join the recording; a "
	 "program that starts later joins it before main().",
	 offsetof(struct ky_record_options, user), NULL},
	{"exclude", 0, KY_OPTION_LIST, "PATTERN",
	 "Exclude the events that match this pattern: events of the kernel, of programs, and of "
	 "their state dumps (lttng_statedump_*, lttng_ust_statedump:*). May be given again.",
	 offsetof(struct ky_record_options, exclude), NULL},
	{"loglevel", 0, KY_OPTION_TEXT, "LEVEL",
	 "Record only the programs' events with this log level: INFO (that level), INFO.. (INFO "
	 "and more severe levels), DEBUG_LINE..INFO (a range).",
	 offsetof(struct ky_record_options, log_level), KY_CLI_LOG_LEVELS},
	{"filter", 0, KY_OPTION_TEXT, "EXPR",
	 "Record only the programs' events for which EXPR is true. The program evaluates EXPR "
	 "before it records the event. See docs/filter.md; $ctx.NAME is any context field, with or "
	 "without --context.",
	 offsetof(struct ky_record_options, filter), NULL},
	{"comm", 0, KY_OPTION_TEXT, "NAME",
	 "Record only programs with this name (its first 15 characters). Of the kernel, record the "
	 "events in threads with this name and the events about them (such as their wakeups).",
	 offsetof(struct ky_record_options, comm), NULL},
	{"uid", 0, KY_OPTION_TEXT, "USER",
	 "Record only programs of this user, given by ID or name. Of the kernel, record the events "
	 "in processes while their real uid is this user's. The recorder sees a change of the uid "
	 "within a tenth of a second, and misses shorter ones; 'EVENTS if $ctx.uid == UID' with "
	 "--context uid is exact. Default: for root, all users; else your own programs.",
	 offsetof(struct ky_record_options, uid), NULL},
	{"duration", 'd', KY_OPTION_DURATION, "TIME",
	 "Stop after this time: 5s, 500ms, 2min. Default: at Ctrl-C, or when COMMAND ends.",
	 offsetof(struct ky_record_options, duration_ns), NULL},
	{"buffer-size", 'b', KY_OPTION_SIZE, "SIZE",
	 "Size of the ring buffer of each CPU, in the kernel and in each program. Default: 4M. "
	 "When a buffer is full because the recorder is too slow, new events are lost, and counted.",
	 offsetof(struct ky_record_options, buffer_bytes), NULL},
	{"statedump", 0, KY_OPTION_TEXT, "WHAT",
	 "Content of the kernel's state dump: needed (default): what the recorded events refer to "
	 "(file descriptors for system calls that use them, block devices for block events, ...), "
	 "for the recorded processes; all: the whole machine; none. --exclude 'lttng_statedump_*' "
	 "leaves out single events of the state dump. Each snapshot of a flight recorder has a new "
	 "state dump.",
	 offsetof(struct ky_record_options, statedump), "needed all none"},
	{"maps", 0, KY_OPTION_FLAG, NULL,
	 "Add the mappings of each process to the kernel's state dump, with the build IDs of the "
	 "files, so that readers can resolve addresses later.",
	 offsetof(struct ky_record_options, maps), NULL},
	{"raw", 0, KY_OPTION_FLAG, NULL,
	 "Disturb the machine as little as possible: the recorder writes the kernel's pages to "
	 "disk unchanged. kymo convert, print and other commands convert the pages when they read "
	 "them. The recorder counts records, and not all records are events: kymo convert prints "
	 "how many it leaves out. With --overwrite, the recorder reads the kernel's buffers only "
	 "for a snapshot, and a snapshot stops the recording for some milliseconds.",
	 offsetof(struct ky_record_options, raw), NULL},
	{"overwrite", 0, KY_OPTION_FLAG, NULL,
	 "Flight recorder: record into memory, where new events overwrite the oldest. The recorder "
	 "writes the buffers at the end, and for each kymo snapshot or signal USR1. --buffer-size "
	 "sets how much the memory holds.",
	 offsetof(struct ky_record_options, overwrite), NULL},
	{"group", 0, KY_OPTION_LIST, "NAME:SIZE[:overwrite]:EVENTS",
	 "Record these events into buffers of their own, of SIZE for each CPU, so that frequent events do not push them out. EVENTS "
	 "is a list as for --kernel, with a filter or none: rare:1M:sched_process_exec; or user: and patterns as for --user: "
	 "orders:1M:user:shop:order_*,shop:refund if amount > 100. Kernel events are streams NAME_0, NAME_1 and so on of the "
	 "kernel's trace; events of a program are a trace of their own, OUT/ust/pid/PROGRAM-PID-DATE-NAME. With overwrite, the "
	 "newest events stay in memory until kymo snapshot or the end. May be given again.",
	 offsetof(struct ky_record_options, groups), NULL},
	{"buffers", 0, KY_OPTION_TEXT, "process|user",
	 "Whose events lie in one buffer and one trace. process (the default): each program has its own, OUT/ust/pid/NAME-PID-DATE. "
	 "user: all programs of a user share one, OUT/ust/uid/UID/64-bit, which takes less room with many short programs. Each "
	 "event then has the context fields vpid and vtid, and each program begins with lttng_ust_statedump:procname.",
	 offsetof(struct ky_record_options, buffers), "process user"},
	{"when-full", 0, KY_OPTION_TEXT, "discard|block[:TIME]",
	 "What a program does when its buffer is full. discard (the default): it loses the event, and counts it. block: it waits "
	 "until the recorder has read a part of the buffer, and loses nothing. With a TIME (block:10ms), a thread waits at most "
	 "that long for an event, and then discards it; without, as long as the recorder lives. Events of the kernel cannot "
	 "wait: the kernel discards them in any case.",
	 offsetof(struct ky_record_options, when_full), NULL},
	{"rotate-size", 0, KY_OPTION_SIZE, "SIZE",
	 "Begin a new chunk when the present one has this size: 1G. The complete chunk moves to OUT/archives/, and every "
	 "reader opens it as a trace of its own. A chunk can be larger by what is recorded in a twentieth of a second.",
	 offsetof(struct ky_record_options, rotate_bytes), NULL},
	{"rotate-every", 0, KY_OPTION_DURATION, "TIME",
	 "Begin a new chunk after this time: 10min. kymo rotate begins one at any time.",
	 offsetof(struct ky_record_options, rotate_ns), NULL},
	{"keep", 0, KY_OPTION_U64, "N",
	 "Keep the N newest complete chunks, and remove older ones. Default: keep all.",
	 offsetof(struct ky_record_options, keep), NULL},
	{"keep-size", 0, KY_OPTION_SIZE, "SIZE",
	 "Keep the newest complete chunks that have this size together, and remove older ones.",
	 offsetof(struct ky_record_options, keep_chunk_bytes), NULL},
	{"keep-for", 0, KY_OPTION_DURATION, "TIME",
	 "At each rotation, remove chunks that ended longer ago than this time: 2d.",
	 offsetof(struct ky_record_options, keep_ns), NULL},
	{"on-rotate", 0, KY_OPTION_TEXT, "COMMAND",
	 "Run COMMAND with sh -c after each rotation. The environment variable KYMO_CHUNK has the path of the chunk, "
	 "KYMO_RECORDING that of the recording. One command runs at a time, in the order of the chunks.",
	 offsetof(struct ky_record_options, on_rotate), NULL},
	KY_OPTION_WHEN(struct ky_record_options, triggers),
	KY_OPTION_DO(struct ky_record_options, triggers),
	{"relay-key", 0, KY_OPTION_TEXT, "FILE",
	 "With -o kymo://HOST/NAME: the relay's key, which kymo relay --init has made, for TLS. Default for other machines: "
	 "~/.config/kymo/relay-key.",
	 offsetof(struct ky_record_options, relay_key), NULL},
	{"insecure", 0, KY_OPTION_FLAG, NULL,
	 "With -o kymo://HOST/NAME: send the recording to another machine without encryption, to a relay without a key.",
	 offsetof(struct ky_record_options, insecure), NULL},
	{"relay-wait", 0, KY_OPTION_DURATION, "TIME",
	 "With -o kymo:// or ssh://: at the start, wait so long for the answer of the relay, and for a relay that does not run "
	 "yet. Default: 30s for a relay that runs, and no time for another (ssh: 60s).",
	 offsetof(struct ky_record_options, relay_wait_ns), NULL},
	{"spill", 0, KY_OPTION_TEXT, "SIZE[:DIR]",
	 "With -o kymo:// or ssh://: while the relay is away or slow and 64 MiB wait in memory, up to SIZE more wait in a file "
	 "without a name in DIR (default: $TMPDIR or /var/tmp). Without it, events then stay in the buffers, which count "
	 "what they lose.",
	 offsetof(struct ky_record_options, spill), NULL},
	{"shm-path", 0, KY_OPTION_TEXT, "DIR",
	 "Put the ring buffers of programs into files below DIR (created if missing) instead of "
	 "memory. On a file system on disk, the events survive the end of program and recorder, "
	 "and a reboot; 'kymo recover DIR' makes traces of them. Only you and root may have write "
	 "permission for DIR and the directories above it.",
	 offsetof(struct ky_record_options, shm_path), NULL},
	{"keep-ended", 0, KY_OPTION_SIZE, "SIZE",
	 "With --overwrite: the memory limit for the buffers of all ended programs. The recorder "
	 "drops the buffers of the program that ended first. Default: 256M.",
	 offsetof(struct ky_record_options, keep_bytes), NULL},
	{"pid", 'p', KY_OPTION_LIST, "PID[,PID...]",
	 "Record only these processes, with their threads and (of the kernel) their children. In a "
	 "container, give the container's process IDs; the trace has the kernel's IDs, and the "
	 "state dump has both. May be given again. For kernel events, --pid, --tid, --uid, "
	 "--cgroup and --container add up; with several of them, the children of selected "
	 "processes and threads stay selected when their user or control group changes.",
	 offsetof(struct ky_record_options, pid), NULL},
	{"tid", 0, KY_OPTION_LIST, "TID[,TID...]",
	 "Record only the kernel events of these threads. May be given again.",
	 offsetof(struct ky_record_options, tid), NULL},
	{"cgroup", 0, KY_OPTION_LIST, "DIR",
	 "Record only the kernel events of threads while they are in this control group (of a "
	 "service, of a user) or in one below it. The recorder sees within a tenth of a second "
	 "when a thread joins or leaves. DIR is a path below /sys/fs/cgroup, or as in "
	 "/proc/PID/cgroup. May be given again.",
	 offsetof(struct ky_record_options, cgroups), NULL},
	{"container", 0, KY_OPTION_LIST, "ID|NAME",
	 "As --cgroup, for the control group of a running container. A container of docker, "
	 "podman, containerd or kubernetes has an ID (its first digits are enough), a container of "
	 "lxc or systemd-nspawn a name; kymo list --containers shows both. May be given again.",
	 offsetof(struct ky_record_options, containers), NULL},
	{"follow", 0, KY_OPTION_FLAG, NULL,
	 "For kernel events: with --tid, record also the children of these threads. With COMMAND "
	 "and without --pid, --tid, --uid, --cgroup and --container, record only COMMAND and its "
	 "children.",
	 offsetof(struct ky_record_options, follow), NULL},
	{"context", 'c', KY_OPTION_TEXT, "LIST",
	 "Context fields to add to every event, separated by commas. For kernel events, besides "
	 "tid and cpu_id: pid, ppid, procname, prio, nice; vtid, vpid, vppid (the IDs in the "
	 "process's own pid namespace; with --user, only programs' events have vtid and vpid); "
	 "interruptible, preemptible, need_reschedule, migratable (0 or 1, at the time of the "
	 "event); uid, euid, suid, fsuid, gid, egid, sgid, fsgid; cgroup_ns, ipc_ns, mnt_ns, "
	 "net_ns, pid_ns, time_ns, user_ns, uts_ns; cgroup (the ID of the control group of version "
	 "2); callstack-kernel and callstack-user, as the options with these names, for all "
	 "events; perf:cpu:COUNTER (the CPU's counter so far: page-faults, context-switches, "
	 "cpu-migrations, cpu-clock; on machines that count them cpu-cycles, instructions, "
	 "cache-misses ...: see kymo list --counters) and perf:thread:COUNTER (the thread's "
	 "counter: page-faults, minor-faults, major-faults, context-switches, cpu-migrations). For "
	 "programs' events: vpid, vtid, procname, ip, cpu_id, pthread_id, vuid, veuid, vsuid, "
	 "vgid, vegid, vsgid, cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns, "
	 "callstack-user, perf:COUNTER of the thread (page-faults, context-switches, task-clock; "
	 "on machines that count them cpu-cycles, instructions, cache-misses, branch-misses ...), "
	 "$app.PROVIDER:NAME.",
	 offsetof(struct ky_record_options, context),
	 "pid ppid procname prio nice vppid interruptible preemptible need_reschedule migratable uid euid gid egid "
	 "mnt_ns net_ns pid_ns user_ns cgroup perf:cpu:page-faults perf:cpu:context-switches perf:cpu:instructions "
	 "perf:thread:page-faults perf:thread:context-switches callstack-kernel callstack-user vpid vtid ip cpu_id"},
	{"sample", 0, KY_OPTION_LIST, "WHAT",
	 "Record what the CPUs run, with the call stacks of kernel and program: WHAT is the number of "
	 "samples in a second (99); a counter, such as page-faults or context-switches, and its period "
	 "(page-faults:10 is each tenth, cycles:999Hz is 999 a second); or an event of the kernel "
	 "(sched:sched_switch, block:block_rq_issue:10). Frames are found by frame pointers "
	 "(-fno-omit-frame-pointer). Without --kernel, no other kernel events are recorded. May be given "
	 "again. 'kymo report flame' shows the samples. See docs/sampling.md.",
	 offsetof(struct ky_record_options, samples),
	 "99 999 page-faults context-switches cpu-clock:999Hz cycles:1000000 sched:sched_switch"},
	{"stacks", 0, KY_OPTION_TEXT, "HOW",
	 "How --sample finds the frames of programs: fp (default), by frame pointers; dwarf, by the call "
	 "frame information of programs and libraries, which needs no frame pointers: the kernel copies "
	 "registers and 16 KiB of the stack (dwarf:BYTES, up to 65528), and the recorder unwinds them. "
	 "That costs more, some 100 us for each sample.",
	 offsetof(struct ky_record_options, stacks), "fp dwarf dwarf:32k"},
	{"callstack-kernel", 0, KY_OPTION_LIST, "EVENTS",
	 "Add the kernel's call stack, as addresses, to the kernel events that match a pattern as "
	 "for --kernel. May be given again.",
	 offsetof(struct ky_record_options, kernel_stacks), NULL},
	{"callstack-user", 0, KY_OPTION_LIST, "EVENTS",
	 "Add the program's call stack to the kernel events that match a pattern: up to 8 frames, "
	 "which the kernel finds by frame pointers (-fno-omit-frame-pointer). The kernel writes "
	 "call stacks for all events, and the recorder leaves out those of other events. May be "
	 "given again.",
	 offsetof(struct ky_record_options, user_stacks), NULL},
	{"probe", 0, KY_OPTION_LIST, "FILE:FUNC(ARGS)",
	 "Record calls of function FUNC of a program or library, in all processes, with arguments. "
	 "With debug information of FILE, ARGS are parameters and their members (request->name, "
	 "list->items[0].id); without it, arg1, %di and the like, followed by a type (:string, "
	 ":x32). $retval adds an event at the function's return. May be given again. With --probe, "
	 "--sdt or --kprobe and without --kernel, no other kernel events are recorded. See "
	 "docs/probes.md.",
	 offsetof(struct ky_record_options, probes), NULL},
	{"sdt", 0, KY_OPTION_LIST, "PROVIDER:NAME[(ARGS)]",
	 "Record the SDT (USDT) probes that programs and libraries contain; globs. PROVIDER:NAME "
	 "names a probe of the library or program PROVIDER, FILE:NAME or FILE:PROVIDER:NAME a "
	 "probe of FILE. 'kymo list --sdt FILE' lists the probes. ARGS selects arguments: "
	 "(arg1:string, size=arg2). Default: all.",
	 offsetof(struct ky_record_options, sdt), NULL},
	{"kprobe", 0, KY_OPTION_LIST, "FUNC(ARGS)",
	 "Record calls of a kernel function, with arguments as for --probe without debug "
	 "information.",
	 offsetof(struct ky_record_options, kprobes), NULL},
	{"syscall-content", 0, KY_OPTION_TEXT, "WHAT",
	 "Record the content of system calls' arguments: paths (file names and other texts, "
	 "arguments of programs, socket addresses, the sizes of vectors and messages, the results "
	 "of readlink and getcwd), or all, which adds the first 512 bytes (all:BYTES, up to 64k) "
	 "of buffers that are written, read, sent and received. A BPF program reads the content. "
	 "See docs/syscall-content.md.",
	 offsetof(struct ky_record_options, syscall_content), "paths all all:4096"},
	{"identity", 0, KY_OPTION_TEXT, "NAME",
	 "The tracer that the trace names: lttng (default), so that every reader of LTTng's kernel "
	 "traces knows the events; or kymo.",
	 offsetof(struct ky_record_options, identity), "lttng kymo"},
	{"clock", 0, KY_OPTION_TEXT, "NAME",
	 "Clock of the trace: tsc, monotonic, or auto (default): tsc where it is reliable.",
	 offsetof(struct ky_record_options, clock), "auto tsc monotonic"},
	{"reader", 0, KY_OPTION_TEXT, "WAY",
	 "How the recorder reads the kernel's ring buffers: splice moves whole pages, mmap reads "
	 "pages in place, read copies them. Default: auto, which takes the cheapest way that the "
	 "kernel has, for each buffer and load. The trace is the same.",
	 offsetof(struct ky_record_options, reader), "auto mmap splice read"},
	{0},
};

const struct ky_command ky_command_record = {
	.name = "record",
	.summary = "record this machine's kernel, and programs, into a trace",
	.usage = "[OPTIONS] [--] [COMMAND [ARGS...]]",
	.description =
		"Records what the kernel does on all CPUs - scheduling, interrupts, block and "
		"network input and output, page allocation, and all system calls - into a CTF "
		"trace with LTTng's event and field names, until Ctrl-C, for a duration, or while "
		"COMMAND runs. The trace begins with a state dump of the machine: processes, open "
		"files, devices.\n\n"
		"With --user, it records programs that are built with libkymo-trace: running "
		"programs and programs that start during the recording, even short ones. The "
		"recorder only has to run as the user of these programs. Each program gets a "
		"trace, OUT/ust/pid/NAME-PID-DATE. With --kernel and --user, both sides have one "
		"clock, and kymo print shows their events in exact order.\n\n"
		"Recording the kernel needs root and a kernel with tracefs, but no kernel module. "
		"The recorder works in its own tracefs instance, so it disturbs no other tracer. "
		"It removes the instance at the end; the next recorder removes the instance of a "
		"killed one.\n\n"
		"COMMAND starts after the state dump, with the rights of the recorder. The "
		"recording contains the whole machine, not only COMMAND, unless --follow is given. "
		"The exit code is that of COMMAND (128 + N when signal N killed it). When the "
		"recording ends before COMMAND, by --duration or Ctrl-C, the recorder sends "
		"SIGTERM to COMMAND and the exit code is 0. The exit code is 1 when the recording "
		"failed.\n\n"
		"With --overwrite it is a flight recorder: it runs without a time limit and writes "
		"nothing before a snapshot or its end. When something has happened, kymo snapshot "
		"writes the newest events as a trace, and the recording goes on. kill -USR1 does "
		"the same, into OUT-snapshot-1, OUT-snapshot-2 and so on. At the end, the buffers "
		"become the trace OUT.\n\n"
		"The trace leaves out the recorder's own system calls. The recorder's threads do "
		"appear in sched_switch and similar events, so that the CPUs' time adds up.",
	.examples =
		"# the whole machine, until Ctrl-C\nkymo record\n\n"
		"# while a command runs\nkymo record -o build-trace -- make -j8\n\n"
		"# five seconds of scheduling and of opening files\n"
		"kymo record -k 'sched_*,syscall_*_open*' --duration 5s\n\n"
		"# large reads only, and only switches to real-time threads\n"
		"kymo record -k 'syscall_exit_read if ret > 4096' -k 'sched_switch if next_prio < "
		"0'\n\n"
		"# a command's own system calls, and those of what it starts\n"
		"kymo record --follow -k 'syscall:open*,syscall:*stat*' -- make\n\n"
		"# rare events of a program, safe from the flood of all others\n"
		"kymo record --overwrite --user 'shop:*' --group 'rare:1M:user:shop:payment_failed'\n\n"
		"# one process, with its threads' names on each event\n"
		"kymo record --pid 4711 --context pid,procname --duration 10s\n\n"
		"# the calls of all processes in a container, also of those that start later\n"
		"kymo record --container 3f4e5d6c7b8a -k syscalls --duration 10s\n\n"
		"# the number of page faults and switches between two events\n"
		"kymo record -k 'syscall:mmap,sched_switch' -c "
		"perf:cpu:page-faults,perf:thread:context-switches -d 5s\n\n"
		"# the wakeups of threads, with the waker's call stack\n"
		"kymo record -k 'sched_waking,sched_switch' --callstack-kernel sched_waking -d "
		"2s\n\n"
		"# which files and addresses programs open and connect to\n"
		"kymo record -k 'syscall_*_open*,syscall_*_connect' --syscall-content=paths -d "
		"5s\n\n"
		"# the system calls of 32-bit programs\n"
		"kymo record -k 'compat_syscall_*' -- ./old-program\n\n"
		"# system calls that this kernel does not have\n"
		"kymo record -k syscall:unknown --duration 10s\n\n"
		"# the lines that users type into bash, and the sizes that malloc gets\n"
		"kymo record --probe 'bash:readline($retval:string)' --probe "
		"'libc.so.6:malloc(arg1)'\n\n"
		"# the SDT probes of libraries and programs\n"
		"kymo record --sdt 'libstdc++:throw' --sdt './server:request_*' --duration 5s\n"
		"kymo record --sdt 'python3:function__entry(file=arg1:string, name=arg2:string, "
		"line=arg3)' -d 5s\n\n"
		"# a program's events, with a filter\n"
		"kymo record --user 'shop:*' --filter 'total_cents > 1000' -- ./shop\n\n"
		"# the same program, with its system calls\n"
		"kymo record --kernel syscalls --user 'shop:*' --context vtid -- ./shop\n\n"
		"# a black box: the last events survive a reboot\n"
		"kymo record --overwrite --user 'shop:*' --shm-path /var/lib/shop-trace -o flight\n"
		"kymo recover --remove -o found /var/lib/shop-trace\n\n"
		"# always on: chunks of ten minutes, of which the last day stays\n"
		"kymo record --name always --background --rotate-every 10min --keep-for 1d -k sched_switch -o /var/tmp/always\n\n"
		"# a flight recorder: what happened before something went wrong\n"
		"kymo record --overwrite --user 'shop:*' -o flight &\nkymo snapshot -o "
		"what-happened",
	.see_also = "snapshot list info print report recover doctor",
	.options = option_defs,
	.options_size = sizeof(struct ky_record_options),
	.defaults = ky_record_defaults,
	.min_args = 0,
	.max_args = -1,
	.raw_args = true,
	.run = run_record,
};
