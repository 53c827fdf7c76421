/* SPDX-License-Identifier: MIT */
/* kymo query: SQL over traces. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/reading/input-options.h"
#include "cli/terminal/command.h"
#include "flow/sinks/json-value.h"
#include "os/file.h"
#include "sql/sql.h"

#define STATEMENT_MAX_BYTES (1u << 20)
/* What SQLite may use for sorting and grouping. */
#define MEMORY_MAX_BYTES ((uint64_t)2 << 30)
/* A table's columns are as wide as the first rows need. */
#define WIDTH_ROWS     1000
#define CELL_MAX_WIDTH 60

struct query_options {
	struct ky_input_options input;
	bool json, csv, schema;
	struct ky_text_list parameters;
};

/* clang-format off */
static const struct ky_option_def query_option_defs[] = {
	KY_INPUT_OPTION_DEFS(struct query_options, input),
	KY_CORRELATE_OPTION_DEF(struct query_options, input),
	{"json", 0, KY_OPTION_FLAG, NULL, "Print JSON: an array of objects for each statement.",
	 offsetof(struct query_options, json), NULL},
	{"csv", 0, KY_OPTION_FLAG, NULL, "Print comma-separated values, with a line of names.",
	 offsetof(struct query_options, csv), NULL},
	{"param", 'p', KY_OPTION_LIST, "NAME=VALUE",
	 "The value of the parameter :NAME of the statement. May be given again.",
	 offsetof(struct query_options, parameters), NULL},
	{"schema", 0, KY_OPTION_FLAG, NULL,
	 "List the tables that the traces have, with their columns and units.",
	 offsetof(struct query_options, schema), NULL},
	{0},
};
/* clang-format on */

enum form {
	FORM_TABLE,
	FORM_JSON,
	FORM_CSV,
};

struct cell {
	char *text;
	bool is_number;
};

struct output {
	enum form form;
	size_t n_columns;
	struct ky_strbuf names; /* each with a NUL */
	uint64_t n_rows;	/* of the statement */
	bool is_open;		/* a JSON array */
	/* Of a table: rows that wait for the widths of the columns. */
	KY_VEC(struct cell) cells;
	int *widths; /* NULL: not known yet */
};

/* ---- values as text ------------------------------------------------------------------- */

static void put_number(struct ky_strbuf *out, const struct ky_sql_value *value)
{
	if (value->type == KY_SQL_INTEGER)
		ky_strbuf_addi(out, value->integer);
	else if (isfinite(value->real))
		ky_strbuf_addf(out, "%.15g", value->real);
	else
		ky_strbuf_adds(out, "null");
}

static bool is_number(const struct ky_sql_value *value)
{
	return value->type == KY_SQL_INTEGER || value->type == KY_SQL_REAL;
}

static const char *cmd_query_next_name(const char *name)
{
	return name + strlen(name) + 1;
}

static void cmd_query_json(const struct output *output, const struct ky_sql_value *values, size_t n)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	const char *name = ky_strbuf_text(&output->names);

	ky_strbuf_adds(&out, output->n_rows ? ",\n  {" : "\n  {");
	for (size_t i = 0; i < n; i++, name = cmd_query_next_name(name)) {
		ky_strbuf_adds(&out, i ? ", " : "");
		ky_json_text(&out, name, strlen(name));
		ky_strbuf_adds(&out, ": ");
		if (values[i].type == KY_SQL_NULL)
			ky_strbuf_adds(&out, "null");
		else if (is_number(&values[i]))
			put_number(&out, &values[i]);
		else
			ky_json_text(&out, values[i].text, values[i].len);
	}
	ky_strbuf_addc(&out, '}');
	ky_cli_write(&out);
	ky_strbuf_fini(&out);
}

static void cmd_query_csv_text(struct ky_strbuf *out, const char *text, size_t len)
{
	if (!memchr(text, ',', len) && !memchr(text, '"', len) && !memchr(text, '\n', len) &&
	    !memchr(text, '\r', len)) {
		ky_strbuf_add(out, text, len);
		return;
	}
	ky_strbuf_addc(out, '"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			ky_strbuf_addc(out, '"');
		ky_strbuf_addc(out, text[i]);
	}
	ky_strbuf_addc(out, '"');
}

