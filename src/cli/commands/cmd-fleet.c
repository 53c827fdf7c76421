/* SPDX-License-Identifier: MIT */
/* kymo fleet: traces of many machines in one store. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/reading/input-options.h"
#include "cli/reading/run-flow.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"
#include "fleet/fleet-follow.h"
#include "fleet/fleet-why.h"
#include "fleet/fleet.h"

#define SINCE_NS UINT64_C(3600000000000)
#define EVERY_NS UINT64_C(10000000000)

struct fleet_cli_options {
	struct ky_input_options input;
	const char *to, *from, *host;
	struct ky_text_list tables, events, reports;
	bool with_texts, again, json;
	uint64_t since_ns, keep_ns, every_ns;
	bool once;
};

/* clang-format off */
static const struct ky_option_def fleet_option_defs[] = {
	{"to", 0, KY_OPTION_TEXT, "DIR|URL",
	 "load: the store, a directory or http[s]://[USER@]HOST[:PORT][/DATABASE] of a ClickHouse server. It is made if need be.",
	 offsetof(struct fleet_cli_options, to), NULL},
	{"from", 0, KY_OPTION_TEXT, "DIR|URL", "why: the store.",
	 offsetof(struct fleet_cli_options, from), NULL},
	{"table", 't', KY_OPTION_LIST, "NAME",
	 "load: only these tables of 'kymo query --schema' (wildcards). Default: intervals, counters, losses and hosts.",
	 offsetof(struct fleet_cli_options, tables), NULL},
	{"event", 'e', KY_OPTION_LIST, "NAME",
	 "load: also the tables of these kinds of events (wildcards), such as 'sched_switch'.",
	 offsetof(struct fleet_cli_options, events), NULL},
	{"report", 0, KY_OPTION_LIST, "NAME",
	 "load: also the rows of report NAME, or of all reports, as tables report_NAME_TABLE, for "
	 "kymo report --fleet. May be given again.",
	 offsetof(struct fleet_cli_options, reports), NULL},
	{"with-texts", 0, KY_OPTION_FLAG, NULL,
	 "load: also columns of texts that may hold secrets: paths, arguments, messages, texts of events.",
	 offsetof(struct fleet_cli_options, with_texts), NULL},
	{"host", 0, KY_OPTION_TEXT, "NAME", "load: the machine's name, instead of the one in the traces.",
	 offsetof(struct fleet_cli_options, host), NULL},
	{"again", 0, KY_OPTION_FLAG, NULL,
	 "load: remove what the store has of these traces first, for other columns or corrected clocks.",
	 offsetof(struct fleet_cli_options, again), NULL},
	{"keep", 0, KY_OPTION_DURATION, "TIME",
	 "load: then remove rows that are older than TIME; of a server, whole days.",
	 offsetof(struct fleet_cli_options, keep_ns), NULL},
	{"since", 0, KY_OPTION_DURATION, "TIME", "why: the last TIME before the newest row (default: 1h).",
	 offsetof(struct fleet_cli_options, since_ns), NULL},
	{"every", 0, KY_OPTION_DURATION, "TIME",
	 "follow: the least time between two loads of a recording that grows (default: 10s).",
	 offsetof(struct fleet_cli_options, every_ns), NULL},
	{"once", 0, KY_OPTION_FLAG, NULL, "follow: end when all recordings are loaded, instead of waiting for more.",
	 offsetof(struct fleet_cli_options, once), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL, "Print JSON.", offsetof(struct fleet_cli_options, json), NULL},
	KY_INPUT_OPTION_DEFS(struct fleet_cli_options, input),
	{0},
};
/* clang-format on */

/* ---- load ----------------------------------------------------------------------------- */

static void fleet_tell_progress(void *data, uint64_t n_rows)
{
	(void)data;
	ky_cli_progress("loading rows", n_rows, 0);
}

static struct ky_fleet_options fleet_how(const struct fleet_cli_options *options)
{
	return (struct ky_fleet_options){
		.tables = options->tables.items,
		.n_tables = options->tables.len,
		.events = options->events.items,
		.n_events = options->events.len,
		.reports = options->reports.items,
		.n_reports = options->reports.len,
		.with_texts = options->with_texts,
		.again = options->again,
		.host = options->host,
		.stop = ky_cli_interrupted,
	};
}

static int fleet_load_set(const struct fleet_cli_options *options, struct ky_fleet *store,
			  const struct ky_trace_set *set, struct ky_fleet_result *result,
			  struct kymo_error *err)
{
	struct ky_fleet_options how = fleet_how(options);
	int ret;

	how.progress = fleet_tell_progress;
	ret = ky_fleet_load(store, set, &how, result, err);

	ky_cli_progress_end();
	return ret;
}

