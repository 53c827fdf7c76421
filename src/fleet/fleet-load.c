/* SPDX-License-Identifier: MIT */
/* Rows of traces' tables, cut into batches that are the same each time. */
#include "fleet/fleet-load.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "fleet/fleet-tsv.h"
#include "store/read/sync-file.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

/* Without a wish: intervals, and what is small. */
static const char *const usual_tables[] = {
	"syscall",	 "cpu_slice", "thread_state", "thread",	 "cpu_state", "irq",
	"block_request", "network",   "lock_wait",    "counter", "loss",      "host",
};

/* Texts that are names of machines, programs and things, and never content. */
static const char *const plain_texts[] = {
	"host",	       "name",		 "comm",      "waker_comm", "who_comm",
	"holder_comm", "stream",	 "domain",    "sysname",    "kernel_release",
	"tracer",      "tracer_version", "state",     "cause",	    "syscall",
	"irq",	       "disk",		 "interface", "direction",  "operation",
	"error",       "unit",		 "level",     "event",	    "source",
	"kind",	       "prev_comm",	 "next_comm", "uuid",
};

static bool is_among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* ---- tables --------------------------------------------------------------------------- */

static bool is_of_events(const char *about)
{
	return strncmp(about, "events \"", 8) == 0;
}

/* Columns of an event type are what programs wrote, but for the names of threads. */
static bool fleet_load_is_wanted(const struct ky_fleet_load *load, const char *name,
				 const char *type, const char *about)
{
	bool is_field = strncmp(about, "field", 5) == 0 || strncmp(about, "context field", 13) == 0;
	size_t len = strlen(name);

	if (strncmp(about, "argument:", 9) == 0 || strcmp(type, "BLOB") == 0)
		return false;
	if (strcmp(type, "TEXT") != 0 || load->options->with_texts)
		return true;
	if (is_field)
		return len >= 4 && strcmp(name + len - 4, "comm") == 0;
	return is_among(name, plain_texts, sizeof(plain_texts) / sizeof(plain_texts[0]));
}

static int fleet_load_find_columns(const struct ky_fleet_load *load, size_t number,
				   struct ky_fleet_table *table)
{
	const char *name, *type, *about;

