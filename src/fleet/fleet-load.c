/* SPDX-License-Identifier: MIT */
/* Rows of traces' tables, cut into batches that are the same each time: one pass over the events fills the batches of all tables. */
#include "fleet/fleet-load.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/fleet-queue.h"
#include "fleet/fleet-tsv.h"
#include "flow/graph/range.h"
#include "sql/sql-scan.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

/* Memory of batches that are not full. Beyond it, tables wait for another pass. */
#define OPEN_MAX_BYTES ((size_t)512 << 20)
/* Of a cell: its number and its mark of NULL. */
#define CELL_BYTES 9

struct load_table {
	struct ky_fleet_table table;
	KY_VEC(uint32_t) columns; /* in SQL */
	size_t number;		  /* of the table in SQL */
	int host;		  /* the column, or -1 */
	struct ky_fleet_batch *open;
	struct ky_fleet_task *task; /* the batch before, on its way */
	uint64_t next;		    /* number of the open batch */
	uint64_t n_skip;	    /* rows that an earlier pass has handed over */
	uint64_t n_sent;
	int64_t day;
	bool is_made;	      /* in the store; tables of events with the first one */
	bool is_done, is_off; /* waits for the next pass */
};

/* Loading of the chosen tables. */
struct fleet_pass {
	struct ky_fleet_load *load;
	struct ky_fleet_queue *queue;
	KY_VEC(struct load_table *) tables;
	KY_VEC(struct load_table *) active; /* of this reading of the events */
	size_t open_bytes;
	int64_t end_ns;	 /* of the trace */
	bool has_slices; /* the store has slices of it */
};

/* ---- tables --------------------------------------------------------------------------- */

