/* SPDX-License-Identifier: MIT */
/* kymo query: SQL over traces. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/query/query-output.h"
#include "cli/query/query-shell.h"
#include "cli/reading/input-options.h"
#include "cli/terminal/command.h"
#include "fleet/fleet.h"
#include "sql/sql.h"

/* What SQLite may use for sorting and grouping. */
#define MEMORY_MAX_BYTES ((uint64_t)2 << 30)

struct query_options {
	struct ky_input_options input;
	bool table, json, csv, csv_raw, schema;
	const char *fleet;
	struct ky_text_list parameters;
	uint64_t space;
};

static void query_defaults(void *data)
{
	struct query_options *options = data;

	options->space = KY_SQL_TEMPORARY_BYTES;
}

/* clang-format off */
static const struct ky_option_def query_option_defs[] = {
	KY_INPUT_OPTION_DEFS(struct query_options, input),
	KY_CORRELATE_OPTION_DEF(struct query_options, input),
	{"table", 0, KY_OPTION_FLAG, NULL, "Print tables for people. This is the default.",
	 offsetof(struct query_options, table), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL, "Print JSON: an array of objects for each statement.",
	 offsetof(struct query_options, json), NULL},
	{"csv", 0, KY_OPTION_FLAG, NULL, "Print comma-separated values, with a line of names.",
	 offsetof(struct query_options, csv), NULL},
	{"csv-raw", 0, KY_OPTION_FLAG, NULL,
	 "The same with texts unchanged. --csv puts an apostrophe before a text that begins with = + - "
	 "or @, because spreadsheets evaluate it as a formula and traced programs choose their names.",
	 offsetof(struct query_options, csv_raw), NULL},
	{"param", 'p', KY_OPTION_LIST, "NAME=VALUE",
	 "The value of the parameter :NAME of the statement. May be given again.",
	 offsetof(struct query_options, parameters), NULL},
	KY_QUERY_SPACE_OPTION_DEF(struct query_options, space),
	{"fleet", 0, KY_OPTION_TEXT, "DIR|URL",
	 "Ask the store that 'kymo fleet load' fills, instead of traces: the statement is the only operand.",
	 offsetof(struct query_options, fleet), NULL},
	{"schema", 0, KY_OPTION_FLAG, NULL,
	 "List the tables that the traces have, with their columns and units.",
	 offsetof(struct query_options, schema), NULL},
	{0},
};
/* clang-format on */

KY_VEC_TYPE(query_parameters, struct ky_sql_parameter);

