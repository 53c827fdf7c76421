/* SPDX-License-Identifier: MIT */
#include "cli/query/query-output.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/terminal/command.h"
#include "fleet/fleet.h"
#include "flow/sinks/json-value.h"
#include "os/file.h"

/* A table's columns are as wide as the first rows need. */
#define WIDTH_ROWS     1000
#define WIDTH_BYTES    (4u << 20) /* of texts that wait for them */
#define CELL_MAX_WIDTH 60

#define STATEMENT_MAX_BYTES (1u << 20)

struct cell {
	char *text;
	bool is_number;
};

struct output {
	enum ky_query_form form;
	size_t n_columns;
	struct ky_strbuf names; /* each with a NUL */
	uint64_t n_rows;	/* of the statement */
	bool is_open;		/* a JSON array */
	/* Of a table: rows that wait for the widths of the columns. */
	KY_VEC(struct cell) cells;
	size_t waiting_bytes; /* of their texts */
	int *widths;	      /* NULL: not known yet */
};

/* ---- values as text ------------------------------------------------------------------- */

/* As short as it can be without another value. */
static void query_output_put_real(struct ky_strbuf *out, double real)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, real);
		if (strtod(text, NULL) == real)
			break;
	}
	ky_strbuf_adds(out, text);
}

static void query_output_put_hex(struct ky_strbuf *out, const struct ky_sql_value *blob)
{
	for (size_t i = 0; i < blob->len; i++)
		ky_strbuf_addf(out, "%02x", (uint8_t)blob->text[i]);
}

static void put_number(struct ky_strbuf *out, const struct ky_sql_value *value)
{
	if (value->type == KY_SQL_INTEGER)
		ky_strbuf_addi(out, value->integer);
	else if (isfinite(value->real))
		query_output_put_real(out, value->real);
	else
		ky_strbuf_adds(out, "null");
}

static bool is_number(const struct ky_sql_value *value)
{
	return value->type == KY_SQL_INTEGER || value->type == KY_SQL_REAL;
}

static const char *query_output_next_name(const char *name)
{
	return name + strlen(name) + 1;
}

static void query_output_json_text(struct ky_strbuf *out, const struct ky_sql_value *value)
{
	if (value->type != KY_SQL_BLOB) {
		ky_json_text(out, value->text, value->len);
		return;
	}
	ky_strbuf_addc(out, '"');
	query_output_put_hex(out, value);
	ky_strbuf_addc(out, '"');
}

/* Rows are many and short: the buffer of stdout collects them. */
static int query_output_write(struct ky_strbuf *out)
{
	int ret = ky_strbuf_failed(out) ? KYMO_E_MEMORY : KYMO_OK;

	/* lint: own text: JSON is escaped, and CSV has the values as they are */
	(void)fwrite(ky_strbuf_text(out), 1, out->len, stdout);
	ky_strbuf_fini(out);
	return ret;
}

static int query_output_json(const struct output *output, const struct ky_sql_value *values,
			     size_t n)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	const char *name = ky_strbuf_text(&output->names);

	ky_strbuf_adds(&out, output->n_rows ? ",\n  {" : "\n  {");
	for (size_t i = 0; i < n; i++, name = query_output_next_name(name)) {
		ky_strbuf_adds(&out, i ? ", " : "");
		ky_json_text(&out, name, strlen(name));
		ky_strbuf_adds(&out, ": ");
		if (values[i].type == KY_SQL_NULL)
			ky_strbuf_adds(&out, "null");
		else if (is_number(&values[i]))
			put_number(&out, &values[i]);
		else
			query_output_json_text(&out, &values[i]);
	}
	ky_strbuf_addc(&out, '}');
	return query_output_write(&out);
}