	table->time = table->end = -1;
	for (size_t c = 0; ky_sql_column(load->sql, number, c, &name, &type, &about); c++) {
		struct ky_fleet_column column = {name, strcmp(type, "TEXT") == 0};

		if (!fleet_load_is_wanted(load, name, type, about))
			continue;
		if (strcmp(name, "time") == 0)
			table->time = (int)table->columns.len;
		if (strcmp(name, "end") == 0)
			table->end = (int)table->columns.len;
		if (ky_vec_push(&table->columns, column) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static bool fleet_load_is_chosen(const struct ky_fleet_load *load, const char *name,
				 const char *about)
{
	const struct ky_fleet_options *options = load->options;

	if (is_of_events(about))
		return options->n_events &&
		       ky_glob_choose(options->events, options->n_events, name);
	if (options->n_tables)
		return ky_glob_choose(options->tables, options->n_tables, name);
	return is_among(name, usual_tables, sizeof(usual_tables) / sizeof(usual_tables[0]));
}

/* ---- batches -------------------------------------------------------------------------- */

static void add_integer(struct ky_strbuf *out, int64_t value)
{
	ky_strbuf_addc(out, KY_FLEET_INTEGER);
	ky_strbuf_add(out, (const char *)&value, sizeof(value));
}

static void fleet_load_add_text(struct ky_strbuf *out, const char *text, size_t len)
{
	uint32_t bytes = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;

	ky_strbuf_addc(out, KY_FLEET_TEXT);
	ky_strbuf_add(out, (const char *)&bytes, sizeof(bytes));
	ky_strbuf_add(out, text, bytes);
}

/* Numbers in a column of texts are texts, and what no integer can be is NULL. */
static void fleet_load_add_cell(struct ky_strbuf *out, const struct ky_fleet_column *column,
				const struct ky_sql_value *value)
{
	char number[32];

	if (value->type == KY_SQL_NULL)
		ky_strbuf_addc(out, KY_FLEET_NULL);
	else if (column->is_text && (value->type == KY_SQL_TEXT || value->type == KY_SQL_BLOB))
		fleet_load_add_text(out, value->text, value->len);
	else if (column->is_text)
		fleet_load_add_text(
			out, number,
			(size_t)snprintf(number, sizeof(number), "%" PRId64, value->integer));
	else if (value->type == KY_SQL_INTEGER)
		add_integer(out, value->integer);
	else if (value->type == KY_SQL_REAL && fabs(value->real) < 9e18)
		add_integer(out, (int64_t)value->real);
	else
		ky_strbuf_addc(out, KY_FLEET_NULL);
}

static void fleet_load_add_column(struct ky_fleet_batch *batch, const struct ky_sql_value *row,
				  const char *host, size_t i)
{
	const struct ky_fleet_column *column = &batch->table->columns.data[i];

	if (host && strcmp(column->name, "host") == 0)
		fleet_load_add_text(&batch->cells, host, strlen(host));
	else
		fleet_load_add_cell(&batch->cells, column, &row[i]);
}

static void fleet_load_add_row(const struct ky_fleet_load *load, struct ky_fleet_batch *batch,
			       const struct ky_sql_value *row)
{
	const char *host = load->options->host;

	for (size_t i = 0; i < batch->table->columns.len; i++)
		fleet_load_add_column(batch, row, host, i);
	batch->n_rows++;
}

/* A batch that is there has all of its rows, unless the trace has grown. */
static int flush(struct ky_fleet_load *load, struct ky_fleet_batch *batch, struct kymo_error *err)
{
	uint64_t there;
	int ret;

	if (!batch->n_rows)
		return KYMO_OK;
	if (ky_strbuf_failed(&batch->cells))
		return ky_error_nomem(err);
	ret = load->store->ops->find(load->store, batch, &there, err);
	if (!ret && there == batch->n_rows) {
		load->result->n_known += there;
	} else if (!ret) {
		ret = load->store->ops->put(load->store, batch, there != 0, err);
		load->result->n_rows += batch->n_rows;
		load->result->n_batches++;
	}
	ky_strbuf_clear(&batch->cells);
	batch->number++;
	batch->n_rows = 0;
	if (load->options->progress)
		load->options->progress(load->options->data,
					load->result->n_rows + load->result->n_known);
	if (!ret && load->options->stop && load->options->stop())
		ret = ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
	return ret;
}

static int64_t day_of(const struct ky_sql_value *value)
{
	return value->type == KY_SQL_INTEGER ? value->integer / DAY_NS : 0;
}

/* Rows without times are of a whole trace: those of machines come with the first slice, those of threads with the last. */
static bool fleet_load_is_in_slice(const struct ky_fleet_load *load,
				   const struct ky_fleet_table *table,
				   const struct ky_sql_value *row)
{
	const struct ky_fleet_slice *slice = load->slice;
	int at = table->end >= 0 ? table->end : table->time;

	if (!slice)
		return true;
	if (strcmp(table->name, "thread") == 0 || strcmp(table->name, "process") == 0)
		return slice->until_ns == INT64_MAX;
	if (at < 0)
		return slice->number == 1;
	return row[at].type == KY_SQL_INTEGER
		       ? row[at].integer > slice->after_ns && row[at].integer <= slice->until_ns
		       : slice->until_ns == INT64_MAX;
}

static int load_rows(struct ky_fleet_load *load, struct ky_sql_statement *statement,
		     struct ky_fleet_batch *batch, struct kymo_error *err)
{
	const struct ky_fleet_table *table = batch->table;
	struct ky_sql_value *row = calloc(table->columns.len + 1, sizeof(*row));
	int64_t day = INT64_MIN;
	int ret = row ? KYMO_OK : ky_error_nomem(err);

	while (!ret && (ret = ky_sql_step(statement, err)) == 1) {
		ret = KYMO_OK;
		for (size_t i = 0; i < table->columns.len; i++)
			ky_sql_get(statement, i, &row[i]);
		if (!fleet_load_is_in_slice(load, table, row))
			continue;
		/* Whole batches are of one day, so that the server puts each into one partition. */
		if (batch->n_rows >= KY_FLEET_BATCH_ROWS ||
		    batch->cells.len >= KY_FLEET_BATCH_BYTES ||
		    (table->time >= 0 && batch->n_rows && day_of(&row[table->time]) != day))
			ret = flush(load, batch, err);
		if (table->time >= 0)
			day = day_of(&row[table->time]);
		if (!ret)
			fleet_load_add_row(load, batch, row);
	}
	free(row);
	return ret ? ret : flush(load, batch, err);
}

/* A trace that a relay has loaded while it grew. */
static int find_slices(struct ky_fleet_load *load, const struct ky_fleet_table *table,
		       bool *is_known, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t n = 0;
	int ret;

	ky_strbuf_addf(&text, "SELECT sum(n_rows) FROM kymo_batch WHERE trace = '%s' AND of = '",
		       load->trace);
	ky_fleet_tsv_put_quoted(&text, table->name);
	ky_strbuf_addf(&text, "' AND number >= %lld", 1LL << KY_FLEET_SLICE_SHIFT);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_number(load->store, ky_strbuf_text(&text), &n, err);
	ky_strbuf_fini(&text);
	*is_known = n > 0;
	load->result->n_known += (uint64_t)n;
	return ret;
}

static int load_table(struct ky_fleet_load *load, const struct ky_fleet_table *table,
		      struct kymo_error *err)
{
	struct ky_fleet_batch batch = {
		.table = table,
		.trace = load->trace,
		.number = load->slice ? (uint64_t)load->slice->number << KY_FLEET_SLICE_SHIFT : 0,
		.cells = KY_STRBUF_INIT,
	};
	struct ky_sql_statement *statement = NULL;
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *rest;
	bool is_known = false;
	int ret = load->store->ops->table(load->store, table, err);

	if (!ret && load->options->again)
		ret = load->store->ops->drop(load->store, table, load->trace, err);
	else if (!ret && !load->slice)
		ret = find_slices(load, table, &is_known, err);
	if (ret < 0 || is_known)
		return ret;
	ky_strbuf_adds(&text, "SELECT ");
	for (size_t i = 0; i < table->columns.len; i++) {
		ky_strbuf_adds(&text, i ? ", " : "");
		ky_fleet_put_name(&text, table->columns.data[i].name);
	}
	ky_strbuf_adds(&text, " FROM ");
	ky_fleet_put_name(&text, table->name);
	if (!ret && ky_strbuf_failed(&text))
		ret = ky_error_nomem(err);
	if (!ret)
		ret = ky_sql_prepare(load->sql, ky_strbuf_text(&text), &rest, &statement, err);
	if (!ret)
		ret = load_rows(load, statement, &batch, err);
	ky_sql_finish(statement);
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&batch.cells);
	return ret;
}

int ky_fleet_load_tables(struct ky_fleet_load *load, struct kymo_error *err)
{
	const char *name, *about;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && ky_sql_table(load->sql, i, &name, &about); i++) {
		struct ky_fleet_table table = {.name = name};

		if (!fleet_load_is_chosen(load, name, about))
			continue;
		ret = fleet_load_find_columns(load, i, &table) < 0 ? ky_error_nomem(err) : KYMO_OK;
		if (!ret && table.columns.len)
			ret = load_table(load, &table, err);
		load->result->n_tables += !ret;
		ky_vec_fini(&table.columns);
	}
	return ret;
}

static int load_take_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

static int load_take_time(void *data, const struct ky_sql_value *values, size_t n,
			  struct kymo_error *err)
{
	int64_t *ns = data;

