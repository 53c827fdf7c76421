/* SPDX-License-Identifier: MIT */
/* kymo record: record the kernel and programs, for a time or while a command runs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/record-run.h"
#include "kernel/convert.h"

#define DEFAULT_BUFFER_BYTES (4u << 20)
#define MIN_BUFFER_BYTES     (64u << 10)
#define MAX_BUFFER_BYTES     (UINT64_C(64) << 30)
#define CONTENT_BYTES	     512 /* of a buffer, when nobody says */
#define DEFAULT_KEEP_BYTES   (256u << 20)

struct options {
	const char *output;
	struct ky_text_list kernel, user, exclude;
	uint64_t duration_ns;
	uint64_t buffer_bytes;
	struct ky_text_list pid, tid;
	bool follow;
	const char *cgroup;
	bool overwrite, raw, maps;
	uint64_t keep_bytes;
	const char *log_level, *filter, *comm, *uid, *shm_path;
	const char *context;
	struct ky_text_list kernel_stacks, user_stacks;
	const char *identity;
	struct ky_text_list probes, sdt, kprobes;
	const char *syscall_content;
	const char *clock;
	const char *reader;
};

/* ---- options -------------------------------------------------------------------------- */

static void defaults(void *data)
{
	struct options *options = data;

	options->buffer_bytes = DEFAULT_BUFFER_BYTES;
	options->keep_bytes = DEFAULT_KEEP_BYTES;
	options->identity = "lttng";
	options->clock = "auto";
	options->reader = "auto";
}

static bool is_name(const char *list, size_t len, const char *name)
{
	return strlen(name) == len && !strncmp(list, name, len);
}

/* Those that no bit of the context stands for. */
static bool take_kernel_name(struct ky_session_options *to, const char *name, size_t len)
{
	static const char *const all[] = {"*"};

	if (is_name(name, len, "callstack-kernel")) {
		to->kernel_stacks = all;
		to->n_kernel_stacks = 1;
	} else if (is_name(name, len, "callstack-user")) {
		to->user_stacks = all;
		to->n_user_stacks = 1;
	} else {
		return is_name(name, len, "tid"); /* there always */
	}
	return true;
}

/* A name is the kernel's, user space's, or both's; one that nobody takes is a mistake. */
static int parse_context(const struct ky_command *command, const char *list,
			 struct ky_record_run *run)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");
		unsigned int bit = ky_convert_context_find(list, len);
		bool is_kernel =
			run->has_kernel && (bit || take_kernel_name(&run->kernel, list, len));

		if (!is_kernel && !(run->has_user && ky_user_context_known(list, len)))
			return ky_cli_usage(
				command, "--context: '%.*s' is none of %s%s%s", (int)len, list,
				run->has_kernel ? "pid, ppid, procname, prio, uid, net_ns, "
						  "preemptible and the others that the help names"
						: "",
				run->has_kernel && run->has_user ? "; nor of " : "",
				run->has_user ? "vpid, vtid, procname, ip, cpu_id and the "
						"others that the help names"
					      : "");
		if (is_kernel)
			run->kernel.context |= bit;
		list += len + (list[len] == ',');
	}
	return KY_EXIT_OK;
}

/* What BPF tells is told to events by time: both must have the same clock. */
static int need_clock_of_bpf(const struct ky_command *command, const char *option,
			     struct ky_record_run *run)
{
	if (run->clock == KY_OS_CLOCK_TSC)
		return ky_cli_usage(command, "%s needs the clock that BPF has: --clock=monotonic",
				    option);
	run->clock = KY_OS_CLOCK_MONOTONIC;
	return KY_EXIT_OK;
}

