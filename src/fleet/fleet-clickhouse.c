/* SPDX-License-Identifier: MIT */
/*
 * A store on a ClickHouse server, by HTTP. A batch is one block of rows of one day, which the server takes as a whole; it is noted in kymo_batch
 * after that. A batch that was taken and not noted is found by its rows.
 */
#include "fleet/fleet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/fleet-tsv.h"
#include "fleet/http.h"

/* The first version with codecs and TTL of tables. */
#define CODECS_SINCE 20
#define DROP_STEP_US 100000
#define DROP_STEPS   3000

struct fleet_clickhouse {
	struct ky_fleet base;
	struct ky_http_url url;
	int version;
	bool is_new; /* a batch of the table was not there: neither are those after it */
};

/* ---- statements ----------------------------------------------------------------------- */

/*
 * @text in the URL, @body behind it; or @text as the body. Results have names and types, and come when they are whole.
 */
static int fleet_clickhouse_ask(struct fleet_clickhouse *ch, const char *text,
				const struct ky_strbuf *body, bool in_database,
				int (*take)(void *, const char *, size_t, struct kymo_error *),
				void *data, struct kymo_error *err)
{
	struct ky_strbuf target = KY_STRBUF_INIT;
	struct ky_http_request request = {.body = text, .body_bytes = strlen(text)};
	int ret;

	ky_strbuf_adds(&target, "/?wait_end_of_query=1&allow_experimental_low_cardinality_type=1"
				"&default_format=TabSeparatedWithNamesAndTypes");
	if (in_database)
		ky_strbuf_addf(&target, "&database=%s", ch->url.database);
	if (body) {
		ky_strbuf_adds(&target, "&query=");
		ky_http_put_encoded(&target, text, strlen(text));
		request.body = ky_strbuf_text(body);
		request.body_bytes = body->len;
		request.compresses = true;
	}
	request.target = ky_strbuf_text(&target);
	ret = ky_strbuf_failed(&target) ? ky_error_nomem(err)
					: ky_http_post(&ch->url, &request, take, data, err);
	ky_strbuf_fini(&target);
	return ret;
}

static int fleet_clickhouse_run(struct fleet_clickhouse *ch, struct ky_strbuf *text,
				struct kymo_error *err)
{
	int ret = ky_strbuf_failed(text) ? ky_error_nomem(err)
					 : fleet_clickhouse_ask(ch, ky_strbuf_text(text), NULL,
								true, NULL, NULL, err);

	ky_strbuf_fini(text);
	return ret;
}

static int fleet_clickhouse_query(struct ky_fleet *store, const char *text,
				  const struct ky_sql_sink *sink, struct kymo_error *err)
{
	struct ky_fleet_tsv tsv;
	int ret;

	ky_fleet_tsv_init(&tsv, sink);
	ret = fleet_clickhouse_ask((struct fleet_clickhouse *)store, text, NULL, true,
				   ky_fleet_tsv_take, &tsv, err);
	if (!ret)
		ret = ky_fleet_tsv_end(&tsv, err);
	ky_fleet_tsv_fini(&tsv);
	return ret;
}

static int take_integer(void *data, const struct ky_sql_value *values, size_t n,
			struct kymo_error *err)
{
	int64_t *value = data;

	(void)err;
	if (n)
		*value = values[0].integer;
	return KYMO_OK;
}

static int take_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

static int fleet_clickhouse_number(struct fleet_clickhouse *ch, struct ky_strbuf *text,
				   int64_t *value, struct kymo_error *err)
{
	const struct ky_sql_sink sink = {value, take_names, take_integer};
	int ret;

	*value = 0;
	ret = ky_strbuf_failed(text)
		      ? ky_error_nomem(err)
		      : fleet_clickhouse_query(&ch->base, ky_strbuf_text(text), &sink, err);
	ky_strbuf_fini(text);
	return ret;
}

/* ---- tables --------------------------------------------------------------------------- */

/* Columns of the key have a value always. */
static bool fleet_clickhouse_is_key(const char *name)
{
	return strcmp(name, "host") == 0 || strcmp(name, "time") == 0;
}