/* Each operand by itself: it is the same load whatever stands beside it. */
static int fleet_load_all(struct fleet_cli_options *options, struct ky_fleet *store, int n_args,
			  char **args, struct ky_fleet_result *result, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (int i = 0; i < n_args && !ret; i++) {
		struct ky_trace_set set;

		ret = ky_cli_open(&set, &args[i], 1, &options->input, true, err);
		if (ret < 0)
			break;
		ret = fleet_load_set(options, store, &set, result, err);
		ky_trace_set_close(&set);
	}
	return ret;
}

static int fleet_expire(struct ky_fleet *store, uint64_t keep_ns, struct kymo_error *err)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return store->ops->expire(store, (int64_t)now.tv_sec * 1000000000 - (int64_t)keep_ns, err);
}

static int run_load(struct fleet_cli_options *options, int n_args, char **args,
		    struct kymo_error *err)
{
	struct ky_fleet_result result = {0};
	struct ky_fleet *store;
	int ret = ky_fleet_check_reports(options->reports.items, options->reports.len, err);

	if (!ret)
		ret = ky_fleet_open(options->to, true, &store, err);
	if (ret < 0)
		return ret;
	ret = fleet_load_all(options, store, n_args, args, &result, err);
	if (!ret && options->keep_ns)
		ret = fleet_expire(store, options->keep_ns, err);
	ky_fleet_close(store);
	if (!ret && options->json)
		printf("{\"rows\": %" PRIu64 ", \"batches\": %" PRIu64 ", \"known_rows\": %" PRIu64
		       "}\n",
		       result.n_rows, result.n_batches, result.n_known);
	else if (!ret)
		printf("%" PRIu64 " new rows, %" PRIu64 " were there\n", result.n_rows,
		       result.n_known);
	return ret;
}

/* ---- follow --------------------------------------------------------------------------- */

static int fleet_run_follow(const struct fleet_cli_options *options, const char *dir,
			    struct kymo_error *err)
{
	const struct ky_fleet_follow_options how = {
		.place = options->to,
		.dir = dir,
		.every_ns = options->every_ns ? options->every_ns : EVERY_NS,
		.ends_when_whole = options->once,
		.how = fleet_how(options),
		.log = &ky_cli_log,
	};

	int ret = ky_fleet_check_reports(options->reports.items, options->reports.len, err);

	ky_cli_catch_signals();
	return ret ? ret : ky_fleet_follow(&how, err);
}

/* ---- why ------------------------------------------------------------------------------ */

static const char *fleet_value(char text[64], const struct ky_fleet_measure *measure, double value)
{
	if (strcmp(measure->unit, "ns") == 0)
		return ky_format_duration(text, value > 0 ? (uint64_t)value : 0);
	(void)snprintf(text, 64, "%.2f%s%s", value, measure->unit[0] ? " " : "", measure->unit);
	return text;
}

static void fleet_put_why(const struct ky_fleet_why *why)
{
	char text[64];

	printf("%" PRIu64 " host%s, %" PRIu64 " measures compared\n", why->n_hosts,
	       why->n_hosts == 1 ? "" : "s", why->n_measures);
	if (why->n_hosts < 3)
		puts("Three hosts are needed to tell what stands out. Machines of the same name are "
		     "one host: kymo fleet load --host NAME names them.");
	else if (!why->findings.len)
		puts("No host, kernel or tracer stands out.");
	ky_vec_foreach(&why->findings, finding) {
		printf("%-7s ", finding->kind); /* lint: own text */
		ky_cli_put_padded(stdout, finding->name, 28);
		printf("%-24s ", finding->measure->name); /* lint: own text */
		/* lint: own text */
		printf("%12s", fleet_value(text, finding->measure, finding->value));
		/* lint: own text */
		printf("  usually %12s", fleet_value(text, finding->measure, finding->usual));
		if (finding->n_hosts > 1)
			printf("  on %" PRIu64 " hosts", finding->n_hosts);
		putchar('\n');
	}
}

static int fleet_put_why_json(const struct ky_fleet_why *why, struct kymo_error *err)
{
	json_t *root = json_object(), *list = json_array();

	json_object_set_new(root, "hosts", json_integer((json_int_t)why->n_hosts));
	json_object_set_new(root, "measures", json_integer((json_int_t)why->n_measures));
	ky_vec_foreach(&why->findings, finding) {
		json_t *object = json_object();

		json_object_set_new(object, "kind", ky_jansson_text(finding->kind));
		json_object_set_new(object, "name", ky_jansson_text(finding->name));
		json_object_set_new(object, "measure", ky_jansson_text(finding->measure->name));
		json_object_set_new(object, "unit", ky_jansson_text(finding->measure->unit));
		json_object_set_new(object, "value", json_real(finding->value));
		json_object_set_new(object, "usual", json_real(finding->usual));
		json_object_set_new(object, "hosts", json_integer((json_int_t)finding->n_hosts));
		json_array_append_new(list, object);
	}
	json_object_set_new(root, "findings", list);
	return ky_cli_put_json(root, 2, err);
}

