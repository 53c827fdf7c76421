/* SPDX-License-Identifier: MIT */
/* kymo count: how often events happen, by their fields, counted in the kernel. */
#include "cli/terminal/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "cli/latency/count-output.h"
#include "cli/recording/record-child.h"
#include "os/now.h"

struct options {
	bool json, csv, follow, stack;
	struct ky_text_list by;
	const char *sum;
	uint64_t every_ns, duration_ns, limit, keys;
	char **command;
};

static void cmd_count_defaults(void *data)
{
	struct options *options = data;

	options->limit = 20;
}

static const struct ky_option_def option_defs[] = {
	{"by", 0, KY_OPTION_LIST, "FIELDS",
	 "Count for each value of these fields, separated by commas: at most six fields of the events, or event, cpu, tid, pid, "
	 "procname, uid, kernel_stack, user_stack. Default: event.",
	 offsetof(struct options, by), NULL},
	{"sum", 0, KY_OPTION_TEXT, "FIELD",
	 "Add up this field, too, and sort by the sum. Events without the field are not counted.",
	 offsetof(struct options, sum), NULL},
	{"stack", 0, KY_OPTION_FLAG, NULL,
	 "Count for each call stack, too: of the kernel, and of the program. The same as --by kernel_stack,user_stack,pid.",
	 offsetof(struct options, stack), NULL},
	{"every", 0, KY_OPTION_DURATION, "TIME",
	 "Print what happened in each period of this length. Default: one table at the end.",
	 offsetof(struct options, every_ns), NULL},
	{"duration", 0, KY_OPTION_DURATION, "TIME",
	 "End after this time. Default: with Ctrl-C, or when COMMAND ends.",
	 offsetof(struct options, duration_ns), NULL},
	{"follow", 0, KY_OPTION_FLAG, NULL, "Count only what COMMAND and its children do.",
	 offsetof(struct options, follow), NULL},
	{"limit", 0, KY_OPTION_U64, "N", "Rows to print, the largest first; 0: all. Default: 20.",
	 offsetof(struct options, limit), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL, "Print JSON: an object on one line for each period.",
	 offsetof(struct options, json), NULL},
	{"csv", 0, KY_OPTION_FLAG, NULL, "Print comma-separated values.",
	 offsetof(struct options, csv), NULL},
	{"keys", 0, KY_OPTION_U64, "N",
	 "Combinations of values that the kernel has room for. Default: 16384. Events of more are not counted, and the "
	 "output says how many.",
	 offsetof(struct options, keys), NULL},
	{0},
};

struct counting {
	const struct options *options;
	struct ky_count_view view;
	struct ky_child child;
	sigset_t set, old_set;
	bool has_titles;
};

/* ---- options ------------------------------------------------------------------------------ */

static int cmd_count_check(const struct options *options, struct kymo_error *err)
{
	if (options->json && options->csv)
		return ky_error_set(err, KYMO_E_INVALID, "--json and --csv exclude each other");
	if (options->every_ns && options->every_ns < 10000000)
		return ky_error_set(err, KYMO_E_INVALID, "--every needs 10ms or more");
	if (options->keys > 10000000)
		return ky_error_set(err, KYMO_E_INVALID, "--keys: at most 10000000");
	if (options->follow && !options->command)
		return ky_error_set(err, KYMO_E_INVALID, "--follow needs a command after --");
	return KYMO_OK;
}

/* "sched_switch if prev_state == 1", of one operand or several. */
static void join_rule(struct ky_strbuf *rule, int n_args, char **args)
{
	for (int i = 0; i < n_args; i++) {
		ky_strbuf_adds(rule, i ? " " : "");
		ky_strbuf_adds(rule, args[i]);
	}
}

struct fields {
	struct ky_strbuf text;
	KY_VEC(const char *) list;
};

static int split_fields(struct fields *fields, const struct options *options,
			struct kymo_error *err)
{
	const struct ky_text_list *by = &options->by;
	char *word, *at;

