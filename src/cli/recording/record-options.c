/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-options.h"
#include "cli/recording/sample-options.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "kernel/events/catalogue.h"
#include "cli/options/user-options.h"
#include "cli/reading/filter-hint.h"
#include "kernel/convert/convert.h"

#define DEFAULT_BUFFER_BYTES (4u << 20)
#define MIN_BUFFER_BYTES     (64u << 10)
#define MAX_BUFFER_BYTES     (UINT64_C(64) << 30)
#define NO_DURATION_NS	     UINT64_MAX
#define CONTENT_BYTES	     512 /* of a buffer, by default */
#define DEFAULT_KEEP_BYTES   (256u << 20)

void ky_record_defaults(void *data)
{
	struct ky_record_options *options = data;

	options->duration_ns = NO_DURATION_NS;
	options->buffer_bytes = DEFAULT_BUFFER_BYTES;
	options->keep_bytes = DEFAULT_KEEP_BYTES;
	options->identity = "lttng";
	options->clock = "auto";
	options->reader = "auto";
	options->statedump = "needed";
	options->when_full = "discard";
	options->buffers = "process";
}

static bool record_options_is_name(const char *list, size_t len, const char *name)
{
	return strlen(name) == len && !strncmp(list, name, len);
}

/* Those that no bit of the context stands for. */
static bool take_kernel_name(struct ky_session_options *to, const char *name, size_t len)
{
	static const char *const all[] = {"*"};

	/* With '_' they are the names of the fields. */
	if (record_options_is_name(name, len, "callstack-kernel") ||
	    record_options_is_name(name, len, "callstack_kernel")) {
		to->kernel_stacks = all;
		to->n_kernel_stacks = 1;
	} else if (record_options_is_name(name, len, "callstack-user") ||
		   record_options_is_name(name, len, "callstack_user")) {
		to->user_stacks = all;
		to->n_user_stacks = 1;
	} else {
		return record_options_is_name(name, len, "tid"); /* there always */
	}
	return true;
}

/* perf:cpu:NAME, perf:NAME: of the CPU; perf:thread:NAME. False: not a counter, or not one of the kernel's. */
static bool take_counter(struct ky_session_options *to, const char *name, size_t len)
{
	struct ky_counter_choice choice = {0};
	size_t at = 5;

	if (strncmp(name, "perf:", at) != 0)
		return false;
	choice.of_thread = strncmp(name + at, "thread:", 7) == 0;
	if (choice.of_thread)
		at += 7;
	else if (strncmp(name + at, "cpu:", 4) == 0)
		at += 4;
	choice.counter = at < len ? ky_os_counter_find(name + at, len - at) : NULL;
	if (!choice.counter || (choice.of_thread && !ky_counter_has_threads(choice.counter)))
		return false;
	for (size_t i = 0; i < to->n_counters; i++)
		if (to->counters[i].counter == choice.counter &&
		    to->counters[i].of_thread == choice.of_thread)
			return true;
	if (to->n_counters == KY_COUNTERS_MAX)
		return false;
	to->counters[to->n_counters++] = choice;
	return true;
}

static int unknown_counter(const struct ky_command *command, const char *name, size_t len,
			   const struct ky_record_run *run)
{
	if (run->options.kernel.n_counters == KY_COUNTERS_MAX)
		return ky_cli_usage(command, "--context: at most %d counters for kernel events",
				    KY_COUNTERS_MAX);
	if (strncmp(name, "perf:thread:", 12) == 0 && ky_os_counter_find(name + 12, len - 12))
		return ky_cli_usage(
			command,
			"--context: '%.*s': kernel events have the thread counters page-faults, "
			"minor-faults, major-faults, context-switches and cpu-migrations; for a "
			"counter of the CPU, try perf:cpu:%.*s",
			(int)len, name, (int)len - 12, name + 12);
	return ky_cli_usage(
		command,
		"--context: '%.*s' is not a counter; 'kymo list --counters' shows the counters of "
		"this machine",
		(int)len, name);
}

/* Programs tell theirs themselves; with them, asking for these does not make all of the machine's calls dearer. */
static unsigned int kernel_context(const char *name, size_t len, const struct ky_record_run *run)
{
	unsigned int bit = ky_convert_context_find(name, len);

	return run->options.has_user ? bit & ~(unsigned int)(KY_CONTEXT_VTID | KY_CONTEXT_VPID)
				     : bit;
}