static int check_context_of_ids(const struct ky_command *command, struct ky_record_run *run)
{
	if (!(run->kernel.context & KY_CONTEXT_OF_IDS))
		return KY_EXIT_OK;
	if (run->kernel.raw)
		return ky_cli_usage(command, "--raw: no users, groups, namespaces and control "
					     "groups in --context");
	return need_clock_of_bpf(command, "--context with users, groups or namespaces", run);
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

/* paths, all or all:BYTES. */
static int parse_content(const struct ky_command *command, const char *text,
			 struct ky_record_run *run)
{
	struct ky_session_options *to = &run->kernel;
	uint64_t bytes = CONTENT_BYTES;

	if (!text)
		return KY_EXIT_OK;
	if (!run->has_kernel)
		return ky_cli_usage(command, "--syscall-content is about the kernel's events: give "
					     "--kernel too");
	if (strcmp(text, "paths") == 0)
		bytes = 0;
	else if (strncmp(text, "all:", 4) == 0 ? ky_parse_size(text + 4, &bytes) < 0 || !bytes ||
							 bytes > KY_CONTENT_LIMIT_MAX
					       : strcmp(text, "all") != 0)
		return ky_cli_usage(command,
				    "--syscall-content: '%s' is none of paths, all and all:BYTES "
				    "(1 to 64k)",
				    text);
	to->syscall_content = true;
	to->content_bytes = (uint32_t)bytes;
	return need_clock_of_bpf(command, "--syscall-content", run);
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

/* "17,18", any number of times. Returns how many there are in @ids, or -1: something is none. */
static int parse_ids(const struct ky_text_list *list, int32_t ids[KY_RECORD_MAX_IDS])
{
	int n = 0;

	for (size_t i = 0; i < list->len; i++) {
		const char *at = list->items[i];
		char *end;

		do {
			long long id = strtoll(at, &end, 10);

			if (end == at || id <= 0 || id > INT32_MAX || (*end && *end != ',') ||
			    n == KY_RECORD_MAX_IDS)
				return -1;
			ids[n++] = (int32_t)id;
			at = end + 1;
		} while (*end);
	}
	return n;
}

/* The kernel takes a name as a text in quotes. */
static bool is_comm(const char *comm)
{
	for (const char *at = comm; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '"' || *at == '\'' || *at == '\\')
			return false;
	return *comm && strlen(comm) < 16;
}

/* Whose events are recorded. */
static int choose_threads(const struct ky_command *command, const struct options *options,
			  struct ky_record_run *run)
{
	struct ky_session_options *to = &run->kernel;
	int n_pids = parse_ids(&options->pid, run->pids);
	int n_tids = parse_ids(&options->tid, run->tids);

	if (n_pids < 0 || n_tids < 0)
		return ky_cli_usage(command, "--pid and --tid want up to %d ids between commas",
				    KY_RECORD_MAX_IDS);
	to->pids = run->pids;
	to->tids = run->tids;
	to->n_pids = (size_t)n_pids;
	to->n_tids = (size_t)n_tids;
	to->cgroup = options->cgroup;
	to->uid = -1;
	to->follow = options->follow;
	to->comm = options->comm;
	if (!run->has_kernel && (n_tids || to->cgroup || to->follow))
		return ky_cli_usage(command,
				    "--tid, --cgroup and --follow are about kernel events: "
				    "give --kernel too");
	if (run->has_user && n_pids > 1)
		return ky_cli_usage(command, "--pid: with --user, one process only");
	run->user.pid = n_pids ? (uint32_t)run->pids[0] : 0;
	if (run->has_kernel && to->comm && !is_comm(to->comm))
		return ky_cli_usage(command, "--comm: '%s' is no name of a thread (15 characters)",
				    to->comm);
	return KY_EXIT_OK;
}

/* What speaks of programs makes sense only when programs are recorded. */
static int check_user_options(const struct ky_command *command, const struct options *options,
			      struct ky_record_run *run)
{
	struct ky_user_options *to = &run->user;
	uint64_t uid = 0;

	to->patterns = options->user.items;
	to->n_patterns = options->user.len;
	to->exclusions = options->exclude.items;
	to->n_exclusions = options->exclude.len;
	to->filter = options->filter;
	to->comm = options->comm;
	to->contexts = options->context;
	to->level_max = 14;
	to->uid = -1;
	to->place = options->shm_path;
	if (!run->has_user && to->place)
		return ky_cli_usage(command, "--shm-path is about programs: give --user too");
	if (!run->has_user && (to->filter || options->log_level))
		return ky_cli_usage(command,
				    "--filter and --loglevel are about programs: give --user too; "
				    "kernel events are filtered by --kernel 'EVENTS if EXPR'");
	if (options->log_level &&
	    ky_user_levels_parse(options->log_level, &to->level_min, &to->level_max) < 0)
		return ky_cli_usage(command,
				    "--loglevel: '%s' is none of EMERG ALERT CRIT ERR WARNING "
				    "NOTICE INFO DEBUG_SYSTEM DEBUG_PROGRAM DEBUG_PROCESS "
				    "DEBUG_MODULE DEBUG_UNIT DEBUG_FUNCTION DEBUG_LINE DEBUG, "
				    "with '..' behind it or between two",
				    options->log_level);
	if (options->uid && (ky_parse_u64(options->uid, &uid) < 0 || uid > UINT32_MAX - 1))
		return ky_cli_usage(command, "--uid: '%s' is no user id", options->uid);
	if (options->uid)
		to->uid = run->kernel.uid = (int64_t)uid;
	return KY_EXIT_OK;
}

static int check_options(const struct ky_command *command, const struct options *options,
			 struct ky_record_run *run)
{
	struct ky_session_options *to = &run->kernel;
	int code;

	if (strcmp(options->identity, "lttng") != 0 && strcmp(options->identity, "kymo") != 0)
		return ky_cli_usage(command, "--identity: '%s' is neither lttng nor kymo",
				    options->identity);
	if (options->buffer_bytes < MIN_BUFFER_BYTES || options->buffer_bytes > MAX_BUFFER_BYTES)
		return ky_cli_usage(command, "--buffer-size: from 64k to 64G for each CPU");
	run->has_user = options->user.len != 0;
	to->probes = (const char *const *)options->probes.items;
	to->n_probes = options->probes.len;
	to->sdt = (const char *const *)options->sdt.items;
	to->n_sdt = options->sdt.len;
	to->kprobes = (const char *const *)options->kprobes.items;
	to->n_kprobes = options->kprobes.len;
	to->only_probes = to->n_probes || to->n_sdt || to->n_kprobes;
	run->has_kernel = options->kernel.len || to->only_probes || !run->has_user;
	run->duration_ns = options->duration_ns;
	run->buffer_bytes = options->buffer_bytes;
	to->identity_kymo = strcmp(options->identity, "kymo") == 0;
	to->events = (const char *const *)options->kernel.items;
	to->n_events = options->kernel.len;
	to->exclusions = (const char *const *)options->exclude.items;
	to->n_exclusions = options->exclude.len;
	to->exclusions_may_miss = run->has_user;
	to->buffer_bytes = options->buffer_bytes;
	to->log = &ky_cli_log;
	run->user.buffer_bytes = options->buffer_bytes;
	run->user.log = &ky_cli_log;
	run->user.overwrite = to->overwrite = options->overwrite;
	to->raw = options->raw;
	to->maps = options->maps;
	if (to->raw && (run->has_user || options->overwrite || options->syscall_content))
		return ky_cli_usage(command, "--raw is for kernel events alone, without --user, "
					     "--overwrite and --syscall-content");
	run->user.keep_bytes = options->keep_bytes;
	to->kernel_stacks = (const char *const *)options->kernel_stacks.items;
	to->n_kernel_stacks = options->kernel_stacks.len;
	to->user_stacks = (const char *const *)options->user_stacks.items;
	to->n_user_stacks = options->user_stacks.len;
	if (!run->has_kernel && (to->n_kernel_stacks || to->n_user_stacks))
		return ky_cli_usage(command, "--callstack-kernel and --callstack-user are about "
					     "kernel events: give --kernel too");
	code = choose_threads(command, options, run);
	if (!code)
		code = parse_context(command, options->context, run);
	if (!code)
		code = parse_clock(command, options->clock, &run->clock);
	if (!code)
		code = parse_content(command, options->syscall_content, run);
	if (!code)
		code = check_context_of_ids(command, run);
	if (!code)
		code = check_user_options(command, options, run);
	to->clock = run->clock;
	return code ? code : parse_reader(command, options->reader, &to->reader);
}

/* kymo-20261121-073000, and -2, -3 when that exists. */
static const char *choose_output(const struct options *options, char name[64])
{
	time_t now = time(NULL);
	size_t len;
	struct tm tm;

	if (options->output)
		return options->output;
	len = strftime(name, 64, "kymo-%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	for (int i = 2; access(name, F_OK) == 0 && i < 100; i++)
		snprintf(name + len, 64 - len, "-%d", i);
	return name;
}

static int run_record(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct ky_record_run run = KY_RECORD_RUN_INIT;
	char name[64];
	int code = check_options(command, options, &run), errnum;

	if (code)
		return code;
	if (n_args) {
		run.command.args = args;
		errnum = ky_child_check(args[0]);
		if (errnum)
			return ky_child_error(args[0], errnum);
	}
	run.output = choose_output(options, name);
	return ky_record_run(&run);
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Directory to create for the trace; its parent must exist. Default: kymo-DATE-TIME in the "
	 "current directory.",
	 offsetof(struct options, output), NULL},
	{"kernel", 'k', KY_OPTION_LIST, "EVENTS",
	 "Which kernel events: names or globs, separated by commas, as in the trace (sched_switch, "
	 "syscall_entry_open*) or in tracefs (sched:sched_switch, irq); 'syscalls' is all system calls, "
	 "'syscall:open*' those of that name, entry and exit; "
	 "'!' before a pattern takes its events out again. 'EVENTS if EXPR' records only those events for "
	 "which EXPR is true (docs/filter.md): in the kernel, as far as it can. May be given again. "
	 "Default, and what 'default' stands for: what the reports need; with --user, nothing.",
	 offsetof(struct options, kernel), NULL},
	{"user", 'u', KY_OPTION_LIST, "PATTERN",
	 "Record events of programs that are built with libkymo-trace: PROVIDER:NAME, '*' being any run "
	 "of characters. May be given again. Programs that run already are joined, and those that "
	 "start later join before main().",
	 offsetof(struct options, user), NULL},
	{"exclude", 0, KY_OPTION_LIST, "PATTERN",
	 "Leave out events that match this pattern, of the kernel and of programs. May be given again.",
	 offsetof(struct options, exclude), NULL},
	{"loglevel", 0, KY_OPTION_TEXT, "LEVEL",
	 "Only events of programs with this log level: INFO (that one), INFO.. (at least as severe), "
	 "DEBUG_LINE..INFO (between two).",
	 offsetof(struct options, log_level),
	 "EMERG.. ALERT.. CRIT.. ERR.. WARNING.. NOTICE.. INFO.. DEBUG_LINE.. DEBUG.."},
	{"filter", 0, KY_OPTION_TEXT, "EXPR",
	 "Only events of programs for which EXPR is true; evaluated in the program, before anything "
	 "is recorded. See docs/filter.md; $ctx.NAME is any context field, asked for or not.",
	 offsetof(struct options, filter), NULL},
	{"comm", 0, KY_OPTION_TEXT, "NAME",
	 "Only programs of this name (the first 15 characters); of the kernel, what happens in threads of "
	 "this name, and what is about them (who wakes them).",
	 offsetof(struct options, comm), NULL},
	{"uid", 0, KY_OPTION_TEXT, "UID",
	 "Only programs of this user; of the kernel, what happens in the processes that are this user's when "
	 "the recording begins, and what they start. Default: as root, of all users; else one's own.",
	 offsetof(struct options, uid), NULL},
	{"duration", 'd', KY_OPTION_DURATION, "TIME",
	 "Stop after this time: 5s, 500ms, 2min. Default: until Ctrl-C, or until the command ends.",
	 offsetof(struct options, duration_ns), NULL},
	{"buffer-size", 'b', KY_OPTION_SIZE, "SIZE",
	 "Size of the ring buffer on each CPU, of the kernel and of each program. Default: 4M. When events "
	 "come faster than they can be written for so long that it fills up, some are lost, and counted.",
	 offsetof(struct options, buffer_bytes), NULL},
	{"maps", 0, KY_OPTION_FLAG, NULL,
	 "State dump of the kernel: also what each process has mapped where, with the files' build ids, so that "
	 "addresses can be resolved later.",
	 offsetof(struct options, maps), NULL},
	{"raw", 0, KY_OPTION_FLAG, NULL,
	 "Disturb the machine as little as can be: write the kernel's pages to disk as they are. kymo convert, "
	 "print and the others make a trace of them when they read it.",
	 offsetof(struct options, raw), NULL},
	{"overwrite", 0, KY_OPTION_FLAG, NULL,
	 "Flight recorder: record into memory, the newest events replacing the oldest, and write what is "
	 "there at the end, and whenever kymo snapshot or the signal USR1 asks for it. --buffer-size says "
	 "how much that is.",
	 offsetof(struct options, overwrite), NULL},
	{"shm-path", 0, KY_OPTION_TEXT, "DIR",
	 "Have the ring buffers of programs in files below DIR (created if need be), on a file system that "
	 "outlives a reboot, instead of in memory: what programs recorded survives them, the recorder and "
	 "the machine's next start, and 'kymo recover DIR' makes traces of it. Nobody but you and root may be "
	 "able to write to DIR and the directories above it.",
	 offsetof(struct options, shm_path), NULL},
	{"keep-ended", 0, KY_OPTION_SIZE, "SIZE",
	 "With --overwrite: how much memory the buffers of programs that have ended may take, all together; "
	 "those that ended first go first. Default: 256M.",
	 offsetof(struct options, keep_bytes), NULL},
	{"pid", 'p', KY_OPTION_LIST, "PID[,PID...]",
	 "Record only what happens in these processes, their threads, and (of the kernel) what they start. "
	 "May be given again; of the kernel, several of --pid, --tid, --uid and --cgroup add up.",
	 offsetof(struct options, pid), NULL},
	{"tid", 0, KY_OPTION_LIST, "TID[,TID...]",
	 "Of the kernel: record only what happens in these threads. May be given again.",
	 offsetof(struct options, tid), NULL},
	{"cgroup", 0, KY_OPTION_TEXT, "DIR",
	 "Of the kernel: record only what happens in threads that are in this control group (a container, a "
	 "service), or one below it, when the recording begins, and in what they start. A path below "
	 "/sys/fs/cgroup, as in /proc/PID/cgroup.",
	 offsetof(struct options, cgroup), NULL},
	{"follow", 0, KY_OPTION_FLAG, NULL,
	 "Of the kernel: with --tid, also what these threads start. With COMMAND and none of --pid, --tid, "
	 "--uid and --cgroup: only COMMAND and what it starts.",
	 offsetof(struct options, follow), NULL},
	{"context", 'c', KY_OPTION_TEXT, "LIST",
	 "Fields to add to every event, separated by commas. Of the kernel, besides its tid: pid, ppid, "
	 "procname, prio; interruptible, preemptible, need_reschedule, migratable (0 or 1, at that moment); "
	 "uid, euid, suid, fsuid, gid, egid, sgid, fsgid; cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, "
	 "user_ns, uts_ns; cgroup (the id of that of version 2); callstack-kernel and callstack-user, as the "
	 "options of these names for all events. "
	 "Of programs: vpid, vtid, procname, ip, cpu_id, pthread_id, vuid, veuid, vsuid, "
	 "vgid, vegid, vsgid, cgroup_ns, ipc_ns, mnt_ns, net_ns, pid_ns, time_ns, user_ns, uts_ns, "
	 "callstack-user, perf:COUNTER of the thread (page-faults, context-switches, task-clock; where the "
	 "machine has them cpu-cycles, instructions, cache-misses, branch-misses ...), "
	 "$app.PROVIDER:NAME.",
	 offsetof(struct options, context),
	 "pid ppid procname prio interruptible preemptible need_reschedule migratable uid euid gid egid "
	 "mnt_ns net_ns pid_ns user_ns cgroup callstack-kernel callstack-user vpid vtid ip cpu_id"},
	{"callstack-kernel", 0, KY_OPTION_LIST, "EVENTS",
	 "Kernel events with the kernel's call stack, as addresses: a pattern as of --kernel. May be given again.",
	 offsetof(struct options, kernel_stacks), NULL},
	{"callstack-user", 0, KY_OPTION_LIST, "EVENTS",
	 "Kernel events with the call stack of the program that they happen in: up to 8 frames, found by frame "
	 "pointers (-fno-omit-frame-pointer). The kernel writes them for all events; those of others are left "
	 "out. May be given again.",
	 offsetof(struct options, user_stacks), NULL},
	{"probe", 0, KY_OPTION_LIST, "FILE:FUNC(ARGS)",
	 "Record calls of function FUNC of a program or library, all over the system, with arguments: parameters "
	 "and what they point at (request->name, list->items[0].id), which needs debug information of FILE; else "
	 "arg1, %di and the like, with :string or :x32 behind. $retval is recorded when the function returns. May be given "
	 "again. With --probe, --sdt or --kprobe and no --kernel, no other kernel events. See docs/probes.md.",
	 offsetof(struct options, probes), NULL},
	{"sdt", 0, KY_OPTION_LIST, "PROVIDER:NAME",
	 "Record probes that programs and libraries bring along (USDT); globs. PROVIDER:NAME looks in library or program "
	 "PROVIDER, FILE:NAME or FILE:PROVIDER:NAME in FILE. 'kymo list --sdt FILE' shows them.",
	 offsetof(struct options, sdt), NULL},
	{"kprobe", 0, KY_OPTION_LIST, "FUNC(ARGS)",
	 "Record calls of a function of the kernel, with arguments as of --probe without debug information.",
	 offsetof(struct options, kprobes), NULL},
	{"syscall-content", 0, KY_OPTION_TEXT, "WHAT",
	 "Record what system calls' arguments point at: paths (file names and other texts, socket addresses, "
	 "how many bytes vectors hold, what readlink and getcwd return), or all, which adds the first 512 "
	 "bytes of buffers (all:BYTES, up to 64k) that are written, read, sent and received. Read by BPF. See "
	 "docs/syscall-content.md.",
	 offsetof(struct options, syscall_content), "paths all all:4096"},
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
		"# who wakes whom, and where from\n"
		"kymo record -k 'sched_waking,sched_switch' --callstack-kernel sched_waking -d 2s\n\n"
		"# which files and addresses programs open and connect to\n"
		"kymo record -k 'syscall_*_open*,syscall_*_connect' --syscall-content=paths -d 5s\n\n"
		"# what people type into bash, and how long malloc is asked for\n"
		"kymo record --probe 'bash:readline($retval:string)' --probe 'libc.so.6:malloc(arg1)'\n\n"
		"# probes that libc brings along\n"
		"kymo record --sdt 'libc:memory_*' --duration 5s\n\n"
		"# a program's own events, and only some of them\n"
		"kymo record --user 'shop:*' --filter 'total_cents > 1000' -- ./shop\n\n"
		"# the same beside what the kernel does meanwhile\n"
		"kymo record --kernel syscalls --user 'shop:*' --context vtid -- ./shop\n\n"
		"# a black box: the last events survive whatever happens to the machine\n"
		"kymo record --overwrite --user 'shop:*' --shm-path /var/lib/shop-trace -o flight\n"
		"kymo recover --remove -o found /var/lib/shop-trace\n\n"
		"# a flight recorder: what happened before something went wrong\n"
		"kymo record --overwrite --user 'shop:*' -o flight &\nkymo snapshot -o what-happened",
	.see_also = "snapshot list info print report recover doctor",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.defaults = defaults,
	.min_args = 0,
	.max_args = -1,
	.raw_args = true,
	.run = run_record,
};