static void cmd_query_csv(const struct ky_sql_value *values, size_t n)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	for (size_t i = 0; i < n; i++) {
		ky_strbuf_adds(&out, i ? "," : "");
		if (is_number(&values[i]))
			put_number(&out, &values[i]);
		else if (values[i].type != KY_SQL_NULL)
			cmd_query_csv_text(&out, values[i].text, values[i].len);
	}
	ky_strbuf_addc(&out, '\n');
	ky_cli_write(&out);
	ky_strbuf_fini(&out);
}

/* ---- a table -------------------------------------------------------------------------- */

static int cell_width(const char *text)
{
	int width = 0;

	/* Continuation bytes of UTF-8 take no place. */
	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void cmd_query_put_cell(const struct output *output, size_t i, const char *text, bool right)
{
	int pad = output->widths[i] - cell_width(text);

	printf("%s", i ? "  " : "");
	if (right)
		printf("%*s", pad > 0 ? pad : 0, "");
	ky_cli_put_text(stdout, text);
	if (!right && i + 1 < output->n_columns)
		printf("%*s", pad > 0 ? pad : 0, "");
}

static void cmd_query_put_cells(const struct output *output, const struct cell *cells)
{
	for (size_t i = 0; i < output->n_columns; i++)
		cmd_query_put_cell(output, i, cells[i].text, cells[i].is_number);
	putchar('\n');
}

/* The widths are known now: the names, and the rows that waited. */
static int flush_table(struct output *output)
{
	const char *name = ky_strbuf_text(&output->names);

	if (output->widths || !output->n_columns)
		return KYMO_OK;
	output->widths = calloc(output->n_columns, sizeof(*output->widths));
	if (!output->widths)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < output->n_columns; i++, name = cmd_query_next_name(name))
		output->widths[i] = cell_width(name);
	for (size_t i = 0; i < output->cells.len; i++) {
		int *width = &output->widths[i % output->n_columns];
		int own = cell_width(output->cells.data[i].text);

		own = own < CELL_MAX_WIDTH ? own : CELL_MAX_WIDTH;
		*width = own > *width ? own : *width;
	}
	name = ky_strbuf_text(&output->names);
	for (size_t i = 0; i < output->n_columns; i++, name = cmd_query_next_name(name))
		cmd_query_put_cell(output, i, name,
				   output->cells.len > i && output->cells.data[i].is_number);
	putchar('\n');
	for (size_t i = 0; i + output->n_columns <= output->cells.len; i += output->n_columns)
		cmd_query_put_cells(output, &output->cells.data[i]);
	ky_vec_foreach(&output->cells, cell)
		free(cell->text);
	ky_vec_clear(&output->cells);
	return KYMO_OK;
}

static char *cell_text(const struct ky_sql_value *value)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	if (is_number(value))
		put_number(&out, value);
	else if (value->type == KY_SQL_BLOB)
		for (size_t i = 0; i < value->len; i++)
			ky_strbuf_addf(&out, "%02x", (uint8_t)value->text[i]);
	else if (value->type == KY_SQL_TEXT)
		ky_strbuf_add(&out, value->text, value->len);
	else
		ky_strbuf_addc(&out, '-');
	return ky_strbuf_take(&out);
}

static int cmd_query_table(struct output *output, const struct ky_sql_value *values, size_t n)
{
	size_t first = output->cells.len;

	for (size_t i = 0; i < n; i++) {
		struct cell cell = {cell_text(&values[i]), is_number(&values[i])};

		if (!cell.text || ky_vec_push(&output->cells, cell) < 0) {
			free(cell.text);
			return KYMO_E_MEMORY;
		}
	}
	if (!output->widths)
		return output->n_rows + 1 >= WIDTH_ROWS ? flush_table(output) : KYMO_OK;
	cmd_query_put_cells(output, &output->cells.data[first]);
	for (size_t i = first; i < output->cells.len; i++)
		free(output->cells.data[i].text);
	output->cells.len = first;
	return KYMO_OK;
}