/* A name is the kernel's, user space's, or both's; any other name is a mistake. */
static int parse_context(const struct ky_command *command, const char *list,
			 struct ky_record_run *run)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");
		unsigned int bit = kernel_context(list, len, run);
		bool is_always = ky_convert_context_is_always(list, len);
		bool is_kernel =
			run->options.has_kernel &&
			(bit || is_always || take_counter(&run->options.kernel, list, len) ||
			 take_kernel_name(&run->options.kernel, list, len));

		if (!is_kernel && run->options.has_kernel && strncmp(list, "perf:", 5) == 0 &&
		    !(run->options.has_user && ky_user_context_known(list, len)))
			return unknown_counter(command, list, len, run);
		if (!is_kernel && !(run->options.has_user && ky_user_context_known(list, len)))
			return ky_cli_usage(
				command, "--context: unknown field '%.*s'; try %s%s%s", (int)len,
				list,
				run->options.has_kernel
					? "pid, ppid, procname, prio, uid, net_ns, preemptible or "
					  "another of the help"
					: "",
				run->options.has_kernel && run->options.has_user ? "; for programs "
										 : "",
				run->options.has_user ? "vpid, vtid, procname, ip, cpu_id or "
							"another of the help"
						      : "");
		if (is_kernel)
			run->options.kernel.context |= bit;
		list += len + (list[len] == ',');
	}
	return KY_EXIT_OK;
}

/* The recorder matches BPF's data and events by time, so both need the same clock. */
static int need_clock_of_bpf(const struct ky_command *command, const char *option,
			     struct ky_record_run *run)
{
	if (run->options.clock == KY_OS_CLOCK_TSC)
		return ky_cli_usage(command, "%s needs the clock of BPF: --clock=monotonic",
				    option);
	run->options.clock = KY_OS_CLOCK_MONOTONIC;
	return KY_EXIT_OK;
}

/* Only BPF has 32-bit and unknown calls. */
static int check_calls(const struct ky_command *command, struct ky_record_run *run)
{
	for (size_t i = 0; i < run->options.kernel.n_events; i++) {
		if (!ky_catalogue_rule_is_of_bpf(run->options.kernel.events[i]))
			continue;
		if (run->options.kernel.raw)
			return ky_cli_usage(command,
					    "--raw: cannot record 32-bit calls (compat_syscall_*) "
					    "and unknown calls (syscall_*_unknown)");
		return need_clock_of_bpf(command, "--kernel with 32-bit or unknown calls", run);
	}
	return KY_EXIT_OK;
}

static int check_context_of_bpf(const struct ky_command *command, struct ky_record_run *run)
{
	if (run->options.kernel.n_counters && run->options.kernel.raw)
		return ky_cli_usage(command, "--raw: no counters in --context, because BPF reads "
					     "them while events arrive");
	if (run->options.kernel.n_counters)
		return need_clock_of_bpf(command, "--context with counters", run);
	if (!(run->options.kernel.context & KY_CONTEXT_OF_IDS))
		return KY_EXIT_OK;
	if (run->options.kernel.raw)
		return ky_cli_usage(command, "--raw: no users, groups, namespaces, IDs in "
					     "namespaces and control groups in --context");
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
		return ky_cli_usage(command,
				    "--clock: unknown clock '%s'; try auto, tsc or "
				    "monotonic",
				    name);
	return KY_EXIT_OK;
}

/* paths, all or all:BYTES. */
static int parse_content(const struct ky_command *command, const char *text,
			 struct ky_record_run *run)
{
	struct ky_session_options *to = &run->options.kernel;
	uint64_t bytes = CONTENT_BYTES;

	if (!text)
		return KY_EXIT_OK;
	if (!run->options.has_kernel)
		return ky_cli_usage(command,
				    "--syscall-content is for kernel events; add --kernel");
	if (strcmp(text, "paths") == 0)
		bytes = 0;
	else if (strncmp(text, "all:", 4) == 0 ? ky_parse_size(text + 4, &bytes) < 0 || !bytes ||
							 bytes > KY_CONTENT_LIMIT_MAX
					       : strcmp(text, "all") != 0)
		return ky_cli_usage(command,
				    "--syscall-content: unknown value '%s'; try paths, all or "
				    "all:BYTES (1 to 64k)",
				    text);
	to->syscall_content = true;
	to->content_bytes = (uint32_t)bytes;
	return need_clock_of_bpf(command, "--syscall-content", run);
}

static int parse_state(const struct ky_command *command, const struct ky_record_options *options,
		       struct ky_session_options *to)
{
	static const char *const names[] = {
		[KY_SESSION_STATE_NEEDED] = "needed",
		[KY_SESSION_STATE_ALL] = "all",
		[KY_SESSION_STATE_NONE] = "none",
	};
	size_t i = 0;