	(void)err;
	if (n && values[0].type == KY_SQL_INTEGER)
		*ns = values[0].integer;
	return KYMO_OK;
}

int64_t ky_fleet_load_time(struct ky_fleet_load *load, const char *text)
{
	int64_t ns = 0;
	const struct ky_sql_sink sink = {&ns, load_take_names, load_take_time};

	(void)ky_sql_run(load->sql, text, NULL, 0, &sink, NULL);
	return ns;
}

/* The chunks of a rotated recording have all else in common, but not their first event. */
static void fleet_load_name_trace(struct ky_fleet_load *load)
{
	uint64_t hash = load->options->host
				? ky_hash_bytes(load->options->host, strlen(load->options->host))
				: 0;

	ky_vec_foreach(&load->set->traces, trace) {
		const struct ky_env *env = ky_env_find((*trace)->cls, "hostname");

		hash = ky_hash_u64(hash ^ ky_sync_identity(*trace));
		if (env && env->is_text)
			hash = ky_hash_u64(hash ^ ky_hash_bytes(env->text, strlen(env->text)));
	}
	hash = ky_hash_u64(hash ^
			   (uint64_t)ky_fleet_load_time(load, "SELECT time FROM event LIMIT 1"));
	(void)snprintf(load->trace, sizeof(load->trace), "%016" PRIx64, hash);
}

int ky_fleet_load_begin(struct ky_fleet_load *load, struct kymo_error *err)
{
	int ret = ky_sql_open(load->set, &load->sql, err);

	if (!ret)
		fleet_load_name_trace(load);
	return ret;
}

int ky_fleet_load(struct ky_fleet *store, const struct ky_trace_set *set,
		  const struct ky_fleet_options *options, struct ky_fleet_result *result,
		  struct kymo_error *err)
{
	struct ky_fleet_load load = {
		.store = store, .set = set, .options = options, .result = result};
	int ret = ky_fleet_load_begin(&load, err);

	if (!ret)
		ret = ky_fleet_load_tables(&load, err);
	ky_sql_close(load.sql);
	return ret;
}