static void put_column(const struct fleet_clickhouse *ch, struct ky_strbuf *text,
		       const struct ky_fleet_column *column)
{
	bool has_codecs = ch->version >= CODECS_SINCE;

	ky_fleet_put_name(text, column->name);
	if (fleet_clickhouse_is_key(column->name))
		ky_strbuf_adds(text, column->is_text ? " LowCardinality(String)" : " Int64");
	else if (column->is_text)
		/* count() of old versions takes NULL for a value of LowCardinality. */
		ky_strbuf_adds(text, has_codecs ? " LowCardinality(Nullable(String))"
						: " Nullable(String)");
	else
		ky_strbuf_adds(text, " Nullable(Int64)");
	if (has_codecs && !column->is_text)
		ky_strbuf_adds(text, strcmp(column->name, "time") == 0 ? " CODEC(Delta, ZSTD)"
								       : " CODEC(ZSTD)");
}

static bool has_column(const struct ky_fleet_table *table, const char *name)
{
	ky_vec_foreach(&table->columns, column)
		if (strcmp(column->name, name) == 0)
			return true;
	return false;
}

static int fleet_clickhouse_take_column(void *data, const struct ky_sql_value *values, size_t n,
					struct kymo_error *err)
{
	struct ky_strbuf *names = data;

	if (n && values[0].type == KY_SQL_TEXT)
		ky_strbuf_add(names, values[0].text, values[0].len + 1);
	return ky_strbuf_failed(names) ? ky_error_nomem(err) : KYMO_OK;
}

static bool is_listed(const struct ky_strbuf *names, const char *name)
{
	const char *text = ky_strbuf_text(names);

	for (size_t at = 0; at < names->len; at += strlen(text + at) + 1)
		if (strcmp(text + at, name) == 0)
			return true;
	return false;
}