/* ---- the sink ------------------------------------------------------------------------- */

static int end_statement(struct output *output)
{
	int ret = output->form == FORM_TABLE ? flush_table(output) : KYMO_OK;

	if (output->is_open)
		puts(output->n_rows ? "\n]" : "]");
	output->is_open = false;
	free(output->widths);
	output->widths = NULL;
	output->n_columns = 0;
	output->n_rows = 0;
	return ret;
}

static int on_columns(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	struct output *output = data;
	bool is_first = !output->names.len;

	if (end_statement(output) < 0)
		return ky_error_nomem(err);
	ky_strbuf_clear(&output->names);
	for (size_t i = 0; i < n; i++)
		ky_strbuf_add(&output->names, names[i], strlen(names[i]) + 1);
	if (ky_strbuf_failed(&output->names))
		return ky_error_nomem(err);
	output->n_columns = n;
	if (!is_first && output->form == FORM_TABLE)
		putchar('\n');
	if (output->form == FORM_JSON) {
		putchar('[');
		output->is_open = true;
	} else if (output->form == FORM_CSV) {
		struct ky_strbuf out = KY_STRBUF_INIT;

		for (size_t i = 0; i < n; i++) {
			ky_strbuf_adds(&out, i ? "," : "");
			cmd_query_csv_text(&out, names[i], strlen(names[i]));
		}
		ky_strbuf_addc(&out, '\n');
		ky_cli_write(&out);
		ky_strbuf_fini(&out);
	}
	return KYMO_OK;
}

static int on_row(void *data, const struct ky_sql_value *values, size_t n, struct kymo_error *err)
{
	struct output *output = data;
	int ret = KYMO_OK;

	if (ky_cli_pipe_closed())
		return ky_error_set(err, KYMO_E_INTERRUPTED,
				    "the reader of the output has closed it");
	if (output->form == FORM_JSON)
		cmd_query_json(output, values, n);
	else if (output->form == FORM_CSV)
		cmd_query_csv(values, n);
	else
		ret = cmd_query_table(output, values, n);
	output->n_rows++;
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- the command ---------------------------------------------------------------------- */

static void put_schema(const struct ky_sql *sql)
{
	const char *name, *about, *type;

	for (size_t i = 0; ky_sql_table(sql, i, &name, &about); i++) {
		fputs(i ? "\n" : "", stdout);
		ky_cli_put_text(stdout, name);
		fputs(": ", stdout);
		ky_cli_put_text(stdout, about);
		putchar('\n');
		for (size_t c = 0; ky_sql_column(sql, i, c, &name, &type, &about); c++) {
			fputs("  ", stdout);
			ky_cli_put_padded(stdout, name, 25);
			ky_cli_put_padded(stdout, type, 9);
			ky_cli_put_text(stdout, about);
			putchar('\n');
		}
	}
}

/* The statement itself, or the content of a file *.sql. */
static int read_statement(const char *operand, struct ky_strbuf *text, struct kymo_error *err)
{
	size_t len = strlen(operand);
	int ret = KYMO_OK;

	if (len < 4 || strcmp(operand + len - 4, ".sql") != 0) {
		ky_strbuf_adds(text, operand);
		return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
	}
	ret = ky_read_file(AT_FDCWD, operand, STATEMENT_MAX_BYTES, text);
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read");
		ky_error_path(err, operand);
	}
	return ret;
}

static int query_run_text(struct ky_sql *sql, const struct query_options *options, const char *text,
			  struct kymo_error *err)
{
	struct output output = {.form = options->json  ? FORM_JSON
					: options->csv ? FORM_CSV
						       : FORM_TABLE};
	const struct ky_sql_sink sink = {&output, on_columns, on_row};
	KY_VEC(struct ky_sql_parameter) parameters = KY_VEC_INIT;
	int ret = KYMO_OK;

