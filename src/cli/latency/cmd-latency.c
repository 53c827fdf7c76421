/* SPDX-License-Identifier: MIT */
/* kymo latency: distributions of durations while the machine runs. */
#include "cli/terminal/command.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/latency/latency-run.h"

struct options {
	bool once, json, csv, stacks, chain, plain, wide;
	const char *by, *layers, *window, *syscalls, *comm, *listen;
	uint64_t every_ns, pid, tid, members_ns, keys, limit, max_open;
	struct ky_text_list tracks;
};

struct words {
	char *text; /* which they point into */
	KY_VEC(const char *) list;
};

static void cmd_latency_defaults(void *data)
{
	struct options *options = data;

	options->every_ns = 1000000000;
	options->limit = 10;
}

static const struct ky_option_def option_defs[] = {
	{"once", 0, KY_OPTION_FLAG, NULL,
	 "Measure for the time of --every, or until Ctrl-C, print the result and end.",
	 offsetof(struct options, once), NULL},
	{"every", 0, KY_OPTION_DURATION, "TIME",
	 "The period between two outputs, 10ms or longer. Default: 1s.",
	 offsetof(struct options, every_ns), NULL},
	{"plain", 0, KY_OPTION_FLAG, NULL,
	 "Print tables on a terminal, too, not a screen with keys.",
	 offsetof(struct options, plain), NULL},
	{"wide", 'w', KY_OPTION_FLAG, NULL, "Show all columns of tables, however wide they are.",
	 offsetof(struct options, wide), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL,
	 "Print JSON with the buckets of all histograms: an object on one line for each period.",
	 offsetof(struct options, json), NULL},
	{"csv", 0, KY_OPTION_FLAG, NULL, "Print comma-separated values.",
	 offsetof(struct options, csv), NULL},
	{"layers", 0, KY_OPTION_TEXT, "LIST",
	 "Measure only these layers, separated by commas: syscall, wakeup, offcpu, block-queue, block-device, flush, irq, "
	 "softirq, net-send, net-receive, first-byte, lock, file, program. Default: all.",
	 offsetof(struct options, layers),
	 "syscall wakeup offcpu block-queue block-device flush irq softirq net-send net-receive first-byte lock file program"},
	{"by", 0, KY_OPTION_TEXT, "KEY",
	 "A histogram for each process, user or cgroup; device: only the layers of block devices, which have one for each "
	 "device anyway.",
	 offsetof(struct options, by), "process user cgroup device"},
	{"syscalls", 0, KY_OPTION_TEXT, "NAMES",
	 "Histograms of their own for these system calls, separated by commas, beside those for read, write, sync, open, "
	 "close, poll, futex, sleep and other calls. Text shows them first.",
	 offsetof(struct options, syscalls), NULL},
	{"pid", 0, KY_OPTION_U64, "PID",
	 "Measure only this process. Interrupt handlers and softirqs belong to no process.",
	 offsetof(struct options, pid), NULL},
	{"window", 0, KY_OPTION_TEXT, "WINDOW",
	 "The time that the text covers: now (the last period), 1m, 5m or 15m. Default: now.",
	 offsetof(struct options, window), "now 1m 5m 15m"},
	{"limit", 0, KY_OPTION_U64, "N",
	 "Rows of each layer in text, those with the most time first; 0: all. Default: 10.",
	 offsetof(struct options, limit), NULL},
	{"keys", 0, KY_OPTION_U64, "N",
	 "Histograms that the kernel has room for, of 2 KiB each. Default: 8192 with --by, else 1024.",
	 offsetof(struct options, keys), NULL},
	{"track", 0, KY_OPTION_RULES, "TRACKER",
	 "Measure from one event to another one: 'NAME: BEGIN [if EXPR] -> END [if EXPR] [by KEY]', for example "
	 "'fsync: syscall:fsync -> syscall:fsync'. Events of programs are uprobe:FILE:FUNCTION(ARGUMENTS), uretprobe:FILE:FUNCTION and "
	 "sdt:FILE:NAME. Several are allowed. Other layers are measured only if --layers names them.",
	 offsetof(struct options, tracks), NULL},
	{"over", 0, KY_OPTION_RULES, "TIME",
	 "For the --track before it: print a line for each pair of events that takes longer than TIME, or ('worst') longer than all "
	 "before. Default: the time of --timeout; without --timeout, 1ms. Before any --track: the same for --chain; default: 1ms.",
	 offsetof(struct options, tracks), NULL},
	{"timeout", 0, KY_OPTION_RULES, "TIME",
	 "For the --track before it: print a line for each pair that is open for longer than TIME, once while it is open, and again when "
	 "it ends.",
	 offsetof(struct options, tracks), NULL},
	{"do", 0, KY_OPTION_RULES, "ACTION",
	 "For the --track before it: what to do when it prints a line, at most once a second: snapshot:NAME, rotate:NAME, "
	 "stop:NAME, mark:NAME[:TEXT], notify:NAME[:TEXT], report:NAME[:FILE] of a recording, start:PROFILE, run:COMMAND.",
	 offsetof(struct options, tracks), NULL},
	{"chain", 0, KY_OPTION_FLAG, NULL,
	 "Measure from an interrupt, by its handler and softirq, to the thread that they wake up, until its system call returns: "
	 "the whole and its parts. Each chain that takes longer than --over is a line. Other layers are measured only if "
	 "--layers names them.",
	 offsetof(struct options, chain), NULL},
	{"comm", 0, KY_OPTION_TEXT, "NAME",
	 "With --chain: only threads of this name; NAME* are names that begin so.",
	 offsetof(struct options, comm), NULL},
	{"tid", 0, KY_OPTION_U64, "TID", "With --chain: only this thread.",
	 offsetof(struct options, tid), NULL},
	{"listen", 0, KY_OPTION_TEXT, "ADDRESS",
	 "Serve all histograms as OpenMetrics, for Prometheus, at http://ADDRESS/metrics: 127.0.0.1:PORT or [::1]:PORT. Port 0 "
	 "is one that the kernel chooses. Prints no tables, but with --json or --csv.",
	 offsetof(struct options, listen), NULL},
	{"members", 0, KY_OPTION_DURATION, "TIME",
	 "Print a line for each single duration that is longer than TIME: its layer, its thread, and with --stacks the call stack of the "
	 "system call, or where the thread slept. On the screen, the durations that a row keeps; default there: 10ms.",
	 offsetof(struct options, members_ns), NULL},
	{"stacks", 0, KY_OPTION_FLAG, NULL,
	 "Show call stacks: of members, and of both events of a tracker's pair; the latter takes about a microsecond at each first event.",
	 offsetof(struct options, stacks), NULL},
	{"open", 0, KY_OPTION_U64, "N",
	 "Pairs of a tracker that can be open at once. Default: 10240.",
	 offsetof(struct options, max_open), NULL},
	{0},
};