/* Those that the table of an earlier load does not have. */
static int add_columns(struct fleet_clickhouse *ch, const struct ky_fleet_table *table,
		       struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT, names = KY_STRBUF_INIT;
	const struct ky_sql_sink sink = {&names, take_names, fleet_clickhouse_take_column};
	int ret;

	ky_strbuf_addf(&text, "SELECT name FROM system.columns WHERE database = '%s' AND table = '",
		       ch->url.database);
	ky_fleet_tsv_put_quoted(&text, table->name);
	ky_strbuf_adds(&text, "'");
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : fleet_clickhouse_query(&ch->base, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	for (size_t i = 0; i < table->columns.len && !ret; i++) {
		if (is_listed(&names, table->columns.data[i].name))
			continue;
		text = (struct ky_strbuf)KY_STRBUF_INIT;
		ky_strbuf_adds(&text, "ALTER TABLE ");
		ky_fleet_put_name(&text, table->name);
		ky_strbuf_adds(&text, " ADD COLUMN ");
		put_column(ch, &text, &table->columns.data[i]);
		ret = fleet_clickhouse_run(ch, &text, err);
	}
	ky_strbuf_fini(&names);
	return ret;
}

static int fleet_clickhouse_table(struct ky_fleet *store, const struct ky_fleet_table *table,
				  struct kymo_error *err)
{
	struct fleet_clickhouse *ch = (struct fleet_clickhouse *)store;
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ch->is_new = false;
	ky_strbuf_adds(&text, "CREATE TABLE IF NOT EXISTS ");
	ky_fleet_put_name(&text, table->name);
	ky_strbuf_adds(&text, " (\"trace\" LowCardinality(String), \"batch\" Int64");
	ky_vec_foreach(&table->columns, column) {
		ky_strbuf_adds(&text, ", ");
		put_column(ch, &text, column);
	}
	ky_strbuf_adds(&text, ") ENGINE = MergeTree");
	if (table->time >= 0)
		ky_strbuf_adds(
			&text,
			" PARTITION BY toYYYYMMDD(toDateTime(intDiv(\"time\", 1000000000)))");
	ky_strbuf_adds(&text, " ORDER BY (");
	ky_strbuf_adds(&text, has_column(table, "host") ? "\"host\", " : "");
	ky_strbuf_adds(&text, table->time >= 0 ? "\"time\")" : "\"trace\")");
	ret = fleet_clickhouse_run(ch, &text, err);
	return ret ? ret : add_columns(ch, table, err);
}

/* ---- batches -------------------------------------------------------------------------- */

static const char *skip_cell(const char *cell, int64_t *number)
{
	uint32_t bytes;

	*number = 0;
	switch ((enum ky_fleet_cell) * cell++) {
	case KY_FLEET_NULL:
		return cell;
	case KY_FLEET_INTEGER:
		memcpy(number, cell, sizeof(*number));
		return cell + sizeof(*number);
	case KY_FLEET_TEXT:
		break;
	}
	memcpy(&bytes, cell, sizeof(bytes));
	return cell + sizeof(bytes) + bytes;
}

/* The times of a batch, so that the server looks only there. */
static void find_times(const struct ky_fleet_batch *batch, int64_t *first, int64_t *last)
{
	const char *cell = ky_strbuf_text(&batch->cells);
	int64_t number;

	*first = INT64_MAX;
	*last = INT64_MIN;
	for (uint64_t row = 0; row < batch->n_rows; row++) {
		for (size_t i = 0; i < batch->table->columns.len; i++) {
			cell = skip_cell(cell, &number);
			if ((int)i != batch->table->time)
				continue;
			*first = number < *first ? number : *first;
			*last = number > *last ? number : *last;
		}
	}
}

static void fleet_clickhouse_put_batch(struct ky_strbuf *text, const struct ky_fleet_batch *batch,
				       const char *number)
{
	ky_strbuf_addf(text, "\"trace\" = '%s' AND \"%s\" = %" PRIu64, batch->trace, number,
		       batch->number);
}

static int count_rows(struct fleet_clickhouse *ch, const struct ky_fleet_batch *batch,
		      uint64_t *n_rows, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t first, last;

	ky_strbuf_adds(&text, "SELECT count() FROM ");
	ky_fleet_put_name(&text, batch->table->name);
	ky_strbuf_adds(&text, " WHERE ");
	fleet_clickhouse_put_batch(&text, batch, "batch");
	find_times(batch, &first, &last);
	if (batch->table->time >= 0)
		ky_strbuf_addf(&text, " AND \"time\" >= %" PRId64 " AND \"time\" <= %" PRId64,
			       first, last);
	return fleet_clickhouse_number(ch, &text, (int64_t *)n_rows, err);
}

static int fleet_clickhouse_note(struct ky_fleet *store, const char *trace, const char *of,
				 uint64_t number, uint64_t n_rows, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_addf(&text, "INSERT INTO kymo_batch VALUES ('%s', '", trace);
	ky_fleet_tsv_put_quoted(&text, of);
	ky_strbuf_addf(&text, "', %" PRIu64 ", %" PRIu64 ")", number, n_rows);
	return fleet_clickhouse_run((struct fleet_clickhouse *)store, &text, err);
}

static int note(struct fleet_clickhouse *ch, const struct ky_fleet_batch *batch,
		struct kymo_error *err)
{
	return fleet_clickhouse_note(&ch->base, batch->trace, batch->table->name, batch->number,
				     batch->n_rows, err);
}

static int fleet_clickhouse_find(struct ky_fleet *store, const struct ky_fleet_batch *batch,
				 uint64_t *n_rows, struct kymo_error *err)
{
	struct fleet_clickhouse *ch = (struct fleet_clickhouse *)store;
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	*n_rows = 0;
	if (ch->is_new)
		return KYMO_OK;
	ky_strbuf_adds(&text, "SELECT max(n_rows) FROM kymo_batch WHERE ");
	fleet_clickhouse_put_batch(&text, batch, "number");
	ky_strbuf_adds(&text, " AND of = '");
	ky_fleet_tsv_put_quoted(&text, batch->table->name);
	ky_strbuf_adds(&text, "'");
	ret = fleet_clickhouse_number(ch, &text, (int64_t *)n_rows, err);
	if (ret < 0 || *n_rows)
		return ret;
	/* Perhaps the server took it, and the note did not come. */
	ret = count_rows(ch, batch, n_rows, err);
	ch->is_new = !*n_rows;
	return !ret && *n_rows == batch->n_rows ? note(ch, batch, err) : ret;
}

static void put_varint(struct ky_strbuf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		ky_strbuf_addc(out, (char)(value | 0x80));
	ky_strbuf_addc(out, (char)value);
}

/* RowBinary: integers little-endian, as this machine has them; texts behind their length. */
static const char *fleet_clickhouse_put_cell(struct ky_strbuf *out,
					     const struct ky_fleet_column *column, const char *cell)
{
	static const char zeros[8];
	bool is_nullable = !fleet_clickhouse_is_key(column->name);
	uint32_t bytes;

	switch ((enum ky_fleet_cell) * cell++) {
	case KY_FLEET_NULL:
		if (is_nullable)
			ky_strbuf_addc(out, 1);
		else
			ky_strbuf_add(out, zeros, column->is_text ? 1 : 8);
		return cell;
	case KY_FLEET_INTEGER:
		if (is_nullable)
			ky_strbuf_addc(out, 0);
		ky_strbuf_add(out, cell, 8);
		return cell + 8;
	case KY_FLEET_TEXT:
		break;
	}
	memcpy(&bytes, cell, sizeof(bytes));
	cell += sizeof(bytes);
	if (is_nullable)
		ky_strbuf_addc(out, 0);
	put_varint(out, bytes);
	ky_strbuf_add(out, cell, bytes);
	return cell + bytes;
}

static void put_rows(struct ky_strbuf *out, const struct ky_fleet_batch *batch)
{
	const char *cell = ky_strbuf_text(&batch->cells);
	int64_t number = (int64_t)batch->number;

	for (uint64_t row = 0; row < batch->n_rows; row++) {
		put_varint(out, strlen(batch->trace));
		ky_strbuf_adds(out, batch->trace);
		ky_strbuf_add(out, (const char *)&number, sizeof(number));
		for (size_t i = 0; i < batch->table->columns.len; i++)
			cell = fleet_clickhouse_put_cell(out, &batch->table->columns.data[i], cell);
	}
}

static int fleet_clickhouse_insert(struct fleet_clickhouse *ch, const struct ky_fleet_batch *batch,
				   struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT, rows = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&text, "INSERT INTO ");
	ky_fleet_put_name(&text, batch->table->name);
	ky_strbuf_adds(&text, " (\"trace\", \"batch\"");
	ky_vec_foreach(&batch->table->columns, column) {
		ky_strbuf_adds(&text, ", ");
		ky_fleet_put_name(&text, column->name);
	}
	ky_strbuf_adds(&text, ") FORMAT RowBinary");
	put_rows(&rows, batch);
	ret = ky_strbuf_failed(&text) || ky_strbuf_failed(&rows)
		      ? ky_error_nomem(err)
		      : fleet_clickhouse_ask(ch, ky_strbuf_text(&text), &rows, true, NULL, NULL,
					     err);
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&rows);
	return ret;
}