static int run_why(const struct fleet_cli_options *options, struct kymo_error *err)
{
	struct ky_fleet_why why;
	struct ky_fleet *store;
	int ret = ky_fleet_open(options->from, false, &store, err);

	if (ret < 0)
		return ret;
	ret = ky_fleet_find_why(store, options->since_ns ? options->since_ns : SINCE_NS, &why, err);
	if (!ret && options->json)
		ret = fleet_put_why_json(&why, err);
	else if (!ret)
		fleet_put_why(&why);
	ky_fleet_why_fini(&why);
	ky_fleet_close(store);
	return ret;
}

/* NULL, or what is wrong with the command line. */
static const char *fleet_check(const struct fleet_cli_options *options, const char *what,
			       int n_args)
{
	if (strcmp(what, "load") == 0)
		return options->to && n_args > 1
			       ? NULL
			       : "kymo fleet load needs a trace, and --to DIR or URL";
	if (strcmp(what, "follow") == 0)
		return options->to && n_args == 2
			       ? NULL
			       : "kymo fleet follow needs a relay's directory, and --to DIR or URL";
	if (strcmp(what, "why") != 0)
		return "'load', 'follow' or 'why' is expected";
	return options->from && n_args == 1 ? NULL : "kymo fleet why needs --from DIR or URL";
}

static int run_fleet(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct fleet_cli_options *options = data;
	const char *wrong = fleet_check(options, args[0], n_args);
	struct kymo_error err;
	int ret;

	if (wrong)
		return ky_cli_usage(command, "%s", wrong);
	ky_error_clear(&err);
	if (strcmp(args[0], "load") == 0)
		ret = run_load(options, n_args - 1, args + 1, &err);
	else if (strcmp(args[0], "follow") == 0)
		ret = fleet_run_follow(options, args[1], &err);
	else
		ret = run_why(options, &err);
	if (ret < 0)
		ky_cli_error(&err);
	return ky_cli_inputs_finish(!ret		    ? KY_EXIT_OK
				    : ret == KYMO_E_INVALID ? KY_EXIT_USAGE
							    : KY_EXIT_FAIL);
}

const struct ky_command ky_command_fleet = {
	.name = "fleet",
	.summary = "keep traces of many machines in one store, and compare them",
	.usage = "load [OPTIONS] --to DIR|URL TRACE...\n"
		 "       kymo fleet follow [OPTIONS] --to DIR|URL DIR\n"
		 "       kymo fleet why [OPTIONS] --from DIR|URL",
	.description =
		"kymo fleet load puts rows of traces into a store: a directory, or a ClickHouse server. The tables are those of "
		"kymo query, with the same names; kymo query --fleet asks them. kymo report --fleet shows the rows of reports.\n"
		"\n"
		"Each row goes in exactly once: a load that was interrupted, or that is repeated, continues. Texts that may hold "
		"secrets (paths, arguments, messages, texts of events) stay out, unless --with-texts is given.\n"
		"\n"
		"A server's user and password come from ~/.config/kymo/fleet-key (lines 'user NAME', 'password TEXT', 'ca FILE'), or "
		"from KYMO_FLEET_USER, KYMO_FLEET_PASSWORD and KYMO_FLEET_CA, never from the command line.\n"
		"\n"
		"kymo fleet follow loads what a relay takes into the directory DIR, while it arrives; kymo relay --clickhouse starts it. "
		"The relay's files are the queue: a server that is away holds up nothing, and gets later what it missed.\n"
		"\n"
		"kymo fleet why says which hosts, kernels and tracers stand out from the others in latency, CPU, errors and losses. "
		"docs/fleet.md explains it.",
	.examples =
		"# three machines in one store, which needs no server\n"
		"kymo fleet load --to fleet --report all web-1 web-2 db-1\n"
		"kymo query --fleet fleet \"SELECT host, count(*) AS calls FROM syscall GROUP BY host\"\n"
		"kymo report syscalls --fleet fleet\nkymo fleet why --from fleet\n\n"
		"# a server; its user and password are in ~/.config/kymo/fleet-key\nkymo fleet load --to https://server:8443 web-1",
	.see_also = "query report sync relay",
	.is_rare = true,
	.operands = "load follow why",
	.options = fleet_option_defs,
	.options_size = sizeof(struct fleet_cli_options),
	.min_args = 1,
	.max_args = -1,
	.run = run_fleet,
};