	while (i < sizeof(names) / sizeof(names[0]) && strcmp(options->statedump, names[i]) != 0)
		i++;
	if (i == sizeof(names) / sizeof(names[0]))
		return ky_cli_usage(command,
				    "--statedump: unknown value '%s'; try needed, all or "
				    "none",
				    options->statedump);
	to->state = (enum ky_session_state)i;
	to->maps = options->maps;
	if (to->maps && to->state == KY_SESSION_STATE_NONE)
		return ky_cli_usage(command,
				    "--maps is for the state dump, but there is no state dump with "
				    "--statedump=none");
	return KY_EXIT_OK;
}

static int parse_reader(const struct ky_command *command, const char *name,
			enum ky_cpu_ring_way *way)
{
	static const char *const names[] = {
		[KY_CPU_RING_AUTO] = "auto",
		[KY_CPU_RING_MMAP] = "mmap",
		[KY_CPU_RING_SPLICE] = "splice",
		[KY_CPU_RING_READ] = "read",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*way = (enum ky_cpu_ring_way)i;
			return KY_EXIT_OK;
		}
	}
	return ky_cli_usage(command,
			    "--reader: unknown reader '%s'; try auto, mmap, splice or read", name);
}

/* Any number of times. Returns how many there are in @ids, or -1 on an invalid ID. */
static int parse_ids(const struct ky_text_list *list, int32_t ids[KY_CHOICE_IDS_MAX])
{
	int n = 0;

	for (size_t i = 0; i < list->len && n >= 0; i++)
		n = ky_choice_ids(list->items[i], false, ids, n);
	return n;
}

/* Whose events are recorded. */
static int choose_threads(const struct ky_command *command, const struct ky_record_options *options,
			  struct ky_record_run *run)
{
	struct ky_session_threads *to = &run->options.kernel.threads;
	int n_pids = parse_ids(&options->pid, run->pids);
	int n_tids = parse_ids(&options->tid, run->tids);

	if (n_pids < 0 || n_tids < 0)
		return ky_cli_usage(command,
				    "--pid and --tid need up to %d IDs, separated by "
				    "commas",
				    KY_CHOICE_IDS_MAX);
	to->pids = run->pids;
	to->tids = run->tids;
	to->n_pids = (size_t)n_pids;
	to->n_tids = (size_t)n_tids;
	to->uid = -1;
	to->follow = options->follow;
	to->comm = options->comm;
	to->cgroups = (const char *const *)options->cgroups.items;
	to->n_cgroups = options->cgroups.len;
	run->options.containers = (const char *const *)options->containers.items;
	run->options.n_containers = options->containers.len;
	if (!run->options.has_kernel &&
	    (n_tids || options->cgroups.len || options->containers.len || to->follow))
		return ky_cli_usage(command,
				    "--tid, --cgroup, --container and --follow are for kernel "
				    "events; add --kernel");
	run->options.user.pids = run->pids;
	run->options.user.n_pids = (size_t)n_pids;
	if (run->options.has_kernel && to->comm && !ky_choice_is_comm(to->comm))
		return ky_cli_usage(command,
				    "--comm: '%s' is not a name of a thread (15 "
				    "characters)",
				    to->comm);
	return KY_EXIT_OK;
}

/* What speaks of programs makes sense only when programs are recorded. */
static int check_user_options(const struct ky_command *command,
			      const struct ky_record_options *options, struct ky_record_run *run)
{
	struct ky_user_options *to = &run->options.user;
	uint32_t uid = 0;

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
	if (!run->options.has_user && to->place)
		return ky_cli_usage(command, "--shm-path is for programs; add --user");
	if (!options->user.len && (to->filter || options->log_level))
		return ky_cli_usage(command,
				    "--filter and --loglevel are for programs; add --user; for "
				    "kernel events, use --kernel 'EVENTS if EXPR'");
	ky_cli_hint_filter(to->filter);
	if (options->log_level &&
	    ky_user_levels_parse(options->log_level, &to->level_min, &to->level_max) < 0)
		return ky_cli_usage(command,
				    "--loglevel: unknown level '%s'; try EMERG ALERT CRIT ERR "
				    "WARNING NOTICE INFO DEBUG_SYSTEM DEBUG_PROGRAM DEBUG_PROCESS "
				    "DEBUG_MODULE DEBUG_UNIT DEBUG_FUNCTION DEBUG_LINE DEBUG, with "
				    "'..' after a level or between two levels",
				    options->log_level);
	if (options->uid && ky_cli_parse_user(options->uid, &uid) < 0)
		return ky_cli_usage(command, "--uid: user '%s' does not exist", options->uid);
	if (options->uid)
		to->uid = run->options.kernel.threads.uid = uid;
	return KY_EXIT_OK;
}