	for (size_t i = 0; i < options->parameters.len && !ret; i++) {
		char *name = (char *)(uintptr_t)options->parameters.items[i];
		char *equals = strchr(name, '=');

		if (!equals)
			ret = ky_error_set(err, KYMO_E_INVALID, "--param: NAME=VALUE is expected");
		else if (ky_vec_push(&parameters, (struct ky_sql_parameter){name, equals + 1}) < 0)
			ret = ky_error_nomem(err);
		if (equals)
			*equals = '\0';
	}
	if (!ret)
		ret = ky_sql_run(sql, text, parameters.data, parameters.len, &sink, err);
	if (end_statement(&output) < 0 && !ret)
		ret = ky_error_nomem(err);
	ky_vec_foreach(&output.cells, cell)
		free(cell->text);
	ky_vec_fini(&output.cells);
	ky_strbuf_fini(&output.names);
	ky_vec_fini(&parameters);
	return ret;
}

static int query_traces(const struct query_options *options, char **args, int n_traces,
			const char *statement, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_trace_set set;
	struct ky_sql *sql = NULL;
	int ret = statement ? read_statement(statement, &text, err) : KYMO_OK;

	if (!ret)
		ret = ky_cli_open(&set, args, n_traces, &options->input, true, err);
	if (ret < 0) {
		ky_strbuf_fini(&text);
		return ret;
	}
	ret = ky_sql_open(&set, &sql, err);
	if (!ret)
		ky_sql_limit_memory(MEMORY_MAX_BYTES);
	if (!ret && statement)
		ret = query_run_text(sql, options, ky_strbuf_text(&text), err);
	else if (!ret)
		put_schema(sql);
	ky_sql_close(sql);
	ky_trace_set_close(&set);
	ky_strbuf_fini(&text);
	return ret;
}

static int run_query(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct query_options *options = data;
	struct kymo_error err;
	int ret, n_traces = options->schema ? n_args : n_args - 1;

	if (options->json && options->csv)
		return ky_cli_usage(command, "--json and --csv exclude each other");
	if (n_traces < 1)
		return ky_cli_usage(
			command, "a trace and a statement are expected, or --schema and a trace");
	ky_error_clear(&err);
	ret = query_traces(options, args, n_traces, options->schema ? NULL : args[n_args - 1],
			   &err);
	if (ret == KYMO_OK || ky_cli_pipe_closed())
		return KY_EXIT_OK;
	if (ret == KYMO_E_INVALID && !err.hint[0])
		ky_error_hint(&err, "kymo query --schema TRACE lists tables and columns");
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

const struct ky_command ky_command_query = {
	.name = "query",
	.summary = "ask traces in SQL",
	.usage = "[OPTIONS] TRACE... STATEMENT | FILE.sql\n"
		 "       kymo query --schema TRACE...",
	.description =
		"Runs SQL statements of SQLite over traces, without importing anything first. Each kind of event is a table with a "
		"column for each field, and event has all events. thread, process, thread_state, cpu_state, syscall, irq, "
		"block_request, network, lock_wait, counter, sample and stack come from the state model, with the figures of the "
		"reports; span, log, loss, host and clock from the traces. --schema lists the tables with their columns and "
		"units. docs/sql.md answers questions with them.\n"
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
		"# the slowest reads of a thread\n"
		"kymo query my-trace -p tid=1234 \"SELECT time_text(time), duration_text(duration), ret FROM syscall "
		"WHERE name = 'read' AND tid = :tid ORDER BY duration DESC LIMIT 5\"\n\n"
		"# events per second, as CSV\n"
		"kymo query --csv my-trace 'SELECT time / 1000000000 AS second, count(*) AS events FROM event GROUP BY second'",
	.see_also = "report print convert",
	.first_trace = 1,
	.options = query_option_defs,
	.options_size = sizeof(struct query_options),
	.min_args = 1,
	.max_args = -1,
	.run = run_query,
};