/* Ids of threads and CPUs. */
static bool fleet_load_is_small(const char *name)
{
	static const char *const ends[] = {"tid", "pid", "cpu", "prio"};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (len >= strlen(ends[i]) && strcmp(name + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

/* A field of an event may have the name "end", too. */
static int fleet_load_find_columns(const struct fleet_pass *pass, struct load_table *of,
				   bool is_of_events)
{
	struct ky_fleet_table *table = &of->table;
	const char *name, *type, *about;
	bool has_duration = false, is_calls = !is_of_events && strcmp(table->name, "syscall") == 0;

	table->time = table->end = of->host = -1;
	for (size_t c = 0; ky_sql_column(pass->load->sql, of->number, c, &name, &type, &about);
	     c++) {
		struct ky_fleet_column column = {.name = name,
						 .is_text = strcmp(type, "TEXT") == 0,
						 .is_real = strcmp(type, "REAL") == 0,
						 .is_small =
							 !is_of_events && fleet_load_is_small(name),
						 .is_whole = is_calls && strcmp(name, "name") == 0,
						 .is_time = strstr(about, "ns since 1970") != NULL};

		if (!ky_fleet_wants_column(pass->load->options, name, type, about))
			continue;
		/* A thread that was there before the trace has no begin. */
		if (strcmp(name, "time") == 0 && strcmp(table->name, "thread") != 0)
			table->time = (int)table->columns.len;
		if (strcmp(name, "end") == 0 && !is_of_events)
			table->end = (int)table->columns.len;
		if (strcmp(name, "host") == 0)
			of->host = (int)table->columns.len;
		has_duration |= strcmp(name, "duration") == 0;
		if (ky_vec_push(&table->columns, column) < 0 ||
		    ky_vec_push(&of->columns, (uint32_t)c) < 0)
			return KYMO_E_MEMORY;
	}
	table->is_interval = table->time >= 0 && table->end >= 0 && has_duration;
	return KYMO_OK;
}

static void load_table_free(struct load_table *of)
{
	if (!of)
		return;
	ky_vec_fini(&of->table.columns);
	ky_vec_fini(&of->columns);
	if (of->open)
		ky_fleet_batch_fini(of->open);
	free(of->open);
	free(of);
}

/* A sum of the store's lines of the trace. @of NULL: of all tables. */
static int fleet_load_count_slices(struct fleet_pass *pass, const char *of, int64_t *n,
				   struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(
		&text,
		"SELECT sum(n_rows) FROM kymo_batch WHERE trace = '%s' AND number >= %lld AND of != ''",
		pass->load->trace, 1LL << KY_FLEET_SLICE_SHIFT);
	if (of) {
		ky_strbuf_adds(&text, " AND of = '");
		ky_fleet_tsv_put_quoted(&text, of);
		ky_strbuf_adds(&text, "'");
	}
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_number(pass->load->store, ky_strbuf_text(&text), n, err);
	ky_strbuf_fini(&text);
	return ret;
}

/* A trace that a relay has loaded while it grew. */
static int fleet_load_find_slices(struct fleet_pass *pass, struct load_table *of,
				  struct kymo_error *err)
{
	int64_t n = 0;
	int ret = fleet_load_count_slices(pass, of->table.name, &n, err);

	of->is_done = n > 0;
	pass->load->result->n_known += (uint64_t)n;
	return ret;
}

static int fleet_load_add_table(struct fleet_pass *pass, size_t number, const char *name,
				bool is_of_events, struct kymo_error *err)
{
	struct load_table *of = calloc(1, sizeof(*of));
	int ret;

	if (!of || ky_vec_push(&pass->tables, of) < 0) {
		free(of);
		return ky_error_nomem(err);
	}
	of->number = number;
	of->table.name = name;
	of->day = INT64_MIN;
	if (fleet_load_find_columns(pass, of, is_of_events) < 0)
		return ky_error_nomem(err);
	if (!of->table.columns.len) {
		load_table_free(of);
		pass->tables.len--;
		return KYMO_OK;
	}
	of->next =
		pass->load->slice ? (uint64_t)pass->load->slice->number << KY_FLEET_SLICE_SHIFT : 0;
	of->is_made = !is_of_events;
	ret = is_of_events ? KYMO_OK
			   : pass->load->store->ops->table(pass->load->store, &of->table, err);
	if (!ret && pass->load->options->again)
		ret = pass->load->store->ops->drop(pass->load->store, &of->table, pass->load->trace,
						   err);
	else if (!ret && !pass->load->slice && pass->has_slices)
		ret = fleet_load_find_slices(pass, of, err);
	return ret;
}

static int fleet_load_add_tables(struct fleet_pass *pass, struct kymo_error *err)
{
	const char *name, *about;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && ky_sql_table(pass->load->sql, i, &name, &about); i++)
		if (ky_fleet_wants_table(pass->load->options, name, about))
			ret = fleet_load_add_table(pass, i, name,
						   strncmp(about, "events \"", 8) == 0, err);
	return ret;
}

/* ---- batches -------------------------------------------------------------------------- */

static int fleet_load_open(struct fleet_pass *pass, struct load_table *of, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!of->is_made)
		ret = ky_fleet_queue_table(pass->queue, &of->task, &of->table, err);
	if (ret < 0)
		return ret;
	of->is_made = true;
	of->open = calloc(1, sizeof(*of->open));
	if (!of->open || ky_fleet_batch_init(of->open, &of->table) < 0)
		return ky_error_nomem(err);
	memcpy(of->open->trace, pass->load->trace, sizeof(of->open->trace));
	of->open->number = of->next;
	of->open->last_ns = pass->end_ns;
	return KYMO_OK;
}

/* The open batch goes its way. */
static int fleet_load_send(struct fleet_pass *pass, struct load_table *of, bool is_last,
			   struct kymo_error *err)
{
	struct ky_fleet_batch *batch = of->open;
	size_t bytes = batch ? ky_fleet_batch_bytes(batch) : 0;
	int ret;

	if (!batch || !batch->n_rows)
		return KYMO_OK;
	if (batch->failed)
		return ky_error_nomem(err);
	of->open = NULL;
	pass->open_bytes -= bytes < pass->open_bytes ? bytes : pass->open_bytes;
	of->next++;
	of->n_sent += batch->n_rows;
	batch->is_last = is_last;
	ret = ky_fleet_queue_put(pass->queue, &of->task, batch, err);
	ky_fleet_queue_result(pass->queue, pass->load->result);
	if (pass->load->options->progress)
		pass->load->options->progress(pass->load->options->data,
					      pass->load->result->n_rows +
						      pass->load->result->n_known);
	if (!ret && pass->load->options->stop && pass->load->options->stop())
		ret = ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
	return ret;
}

/* Half of the tables lose what they have, and begin again in another pass, so that the others have room. */
static void fleet_load_put_off(struct fleet_pass *pass)
{
	size_t n = 0, keep;

	ky_vec_foreach(&pass->active, of)
		n += !(*of)->is_off;
	keep = (n + 1) / 2;
	ky_vec_foreach(&pass->active, of) {
		if ((*of)->is_off || keep) {
			keep -= !(*of)->is_off;
			continue;
		}
		(*of)->is_off = true;
		if ((*of)->open) {
			pass->open_bytes -= ky_fleet_batch_bytes((*of)->open);
			ky_fleet_batch_fini((*of)->open);
		}
		free((*of)->open);
		(*of)->open = NULL;
	}
}

/* Rows without times are of a whole trace: those of machines come with the first slice, those of threads with the last. */
static bool fleet_load_is_in_slice(const struct fleet_pass *pass, const struct load_table *of,
				   const struct ky_sql_cell *cells)
{
	const struct ky_fleet_slice *slice = pass->load->slice;
	int at = of->table.end >= 0 ? of->table.end : of->table.time;
	const struct ky_sql_cell *cell;

	if (!slice)
		return true;
	if (strcmp(of->table.name, "thread") == 0 || strcmp(of->table.name, "process") == 0)
		return slice->until_ns == INT64_MAX;
	if (at < 0)
		return slice->number == 1;
	cell = &cells[of->columns.data[at]];
	return cell->type == KY_SQL_INTEGER
		       ? cell->integer > slice->after_ns && cell->integer <= slice->until_ns
		       : slice->until_ns == INT64_MAX;
}

/* Whole batches are of one day, so that the server puts each into one partition. */
static bool fleet_load_is_full(const struct load_table *of, const struct ky_sql_cell *time)
{
	if (!of->open)
		return false;
	return of->open->n_rows >= KY_FLEET_BATCH_ROWS ||
	       ky_fleet_batch_bytes(of->open) >= KY_FLEET_BATCH_BYTES ||
	       (time && time->integer / DAY_NS != of->day);
}

static void fleet_load_add(struct fleet_pass *pass, struct load_table *of,
			   const struct ky_sql_cell *cells)
{
	struct ky_fleet_batch *batch = of->open;
	size_t text_bytes = batch->text_bytes;

	for (size_t i = 0; i < of->columns.len; i++) {
		const struct ky_sql_cell *cell = &cells[of->columns.data[i]];
		struct ky_sql_cell host = {.type = KY_SQL_TEXT, .is_borrowed = true};

		if (pass->load->options->host && (int)i == of->host) {
			host.text = pass->load->options->host;
			host.len = (uint32_t)strlen(host.text);
			cell = &host;
		}
		ky_fleet_batch_add(batch, i, cell);
	}
	ky_fleet_batch_end_row(batch);
	pass->open_bytes += of->columns.len * CELL_BYTES + batch->text_bytes - text_bytes;
}

static int fleet_load_row(void *data, size_t i, const struct ky_sql_cell *cells,
			  struct kymo_error *err)
{
	struct fleet_pass *pass = data;
	struct load_table *of = pass->active.data[i];
	const struct ky_sql_cell *time =
		of->table.time >= 0 ? &cells[of->columns.data[of->table.time]] : NULL;
	static const struct ky_sql_cell none = {.type = KY_SQL_INTEGER};
	int ret = KYMO_OK;

	if (of->is_off || !fleet_load_is_in_slice(pass, of, cells))
		return KYMO_OK;
	if (time && time->type != KY_SQL_INTEGER)
		time = &none;
	if (fleet_load_is_full(of, time))
		ret = fleet_load_send(pass, of, false, err);
	of->day = time ? time->integer / DAY_NS : 0;
	if (ret < 0)
		return ret;
	if (of->n_skip) {
		of->n_skip--;
		return KYMO_OK;
	}
	if (!of->open && (ret = fleet_load_open(pass, of, err)) < 0)
		return ret;
	fleet_load_add(pass, of, cells);
	if (pass->open_bytes > OPEN_MAX_BYTES)
		fleet_load_put_off(pass);
	return KYMO_OK;
}

/* ---- passes --------------------------------------------------------------------------- */

KY_VEC_TYPE(load_scan, struct ky_sql_scan_table);

static int fleet_load_begin_pass(struct fleet_pass *pass, struct load_scan *scan)
{
	ky_vec_clear(&pass->active);
	ky_vec_clear(scan);
	pass->open_bytes = 0;
	ky_vec_foreach(&pass->tables, of) {
		struct ky_sql_scan_table one = {(*of)->number, (*of)->columns.data,
						(*of)->columns.len};

		if ((*of)->is_done)
			continue;
		(*of)->is_off = false;
		(*of)->n_skip = (*of)->n_sent;
		if (ky_vec_push(scan, one) < 0 || ky_vec_push(&pass->active, *of) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static int fleet_load_end_pass(struct fleet_pass *pass, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < pass->active.len && !ret; i++) {
		struct load_table *of = pass->active.data[i];

		if (of->is_off)
			continue;
		of->is_done = true;
		pass->load->result->n_tables++;
		ret = fleet_load_send(pass, of, true, err);
	}
	return ret;
}

/* Mostly one pass is enough. */
static int fleet_load_run(struct fleet_pass *pass, struct kymo_error *err)
{
	const struct ky_sql_scan_sink sink = {pass, fleet_load_row};
	struct load_scan scan = KY_VEC_INIT;
	int ret = fleet_load_begin_pass(pass, &scan) < 0 ? ky_error_nomem(err) : KYMO_OK;

	while (!ret && scan.len) {
		ret = ky_sql_scan(pass->load->sql, scan.data, scan.len, &sink, err);
		if (!ret)
			ret = fleet_load_end_pass(pass, err);
		if (!ret && fleet_load_begin_pass(pass, &scan) < 0)
			ret = ky_error_nomem(err);
	}
	ky_vec_fini(&scan);
	return ret;
}

/* What was handed over goes to its end, whatever happened. */
static int fleet_load_finish(struct fleet_pass *pass, int status, struct kymo_error *err)
{
	struct kymo_error other = {0};
	int ret = ky_fleet_queue_wait(pass->queue, status ? &other : err);

	ky_vec_foreach(&pass->tables, of)
		ky_fleet_task_free((*of)->task);
	ky_fleet_queue_result(pass->queue, pass->load->result);
	ky_fleet_queue_free(pass->queue);
	if (!status && !ret)
		ret = pass->load->store->ops->end(pass->load->store, err);
	else
		(void)pass->load->store->ops->end(pass->load->store, &other);
	return status ? status : ret;
}

/* ---- all ------------------------------------------------------------------------------ */

static int fleet_load_prepare(struct fleet_pass *pass, struct kymo_error *err)
{
	struct ky_fleet *store = pass->load->store;
	int64_t begin_ns, n_slices = 0;
	int ret = ky_set_range(pass->load->set, &begin_ns, &pass->end_ns, err);

	if (!ret)
		ret = store->ops->begin(store, pass->load->trace, err);
	if (!ret && !pass->load->slice)
		ret = fleet_load_count_slices(pass, NULL, &n_slices, err);
	pass->has_slices = n_slices != 0;
	return ret ? ret : fleet_load_add_tables(pass, err);
}

int ky_fleet_load_tables(struct ky_fleet_load *load, struct kymo_error *err)
{
	struct fleet_pass pass = {.load = load};
	int ret = fleet_load_prepare(&pass, err);

	if (!ret)
		ret = ky_fleet_queue_new(load->store, &pass.queue, err);
	if (!ret)
		ret = fleet_load_finish(&pass, fleet_load_run(&pass, err), err);
	ky_vec_foreach(&pass.tables, of)
		load_table_free(*of);
	ky_vec_fini(&pass.tables);
	ky_vec_fini(&pass.active);
	return ret;
}