static int parse_buffers(const struct ky_command *command, const struct ky_record_options *options,
			 struct ky_record_run *run)
{
	bool is_user = strcmp(options->buffers, "user") == 0;

	run->options.user.shares_buffers = is_user;
	if (!is_user && strcmp(options->buffers, "process") != 0)
		return ky_cli_usage(command, "--buffers: '%s' is neither process nor user",
				    options->buffers);
	if (is_user && !run->options.has_user)
		return ky_cli_usage(command, "--buffers is for programs; add --user");
	return KY_EXIT_OK;
}

/* "discard", "block", "block:10ms". */
static int parse_when_full(const struct ky_command *command,
			   const struct ky_record_options *options, struct ky_record_run *run)
{
	uint64_t *wait_ns = &run->options.user.wait_ns;
	const char *text = options->when_full;

	if (strcmp(text, "discard") == 0)
		return KY_EXIT_OK;
	if (strcmp(text, "block") == 0)
		*wait_ns = UINT64_MAX;
	else if (strncmp(text, "block:", 6) != 0 || ky_parse_duration(text + 6, wait_ns) < 0 ||
		 !*wait_ns)
		return ky_cli_usage(
			command,
			"--when-full: '%s' is not discard, block or block:TIME, such as "
			"block:10ms",
			text);
	if (!run->options.has_user)
		return ky_cli_usage(command,
				    "--when-full block is for programs, because the kernel "
				    "cannot wait; add --user");
	if (options->overwrite)
		return ky_cli_usage(command,
				    "--when-full block: with --overwrite no buffer is full");
	return KY_EXIT_OK;
}

/* Less would be chunks that have hardly more than their state dump. */
#define MIN_CHUNK_BYTES (UINT64_C(1) << 20)
#define MIN_CHUNK_NS	(UINT64_C(1000000000))

static int check_rotation(const struct ky_command *command, const struct ky_record_options *options,
			  struct ky_record_run *run)
{
	struct ky_recording_rotation *to = &run->options.rotation;

	*to = (struct ky_recording_rotation){options->rotate_bytes, options->rotate_ns,
					     options->keep, options->keep_chunk_bytes,
					     options->keep_ns};
	run->hook.command = options->on_rotate;
	run->network.key_path = options->relay_key;
	run->network.insecure = options->insecure;
	if (options->spill && !ky_record_parse_spill(options->spill, &run->network))
		return ky_cli_usage(command,
				    "--spill: '%s' is not SIZE or SIZE:DIR; try 2G or 2G:/var/tmp",
				    options->spill);
	if (options->spill && !(options->output && ky_record_is_network(options->output)))
		return ky_cli_usage(command,
				    "--spill is for a recording at a relay: -o kymo://HOST/NAME");
	run->network.wait_ms = options->relay_wait_ns / 1000000;
	if (options->relay_wait_ns && !(options->output && ky_record_is_network(options->output)))
		return ky_cli_usage(
			command, "--relay-wait is for a recording at a relay: -o kymo://HOST/NAME");
	if ((to->size_bytes || to->every_ns) && (options->overwrite || options->raw))
		return ky_cli_usage(
			command,
			"--rotate-size, --rotate-every: a flight recorder and a raw recording "
			"have no chunks");
	if (to->size_bytes && to->size_bytes < MIN_CHUNK_BYTES)
		return ky_cli_usage(command, "--rotate-size: from 1M");
	if (to->every_ns && to->every_ns < MIN_CHUNK_NS)
		return ky_cli_usage(command, "--rotate-every: from 1s");
	return KY_EXIT_OK;
}

static int check_groups(const struct ky_command *command, const struct ky_record_options *options,
			struct ky_record_run *run)
{
	int code = ky_group_options_parse(command, &options->groups, &run->groups);

	if (!code && run->groups.n_kernel && options->raw)
		return ky_cli_usage(command, "--raw: no --group of kernel events");
	run->options.user_groups = run->groups.user;
	run->options.n_user_groups = run->groups.n_user;
	run->options.has_user = options->user.len || run->groups.n_user;
	run->options.kernel.groups = run->groups.kernel;
	run->options.kernel.n_groups = run->groups.n_kernel;
	return code;
}

