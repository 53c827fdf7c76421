/* SPDX-License-Identifier: MIT */
/* kymo count: its table, JSON and CSV. */
#include "cli/latency/count-output.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "analysis/render/render.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/foreign.h"
#include "cli/reading/frames.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"
#include "os/block-name.h"

/* Columns behind those of --by. */
enum {
	COLUMN_COUNT,
	COLUMN_RATE,
	COLUMN_SUM,
	COLUMN_MEAN,
	COLUMNS,
};

#define BY_MAX	   8
#define FRAMES_MAX 128

static const char *label_of(const struct ky_count_column *column, uint64_t number)
{
	for (uint16_t i = 0; i < column->n_labels; i++)
		if ((uint64_t)column->labels[i].value == number)
			return column->labels[i].text;
	return NULL;
}

static bool is_stack(const struct ky_count_column *column)
{
	return column->is_kernel_stack || column->is_user_stack;
}

/* The process of a row, for the names in its stacks; 0: it has none. */
static int64_t count_output_pid_of(const struct ky_count *count, const struct ky_count_row *row)
{
	size_t n;
	const struct ky_count_column *by = ky_count_columns(count, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(by[i].name, "pid") == 0 && !by[i].is_text && ky_count_has(count, row, i))
			return (int64_t)ky_count_number(count, row, i);
	return 0;
}

/* A line for each frame, each after @indent. */
static void put_frames(struct ky_strbuf *out, struct ky_frames *frames,
		       const struct ky_count *count, const struct ky_count_row *row, size_t i,
		       const char *indent)
{
	uint64_t addresses[FRAMES_MAX];
	size_t n, n_columns;
	const struct ky_count_column *by = ky_count_columns(count, &n_columns);

	n = ky_count_stack(count, row, i, addresses, FRAMES_MAX);
	if (by[i].is_kernel_stack)
		ky_frames_put_kernel(frames, out, indent, addresses, n);
	else
		ky_frames_put_user(out, indent, addresses, n, count_output_pid_of(count, row));
}

/* What row @row has in column @i, as text. */
static void count_output_put_value(struct ky_strbuf *out, const struct ky_count *count,
				   const struct ky_count_row *row,
				   const struct ky_count_column *column, size_t i)
{
	uint64_t number;
	const char *label;

	if (!ky_count_has(count, row, i)) {
		ky_strbuf_adds(out, "-");
		return;
	}
	if (column->is_text) {
		ky_strbuf_adds(out, ky_count_text(count, row, i));
		return;
	}
	number = ky_count_number(count, row, i);
	label = column->is_event ? ky_count_event(count, number) : label_of(column, number);
	if (label)
		ky_strbuf_adds(out, label);
	else if (column->base == 16)
		ky_strbuf_addf(out, "0x%" PRIx64, number);
	else if (column->is_signed)
		ky_strbuf_addi(out, (int64_t)number);
	else
		ky_strbuf_addu(out, number);
}

/* The same for people: devices have names. */
static void count_output_put_shown(struct ky_strbuf *out, const struct ky_count *count,
				   const struct ky_count_row *row,
				   const struct ky_count_column *column, size_t i)
{
	uint32_t device;

	if (!column->is_device || !ky_count_has(count, row, i)) {
		count_output_put_value(out, count, row, column, i);
		return;
	}
	device = (uint32_t)ky_count_number(count, row, i);
	ky_os_block_name(out, device >> 20, device & 0xfffff);
}

static uint64_t count_of(const struct ky_count_row *rows, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += rows[i].count;
	return sum;
}

static double seconds_of(const struct ky_count_view *view)
{
	return (double)(view->end_ns - view->begin_ns) / 1e9;
}

static double mean_of_row(const struct ky_count_row *row)
{
	return (double)row->sum / (double)row->count;
}

static size_t rows_shown(const struct ky_count_view *view, size_t n)
{
	return view->limit && n > view->limit ? (size_t)view->limit : n;
}

/* ---- text --------------------------------------------------------------------------------- */

static bool is_plain_number(const struct ky_count_column *column)
{
	return !column->is_text && !column->is_event && !column->is_device && !column->n_labels &&
	       column->base != 16;
}

