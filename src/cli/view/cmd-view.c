/* SPDX-License-Identifier: MIT */
/* kymo view: traces in the browser. */
#include "cli/terminal/command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/query/query-output.h"
#include "cli/view/view-live.h"
#include "cli/view/view-perfetto.h"
#include "cli/view/view-tsp.h"
#include "cli/reading/input-options.h"
#include "cli/reading/open-link.h"
#include "cli/reading/select-options.h"
#include "cli/recording/record-child.h"
#include "cli/terminal/output.h"
#include "net/reader/live-feed.h"
#include "os/event-loop.h"
#include "view/answers/query.h"
#include "view/save/save.h"
#include "view/server/server.h"

#define DROP_SPACE_BYTES ((uint64_t)4 << 30)

/* Recordings at relays, of two pages: brought once. */
struct view_remotes {
	struct ky_cli_remotes own, beside;
	struct ky_cli_remotes all; /* of both, borrowed */
};

struct view_options {
	uint64_t port;
	bool no_browser, no_follow, tsp, perfetto;
	struct ky_text_list origins; /* with ->tsp */
	const char *save;
	struct ky_select_options select; /* only its times */
	struct ky_text_list beside;
	uint64_t drop_space, query_space;
	struct ky_text_list lami; /* programs */
	struct ky_text_list own;  /* reports: files of SQL */
	const char *trace;	  /* what they read; no option */
	char **args;		  /* no options */
	int n_args;
	struct ky_view_notes *notes, *beside_notes; /* no options */
	struct ky_view *beside_view;
	struct view_remotes both;
	struct ky_input_options input;
};

static const struct ky_option_def view_option_defs[] = {
	{.name = "port",
	 .letter = 'p',
	 .kind = KY_OPTION_U64,
	 .arg = "N",
	 .help = "Listen on this port of 127.0.0.1. Default: any free port; with --tsp, 8080.",
	 .at = offsetof(struct view_options, port)},
	{.name = "no-browser",
	 .kind = KY_OPTION_FLAG,
	 .help = "Only print the link. Without a display, kymo never opens a browser.",
	 .at = offsetof(struct view_options, no_browser)},
	{.name = "no-follow",
	 .kind = KY_OPTION_FLAG,
	 .help = "Show what a running recording has now, and do not follow it.",
	 .at = offsetof(struct view_options, no_follow)},
	{.name = "beside",
	 .kind = KY_OPTION_LIST,
	 .arg = "TRACE",
	 .help = "Show TRACE below the other traces, on one time axis; may be given again: these TRACEs "
		 "are shown together. The key = aligns both at their selected events.",
	 .at = offsetof(struct view_options, beside)},
	{.name = "drop-space",
	 .kind = KY_OPTION_SIZE,
	 .arg = "SIZE",
	 .help = "The most that copies of traces take that are dropped on the page, in $TMPDIR or /var/tmp; 0: "
		 "none can be dropped. Default: 4G.",
	 .at = offsetof(struct view_options, drop_space)},
	KY_QUERY_SPACE_OPTION_DEF(struct view_options, query_space),
	{.name = "lami",
	 .kind = KY_OPTION_LIST,
	 .arg = "PROGRAM",
	 .help = "Offer the report of PROGRAM, which speaks LAMI 1.0, for the range that the page shows; may "
		 "be given again. PROGRAM reads TRACE itself.",
	 .at = offsetof(struct view_options, lami)},
	{.name = "report",
	 .kind = KY_OPTION_LIST,
	 .arg = "FILE.sql",
	 .help = "Offer a report of your own among the page's, for the range that the page shows, as kymo report "
		 "FILE.sql; may be given again. The file is read again each time.",
	 .at = offsetof(struct view_options, own)},
	{.name = "save",
	 .kind = KY_OPTION_TEXT,
	 .arg = "FILE",
	 .help = "Do not start a server: write a page with the events, states and reports of the range to "
		 "FILE, in HTML; a file there is replaced. Browsers open it anywhere, without kymo.",
	 .at = offsetof(struct view_options, save)},
	{.name = "begin",
	 .letter = 'b',
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "With --save: the range begins at TIME: hh:mm:ss.nnnnnnnnn (with yyyy-mm-dd and a "
		 "blank before it, or on the day of the first event), seconds since the clock's "
		 "origin, +2s after the first event, -500ms before the last one, or 50%. Default: the whole "
		 "trace.",
	 .at = offsetof(struct view_options, select.begin)},
	{.name = "end",
	 .kind = KY_OPTION_TEXT,
	 .arg = "TIME",
	 .help = "With --save: the range ends at TIME.",
	 .at = offsetof(struct view_options, select.end)},
	{.name = "perfetto",
	 .kind = KY_OPTION_FLAG,
	 .help = "Show the trace in ui.perfetto.dev instead, whose page reads it from a server on port 9001 of "
		 "127.0.0.1; no byte of it leaves this machine.",
	 .at = offsetof(struct view_options, perfetto)},
	{.name = "tsp",
	 .kind = KY_OPTION_FLAG,
	 .help = "Serve VS Code's Trace Viewer and other clients of the Trace Server Protocol instead of the "
		 "page. Without TRACE, clients may open the traces that belong to you.",
	 .at = offsetof(struct view_options, tsp)},
	{.name = "origin",
	 .kind = KY_OPTION_LIST,
	 .arg = "URL",
	 .help = "With --tsp: a client in the browser is a page of URL, such as http://localhost:3000 for "
		 "Theia; may be given again. Default: only VS Code.",
	 .at = offsetof(struct view_options, origins)},
	KY_INPUT_OPTION_DEFS(struct view_options, input),
	KY_CORRELATE_OPTION_DEF(struct view_options, input),
	{0},
};