int ky_record_check_options(const struct ky_command *command,
			    const struct ky_record_options *options, struct ky_record_run *run)
{
	struct ky_session_options *to = &run->options.kernel;
	int code;

	if (strcmp(options->identity, "lttng") != 0 && strcmp(options->identity, "kymo") != 0)
		return ky_cli_usage(command, "--identity: '%s' is neither lttng nor kymo",
				    options->identity);
	if (options->buffer_bytes < MIN_BUFFER_BYTES || options->buffer_bytes > MAX_BUFFER_BYTES)
		return ky_cli_usage(command, "--buffer-size: the size must be from 64k to 64G for "
					     "each CPU");
	if (!options->duration_ns)
		return ky_cli_usage(command,
				    "--duration: the time must be longer than 0: 5s, 500ms");
	if (options->name && !ky_recording_is_name(options->name))
		return ky_cli_usage(
			command,
			"--name: '%s' is not a name: use up to 64 letters, digits, '.', '_' "
			"and '-', not digits alone",
			options->name);
	run->options.name = options->name;
	run->background.is_wanted = options->background;
	if (options->ready_fd > INT_MAX || (options->ready_fd && options->background))
		return ky_cli_usage(
			command,
			"--ready-fd: the number of an open descriptor, without --background");
	if (options->ready_fd)
		run->background.ready_fd = (int)options->ready_fd;
	to->probes = (const char *const *)options->probes.items;
	to->n_probes = options->probes.len;
	to->sdt = (const char *const *)options->sdt.items;
	to->n_sdt = options->sdt.len;
	to->kprobes = (const char *const *)options->kprobes.items;
	to->n_kprobes = options->kprobes.len;
	to->only_probes = to->n_probes || to->n_sdt || to->n_kprobes;
	code = check_groups(command, options, run);
	if (code)
		return code;
	run->options.has_kernel = options->kernel.len || to->only_probes || run->groups.n_kernel ||
				  options->samples.len || !run->options.has_user;
	code = ky_sample_options_parse(command, options, run);
	if (code)
		return code;
	to->only_groups = run->groups.n_kernel && !options->kernel.len && !to->only_probes;
	run->duration_ns = options->duration_ns == NO_DURATION_NS ? 0 : options->duration_ns;
	to->identity_kymo = strcmp(options->identity, "kymo") == 0;
	to->events = (const char *const *)options->kernel.items;
	to->n_events = options->kernel.len;
	ky_cli_hint_rules(&options->kernel);
	to->exclusions = (const char *const *)options->exclude.items;
	to->n_exclusions = options->exclude.len;
	to->exclusions_may_miss = run->options.has_user;
	to->buffer_bytes = options->buffer_bytes;
	run->options.user.buffer_bytes = options->buffer_bytes;
	run->options.log = &ky_cli_log;
	run->options.user.overwrite = to->overwrite = options->overwrite;
	to->raw = options->raw;
	if (to->raw && !run->options.has_kernel)
		return ky_cli_usage(command, "--raw is for kernel events; add --kernel");
	if (to->raw && options->syscall_content)
		return ky_cli_usage(command,
				    "--raw: no --syscall-content, because BPF reads the content "
				    "while calls arrive");
	run->options.user.keep_bytes = options->keep_bytes;
	to->kernel_stacks = (const char *const *)options->kernel_stacks.items;
	to->n_kernel_stacks = options->kernel_stacks.len;
	to->user_stacks = (const char *const *)options->user_stacks.items;
	to->n_user_stacks = options->user_stacks.len;
	if (!run->options.has_kernel && (to->n_kernel_stacks || to->n_user_stacks))
		return ky_cli_usage(command, "--callstack-kernel and --callstack-user are for "
					     "kernel events; add --kernel");
	code = ky_trigger_options_parse(command, &options->triggers, &run->triggers);
	run->options.triggers = run->triggers.data;
	run->options.n_triggers = run->triggers.len;
	if (!code)
		code = check_rotation(command, options, run);
	if (!code)
		code = parse_when_full(command, options, run);
	if (!code)
		code = parse_buffers(command, options, run);
	if (!code)
		code = choose_threads(command, options, run);
	if (!code)
		code = parse_context(command, options->context, run);
	if (!code)
		code = parse_clock(command, options->clock, &run->options.clock);
	if (!code)
		code = parse_content(command, options->syscall_content, run);
	if (!code)
		code = check_calls(command, run);
	if (!code)
		code = check_context_of_bpf(command, run);
	if (!code)
		code = check_user_options(command, options, run);
	if (!code)
		code = parse_state(command, options, to);
	return code ? code : parse_reader(command, options->reader, &to->reader);
}