/* Deleting is slow here, and the server does it when it likes: waits for it. */
static int delete_rows(struct fleet_clickhouse *ch, const struct ky_fleet_table *table,
		       const char *where, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t n = 1;
	int ret;

	ky_strbuf_adds(&text, "ALTER TABLE ");
	ky_fleet_put_name(&text, table->name);
	ky_strbuf_addf(&text, " DELETE WHERE %s", where);
	ret = fleet_clickhouse_run(ch, &text, err);
	for (int i = 0; i < DROP_STEPS && !ret && n; i++) {
		text = (struct ky_strbuf)KY_STRBUF_INIT;
		ky_strbuf_addf(&text,
			       "SELECT count() FROM system.mutations WHERE NOT is_done AND "
			       "database = '%s'",
			       ch->url.database);
		ret = fleet_clickhouse_number(ch, &text, &n, err);
		if (n)
			usleep(DROP_STEP_US);
	}
	if (!ret && n)
		ret = ky_error_set(err, KYMO_E_IO, "the server does not come to delete old rows");
	return ret;
}

static int fleet_clickhouse_put(struct ky_fleet *store, const struct ky_fleet_batch *batch,
				bool replaces, struct kymo_error *err)
{
	struct fleet_clickhouse *ch = (struct fleet_clickhouse *)store;
	struct ky_strbuf where = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	fleet_clickhouse_put_batch(&where, batch, "batch");
	if (replaces)
		ret = ky_strbuf_failed(&where)
			      ? ky_error_nomem(err)
			      : delete_rows(ch, batch->table, ky_strbuf_text(&where), err);
	ky_strbuf_fini(&where);
	ret = ret ? ret : fleet_clickhouse_insert(ch, batch, err);
	return ret ? ret : note(ch, batch, err);
}

static int fleet_clickhouse_drop(struct ky_fleet *store, const struct ky_fleet_table *table,
				 const char *trace, struct kymo_error *err)
{
	static const struct ky_fleet_table batches = {.name = "kymo_batch"};
	struct fleet_clickhouse *ch = (struct fleet_clickhouse *)store;
	struct ky_strbuf where = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(&where, "\"trace\" = '%s'", trace);
	ret = ky_strbuf_failed(&where) ? ky_error_nomem(err)
				       : delete_rows(ch, table, ky_strbuf_text(&where), err);
	ky_strbuf_adds(&where, " AND of = '");
	ky_fleet_tsv_put_quoted(&where, table->name);
	ky_strbuf_adds(&where, "'");
	if (!ret)
		ret = ky_strbuf_failed(&where)
			      ? ky_error_nomem(err)
			      : delete_rows(ch, &batches, ky_strbuf_text(&where), err);
	ky_strbuf_fini(&where);
	return ret;
}

