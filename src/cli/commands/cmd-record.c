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

/* Is there a recording of this name already? */
static bool is_taken(const char *name)
{
	struct ky_control_socket_place place;
	struct kymo_error err;
	int ret = ky_recordings_find(name, false, &place, &err);

	return ret == KYMO_E_INVALID || (!ret && place.is_own);
}

/* The process that the user started: the recording goes on in another one. */
static void say_background(const struct ky_record_run *run)
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

/* @run has an output. Returns an exit code. */
static int run_there(struct ky_record_run *run)
{
	char log_path[PATH_MAX];
	int code;

	if (!run->background.is_wanted)
		return ky_record_run(run);
	snprintf(log_path, sizeof(log_path), "%s/recorder.log", run->options.output);
	run->options.log_path = log_path;
	code = ky_background_fork(&run->background);
	if (code < 0)
		return ky_record_run(run);
	if (code == KY_EXIT_OK)
		say_background(run);
	return code;
}

static bool chooses_anybody(const struct ky_record_options *options)
{
	return options->pid.len || options->tid.len || options->uid || options->cgroups.len ||
	       options->containers.len;
}

static int run_record(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct ky_record_options *options = data;
	struct ky_record_run run = KY_RECORD_RUN_INIT;
	char name[OUTPUT_BYTES];
	int code = ky_record_check_options(command, options, &run), errnum;

	if (code)
		return code;
	if (run.options.kernel.follow && !n_args && !chooses_anybody(options))
		return ky_cli_usage(command,
				    "--follow: whom? Give a COMMAND, or one of --pid, --tid, "
				    "--uid, --cgroup and --container");
	if (n_args) {
		run.command.args = args;
		errnum = ky_child_check(args[0]);
		if (errnum)
			return ky_child_error(args[0], errnum);
	}
	if (options->name && is_taken(options->name))
		return ky_cli_usage(command,
				    "--name: a recording '%s' runs already; 'kymo stop %s' ends it",
				    options->name, options->name);
	if (!options->output)
		make_default_output(options->name ? options->name : "kymo", name);
	run.options.output = options->output ? options->output : name;
	code = run_there(&run);
	/* Empty: nothing was recorded. */
	if (!options->output)
		(void)rmdir(name);
	return code;
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Directory to create for the trace; its parent must exist. Default: kymo-DATE-TIME in the "
	 "current directory.",
	 offsetof(struct ky_record_options, output), NULL},
	{"name", 'N', KY_OPTION_TEXT, "NAME",
	 "Name of the recording, for kymo sessions, stop, ctl and snapshot: up to 64 letters, digits, '.', '_' and '-'. "
	 "Two recordings of one user cannot have the same name. With a name, the default for --output is NAME-DATE-TIME.",
	 offsetof(struct ky_record_options, name), NULL},
	{"background", 0, KY_OPTION_FLAG, NULL,
	 "Return when recording is on; the recording goes on until 'kymo stop', or until its duration or COMMAND ends. The "
	 "recorder writes its messages to the file recorder.log in the output directory.",
	 offsetof(struct ky_record_options, background), NULL},
	{"profile", 0, KY_OPTION_PROFILE, "FILE",
	 "Take options from FILE: one per line, with the names that they have here (kernel=sched_switch), '#' before a "
	 "comment. An option after --profile on the command line replaces the file's value, or adds to its list.",
	 0, NULL},
	{"save", 0, KY_OPTION_SAVE, "FILE",
	 "Write the options of this command line to FILE, as a profile for --profile, and go on.",
	 offsetof(struct ky_record_options, save), NULL},
	{"kernel", 'k', KY_OPTION_LIST, "EVENTS",
	 "Which kernel events: names or globs, separated by commas, as in the trace (sched_switch, "
	 "syscall_entry_open*) or in tracefs (sched:sched_switch, irq); 'syscalls' is all system calls, "
	 "'syscall:open*' those of that name, entry and exit, 'compat_syscall_*' those of 32-bit programs, "
	 "'syscall:unknown' those that the kernel does not know; "
	 "'!' before a pattern takes its events out again. 'EVENTS if EXPR' records only those events for "
	 "which EXPR is true (docs/filter.md): in the kernel, as far as it can. May be given again. "
	 "Default, and what 'default' stands for: what the reports need; with --user, nothing.",
	 offsetof(struct ky_record_options, kernel), NULL},
	{"user", 'u', KY_OPTION_LIST, "PATTERN",
	 "Record events of programs that are built with libkymo-trace: PROVIDER:NAME, '*' being any run "
	 "of characters. May be given again. Programs that run already are joined, and those that "
	 "start later join before main().",
	 offsetof(struct ky_record_options, user), NULL},
	{"exclude", 0, KY_OPTION_LIST, "PATTERN",
	 "Leave out events that match this pattern, of the kernel and of programs, and of their state dumps "
	 "(lttng_statedump_*, lttng_ust_statedump:*). May be given again.",
	 offsetof(struct ky_record_options, exclude), NULL},
	{"loglevel", 0, KY_OPTION_TEXT, "LEVEL",
	 "Only events of programs with this log level: INFO (that one), INFO.. (at least as severe), "
	 "DEBUG_LINE..INFO (between two).",
	 offsetof(struct ky_record_options, log_level), KY_CLI_LOG_LEVELS},
	{"filter", 0, KY_OPTION_TEXT, "EXPR",
	 "Only events of programs for which EXPR is true; evaluated in the program, before anything "
	 "is recorded. See docs/filter.md; $ctx.NAME is any context field, asked for or not.",
	 offsetof(struct ky_record_options, filter), NULL},
	{"comm", 0, KY_OPTION_TEXT, "NAME",
	 "Only programs of this name (the first 15 characters); of the kernel, what happens in threads of "
	 "this name, and what is about them (who wakes them).",
	 offsetof(struct ky_record_options, comm), NULL},
	{"uid", 0, KY_OPTION_TEXT, "USER",
	 "Only programs of this user, told by id or name; of the kernel, what happens in processes while they are this user's (by the "
	 "real uid; seen up to a tenth of a second after it changes, so that who is this user for a shorter time is "
	 "missed: 'EVENTS if $ctx.uid == UID' with --context uid is exact). Default: as root, of all users; else one's "
	 "own.",
	 offsetof(struct ky_record_options, uid), NULL},
	{"duration", 'd', KY_OPTION_DURATION, "TIME",
	 "Stop after this time: 5s, 500ms, 2min. Default: until Ctrl-C, or until the command ends.",
	 offsetof(struct ky_record_options, duration_ns), NULL},
	{"buffer-size", 'b', KY_OPTION_SIZE, "SIZE",
	 "Size of the ring buffer on each CPU, of the kernel and of each program. Default: 4M. When events "
	 "come faster than they can be written for so long that it fills up, some are lost, and counted.",
	 offsetof(struct ky_record_options, buffer_bytes), NULL},
	{"statedump", 0, KY_OPTION_TEXT, "WHAT",
	 "What the state dump of the kernel tells: needed (default): what the recorded events speak of (descriptors for "
	 "system calls that have some, block devices for block events, ...), of the processes that are recorded; all: "
	 "the whole machine; none. Single events of it are left out by --exclude 'lttng_statedump_*'. Each snapshot of a "
	 "flight recorder has a fresh one.",
	 offsetof(struct ky_record_options, statedump), "needed all none"},
	{"maps", 0, KY_OPTION_FLAG, NULL,
	 "State dump of the kernel: also what each process has mapped where, with the files' build ids, so that "
	 "addresses can be resolved later.",
	 offsetof(struct ky_record_options, maps), NULL},
	{"raw", 0, KY_OPTION_FLAG, NULL,
	 "Disturb the machine as little as can be: write the kernel's pages to disk as they are. kymo convert, "
	 "print and the others make a trace of them when they read it. The records that it counts are not all "
	 "events: kymo convert says how many it leaves out, as Kymo's own. With --overwrite, the kernel's buffers are "
	 "not even read before a snapshot, for which recording stops for some milliseconds.",
	 offsetof(struct ky_record_options, raw), NULL},
	{"overwrite", 0, KY_OPTION_FLAG, NULL,
	 "Flight recorder: record into memory, the newest events replacing the oldest, and write what is "
	 "there at the end, and whenever kymo snapshot or the signal USR1 asks for it. --buffer-size says "
	 "how much that is.",
	 offsetof(struct ky_record_options, overwrite), NULL},
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
	{"shm-path", 0, KY_OPTION_TEXT, "DIR",
	 "Have the ring buffers of programs in files below DIR (created if need be), on a file system that "
	 "outlives a reboot, instead of in memory: what programs recorded survives them, the recorder and "
	 "the machine's next start, and 'kymo recover DIR' makes traces of it. Nobody but you and root may be "
	 "able to write to DIR and the directories above it.",
	 offsetof(struct ky_record_options, shm_path), NULL},
	{"keep-ended", 0, KY_OPTION_SIZE, "SIZE",
	 "With --overwrite: how much memory the buffers of programs that have ended may take, all together; "
	 "those that ended first go first. Default: 256M.",
	 offsetof(struct ky_record_options, keep_bytes), NULL},
	{"pid", 'p', KY_OPTION_LIST, "PID[,PID...]",
	 "Record only what happens in these processes, their threads, and (of the kernel) what they start. In a "
	 "container, by the ids that it has; in the trace they are the kernel's (the state dump knows both). "
	 "May be given again; of the kernel, several of --pid, --tid, --uid, --cgroup and --container add up, and what "
	 "processes and threads start then stays chosen, whosever it becomes.",
	 offsetof(struct ky_record_options, pid), NULL},
	{"tid", 0, KY_OPTION_LIST, "TID[,TID...]",
	 "Of the kernel: record only what happens in these threads. May be given again.",
	 offsetof(struct ky_record_options, tid), NULL},
	{"cgroup", 0, KY_OPTION_LIST, "DIR",
	 "Of the kernel: record only what happens in threads while they are in this control group (of a "
	 "service, a user), or one below it (seen up to a tenth of a second after they join or leave). A path below "
	 "/sys/fs/cgroup, or as in /proc/PID/cgroup. May be given again.",
	 offsetof(struct ky_record_options, cgroups), NULL},
	{"container", 0, KY_OPTION_LIST, "ID|NAME",
	 "The same for the control group of a container that runs: of docker, podman, containerd or kubernetes by its id "
	 "or the first digits of it, of lxc or systemd-nspawn by its name; kymo list --containers shows them. May be "
	 "given again.",
	 offsetof(struct ky_record_options, containers), NULL},
	{"follow", 0, KY_OPTION_FLAG, NULL,
	 "Of the kernel: with --tid, also what these threads start. With COMMAND and none of --pid, --tid, "
	 "--uid, --cgroup and --container: only COMMAND and what it starts.",
	 offsetof(struct ky_record_options, follow), NULL},
	{"context", 'c', KY_OPTION_TEXT, "LIST",
	 "Fields to add to every event, separated by commas. Of the kernel, besides tid and cpu_id: pid, ppid, "
	 "procname, prio, nice; vtid, vpid, vppid (what its own pid namespace calls them; with --user, vtid and vpid are "
	 "those of programs' events only); interruptible, preemptible, need_reschedule, migratable (0 or 1, at that moment); "
	 "uid, euid, suid, fsuid, gid, egid, sgid, fsgid; cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, "
	 "user_ns, uts_ns; cgroup (the id of that of version 2); callstack-kernel and callstack-user, as the "
	 "options of these names for all events; perf:cpu:COUNTER (up to now on that CPU: page-faults, context-switches, "
	 "cpu-migrations, cpu-clock; where the machine has them cpu-cycles, instructions, cache-misses ...: see "
	 "kymo list --counters) and perf:thread:COUNTER (of the thread: page-faults, minor-faults, major-faults, "
	 "context-switches, cpu-migrations). "
	 "Of programs: vpid, vtid, procname, ip, cpu_id, pthread_id, vuid, veuid, vsuid, "
	 "vgid, vegid, vsgid, cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns, "
	 "callstack-user, perf:COUNTER of the thread (page-faults, context-switches, task-clock; where the "
	 "machine has them cpu-cycles, instructions, cache-misses, branch-misses ...), "
	 "$app.PROVIDER:NAME.",
	 offsetof(struct ky_record_options, context),
	 "pid ppid procname prio nice vppid interruptible preemptible need_reschedule migratable uid euid gid egid "
	 "mnt_ns net_ns pid_ns user_ns cgroup perf:cpu:page-faults perf:cpu:context-switches perf:cpu:instructions "
	 "perf:thread:page-faults perf:thread:context-switches callstack-kernel callstack-user vpid vtid ip cpu_id"},
	{"callstack-kernel", 0, KY_OPTION_LIST, "EVENTS",
	 "Kernel events with the kernel's call stack, as addresses: a pattern as of --kernel. May be given again.",
	 offsetof(struct ky_record_options, kernel_stacks), NULL},
	{"callstack-user", 0, KY_OPTION_LIST, "EVENTS",
	 "Kernel events with the call stack of the program that they happen in: up to 8 frames, found by frame "
	 "pointers (-fno-omit-frame-pointer). The kernel writes them for all events; those of others are left "
	 "out. May be given again.",
	 offsetof(struct ky_record_options, user_stacks), NULL},
	{"probe", 0, KY_OPTION_LIST, "FILE:FUNC(ARGS)",
	 "Record calls of function FUNC of a program or library, all over the system, with arguments: parameters "
	 "and what they point at (request->name, list->items[0].id), which needs debug information of FILE; else "
	 "arg1, %di and the like, with :string or :x32 behind. $retval is recorded when the function returns. May be given "
	 "again. With --probe, --sdt or --kprobe and no --kernel, no other kernel events. See docs/probes.md.",
	 offsetof(struct ky_record_options, probes), NULL},
	{"sdt", 0, KY_OPTION_LIST, "PROVIDER:NAME[(ARGS)]",
	 "Record probes that programs and libraries bring along (USDT); globs. PROVIDER:NAME looks in library or program "
	 "PROVIDER, FILE:NAME or FILE:PROVIDER:NAME in FILE. 'kymo list --sdt FILE' shows them. ARGS are those to record, "
	 "all without: (arg1:string, size=arg2).",
	 offsetof(struct ky_record_options, sdt), NULL},
	{"kprobe", 0, KY_OPTION_LIST, "FUNC(ARGS)",
	 "Record calls of a function of the kernel, with arguments as of --probe without debug information.",
	 offsetof(struct ky_record_options, kprobes), NULL},
	{"syscall-content", 0, KY_OPTION_TEXT, "WHAT",
	 "Record what system calls' arguments point at: paths (file names and other texts, arguments of programs, socket addresses, "
	 "how many bytes vectors and messages hold, what readlink and getcwd return), or all, which adds the first 512 "
	 "bytes of buffers (all:BYTES, up to 64k) that are written, read, sent and received. Read by BPF. See "
	 "docs/syscall-content.md.",
	 offsetof(struct ky_record_options, syscall_content), "paths all all:4096"},
	{"identity", 0, KY_OPTION_TEXT, "NAME",
	 "Which tracer the trace says it is from: lttng (default), so that every reader of LTTng's "
	 "kernel traces knows its events; or kymo.",
	 offsetof(struct ky_record_options, identity), "lttng kymo"},
	{"clock", 0, KY_OPTION_TEXT, "NAME",
	 "Clock of the trace: tsc, monotonic, or auto (default): tsc where it is sound.",
	 offsetof(struct ky_record_options, clock), "auto tsc monotonic"},
	{"reader", 0, KY_OPTION_TEXT, "WAY",
	 "How the kernel's ring buffers are read: splice moves whole pages out, mmap looks at them where "
	 "they are, read copies. Default: auto, which takes what is cheapest for each buffer as things "
	 "stand, and what the kernel has. The trace is the same.",
	 offsetof(struct ky_record_options, reader), "auto mmap splice read"},
	{0},
};