/* ---- options ------------------------------------------------------------------------------ */

static int words_split(struct words *words, const char *text, struct kymo_error *err)
{
	char *at, *word;

	words->text = strdup(text ? text : "");
	if (!words->text)
		return ky_error_nomem(err);
	for (word = strtok_r(words->text, ",", &at); word; word = strtok_r(NULL, ",", &at))
		if (ky_vec_push(&words->list, word) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

static void words_fini(struct words *words)
{
	ky_vec_fini(&words->list);
	free(words->text);
}

static int find_layer(const char *name)
{
	for (int i = 0; i < KY_LATENCY_TRACK; i++)
		if (strcmp(ky_latency_layer_name(i), name) == 0)
			return i;
	return -1;
}

static int wrong_layer(const char *name, struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;
	int ret = ky_error_set(err, KYMO_E_INVALID, "--layers: '%s' is not a layer", name);

	for (int i = 0; i < KY_LATENCY_TRACK; i++)
		ky_strbuf_addf(&names, "%s%s", i ? ", " : "", ky_latency_layer_name(i));
	ky_error_hint(err, "layers are %s", ky_strbuf_text(&names));
	ky_strbuf_fini(&names);
	return ret;
}

static int choose_layers(uint32_t *layers, const char *text, bool has_others,
			 struct kymo_error *err)
{
	struct words words = {0};
	int ret = words_split(&words, text, err), layer;

	*layers = text || has_others ? 0 : KY_LATENCY_ALL_LAYERS;
	for (size_t i = 0; i < words.list.len && !ret; i++) {
		layer = find_layer(words.list.data[i]);
		if (layer < 0)
			ret = wrong_layer(words.list.data[i], err);
		else
			*layers |= 1u << layer;
	}
	if (!ret && !*layers && !has_others)
		ret = ky_error_set(err, KYMO_E_INVALID, "--layers needs a layer");
	words_fini(&words);
	return ret;
}

static int choose_by(struct ky_latency_options *to, const char *text, struct kymo_error *err)
{
	static const char *const names[] = {"", "process", "user", "cgroup"};

	if (!text)
		return KYMO_OK;
	for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			to->by = (enum ky_latency_by)i;
			return KYMO_OK;
		}
	if (strcmp(text, "device") != 0)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--by needs process, user, cgroup or device, not '%s'", text);
	to->layers &= KY_LATENCY_BLOCK_LAYERS;
	return to->layers
		       ? KYMO_OK
		       : ky_error_set(
				 err, KYMO_E_INVALID,
				 "--by device needs one of the layers block-queue, block-device and flush");
}

static int choose_window(enum ky_past *window, const char *text, struct kymo_error *err)
{
	*window = KY_PAST_NOW;
	for (int i = 0; text && i < KY_PASTS; i++)
		if (strcmp(ky_past_name(i), text) == 0) {
			*window = (enum ky_past)i;
			return KYMO_OK;
		}
	return !text ? KYMO_OK
		     : ky_error_set(err, KYMO_E_INVALID,
				    "--window needs now, 1m, 5m or 15m, not '%s'", text);
}

static int cmd_latency_check(const struct options *options, struct kymo_error *err)
{
	if (options->json && options->csv)
		return ky_error_set(err, KYMO_E_INVALID, "--json and --csv exclude each other");
	if (options->every_ns < 10000000)
		return ky_error_set(err, KYMO_E_INVALID, "--every needs 10ms or more");
	if (options->pid > INT_MAX || options->tid > INT_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "--pid, --tid: no thread has this ID");
	if (options->csv && (options->members_ns || options->chain))
		return ky_error_set(
			err, KYMO_E_INVALID,
			"--csv has only histograms; use --json with --members and --chain");
	if ((options->tid || options->comm) && !options->chain)
		return ky_error_set(err, KYMO_E_INVALID, "--tid and --comm are for --chain");
	if (options->keys > 1000000 || options->max_open > 10000000)
		return ky_error_set(err, KYMO_E_INVALID,
				    "--keys: at most 1000000; --open: at most 10000000");
	return KYMO_OK;
}

/* What the options ask for. */
static int cmd_latency_choose(const struct options *options, struct ky_latency_options *wanted,
			      struct ky_latency_run *run, struct words *syscalls,
			      struct kymo_error *err)
{
	int ret = cmd_latency_check(options, err);

	wanted->pid = (int32_t)options->pid;
	wanted->max_cells = (uint32_t)options->keys;
	wanted->members_ns = options->members_ns;
	wanted->stacks = options->stacks;
	if (ky_latency_run_wants_screen(run)) {
		wanted->members_ns =
			options->members_ns ? options->members_ns : KY_LATENCY_SCREEN_MEMBERS_NS;
		wanted->stacks = true;
	}
	if (!ret)
		ret = choose_layers(&wanted->layers, options->layers,
				    run->tracks.n || options->chain, err);
	if (!ret)
		ret = choose_by(wanted, options->by, err);
	if (!ret)
		ret = choose_window(&run->view.window, options->window, err);
	if (!ret)
		ret = words_split(syscalls, options->syscalls, err);
	wanted->syscalls = syscalls->list.data;
	wanted->n_syscalls = syscalls->list.len;
	run->view.by = wanted->by;
	return ret;
}

static int run_latency(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct ky_latency_options wanted = {0};
	struct ky_latency_run run = {.view = {.limit = options->limit, .wide = options->wide},
				     .json = options->json,
				     .csv = options->csv,
				     .once = options->once,
				     .plain = options->plain,
				     .has_chain = options->chain,
				     .listen = options->listen,
				     .every_ns = options->every_ns,
				     .members_ns = options->members_ns};
	struct words syscalls = {0};
	struct kymo_error err;
	int ret;

	(void)n_args;
	(void)args;
	ky_error_clear(&err);
	run.tracks.json = run.members.json = options->json;
	run.tracks.is_quiet = options->csv;
	run.chain = (struct ky_chain_options){.tid = (int32_t)options->tid,
					      .pid = (int32_t)options->pid,
					      .comm = options->comm,
					      .over_ns = 1000000};
	run.tracks.chain = options->chain ? &run.chain : NULL;
	ret = ky_tracks_parse(command, &options->tracks, options->max_open, options->stacks,
			      &run.tracks);
	if (ret != KY_EXIT_OK) {
		ky_latency_run_fini(&run);
		return ret;
	}
	ret = cmd_latency_choose(options, &wanted, &run, &syscalls, &err);
	if (!ret)
		ret = ky_latency_run(&run, &wanted, &err);
	ky_latency_run_fini(&run);
	words_fini(&syscalls);
	if (ret == KYMO_E_INVALID)
		return err.hint[0] ? ky_cli_usage(command, "%s; %s", err.message, err.hint)
				   : ky_cli_usage(command, "%s", err.message);
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

const struct ky_command ky_command_latency = {
	.name = "latency",
	.summary = "distributions of latencies while the machine runs",
	.usage = "[OPTIONS]",
	.description =
		"Shows how long system calls, wake-ups, waits, block requests, flushes, interrupt handlers, softirqs, packets, waits for "
		"locks of the kernel and the file system's parts of calls take, without a trace: BPF programs in the kernel measure "
		"each of them, and only histograms leave the kernel. kymo latency needs root, BPF and the kernel's type information "
		"(BTF).\n\n"
		"Each period (--every) prints a table: count, rate, percentiles, the longest, and the distribution as a picture "
		"with a character for each power of two. --window chooses the last period, 1, 5 or 15 minutes; JSON and CSV have "
		"all of these. Percentiles are exact to 1/8; counts and the longest are exact.\n\n"
		"A histogram of system calls is of a kind of calls (read has pread64, readv, recvfrom ..., too). Off the CPU, a "
		"row is what the thread waited for: the system call in which it slept, a device, the kernel, a page fault, or the "
		"CPU itself (preempted, yielded).\n\n"
		"--track follows pairs of events, and --chain the way from an interrupt to user space; both print a line for each that "
		"takes too long. docs/latency.md explains all rows and trackers.",
	.examples =
		"# all layers, once a second\nkymo latency\n\n"
		"# what happened within ten seconds, as JSON\nkymo latency --once --every 10s --json\n\n"
		"# which processes wait for fsync\nkymo latency --layers syscall --syscalls fsync --by process\n\n"
		"# the disk over the last 5 minutes\nkymo latency --by device --window 5m\n\n"
		"# wake-ups of one program that take more than 1 ms\n"
		"kymo latency --track 'wake: sched_waking if comm == \"postgres\" -> sched_switch by tid=next_tid' --over 1ms --stacks\n\n"
		"# a real-time program: from the timer to its next step, in parts\n"
		"kymo latency --chain --comm cyclictest --over 100us\n\n"
		"# calls of fsync that hang: a snapshot of a flight recorder\n"
		"kymo latency --track 'fsync: syscall:fsync -> syscall:fsync' --timeout 1s --do snapshot:always\n\n"
		"# histograms for Prometheus\nkymo latency --listen 127.0.0.1:9435\n",
	.see_also = "report record list",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.defaults = cmd_latency_defaults,
	.max_args = 0,
	.run = run_latency,
};