/* The columns of the table, without sum and mean if nothing is added up. Returns how many. */
static size_t make_columns(const struct ky_count_view *view, struct ky_column *columns)
{
	static const struct ky_column own[COLUMNS] = {
		{.name = "count", .title = "Count", .cls = KY_CELL_COUNT, .bar = KY_BAR_MOST},
		{.name = "rate", .title = "Rate", .cls = KY_CELL_RATE, .spare = 1},
		{.name = "sum", .title = "Sum", .cls = KY_CELL_NUMBER},
		{.name = "mean", .title = "Mean", .cls = KY_CELL_NUMBER, .spare = 2},
	};
	const struct ky_count_column *by;
	size_t n, n_own = view->sum ? COLUMNS : COLUMN_SUM;

	by = ky_count_columns(view->count, &n);
	for (size_t i = 0; i < n; i++)
		columns[i] = (struct ky_column){.name = by[i].name,
						.title = by[i].name,
						.cls = is_plain_number(&by[i]) ? KY_CELL_NUMBER
									       : KY_CELL_TEXT};
	memcpy(columns + n, own, n_own * sizeof(*own));
	if (view->sum) {
		columns[n + COLUMN_COUNT].bar = KY_BAR_NONE;
		columns[n + COLUMN_SUM].bar = KY_BAR_MOST;
	}
	return n + n_own;
}