static void view_defaults(void *data)
{
	struct view_options *options = data;

	ky_cli_select_defaults(&options->select);
	options->drop_space = DROP_SPACE_BYTES;
	options->query_space = KY_SQL_TEMPORARY_BYTES;
}

static int end_loop(void *data, const struct signalfd_siginfo *info, struct kymo_error *err)
{
	(void)data;
	(void)info;
	(void)err;
	return KY_LOOP_END;
}

static void signals_of_end(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

/* The end may take a while. A second signal does not wait for it. */
static void let_signals_kill(const sigset_t *set)
{
	for (int number = 1; number < NSIG; number++)
		if (sigismember(set, number) == 1)
			(void)signal(number, SIG_DFL);
	(void)pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* Until a signal. */
int view_wait_for_end(struct kymo_error *err)
{
	struct ky_loop *loop;
	sigset_t set;
	int ret = ky_loop_new(&loop, err);

	if (ret < 0)
		return ret;
	signals_of_end(&set);
	ret = ky_loop_add_signals(loop, &set, end_loop, NULL, NULL, err);
	if (ret == KYMO_OK)
		ret = ky_loop_run(loop, err);
	ky_loop_free(loop);
	let_signals_kill(&set);
	return ret;
}

/* Reports on both sides read them as one set. */
static int cmd_view_open_both(void *data, struct ky_trace_set *set, struct kymo_error *err)
{
	struct view_options *options = data;
	struct ky_input_options input = options->input;
	KY_VEC(char *) paths = KY_VEC_INIT;
	int ret = KYMO_OK;

	input.is_again = true;
	input.force_correlate = true; /* it compares times of each, and not with each other */
	for (int i = 0; i < options->n_args && !ret; i++)
		ret = ky_vec_push(&paths, options->args[i]);
	for (size_t i = 0; i < options->beside.len && !ret; i++)
		ret = ky_vec_push(&paths, (char *)(uintptr_t)options->beside.items[i]);
	if (ret < 0)
		ky_error_nomem(err);
	input.remotes = &options->both.all;
	if (!ret)
		ret = ky_cli_open(set, paths.data, (int)paths.len, &input, true, err);
	ky_vec_fini(&paths);
	return ret;
}

/* A trace that is dropped on the page; its paths are the server's own. */
static int cmd_view_open_dropped(void *data, const char *const *paths, size_t n_paths,
				 struct ky_trace_set *set, struct kymo_error *err)
{
	const struct view_options *options = data;
	const struct ky_input_options input = {.recover = options->input.recover,
					       .force_correlate = options->input.force_correlate,
					       .is_again = true};

	return ky_cli_open(set, (char **)(uintptr_t)paths, (int)n_paths, &input, true, err);
}

static int cmd_view_serve(struct ky_view *view, struct ky_view_live *live,
			  struct view_options *options, struct kymo_error *err)
{
	struct ky_open_link opened = KY_OPEN_LINK_INIT;
	struct ky_view_server *server;
	const struct ky_view_drop_source drops = {cmd_view_open_dropped, options,
						  options->drop_space};
	struct ky_view_served served = {
		.view = view,
		.live = live,
		.notes = options->notes,
		.beside = options->beside_view,
		.beside_notes = options->beside_notes,
		.pair = {.paths = {options->trace,
				   options->beside.len ? options->beside.items[0] : NULL},
			 .open = options->beside.len ? cmd_view_open_both : NULL,
			 .data = options},
		.programs = {options->lami.items, options->lami.len, options->trace,
			     options->own.items, options->own.len},
		.beside_programs = {options->lami.items, options->lami.len,
				    options->beside.len ? options->beside.items[0] : NULL,
				    options->own.items, options->own.len}};
	int ret = ky_view_drops_open(&drops, &served.drops, err);

	ky_view_limit_statements(options->query_space);
	if (ret == KYMO_OK)
		ret = ky_view_server_open(&served, (uint16_t)options->port, &server, err);
	if (ret < 0) {
		ky_view_drops_close(served.drops);
		return ret;
	}
	printf("%s\n", ky_view_server_link(server)); /* lint: own text */
	fflush(stdout);
	ky_log_info(&ky_cli_log, "the viewer runs until Ctrl-C");
	if (!options->no_browser)
		ky_open_link(&opened, ky_view_server_link(server));
	ret = view_wait_for_end(err);
	ky_view_drops_forget(served.drops);
	ky_open_link_end(&opened);
	ky_view_server_close(server);
	ky_view_drops_close(served.drops);
	return ret;
}

/* On the standard error, for the page itself may go to the standard output. */
static void cmd_view_say_saved(const char *path, int64_t bytes)
{
	char size[32];

	fputs("Page: ", stderr);
	ky_cli_put_text(stderr, path);
	fprintf(stderr, ", %s\n", ky_format_bytes(size, (uint64_t)bytes));
}

static int save_range(struct ky_view *view, const struct ky_trace_set *set,
		      const struct view_options *options, struct kymo_error *err)
{
	struct ky_cli_output output;
	struct stat st = {0};
	int64_t begin_ns, end_ns;
	int ret = ky_cli_select_times(set, &options->select, false, &begin_ns, &end_ns, err);

	if (ret < 0)
		return ret;
	ret = ky_cli_output_file(&output, options->save, err);
	if (ret == KYMO_OK)
		ret = ky_view_save(view, options->notes, begin_ns, end_ns, output.fd, err);
	if (ret == KYMO_E_LIMIT)
		ky_error_hint(err, "choose a shorter range with --begin and --end");
	if (ret == KYMO_OK && fstat(output.fd, &st) < 0)
		st.st_mode = 0;
	if (ret == KYMO_OK)
		ret = ky_cli_output_commit(&output, err);
	if (ret == KYMO_OK && S_ISREG(st.st_mode))
		cmd_view_say_saved(options->save, st.st_size);
	ky_cli_output_close(&output);
	return ret;
}

/* @view or @live: of the traces of the command line; NULL without. */
static int serve_tsp(struct ky_view *view, struct ky_view_live *live,
		     const struct view_options *options, struct kymo_error *err)
{
	const struct view_tsp tsp = {.paths = (const char *const *)options->args,
				     .n_paths = (size_t)options->n_args,
				     .origins = (const char *const *)options->origins.items,
				     .n_origins = options->origins.len,
				     .follows = !options->no_follow,
				     .port = (uint16_t)options->port};

	return view_serve_tsp(&tsp, view, live, err);
}

static int view_set(struct ky_trace_set *set, struct view_options *options, struct kymo_error *err)
{
	struct ky_view *view;
	int ret = ky_view_new(set, &view, err);

	if (ret < 0)
		return ret;
	if (options->tsp)
		ret = serve_tsp(view, NULL, options, err);
	else if (options->save)
		ret = save_range(view, set, options, err);
	else
		ret = cmd_view_serve(view, NULL, options, err);
	ky_view_free(view);
	return ret;
}

static int view_remotes_add(struct ky_cli_remotes *all, const struct ky_cli_remotes *some)
{
	int ret = 0;

	ky_vec_foreach(&some->feeds, feed)
		if (!ret)
			ret = ky_vec_push(&all->feeds, *feed);
	ky_vec_foreach(&some->local, path)
		if (!ret)
			ret = ky_vec_push(&all->local, *path);
	return ret;
}

/* Reports on both pages open the traces again and again, so what is at relays is brought before. */
static int view_remotes_open(struct view_options *options, struct kymo_error *err)
{
	const struct ky_cli_remote_options how = {.key_path = options->input.relay_key,
						  .space_bytes = options->input.relay_space};
	struct view_remotes *both = &options->both;
	int ret = ky_cli_remotes_open(&both->own, options->args, options->n_args, &how, err);

	if (ret == KYMO_OK)
		ret = ky_cli_remotes_open(&both->beside, (char **)(uintptr_t)options->beside.items,
					  (int)options->beside.len, &how, err);
	if (ret == KYMO_OK && (view_remotes_add(&both->all, &both->own) < 0 ||
			       view_remotes_add(&both->all, &both->beside) < 0))
		ret = ky_error_nomem(err);
	return ret;
}

/* After the close of the sets. */
static void view_remotes_fini(struct view_remotes *both)
{
	ky_cli_remotes_fini(&both->own);
	ky_cli_remotes_fini(&both->beside);
	ky_vec_fini(&both->all.feeds);
	ky_vec_fini(&both->all.local);
}

/* The traces of --beside; without it, none. */
static int open_beside(struct view_options *options, struct ky_trace_set *set,
		       struct kymo_error *err)
{
	const struct ky_text_list *paths = &options->beside;
	struct ky_input_options input = options->input;
	int ret;

	if (!paths->len)
		return KYMO_OK;
	input.remotes = &options->both.beside;
	ret = ky_cli_open(set, (char **)(uintptr_t)paths->items, (int)paths->len, &input, true,
			  err);
	if (ret == KYMO_OK)
		ret = ky_view_new(set, &options->beside_view, err);
	if (ret == KYMO_OK)
		ret = ky_view_notes_open((const char *const *)paths->items, paths->len,
					 &options->beside_notes, err);
	return ret;
}

static void close_beside(struct view_options *options, struct ky_trace_set *set)
{
	ky_view_notes_close(options->beside_notes);
	ky_view_free(options->beside_view);
	ky_trace_set_close(set);
}

static int serve_live(void *data, struct ky_view_live *live, struct kymo_error *err)
{
	struct view_options *options = data;

	return options->tsp ? serve_tsp(NULL, live, options, err)
			    : cmd_view_serve(NULL, live, options, err);
}

static bool view_follows(const struct view_options *options, char **args, int n_args)
{
	return !options->no_follow && !options->save && !options->beside.len &&
	       ky_view_live_is(args, n_args);
}

/* Two pages. */
static int view_pair(struct view_options *options, struct kymo_error *err)
{
	struct ky_input_options input = options->input;
	struct ky_trace_set set, beside = {0};
	int ret = view_remotes_open(options, err);

	input.remotes = &options->both.own;
	if (ret == KYMO_OK)
		ret = ky_cli_open(&set, options->args, options->n_args, &input, true, err);
	if (ret < 0)
		return ret;
	ret = open_beside(options, &beside, err);
	if (ret == KYMO_OK)
		ret = view_set(&set, options, err);
	close_beside(options, &beside);
	ky_trace_set_close(&set);
	return ret;
}

static int view_paths(struct view_options *options, char **args, int n_args, struct kymo_error *err)
{
	struct ky_trace_set set;
	int ret;

	if (!n_args)
		return serve_tsp(NULL, NULL, options, err);
	options->trace = args[0];
	options->args = args;
	options->n_args = n_args;
	if (!options->perfetto && view_follows(options, args, n_args)) {
		if (!options->lami.len)
			return ky_view_live_run(args, n_args, &options->input, serve_live, options,
						err);
		ky_error_set(err, KYMO_E_UNSUPPORTED,
			     "cannot use --lami: the recording goes on, or is at a relay");
		ky_error_hint(err, "wait for its end, or try --no-follow");
		return KYMO_E_UNSUPPORTED;
	}
	if (options->beside.len) {
		ret = view_pair(options, err);
		view_remotes_fini(&options->both);
		return ret;
	}
	ret = ky_cli_open(&set, args, n_args, &options->input, true, err);
	if (ret < 0)
		return ret;
	if (options->perfetto)
		ret = view_serve_perfetto(&set, !options->no_browser, err);
	else
		ret = view_set(&set, options, err);
	ky_trace_set_close(&set);
	return ret;
}

/* A mistyped program is an error at the start, not when the page wants its report. Returns an exit code. */
static int cmd_view_check_programs(const struct ky_text_list *programs)
{
	for (size_t i = 0; i < programs->len; i++) {
		int errnum = ky_child_check(programs->items[i]);

		if (errnum)
			return ky_child_error(programs->items[i], errnum);
	}
	return KY_EXIT_OK;
}

static int cmd_view_check_own(const struct ky_text_list *files)
{
	for (size_t i = 0; i < files->len; i++) {
		struct kymo_error err;

		if (access(files->items[i], R_OK) == 0)
			continue;
		ky_error_errno(&err, errno, "cannot read the report");
		ky_error_path(&err, files->items[i]);
		ky_cli_error(&err);
		return KY_EXIT_FAIL;
	}
	return KY_EXIT_OK;
}

static int run_view(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct view_options *options = data;
	struct kymo_error err;
	sigset_t signals;
	int ret;

	if (options->port > UINT16_MAX)
		return ky_cli_usage(command, "--port: a port is a number up to 65535");
	if (!options->save && (options->select.begin || options->select.end))
		return ky_cli_usage(command, "--begin and --end need --save");
	if (!n_args && !options->tsp)
		return ky_cli_usage(command, "which trace? Only --tsp needs none");
	if (options->tsp ? options->save != NULL : options->origins.len > 0)
		return ky_cli_usage(command, options->tsp ? "--tsp and --save exclude each other"
							  : "--origin needs --tsp");
	if (options->lami.len &&
	    (options->save || options->tsp || n_args > 1 || options->beside.len > 1))
		return ky_cli_usage(command, "--lami needs the viewer's page, of one TRACE");
	if (options->own.len && (options->save || options->tsp || options->perfetto))
		return ky_cli_usage(command, "--report needs the viewer's page");
	if (options->beside.len && (options->save || options->tsp))
		return ky_cli_usage(command, "--beside shows pages of the viewer only");
	if (options->perfetto && (options->save || options->tsp || options->port ||
				  options->beside.len || options->lami.len))
		return ky_cli_usage(command, "--perfetto is for traces alone: not with --save, "
					     "--tsp, --port, --beside or --lami");
	ret = cmd_view_check_own(&options->own);
	if (ret == KY_EXIT_OK)
		ret = cmd_view_check_programs(&options->lami);
	if (ret != KY_EXIT_OK)
		return ret;
	/* Before any thread begins: all inherit it. */
	signals_of_end(&signals);
	if (!options->save)
		sigprocmask(SIG_BLOCK, &signals, NULL);
	ky_error_clear(&err);
	ret = ky_view_notes_open((const char *const *)args, (size_t)n_args, &options->notes, &err);
	if (ret == KYMO_OK)
		ret = view_paths(options, args, n_args, &err);
	ky_view_notes_close(options->notes);
	if (ret == KYMO_OK)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

const struct ky_command ky_command_view = {
	.name = "view",
	.summary = "show traces in the browser",
	.usage = "[OPTIONS] TRACE...",
	.description =
		"Starts a server on the loopback interface, prints a link to its page, and opens the page "
		"in the browser. The page shows the density of events over time, lost events, a table of "
		"all events with their fields, and the reports of kymo report for a range. Filters are "
		"those of kymo print --filter. Key '?' lists the keys.\n"
		"\n"
		"A trace of any size opens at once: the page first shows estimates from the packets' "
		"headers, and exact numbers as counting goes on.\n"
		"\n"
		"TRACE may also be the name or the directory of a running recording, or the address of one: "
		"kymo://HOST/NAME of kymo relay, net://HOST/host/MACHINE/SESSION of lttng-relayd. The page "
		"then follows it. It shows new events soon after they happen, until one moves back in time; the "
		"key L returns to the present. The page says when the recording has ended.\n"
		"\n"
		"--save FILE writes a range as one HTML file instead, with its events, states and reports: to send "
		"to somebody, or to keep beside a report of an error. It opens without kymo and without a network. "
		"In it, the filter is a text that events contain.\n"
		"\n"
		"Notes on times or areas (key B) stay in TRACE.kymo-notes.json beside the trace, or, where others "
		"can write to that directory, in ~/.local/share/kymo/notes.\n"
		"\n"
		"--report FILE.sql adds a report of your own, whose statements are about the range (:begin, :end).\n"
		"\n"
		"--lami PROGRAM adds the report of another program to the list of reports, such as those of "
		"lttng-analyses. The server runs it with TRACE and the range, and shows its tables.\n"
		"\n"
		"The link contains a secret token. Programs and pages without it cannot read the traces. "
		"The server opens only the traces of the command line, and copies of traces that are dropped on the page; "
		"the copies end with it. Ctrl-C ends it.\n"
		"\n"
		"With --tsp the server speaks the Trace Server Protocol instead, which has no token: VS Code's "
		"Trace Viewer expects it on port 8080. The server answers only programs of this user and of "
		"root, and opens only traces below TRACE or, without TRACE, traces that belong to this user.",
	.examples = "# open a trace in the browser\n"
		    "kymo view my-trace\n\n"
		    "# follow a recording that runs: kymo record --name daily\n"
		    "kymo view daily\n\n"
		    "# two seconds of a trace as a page for others\n"
		    "kymo view --save slow.html --begin 08:30:01 --end 08:30:03 my-trace\n\n"
		    "# a good and a bad run on one time axis\n"
		    "kymo view --beside good-run bad-run\n\n"
		    "# with a report of lttng-analyses\n"
		    "kymo view --lami lttng-cputop-mi my-trace\n\n"
		    "# with a report of your own\n"
		    "kymo view --report ./slow-calls.sql my-trace\n\n"
		    "# in Perfetto's page\n"
		    "kymo view --perfetto my-trace\n\n"
		    "# on another machine: print the link, and reach it through ssh\n"
		    "kymo view --no-browser --port 8123 my-trace\n"
		    "ssh -L 8123:127.0.0.1:8123 that-machine\n\n"
		    "# for the Trace Viewer of VS Code, which opens traces itself\n"
		    "kymo view --tsp",
	.see_also = "print report info",
	.first_trace = 1,
	.options = view_option_defs,
	.options_size = sizeof(struct view_options),
	.defaults = view_defaults,
	.min_args = 0,
	.max_args = -1,
	.run = run_view,
};