static int query_output_csv(const struct ky_sql_value *values, size_t n, bool raw)
{
	struct ky_strbuf out = KY_STRBUF_INIT;

	for (size_t i = 0; i < n; i++) {
		ky_strbuf_adds(&out, i ? "," : "");
		if (is_number(&values[i]))
			put_number(&out, &values[i]);
		else if (values[i].type == KY_SQL_BLOB)
			query_output_put_hex(&out, &values[i]);
		else if (values[i].type != KY_SQL_NULL)
			ky_csv_text(&out, values[i].text, values[i].len, raw);
	}
	ky_strbuf_addc(&out, '\n');
	return query_output_write(&out);
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

static void query_output_put_cell(const struct output *output, size_t i, const char *text,
				  bool right)
{
	int pad = output->widths[i] - cell_width(text);

	printf("%s", i ? "  " : "");
	if (right)
		printf("%*s", pad > 0 ? pad : 0, "");
	ky_cli_put_text(stdout, text);
	if (!right && i + 1 < output->n_columns)
		printf("%*s", pad > 0 ? pad : 0, "");
}

static void query_output_put_cells(const struct output *output, const struct cell *cells)
{
	for (size_t i = 0; i < output->n_columns; i++)
		query_output_put_cell(output, i, cells[i].text, cells[i].is_number);
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
	for (size_t i = 0; i < output->n_columns; i++, name = query_output_next_name(name))
		output->widths[i] = cell_width(name);
	for (size_t i = 0; i < output->cells.len; i++) {
		int *width = &output->widths[i % output->n_columns];
		int own = cell_width(output->cells.data[i].text);

		own = own < CELL_MAX_WIDTH ? own : CELL_MAX_WIDTH;
		*width = own > *width ? own : *width;
	}
	name = ky_strbuf_text(&output->names);
	for (size_t i = 0; i < output->n_columns; i++, name = query_output_next_name(name))
		query_output_put_cell(output, i, name,
				      output->cells.len > i && output->cells.data[i].is_number);
	putchar('\n');
	for (size_t i = 0; i + output->n_columns <= output->cells.len; i += output->n_columns)
		query_output_put_cells(output, &output->cells.data[i]);
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
		query_output_put_hex(&out, value);
	else if (value->type == KY_SQL_TEXT)
		ky_strbuf_add(&out, value->text, value->len);
	else
		ky_strbuf_addc(&out, '-');
	return ky_strbuf_take(&out);
}

static int query_output_table(struct output *output, const struct ky_sql_value *values, size_t n)
{
	size_t first = output->cells.len;

	for (size_t i = 0; i < n; i++) {
		struct cell cell = {cell_text(&values[i]), is_number(&values[i])};

		if (!cell.text || ky_vec_push(&output->cells, cell) < 0) {
			free(cell.text);
			return KYMO_E_MEMORY;
		}
		output->waiting_bytes += output->widths ? 0 : strlen(cell.text);
	}
	if (!output->widths)
		return output->n_rows + 1 >= WIDTH_ROWS || output->waiting_bytes > WIDTH_BYTES
			       ? flush_table(output)
			       : KYMO_OK;
	query_output_put_cells(output, &output->cells.data[first]);
	for (size_t i = first; i < output->cells.len; i++)
		free(output->cells.data[i].text);
	output->cells.len = first;
	return KYMO_OK;
}

/* ---- the sink ------------------------------------------------------------------------- */

static int end_statement(struct output *output)
{
	int ret = output->form == KY_QUERY_TABLE ? flush_table(output) : KYMO_OK;

	if (output->is_open)
		puts(output->n_rows ? "\n]" : "]");
	output->is_open = false;
	free(output->widths);
	output->widths = NULL;
	output->n_columns = 0;
	output->n_rows = 0;
	output->waiting_bytes = 0;
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
	if (!is_first && output->form == KY_QUERY_TABLE)
		putchar('\n');
	if (output->form == KY_QUERY_JSON) {
		putchar('[');
		output->is_open = true;
	} else if (output->form != KY_QUERY_TABLE) {
		struct ky_strbuf out = KY_STRBUF_INIT;
		bool raw = output->form == KY_QUERY_CSV_RAW;

		for (size_t i = 0; i < n; i++) {
			ky_strbuf_adds(&out, i ? "," : "");
			ky_csv_text(&out, names[i], strlen(names[i]), raw);
		}
		ky_strbuf_addc(&out, '\n');
		if (query_output_write(&out) < 0)
			return ky_error_nomem(err);
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
	if (output->form == KY_QUERY_JSON)
		ret = query_output_json(output, values, n);
	else if (output->form != KY_QUERY_TABLE)
		ret = query_output_csv(values, n, output->form == KY_QUERY_CSV_RAW);
	else
		ret = query_output_table(output, values, n);
	output->n_rows++;
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- the schema ----------------------------------------------------------------------- */

static void query_output_put_column(const char *name, const char *about, const char *type)
{
	fputs("  ", stdout);
	ky_cli_put_padded(stdout, name, 25);
	ky_cli_put_padded(stdout, type, 9);
	ky_cli_put_text(stdout, about);
	putchar('\n');
}

static void query_output_put_table(const struct ky_sql *sql, size_t table)
{
	const char *name, *about, *type;

	(void)ky_sql_table(sql, table, &name, &about);
	ky_cli_put_text(stdout, name);
	fputs(": ", stdout);
	ky_cli_put_text(stdout, about);
	putchar('\n');
	for (size_t c = 0; ky_sql_column(sql, table, c, &name, &type, &about); c++)
		query_output_put_column(name, about, type);
}

bool ky_query_put_schema(const struct ky_sql *sql, const char *only)
{
	const char *name, *about;
	bool any = false;

	for (size_t i = 0; ky_sql_table(sql, i, &name, &about); i++) {
		if (only && strcmp(only, name) != 0)
			continue;
		if (any)
			putchar('\n');
		query_output_put_table(sql, i);
		any = true;
	}
	return any;
}

/* ---- running -------------------------------------------------------------------------- */

static int query_output_end(struct output *output, int ret, struct kymo_error *err)
{
	if (end_statement(output) < 0 && !ret)
		ret = ky_error_nomem(err);
	ky_vec_foreach(&output->cells, cell)
		free(cell->text);
	ky_vec_fini(&output->cells);
	ky_strbuf_fini(&output->names);
	return ret;
}

int ky_query_run(struct ky_sql *sql, enum ky_query_form form,
		 const struct ky_sql_parameter *parameters, size_t n, const char *text,
		 struct kymo_error *err)
{
	struct output output = {.form = form};
	const struct ky_sql_sink sink = {&output, on_columns, on_row};

	return query_output_end(&output, ky_sql_run(sql, text, parameters, n, &sink, err), err);
}

int ky_query_run_fleet(struct ky_fleet *store, enum ky_query_form form,
		       const struct ky_sql_parameter *parameters, size_t n, const char *text,
		       struct kymo_error *err)
{
	struct output output = {.form = form};
	const struct ky_sql_sink sink = {&output, on_columns, on_row};

	return query_output_end(&output,
				text ? store->ops->query(store, text, parameters, n, &sink, err)
				     : ky_fleet_schema(store, &sink, err),
				err);
}

int ky_query_read_statement(const char *operand, struct ky_strbuf *text, struct kymo_error *err)
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