	for (size_t i = 0; i < by->len; i++) {
		ky_strbuf_adds(&fields->text, i ? "," : "");
		ky_strbuf_adds(&fields->text, by->items[i]);
	}
	if (options->stack)
		ky_strbuf_adds(&fields->text, ",kernel_stack,user_stack,pid");
	if (!fields->text.len)
		return KYMO_OK;
	if (ky_strbuf_failed(&fields->text))
		return ky_error_nomem(err);
	for (word = strtok_r(fields->text.data, ", ", &at); word; word = strtok_r(NULL, ", ", &at))
		if (ky_vec_push(&fields->list, word) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

/* ---- running ------------------------------------------------------------------------------ */

static int cmd_count_put(struct counting *counting, struct kymo_error *err)
{
	const struct options *options = counting->options;
	struct ky_count_view *view = &counting->view;
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret = ky_count_read(view->count, err);

	view->end_ns = ky_os_time_ns(CLOCK_REALTIME);
	if (ret == KYMO_OK && options->json)
		ret = ky_count_put_json(view, err);
	else if (ret == KYMO_OK && options->csv)
		ky_count_put_csv(&out, view, !counting->has_titles);
	else if (ret == KYMO_OK)
		ret = ky_count_put_text(&out, view, err);
	counting->has_titles = true;
	view->begin_ns = view->end_ns;
	ky_cli_write(&out);
	fflush(stdout);
	ky_strbuf_fini(&out);
	return ret;
}

/* Until @until_ns of CLOCK_MONOTONIC. True: a signal, or the end of the command, ends it all. */
static bool cmd_count_wait(struct counting *counting, int64_t until_ns)
{
	int64_t left_ns;

	while ((left_ns = until_ns - ky_os_time_ns(CLOCK_MONOTONIC)) > 0) {
		struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
		int number = sigtimedwait(&counting->set, NULL, &left);

		if (number == SIGCHLD)
			ky_child_reap(&counting->child, WNOHANG);
		if (counting->child.exited || (number > 0 && number != SIGCHLD))
			return true;
	}
	return false;
}

static int cmd_count_follow(struct counting *counting, struct kymo_error *err)
{
	const struct options *options = counting->options;
	int64_t begin_ns = ky_os_time_ns(CLOCK_MONOTONIC), next_ns = begin_ns;
	int64_t end_ns =
		options->duration_ns ? begin_ns + (int64_t)options->duration_ns : INT64_MAX;
	bool is_over = false;
	int ret = KYMO_OK;

	while (!is_over && ret == KYMO_OK) {
		next_ns = options->every_ns ? next_ns + (int64_t)options->every_ns : INT64_MAX;
		is_over = cmd_count_wait(counting, next_ns < end_ns ? next_ns : end_ns) ||
			  next_ns >= end_ns;
		if (is_over)
			ky_count_stop(counting->view.count);
		ret = cmd_count_put(counting, err);
		is_over |= ky_cli_pipe_closed();
	}
	return ret;
}

static int cmd_count_start(struct counting *counting, struct kymo_error *err)
{
	int ret = KYMO_OK, errnum;

	if (counting->options->follow)
		ret = ky_count_follow(counting->view.count, counting->child.pid, err);
	if (ret == KYMO_OK)
		ret = ky_count_start(counting->view.count, err);
	if (ret < 0)
		return ret;
	counting->view.begin_ns = ky_os_time_ns(CLOCK_REALTIME);
	if (!counting->child.pid) {
		fputs(counting->options->duration_ns ? "" : "kymo: counting; Ctrl-C ends it\n",
		      stderr);
		return KYMO_OK;
	}
	errnum = ky_child_release(&counting->child);
	return errnum ? ky_error_errno(err, errnum, "cannot run '%s'", counting->child.args[0])
		      : KYMO_OK;
}

static void block_signals(struct counting *counting)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

	sigemptyset(&counting->set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&counting->set, numbers[i]);
	sigprocmask(SIG_BLOCK, &counting->set, &counting->old_set);
	ky_cli_catch_sigpipe();
}

/* An exit code, or a negative status. */
static int cmd_count_run(struct counting *counting, const struct ky_count_options *wanted,
			 struct kymo_error *err)
{
	int ret, code;