static void put_cell(struct ky_table *table, struct ky_cell *cell, const struct ky_count *count,
		     const struct ky_count_row *row, const struct ky_count_column *column, size_t i)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (is_plain_number(column) && ky_count_has(count, row, i)) {
		uint64_t number = ky_count_number(count, row, i);

		if (column->is_signed)
			*cell = (struct ky_cell){.type = KY_VALUE_I64, .s = (int64_t)number};
		else
			ky_cell_u64(cell, number);
		return;
	}
	if (!ky_count_has(count, row, i))
		return; /* no value: '-' */
	count_output_put_shown(&text, count, row, column, i);
	ky_cell_text(table, cell, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

static void fill_count_row(struct ky_table *table, const struct ky_count_view *view,
			   const struct ky_count_row *row)
{
	struct ky_cell *cells = ky_table_row(table);
	double seconds = seconds_of(view);
	const struct ky_count_column *by;
	size_t n;

	by = ky_count_columns(view->count, &n);
	if (!cells)
		return;
	for (size_t i = 0; i < n; i++)
		put_cell(table, &cells[i], view->count, row, &by[i], i);
	ky_cell_u64(&cells[n + COLUMN_COUNT], row->count);
	ky_cell_f64(&cells[n + COLUMN_RATE], seconds > 0 ? (double)row->count / seconds : 0);
	if (!view->sum)
		return;
	cells[n + COLUMN_SUM] = (struct ky_cell){.type = KY_VALUE_I64, .s = row->sum};
	ky_cell_f64(&cells[n + COLUMN_MEAN], mean_of_row(row));
}

/* Instead of a table: the values of a row, then its stacks. */
static void put_stacks(struct ky_strbuf *out, const struct ky_count_view *view,
		       struct ky_frames *frames, const struct ky_count_row *row)
{
	size_t n;
	const struct ky_count_column *by = ky_count_columns(view->count, &n);
	struct ky_strbuf value = KY_STRBUF_INIT;

	ky_strbuf_addf(out, "\n%10" PRIu64, row->count);
	if (view->sum)
		ky_strbuf_addf(out, "  sum %" PRId64, row->sum);
	for (size_t i = 0; i < n; i++) {
		if (is_stack(&by[i]))
			continue;
		ky_strbuf_clear(&value);
		count_output_put_shown(&value, view->count, row, &by[i], i);
		ky_strbuf_addf(out, "  %s ", by[i].name); /* lint: own text */
		ky_foreign_add(out, ky_strbuf_text(&value), value.len);
	}
	ky_strbuf_addc(out, '\n');
	for (size_t i = 0; i < n; i++)
		if (is_stack(&by[i]))
			put_frames(out, frames, view->count, row, i, "            ");
	ky_strbuf_fini(&value);
}

static bool has_stacks(const struct ky_count_view *view)
{
	size_t n;
	const struct ky_count_column *by = ky_count_columns(view->count, &n);

	for (size_t i = 0; i < n; i++)
		if (is_stack(&by[i]))
			return true;
	return false;
}

static void put_count_losses(struct ky_strbuf *out, const struct ky_count_view *view)
{
	uint64_t lost, missed;

	ky_count_losses(view->count, &lost, &missed);
	if (lost)
		ky_strbuf_addf(out,
			       "Note: %" PRIu64 " events are not counted: more keys than --keys\n",
			       lost);
	if (missed)
		ky_strbuf_addf(out,
			       "Note: %" PRIu64
			       " events are not counted: they happened in an interrupt "
			       "while another one was being counted\n",
			       missed);
}

static void put_count_head(struct ky_strbuf *out, const struct ky_count_view *view,
			   uint64_t n_events)
{
	ky_render_time(out, view->end_ns, true);
	ky_strbuf_addf(out, "  %" PRIu64 " events in ", n_events);
	ky_render_duration(out, (double)(view->end_ns - view->begin_ns));
	ky_strbuf_addc(out, '\n');
	put_count_losses(out, view);
}

static void put_all_stacks(struct ky_strbuf *out, const struct ky_count_view *view)
{
	struct ky_frames frames = {0};
	size_t n;
	const struct ky_count_row *rows = ky_count_rows(view->count, &n);

	for (size_t i = 0; i < rows_shown(view, n); i++)
		put_stacks(out, view, &frames, &rows[i]);
	if (n > rows_shown(view, n))
		ky_strbuf_addf(out, "\n  %zu more row%s: --limit 0 shows all\n",
			       n - rows_shown(view, n), n - rows_shown(view, n) == 1 ? "" : "s");
	ky_frames_fini(&frames);
}

int ky_count_put_text(struct ky_strbuf *out, const struct ky_count_view *view,
		      struct kymo_error *err)
{
	const struct ky_render_options options = {.columns = ky_cli_columns(stdout),
						  .colour = ky_cli_colour(stdout),
						  .utf8 = ky_cli_locale_is_utf8()};
	struct ky_column columns[BY_MAX + COLUMNS];
	struct ky_table_def def = {.name = "count", .title = view->rule, .columns = columns};
	struct ky_table table;
	size_t n;
	const struct ky_count_row *rows = ky_count_rows(view->count, &n);

	put_count_head(out, view, count_of(rows, n));
	if (has_stacks(view)) {
		put_all_stacks(out, view);
		return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
	}
	def.n_columns = make_columns(view, columns);
	ky_table_init(&table, &def);
	for (size_t i = 0; i < rows_shown(view, n); i++)
		fill_count_row(&table, view, &rows[i]);
	table.n_omitted = n - rows_shown(view, n);
	ky_render_table(out, &table, &options);
	ky_table_fini(&table);
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* A text for each frame, the innermost first. */
static json_t *make_stack(struct ky_frames *frames, const struct ky_count *count,
			  const struct ky_count_row *row, size_t i)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	json_t *list = json_array();
	char *at, *line;

	put_frames(&text, frames, count, row, i, "");
	if (text.len && !ky_strbuf_failed(&text))
		for (line = strtok_r(text.data, "\n", &at); line; line = strtok_r(NULL, "\n", &at))
			json_array_append_new(list, ky_jansson_text(line));
	ky_strbuf_fini(&text);
	return list;
}

static json_t *make_value(struct ky_frames *frames, const struct ky_count *count,
			  const struct ky_count_row *row, const struct ky_count_column *column,
			  size_t i)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	json_t *value;
	uint64_t number;

	if (!ky_count_has(count, row, i))
		return json_null();
	if (is_stack(column))
		return make_stack(frames, count, row, i);
	if (column->is_text || column->is_event ||
	    label_of(column, ky_count_number(count, row, i))) {
		count_output_put_value(&text, count, row, column, i);
		value = ky_jansson_text(ky_strbuf_text(&text));
		ky_strbuf_fini(&text);
		return value;
	}
	number = ky_count_number(count, row, i);
	return json_integer((json_int_t)number);
}