static int query_find_parameters(const struct query_options *options,
				 struct query_parameters *parameters, struct kymo_error *err)
{
	for (size_t i = 0; i < options->parameters.len; i++) {
		char *name = (char *)(uintptr_t)options->parameters.items[i];
		char *equals = strchr(name, '=');

		if (!equals)
			return ky_error_set(err, KYMO_E_INVALID, "--param: NAME=VALUE is expected");
		*equals = '\0';
		if (ky_vec_push(parameters, (struct ky_sql_parameter){name, equals + 1}) < 0)
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

static enum ky_query_form query_form(const struct query_options *options)
{
	if (options->json)
		return KY_QUERY_JSON;
	if (options->csv_raw)
		return KY_QUERY_CSV_RAW;
	return options->csv ? KY_QUERY_CSV : KY_QUERY_TABLE;
}

/* The statement, the schema, or what the user types. */
static int cmd_query_run(struct ky_sql *sql, const struct query_options *options, const char *text,
			 struct kymo_error *err)
{
	struct query_parameters parameters = KY_VEC_INIT;
	enum ky_query_form form = query_form(options);
	int ret = query_find_parameters(options, &parameters, err);

	if (!ret && options->schema)
		(void)ky_query_put_schema(sql, NULL);
	else if (!ret && text)
		ret = ky_query_run(sql, form, parameters.data, parameters.len, text, err);
	else if (!ret)
		ret = ky_query_shell(sql, form, parameters.data, parameters.len, err);
	ky_vec_fini(&parameters);
	return ret;
}

static int query_traces(const struct query_options *options, char **args, int n_traces,
			const char *statement, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_trace_set set;
	struct ky_sql *sql = NULL;
	int ret = statement ? ky_query_read_statement(statement, &text, err) : KYMO_OK;

	if (!ret)
		ret = ky_cli_open(&set, args, n_traces, &options->input, true, err);
	if (ret < 0) {
		ky_strbuf_fini(&text);
		return ret;
	}
	ret = ky_sql_open(&set, &sql, err);
	if (!ret) {
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
		ky_sql_limit_temporary(sql, options->space);
	}
	if (!ret)
		ret = cmd_query_run(sql, options, statement ? ky_strbuf_text(&text) : NULL, err);
	ky_sql_close(sql);
	ky_trace_set_close(&set);
	ky_strbuf_fini(&text);
	return ret;
}

static int query_fleet(const struct query_options *options, const char *statement,
		       struct kymo_error *err)
{
	enum ky_query_form form = query_form(options);
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct query_parameters parameters = KY_VEC_INIT;
	struct ky_fleet *store = NULL;
	int ret = statement ? ky_query_read_statement(statement, &text, err) : KYMO_OK;

	if (!ret)
		ret = query_find_parameters(options, &parameters, err);
	if (!ret)
		ret = ky_fleet_open(options->fleet, false, &store, err);
	if (!ret && !store->is_clickhouse)
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
	if (!ret)
		ret = ky_query_run_fleet(store, form, parameters.data, parameters.len,
					 statement ? ky_strbuf_text(&text) : NULL, err);
	ky_fleet_close(store);
	ky_vec_fini(&parameters);
	ky_strbuf_fini(&text);
	return ret;
}

/* The last operand, unless it is a trace. NULL: the command line has no statement. */
static const char *query_statement(const struct query_options *options, int n_args, char **args)
{
	const char *last = n_args ? args[n_args - 1] : "";
	size_t len = strlen(last);
	bool is_file = len > 4 && strcmp(last + len - 4, ".sql") == 0;
	bool is_address = strstr(last, "://") && !strchr(last, ' ');

	if (options->schema)
		return NULL;
	return is_file || (!is_address && access(last, F_OK) < 0 && n_args > 1) ? last : NULL;
}

static int run_query(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct query_options *options = data;
	struct kymo_error err;
	const char *statement =
		options->fleet ? (n_args ? args[0] : NULL) : query_statement(options, n_args, args);
	int ret, n_traces = statement ? n_args - 1 : n_args;

	if (options->table + options->json + (options->csv || options->csv_raw) > 1)
		return ky_cli_usage(command, "--table, --json and --csv exclude each other");
	if (options->fleet && n_args != !options->schema)
		return ky_cli_usage(command, "with --fleet, one statement or --schema is expected");
	if (!options->fleet && n_traces < 1)
		return ky_cli_usage(command, "a trace is expected before the statement");
	ky_error_clear(&err);
	ret = options->fleet ? query_fleet(options, statement, &err)
			     : query_traces(options, args, n_traces, statement, &err);
	if (ret == KYMO_OK || ky_cli_pipe_closed())
		return KY_EXIT_OK;
	if (ret == KYMO_E_INVALID && !err.hint[0] && options->fleet)
		ky_error_hint(&err, "kymo query --schema --fleet %s lists tables and columns",
			      options->fleet);
	else if (ret == KYMO_E_INVALID && !err.hint[0])
		ky_error_hint(&err, "kymo query --schema TRACE lists tables and columns");
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

const struct ky_command ky_command_query = {
	.name = "query",
	.summary = "ask traces in SQL",
	.usage = "[OPTIONS] TRACE... [STATEMENT | FILE.sql]\n"
		 "       kymo query --schema TRACE...\n"
		 "       kymo query --fleet DIR|URL STATEMENT|FILE.sql",
	.description =
		"Runs SQL statements of SQLite over traces, without importing anything first. Each kind of event is a table with a "
		"column for each field, and event has all events. thread, process, thread_state, cpu_state, syscall, irq, "
		"block_request, network, lock_wait, vcpu, vcpu_off, counter, sample and stack come from the state model, with the figures of the "
		"reports; span, log, loss, host and clock from the traces. --schema lists the tables with their columns and "
		"units. docs/sql.md answers questions with them.\n"
		"\n"
		"Without a statement, kymo query reads statements from the standard input: on a terminal with history and "
		"completion (tabulator), where .help lists commands.\n"
		"\n"
		"Times are ns since 1970. The functions time_text(ns) and duration_text(ns) show them, and overlap(begin, end, "
		"begin2, end2) gives the ns that two intervals have in common.\n"
		"\n"
		"kymo decodes only the kinds of events that a statement names. Bounds of time in WHERE, and comparisons of a "
		"field with a number, select events while the trace is read: EXPLAIN QUERY PLAN shows them. "
		"thread_state(BEGIN, END) has the states in a range, cut at its ends.",
	.examples =
		"# which tables and columns are there?\n"
		"kymo query --schema my-trace\n\n"
		"# who ran most?\n"
		"kymo query my-trace 'SELECT comm, tid, duration_text(sum(duration)) AS time FROM cpu_slice "
		"WHERE tid != 0 GROUP BY comm, tid ORDER BY sum(duration) DESC LIMIT 10'\n\n"
		"# type statements\n"
		"kymo query my-trace\n\n"
		"# the slowest reads of a thread\n"
		"kymo query my-trace -p tid=1234 \"SELECT time_text(time), duration_text(duration), ret FROM syscall "
		"WHERE name = 'read' AND tid = :tid ORDER BY duration DESC LIMIT 5\"\n\n"
		"# many machines: docs/fleet.md\n"
		"kymo query --fleet fleet 'SELECT host, avg(duration) AS ns FROM block_request GROUP BY host'\n\n"
		"# events per second, as CSV\n"
		"kymo query --csv my-trace 'SELECT time / 1000000000 AS second, count(*) AS events FROM event GROUP BY second'",
	.see_also = "report print convert",
	.first_trace = 1,
	.options = query_option_defs,
	.options_size = sizeof(struct query_options),
	.defaults = query_defaults,
	.max_args = -1,
	.run = run_query,
};