const struct ky_command ky_command_record = {
	.name = "record",
	.summary = "record this machine's kernel, and programs, into a trace",
	.usage = "[OPTIONS] [--] [COMMAND [ARGS...]]",
	.description =
		"Records what the kernel does on all CPUs - scheduling, interrupts, block and network "
		"input and output, page allocation, and all system calls - into a CTF trace with LTTng's "
		"event and field names, until Ctrl-C, for a time, or while COMMAND runs. The trace begins "
		"with the state of the machine: processes, open files, devices.\n\n"
		"With --user, it records programs that are built with libkymo-trace, all in one go: those that "
		"run, those that start, however short they live. That needs no rights but to be the "
		"programs' user. Of each program, OUT/ust/pid/NAME-PID-DATE is a trace of its own. With "
		"--kernel and --user, both sides have one clock, and kymo print shows them in exact order.\n\n"
		"Recording the kernel needs root, and a kernel with tracefs; no kernel module. It works in a tracefs instance of "
		"its own, so it disturbs no other tracer. The instance is removed at the end; what a killed "
		"recorder left is removed by the next one.\n\n"
		"COMMAND starts once recording is on and the state is written, with the rights of kymo itself. "
		"The whole machine is recorded, not only COMMAND, unless --follow is given. The exit code is that of COMMAND "
		"(128 + N when signal N killed it). When recording ends first, by --duration or Ctrl-C, "
		"COMMAND is sent SIGTERM and the exit code is 0. It is 1 when the recording failed.\n\n"
		"With --overwrite it is a flight recorder: it runs for as long as you like, at no cost of disk, and "
		"when something has happened, kymo snapshot writes the last of what was recorded, as a trace like "
		"any other, and the recording goes on. kill -USR1 does the same, into OUT-snapshot-1, "
		"OUT-snapshot-2 and so on. At the end, the last of it becomes the trace OUT.\n\n"
		"The recorder's own system calls are left out; its threads do appear in sched_switch and the "
		"like, so that the CPUs' time adds up.",
	.examples =
		"# the whole machine, until Ctrl-C\nkymo record\n\n"
		"# while a command runs\nkymo record -o build-trace -- make -j8\n\n"
		"# five seconds of scheduling and of opening files\n"
		"kymo record -k 'sched_*,syscall_*_open*' --duration 5s\n\n"
		"# large reads only, and only switches to real-time threads\n"
		"kymo record -k 'syscall_exit_read if ret > 4096' -k 'sched_switch if next_prio < 0'\n\n"
		"# a command's own system calls, and those of what it starts\n"
		"kymo record --follow -k 'syscall:open*,syscall:*stat*' -- make\n\n"
		"# one process, with its threads' names on each event\n"
		"kymo record --pid 4711 --context pid,procname --duration 10s\n\n"
		"# the calls of all processes in a container, also of those that start later\n"
		"kymo record --container 3f4e5d6c7b8a -k syscalls --duration 10s\n\n"
		"# how many page faults and switches lie between two events\n"
		"kymo record -k 'syscall:mmap,sched_switch' -c perf:cpu:page-faults,perf:thread:context-switches -d 5s\n\n"
		"# who wakes whom, and where from\n"
		"kymo record -k 'sched_waking,sched_switch' --callstack-kernel sched_waking -d 2s\n\n"
		"# which files and addresses programs open and connect to\n"
		"kymo record -k 'syscall_*_open*,syscall_*_connect' --syscall-content=paths -d 5s\n\n"
		"# the system calls of 32-bit programs\n"
		"kymo record -k 'compat_syscall_*' -- ./old-program\n\n"
		"# system calls that this kernel does not have\n"
		"kymo record -k syscall:unknown --duration 10s\n\n"
		"# what people type into bash, and how long malloc is asked for\n"
		"kymo record --probe 'bash:readline($retval:string)' --probe 'libc.so.6:malloc(arg1)'\n\n"
		"# probes that libraries and programs bring along\n"
		"kymo record --sdt 'libstdc++:throw' --sdt './server:request_*' --duration 5s\n"
		"kymo record --sdt 'python3:function__entry(file=arg1:string, name=arg2:string, line=arg3)' -d 5s\n\n"
		"# a program's own events, and only some of them\n"
		"kymo record --user 'shop:*' --filter 'total_cents > 1000' -- ./shop\n\n"
		"# the same beside what the kernel does meanwhile\n"
		"kymo record --kernel syscalls --user 'shop:*' --context vtid -- ./shop\n\n"
		"# a black box: the last events survive whatever happens to the machine\n"
		"kymo record --overwrite --user 'shop:*' --shm-path /var/lib/shop-trace -o flight\n"
		"kymo recover --remove -o found /var/lib/shop-trace\n\n"
		"# always on: chunks of ten minutes, of which the last day stays\n"
		"kymo record --name always --background --rotate-every 10min --keep-for 1d -k sched_switch -o /var/tmp/always\n\n"
		"# a flight recorder: what happened before something went wrong\n"
		"kymo record --overwrite --user 'shop:*' -o flight &\nkymo snapshot -o what-happened",
	.see_also = "snapshot list info print report recover doctor",
	.options = option_defs,
	.options_size = sizeof(struct ky_record_options),
	.defaults = ky_record_defaults,
	.min_args = 0,
	.max_args = -1,
	.raw_args = true,
	.run = run_record,
};