static json_t *make_count_row(struct ky_frames *frames, const struct ky_count_view *view,
			      const struct ky_count_row *row)
{
	json_t *object = json_object(), *key = json_object();
	const struct ky_count_column *by;
	size_t n;

	by = ky_count_columns(view->count, &n);
	for (size_t i = 0; i < n; i++)
		json_object_set_new(key, by[i].name,
				    make_value(frames, view->count, row, &by[i], i));
	json_object_set_new(object, "by", key);
	json_object_set_new(object, "count", json_integer((json_int_t)row->count));
	if (view->sum)
		json_object_set_new(object, "sum", json_integer((json_int_t)row->sum));
	return object;
}

int ky_count_put_json(const struct ky_count_view *view, struct kymo_error *err)
{
	struct ky_frames frames = {0};
	json_t *list = json_array();
	uint64_t lost, missed;
	size_t n;
	const struct ky_count_row *rows = ky_count_rows(view->count, &n);

	for (size_t i = 0; i < rows_shown(view, n); i++)
		json_array_append_new(list, make_count_row(&frames, view, &rows[i]));
	ky_frames_fini(&frames);
	ky_count_losses(view->count, &lost, &missed);
	return ky_cli_put_json(
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "begin_ns",
			  (json_int_t)view->begin_ns, "end_ns", (json_int_t)view->end_ns, "count",
			  (json_int_t)count_of(rows, n), "keys", (json_int_t)n, "lost",
			  (json_int_t)lost, "missed", (json_int_t)missed, "rows", list),
		0, err);
}

/* ---- CSV ---------------------------------------------------------------------------------- */

static void put_titles(struct ky_strbuf *out, const struct ky_count_view *view)
{
	const struct ky_count_column *by;
	size_t n;

	by = ky_count_columns(view->count, &n);
	ky_strbuf_adds(out, "begin_ns,end_ns");
	for (size_t i = 0; i < n; i++) {
		ky_strbuf_addc(out, ',');
		ky_csv_text(out, by[i].name, strlen(by[i].name), false);
	}
	ky_strbuf_adds(out, view->sum ? ",count,sum\r\n" : ",count\r\n");
}

/* The frames in one line, the outermost last, separated by semicolons. */
static void put_folded(struct ky_strbuf *out, struct ky_frames *frames,
		       const struct ky_count *count, const struct ky_count_row *row, size_t i)
{
	put_frames(out, frames, count, row, i, "");
	if (!out->len || ky_strbuf_failed(out))
		return;
	out->len--;
	out->data[out->len] = '\0';
	for (char *at = out->data; *at; at++)
		if (*at == '\n')
			*at = ';';
}

void ky_count_put_csv(struct ky_strbuf *out, const struct ky_count_view *view, bool has_titles)
{
	const struct ky_count_column *by;
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_frames frames = {0};
	size_t n, n_by;
	const struct ky_count_row *rows = ky_count_rows(view->count, &n);

	by = ky_count_columns(view->count, &n_by);
	if (has_titles)
		put_titles(out, view);
	for (size_t i = 0; i < rows_shown(view, n); i++) {
		ky_strbuf_addf(out, "%" PRId64 ",%" PRId64, view->begin_ns, view->end_ns);
		for (size_t k = 0; k < n_by; k++) {
			ky_strbuf_clear(&text);
			if (is_stack(&by[k]))
				put_folded(&text, &frames, view->count, &rows[i], k);
			else if (ky_count_has(view->count, &rows[i], k))
				count_output_put_value(&text, view->count, &rows[i], &by[k], k);
			ky_strbuf_addc(out, ',');
			ky_csv_text(out, ky_strbuf_text(&text), text.len, false);
		}
		ky_strbuf_addf(out, ",%" PRIu64, rows[i].count);
		if (view->sum)
			ky_strbuf_addf(out, ",%" PRId64, rows[i].sum);
		ky_strbuf_adds(out, "\r\n");
	}
	ky_strbuf_fini(&text);
	ky_frames_fini(&frames);
}