	block_signals(counting);
	/* Counting takes more descriptors than the command shall have. */
	(void)getrlimit(RLIMIT_NOFILE, &counting->child.files);
	ret = ky_count_open(wanted, &counting->view.count, err);
	if (ret < 0)
		return ret;
	code = ky_child_fork(&counting->child, &counting->old_set);
	if (code == KY_EXIT_OK) {
		ret = cmd_count_start(counting, err);
		if (ret == KYMO_OK)
			ret = cmd_count_follow(counting, err);
		if (counting->child.exited)
			code = ky_child_code(&counting->child);
		ky_child_end(&counting->child);
	}
	ky_count_close(counting->view.count);
	return ret < 0 ? ret : code;
}

/* A mistake in the command line, with its place in the rule. */
static int cmd_count_blame(const struct ky_command *command, const char *rule,
			   const struct kymo_error *err)
{
	char place[300] = "";

	if (err->column)
		snprintf(place, sizeof(place), "'%.200s':%u:%u: ", rule, err->line, err->column);
	return err->hint[0] ? ky_cli_usage(command, "%s%s; %s", place, err->message, err->hint)
			    : ky_cli_usage(command, "%s%s", place, err->message);
}

static int run_count(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct counting counting = {
		.options = options,
		.child = {.args = options->command, .go_fd = -1, .fail_fd = -1}};
	struct ky_count_options wanted = {.max_keys = (uint32_t)options->keys,
					  .sum = options->sum,
					  .follows = options->follow};
	struct ky_strbuf rule = KY_STRBUF_INIT;
	struct fields fields = {.text = KY_STRBUF_INIT};
	struct kymo_error err;
	int ret;

	ky_error_clear(&err);
	if (options->command && ky_child_check(options->command[0]))
		return ky_child_error(options->command[0], ky_child_check(options->command[0]));
	join_rule(&rule, n_args, args);
	ret = cmd_count_check(options, &err);
	if (ret == KYMO_OK)
		ret = split_fields(&fields, options, &err);
	wanted.rule = ky_strbuf_text(&rule);
	wanted.by = fields.list.data;
	wanted.n_by = fields.list.len;
	counting.view.rule = wanted.rule;
	counting.view.sum = options->sum;
	counting.view.limit = options->limit;
	if (ret == KYMO_OK)
		ret = cmd_count_run(&counting, &wanted, &err);
	if (ret < 0)
		ret = ret == KYMO_E_INVALID ? cmd_count_blame(command, wanted.rule, &err)
					    : ky_cli_error(&err);
	ky_vec_fini(&fields.list);
	ky_strbuf_fini(&fields.text);
	ky_strbuf_fini(&rule);
	return ret;
}

const struct ky_command ky_command_count = {
	.name = "count",
	.summary = "count events of the kernel by their fields, without a trace",
	.usage = "[OPTIONS] EVENTS [if EXPR] [-- COMMAND [ARGS...]]",
	.description =
		"Counts events of the kernel while the machine runs: a BPF program in the kernel counts each event where it "
		"happens, and only the counts leave the kernel. So events of any rate can be counted, without a trace and "
		"without losses by full buffers. kymo count needs root and BPF.\n\n"
		"EVENTS and EXPR are as in kymo record --kernel: names and patterns between commas, and a condition (kymo list, "
		"docs/filter.md). The kernel evaluates comparisons of a field, or of FIELD & MASK, with constants, and &&, || "
		"and ! of these. kymo count says so when it cannot evaluate a condition.\n\n"
		"The counting ends with Ctrl-C, after --duration, or when COMMAND ends. It covers the whole machine, but not "
		"kymo count itself; with --follow only COMMAND and its children. The exit code is that of COMMAND. docs/count.md "
		"has recipes.",
	.examples =
		"# which programs make which system calls\nkymo count 'syscall_entry_*' --by procname,event --duration 5s\n\n"
		"# bytes that each process reads, once a second\nkymo count syscall_exit_read if 'ret > 0' --by procname --sum ret --every 1s\n\n"
		"# what a command calls\nkymo count 'syscall_entry_*' --follow -- ls -l\n\n"
		"# from where the kernel allocates pages for a program\nkymo count kmem_mm_page_alloc --stack --follow --limit 3 -- ls\n\n"
		"# threads that are taken off the CPU while they could still run\nkymo count sched_switch if 'prev_state == 0' --by prev_comm --duration 10s\n",
	.see_also = "latency record list report",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.command_at = offsetof(struct options, command),
	.defaults = cmd_count_defaults,
	.min_args = 1,
	.max_args = -1,
	.run = run_count,
};