/* ---- old days ------------------------------------------------------------------------- */

KY_VEC_TYPE(fleet_days, int64_t);

static int take_day(void *data, const struct ky_sql_value *values, size_t n, struct kymo_error *err)
{
	struct fleet_days *days = data;
	int64_t day = n && values[0].type == KY_SQL_TEXT ? strtoll(values[0].text, NULL, 10)
							 : values[0].integer;

	return ky_vec_push(days, day) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int fleet_clickhouse_expire(struct ky_fleet *store, const char *table, int64_t ns,
				   struct kymo_error *err)
{
	struct fleet_clickhouse *ch = (struct fleet_clickhouse *)store;
	struct fleet_days days = KY_VEC_INIT;
	const struct ky_sql_sink sink = {&days, take_names, take_day};
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(&text,
		       "SELECT DISTINCT toInt64(partition) FROM system.parts WHERE active AND "
		       "database = '%s' AND partition != 'tuple()' AND table = '",
		       ch->url.database);
	ky_fleet_tsv_put_quoted(&text, table);
	ky_strbuf_addf(&text,
		       "' AND toInt64(partition) < toYYYYMMDD(toDateTime(intDiv(%" PRId64
		       ", 1000000000)))",
		       ns);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : fleet_clickhouse_query(store, ky_strbuf_text(&text), &sink, err);
	ky_strbuf_fini(&text);
	for (size_t i = 0; i < days.len && !ret; i++) {
		text = (struct ky_strbuf)KY_STRBUF_INIT;
		ky_strbuf_adds(&text, "ALTER TABLE ");
		ky_fleet_put_name(&text, table);
		ky_strbuf_addf(&text, " DROP PARTITION %" PRId64, days.data[i]);
		ret = fleet_clickhouse_run(ch, &text, err);
	}
	ky_vec_fini(&days);
	return ret;
}

/* ---- opening -------------------------------------------------------------------------- */

static void fleet_clickhouse_close(struct ky_fleet *store)
{
	explicit_bzero(store, sizeof(struct fleet_clickhouse));
	free(store);
}

static const struct ky_fleet_ops fleet_clickhouse_ops = {
	.table = fleet_clickhouse_table,
	.find = fleet_clickhouse_find,
	.put = fleet_clickhouse_put,
	.note = fleet_clickhouse_note,
	.drop = fleet_clickhouse_drop,
	.expire = fleet_clickhouse_expire,
	.query = fleet_clickhouse_query,
	.close = fleet_clickhouse_close,
};

static int fleet_clickhouse_prepare(struct fleet_clickhouse *ch, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int64_t version = 0;
	int ret;

	ky_strbuf_addf(&text, "CREATE DATABASE IF NOT EXISTS \"%s\"", ch->url.database);
	ret = ky_strbuf_failed(&text) ? ky_error_nomem(err)
				      : fleet_clickhouse_ask(ch, ky_strbuf_text(&text), NULL, false,
							     NULL, NULL, err);
	ky_strbuf_clear(&text);
	ky_strbuf_adds(&text, "SELECT toInt64(splitByChar('.', version())[1])");
	if (!ret)
		ret = fleet_clickhouse_number(ch, &text, &version, err);
	else
		ky_strbuf_fini(&text);
	ch->version = (int)version;
	if (ret < 0)
		return ret;
	text = (struct ky_strbuf)KY_STRBUF_INIT;
	ky_strbuf_adds(&text, "CREATE TABLE IF NOT EXISTS kymo_batch (trace String, of String, "
			      "number Int64, n_rows Int64) ENGINE = MergeTree ORDER BY (trace, of, "
			      "number)");
	return fleet_clickhouse_run(ch, &text, err);
}

int ky_fleet_open_clickhouse(const char *url, bool writes, struct ky_fleet **out,
			     struct kymo_error *err)
{
	struct fleet_clickhouse *ch = calloc(1, sizeof(*ch));
	int ret = ch ? ky_http_parse(url, &ch->url, err) : ky_error_nomem(err);

	*out = NULL;
	if (!ret) {
		ch->base.ops = &fleet_clickhouse_ops;
		ch->base.is_clickhouse = true;
	}
	if (!ret && writes)
		ret = fleet_clickhouse_prepare(ch, err);
	if (ret < 0) {
		free(ch);
		return ret;
	}
	*out = &ch->base;
	return KYMO_OK;
}
